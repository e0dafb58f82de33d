//! `cargo xtask test`: every test, with what it needs.

use std::path::Path;

use clap::Args;

use crate::packages::{self, Package};
use crate::step;
use crate::{Outcome, bench, chaos_table, services};

/// What is tested
#[derive(Debug, Default, Args)]
pub(crate) struct Arguments {
    /// Only these packages (all of them without)
    #[arg(short, long = "package", value_name = "NAME")]
    packages: Vec<String>,

    /// Passed on to the tests
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Programs that tests run against.
const NEEDED: [Package; 12] = [
    packages::NGINX,
    packages::WRK,
    packages::NGHTTPD,
    packages::CADDY,
    packages::APACHE,
    packages::CHROMIUM,
    packages::PYTHON,
    packages::PEBBLE,
    packages::NGTCP2,
    packages::OPENSSL,
    packages::STRACE,
    packages::ZSTD,
];

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    packages::install(root, &NEEDED)?;
    services::install(root)?;
    // All failures of a run are reported, not those of the first crate that has one.
    let mut command = step::cargo(&["test", "--locked", "--no-fail-fast"]);
    if arguments.packages.is_empty() {
        command.arg("--workspace");
    }
    for package in &arguments.packages {
        command.args(["--package", package]);
    }
    if !arguments.rest.is_empty() {
        command.arg("--").args(&arguments.rest);
    }
    let chaos = bench::target_directory(root)?.join("tmp/chaos");
    chaos_table::clear(&chaos);
    let outcome = step::run(root, &mut command);
    let table = chaos_table::table(&chaos);
    if !table.is_empty() {
        println!("\nhostile clients, and what the server does about them\n\n{table}\n");
    }
    outcome
}
