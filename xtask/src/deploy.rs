//! `cargo xtask deploy`: the files of packaging/, held against the programs that read them.
//!
//! - Unit files: `systemd-analyze verify` and `security`; then each command is started as systemd starts it, and has to report that it is ready,
//!   alive, reloading and stopping.
//! - Socket units: the server answers at the socket that systemd opened.
//! - The chart: rendered by Helm and validated against the JSON schemas of the Kubernetes API; selectors, ports and mounts have to meet.
//! - The manifests of `load --kubernetes`: by the same schemas.
//! - The compose file: its commands run, its gateway leads to its site and its mock, and its monitor shows them.
//! - Dashboards and alerts: `promtool`; then Prometheus scrapes running servers, and every query has to find something.

mod chart;
mod compose;
mod fleet;
mod metrics;
mod sockets;
mod units;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::bench::target_directory;
use crate::packages::{self, CURL, PROMETHEUS, SYSTEMD};
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Use this program instead of building plimsoll
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Leave out the chart, whose tools are fetched: Helm by Go, schemas of Kubernetes by pip
    #[arg(long)]
    no_chart: bool,
    /// Use this Helm instead of building it
    #[arg(long, value_name = "FILE", conflicts_with = "no_chart")]
    helm: Option<PathBuf>,
}

/// The task without what it would download, with the program that was built for the tests: with the features of the
/// program alone, all that it is made of would be compiled once more.
pub(crate) fn without_chart(root: &Path) -> Outcome {
    let arguments = Arguments {
        program: Some(target_directory(root)?.join("debug/plimsoll")),
        no_chart: true,
        helm: None,
    };
    run(root, &arguments)
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    packages::install(root, &[SYSTEMD, PROMETHEUS, CURL])?;
    let target = target_directory(root)?;
    let program = if let Some(program) = &arguments.program {
        // Servers run in other folders.
        program
            .canonicalize()
            .map_err(|error| cannot("find", program, &error))?
    } else {
        step::run(root, &mut cargo(&["build", "--locked", "-p", "plimsoll"]))?;
        target.join("debug/plimsoll")
    };
    let directory = target.join(format!("deploy-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| cannot("make", &directory, &error))?;
    let mut outcomes = vec![
        units::check(root, &program, &directory),
        sockets::check(root, &program, &directory),
        compose::check(root, &program, &directory),
        metrics::check(root, &program, &directory),
    ];
    if !arguments.no_chart {
        let helm = arguments.helm.as_deref();
        outcomes.push(chart::check(root, &target, &program, &directory, helm));
        outcomes.push(fleet::check(root, &target, &program, &directory));
    }
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    let failed: Vec<String> = outcomes
        .into_iter()
        .filter_map(Result::err)
        .map(|Failure(message)| message)
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    format!("cannot {verb} {}: {error}", path.display()).into()
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| cannot("read", file, &error))
}

fn write(file: &Path, text: &str) -> Outcome {
    fs::write(file, text).map_err(|error| cannot("write", file, &error))
}
