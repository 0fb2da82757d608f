//! Draws Fig. 3: two neurons and two interneurons in synthetic contexts.

use anyhow::Result;

use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::ellipse::{Plane, principal_axes};
use super::known;
use super::marks::densities;
use super::pair::{PairSeries, Shown, directions, five_contexts, learning_curves, nothing};
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 440.0];

/// Fig. 3 A–E.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let series = |name| -> Result<Option<PairSeries>> {
        let variant = findings.variant_or_first(Figure::Synthetic, name);
        variant.map(|variant| findings.series(Figure::Synthetic, variant)).transpose()
    };
    let Some(authors) = series("authors")? else { return Ok(canvas) };
    let [top, below] = [0, 1].map(|row| Frame::new(0.0, 220.0 * f64::from(row), SIZE[0], 220.0));
    let shown =
        |canvas: &mut Canvas, panel: Frame, draw: &dyn Fn(&mut Canvas, Frame, &Shown)| match &authors.shown {
            Some(shown) => draw(canvas, panel, shown),
            None => nothing(canvas, panel),
        };
    canvas.panel("A", Frame { width: 220.0, ..top }, |canvas, frame| shown(canvas, frame, &contexts));
    let curve = [("authors", Role::Learned, &authors)];
    canvas.panel("B", top.inset([230.0, 0.0, 0.0, 0.0]), |canvas, frame| {
        learning_curves(canvas, frame, &curve);
    });
    canvas.panel("C", Frame { width: 320.0, ..below }, |canvas, frame| {
        shown(canvas, frame, &|canvas, frame, shown| five_contexts(canvas, frame, &shown.five_contexts));
    });
    let d = Frame { x: 326.0, width: 160.0, ..below };
    canvas.panel("D", d, |canvas, frame| shown(canvas, frame, &directions));
    let alignment = series("authors-alignment")?;
    let text = if findings.variants(Figure::Synthetic).contains(&"text") { series("text")? } else { None };
    canvas.panel("E", below.inset([496.0, 0.0, 0.0, 0.0]), |canvas, frame| {
        distances(canvas, frame, alignment.as_ref().unwrap_or(&authors), text.as_ref());
    });
    Ok(canvas)
}

/// A: the ellipses of four contexts, their eigenvectors, the axes of V and the unit circle.
fn contexts(canvas: &mut Canvas, panel: Frame, shown: &Shown) {
    let four: Vec<_> = shown.contexts.iter().take(4).collect();
    let reach = four.iter().map(|covariance| principal_axes(covariance).0[0]).fold(1.0, f64::max);
    let inside = panel.inset([18.0, 12.0, 6.0, 8.0]);
    for (i, covariance) in four.into_iter().enumerate() {
        let plane = Plane::new(inside.cell([2, 2], [i % 2, i / 2], 6.0), 1.05 * reach);
        let style = canvas.style;
        canvas.part("series", &format!("context {i}"), |canvas| {
            let truth = Paint::stroke(style.colour(Role::Truth), 0.9).dashed(style.dash(Role::Truth));
            shown.axes.iter().for_each(|&axis| plane.axis(canvas, axis, 1.05 * reach, &truth));
            let orange = style.colour(Role::Context);
            plane.ellipse(canvas, covariance, &Paint::fill(orange).opacity(0.15));
            plane.ellipse(canvas, covariance, &Paint::stroke(orange, style.line()));
            plane.eigenvectors(canvas, covariance, &Paint::stroke(orange, 1.2));
            plane.circle(canvas, 1.0, &Paint::stroke(style.colour(Role::Unit), style.line()));
        });
    }
}

/// E: the distances from V over all starts, before and after.
fn distances(canvas: &mut Canvas, panel: Frame, series: &PairSeries, text: Option<&PairSeries>) {
    let mut sets = vec![
        ("*W*_0", Role::Initial, known(&series.distance_initial)),
        ("*W*_T", Role::Learned, known(&series.distance_final)),
    ];
    sets.extend(text.map(|text| ("*W*_T, text", Role::Other, known(&text.distance_final))));
    densities(canvas, panel, &sets, ("‖*Ŵ* − *V*‖_F", 1.5));
}
