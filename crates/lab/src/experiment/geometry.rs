//! Measures the geometry of Figs. 1 and 2: which contexts lie in F(W), and how the gains move from one to the next.
//!
//! F(W) is the set of covariances that gains alone can whiten: those whose root is M = αI + W diag(g) Wᵀ for some g.

use anyhow::Result;
use leukos::contexts::{Contexts, SyntheticContexts};
use leukos::{Circuit, GainRule, Matrix, Offline, OfflineGains, Rules, membership, optimal_gains};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online::{Probe, columns, log_grid};
use super::online_spec::OnlineSpec;
use super::pair::Pair;
use super::plan::{Draws, Setting};
use super::spec::{Positive, Scale};
use super::statistics::{Divergence, Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of Figs. 1 and 2.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    figure: Figure,
    /// How far from the nearest M the root of a covariance may be, as a share of its size, to count as inside.
    tolerance: Positive,
    /// The number of gain steps of a path from one context to the next.
    path_steps: usize,
    /// Two neurons and two interneurons are trained like this.
    training: OnlineSpec,
}

/// Figs. 1 and 2.
pub struct Geometry {
    spec: GeometrySpec,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    outside_initial: f64,
    outside_learned: f64,
    /// The median over contexts of the distance to the nearest M, as a share of the root's size.
    residual_initial: f64,
    residual_learned: f64,
    shown: Option<Value>,
}

#[derive(Serialize)]
struct Numbers {
    seeds: usize,
    diverged: Option<Divergence>,
    outside_initial: Option<f64>,
    outside_learned: Option<f64>,
    residual_initial: Statistic,
    residual_learned: Statistic,
}

/// The points of a path.
const PATH_POINTS: usize = 60;

/// The only variant.
const VARIANT: &str = "synthetic";

impl FigureSpec for GeometrySpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Geometry::new(self, setting)?))
    }
}

impl Geometry {
    fn new(spec: GeometrySpec, setting: &Setting) -> Result<Self> {
        spec.training.validate("training")?;
        Ok(Self { spec, scale: setting.scale, draws: setting.draws(Figure::Geometry) })
    }

    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let spec = &self.spec.training;
        let drawn = spec.contexts(self.draws, task.start)?;
        let pair = Pair { spec, scale: self.scale, draws: self.draws };
        let initial = pair.initial(&drawn.contexts, task.start)?;
        let nothing = |_: &Circuit| 0.0;
        let mut probe = Probe::new(Vec::new(), &nothing);
        let (_, learned) = pair.train(initial.clone(), &drawn.contexts, task.start, &mut probe)?;
        let [before, after] = [&initial, &learned].map(|circuit| residuals(circuit, &drawn.contexts));
        let (before, after) = (before?, after?);
        Ok(Run {
            outside_initial: self.outside(&before),
            outside_learned: self.outside(&after),
            residual_initial: median_of(&before),
            residual_learned: median_of(&after),
            shown: if task.is_shown() { Some(self.shown(&drawn, &initial, &learned)?) } else { None },
        })
    }

    /// The share of contexts outside F(W).
    fn outside(&self, residuals: &[f64]) -> f64 {
        let outside = residuals.iter().filter(|&&residual| residual > self.spec.tolerance.0).count();
        outside as f64 / residuals.len() as f64
    }

    /// Covariances of stimuli and responses, and the responses to a switch from each of three contexts to the next.
    fn shown(
        &self,
        drawn: &SyntheticContexts,
        initial: &Circuit,
        learned: &Circuit,
    ) -> leukos::Result<Value> {
        Ok(json!({
            "axes": columns(&drawn.axes),
            "leak": self.spec.training.leak,
            "contexts": drawn.contexts.covariances().iter().map(columns).collect::<Vec<_>>(),
            "initial": self.situation(initial, &drawn.contexts)?,
            "learned": self.situation(learned, &drawn.contexts)?,
        }))
    }

    fn situation(&self, circuit: &Circuit, contexts: &Contexts) -> leukos::Result<Value> {
        let (synapses, leak) = (circuit.synapses().feedback(), circuit.leak());
        let nearest = |covariance| Ok(reachable(circuit, &membership(synapses, covariance, leak)?.gains));
        let nearest = contexts.covariances().iter().map(nearest).collect::<leukos::Result<Vec<_>>>()?;
        let residuals = residuals(circuit, contexts)?;
        Ok(json!({
            "synapses": columns(synapses),
            "nearest": nearest,
            "inside": residuals.iter().map(|&residual| residual <= self.spec.tolerance.0).collect::<Vec<_>>(),
            "switches": self.switches(circuit, contexts)?,
        }))
    }

    /// Contexts 0, 1, 2 in turn, each from the optimal gains of the one before.
    fn switches(&self, circuit: &Circuit, contexts: &Contexts) -> leukos::Result<Vec<Value>> {
        let (synapses, leak) = (circuit.synapses().feedback(), circuit.leak());
        let count = contexts.len().min(3);
        let switch = |to: usize| {
            let from = (to + count - 1) % count;
            let gains = optimal_gains(synapses, &contexts.covariances()[from], leak)?;
            let circuit = circuit.clone().with_gains(gains)?;
            let covariance = &contexts.covariances()[to];
            let path = self.path(circuit.clone(), covariance)?;
            let adapted = optimal_gains(synapses, covariance, leak)?;
            Ok(json!({
                "from": from, "to": to, "path": path,
                "before": columns(&responses(&circuit, covariance)?),
                "after": columns(&responses(&circuit.with_gains(adapted)?, covariance)?),
            }))
        };
        (0..count).map(switch).collect()
    }

    /// The inverse whitening matrices, at some of the steps, as the gains adapt to a context.
    fn path(&self, circuit: Circuit, covariance: &Matrix) -> leukos::Result<Vec<[f64; 3]>> {
        let rate = self.spec.training.gain_rate.map_or(0.05, |rate| rate.0);
        let rules = Rules { gains: GainRule::Gradient { rate }, ..Rules::frozen() };
        let mut run = Offline::new(circuit, rules, vec![covariance.clone()], OfflineGains::Rule)?;
        let mut path = vec![entries(&run.circuit().inverse_whitening_matrix())];
        let mut done = 0;
        for step in log_grid(self.spec.path_steps, PATH_POINTS) {
            run.advance(&[0], step - done, &mut ())?;
            done = step;
            path.push(entries(&run.circuit().inverse_whitening_matrix()));
        }
        Ok(path)
    }
}

/// The entries of M = αI + Σ gᵢwᵢwᵢᵀ, definite or not.
fn reachable(circuit: &Circuit, gains: &[f64]) -> [f64; 3] {
    let synapses = circuit.synapses().feedback();
    let entry = |i, j| gains.iter().enumerate().map(|(k, g)| g * synapses[(i, k)] * synapses[(j, k)]).sum();
    let [a, b, c]: [f64; 3] = [entry(0, 0), entry(0, 1), entry(1, 1)];
    [a + circuit.leak(), b, c + circuit.leak()]
}

/// How far the root of each covariance is from the nearest M, as a share of its size; infinite where that M is not
/// positive definite.
fn residuals(circuit: &Circuit, contexts: &Contexts) -> leukos::Result<Vec<f64>> {
    let residual = |covariance: &Matrix| {
        let nearest = membership(circuit.synapses().feedback(), covariance, circuit.leak())?;
        Ok(if nearest.definite { nearest.residual } else { f64::INFINITY })
    };
    contexts.covariances().iter().map(residual).collect()
}

fn median_of(values: &[f64]) -> f64 {
    Statistic::of(values.iter().copied()).median.unwrap_or(f64::INFINITY)
}

/// The covariance of the responses, M⁻¹ C M⁻¹.
fn responses(circuit: &Circuit, covariance: &Matrix) -> leukos::Result<Matrix> {
    let whitening = circuit.whitening_matrix()?;
    Ok(product(&product(&whitening, covariance), &whitening))
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), b.columns(), |i, j| (0..a.columns()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

/// The entries (0, 0), (0, 1) and (1, 1).
fn entries(m: &Matrix) -> [f64; 3] {
    [m[(0, 0)], m[(0, 1)], m[(1, 1)]]
}

impl Experiment for Geometry {
    fn origins(&self) -> Origins {
        Origins::shared([VARIANT.to_owned()].iter(), &self.spec.training.family.origin())
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let (starts, work) = (self.spec.training.starts.at(self.scale), self.spec.training.work(self.scale));
        Task::starts(VARIANT, "", starts).into_iter().map(|task| (task, work)).collect()
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let starts: Starts<Run> = records.starts(VARIANT, "")?.in_sets(self.spec.training.sets(self.scale));
        let numbers = Numbers {
            seeds: starts.len(),
            diverged: starts.divergence(),
            outside_initial: starts.statistic(|run| run.outside_initial).mean,
            outside_learned: starts.statistic(|run| run.outside_learned).mean,
            residual_initial: starts.statistic(|run| run.residual_initial),
            residual_learned: starts.statistic(|run| run.residual_learned),
        };
        let mut summary = Summary::default();
        summary.add(VARIANT, numbers, json!({ "shown": starts.shown(|run| run.shown.as_ref()) }))?;
        Ok(summary)
    }
}
