//! Every problem of a command line, so that all of them are reported at once.

use std::error::Error;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// Bodies and URL lists are held in memory.
const LARGEST_FILE: u64 = 1 << 30;

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(crate) fn add(&mut self, flag: &str, message: impl ToString) {
        self.push(Problem::with(flag, message));
    }

    /// Notes the problem of an `Err` and goes on.
    pub(crate) fn value<T, E: Into<Box<dyn Error>>>(
        &mut self,
        flag: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        result
            .map_err(|error| {
                let problem = Problem::caused_by(&*error.into());
                self.push(problem.about(flag));
            })
            .ok()
    }

    /// Header fields, each of the form `Name: value`.
    pub(crate) fn header_fields(&mut self, flag: &str, texts: &[String]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        for text in texts {
            match text
                .split_once(':')
                .map(|(name, value)| (name.trim(), value.trim()))
            {
                Some((name, value)) if !name.is_empty() => {
                    fields.push((name.to_owned(), value.to_owned()));
                }
                _ => self.add(flag, format!("`{text}` is not of the form `Name: value`")),
            }
        }
        fields
    }

    /// The content of a file that `flag` names.
    pub(crate) fn file(&mut self, flag: &str, path: &Path) -> Option<Vec<u8>> {
        self.value(flag, Self::read(path))
    }

    /// The same, with `-` for standard input.
    pub(crate) fn file_or_stdin(&mut self, flag: &str, path: &Path) -> Option<Vec<u8>> {
        if path != Path::new("-") {
            return self.file(flag, path);
        }
        let mut content = Vec::new();
        let read = io::stdin().take(LARGEST_FILE).read_to_end(&mut content);
        self.value(
            flag,
            read.map_err(|error| format!("cannot read standard input: {error}")),
        )?;
        Some(content)
    }

    /// The content of a file.
    pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
        let read = fs::metadata(path).and_then(|metadata| {
            if metadata.len() > LARGEST_FILE {
                return Err(io::Error::other("larger than 1 GiB"));
            }
            fs::read(path)
        });
        read.map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// The compiled value; absent if there was a problem.
    pub(crate) fn unless_any<T>(self, compiled: Option<T>) -> Result<T, Failed> {
        match compiled {
            Some(compiled) if self.0.is_empty() => Ok(compiled),
            _ => Err(Failed {
                exit: Exit::Usage,
                problems: self.0,
            }),
        }
    }
}
