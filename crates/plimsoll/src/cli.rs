//! The command line as a whole.

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::{Command, LoadtestArgs};
#[cfg(feature = "site")]
use crate::commands::{PackedArgs, ServeArgs};

/// Find the load line of HTTP services
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    about,
    propagate_version = true,
    styles = STYLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The flags that `-h` shows, by command; `--help` shows all. Commands that are not listed show all in both.
const SHORT_HELP: &[(&str, &[&str])] = &[
    (
        "gateway",
        &[
            "to",
            "balance",
            "sticky",
            "upstream-http2",
            "health",
            "retries",
            "host",
            "listen",
            "port",
            "admin",
            "tls",
            "cert",
            "key",
            "http3",
            "print-config",
        ],
    ),
    (
        "load",
        &[
            "connections",
            "requests",
            "duration",
            "rate",
            "threads",
            "method",
            "header",
            "data",
            "from",
            "expect",
            "threshold",
            "pid",
            "http2",
            "verbose",
            "json",
            "out",
        ],
    ),
    #[cfg(feature = "monitor")]
    (
        "monitor",
        &[
            "check",
            "listen",
            "port",
            "admin",
            "tls",
            "cert",
            "key",
            "access-log",
            "print-config",
        ],
    ),
    (
        "check",
        &[
            "method",
            "header",
            "data",
            "basic-auth",
            "location",
            "compressed",
            "expect",
            "timeout",
            "http2",
            "http3",
            "insecure",
            "cacert",
            "resolve",
            "grpc",
            "json",
        ],
    ),
    (
        "line",
        &[
            "objective",
            "first",
            "most",
            "window",
            "connections",
            "at-least",
            "method",
            "header",
            "data",
            "expect",
            "pid",
            "spawn",
            "http2",
            "insecure",
            "json",
            "out",
        ],
    ),
    (
        "compare",
        &[
            "name",
            "trials",
            "seconds",
            "connections",
            "driver",
            "url",
            "server",
            "ready",
            "drive",
            "fail-if-slower",
            "json",
            "out",
        ],
    ),
    (
        "loadtest",
        &[
            "concurrency",
            "duration",
            "timeout",
            "ramp-up",
            "http2",
            "disable-keepalive",
            "netns",
            "fleet",
            "agents",
            "sign",
            "json",
            "no-tui",
        ],
    ),
    (
        "soak",
        &[
            "pid", "observe", "spawn", "url", "metrics", "load", "workers", "duration", "sample",
            "scenario", "list", "out", "json",
        ],
    ),
    (
        "serve",
        &[
            "live",
            "fallback",
            "spa",
            "listing",
            "dialect",
            "redirects",
            "no-compress",
            "listen",
            "port",
            "tls",
            "cert",
            "key",
            "http3",
            "threads",
            "access-log",
            "print-config",
        ],
    ),
    (
        "mock",
        &[
            "import",
            "record",
            "out",
            "init",
            "admin",
            "listen",
            "port",
            "tls",
            "cert",
            "key",
            "threads",
            "access-log",
            "print-config",
        ],
    ),
];

/// The error without commands that `--help` does not list either, in what it suggests.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let command = Cli::command();
    let is_listed = |name: &String| {
        let found = command.find_subcommand(name);
        !found.is_some_and(clap::Command::is_hide_set)
    };
    let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) else {
        return error;
    };
    let names: Vec<String> = names
        .iter()
        .filter(|name| is_listed(name))
        .cloned()
        .collect();
    if names.is_empty() {
        error.remove(ContextKind::SuggestedSubcommand);
    } else {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(names),
        );
    }
    error
}

/// Hides rarely used flags from `-h`.
fn with_short_help(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| {
        let listed = SHORT_HELP
            .iter()
            .find(|(name, _)| *name == subcommand.get_name());
        let Some((_, common)) = listed else {
            return subcommand;
        };
        subcommand.mut_args(|argument| {
            let is_common = argument.is_positional()
                || argument
                    .get_long()
                    .is_some_and(|long| common.contains(&long));
            let hides = !is_common && !matches!(argument.get_id().as_str(), "help" | "version");
            argument.hide_short_help(hides)
        })
    })
}

impl Cli {
    /// Parses the arguments of this process.
    pub(crate) fn parse_arguments() -> Result<Self, clap::Error> {
        let matches = with_short_help(Self::command())
            .try_get_matches()
            .map_err(without_hidden)?;
        Self::from_arg_matches(&matches)
    }

    /// The command line without the commands that plimsoll only starts itself, for what is generated from it.
    pub(crate) fn public_command() -> clap::Command {
        let whole = Self::command();
        let shown = whole.get_subcommands().filter(|it| !it.is_hide_set());
        clap::Command::new("plimsoll")
            .version(env!("CARGO_PKG_VERSION"))
            .about(whole.get_about().cloned().unwrap_or_default())
            .propagate_version(true)
            .disable_help_subcommand(true)
            .subcommand_required(true)
            .subcommands(shown.cloned().collect::<Vec<_>>())
    }
}

/// The command line of `plimsoll load` with a script, whose flags are those of k6.
#[cfg(feature = "k6")]
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll load",
    bin_name = "plimsoll load",
    version,
    about,
    styles = STYLES
)]
pub(crate) struct ScriptCli {
    #[command(flatten)]
    pub(crate) args: crate::commands::ScriptArgs,
}

/// The command line under the name `k6`.
#[cfg(feature = "k6")]
#[derive(Debug, Parser)]
#[command(
    name = "k6",
    bin_name = "k6",
    version = crate::commands::K6_VERSION.as_str(),
    about = "Load test with the scripts and the commands of k6, by plimsoll",
    styles = STYLES
)]
pub(crate) struct K6Cli {
    #[command(flatten)]
    pub(crate) args: crate::commands::K6Args,
}

/// The command line of `loadtest`.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version, about, styles = STYLES)]
pub(crate) struct LoadtestCli {
    #[command(flatten)]
    pub(crate) args: LoadtestArgs,
}

/// The command line of a packed site.
#[cfg(feature = "site")]
#[derive(Debug, Parser)]
#[command(version, about = "Serves the site that this program carries.", styles = STYLES)]
pub(crate) struct PackedCli {
    #[command(flatten)]
    pub(crate) args: PackedArgs,
}

/// The command line under the name of another server.
#[cfg(feature = "site")]
#[derive(Debug, Parser)]
#[command(version, styles = STYLES)]
pub(crate) struct ServeCli {
    #[command(flatten)]
    pub(crate) args: ServeArgs,
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        LoadtestCli::command().debug_assert();
        #[cfg(feature = "k6")]
        {
            ScriptCli::command().debug_assert();
            K6Cli::command().debug_assert();
        }
        #[cfg(feature = "site")]
        ServeCli::command().debug_assert();
    }

    #[test]
    fn short_help_lists_flags_that_exist_and_fits_a_screen() {
        /// Lines of a terminal that need no scrolling.
        const MOST: usize = 40;
        let command = with_short_help(Cli::command());
        for (name, flags) in SHORT_HELP {
            let subcommand = command.find_subcommand(name).unwrap();
            for flag in *flags {
                let known = subcommand
                    .get_arguments()
                    .any(|it| it.get_long() == Some(flag));
                assert!(known, "{name} --{flag}");
            }
        }
        for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let help = subcommand.clone().term_width(100).render_help().to_string();
            let lines = help.lines().count();
            assert!(
                lines <= MOST,
                "{} has {lines} lines:\n{help}",
                subcommand.get_name()
            );
        }
    }

    #[test]
    fn summaries_are_imperative() {
        for subcommand in Cli::public_command().get_subcommands() {
            let about = subcommand
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let verb = about.split(' ').next().unwrap_or_default();
            assert!(!verb.ends_with('s') && !about.ends_with('.'), "{about}");
        }
    }

    #[test]
    fn every_flag_is_documented() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let documented = argument
                    .get_help()
                    .is_some_and(|help| !help.to_string().is_empty());
                assert!(documented, "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
