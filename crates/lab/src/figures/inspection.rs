//! Draws a model, and how a model adapts to a recording.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leukos::{Circuit, Matrix, Model, Whitener};

use super::axes::{Axis, Plot, heading, range};
use super::canvas::{Canvas, Frame, Paint};
use super::marks::Entry;
use super::matrices::MatrixPanel;
use super::pair::legend_above;
use super::png::Renderer;
use super::style::{Role, Style};
use crate::files::write_atomically;
use crate::inspection::{Adaptation, Point};

const WIDTH: f64 = 720.0;
/// The height of a row of matrices, and of a row with a plot.
const MATRICES: f64 = 180.0;
const PLOT: f64 = 190.0;
/// The most gains that are drawn over time; more could not be told apart.
const MOST_GAINS: usize = 12;

/// Draws a model: synapses, gains with the spread of their prior, the covariance that the gains stand for, the whitening
/// matrix, and the covariance after it.
///
/// # Errors
/// When the model has no scale yet, or an image cannot be encoded.
pub fn draw_model(model: &Model) -> Result<String> {
    let mut canvas = Canvas::new(WIDTH, 2.0 * MATRICES, Style::Light);
    let (top, below) = Frame::new(0.0, 0.0, WIDTH, 2.0 * MATRICES).split(0.5);
    let names = model.channel_names.as_deref();
    let synapses = assembled_synapses(model);
    let circuits: Vec<Circuit> =
        model.whitener.whiteners().map(Whitener::circuit).collect::<leukos::Result<_>>()?;
    let left = top.cell([3, 1], [0, 0], 0.0);
    synapses_panel("A", &synapses, names).draw(&mut canvas, left)?;
    let right = top.inset([left.width, 0.0, 0.0, 0.0]);
    canvas.panel("B", right, |canvas, frame| gains(canvas, frame, model, &circuits));
    let whitening = model.whitener.whitening_matrix()?;
    let expected = expected_covariance(model, &circuits);
    let after = product(&product(&whitening, &expected), &whitening);
    let panels = [
        ("C", "covariance that the gains stand for", &expected),
        ("D", "whitening matrix", &whitening),
        ("E", "covariance after whitening", &after),
    ];
    for (i, (letter, heading, matrix)) in panels.into_iter().enumerate() {
        let panel = MatrixPanel { letter, heading, sides: ["channel", "channel"], names, matrix };
        panel.draw(&mut canvas, below.cell([3, 1], [i, 0], 0.0))?;
    }
    let (n, k) = (synapses.rows(), synapses.columns());
    let shows = format!("A whitener of {n} channels and {k} interneurons");
    Ok(canvas.svg("model", &shows))
}

/// Draws how a model adapted to a recording: covariance before and after, synapses, gains and error over time.
///
/// # Errors
/// When an image cannot be encoded.
pub fn draw_adaptation(adaptation: &Adaptation, sample_rate: Option<f64>) -> Result<String> {
    let mut canvas = Canvas::new(WIDTH, MATRICES + 2.0 * PLOT, Style::Light);
    let names = adaptation.model.channel_names.as_deref();
    let synapses = assembled_synapses(&adaptation.model);
    let covariance = |letter, heading, matrix| MatrixPanel {
        letter,
        heading,
        sides: ["channel", "channel"],
        names,
        matrix,
    };
    let panels = [
        covariance("A", "covariance of the stimuli", &adaptation.before),
        covariance("B", "covariance of the responses", &adaptation.after),
        synapses_panel("C", &synapses, names),
    ];
    let top = Frame::new(0.0, 0.0, WIDTH, MATRICES);
    for (i, panel) in panels.iter().enumerate() {
        panel.draw(&mut canvas, top.cell([3, 1], [i, 0], 0.0))?;
    }
    let time = Time::new(&adaptation.points, sample_rate);
    let row = |i: usize| Frame::new(0.0, MATRICES + i as f64 * PLOT, WIDTH, PLOT);
    canvas.panel("D", row(0), |canvas, frame| gains_over_time(canvas, frame, &adaptation.points, &time));
    canvas.panel("E", row(1), |canvas, frame| error_over_time(canvas, frame, adaptation, &time));
    Ok(canvas
        .svg("adaptation", "How a whitener adapted to a recording: covariances, synapses, gains and error"))
}

fn synapses_panel<'a>(letter: &'a str, synapses: &'a Matrix, names: Option<&'a [String]>) -> MatrixPanel<'a> {
    MatrixPanel {
        letter,
        heading: "synapses *W*",
        sides: ["channel", "interneuron"],
        names,
        matrix: synapses,
    }
}

/// Gains as dots, and mean and standard deviation of their prior.
fn gains(canvas: &mut Canvas, panel: Frame, model: &Model, circuits: &[Circuit]) {
    let all: Vec<f64> = circuits.iter().flat_map(Circuit::gains).copied().collect();
    let prior: Vec<Option<[f64; 2]>> = model.whitener.whiteners().flat_map(prior_of).collect();
    let ends = prior.iter().flatten().flat_map(|[mean, sd]| [mean - sd, mean + sd]);
    let bounds = padded(all.iter().copied().chain(ends).chain([0.0]));
    let plot = Plot::within(
        panel,
        Axis::linear([-0.5, all.len() as f64 - 0.5], "interneuron").with_ticks(whole_ticks(all.len())),
        Axis::linear(bounds, "gain"),
    );
    plot.draw(canvas);
    plot.level(canvas, 0.0, &Paint::stroke(canvas.style.faint_ink(), 0.8));
    let [own, of_prior] = [Role::Learned, Role::Initial].map(|role| Paint::fill(canvas.style.colour(role)));
    if prior.iter().any(Option::is_some) {
        canvas.part("series", "prior", |canvas| {
            for (i, spread) in prior.iter().enumerate() {
                spread.iter().for_each(|spread| plot.bar(canvas, i as f64, *spread, &of_prior));
            }
        });
    }
    canvas.part("series", "gains", |canvas| {
        for (i, &gain) in all.iter().enumerate() {
            plot.dot(canvas, (i as f64 + 0.15, gain), 2.6, &own);
        }
    });
    let mut entries = vec![Entry::dot(own, "gains as they stand")];
    if prior.iter().any(Option::is_some) {
        entries.push(Entry::dot(of_prior, "prior: mean ± sd over contexts"));
    }
    legend_above(canvas, plot.frame, entries);
}

fn prior_of(whitener: &Whitener) -> Vec<Option<[f64; 2]>> {
    let spread =
        |i: usize| whitener.prior().map(|prior| [prior.mean[i], prior.covariance[(i, i)].max(0.0).sqrt()]);
    (0..whitener.interneurons()).map(spread).collect()
}

/// Some of the numbers below this, about a dozen of them.
fn whole_ticks(count: usize) -> Vec<(f64, String)> {
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
    let step = steps.into_iter().find(|step| count <= 14 * step).unwrap_or(count);
    (0..count).step_by(step).map(|i| (i as f64, i.to_string())).collect()
}

/// What runs along the horizontal axis.
struct Time {
    unit: f64,
    last: f64,
    label: &'static str,
}

impl Time {
    fn new(points: &[Point], sample_rate: Option<f64>) -> Self {
        let (unit, label) = sample_rate.map_or((1.0, "samples"), |rate| (1.0 / rate, "time (s)"));
        Self { unit, last: points.last().map_or(1, |point| point.row.max(1)) as f64 * unit, label }
    }

    fn axis(&self) -> Axis {
        Axis::linear([0.0, self.last], self.label)
    }

    fn of(&self, point: &Point) -> f64 {
        point.row as f64 * self.unit
    }
}

/// The gains that vary most.
fn gains_over_time(canvas: &mut Canvas, panel: Frame, points: &[Point], time: &Time) {
    let interneurons = points.first().map_or(0, |point| point.gains.len());
    let trace = |i: usize| points.iter().map(move |point| point.gains[i]);
    let varies = |i: usize| range(trace(i)).map_or(0.0, |[from, to]| to - from);
    let mut shown: Vec<usize> = (0..interneurons).collect();
    shown.sort_by(|&i, &j| varies(j).total_cmp(&varies(i)));
    shown.truncate(MOST_GAINS);
    let bounds = padded(shown.iter().flat_map(|&i| trace(i)));
    let plot = Plot::within(panel, time.axis(), Axis::linear(bounds, "gain"));
    plot.draw(canvas);
    if shown.len() < interneurons {
        heading(canvas, panel, &format!("the {MOST_GAINS} gains of {interneurons} that move most"));
    }
    for (place, &i) in shown.iter().enumerate() {
        let colour = canvas.style.colour(COLOURS[place % COLOURS.len()]);
        let curve: Vec<_> = points.iter().map(|point| (time.of(point), Some(point.gains[i]))).collect();
        canvas.part("series", &format!("gain {i}"), |canvas| {
            plot.curve(canvas, &curve, &Paint::stroke(colour, 1.2).opacity(0.9));
        });
    }
}

const COLOURS: [Role; 6] =
    [Role::Learned, Role::Initial, Role::Unit, Role::Context, Role::Further, Role::Other];

/// The error while the whitener adapts, and what it would be if it did not.
fn error_over_time(canvas: &mut Canvas, panel: Frame, adaptation: &Adaptation, time: &Time) {
    let points = &adaptation.points;
    let known = points.iter().flat_map(|point| [point.error, point.frozen_error]).flatten();
    let plot = Plot::within(
        panel,
        time.axis(),
        Axis::log_around(known.chain([adaptation.noise_floor]), "whitening error"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    let curve = |error: fn(&Point) -> Option<f64>| -> Vec<(f64, Option<f64>)> {
        points.iter().map(|point| (time.of(point), error(point))).collect()
    };
    let sets = [
        ("held fixed", Role::Initial, curve(|point| point.frozen_error)),
        ("adapting", Role::Learned, curve(|point| point.error)),
    ];
    for (name, role, curve) in sets {
        let paint = Paint::line(canvas.style, role);
        canvas.part("series", name, |canvas| plot.curve(canvas, &curve, &paint));
        entries.push(Entry::line(paint, name));
    }
    let floor = Paint::line(canvas.style, Role::Truth);
    canvas.part("series", "level of white responses", |canvas| {
        plot.level(canvas, adaptation.noise_floor, &floor);
    });
    entries.push(Entry::line(floor, "level of white responses"));
    legend_above(canvas, plot.frame, entries);
}

/// The range of some values with room around it.
fn padded(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let [from, to] = range(values).unwrap_or([0.0, 1.0]);
    let room = 0.06 * (to - from).max(1e-3);
    [from - room, to + room]
}

/// The synapses of all groups, with zeros between channels and interneurons of different ones.
fn assembled_synapses(model: &Model) -> Matrix {
    let interneurons = model.whitener.whiteners().map(Whitener::interneurons).sum();
    let mut all = Matrix::zeros(model.whitener.channels(), interneurons);
    let mut first = 0;
    for (channels, whitener) in model.whitener.groups() {
        let own = whitener.synapses();
        for k in 0..own.columns() {
            channels.iter().enumerate().for_each(|(i, &channel)| all[(channel, first + k)] = own[(i, k)]);
        }
        first += own.columns();
    }
    all
}

/// σ²M², group by group: what would be white after M⁻¹/σ.
fn expected_covariance(model: &Model, circuits: &[Circuit]) -> Matrix {
    let mut all = Matrix::zeros(model.whitener.channels(), model.whitener.channels());
    for ((channels, whitener), circuit) in model.whitener.groups().zip(circuits) {
        let m = circuit.inverse_whitening_matrix();
        let (square, variance) = (product(&m, &m), whitener.scale().powi(2));
        for (j, &column) in channels.iter().enumerate() {
            for (i, &row) in channels.iter().enumerate() {
                all[(row, column)] = variance * square[(i, j)];
            }
        }
    }
    all
}

fn product(left: &Matrix, right: &Matrix) -> Matrix {
    let mut product = Matrix::zeros(left.rows(), right.columns());
    for j in 0..right.columns() {
        for k in 0..left.columns() {
            let factor = right[(k, j)];
            let (column, out) = (left.column(k), product.column_mut(j));
            out.iter_mut().zip(column).for_each(|(out, x)| *out += factor * x);
        }
    }
    product
}

/// The name of a file to draw to.
///
/// # Errors
/// When it is neither an SVG nor a PNG.
pub fn picture_path(given: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(given);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("png" | "svg") => Ok(path),
        _ => Err("expected the name of a .png or .svg file".into()),
    }
}

/// Writes a picture as what its name says.
///
/// # Errors
/// When it cannot be written.
pub fn write_picture(path: &Path, svg: &str) -> Result<()> {
    if path.extension().is_some_and(|ending| ending == "svg") {
        return write_atomically(path, svg.as_bytes());
    }
    write_atomically(path, &Renderer::new().png(svg)?)
}
