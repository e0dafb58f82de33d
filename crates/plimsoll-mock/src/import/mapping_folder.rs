//! The folder that mappings were read from, into which those of the admin API are saved.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_wire::files;
use serde_json::Value;

use super::mapping::id_of;

/// A folder of mappings, one file each, as WireMock keeps them.
#[derive(Debug, Clone)]
pub(crate) struct MappingFolder {
    /// Its path, links resolved.
    mappings: PathBuf,
    /// The folder of contents.
    bodies: PathBuf,
    /// By the ids of mappings.
    files: HashMap<String, MappingFile>,
    /// Whether a file was written or removed since they were read.
    is_changed: Arc<AtomicBool>,
}

/// The file of a mapping.
#[derive(Debug, Clone)]
struct MappingFile {
    path: PathBuf,
    /// Whether it has no other mapping.
    is_single: bool,
}

/// Why a mapping is not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// Its file has others too.
    #[error("{0} holds several mappings, and is not written: give each its own file")]
    Shared(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, #[source] io::Error),
}

impl MappingFolder {
    /// - `bodies`: where contents lie; the folder `__files` beside the mappings if there is none.
    pub(super) fn new(mappings: &Path, bodies: Option<&Path>) -> Self {
        let mappings = mappings
            .canonicalize()
            .unwrap_or_else(|_| mappings.to_owned());
        let beside = || mappings.with_file_name("__files");
        Self {
            bodies: bodies.map_or_else(beside, Path::to_owned),
            files: HashMap::new(),
            is_changed: Arc::default(),
            mappings,
        }
    }

    /// The folder that holds those of mappings and contents.
    pub(crate) fn folder(&self) -> PathBuf {
        let parent = self.mappings.parent();
        parent.unwrap_or(&self.mappings).to_owned()
    }

    /// The folder of contents, which is there once something was saved in it.
    pub(crate) fn bodies(&self) -> &Path {
        &self.bodies
    }

    /// Whether a file was written or removed since they were read.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed.load(Ordering::Acquire)
    }

    /// Notes where a mapping was read.
    pub(super) fn note(&mut self, mapping: &Value, path: &Path, is_single: bool) {
        if let Some(id) = id_of(mapping) {
            let path = path.to_owned();
            self.files.insert(id, MappingFile { path, is_single });
        }
    }

    /// Writes a mapping into its file, or into a new one that is called after its name and id.
    pub(crate) fn save(&self, mapping: &Value) -> Result<(), SaveError> {
        let id = id_of(mapping).unwrap_or_default();
        let path = match self.files.get(&id) {
            Some(file) if !file.is_single => return Err(SaveError::Shared(file.path.clone())),
            Some(file) => file.path.clone(),
            None => self
                .mappings
                .join(format!("{}.json", file_name(mapping, &id))),
        };
        self.is_changed.store(true, Ordering::Release);
        write(&path, format!("{mapping:#}\n").as_bytes())
    }

    /// Removes the file of a mapping, if it is alone in it.
    ///
    /// - `mapping`: with its id.
    pub(crate) fn remove(&self, mapping: &Value) -> Result<(), SaveError> {
        let id = id_of(mapping).unwrap_or_default();
        let path = match self.files.get(&id) {
            Some(file) if !file.is_single => return Err(SaveError::Shared(file.path.clone())),
            Some(file) => file.path.clone(),
            // It was saved a moment ago, and not read again yet.
            None => self
                .mappings
                .join(format!("{}.json", file_name(mapping, &id))),
        };
        self.is_changed.store(true, Ordering::Release);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SaveError::Write(path, error))
            }
            _ => Ok(()),
        }
    }

    /// Writes the content of a mapping's response; its name below the folder of contents is returned.
    pub(crate) fn save_content(
        &self,
        mapping: &Value,
        extension: &str,
        content: &[u8],
    ) -> Result<String, SaveError> {
        let id = id_of(mapping).unwrap_or_default();
        let name = format!("{}.{extension}", file_name(mapping, &id));
        let created = fs::create_dir_all(&self.bodies);
        created.map_err(|error| SaveError::Write(self.bodies.clone(), error))?;
        write(&self.bodies.join(&name), content)?;
        Ok(name)
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), SaveError> {
    files::replace(path, content).map_err(|error| SaveError::Write(path.to_owned(), error))
}

/// The longest name of a file without its id, in characters.
const LONGEST_NAME: usize = 120;

/// Such as `orders_7-ID`; no path.
fn file_name(mapping: &Value, id: &str) -> String {
    let name = mapping["name"].as_str().unwrap_or("mapping");
    let plain = |it: char| match it {
        it if it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_') => {
            it.to_ascii_lowercase()
        }
        _ => '-',
    };
    let name: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    match name.trim_matches(['.', '-']) {
        "" => id.to_owned(),
        name => format!("{name}-{id}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "76ada7b0-49ae-4229-91c4-396a36f18e09";

    #[test]
    fn a_mapping_is_written_into_its_file_and_removed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let mappings = folder.path().join("mappings");
        fs::create_dir(&mappings).unwrap();
        let mapping = json!({ "id": ID, "name": "../Orders 7/", "response": {} });
        let mut known = MappingFolder::new(&mappings, None);
        known.save(&mapping).unwrap();
        let file = mappings.join(format!("orders-7-{ID}.json"));
        let read = |file: &Path| serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap();
        assert_eq!(read(&file), mapping);
        known.remove(&mapping).unwrap();
        assert!(!file.exists());
        known.remove(&mapping).unwrap();

        let own = mappings.join("own.json");
        known.note(&mapping, &own, true);
        known.save(&mapping).unwrap();
        assert_eq!(read(&own), mapping);
        known.note(&mapping, &own, false);
        assert!(matches!(known.save(&mapping), Err(SaveError::Shared(_))));
        assert!(matches!(known.remove(&mapping), Err(SaveError::Shared(_))));

        let name = known.save_content(&mapping, "txt", b"x").unwrap();
        assert_eq!(
            fs::read(folder.path().join("__files").join(name)).unwrap(),
            b"x"
        );
    }
}
