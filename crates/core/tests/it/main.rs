//! Tests the core from outside: against golden files, against a slow twin, and against the paper's claims.

// Formulas in comments are plain Unicode.
#![allow(clippy::unwrap_used, clippy::doc_markdown)]

mod adjusting;
mod against_twin;
mod alignment;
mod bridge;
mod cases;
mod contexts;
mod ensemble;
mod equations;
mod errors;
mod extremes;
mod golden;
mod golden_cases;
mod interneurons_needed;
mod measures;
#[cfg(feature = "model-file")]
mod model_file;
#[cfg(feature = "model-file")]
mod model_file_hostile;
mod natural;
mod npz;
mod observers;
mod optimal_gains;
mod properties;
mod running_error;
mod settings;
mod sizes;
mod symmetric_whitening;
mod synapse_learning;
mod table_one;
mod twin;
mod twin_golden;
mod whitener_bad_samples;
mod whitener_change;
mod whitener_channels;
mod whitener_fixed_point;
mod whitener_groups;
mod whitener_inverse;
mod whitener_natural;
mod whitener_reversible;
mod whitener_soak;
mod whitener_streams;
mod whitener_symmetries;
mod whitener_training;
