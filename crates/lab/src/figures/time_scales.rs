//! Draws the time scales: errors over rates and lengths of contexts, which model is best where, and each at its best.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, SMALL, heading};
use super::canvas::{Canvas, Frame, Paint, Text, WIDTH};
use super::lettering::{number, power_of_ten};
use super::maps::{Cell, Map};
use super::marks::Entry;
use super::style::{Role, Style};
use super::sweep::{Mark, Sweep};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 762.0];

/// By so much a colour is at its strongest: this many times better or worse than the best filter that never changes.
const STRONGEST: f64 = 8.0;

/// Two models whose medians differ by less than this share are named both.
const EVEN: f64 = 0.05;

/// A circuit with its rates, and its error over starts.
#[derive(Clone, Deserialize)]
struct Tried {
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
    error: Statistic,
}

/// What a variant has in `panels.json`: what was tried at each length, and the best of it.
#[derive(Deserialize)]
struct Series {
    seeds: usize,
    length: Vec<f64>,
    both: Vec<Vec<Tried>>,
    printed: Option<Vec<Vec<Tried>>>,
    gains: Vec<Vec<Tried>>,
    synapses: Vec<Vec<Tried>>,
    mean_filter: Statistic,
    best_filter: Statistic,
    both_best: Sweep,
    printed_best: Option<Sweep>,
    gains_best: Sweep,
    synapses_best: Sweep,
}

/// The models by what they are called in panel D and in the slices, with their roles.
const MODELS: [(&str, &str, Role); 4] = [
    ("both", "both, unit columns", Role::Learned),
    ("printed", "both, as printed", Role::Further),
    ("gains", "gains alone", Role::Initial),
    ("synapses", "synapses alone", Role::Unit),
];

/// Filters that never change: their dashes and what they are.
const FILTERS: [(&str, &str); 2] = [("4 3", "fixed: whitens the mean"), ("1 2", "best fixed filter")];

/// The rates of synapses that were tried, in ascending order.
fn synapse_rates(tried: &[Vec<Tried>]) -> Vec<f64> {
    let mut rates: Vec<f64> = tried.iter().flatten().filter_map(|tried| tried.synapse_rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// Names for those rates that are powers of ten.
fn names(rates: &[f64]) -> Vec<Option<String>> {
    let name = |rate: &f64| {
        let exponent = rate.log10().round();
        let whole = (rate.log10() - exponent).abs() < 1e-6;
        whole.then(|| power_of_ten(exponent as i32))
    };
    rates.iter().map(name).collect()
}

/// The least median among circuits that have what is asked for.
fn least(tried: &[Tried], wanted: impl Fn(&Tried) -> bool) -> Option<f64> {
    tried.iter().filter(|tried| wanted(tried)).filter_map(|tried| tried.error.median).min_by(f64::total_cmp)
}

impl Series {
    fn lengths(&self) -> Vec<Option<String>> {
        self.length.iter().map(|&length| Some(number(length))).collect()
    }

    /// The gain rate of the maps: that of Algorithm 1 as printed, or else the largest.
    fn mapped(&self) -> Option<f64> {
        let printed = self.printed.iter().flatten().flatten();
        printed.chain(self.both.iter().flatten()).find_map(|tried| tried.gain_rate)
    }

    /// A cell with a median, by how it compares with the best filter that never changes.
    fn cell(&self, style: Style, over: &Statistic) -> Cell {
        let lost = self.seeds - over.n;
        let Some((median, best)) = over.median.zip(self.best_filter.median) else {
            let below = Some(format!("{lost} of {}", self.seeds));
            return Cell { colour: [0xff; 3], hatched: true, words: ("lost".to_owned(), below) };
        };
        let below = (lost > 0).then(|| format!("{lost} lost"));
        let colour = shade(style, (median / best).ln() / STRONGEST.ln());
        Cell { colour, hatched: false, words: (format!("{median:.2}"), below) }
    }

    /// A cell with the name of the model with the smallest error, if it is smaller than that of every fixed filter.
    fn winner(&self, style: Style, medians: [Option<f64>; 3]) -> Cell {
        let models = MODELS.iter().filter(|(name, ..)| *name != "printed");
        let known = medians.iter().zip(models);
        let known = known.filter_map(|(median, &(name, _, role))| Some(((*median)?, (name, role))));
        let mut known: Vec<(f64, (&str, Role))> = known.collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let fixed = self.best_filter.median.unwrap_or(f64::INFINITY);
        let Some(&(first, (name, role))) = known.first().filter(|(median, _)| *median < fixed) else {
            return Cell { colour: [0xff; 3], hatched: true, words: ("nobody".to_owned(), None) };
        };
        let second = known.get(1).filter(|(median, _)| *median < (1.0 + EVEN) * first);
        let below = second.map(|(_, (name, _))| format!("or {name}"));
        Cell { colour: pale(style, role), hatched: false, words: (name.to_owned(), below) }
    }

    /// Draws a map of a model with one gain rate; `frozen` has its lowest row, without any learning of synapses.
    fn map(&self, canvas: &mut Canvas, panel: Frame, tried: &[Vec<Tried>], frozen: Option<&[Vec<Tried>]>) {
        let rates = synapse_rates(tried);
        let mut rows = names(&rates);
        if frozen.is_some() {
            rows.insert(0, Some("0".to_owned()));
        }
        let map = Map::within(panel, (&self.lengths(), "stimuli in a context"), (&rows, "η_w"));
        map.draw(canvas);
        let mapped = self.mapped();
        let fits = |tried: &&Tried| tried.gain_rate.is_none() || tried.gain_rate == mapped;
        for (column, tried) in tried.iter().enumerate() {
            let low = frozen.map(|frozen| &frozen[column]);
            let low = low.and_then(|tried| tried.iter().find(fits));
            let first = usize::from(frozen.is_some());
            for tried in tried.iter().filter(fits).chain(low) {
                let rate = tried.synapse_rate.and_then(|rate| rates.iter().position(|r| *r == rate));
                let row = rate.map_or(0, |rate| first + rate);
                map.cell(canvas, [column, row], &self.cell(canvas.style, &tried.error));
            }
        }
    }
}

/// The colour of a cell that is better (down to −1) or worse (up to 1) than the best filter that never changes; in print
/// only what is better is grey.
#[allow(clippy::cast_sign_loss)] // Between two bytes.
fn shade(style: Style, share: f64) -> [u8; 3] {
    match style {
        Style::Light => style.diverging_bytes(share),
        Style::Print => [(255.0 + 175.0 * share.clamp(-1.0, 0.0)).round() as u8; 3],
    }
}

/// The colour of a role, mixed with white; greys in print.
fn pale(style: Style, role: Role) -> [u8; 3] {
    match (style, role) {
        (Style::Light, Role::Learned) => [0xf6, 0xcf, 0xb3],
        (Style::Light, Role::Initial) => [0xb3, 0xd5, 0xe8],
        (Style::Light, _) => [0xb3, 0xe2, 0xd5],
        (Style::Print, Role::Learned) => [0xc8; 3],
        (Style::Print, Role::Initial) => [0xe0; 3],
        (Style::Print, _) => [0xf4; 3],
    }
}

/// A to C, maps of errors; D, who wins where; E, F, everyone at best.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let Some(two) = findings.variant_or_first(Figure::TimeScales, "two") else { return Ok(canvas) };
    let two: Series = findings.series(Figure::TimeScales, two)?;
    let six: Option<Series> = if findings.variants(Figure::TimeScales).contains(&"six") {
        Some(findings.series(Figure::TimeScales, "six")?)
    } else {
        None
    };
    let frame = |column: f64, y: f64, height: f64| Frame::new(0.5 * WIDTH * column, y, 0.5 * WIDTH, height);
    let rate = two.mapped().map_or(String::new(), |rate| format!(" (η_g = {})", number(rate)));
    canvas.panel("A", frame(0.0, 0.0, 196.0), |canvas, panel| {
        heading(canvas, panel, &format!("gains and synapses, unit columns{rate}"));
        two.map(canvas, panel, &two.both, Some(&two.gains));
    });
    canvas.panel("B", frame(1.0, 0.0, 196.0), |canvas, panel| {
        heading(canvas, panel, &format!("gains and synapses as printed{rate}"));
        two.map(canvas, panel, two.printed.as_deref().unwrap_or_default(), None);
    });
    canvas.panel("C", frame(0.0, 196.0, 236.0), |canvas, panel| {
        heading(canvas, panel, "synapses alone");
        two.map(canvas, panel, &two.synapses, None);
    });
    canvas.panel("D", frame(1.0, 196.0, 236.0), |canvas, panel| winners(canvas, panel, &two));
    key(&mut canvas, Frame::new(52.0, 440.0, 640.0, 82.0));
    canvas.panel("E", frame(0.0, 524.0, 238.0), |canvas, panel| {
        heading(canvas, panel, "~N~ = ~K~ = 2, best rates");
        slices(canvas, panel, &two);
    });
    canvas.panel("F", frame(1.0, 524.0, 238.0), |canvas, panel| match &six {
        Some(six) => {
            heading(canvas, panel, "~N~ = ~K~ = 6, best rates");
            slices(canvas, panel, six);
        }
        None => heading(canvas, panel, "not rerun"),
    });
    Ok(canvas)
}

/// D: who has the least error at each rate of the synapses, and at the best rate of each.
fn winners(canvas: &mut Canvas, panel: Frame, series: &Series) {
    heading(canvas, panel, "least error");
    let rates = synapse_rates(&series.both);
    let rows: Vec<_> = names(&rates).into_iter().chain([Some("best".to_owned())]).collect();
    let map = Map::within(panel, (&series.lengths(), "stimuli in a context"), (&rows, "η_w"));
    map.draw(canvas);
    for column in 0..series.length.len() {
        let [both, gains, synapses] = [&series.both, &series.gains, &series.synapses].map(|all| &all[column]);
        for (row, &rate) in rates.iter().enumerate() {
            let at_rate = |tried: &Tried| tried.synapse_rate == Some(rate);
            let medians = [least(both, at_rate), least(gains, |_| true), least(synapses, at_rate)];
            map.cell(canvas, [column, row], &series.winner(canvas.style, medians));
        }
        let best = [both, gains, synapses].map(|tried| least(tried, |_| true));
        map.cell(canvas, [column, rates.len()], &series.winner(canvas.style, best));
    }
}

/// What the colours of the maps mean.
fn key(canvas: &mut Canvas, frame: Frame) {
    let words = "A, B, C: median error against that of the best filter that never changes";
    canvas.text((frame.x, frame.y + 4.0), &Text::new(words, SMALL));
    let bar = Frame::new(frame.x, frame.y + 12.0, 230.0, 11.0);
    for i in 0..11_u8 {
        let [red, green, blue] = shade(canvas.style, 0.2 * f64::from(i) - 1.0);
        let paint = Paint::fill(format!("#{red:02x}{green:02x}{blue:02x}")).edged("#888888", 0.4);
        canvas.rectangle(bar.cell([11, 1], [usize::from(i), 0], 0.0), &paint);
    }
    for (share, words) in [(0.0, "1/8"), (0.5, "the same"), (1.0, "8 times")] {
        let place = (bar.x + share * bar.width, bar.bottom() + 12.0);
        canvas.text(place, &Text::new(words, SMALL).middle());
    }
    let nobody = Cell { colour: [0xff; 3], hatched: true, words: ("nobody".to_owned(), None) };
    nobody.draw(canvas, Frame::new(frame.x + 330.0, frame.y + 10.0, 46.0, 18.0));
    let beside = (frame.x + 382.0, frame.y + 22.5);
    canvas.text(beside, &Text::new("a filter that never changes does better", SMALL));
    let lines = MODELS.map(|(name, words, role)| (name, Paint::line(canvas.style, role), words));
    let filters = FILTERS.map(|(dash, words)| (words, filter_line(canvas.style, dash), words));
    for (i, (_, paint, words)) in lines.into_iter().chain(filters).enumerate() {
        let place = (frame.x + 200.0 * (i / 2) as f64, frame.y + 56.0 + 15.0 * (i % 2) as f64);
        Entry::line(paint, words).draw(canvas, place);
    }
}

/// E, F: each model at the rates that suit it best.
fn slices(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let best = [
        Some(&series.both_best),
        series.printed_best.as_ref(),
        Some(&series.gains_best),
        Some(&series.synapses_best),
    ];
    let ends = [series.length.first(), series.length.last()].map(|end| end.copied().unwrap_or(1.0));
    let filters = [series.mean_filter.median, series.best_filter.median].into_iter().flatten();
    let errors = best.iter().flatten().flat_map(|sweep| sweep.values()).chain(filters);
    let ticks = series.length.iter().map(|&length| (length, number(length))).collect();
    let plot = Plot::within(
        panel,
        Axis::log([0.7 * ends[0], 1.4 * ends[1]], "stimuli in a context").with_ticks(ticks),
        Axis::log_around(errors, "whitening error"),
    );
    plot.draw(canvas);
    for (sweep, (_, words, role)) in best.into_iter().zip(MODELS) {
        let Some(sweep) = sweep else { continue };
        canvas.part("series", words, |canvas| {
            sweep.draw(canvas, &plot, &series.length, (role, Mark::Dot));
        });
    }
    for (filter, (dash, words)) in [series.mean_filter, series.best_filter].into_iter().zip(FILTERS) {
        let paint = filter_line(canvas.style, dash);
        if let Some(median) = filter.median {
            canvas.part("series", words, |canvas| plot.level(canvas, median, &paint));
        }
    }
}

fn filter_line(style: Style, dash: &'static str) -> Paint {
    Paint::stroke(style.ink(), 1.0).dashed(Some(dash))
}
