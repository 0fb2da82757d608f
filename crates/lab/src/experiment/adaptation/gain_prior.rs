//! Adapts gains by a Kalman filter, with a prior g ~ N(μ, Σ) over gains.
//!
//! Gains rest where E\[z∘z\] = ‖w‖², as under Eq. (7). Near that point z∘z − ‖w‖² measures g* − g with slope H = 2 A∘G and
//! noise V = 2 G∘G, where G = WᵀW and A = WᵀM⁻¹W, if responses are Gaussian and nearly white. So each sample adds
//! HV⁻¹H to the precision J of the gains, and moves them by J⁻¹HV⁻¹(z∘z − ‖w‖²).

use leukos::{Circuit, Matrix, Synapses, WhiteningMeter};

use super::super::offline::LEAK;
use super::cholesky::{Cholesky, dot};
use super::switch::{Adapted, Switch, measured};

/// What is known of gains before the first sample.
pub struct GainPrior {
    mean: Vec<f64>,
    covariance: Matrix,
}

/// What is added to the diagonals of covariances, as a share of their mean, for directions that nothing was seen of.
const RIDGE: f64 = 1e-6;

impl GainPrior {
    /// Mean and covariance of the gains of several contexts.
    pub fn of(gains: &[Vec<f64>]) -> Self {
        let (contexts, k) = (gains.len() as f64, gains.first().map_or(0, Vec::len));
        let mean: Vec<f64> = (0..k).map(|i| gains.iter().map(|g| g[i]).sum::<f64>() / contexts).collect();
        let moment = |i, j| gains.iter().map(|g| (g[i] - mean[i]) * (g[j] - mean[j])).sum::<f64>() / contexts;
        let mut covariance = Matrix::from_fn(k, k, moment);
        lift(&mut covariance);
        Self { mean, covariance }
    }

    /// The same without the correlations between gains.
    #[must_use]
    pub fn independent(mut self) -> Self {
        let k = self.mean.len();
        self.covariance = Matrix::from_fn(k, k, |i, j| if i == j { self.covariance[(i, i)] } else { 0.0 });
        self
    }

    /// Told of the switch, the gains begin at the mean and follow the filter.
    pub fn follow(&self, switch: &Switch<'_>, synapses: &Matrix) -> leukos::Result<Adapted> {
        let circuit = Circuit::new(Synapses::tied(synapses.clone())?, self.mean.clone(), LEAK)?;
        let (mut errors, mut from) = (Vec::new(), 0);
        let (mut meter, mut stimuli) = (WhiteningMeter::new(&circuit), switch.stimuli());
        let Some(mut filter) = Filter::new(circuit, &self.covariance) else {
            return Ok(Adapted::new(&errors, switch.horizon, Some(0)));
        };
        for until in measured(switch.horizon) {
            let mut block = vec![0.0; (until - from) * synapses.rows()];
            stimuli.fill(switch.to, &mut block)?;
            if !filter.see(&block)? {
                return Ok(Adapted::new(&errors, switch.horizon, Some(until as u64)));
            }
            errors.push(Some(meter.error(&filter.circuit, switch.covariance())?));
            from = until;
        }
        Ok(Adapted::new(&errors, switch.horizon, None))
    }
}

fn lift(matrix: &mut Matrix) {
    let share = RIDGE * matrix.trace() / matrix.rows().max(1) as f64;
    (0..matrix.rows()).for_each(|i| matrix[(i, i)] += share);
}

/// The state of the filter.
struct Filter {
    circuit: Circuit,
    /// G.
    gram: Matrix,
    /// V.
    noise: Cholesky,
    /// J.
    precision: Matrix,
}

impl Filter {
    /// `None` where a covariance is not positive definite.
    fn new(circuit: Circuit, covariance: &Matrix) -> Option<Self> {
        let (synapses, k) = (circuit.synapses().feedback(), circuit.interneurons());
        let gram = Matrix::from_fn(k, k, |i, j| dot(synapses.column(i), synapses.column(j)));
        let mut noise = Matrix::from_fn(k, k, |i, j| 2.0 * gram[(i, j)] * gram[(i, j)]);
        lift(&mut noise);
        let precision = Cholesky::new(covariance)?.inverse();
        Some(Self { circuit, gram, noise: Cholesky::new(&noise)?, precision })
    }

    /// Learns from some stimuli at once; they must be few compared with those before. Returns whether M is still definite.
    fn see(&mut self, stimuli: &[f64]) -> leukos::Result<bool> {
        let (n, k) = (self.circuit.neurons(), self.circuit.interneurons());
        let synapses = self.circuit.synapses().feedback();
        let whitening = self.circuit.whitening_matrix()?;
        // M⁻¹W, through which z = WᵀM⁻¹s listens to the stimulus.
        let listening = Matrix::from_fn(n, k, |i, j| dot(whitening.column(i), synapses.column(j)));
        let mut drive = vec![0.0; k];
        for stimulus in stimuli.chunks_exact(n) {
            for (i, drive) in drive.iter_mut().enumerate() {
                *drive += dot(listening.column(i), stimulus).powi(2) - self.gram[(i, i)];
            }
        }
        // H, and then L⁻¹H with V = LLᵀ.
        let slope = |i, j| 2.0 * dot(synapses.column(i), listening.column(j)) * self.gram[(i, j)];
        let mut slopes = Matrix::from_fn(k, k, slope);
        (0..k).for_each(|j| self.noise.solve_half(slopes.column_mut(j)));
        self.noise.solve_half(&mut drive);
        let samples = (stimuli.len() / n) as f64;
        for j in 0..k {
            for i in 0..=j {
                self.precision[(i, j)] += samples * dot(slopes.column(i), slopes.column(j));
                self.precision[(j, i)] = self.precision[(i, j)];
            }
        }
        let mut step: Vec<f64> = (0..k).map(|j| dot(slopes.column(j), &drive)).collect();
        let Some(precision) = Cholesky::new(&self.precision) else { return Ok(false) };
        precision.solve(&mut step);
        let gains = self.circuit.gains().iter().zip(&step).map(|(gain, step)| gain + step).collect();
        Ok(self.circuit.clone().with_gains(gains).map(|next| self.circuit = next).is_ok())
    }
}
