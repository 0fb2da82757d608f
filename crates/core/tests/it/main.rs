//! Tests the core from outside: against golden files, against a slow twin, and against the paper's claims.

#![allow(clippy::unwrap_used)]

mod against_twin;
mod bridge;
mod equations;
mod errors;
mod extremes;
mod golden;
mod golden_cases;
mod npz;
mod observers;
mod properties;
mod twin;
mod twin_golden;
