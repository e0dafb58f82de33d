//! The command line as a whole.

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{CommandFactory, Parser};

use crate::commands::{Command, LoadtestArgs, PackedArgs, ServeArgs};

/// Finds the load line of HTTP services.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    about,
    propagate_version = true,
    disable_help_subcommand = true,
    styles = STYLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
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

/// The command line of `loadtest`.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version, about, styles = STYLES)]
pub(crate) struct LoadtestCli {
    #[command(flatten)]
    pub(crate) args: LoadtestArgs,
}

/// The command line of a packed site.
#[derive(Debug, Parser)]
#[command(version, about = "Serves the site that this program carries.", styles = STYLES)]
pub(crate) struct PackedCli {
    #[command(flatten)]
    pub(crate) args: PackedArgs,
}

/// The command line under the name of another server.
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
        ServeCli::command().debug_assert();
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
