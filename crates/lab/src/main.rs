//! Runs the command-line laboratory.

fn main() {}
