//! A folder of files with `[[monitor]]`, read again when one of them changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::discovery::tables::of_toml;
use crate::discovery::{DiscoverError, ListFuture, Listed, MonitorSource};

/// Reads the files of a folder that end in `.toml`, in the order of their names; not those of folders within it.
pub(super) struct Folder {
    path: PathBuf,
    refresh: Duration,
    files: BTreeMap<PathBuf, Known>,
    /// Whether the next list is looked for later.
    waits: bool,
}

/// A file as it was read last.
struct Known {
    stamp: Stamp,
    listed: Listed,
    /// Why the file as it is now cannot be used; what it had before stays.
    problem: Option<String>,
}

/// When a file changed and how long it is; another one means that it has changed.
type Stamp = (Option<SystemTime>, u64);

impl Folder {
    pub(super) fn new(path: PathBuf, refresh: Duration) -> Self {
        Self {
            path,
            refresh,
            files: BTreeMap::new(),
            waits: false,
        }
    }

    async fn list(&mut self) -> Result<Listed, DiscoverError> {
        if std::mem::replace(&mut self.waits, false) {
            tokio::time::sleep(self.refresh).await;
        }
        let unreadable = |path: &Path| {
            let path = path.display().to_string();
            move |cause| DiscoverError::Read { path, cause }
        };
        let found = stamps(&self.path).map_err(unreadable(&self.path))?;
        self.files.retain(|path, _| found.contains_key(path));
        for (path, stamp) in found {
            let known = self.files.get(&path);
            if known.is_some_and(|known| known.stamp == stamp) {
                continue;
            }
            let text = match fs::read_to_string(&path) {
                Ok(text) => Ok(text),
                // It has gone meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.files.remove(&path);
                    continue;
                }
                Err(error) => Err(error.to_string()),
            };
            let listed = text.and_then(|text| of_toml(&text).map_err(|error| error.to_string()));
            let before = self.files.remove(&path).map(|known| known.listed);
            let (listed, problem) = match listed {
                Ok(listed) => (listed, None),
                Err(problem) => (before.unwrap_or_default(), Some(problem)),
            };
            self.files.insert(
                path,
                Known {
                    stamp,
                    listed,
                    problem,
                },
            );
        }
        self.waits = true;
        let mut all = Listed::default();
        for (path, known) in &self.files {
            let name = path.file_name().unwrap_or_default().display();
            all.definitions
                .extend(known.listed.definitions.iter().cloned());
            let problems = known.listed.problems.iter().chain(&known.problem);
            all.problems
                .extend(problems.map(|problem| format!("{name}: {problem}")));
        }
        Ok(all)
    }
}

/// The files of a folder with their stamps.
fn stamps(folder: &Path) -> io::Result<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden || path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        // Links are followed, as folders of Kubernetes have them.
        match fs::metadata(&path) {
            Ok(facts) if facts.is_file() => {
                found.insert(path, (facts.modified().ok(), facts.len()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl MonitorSource for Folder {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}
