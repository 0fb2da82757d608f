//! Tests the laboratory as its users meet it: the program, its files and its exit codes.

mod bench;
mod collisions;
mod contexts;
mod figures;
mod fit;
mod hostile_images;
mod inspect;
mod interruption;
mod manual;
mod outputs;
mod photographs;
mod recordings;
mod recordings_edf;
mod recordings_refused;
mod report;
mod reproduce;
mod schema;
mod sources;
mod specs;
mod stacks;
mod usage;
mod values;
mod whiten;
mod whiten_resume;
mod whiten_reversible;
