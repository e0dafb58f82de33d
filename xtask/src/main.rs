//! Development tasks: test, ci, tidy, book, advisories, services, bench, agree, planted, sources, h2spec, autobahn, grpcio, mcp, smuggling, wiremock, conformance, idle, cost, outside, words, axe, gatus, fuzz, gauntlet, fleet, deploy, package.
//!
//! Each step of the continuous integration is one of these, so it runs the same on a laptop. Every
//! external command is printed before it is run.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task runner talks to the person at the terminal"
)]

mod advisories;
mod agree;
mod autobahn;
mod axe;
mod bench;
mod book;
mod chaos_table;
mod ci;
mod clock;
mod compose;
mod conformance;
mod control_group;
mod cost;
mod deploy;
mod fleet;
/// The same that the lab and tests use.
#[path = "../../crates/plimsoll-wire/src/free_port.rs"]
#[expect(unreachable_pub, reason = "it is public in its own crate")]
mod free_port;
mod fuzz;
mod gatus;
mod gauntlet;
mod grpcio;
mod h2spec;
mod idle;
mod instructions;
mod mcp;
mod outside;
mod package;
mod packages;
mod planted;
mod python;
mod server;
mod services;
mod smuggling;
mod sources;
mod step;
mod test;
mod tidy;
mod wiremock;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of plimsoll
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Every test, after installing what they need
    Test(test::Arguments),
    /// What continuous integration runs: fmt, clippy, deny, advisories, docs, tidy, test, deploy
    Ci,
    /// Facts about the workspace that nothing else checks
    Tidy,
    /// Build the documentation site and look for broken links in it
    Book(book::Arguments),
    /// Refresh the copy of rustsec.org's advisories about packages in Cargo.lock, and compare them
    Advisories(advisories::Arguments),
    /// PostgreSQL and ClickHouse for the monitor's store: install, up, down
    Services(services::Arguments),
    /// Gatus's examples loaded, and verdicts of its conditions compared with those of Gatus
    Gatus,
    /// Every page of the monitor by axe-core, light and dark
    Axe,
    /// How often comments and documents use words of spoken language
    Words,
    /// The conformance suite of HTTP/2 against plimsoll up, in the clear and over TLS
    H2spec,
    /// Autobahn's fuzzing client of WebSockets, directly and through the gateway: the same result
    Autobahn(autobahn::Arguments),
    /// A service of Python's grpcio and its client, directly and through the gateway: the same results
    Grpcio,
    /// The reference client of the Model Context Protocol with every tool of plimsoll mcp
    Mcp,
    /// How plimsoll up, nginx, Node and Go answer requests that can be understood in two ways
    Smuggling(smuggling::Arguments),
    /// Print CPU and memory per byte of hostile input for each parser and condition
    Cost,
    /// Run suites of other projects from checkouts of theirs; counts go into docs/conformance.md
    Outside(outside::Arguments),
    /// Run all fuzz targets until a number of executions is reached; resumable
    Fuzz(fuzz::Arguments),
    /// The memory of idle connections, of plimsoll up and nginx
    Idle(idle::Arguments),
    /// Instructions in user space per request of each part, by callgrind, against the repository's figures
    Instructions(instructions::Arguments),
    /// Scripts of ours by k6 and by plimsoll: exit codes, consoles and summaries compared
    Conformance(conformance::Arguments),
    /// What tests do with WireMock's client library, on plimsoll mock and on WireMock
    Wiremock,
    /// A benchmark of bench/, by plimsoll compare
    Bench(bench::Arguments),
    /// What the source documents measure, measured again, into docs/performance.md
    Sources(sources::Arguments),
    /// Our generator beside wrk, oha and h2load: rates, percentiles and counts have to agree
    Agree(agree::Arguments),
    /// Hostile servers with exact logs: no figure that plimsoll prints may be off and unmarked
    Gauntlet(gauntlet::Arguments),
    /// A load of four agents in namespaces of their own, with delays and a clock that is ahead
    Fleet(fleet::Arguments),
    /// Relay TCP with a delay: the network of `fleet`
    #[command(hide = true)]
    Relay(fleet::relay::Arguments),
    /// Unit files, chart, dashboards and alerts of packaging/, held against the programs that read them
    Deploy(deploy::Arguments),
    /// An archive, a Debian package and an image of a static program, with sums and a bill of materials
    Package(package::Arguments),
    /// Whether `compare` finds a planted difference, and none where there is none
    Planted(planted::Arguments),
}

/// A failed task; its message has been, or is, shown.
type Outcome = Result<(), Failure>;

/// Why a task did not succeed.
#[derive(Debug)]
struct Failure(String);

impl<T: Into<String>> From<T> for Failure {
    fn from(message: T) -> Self {
        Self(message.into())
    }
}

fn main() -> ExitCode {
    let root = root();
    let outcome = match Cli::parse().task {
        Task::Test(arguments) => test::run(&root, &arguments),
        Task::Ci => ci::run(&root),
        Task::Tidy => tidy::run(&root),
        Task::Book(arguments) => book::run(&root, &arguments),
        Task::Advisories(arguments) => advisories::run(&root, &arguments),
        Task::Services(arguments) => services::run(&root, &arguments),
        Task::Fuzz(arguments) => fuzz::run(&root, &arguments),
        Task::Gatus => gatus::run(&root),
        Task::Axe => axe::run(&root),
        Task::Words => words::run(&root),
        Task::Autobahn(arguments) => autobahn::run(&root, &arguments),
        Task::Grpcio => grpcio::run(&root),
        Task::Mcp => mcp::run(&root),
        Task::Smuggling(arguments) => smuggling::run(&root, &arguments),
        Task::Wiremock => wiremock::run(&root),
        Task::H2spec => h2spec::run(&root),
        Task::Cost => cost::run(&root),
        Task::Outside(arguments) => outside::run(&root, &arguments),
        Task::Package(arguments) => package::run(&root, &arguments),
        Task::Conformance(arguments) => conformance::run(&root, &arguments),
        Task::Idle(arguments) => idle::run(&root, &arguments),
        Task::Instructions(arguments) => instructions::run(&root, &arguments),
        Task::Bench(arguments) => bench::run(&root, &arguments),
        Task::Agree(arguments) => agree::run(&root, &arguments),
        Task::Planted(arguments) => planted::run(&root, &arguments),
        Task::Deploy(arguments) => deploy::run(&root, &arguments),
        Task::Gauntlet(arguments) => gauntlet::run(&root, &arguments),
        Task::Fleet(arguments) => fleet::run(&root, &arguments),
        Task::Relay(arguments) => fleet::relay::run(&arguments),
        Task::Sources(arguments) => sources::run(&root, &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's directory, which holds this crate's.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}
