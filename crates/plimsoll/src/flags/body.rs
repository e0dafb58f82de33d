//! The body of a request, from the command line or a file.

use std::path::{Path, PathBuf};

use super::Problems;

/// `-d` and `-D`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BodyArgs {
    /// Request body, or `@FILE` as in curl
    #[arg(
        short = 'd',
        long = "data",
        value_name = "TEXT",
        conflicts_with = "data_file"
    )]
    data: Option<String>,

    /// Request body from a file; `-` for standard input
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<PathBuf>,
}

impl BodyArgs {
    /// Whether there is a body.
    pub(crate) fn is_given(&self) -> bool {
        self.data.is_some() || self.data_file.is_some()
    }

    /// Values of `-d`.
    pub(super) fn text(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// The bytes of the body; none where there is none, or where its file cannot be read.
    pub(crate) fn read(&self, problems: &mut Problems) -> Option<Vec<u8>> {
        match (&self.data, &self.data_file) {
            (Some(text), _) => match text.strip_prefix('@') {
                Some(file) => problems.file_or_stdin("-d", Path::new(file)),
                None => Some(text.clone().into_bytes()),
            },
            (None, Some(file)) => problems.file_or_stdin("-D", file),
            (None, None) => None,
        }
    }
}
