//! Reproduces the paper and works on files: everything in Leukos that reads, writes or draws.
//!
//! [`cli`] has a file for each verb, and [`usage`] is its error for wrong usage; [`data`] reads and writes,
//! [`files`] makes sure that no file is lost,
//! [`contexts`] makes covariances of images and recordings, [`recording`] knows their formats, [`fitting`] makes models
//! of them, [`whitening`] whitens them, [`live`] shows them while it does, and [`inspection`] looks into both ([`channels`], [`words`]); `catalogue` lists the figures, [`experiment`] turns
//! a spec into runs and runs into results; [`findings`] reads those back, [`figures`] draws them, and [`report`] sets
//! them beside what others found ([`references`]). [`threads`] do the work side by side.

mod catalogue;
pub mod channels;
pub mod cli;
pub mod contexts;
pub mod data;
pub mod experiment;
pub mod figures;
pub mod files;
pub mod findings;
pub mod fitting;
pub mod inspection;
pub mod live;
pub mod outlook;
pub mod recording;
pub mod references;
pub mod report;
pub mod threads;
pub mod usage;
pub mod whitening;
pub mod words;
