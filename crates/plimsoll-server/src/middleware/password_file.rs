//! Files of htpasswd: a line `NAME:HASH` for each user.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::middleware::password_hash::{HashError, PasswordHash};
use crate::observe::notice::{Notice, Notices, Severity};

/// The file of a `basic_auth`.
#[derive(Debug, Clone)]
pub(crate) struct PasswordFile {
    pub(crate) path: PathBuf,
    /// Users of the configuration, which come before those of the file.
    pub(crate) users: HashMap<String, PasswordHash>,
    pub(crate) notices: Notices,
}

/// What a file has, with the users of the configuration.
#[derive(Debug)]
pub(crate) struct Passwords {
    pub(crate) users: HashMap<String, PasswordHash>,
    /// Users whose hash is of a kind that is not known: old files have some, and the others are to be let in.
    pub(crate) left_out: Vec<PasswordFileError>,
}

/// What is wrong with a file of passwords.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordFileError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line has no colon.
    #[error("{}:{line}: is not `NAME:HASH`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// A hash is of a kind that is not known: its user cannot log in.
    #[error("{}:{line}: {error}; the user is left out", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What it is not.
        error: HashError,
    },
}

impl PasswordFile {
    /// The users of the configuration and of the file, or every problem that it has.
    pub(crate) fn read(&self) -> Result<Passwords, Vec<PasswordFileError>> {
        let text = std::fs::read_to_string(&self.path);
        let text = text.map_err(|error| {
            let path = self.path.clone();
            vec![PasswordFileError::Read { path, error }]
        })?;
        let mut users = self.users.clone();
        let (mut problems, mut left_out) = (Vec::new(), Vec::new());
        for line in lines(&text, &self.path) {
            match line {
                // Of several lines for a name the first one counts.
                Ok((name, hash)) => _ = users.entry(name).or_insert(hash),
                Err(problem @ PasswordFileError::Hash { .. }) => left_out.push(problem),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(Passwords { users, left_out })
        } else {
            Err(problems)
        }
    }

    /// Reports who cannot log in.
    pub(crate) fn report_left_out(&self, left_out: &[PasswordFileError]) {
        for problem in left_out {
            let notice = Notice::new(Severity::Warning, problem.to_string());
            self.notices.report(&notice);
        }
    }

    /// Reports why the users stay as they were.
    pub(crate) fn report(&self, problems: &[PasswordFileError]) {
        for problem in problems {
            let message = format!("{problem}; the users stay as they were");
            self.notices.report(&Notice::new(Severity::Error, message));
        }
    }
}

/// The users of a file.
fn lines<'t>(
    text: &'t str,
    path: &'t Path,
) -> impl Iterator<Item = Result<(String, PasswordHash), PasswordFileError>> + 't {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(str::trim_start).zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines.map(move |(text, line)| {
        let path = || path.to_owned();
        let (name, rest) = text
            .split_once(':')
            .ok_or_else(|| PasswordFileError::Line { path: path(), line })?;
        // Behind another colon is a comment.
        let hash = rest.split(':').next().unwrap_or_default();
        let is_plain = hash.starts_with("{PLAIN}");
        let hash = if is_plain { hash } else { hash.trim_end() };
        let hash = PasswordHash::parse(hash).map_err(|error| PasswordFileError::Hash {
            path: path(),
            line,
            error,
        })?;
        Ok((name.to_owned(), hash))
    })
}
