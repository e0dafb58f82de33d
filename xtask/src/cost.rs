//! `cargo xtask cost`: what hostile input costs each parser and condition, as a table.
//!
//! The same test runs without its table in `cargo xtask test`.

use std::path::Path;

use crate::Outcome;
use crate::step::{self, cargo};

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    // The whole workspace is selected so that nothing is compiled again with other features.
    let arguments = [
        "test",
        "--locked",
        "--workspace",
        "--test",
        "cost",
        "--",
        "--nocapture",
    ];
    step::run(root, &mut cargo(&arguments))
}
