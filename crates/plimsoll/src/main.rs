//! The command line.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Finds the load line of HTTP services: load tests with the cost per request.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(commands::compare::Arguments),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Compare(arguments) => commands::compare::run(&arguments),
    }
}
