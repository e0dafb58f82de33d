//! `plimsoll schema`: the JSON Schemas of what others write and read.

use plimsoll_server::config::SCHEMA;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Print the JSON Schema of configuration files, for editors
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Document
    #[arg(value_enum, default_value = "server")]
    of: Of,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Of {
    /// Configuration files of `plimsoll up`
    Server,
    /// Responses of the mock's admin API
    #[cfg(feature = "serve")]
    MockAdmin,
    /// Answers of `plimsoll observe`
    Observe,
    /// Configuration files of `plimsoll monitor`
    #[cfg(feature = "monitor")]
    Monitor,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let schema = match args.of {
        Of::Server => SCHEMA,
        #[cfg(feature = "serve")]
        Of::MockAdmin => plimsoll_mock::ADMIN_SCHEMA,
        Of::Observe => plimsoll_observe::SCHEMA,
        #[cfg(feature = "monitor")]
        Of::Monitor => plimsoll_monitor::config::SCHEMA,
    };
    terminal::print(schema.trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
