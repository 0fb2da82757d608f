//! Tests the core from outside: against golden files, against a slow twin, and against the paper's claims.

mod against_twin;
mod bridge;
mod contexts;
mod ensemble;
mod golden;
mod golden_cases;
mod npz;
mod twin;
mod twin_golden;
