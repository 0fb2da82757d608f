//! Draws the circuit of Fig. 1: stimuli, primary neurons, interneurons and what runs between them.

use super::canvas::{Canvas, Frame, Paint, Point, Text};
use super::style::Role;

const RADIUS: f64 = 15.0;

/// The circuit of two neurons and two interneurons.
pub fn circuit(canvas: &mut Canvas, frame: Frame) {
    let place = |x: f64, y: f64| (frame.x + x * frame.width, frame.y + y * frame.height);
    let rows = [0.33, 0.67];
    let [stimuli, neurons, interneurons] = [0.08, 0.42, 0.84].map(|x| rows.map(|y| place(x, y)));
    for (i, (stimulus, neuron)) in stimuli.into_iter().zip(neurons).enumerate() {
        connection(canvas, (stimulus, neuron), 0.0, End::Excites);
        for (k, interneuron) in interneurons.into_iter().enumerate() {
            let bend = if i == k { 9.0 } else { 5.0 };
            connection(canvas, (neuron, interneuron), bend, End::Excites);
            connection(canvas, (interneuron, neuron), bend, End::Inhibits);
        }
    }
    let style = canvas.style;
    let groups =
        [("s", stimuli, Role::Occurring), ("r", neurons, Role::Other), ("n", interneurons, Role::Unit)];
    for (symbol, places, role) in groups {
        for (i, place) in places.into_iter().enumerate() {
            canvas.circle(place, RADIUS, &Paint::fill("#ffffff"));
            let paint = Paint::fill(style.colour(role)).opacity(0.35);
            canvas.circle(place, RADIUS, &paint);
            canvas.circle(place, RADIUS, &Paint::stroke(style.colour(role), 1.2));
            let name = Text::new(format!("~{symbol}~_{}", i + 1), 12.0).middle();
            canvas.text((place.0, place.1 + 4.0), &name);
        }
    }
    for (i, (x, y)) in interneurons.into_iter().enumerate() {
        canvas.text((x + RADIUS + 5.0, y + 4.0), &Text::new(format!("~g~_{}", i + 1), 11.0));
    }
    words(canvas, &place);
}

fn words(canvas: &mut Canvas, place: &dyn Fn(f64, f64) -> Point) {
    let faint = canvas.style.faint_ink();
    let lines = [
        (0.63, 0.20, "*W*^⊤*r* excites"),
        (0.63, 0.84, "−*Wn* inhibits"),
        (0.08, 0.20, "stimuli"),
        (0.42, 0.06, "neurons"),
        (0.84, 0.06, "interneurons"),
    ];
    for (x, y, text) in lines {
        canvas.text(place(x, y), &Text::new(text, 10.0).middle().colour(faint));
    }
    canvas.text(
        place(0.46, 0.97),
        &Text::new("gains *g* adapt fast, synapses *W* learn slowly", 10.0).middle(),
    );
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Excites,
    Inhibits,
}

/// A connection between two cells that is bent to the left of its way.
fn connection(canvas: &mut Canvas, (from, to): (Point, Point), bend: f64, end: End) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    let (ux, uy) = (dx / length, dy / length);
    let gap = RADIUS + 4.0;
    let start = (from.0 + gap * ux + 0.5 * bend * uy, from.1 + gap * uy - 0.5 * bend * ux);
    let stop = (to.0 - gap * ux + 0.5 * bend * uy, to.1 - gap * uy - 0.5 * bend * ux);
    let middle = (0.5 * (start.0 + stop.0) + bend * uy, 0.5 * (start.1 + stop.1) - bend * ux);
    let path =
        format!("M{:.2} {:.2}Q{:.2} {:.2} {:.2} {:.2}", start.0, start.1, middle.0, middle.1, stop.0, stop.1);
    let ink = canvas.style.ink();
    canvas.path(&path, &Paint::stroke(ink, 0.9));
    match end {
        End::Inhibits => canvas.circle(stop, 2.6, &Paint::fill(ink)),
        End::Excites => {
            let (ux, uy) = unit(middle, stop);
            let back = (stop.0 - 6.0 * ux, stop.1 - 6.0 * uy);
            let wings = [(back.0 - 2.8 * uy, back.1 + 2.8 * ux), (back.0 + 2.8 * uy, back.1 - 2.8 * ux)];
            canvas.polygon(&[wings[0], stop, wings[1]], &Paint::fill(ink));
        }
    }
}

fn unit(from: Point, to: Point) -> Point {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(f64::MIN_POSITIVE);
    (dx / length, dy / length)
}
