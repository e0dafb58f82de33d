//! `cargo xtask axe`: every page of the monitor, looked at by axe-core in Chromium, light and dark.

use std::path::Path;
use std::process::Command;

use crate::packages;
use crate::step;
use crate::{Outcome, bench};

const VERSION: &str = "4.11.0";

/// Runs the task; fails if axe-core finds something.
pub(crate) fn run(root: &Path) -> Outcome {
    packages::install(root, &[packages::CHROMIUM, packages::NPM])?;
    let folder = bench::target_directory(root)?.join("axe");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    if !file.is_file() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-fund", "--no-audit", "--prefix"])
            .arg(&folder)
            .arg(format!("axe-core@{VERSION}"));
        step::run(root, &mut npm)?;
    }
    let mut test = step::cargo(&["test", "--locked", "-p", "plimsoll", "--test", "it"]);
    test.args(["--", "accessible::", "--ignored", "--nocapture"])
        .env("PLIMSOLL_AXE", &file);
    step::run(root, &mut test)
}
