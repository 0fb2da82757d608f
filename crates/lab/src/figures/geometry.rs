//! Draws Figs. 1 and 2: the circuit with what it makes of three contexts, and the contexts that gains can whiten.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{MEDIUM, SMALL, heading, letter};
use super::canvas::{Canvas, Frame, Paint, Text};
use super::circuit::circuit;
use super::cone::{Entries, View, root};
use super::ellipse::{Pair, Plane, principal_axes};
use super::marks::Entry;
use super::pair::nothing;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [720.0, 640.0];
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
        canvas.part("panel", "A", |canvas| nothing(canvas, top));
        return Ok(canvas);
    };
    canvas.part("panel", "A", |canvas| {
        whitening(canvas, top, &shown);
        letter(canvas, top, "A");
    });
    let below = Frame::new(0.0, FIRST, SIZE[0], SIZE[1] - FIRST);
    let roots: Vec<Entries> = shown.contexts.iter().map(root).collect();
    let height = roots.iter().map(|[a, _, c]| 0.5 * (a + c)).fold(shown.leak, f64::max);
    let view = View::new(below, 1.12 * height, [&shown.initial.synapses, &shown.learned.synapses]);
    let sides =
        [("B", "F(*W*_0)", Role::Initial, &shown.initial), ("C", "F(*W*_T)", Role::Learned, &shown.learned)];
    for (i, (name, title, role, situation)) in sides.into_iter().enumerate() {
        let frame = below.cell([2, 1], [i, 0], 8.0);
        canvas.part("panel", name, |canvas| {
            heading(canvas, frame, title);
            let view = view.moved(frame.inset([14.0, 26.0, 14.0, 30.0]));
            cone(canvas, &view, situation, (shown.leak, role));
            contexts(canvas, &view, situation, &roots);
            key(canvas, frame, situation);
            letter(canvas, frame, name);
        });
    }
    Ok(canvas)
}

/// A: three contexts, the circuit, and its responses right after a switch and once its gains have adapted.
fn whitening(canvas: &mut Canvas, panel: Frame, shown: &Shown) {
    let (left, right) = (Frame { width: 150.0, ..panel }, panel.inset([panel.width - 150.0, 0.0, 0.0, 0.0]));
    heading(canvas, left, "stimuli *s*");
    heading(canvas, right, "responses *r*");
    circuit(canvas, panel.inset([165.0, 16.0, 165.0, 12.0]));
    let switches = &shown.learned.switches;
    let reach = |covariances: &mut dyn Iterator<Item = &Pair>| {
        1.06 * covariances.map(|covariance| principal_axes(covariance).0[0]).fold(1.0, f64::max)
    };
    let stimuli = reach(&mut switches.iter().map(|switch| &shown.contexts[switch.to]));
    let responses = reach(&mut switches.iter().flat_map(|switch| [&switch.before, &switch.after]));
    let style = canvas.style;
    let (orange, red) = (style.colour(Role::Context), style.colour(Role::Learned));
    for (i, switch) in switches.iter().enumerate() {
        canvas.part("series", &format!("context {}", i + 1), |canvas| {
            let cell = |side: Frame| side.inset([34.0, 22.0, 30.0, 22.0]).cell([1, 3], [0, i], 6.0);
            let plane = Plane::new(cell(left), stimuli);
            let name = Text::new(format!("~c~ = {}", i + 1), SMALL).end();
            canvas.text((plane.frame.x - 4.0, plane.frame.centre().1 + 3.6), &name);
            crosshair(canvas, &plane);
            let context = &shown.contexts[switch.to];
            plane.ellipse(canvas, context, &Paint::fill(orange).opacity(0.2));
            plane.ellipse(canvas, context, &Paint::stroke(orange, 1.4).dashed(Some("4 3")));
            let plane = Plane::new(cell(right), responses);
            crosshair(canvas, &plane);
            plane.ellipse(canvas, &switch.before, &Paint::stroke(style.faint_ink(), 1.0).dashed(Some("2 2")));
            plane.circle(canvas, 1.0, &Paint::stroke(style.colour(Role::Unit), 3.0).opacity(0.5));
            plane.ellipse(canvas, &switch.after, &Paint::stroke(red, 1.4).dashed(Some("4 3")));
        });
    }
    let entries = [
        Entry::line(Paint::stroke(style.faint_ink(), 1.0).dashed(Some("2 2")), "after the switch"),
        Entry::line(Paint::stroke(red, 1.4).dashed(Some("4 3")), "gains adapted"),
    ];
    for (i, entry) in entries.iter().enumerate() {
        entry.draw(canvas, (right.x + 20.0, panel.bottom() - 18.0 + 14.0 * i as f64 - 4.0));
    }
}

fn crosshair(canvas: &mut Canvas, plane: &Plane) {
    let (x, y) = plane.frame.centre();
    let faint = Paint::stroke(canvas.style.shade(), 1.0);
    canvas.line(&[(plane.frame.x, y), (plane.frame.right(), y)], &faint);
    canvas.line(&[(x, plane.frame.y), (x, plane.frame.bottom())], &faint);
}

/// The cone of all positive definite matrices and the plane in it that gains can reach.
fn cone(canvas: &mut Canvas, view: &View, situation: &Situation, (leak, role): (f64, Role)) {
    let (rim, outline) = view.cone();
    let style = canvas.style;
    canvas.part("series", "cone", |canvas| {
        canvas.polygon(&[&outline[..], &rim[..]].concat(), &Paint::fill(style.shade()).opacity(0.0));
        canvas.polygon(&outline, &Paint::fill(style.colour(Role::Context)).opacity(0.10));
        canvas.polygon(&rim, &Paint::fill(style.colour(Role::Context)).opacity(0.10));
        canvas.polygon(&rim, &Paint::stroke(style.faint_ink(), 0.8));
        canvas.line(&outline, &Paint::stroke(style.faint_ink(), 0.8));
    });
    canvas.part("series", "reachable", |canvas| {
        let rings = view.plane(&situation.synapses, leak, 4);
        if let Some(edge) = rings.last() {
            canvas.polygon(edge, &Paint::fill(style.colour(role)).opacity(0.28));
        }
        for ring in &rings {
            canvas.polygon(ring, &Paint::stroke(style.colour(role), 0.6).opacity(0.8));
        }
    });
}

/// Contexts as points, those outside with a line to the nearest that gains can reach, and the path of the gains.
fn contexts(canvas: &mut Canvas, view: &View, situation: &Situation, roots: &[Entries]) {
    let style = canvas.style;
    canvas.part("series", "contexts", |canvas| {
        for ((&root, &nearest), &inside) in roots.iter().zip(&situation.nearest).zip(&situation.inside) {
            let (at, foot) = (view.at(root), view.at(nearest));
            if inside {
                canvas.circle(at, 2.4, &Paint::fill(style.ink()));
            } else {
                canvas.line(&[at, foot], &Paint::stroke(style.faint_ink(), 0.7));
                canvas.circle(at, 2.4, &Paint::fill("#ffffff").edged(style.ink(), 0.9));
            }
        }
    });
    let Some(switch) = situation.switches.get(1) else { return };
    canvas.part("series", "path of the gains", |canvas| {
        let path: Vec<_> = switch.path.iter().map(|&entries| view.at(entries)).collect();
        canvas.line(&path, &Paint::stroke("#ffffff", 3.4));
        canvas.line(&path, &Paint::stroke(style.ink(), 2.0).dashed(Some("2 2.4")));
        let target = view.at(roots[switch.to]);
        canvas.circle(target, 4.6, &Paint::fill("#f0e442").edged(style.ink(), 1.1));
    });
}

/// What the points stand for, and how many there are of each.
fn key(canvas: &mut Canvas, panel: Frame, situation: &Situation) {
    let inside = situation.inside.iter().filter(|&&inside| inside).count();
    let outside = situation.inside.len() - inside;
    let ink = canvas.style.ink();
    let entries = [
        Entry::dot(Paint::fill(ink), &format!("{inside} contexts inside")),
        Entry::dot(Paint::fill("#ffffff").edged(ink, 0.9), &format!("{outside} outside")),
        Entry::line(Paint::stroke(ink, 2.0).dashed(Some("2 2.4")), "path of gains"),
    ];
    let mut x = panel.x + 14.0;
    for (entry, room) in entries.iter().zip([142.0, 96.0, 0.0]) {
        entry.draw(canvas, (x, panel.bottom() - 12.0));
        x += room;
    }
    let _ = MEDIUM;
}
