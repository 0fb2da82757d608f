//! Tests the laboratory as its users meet it: the program, its files and its exit codes.

mod bench;
mod interruption;
mod reproduce;
mod schema;
mod specs;
mod stacks;
mod usage;
