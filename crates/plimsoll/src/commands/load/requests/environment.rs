//! The environment of an `.http` file: values of its variables that editors keep beside it.

use std::path::{Path, PathBuf};

use plimsoll_formats::{Environment, Template, environments};

use crate::flags::Problems;
use crate::problem::Problem;

/// Files of environments, the more private ones last: their values win.
const FILES: [&str; 3] = [
    ".vscode/settings.json",
    "http-client.env.json",
    "http-client.private.env.json",
];

/// Folders that are looked in, from that of the file of requests upwards.
const MOST_FOLDERS: usize = 8;

/// The environments that were found beside a file of requests.
#[derive(Debug, Default)]
pub(super) struct Environments {
    found: Vec<(PathBuf, Environment)>,
    /// Files that cannot be used. They matter to those requests alone that need a value.
    wrong: Vec<Problem>,
}

impl Environments {
    /// Those of the nearest folder that has one of each kind of file.
    pub(super) fn find(path: &Path) -> Self {
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        for name in FILES {
            let folders = path.ancestors().skip(1).take(MOST_FOLDERS);
            let mut candidates = folders.map(|folder| folder.join(name));
            let Some(file) = candidates.find(|candidate| candidate.is_file()) else {
                continue;
            };
            let bytes = match Problems::read(&file) {
                Ok(bytes) => bytes,
                Err(error) => {
                    wrong.push(Problem::with("--env", error));
                    continue;
                }
            };
            match environments(&String::from_utf8_lossy(&bytes)) {
                Ok(environments) => {
                    found.extend(environments.into_iter().map(|it| (file.clone(), it)));
                }
                // The settings of an editor need not have any.
                Err(_) if name == FILES[0] => {}
                Err(error) => {
                    let message = format!("{} {error}", file.display());
                    wrong.push(Problem::with("--env", message));
                }
            }
        }
        Self { found, wrong }
    }

    /// The values of the environment `name`; without a name, those of the only one.
    ///
    /// Returns a note beside them if several could be meant.
    pub(super) fn choose(
        self,
        name: Option<&str>,
        problems: &mut Problems,
    ) -> (Vec<(String, Template)>, Option<Problem>) {
        let mut names: Vec<_> = self.found.iter().map(|(_, it)| it.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        if name.is_some() {
            for problem in &self.wrong {
                problems.push(problem.clone());
            }
        }
        let chosen = match (name, names.as_slice()) {
            (Some(name), names) => {
                if !names.iter().any(|known| known == name) {
                    let problem =
                        Problem::with("--env", format!("there is no environment `{name}`"));
                    problems.push(match names {
                        [] => problem.hint("they are read from http-client.env.json or .vscode/settings.json, beside the file of requests or above it"),
                        names => problem.hint(format!("there are {}", names.join(", "))),
                    });
                    return (Vec::new(), None);
                }
                name.to_owned()
            }
            (None, [only]) => only.clone(),
            (None, []) => return (Vec::new(), self.wrong.into_iter().next()),
            (None, names) => {
                let file = self
                    .found
                    .first()
                    .map(|(file, _)| file.display().to_string());
                let message = format!(
                    "{} has the environments {}",
                    file.unwrap_or_default(),
                    names.join(", ")
                );
                let note = Problem::with("--from", message).hint("choose one with --env");
                return (Vec::new(), Some(note));
            }
        };
        let values = self.found.into_iter().filter(|(_, it)| it.name == chosen);
        (values.flat_map(|(_, it)| it.values).collect(), None)
    }
}
