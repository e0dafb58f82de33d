//! Files that scripts open while they are loaded, and what is made of them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_formats::grpc::Descriptors;

use crate::protocol::grpc::DescribeError;
use crate::source::archive::relative;
use crate::source::root::{FileRoot, OutsideOfArchive};

/// Folders for imports, and files that are relative to them.
type ProtoFiles = (Vec<String>, Vec<String>);

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Outside(#[from] OutsideOfArchive),
    #[error("open({}): it is a directory", .0.display())]
    Directory(PathBuf),
    #[error("open({}): {cause}", shown.display())]
    Read { shown: PathBuf, cause: io::Error },
}

/// Files that the script has opened, read once.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Paths are relative to it.
    pub(crate) directory: PathBuf,
    root: FileRoot,
    read: Mutex<HashMap<PathBuf, Arc<Vec<u8>>>>,
    /// Descriptors of gRPC by the folders and files that they were made of.
    described: Mutex<HashMap<ProtoFiles, Descriptors>>,
}

impl Files {
    pub(crate) fn new(directory: PathBuf, root: FileRoot) -> Self {
        Self {
            directory,
            root,
            read: Mutex::default(),
            described: Mutex::default(),
        }
    }

    /// The descriptors of these files, made once for all virtual users.
    pub(crate) fn described(
        &self,
        imports: &[String],
        files: &[String],
        compile: impl FnOnce() -> Result<Descriptors, DescribeError>,
    ) -> Result<Descriptors, DescribeError> {
        let key = (imports.to_vec(), files.to_vec());
        let mut described = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = described.get(&key) {
            return Ok(found.clone());
        }
        let made = compile()?;
        described.insert(key, made.clone());
        Ok(made)
    }

    /// A path of the script, absolute and without `..`, as k6 makes it: by its text alone.
    fn absolute(&self, folder: &str, name: &str) -> PathBuf {
        let folder = folder.strip_prefix("file://").unwrap_or(folder);
        let path = self.directory.join(folder).join(name);
        let normal = relative(&path.to_string_lossy());
        normal.map_or(path, |normal| Path::new("/").join(normal))
    }

    /// Where a `.proto` file of that name may be on this machine.
    ///
    /// - `imports`: folders; without any, it is that of the script.
    pub(crate) fn proto_places(&self, imports: &[String], name: &str) -> Vec<PathBuf> {
        let here = [String::new()];
        let imports = if imports.is_empty() {
            &here[..]
        } else {
            imports
        };
        let paths = imports.iter().map(|folder| self.absolute(folder, name));
        paths
            .filter_map(|path| self.root.place(&path).ok())
            .collect()
    }

    pub(crate) fn open(&self, path: &str) -> Result<Arc<Vec<u8>>, OpenError> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let shown = self.absolute("", path);
        let path = self.root.place(&shown)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = read.get(&path) {
            return Ok(Arc::clone(bytes));
        }
        let shown = self.root.shown(&shown);
        if path.is_dir() {
            return Err(OpenError::Directory(shown));
        }
        let bytes = std::fs::read(&path).map_err(|cause| OpenError::Read { shown, cause })?;
        let bytes = Arc::new(bytes);
        read.insert(path, Arc::clone(&bytes));
        Ok(bytes)
    }

    /// Contents of everything that was read so far, by absolute path: what `open()` had, and the `.proto` files of gRPC.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Arc<Vec<u8>>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: BTreeMap<_, _> = read
            .iter()
            .map(|(path, content)| (path.clone(), Arc::clone(content)))
            .collect();
        let described = self.described.lock();
        let described = described.unwrap_or_else(PoisonError::into_inner);
        for ((imports, _), descriptors) in described.iter() {
            for name in descriptors.file_names() {
                for path in self.proto_places(imports, &name) {
                    // Those of Google are part of every implementation; descriptor sets were opened.
                    if let Ok(content) = std::fs::read(&path) {
                        all.insert(path, Arc::new(content));
                    }
                }
            }
        }
        all
    }
}
