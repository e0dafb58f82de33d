//! Files of htpasswd: a line `NAME:HASH` for each user.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::middleware::password_hash::PasswordHash;
use crate::observe::notice::{Notice, Notices, Severity};

/// The file of a `basic_auth`.
#[derive(Debug, Clone)]
pub(crate) struct PasswordFile {
    pub(crate) path: PathBuf,
    /// Users of the configuration, which come before those of the file.
    pub(crate) users: HashMap<String, PasswordHash>,
    pub(crate) notices: Notices,
}

impl PasswordFile {
    /// The users of the configuration and of the file, or every problem that it has.
    pub(crate) fn read(&self) -> Result<HashMap<String, PasswordHash>, Vec<String>> {
        let text = std::fs::read_to_string(&self.path);
        let text =
            text.map_err(|error| vec![format!("cannot read {}: {error}", self.path.display())])?;
        let mut users = self.users.clone();
        let mut problems = Vec::new();
        for line in lines(&text, &self.path) {
            match line {
                // Of several lines for a name the first one counts.
                Ok((name, hash)) => _ = users.entry(name).or_insert(hash),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(users)
        } else {
            Err(problems)
        }
    }

    /// Reports why the users stay as they were.
    pub(crate) fn report(&self, problems: &[String]) {
        for problem in problems {
            let message = format!("{problem}; the users stay as they were");
            self.notices.report(&Notice::new(Severity::Error, message));
        }
    }
}

/// The users of a file; errors begin with the place of the line.
fn lines<'t>(
    text: &'t str,
    path: &'t Path,
) -> impl Iterator<Item = Result<(String, PasswordHash), String>> + 't {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(str::trim_start).zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines.map(move |(line, number)| {
        let place = format!("{}:{number}", path.display());
        let (name, rest) = line
            .split_once(':')
            .ok_or_else(|| format!("{place}: is not `NAME:HASH`"))?;
        // Behind another colon is a comment.
        let hash = rest.split(':').next().unwrap_or_default();
        let is_plain = hash.starts_with("{PLAIN}");
        let hash = if is_plain { hash } else { hash.trim_end() };
        let hash = PasswordHash::parse(hash).map_err(|error| format!("{place}: {error}"))?;
        Ok((name.to_owned(), hash))
    })
}
