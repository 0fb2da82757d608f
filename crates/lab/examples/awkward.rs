//! Makes the recording of the README's tour: `cargo run --example awkward > examples/recordings/awkward.csv`.
//!
//! Six channels hear six sources through a fixed mixture. Resting and walking differ in how strong each source is. Then
//! come typical defects: a channel goes dead for a while, a cell is empty, a cable is touched, and nobody has
//! subtracted the offsets.

use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

const NAMES: [&str; 6] = ["Fz", "C3", "Cz", "C4", "Pz", "Oz"];
/// What each channel shows when there is nothing to hear, in microvolts.
const OFFSETS: [f64; 6] = [120.0, -35.0, 8.0, 60.0, -210.0, 15.0];
/// How strong each source is, resting and walking.
const REST: [f64; 6] = [30.0, 6.0, 4.0, 3.0, 12.0, 2.0];
const WALK: [f64; 6] = [8.0, 25.0, 14.0, 3.0, 3.0, 5.0];
/// Each part of the recording: what the person does, and for how many samples.
const PARTS: [(&str, usize); 3] = [("rest", 2500), ("walk", 2500), ("rest", 1500)];

fn main() {
    println!("{},state", NAMES.join(","));
    let mut rng = Pcg64::seed_from_u64(7);
    let mut row = 0;
    for (state, samples) in PARTS {
        let strengths = if state == "rest" { REST } else { WALK };
        for _ in 0..samples {
            let sources = strengths.map(|strength| {
                let drawn: f64 = StandardNormal.sample(&mut rng);
                strength * drawn
            });
            let cells: Vec<String> = (0..6).map(|channel| cell(row, channel, &sources)).collect();
            println!("{},{state}", cells.join(","));
            row += 1;
        }
    }
}

/// What is written for a channel.
fn cell(row: usize, channel: usize, sources: &[f64; 6]) -> String {
    let heard: f64 = (0..6).map(|source| mixture(channel, source) * sources[source]).sum();
    match (row, NAMES[channel]) {
        (1000, "C3") => String::new(),
        (4200, "Pz") => "9000.00".into(),
        (3200..3900, "C4") => format!("{:.2}", OFFSETS[channel]),
        _ => format!("{:.2}", OFFSETS[channel] + heard),
    }
}

/// How well a channel hears a source: a row of cosines, as on a line of electrodes.
fn mixture(channel: usize, source: usize) -> f64 {
    let angle = std::f64::consts::PI * source as f64 * (channel as f64 + 0.5) / 6.0;
    if source == 0 { (1.0 / 6.0_f64).sqrt() } else { (2.0 / 6.0_f64).sqrt() * angle.cos() }
}
