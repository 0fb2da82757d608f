//! Lays out a plot: a frame, a linear or logarithmic axis either way, ticks that fit and labels.

use super::canvas::{Canvas, Frame, Paint, Point, Text};
use super::lettering::{number, power_of_ten};

/// The size of numbers at ticks.
pub const SMALL: f64 = 10.0;
/// The size of labels.
pub const MEDIUM: f64 = 11.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// One axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
    label: String,
    ticks: Option<Vec<(f64, String)>>,
}

/// A mark on an axis; small ones have no label.
struct Tick {
    at: f64,
    label: Option<String>,
}

impl Axis {
    /// From one number to another.
    pub fn linear([from, to]: [f64; 2], label: &str) -> Self {
        Self { scale: Scale::Linear, from, to, label: label.to_owned(), ticks: None }
    }

    /// The same in powers of ten.
    pub fn log([from, to]: [f64; 2], label: &str) -> Self {
        Self { scale: Scale::Log, from, to, label: label.to_owned(), ticks: None }
    }

    /// A logarithmic axis that has room for all of these that are above 0.
    pub fn log_around(values: impl IntoIterator<Item = f64>, label: &str) -> Self {
        let logs: Vec<f64> = values.into_iter().filter(|&x| x > 0.0).map(f64::log10).collect();
        let [from, to] = range(logs).unwrap_or([-1.0, 1.0]);
        let room = (0.06 * (to - from)).max(0.05);
        Self::log([10_f64.powf(from - room), 10_f64.powf(to + room)], label)
    }

    /// A linear axis from 0 that has room for all of these.
    pub fn from_zero(values: impl IntoIterator<Item = f64>, label: &str) -> Self {
        let to = range(values).map_or(1.0, |[_, to]| to.max(f64::MIN_POSITIVE));
        Self::linear([0.0, 1.06 * to], label)
    }

    /// With room for the flanks of distributions.
    pub fn widened(self) -> Self {
        let factor = (self.to / self.from).powf(0.08);
        Self { from: self.from / factor, to: self.to * factor, ..self }
    }

    /// With these ticks alone; a label may have two lines.
    pub fn with_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Self { ticks: Some(ticks), ..self }
    }

    /// Without ticks.
    pub fn bare(self) -> Self {
        self.with_ticks(Vec::new())
    }

    pub fn bounds(&self) -> [f64; 2] {
        [self.from, self.to]
    }

    pub fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// How far along the axis a value lies, from 0 to 1; what lies outside is put on the edge.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    fn holds(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.to - self.from).abs();
        (self.from - slack..=self.to + slack).contains(&value)
    }

    fn ticks(&self, room: f64) -> Vec<Tick> {
        let named = |(at, label): &(f64, String)| Tick { at: *at, label: Some(label.clone()) };
        let mut ticks = match (&self.ticks, self.scale) {
            (Some(ticks), _) => ticks.iter().map(named).collect(),
            (None, Scale::Linear) => self.linear_ticks(room),
            (None, Scale::Log) => self.log_ticks(room),
        };
        ticks.retain(|tick| self.holds(tick.at));
        ticks
    }

    /// Multiples of 1, 2 or 5 times a power of ten, at least 34 pixels apart.
    #[allow(clippy::cast_possible_truncation)]
    fn linear_ticks(&self, room: f64) -> Vec<Tick> {
        let least = (self.to - self.from) * (34.0 / room).min(1.0);
        let decade = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|&step| step >= least);
        let step = step.unwrap_or(least);
        let ends = [(self.from / step).ceil() as i64, (self.to / step).floor() as i64];
        let tick = |i: i64| Tick { at: i as f64 * step, label: Some(number(i as f64 * step)) };
        (ends[0]..=ends[1]).map(tick).collect()
    }

    /// Powers of ten, and 2 and 5 times those where there are fewer than two of them.
    #[allow(clippy::cast_possible_truncation)]
    fn log_ticks(&self, room: f64) -> Vec<Tick> {
        let ends = [self.from.log10().floor() as i32, self.to.log10().ceil() as i32];
        let decades = (self.to / self.from).log10();
        let every = ((26.0 * decades / room).ceil() as i32).max(1);
        let whole = (ends[0]..=ends[1]).filter(|&e| self.holds(10_f64.powi(e))).count();
        let plain = ends[0] >= -2 && ends[1] <= 2;
        let mut ticks = Vec::new();
        for exponent in ends[0]..=ends[1] {
            for multiple in 1..10_i32 {
                let at = f64::from(multiple) * 10_f64.powi(exponent);
                let named = match multiple {
                    1 => exponent % every == 0,
                    2 | 5 => whole < 2 || (whole == 2 && multiple == 2 && decades < 1.8),
                    _ => false,
                };
                let name = || {
                    if plain || multiple > 1 { number(at) } else { power_of_ten(exponent) }
                };
                ticks.push(Tick { at, label: named.then(name) });
            }
        }
        ticks
    }
}

/// The smallest and the largest finite value.
pub fn range(values: impl IntoIterator<Item = f64>) -> Option<[f64; 2]> {
    let finite = values.into_iter().filter(|x| x.is_finite());
    finite.fold(None, |range, x| Some(range.map_or([x, x], |[from, to]: [f64; 2]| [from.min(x), to.max(x)])))
}

/// A frame with two axes.
#[derive(Clone, Debug)]
pub struct Plot {
    pub frame: Frame,
    pub x: Axis,
    pub y: Axis,
}

/// What a panel needs around its plot: left, top, right, bottom.
pub const MARGINS: [f64; 4] = [52.0, 20.0, 10.0, 36.0];

impl Plot {
    /// A plot within a panel, with room for ticks and labels.
    pub fn within(panel: Frame, x: Axis, y: Axis) -> Self {
        let mut margins = MARGINS;
        if y.ticks.as_ref().is_some_and(Vec::is_empty) {
            margins[0] = 22.0;
        }
        Self { frame: panel.inset(margins), x, y }
    }

    /// Where a point of the data lies on the canvas.
    pub fn at(&self, x: f64, y: f64) -> Point {
        let Frame { x: left, width, height, .. } = self.frame;
        (left + width * self.x.share(x), self.frame.bottom() - height * self.y.share(y))
    }

    /// Draws grid, axes, ticks and labels; what the plot shows goes on top.
    pub fn draw(&self, canvas: &mut Canvas) {
        self.draw_across(canvas);
        self.draw_up(canvas);
        let ink = Paint::stroke(canvas.style.ink(), 0.8);
        let Frame { x, y, .. } = self.frame;
        let (right, bottom) = (self.frame.right(), self.frame.bottom());
        canvas.line(&[(x, y), (x, bottom), (right, bottom)], &ink);
    }

    fn draw_across(&self, canvas: &mut Canvas) {
        let (bottom, ink) = (self.frame.bottom(), Paint::stroke(canvas.style.ink(), 0.8));
        for tick in self.x.ticks(self.frame.width) {
            let (x, _) = self.at(tick.at, self.y.from);
            let length = if tick.label.is_some() { 4.0 } else { 2.0 };
            if let (Some(colour), Some(_)) = (canvas.style.grid(), &tick.label) {
                canvas.line(&[(x, self.frame.y), (x, bottom)], &Paint::stroke(colour, 0.8));
            }
            canvas.line(&[(x, bottom), (x, bottom + length)], &ink);
            for (i, line) in tick.label.iter().flat_map(|label| label.lines()).enumerate() {
                canvas.text((x, bottom + 15.0 + 12.0 * i as f64), &Text::new(line, SMALL).middle());
            }
        }
        let below = if self.x.ticks.as_ref().is_some_and(Vec::is_empty) { 16.0 } else { 30.0 };
        let place = (self.frame.centre().0, bottom + below);
        canvas.text(place, &Text::new(self.x.label.clone(), MEDIUM).middle());
    }

    fn draw_up(&self, canvas: &mut Canvas) {
        let (left, ink) = (self.frame.x, Paint::stroke(canvas.style.ink(), 0.8));
        for tick in self.y.ticks(self.frame.height) {
            let (_, y) = self.at(self.x.from, tick.at);
            let length = if tick.label.is_some() { 4.0 } else { 2.0 };
            if let (Some(colour), Some(_)) = (canvas.style.grid(), &tick.label) {
                canvas.line(&[(left, y), (self.frame.right(), y)], &Paint::stroke(colour, 0.8));
            }
            canvas.line(&[(left - length, y), (left, y)], &ink);
            if let Some(label) = tick.label {
                canvas.text((left - 6.0, y + 3.6), &Text::new(label, SMALL).end());
            }
        }
        let beside = if self.y.ticks.as_ref().is_some_and(Vec::is_empty) { 8.0 } else { 39.0 };
        let place = (left - beside, self.frame.centre().1);
        canvas.text(place, &Text::new(self.y.label.clone(), MEDIUM).middle().turned());
    }
}

impl Canvas {
    /// Draws a panel, with its letter at the top left corner.
    pub fn panel(&mut self, letter: &str, frame: Frame, draw: impl FnOnce(&mut Self, Frame)) {
        self.part("panel", letter, |canvas| {
            draw(canvas, frame);
            canvas.text((frame.x + 2.0, frame.y + 13.0), &Text::new(format!("*{letter}*"), 14.0));
        });
    }
}

/// A heading over a panel.
pub fn heading(canvas: &mut Canvas, panel: Frame, text: &str) {
    canvas.text((panel.centre().0, panel.y + 13.0), &Text::new(text, MEDIUM).middle());
}
