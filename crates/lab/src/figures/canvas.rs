//! Writes SVG: the only file that knows its syntax.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::lettering::runs;
use super::obstacles::Obstacle;
use super::style::{Role, Style};

/// The width of every figure in units of a 96th of an inch: 7.5 inches, so that lettering has one size everywhere.
pub const WIDTH: f64 = 720.0;

/// A place on a canvas, from its top left corner.
pub type Point = (f64, f64);

/// A rectangle of a canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub fn centre(&self) -> Point {
        (self.x + 0.5 * self.width, self.y + 0.5 * self.height)
    }

    /// What is left when so much is cut off at the left, the top, the right and the bottom.
    pub fn inset(&self, [left, top, right, bottom]: [f64; 4]) -> Self {
        Self::new(self.x + left, self.y + top, self.width - left - right, self.height - top - bottom)
    }

    /// The cell of a grid of so many columns and rows, with gaps between cells.
    pub fn cell(&self, [columns, rows]: [usize; 2], [column, row]: [usize; 2], gap: f64) -> Self {
        let size = |whole: f64, count: usize| (whole - gap * (count as f64 - 1.0)) / count as f64;
        let (width, height) = (size(self.width, columns), size(self.height, rows));
        let (x, y) = (self.x + column as f64 * (width + gap), self.y + row as f64 * (height + gap));
        Self::new(x, y, width, height)
    }

    /// The upper part, of this share of the height, and the rest.
    pub fn split(&self, share: f64) -> (Self, Self) {
        let height = share * self.height;
        let rest = Self { y: self.y + height, height: self.height - height, ..*self };
        (Self { height, ..*self }, rest)
    }

    /// The largest square in the middle.
    pub fn square(&self) -> Self {
        let (side, (x, y)) = (self.width.min(self.height), self.centre());
        Self::new(x - 0.5 * side, y - 0.5 * side, side, side)
    }
}

/// How a shape is painted.
#[derive(Clone, Debug)]
pub struct Paint {
    fill: Option<String>,
    stroke: Option<String>,
    width: f64,
    dash: Option<&'static str>,
    opacity: f64,
}

impl Paint {
    pub fn fill(colour: impl Into<String>) -> Self {
        Self { fill: Some(colour.into()), stroke: None, width: 0.0, dash: None, opacity: 1.0 }
    }

    pub fn stroke(colour: impl Into<String>, width: f64) -> Self {
        Self { fill: None, stroke: Some(colour.into()), width, dash: None, opacity: 1.0 }
    }

    /// The line of a role.
    pub fn line(style: Style, role: Role) -> Self {
        Self::stroke(style.colour(role), style.line()).dashed(style.dash(role))
    }

    /// The bar of a role in a histogram, with its edge.
    pub fn bar(style: Style, role: Role) -> Self {
        Self::fill(style.colour(role)).opacity(style.filled(role)).edged(style.colour(role), 0.8)
    }

    pub fn dashed(self, dash: Option<&'static str>) -> Self {
        Self { dash, ..self }
    }

    pub fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }

    pub fn edged(self, colour: &str, width: f64) -> Self {
        Self { stroke: Some(colour.to_owned()), width, ..self }
    }

    /// The colour of its line, or else of its area.
    pub fn colour(&self) -> &str {
        self.stroke.as_deref().or(self.fill.as_deref()).unwrap_or("none")
    }

    fn attributes(&self) -> String {
        let mut text = format!("fill=\"{}\"", self.fill.as_deref().unwrap_or("none"));
        if let Some(stroke) = &self.stroke {
            let _ = write!(text, " stroke=\"{stroke}\" stroke-width=\"{}\"", short(self.width));
        }
        if let Some(dash) = self.dash {
            let _ = write!(text, " stroke-dasharray=\"{dash}\"");
        }
        if self.opacity < 1.0 {
            // An edge is drawn in full, whatever lies within it.
            let name = if self.stroke.is_some() && self.fill.is_some() { "fill-opacity" } else { "opacity" };
            let _ = write!(text, " {name}=\"{}\"", self.opacity);
        }
        text
    }
}

/// Which point of a text is put where it is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text.
#[derive(Clone, Debug)]
pub struct Text {
    markup: String,
    size: f64,
    anchor: Anchor,
    colour: Option<String>,
    turned: bool,
}

impl Text {
    pub fn new(markup: impl Into<String>, size: f64) -> Self {
        Self { markup: markup.into(), size, anchor: Anchor::Start, colour: None, turned: false }
    }

    pub fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    pub fn colour(self, colour: impl Into<String>) -> Self {
        Self { colour: Some(colour.into()), ..self }
    }

    /// Read from bottom to top.
    pub fn turned(self) -> Self {
        Self { turned: true, ..self }
    }
}

/// A picture that is being drawn.
pub struct Canvas {
    pub style: Style,
    width: f64,
    height: f64,
    body: String,
    /// How many series are being drawn, one within the other.
    series: usize,
    /// Where series lie.
    obstacles: Vec<Obstacle>,
}

impl Canvas {
    pub fn new(width: f64, height: f64, style: Style) -> Self {
        Self { style, width, height, body: String::new(), series: 0, obstacles: Vec::new() }
    }

    /// Draws a named part: a panel, a series within it, or its legend.
    pub fn part(&mut self, kind: &str, name: &str, draw: impl FnOnce(&mut Self)) {
        let series = usize::from(kind == "series");
        let _ = writeln!(self.body, "<g data-{kind}=\"{}\">", escape(name));
        self.series += series;
        draw(self);
        self.series -= series;
        self.body.push_str("</g>\n");
    }

    /// How many lines and areas of series lie in a frame.
    pub fn hidden_by(&self, frame: Frame) -> usize {
        self.obstacles.iter().filter(|obstacle| obstacle.touches(frame)).count()
    }

    fn remember(&mut self, obstacle: impl FnOnce() -> Obstacle) {
        if self.series > 0 {
            self.obstacles.push(obstacle());
        }
    }

    pub fn rectangle(&mut self, frame: Frame, paint: &Paint) {
        self.remember(|| Obstacle::frame(frame));
        let Frame { x, y, width, height } = frame;
        let (x, y, width, height) = (short(x), short(y), short(width), short(height));
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {}/>",
            paint.attributes()
        );
    }

    /// A PNG file, stretched over a frame of the same proportions.
    pub fn raster(&mut self, frame: Frame, png: &[u8]) {
        let Frame { x, y, width, height } = frame;
        let (x, y, width, height) = (short(x), short(y), short(width), short(height));
        let _ = writeln!(
            self.body,
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{}\"/>",
            STANDARD.encode(png)
        );
    }

    pub fn circle(&mut self, (x, y): Point, radius: f64, paint: &Paint) {
        self.remember(|| Obstacle::frame(Frame::new(x - radius, y - radius, 2.0 * radius, 2.0 * radius)));
        let (x, y, radius) = (short(x), short(y), short(radius));
        let _ = writeln!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {}/>", paint.attributes());
    }

    /// A line through points; nothing when there is none.
    pub fn line(&mut self, points: &[Point], paint: &Paint) {
        if points.len() > 1 {
            self.remember(|| Obstacle::Line(points.to_vec()));
            self.path(&path(points), paint);
        }
    }

    /// A closed shape.
    pub fn polygon(&mut self, points: &[Point], paint: &Paint) {
        if points.len() > 2 {
            self.remember(|| Obstacle::Area(points.to_vec()));
            self.path(&(path(points) + "Z"), paint);
        }
    }

    /// A path in SVG's own words.
    pub fn path(&mut self, path: &str, paint: &Paint) {
        let _ = writeln!(self.body, "<path d=\"{path}\" {}/>", paint.attributes());
    }

    pub fn text(&mut self, (x, y): Point, text: &Text) {
        let (x, y) = (short(x), short(y));
        let anchor = match text.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = if text.turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        let colour = text.colour.as_deref().unwrap_or(self.style.ink());
        let _ = write!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{turn}>",
            short(text.size)
        );
        self.body.push_str(&spans(&text.markup, text.size));
        self.body.push_str("</text>\n");
    }

    /// The whole picture, with its title and what it shows for those who cannot see it.
    ///
    /// A drawing that is narrower than others stands in the middle of their width.
    pub fn svg(&self, title: &str, shows: &str) -> String {
        let (left, height) = (0.5 * (self.width - WIDTH).min(0.0), short(self.height));
        let (left, width) = (short(left), short(self.width.max(WIDTH)));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\" \
             aria-label=\"{}\">\n<title>{}</title>\n\
             <rect x=\"{left}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escape(shows),
            escape(title),
            self.body
        )
    }
}

fn path(points: &[Point]) -> String {
    let mut path = String::with_capacity(12 * points.len());
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, short(*x), short(*y));
    }
    path
}

/// Marked-up text as SVG spans.
fn spans(markup: &str, size: f64) -> String {
    let mut text = String::new();
    let mut below = 0.0;
    for run in runs(markup) {
        let drop = run.drop(size);
        if drop == below && drop == 0.0 && !run.bold && !run.italic {
            text.push_str(&escape(&run.text));
            continue;
        }
        let _ = write!(text, "<tspan font-size=\"{}\"", short(run.size(size)));
        if drop != below {
            let _ = write!(text, " dy=\"{}\"", short(drop - below));
        }
        if run.bold {
            text.push_str(" font-weight=\"bold\"");
        }
        if run.italic {
            text.push_str(" font-style=\"italic\"");
        }
        let _ = write!(text, ">{}</tspan>", escape(&run.text));
        below = drop;
    }
    text
}

/// A length with two decimals at most, which is finer than any screen.
fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that XML and HTML take for text.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
