//! Runs circuits and a whitener on drawn stimuli and prints the bits they end with, for others to compare with.
//!
//! `crates/python/tests/test_bits.py` does the same in Python and expects the same bits.

use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Stimuli, Synthetic, stream};
use leukos::{
    Circuit, Matrix, Moments, Offline, OfflineGains, Online, Real, Result, Solver, Synapses, Whitener,
    WhitenerSettings, WhitenerTraining, models,
};

fn main() -> Result<()> {
    // Python hands covariances around, so their roots are taken anew.
    let drawn = Synthetic::published().draw(&mut stream(7, 0))?.contexts;
    let contexts = Contexts::new(drawn.covariances().to_vec())?;
    online::<f64>("online double", &contexts)?;
    online::<f32>("online single", &contexts)?;
    offline(&contexts)?;
    whitener::<f64>("whitener double", &contexts)?;
    whitener::<f32>("whitener single", &contexts)
}

fn show<T: Real>(name: &str, values: impl IntoIterator<Item = T>) {
    let bits: Vec<String> = values.into_iter().map(|x| format!("{:016x}", x.to_f64().to_bits())).collect();
    println!("{name}: {}", bits.join(" "));
}

/// 500 samples of each of the first ten contexts.
fn stimuli<T: Real>(contexts: &Contexts) -> Result<Vec<T>> {
    let mut source = Stimuli::gaussian(contexts.clone(), stream(3, 0));
    let mut stimuli = vec![T::ZERO; 10 * 500 * 2];
    for (context, stimuli) in stimuli.chunks_exact_mut(1000).enumerate() {
        source.fill(context, stimuli)?;
    }
    Ok(stimuli)
}

fn start<T: Real>() -> Result<Circuit<T>> {
    let weights = Matrix::from_rows(&[[0.8, -0.6], [0.6, 0.8]].map(|row| row.map(T::from_f64)));
    Circuit::new(Synapses::tied(weights)?, vec![T::ZERO; 2], T::ONE)
}

fn online<T: Real>(name: &str, contexts: &Contexts) -> Result<()> {
    let rules = models::multi_timescale(T::from_f64(0.05), T::from_f64(1e-3)).rules;
    let mut run = Online::new(start()?, rules, &Solver::Direct)?;
    let stimuli = stimuli::<T>(contexts)?;
    let mut responses = vec![T::ZERO; stimuli.len()];
    run.advance(&stimuli, &mut responses, &mut ())?;
    let circuit = run.into_circuit()?;
    let last = &responses[responses.len() - 2..];
    show(name, [last, circuit.gains(), circuit.synapses().feedback().as_slice()].concat());
    Ok(())
}

fn offline(contexts: &Contexts) -> Result<()> {
    let rules = models::multi_timescale_offline(0.1, 0.01).rules;
    let mut run = Offline::new(start()?, rules, contexts.covariances().to_vec(), OfflineGains::Rule)?;
    run.advance(&(0..64).collect::<Vec<_>>(), 20, &mut ())?;
    show("offline", [run.circuit().gains(), run.circuit().synapses().feedback().as_slice()].concat());
    Ok(())
}

fn whitener<T: Real>(name: &str, contexts: &Contexts) -> Result<()> {
    let mut moments = Moments::new(2);
    moments.update(&stimuli::<f64>(contexts)?)?;
    let training = WhitenerTraining { moments: vec![moments], ..WhitenerTraining::default() };
    let settings = WhitenerSettings::default();
    let mut whitener: Whitener<T> =
        training.fit(settings, &mut stream(0, 0), |_| ControlFlow::Continue(()))?;
    let stimuli = stimuli::<T>(contexts)?;
    let mut responses = vec![T::ZERO; stimuli.len()];
    whitener.whiten(&stimuli, &mut responses)?;
    show(name, responses[responses.len() - 2..].iter().map(|r| r.to_f64()).chain(whitener.gains()?));
    Ok(())
}
