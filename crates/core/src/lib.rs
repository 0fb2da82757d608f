//! Whitens a stream adaptively with fast gains and slow synapses.
//!
//! A circuit of N primary neurons and K interneurons answers a stimulus s with the response r = M⁻¹s, where
//! M = αI + W diag(g) Wᵀ. Its gains g adapt within a context; its synapses W learn what all contexts share.
//! The paper is Duong, Simoncelli, Chklovskii and Lipshutz, "Adaptive whitening with fast gain modulation and
//! slow synaptic plasticity" (NeurIPS 2023); equation numbers are its own.
//!
//! Start at [`Circuit`], run it with [`Online`] or [`Offline`] under [`Rules`], or take a named one from [`models`].
//! [`SynapseLearner`] finds the synapses that are best for contexts whose covariances are known.

mod alignment;
#[cfg(feature = "model-file")]
mod archive;
mod arithmetic;
mod assignment;
mod bases;
mod central_path;
mod circuit;
mod compiled;
mod constraints;
mod context_moments;
mod context_optimum;
pub mod contexts;
mod ensemble;
mod error;
mod estimator;
mod extreme_eigenvalues;
mod factor;
mod gain_problem;
mod gains;
mod kernels;
mod learn;
mod linalg;
mod lu;
mod matrix;
mod metrics;
#[cfg(feature = "model-file")]
mod model_file;
pub mod models;
mod moments;
mod nested_objective;
mod objective;
mod observe;
mod offline;
mod online;
mod optimal_gains;
mod outer_products;
mod pair;
mod panels;
mod real;
mod responses;
mod rules;
mod running_error;
pub mod settings;
pub mod size;
mod small;
mod spheres;
pub mod starts;
mod synapse_learning;
mod synapses;
mod tiles;
mod trust_region;
mod whitener;
mod whitening_meter;

pub use alignment::{align, basis_distance, basis_match};
pub use bases::{cosine_basis, cosine_basis_2d, eigenbasis, local_frame};
pub use circuit::{Circuit, Responder, Synapses};
pub use context_moments::{ContextMoments, RunningMoments};
pub use ensemble::Ensemble;
pub use error::{Diverged, Error, Result, Test};
pub use estimator::Mixture;
pub use gains::{Membership, least_squares_gains, membership};
pub use matrix::Matrix;
pub use metrics::{asymmetry, definiteness, log_whitening_error, whitening_error};
#[cfg(feature = "model-file")]
pub use model_file::{Model, Precision};
pub use moments::{Moments, mark_unusable};
pub use objective::{gap, gradient, objective, sample_objective};
pub use observe::{Every, Observer, Shown, Step};
pub use offline::{Offline, OfflineGains};
pub use online::{Adjustable, Online};
pub use optimal_gains::{OptimalGains, optimal_gains};
pub use real::Real;
pub use responses::Solver;
pub use rules::{GainRule, MultiplierRule, Order, Rules, Sign, SynapseRule, UnitNorm};
pub use running_error::RunningError;
pub use synapse_learning::{LearningProgress, LearningState, SynapseLearner};
pub use whitener::{
    BadSamples, Exclusion, Follow, FrozenWhitener, GainPrior, GroupedWhitener, MemoryWeight, SampleCounts,
    Span, TimeConstants, TrainingRule, TrainingSynapses, Whitener, WhitenerSettings, WhitenerStatus,
    WhitenerTraining,
};
pub use whitening_meter::WhiteningMeter;

/// Compiles and runs the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
