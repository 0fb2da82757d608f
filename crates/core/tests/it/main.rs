//! Tests the core from outside: against golden files, against a slow twin, and against the paper's claims.

mod against_twin;
mod bridge;
mod golden;
mod golden_cases;
mod npz;
mod synapse_learning;
mod twin;
mod twin_golden;
