//! Tests the laboratory as its users meet it: the program, its files and its exit codes.

mod bench;
mod figures;
mod interruption;
mod report;
mod reproduce;
mod schema;
mod specs;
mod stacks;
mod usage;
