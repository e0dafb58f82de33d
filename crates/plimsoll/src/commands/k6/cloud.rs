//! `k6 cloud`: refused, as by a k6 without an account.

use super::super::load::script::variable;
use crate::problem::Problem;

/// Refuse what needs an account of Grafana Cloud
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments, which do not matter
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

pub(super) fn refused(args: &Args) -> Problem {
    let command = args.arguments.iter().find(|it| !it.starts_with('-'));
    let command = command.map_or("cloud".to_owned(), |command| format!("cloud {command}"));
    let token = variable("K6_CLOUD_TOKEN");
    let reason = match token {
        None => "there is no token of Grafana Cloud, and plimsoll does not use one",
        Some(_) => "plimsoll does not use K6_CLOUD_TOKEN: it runs no tests in Grafana Cloud",
    };
    Problem::with(&command, reason).hint("run the script here: k6 run")
}
