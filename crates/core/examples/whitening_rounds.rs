//! Whitens a file of doubles once for each line on standard input, for others to time: `whitening_rounds FILE CHANNELS ROWS`.
//!
//! The whitener is fitted to the first ROWS rows, and each round starts from there. `benches/python/compare.py` sets it
//! beside `AdaptiveWhitener.adapt_transform` on the same rows.

use std::error::Error;
use std::ops::ControlFlow;

use leukos::contexts::stream;
use leukos::{Moments, Whitener, WhitenerSettings, WhitenerTraining};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, channels, rows] = &arguments[..] else { return Err("expected FILE CHANNELS ROWS".into()) };
    let (channels, rows): (usize, usize) = (channels.parse()?, rows.parse()?);
    let bytes = std::fs::read(file)?;
    let stimuli: Vec<f64> = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    let mut moments = Moments::new(channels);
    moments.update(&stimuli[..rows * channels])?;
    let training = WhitenerTraining { moments: vec![moments], ..WhitenerTraining::default() };
    let whitener: Whitener =
        training.fit(WhitenerSettings::default(), &mut stream(0, 0), |_| ControlFlow::Continue(()))?;
    for line in std::io::stdin().lines() {
        line?;
        let mut responses = vec![0.0; stimuli.len()];
        whitener.clone().whiten(&stimuli, &mut responses)?;
        println!("{}", responses[responses.len() - 1]);
    }
    Ok(())
}
