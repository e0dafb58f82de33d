//! Processes of an experiment: started on given cores, measured, and never left behind.
//!
//! Linux only: it relies on process descriptors and /proc.

mod group;
mod pinning;
mod tail;
mod tree;

pub use group::SpawnError;
pub(crate) use group::{Finished, ProcessGroup};
pub(crate) use tree::{TreeSample, sample};
