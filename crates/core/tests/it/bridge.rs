//! Carries circuits and options from the slow twin to the library and back, and draws random ones.

use leukos::{
    Circuit, GainRule, Matrix, MultiplierRule, Offline, OfflineGains, Online, Order, Real, Rules, Sign,
    Solver, SynapseRule, Synapses, UnitNorm,
};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use crate::twin;

pub fn matrix<T: Real>(rows: &twin::Matrix, columns: usize) -> Matrix<T> {
    Matrix::from_fn(rows.len(), columns, |i, j| T::from_f64(rows[i][j]))
}

pub fn square<T: Real>(rows: &twin::Matrix) -> Matrix<T> {
    matrix(rows, rows.len())
}

pub fn nested<T: Real>(matrix: &Matrix<T>) -> twin::Matrix {
    (0..matrix.rows()).map(|i| (0..matrix.columns()).map(|j| matrix[(i, j)].to_f64()).collect()).collect()
}

pub fn flat<T: Real>(rows: &twin::Matrix) -> Vec<T> {
    rows.iter().flatten().map(|&x| T::from_f64(x)).collect()
}

fn cast<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&x| T::from_f64(x)).collect()
}

/// The library's circuit for the twin's.
pub fn circuit<T: Real>(twin: &twin::Circuit) -> leukos::Result<Circuit<T>> {
    let k = twin.gains.len();
    let feedback = matrix(&twin.feedback, k);
    let synapses = match &twin.feedforward {
        None => Synapses::tied(feedback)?,
        Some(rows) => Synapses::untied(feedback, &matrix(rows, twin.feedback.len()))?,
    };
    let circuit = Circuit::new(synapses, cast(&twin.gains), T::from_f64(twin.leak))?;
    if twin.multipliers.is_empty() { Ok(circuit) } else { circuit.with_multipliers(cast(&twin.multipliers)) }
}

/// The twin's circuit for the library's.
pub fn twin_of<T: Real>(circuit: &Circuit<T>) -> twin::Circuit {
    let synapses = circuit.synapses();
    twin::Circuit {
        feedback: nested(synapses.feedback()),
        feedforward: (!synapses.is_tied()).then(|| nested(&synapses.feedforward_transposed().transpose())),
        gains: wide(circuit.gains()),
        multipliers: wide(circuit.multipliers()),
        leak: circuit.leak().to_f64(),
    }
}

/// Every number of a circuit, bit by bit (which double precision holds for either precision).
pub fn bits<T: Real>(circuit: &Circuit<T>) -> Vec<u64> {
    let synapses = circuit.synapses();
    let weights = [synapses.feedback().as_slice(), synapses.feedforward_transposed().as_slice()];
    let rest = [circuit.gains(), circuit.multipliers(), &[circuit.leak()]];
    weights.into_iter().chain(rest).flat_map(bits_of).collect()
}

pub fn bits_of<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.to_f64().to_bits()).collect()
}

/// A library run with the direct solver: its responses and the circuit it ends with.
pub fn online(circuit: &Circuit, rules: Rules, stimuli: &twin::Matrix) -> (twin::Matrix, Circuit) {
    let mut run = Online::new(circuit.clone(), rules, &Solver::Direct).unwrap();
    let mut responses = vec![0.0; stimuli.len() * circuit.neurons()];
    run.advance(&flat::<f64>(stimuli), &mut responses, &mut ()).unwrap();
    let rows = responses.chunks_exact(circuit.neurons()).map(<[f64]>::to_vec).collect();
    (rows, run.into_circuit().unwrap())
}

/// The circuit after some steps on one covariance.
pub fn offline(circuit: &Circuit, rules: Rules, covariance: &twin::Matrix, steps: usize) -> Circuit {
    let covariances = vec![square(covariance)];
    let mut run = Offline::new(circuit.clone(), rules, covariances, OfflineGains::Rule).unwrap();
    run.advance(&[0], steps, &mut ()).unwrap();
    run.into_circuit()
}

pub fn rules<T: Real>(options: &twin::Options) -> Rules<T> {
    let rate = |rate: f64| T::from_f64(rate);
    Rules {
        gains: options.gain_rate.map_or(GainRule::Frozen, |r| GainRule::Gradient { rate: rate(r) }),
        synapses: options
            .synapse_rate
            .map_or(SynapseRule::Frozen, |r| SynapseRule::Hebbian { rate: rate(r) }),
        unit_norm: match options.unit_norm {
            twin::UnitNorm::Free => UnitNorm::Free,
            twin::UnitNorm::Projected => UnitNorm::Projected,
            twin::UnitNorm::Multiplier => UnitNorm::Multiplier {
                rule: options
                    .multiplier_rate
                    .map_or(MultiplierRule::Frozen, |r| MultiplierRule::Gradient { rate: rate(r) }),
            },
        },
        sign: if options.nonnegative { Sign::NonNegative } else { Sign::Free },
        order: if options.concurrent { Order::Concurrent } else { Order::Sequential },
        batch: options.batch,
    }
}

/// The largest difference between the library's circuit and the twin's.
pub fn difference<T: Real>(ours: &Circuit<T>, twin: &twin::Circuit) -> f64 {
    let back = farthest(&flat::<f64>(&nested(ours.synapses().feedback())), &flat::<f64>(&twin.feedback));
    let forth = twin.feedforward.as_ref().map_or(0.0, |rows| {
        let ours = nested(&ours.synapses().feedforward_transposed().transpose());
        farthest(&flat::<f64>(&ours), &flat::<f64>(rows))
    });
    let gains = farthest(&wide(ours.gains()), &twin.gains);
    let multipliers = if twin.multipliers.is_empty() {
        0.0
    } else {
        farthest(&wide(ours.multipliers()), &twin.multipliers)
    };
    [back, forth, gains, multipliers].into_iter().fold(0.0, worse)
}

pub fn wide<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|x| x.to_f64()).collect()
}

/// The largest difference of two lists; a NaN is infinitely far.
pub fn farthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, worse)
}

fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}

pub fn normal(rng: &mut Pcg64) -> f64 {
    StandardNormal.sample(rng)
}

pub fn normals(rows: usize, columns: usize, rng: &mut Pcg64) -> twin::Matrix {
    (0..rows).map(|_| (0..columns).map(|_| normal(rng)).collect()).collect()
}

pub fn coin(rng: &mut Pcg64) -> bool {
    rng.random_bool(0.5)
}

/// A random circuit with columns near unit length, gains between 0 and 2 and a leak of ½ or more.
pub fn random_circuit(n: usize, k: usize, tied: bool, rng: &mut Pcg64) -> twin::Circuit {
    let scale = 1.0 / (n as f64).sqrt();
    let feedback: twin::Matrix =
        normals(n, k, rng).into_iter().map(|row| row.into_iter().map(|w| w * scale).collect()).collect();
    // Untied weights stay near each other, or M would have eigenvalues on the wrong side.
    let feedforward = (!tied).then(|| {
        (0..k).map(|i| (0..n).map(|j| feedback[j][i] + 0.1 * scale * normal(rng)).collect()).collect()
    });
    twin::Circuit {
        feedback,
        feedforward,
        gains: (0..k).map(|_| rng.random_range(0.0..2.0)).collect(),
        multipliers: (0..k).map(|_| rng.random_range(0.0..0.5)).collect(),
        leak: rng.random_range(0.5..1.5),
    }
}

/// A random combination of everything that rules can say.
pub fn random_options(rng: &mut Pcg64) -> twin::Options {
    let rate = |often: f64, rate: f64, rng: &mut Pcg64| rng.random_bool(often).then_some(rate);
    twin::Options {
        gain_rate: rate(0.85, 1e-2, rng),
        synapse_rate: rate(0.85, 1e-3, rng),
        multiplier_rate: rate(0.85, 1e-2, rng),
        concurrent: coin(rng),
        unit_norm: [twin::UnitNorm::Free, twin::UnitNorm::Projected, twin::UnitNorm::Multiplier]
            [rng.random_range(0..3)],
        nonnegative: rng.random_bool(0.3),
        batch: [1, 1, 3, 7][rng.random_range(0..4)],
    }
}

/// A random covariance with eigenvalues of order one.
pub fn random_covariance(n: usize, rng: &mut Pcg64) -> twin::Matrix {
    let a = normals(n, 2 * n, rng);
    let mut c = twin::matmul(&a, &twin::transpose(&a));
    for (i, row) in c.iter_mut().enumerate() {
        for x in row.iter_mut() {
            *x /= n as f64;
        }
        row[i] += 0.2;
    }
    c
}

/// 2N stimuli whose second moment is exactly C: ±√N times each column of `C^½`.
pub fn sigma_points(covariance: &twin::Matrix) -> twin::Matrix {
    let size = (covariance.len() as f64).sqrt();
    let root = twin::square_root(covariance);
    let signed = |sign: f64| root.iter().map(move |row| row.iter().map(|x| sign * size * x).collect());
    signed(1.0).chain(signed(-1.0)).collect()
}

/// a − b.
pub fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
