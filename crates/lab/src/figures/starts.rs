//! Draws the starts of Fig. 4 one by one: a dot for each in each of its distributions, so that one can be followed.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, range};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::frequency::by_frequency;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const HEIGHT: f64 = 176.0;
/// The variant that Fig. 4 shows.
const VARIANT: &str = "authors";

#[derive(Deserialize)]
struct Series {
    patch: [usize; 2],
    test_adapted: Vec<Option<f64>>,
    train_adapted: Vec<Option<f64>>,
    test_fixed_gains: Vec<Option<f64>>,
    test_initial_synapses: Vec<Option<f64>>,
    basis_error_learned: Vec<Option<f64>>,
    #[serde(default)]
    starts: Vec<Kept>,
}

#[derive(Deserialize)]
struct Kept {
    start: usize,
    learned_synapses: Vec<Vec<f64>>,
}

/// The starts whose synapses were kept.
pub struct Starts {
    series: Series,
}

/// A start: its number and numbers, and the columns of W_T from low to high frequency.
pub struct Start {
    pub number: usize,
    /// Its measures: a name and a value each.
    pub errors: Vec<(&'static str, f64)>,
    pub columns: Vec<Vec<f64>>,
}

impl Starts {
    /// The starts of a run; `None` where none was kept.
    pub fn read(findings: &Findings) -> Result<Option<Self>> {
        if !findings.variants(Figure::Natural).contains(&VARIANT) {
            return Ok(None);
        }
        let series: Series = findings.series(Figure::Natural, VARIANT)?;
        Ok((!series.starts.is_empty()).then_some(Self { series }))
    }

    /// Rows and columns of a patch.
    pub fn patch(&self) -> [usize; 2] {
        self.series.patch
    }

    /// Each of them.
    pub fn each(&self) -> impl Iterator<Item = Start> {
        let start = |kept: &Kept| {
            let value =
                |values: &[Option<f64>]| values.get(kept.start).copied().flatten().unwrap_or(f64::NAN);
            let errors = self.situations().map(|(name, _, values)| (name, value(values)));
            let distance = ("distance of W_T from Q_∗", value(&self.series.basis_error_learned));
            Start {
                number: kept.start,
                errors: errors.into_iter().chain([distance]).collect(),
                columns: by_frequency(&kept.learned_synapses, self.series.patch),
            }
        };
        self.series.starts.iter().map(start)
    }

    /// The situations of Fig. 4 C, in its colours.
    fn situations(&self) -> [(&'static str, Role, &[Option<f64>]); 4] {
        [
            ("test", Role::Learned, &self.series.test_adapted),
            ("training", Role::Seen, &self.series.train_adapted),
            ("gains fixed", Role::Unit, &self.series.test_fixed_gains),
            ("W_0", Role::Random, &self.series.test_initial_synapses),
        ]
    }

    /// A strip of dots for each situation, and one for the distance from Q∗.
    pub fn draw(&self) -> String {
        let mut canvas = Canvas::new(WIDTH, HEIGHT, Style::Light);
        let rows = self.situations();
        let ticks = (0..).zip(&rows).map(|(i, (name, _, _))| (-f64::from(i), name.replace('W', "*W*")));
        let values = rows.iter().flat_map(|(_, _, values)| values.iter().flatten().copied());
        let left = Plot {
            frame: Frame::new(84.0, 10.0, 386.0, HEIGHT - 48.0),
            x: Axis::log_around(values, "whitening error"),
            y: Axis::linear([-3.5, 0.5], "").with_ticks(ticks.collect()),
        };
        left.draw(&mut canvas);
        for (i, (_, role, values)) in (0..).zip(rows) {
            self.dots(&mut canvas, &left, (-f64::from(i), role), values);
        }
        let distances = &self.series.basis_error_learned;
        let right = Plot {
            frame: Frame::new(530.0, 10.0, 176.0, HEIGHT - 48.0),
            x: Axis::linear(padded(distances), "‖*W*_T − *Q*_∗‖_F / N"),
            y: Axis::linear([-1.0, 1.0], "").with_ticks(vec![(0.0, "*W*_T".to_owned())]),
        };
        right.draw(&mut canvas);
        self.dots(&mut canvas, &right, (0.0, Role::Basis), distances);
        let shows = format!("The errors of {} starts, a dot for each", self.series.starts.len());
        canvas.svg("starts", &shows)
    }

    fn dots(&self, canvas: &mut Canvas, plot: &Plot, (y, role): (f64, Role), values: &[Option<f64>]) {
        let paint = Paint::fill(canvas.style.colour(role)).opacity(0.6);
        let count = self.series.starts.len() as f64;
        for (i, kept) in self.series.starts.iter().enumerate() {
            // One above the other, so that starts with one value do not hide each other.
            let aside = 0.6 * ((i as f64 + 0.5) / count - 0.5);
            if let Some(&Some(value)) = values.get(kept.start) {
                canvas.part("start", &kept.start.to_string(), |canvas| {
                    plot.dot(canvas, (value, y - aside), 3.4, &paint);
                });
            }
        }
    }
}

/// The range of what is known, with room around it.
fn padded(values: &[Option<f64>]) -> [f64; 2] {
    let [from, to] = range(values.iter().flatten().copied()).unwrap_or([0.0, 1.0]);
    let room = (0.1 * (to - from)).max(1e-3);
    [from - room, to + room]
}
