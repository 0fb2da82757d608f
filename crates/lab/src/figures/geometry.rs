//! Draws Figs. 1 and 2: the circuit with its responses in three contexts, and the contexts that gains can whiten.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{SMALL, heading};
use super::canvas::{Canvas, Frame, Paint, Point, Text, WIDTH};
use super::circuit::circuit;
use super::cone::{Entries, View, root};
use super::ellipse::{Pair, Plane, principal_axes};
use super::marks::Entry;
use super::pair::nothing;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 585.0];
const FIRST: f64 = 290.0;

#[derive(Deserialize)]
struct Series {
    shown: Option<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    leak: f64,
    contexts: Vec<Pair>,
    initial: Situation,
    learned: Situation,
}

/// What a set of synapses makes of the contexts.
#[derive(Deserialize)]
struct Situation {
    synapses: Pair,
    /// The M nearest to each context's root that gains can reach.
    nearest: Vec<Entries>,
    /// Whether each context lies in F(W), within the tolerance.
    inside: Vec<bool>,
    switches: Vec<Switch>,
}

/// What happens when one context follows another.
#[derive(Deserialize)]
struct Switch {
    to: usize,
    /// M as the gains adapt.
    path: Vec<Entries>,
    /// The covariance of the responses right after the switch.
    before: Pair,
    /// The same once the gains have adapted.
    after: Pair,
}

/// A, Fig. 1; B and C, Fig. 2.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let variant = findings.variant_or_first(Figure::Geometry, "synthetic");
    let Some(variant) = variant else { return Ok(canvas) };
    let series: Series = findings.series(Figure::Geometry, variant)?;
    let top = Frame::new(0.0, 0.0, SIZE[0], FIRST);
    let Some(shown) = series.shown else {
        canvas.panel("A", top, nothing);
        return Ok(canvas);
    };
    canvas.panel("A", top, |canvas, frame| whitening(canvas, frame, &shown));
    let below = Frame::new(0.0, FIRST, SIZE[0], SIZE[1] - FIRST);
    let roots: Vec<Entries> = shown.contexts.iter().map(root).collect();
    let height = roots.iter().map(|[a, _, c]| 0.5 * (a + c)).fold(shown.leak, f64::max);
    let view = View::new(below, 1.12 * height, [&shown.initial.synapses, &shown.learned.synapses]);
    let sides = [("B", "F(*W*_0)", &shown.initial), ("C", "F(*W*_T)", &shown.learned)];
    for (i, (name, title, situation)) in sides.into_iter().enumerate() {
        let frame = below.cell([2, 1], [i, 0], 8.0);
        canvas.panel(name, frame, |canvas, frame| {
            heading(canvas, frame, title);
            let view = view.moved(frame.inset([14.0, 26.0, 14.0, 30.0]));
            cone(canvas, &view, situation, shown.leak);
            contexts(canvas, &view, situation, &roots);
            key(canvas, frame, situation);
        });
    }
    Ok(canvas)
}

/// A: three contexts, the circuit, and its responses right after a switch and once its gains have adapted.
fn whitening(canvas: &mut Canvas, panel: Frame, shown: &Shown) {
    let column = |x: f64, width: f64| Frame { x, width, ..panel };
    let [left, middle, right] = [column(20.0, 130.0), column(470.0, 120.0), column(596.0, 120.0)];
    circuit(canvas, panel.inset([160.0, 16.0, 262.0, 12.0]));
    let switches = &shown.learned.switches;
    let stimuli: Vec<&Pair> = switches.iter().map(|at| &shown.contexts[at.to]).collect();
    let before: Vec<&Pair> = switches.iter().map(|at| &at.before).collect();
    let after: Vec<&Pair> = switches.iter().map(|at| &at.after).collect();
    // One scale for all, so that all unit circles are the same.
    let reach = reach(stimuli.iter().chain(&before).chain(&after).copied());
    let columns = [
        (left, "stimuli *s*", Role::Context, stimuli),
        (middle, "*r* after a switch", Role::Other, before),
        (right, "*r*, gains adapted", Role::Learned, after),
    ];
    for (frame, title, role, covariances) in columns {
        heading(canvas, frame, title);
        canvas.part("series", title, |canvas| {
            for (i, covariance) in covariances.into_iter().enumerate() {
                ellipse(canvas, &Plane::new(row(frame, i), reach), covariance, role);
            }
        });
    }
    for i in 0..switches.len() {
        let name = Text::new(format!("~c~ = {}", i + 1), SMALL);
        canvas.text((4.0, row(left, i).centre().1 + 3.6), &name);
    }
}

/// The room for what belongs to one of three contexts.
fn row(column: Frame, context: usize) -> Frame {
    column.inset([0.0, 24.0, 0.0, 16.0]).cell([1, 3], [0, context], 8.0)
}

/// How far all of these ellipses reach, and the unit circle, with some air.
fn reach<'a>(covariances: impl Iterator<Item = &'a Pair>) -> f64 {
    1.1 * covariances.map(|covariance| principal_axes(covariance).0[0]).fold(1.0, f64::max)
}

/// A covariance as a dashed ellipse beside the unit circle.
fn ellipse(canvas: &mut Canvas, plane: &Plane, covariance: &Pair, role: Role) {
    let style = canvas.style;
    crosshair(canvas, plane);
    plane.ellipse(canvas, covariance, &Paint::fill(style.colour(role)).opacity(0.18));
    plane.circle(canvas, 1.0, &Paint::stroke(style.colour(Role::Unit), 1.2));
    plane.ellipse(canvas, covariance, &Paint::stroke(style.colour(role), 1.5).dashed(Some("4 3")));
}

fn crosshair(canvas: &mut Canvas, plane: &Plane) {
    let (x, y) = plane.frame.centre();
    let faint = Paint::stroke(canvas.style.shade(), 1.0);
    canvas.line(&[(plane.frame.x, y), (plane.frame.right(), y)], &faint);
    canvas.line(&[(x, plane.frame.y), (x, plane.frame.bottom())], &faint);
}

/// The cone of all positive definite matrices (orange) and the plane in it that gains can reach (blue).
fn cone(canvas: &mut Canvas, view: &View, situation: &Situation, leak: f64) {
    let [rim, outline] = view.cone();
    let style = canvas.style;
    canvas.part("series", "cone", |canvas| {
        canvas.polygon(&outline, &Paint::fill(style.colour(Role::Context)).opacity(0.12));
        canvas.polygon(&outline, &Paint::stroke(style.faint_ink(), 0.8));
        canvas.line(&rim, &Paint::stroke(style.faint_ink(), 0.8));
    });
    canvas.part("series", "reachable", |canvas| {
        let edge = view.plane(&situation.synapses, leak);
        let blue = style.colour(Role::Reachable);
        canvas.polygon(&edge, &Paint::fill(blue).opacity(0.28));
        canvas.polygon(&edge, &Paint::stroke(blue, 1.0));
        for axis in view.gain_axes(&situation.synapses, leak) {
            canvas.line(&axis, &Paint::stroke(blue, 0.8));
        }
    });
}

/// Contexts as points (purple), those outside with a line to the nearest that gains can reach, and the path of the gains
/// (dotted white) to one of them (yellow).
fn contexts(canvas: &mut Canvas, view: &View, situation: &Situation, roots: &[Entries]) {
    let style = canvas.style;
    canvas.part("series", "contexts", |canvas| {
        for ((&root, &nearest), &inside) in roots.iter().zip(&situation.nearest).zip(&situation.inside) {
            let (at, foot) = (view.at(root), view.at(nearest));
            if !inside {
                canvas.line(&[at, foot], &Paint::stroke(style.faint_ink(), 0.7));
            }
            canvas.circle(at, 2.4, &context(style, inside));
        }
    });
    let Some(switch) = situation.switches.get(1) else { return };
    canvas.part("series", "path of the gains", |canvas| {
        let points: Vec<_> = switch.path.iter().map(|&entries| view.at(entries)).collect();
        path(canvas, &points);
        let target = view.at(roots[switch.to]);
        canvas.circle(target, 4.6, &Paint::fill("#f0e442").edged(style.ink(), 1.1));
    });
}

/// The point of a context within what gains can reach, or outside.
fn context(style: Style, inside: bool) -> Paint {
    let purple = style.colour(Role::Occurring);
    if inside { Paint::fill(purple) } else { Paint::fill("#ffffff").edged(purple, 1.0) }
}

/// White dots on a dark line, so that they are seen on any ground.
fn path(canvas: &mut Canvas, points: &[Point]) {
    canvas.line(points, &Paint::stroke(canvas.style.ink(), 3.6));
    canvas.line(points, &Paint::stroke("#ffffff", 2.0).dashed(Some("2 2.4")));
}

/// What the points stand for, and how many there are of each.
fn key(canvas: &mut Canvas, panel: Frame, situation: &Situation) {
    let inside = situation.inside.iter().filter(|&&inside| inside).count();
    let outside = situation.inside.len() - inside;
    let entries = [
        Entry::dot(context(canvas.style, true), &format!("{inside} contexts inside")),
        Entry::dot(context(canvas.style, false), &format!("{outside} outside")),
    ];
    let (mut x, y) = (panel.x + 14.0, panel.bottom() - 12.0);
    for (entry, room) in entries.iter().zip([142.0, 96.0]) {
        entry.draw(canvas, (x, y));
        x += room;
    }
    path(canvas, &[(x, y), (x + 20.0, y)]);
    canvas.text((x + 24.0, y + 3.6), &Text::new("path of gains", SMALL));
}
