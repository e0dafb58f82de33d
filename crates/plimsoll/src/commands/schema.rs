//! `plimsoll schema`: the JSON Schemas of what others write and read.

use plimsoll_server::config::SCHEMA;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Prints the JSON Schema of the files that `plimsoll up` serves, for editors, or of something else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Of what
    #[arg(value_enum, default_value = "server")]
    of: Of,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Of {
    /// The files that `plimsoll up` serves
    Server,
    /// What the admin API of mocks answers
    MockAdmin,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let schema = match args.of {
        Of::Server => SCHEMA,
        Of::MockAdmin => plimsoll_mock::ADMIN_SCHEMA,
    };
    terminal::print(schema.trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
