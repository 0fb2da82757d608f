//! Leaves whiteners running on abused input: `cargo run --release -p leukos --example soak [SAMPLES [SEED]]`.
//!
//! The seed is new each time unless it is given, and printed, so that a failure can be seen again.

mod abuse;

use std::time::{SystemTime, UNIX_EPOCH};

use abuse::{ABUSES, Soak, Verdict, Victim};

const VICTIMS: [Victim; 7] = [
    Victim { channels: 8, interneurons: 8, plastic: false },
    Victim { channels: 8, interneurons: 8, plastic: true },
    Victim { channels: 8, interneurons: 4, plastic: false },
    Victim { channels: 8, interneurons: 16, plastic: true },
    Victim { channels: 2, interneurons: 2, plastic: false },
    Victim { channels: 1, interneurons: 1, plastic: true },
    Victim { channels: 25, interneurons: 25, plastic: false },
];

/// A mistreatment lasts for so many samples at most.
const LONGEST: usize = 5000;

fn main() -> leukos::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let samples: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(clock);
    println!("{samples} samples, seed {seed}");
    for (index, victim) in VICTIMS.iter().enumerate() {
        let share = samples / (2 * VICTIMS.len() as u64);
        report(victim, "f64", &Soak::<f64>::new(*victim, seed + index as u64)?.run(share, LONGEST)?);
        report(victim, "f32", &Soak::<f32>::new(*victim, seed + index as u64)?.run(share, LONGEST)?);
    }
    Ok(())
}

fn report(victim: &Victim, number: &str, verdict: &Verdict) {
    println!("{victim:?} {number}");
    println!(
        "  {} samples; map indefinite {}, output not finite {}, largest output {:.1e}; lost for ever: {:?}",
        verdict.samples,
        verdict.indefinite,
        verdict.not_finite,
        verdict.largest_output,
        verdict.lost()
    );
    for abuse in ABUSES {
        let own = verdict.outcomes.iter().filter(|outcome| outcome.abuse == abuse);
        let mut times: Vec<usize> = own.filter_map(|outcome| outcome.recovered).collect();
        times.sort_unstable();
        let (median, most) = (times.get(times.len() / 2), times.last());
        println!(
            "  {abuse:<18?} {:>4} times, recovered after {median:?} samples, {most:?} at most",
            times.len()
        );
    }
}
