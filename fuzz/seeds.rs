//! Writes small sound model files and recordings into `corpus/` for the fuzzer to begin with.

mod recording_seeds;

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use leukos::{
    GroupedWhitener, Matrix, Model, Moments, Real, Span, Whitener, WhitenerSettings, WhitenerTraining, contexts::stream,
};

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (format, name, bytes) in recording_seeds::recordings() {
        std::fs::create_dir_all(corpus.join(format))?;
        std::fs::write(corpus.join(format).join(name), bytes)?;
    }
    write_models(&corpus.join("model_file"))
}

fn write_models(folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let skewed = Matrix::from_rows(&[[1.0, 0.6, 0.1], [0.0, 0.8, -1.0]]);
    for (name, synapses, learns) in [
        ("one", Matrix::identity(1), false),
        ("orthonormal", Matrix::identity(2), false),
        ("fewer", Matrix::from_rows(&[[0.6], [0.8]]), false),
        ("none", Matrix::zeros(2, 0), false),
        ("overcomplete", skewed, false),
        ("learning", Matrix::identity(3), true),
    ] {
        for rows in [0, 5, 12, 60, 400] {
            let bytes = after::<f64>(&synapses, learns, rows)?;
            std::fs::write(folder.join(format!("{name}-{rows}-double")), bytes)?;
            let bytes = after::<f32>(&synapses, learns, rows)?;
            std::fs::write(folder.join(format!("{name}-{rows}-single")), bytes)?;
        }
    }
    std::fs::write(folder.join("trained"), trained()?)?;
    std::fs::write(folder.join("grouped"), grouped()?)?;
    for version in 1..=3 {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/tests/golden");
        let name = format!("model_v{version}.safetensors");
        std::fs::copy(golden.join(&name), folder.join(&name))?;
    }
    Ok(())
}

fn settings(learns: bool) -> WhitenerSettings {
    WhitenerSettings {
        time_constant: Some(Span::Samples(20.0)),
        synapse_time_constant: learns.then_some(Span::Samples(300.0)),
        update_every: Some(3),
        ..WhitenerSettings::default()
    }
}

/// A whitener that has seen so many rows, among them a change of scale and a channel that dies.
fn after<T: Real>(synapses: &Matrix, learns: bool, rows: usize) -> Result<Vec<u8>, leukos::Error> {
    let mut whitener = Whitener::<T>::new(synapses.clone(), settings(learns))?;
    let n = synapses.rows();
    let value = |row: usize, j: usize| {
        let noise = ((row * 37 + j * 11) * 7919 % 101) as f64 - 50.0;
        let scale = if row > 300 { 1e5 } else { 1.0 };
        if j == 1 && row > 30 { 4.0 } else { noise * scale }
    };
    let stimuli: Vec<T> = (0..rows * n).map(|i| T::from_f64(value(i / n, i % n))).collect();
    whitener.whiten(&stimuli, &mut vec![T::ZERO; rows * n])?;
    Model::from(whitener).to_checkpoint()
}

fn trained() -> Result<Vec<u8>, leukos::Error> {
    let mut moments = vec![Moments::new(2), Moments::new(2)];
    moments[0].update(&[2.0, 1.0, -2.0, 1.0, 0.5, -1.0, -0.5, -1.0])?;
    moments[1].update(&[1.0, 1.0, -1.0, -1.5, 0.5, -0.2, -0.5, 0.7])?;
    let training = WhitenerTraining { moments, ..WhitenerTraining::default() };
    let whitener: Whitener =
        training.fit(settings(false), &mut stream(0, 0), |_| ControlFlow::Continue(()))?;
    let mut model = Model::from(whitener);
    model.channel_names = Some(vec!["left".into(), "right".into()]);
    model.notes.insert("subject".into(), "rabbit".into());
    model.to_bytes()
}

fn grouped() -> Result<Vec<u8>, leukos::Error> {
    let whitener = |channels| Whitener::<f64>::new(Matrix::identity(channels), settings(false));
    let mut grouped = GroupedWhitener::new(vec![(vec![2, 0], whitener(2)?), (vec![1], whitener(1)?)])?;
    let stimuli: Vec<f64> = (0..90).map(|i| f64::from(i * 7919 % 101)).collect();
    grouped.whiten(&stimuli, &mut vec![0.0; stimuli.len()])?;
    Model::from(grouped).to_checkpoint()
}
