//! Sources of modules.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Longer modules are rejected: bundles of common libraries have 1 to 2 MiB, and parsing time grows with length.
const LONGEST: u64 = 4 << 20;

/// Programs of more modules are rejected: unbundled test suites have some dozens.
pub(crate) const MOST: usize = 1000;

/// Finds modules and their texts.
pub trait Sources {
    /// The name of the module that another one imports by `specifier`.
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, ModuleError>;

    /// The text of a module: JavaScript, or JSON if its name ends in `.json`.
    fn text(&self, name: &str) -> Result<Arc<str>, ModuleError>;
}

/// Why a module cannot be had. Scripts see it as the message of an exception, so the text has its causes.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// A specifier that is no path.
    #[error("`{0}` is no file: modules are imported by paths such as \"./prices.js\"")]
    NoPath(String),
    /// There is nothing at the path.
    #[error("there is no file {}", .0.display())]
    NoFile(PathBuf),
    /// The file, links resolved, lies elsewhere.
    #[error("{} lies outside of {}", path.display(), root.display())]
    Outside {
        /// Of the file.
        path: PathBuf,
        /// What files must be in.
        root: PathBuf,
    },
    /// A folder, or a device.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// Names of modules are texts.
    #[error("the name of {} is not UTF-8", .0.display())]
    NameNotUtf8(PathBuf),
    /// The file is there, but cannot be read.
    #[error("cannot read {name}: {cause}")]
    Read {
        /// Of the module.
        name: String,
        /// Why not.
        cause: io::Error,
    },
    /// The text is longer than allowed.
    #[error("{name} is longer than {mib} MiB")]
    TooLong {
        /// Of the module.
        name: String,
        /// The limit, in MiB.
        mib: u64,
    },
    /// A module of JSON that is not valid.
    #[error("{name} is no JSON: {cause}")]
    NotJson {
        /// Of the module.
        name: String,
        /// Why not.
        cause: serde_json::Error,
    },
    /// Other sources have reasons of their own.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

impl ModuleError {
    /// A reason of other sources.
    pub fn other(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Other(Box::new(error))
    }
}

/// The name of the module that a file is.
///
/// - `found`: its path, links resolved.
pub fn name_of_file(found: &Path) -> Result<String, ModuleError> {
    if !found.is_file() {
        return Err(ModuleError::NotAFile(found.to_owned()));
    }
    let name = found.to_str().map(str::to_owned);
    name.ok_or_else(|| ModuleError::NameNotUtf8(found.to_owned()))
}

/// The text of a module that is a file.
///
/// - `longest`: in bytes.
pub fn text_of_file(name: &str, longest: u64) -> Result<String, ModuleError> {
    let unreadable = |cause| ModuleError::Read {
        name: name.to_owned(),
        cause,
    };
    if fs::metadata(name).map_err(unreadable)?.len() > longest {
        return Err(ModuleError::TooLong {
            name: name.to_owned(),
            mib: longest >> 20,
        });
    }
    fs::read_to_string(name).map_err(unreadable)
}

impl<S: Sources + ?Sized> Sources for Arc<S> {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, ModuleError> {
        (**self).resolve(from, specifier)
    }

    fn text(&self, name: &str) -> Result<Arc<str>, ModuleError> {
        (**self).text(name)
    }
}

/// The modules below a folder: files of JavaScript and JSON in UTF-8. Links are followed only inside.
///
/// Names are paths.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Texts that are not files.
    given: RefCell<BTreeMap<String, Arc<str>>>,
}

impl Folder {
    /// - `root`: links resolved.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            given: RefCell::default(),
        }
    }

    /// Adds a text as a module, as if it lay in the folder under that name, and returns its name among modules.
    pub fn with_text(&self, name: &str, text: &str) -> String {
        let name = self.root.join(name).to_string_lossy().into_owned();
        let mut given = self.given.borrow_mut();
        given.insert(name.clone(), Arc::from(text));
        name
    }

    /// The name of the module that a file is.
    ///
    /// - `path`: absolute, or relative to the folder.
    pub fn name_of(&self, path: &Path) -> Result<String, ModuleError> {
        let path = self.root.join(path);
        let found = path.canonicalize();
        let found = found.map_err(|_| ModuleError::NoFile(path.clone()))?;
        if !found.starts_with(&self.root) {
            let root = self.root.clone();
            return Err(ModuleError::Outside { path, root });
        }
        name_of_file(&found)
    }
}

impl Sources for Folder {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, ModuleError> {
        let is_path = ["./", "../"]
            .iter()
            .any(|start| specifier.starts_with(start));
        if !is_path {
            return Err(ModuleError::NoPath(specifier.to_owned()));
        }
        let directory = Path::new(from).parent().unwrap_or(&self.root);
        self.name_of(&directory.join(specifier))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, ModuleError> {
        if let Some(text) = self.given.borrow().get(name) {
            return Ok(Arc::clone(text));
        }
        text_of_file(name, LONGEST).map(Arc::from)
    }
}

/// The text of a module as JavaScript: JSON is the default export.
pub(crate) fn as_script(name: &str, text: &str) -> Result<String, ModuleError> {
    if Path::new(name).extension().is_none_or(|it| it != "json") {
        return Ok(text.to_owned());
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(format!("export default {text};")),
        Err(cause) => Err(ModuleError::NotJson {
            name: name.to_owned(),
            cause,
        }),
    }
}
