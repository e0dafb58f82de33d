//! Scripts to start from (`load --new`).

use std::fs::File;
use std::io::{self, Write as _};

use clap::ValueEnum;

use crate::problem::Problem;

/// Which script to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// One request with a check and thresholds
    Minimal,
    /// Scenarios, groups, setup and teardown
    Protocol,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Minimal => include_str!("templates/minimal.js"),
            Self::Protocol => include_str!("templates/protocol.js"),
        }
    }

    /// The script, with its name in the comments.
    ///
    /// - `path`: of the file that it is for.
    pub(crate) fn script(self, path: &str) -> String {
        self.text().replace("FILE", path)
    }

    /// Writes the script; a file that exists is never replaced.
    pub(super) fn write(self, path: &str) -> Result<(), Problem> {
        if path == "-" {
            let text = self.script("script.js");
            let written = io::stdout().write_all(text.as_bytes());
            return written.map_err(|error| Problem::with("--new", error.to_string()));
        }
        let failed = |error: io::Error| {
            let reason = match error.kind() {
                io::ErrorKind::AlreadyExists => "it exists; give another name".to_owned(),
                _ => error.to_string(),
            };
            Problem::with("--new", format!("cannot write {path}: {reason}"))
        };
        let mut file = File::create_new(path).map_err(failed)?;
        let text = self.script(path);
        file.write_all(text.as_bytes()).map_err(failed)
    }
}
