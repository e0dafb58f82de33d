//! Sources of modules.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longer modules are rejected: bundles of common libraries have 1 to 2 MiB, and parsing time grows with length.
const LONGEST: u64 = 4 << 20;

/// Programs of more modules are rejected: unbundled test suites have some dozens.
pub(crate) const MOST: usize = 1000;

/// Finds modules and their texts. Failures are for people.
pub trait Sources {
    /// The name of the module that another one imports by `specifier`.
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String>;

    /// The text of a module: JavaScript, or JSON if its name ends in `.json`.
    fn text(&self, name: &str) -> Result<Arc<str>, String>;
}

impl<S: Sources + ?Sized> Sources for Arc<S> {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        (**self).resolve(from, specifier)
    }

    fn text(&self, name: &str) -> Result<Arc<str>, String> {
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
    pub fn name_of(&self, path: &Path) -> Result<String, String> {
        let path = self.root.join(path);
        let found = path
            .canonicalize()
            .map_err(|_| format!("there is no file {}", path.display()))?;
        if !found.starts_with(&self.root) {
            let root = self.root.display();
            return Err(format!("{} lies outside of {root}", path.display()));
        }
        if !found.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        let name = found.to_str();
        name.map(str::to_owned)
            .ok_or_else(|| format!("the name of {} is not UTF-8", found.display()))
    }
}

impl Sources for Folder {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        let is_path = ["./", "../"]
            .iter()
            .any(|start| specifier.starts_with(start));
        if !is_path {
            return Err(format!(
                "`{specifier}` is no file: modules are imported by paths such as \"./prices.js\""
            ));
        }
        let directory = Path::new(from).parent().unwrap_or(&self.root);
        self.name_of(&directory.join(specifier))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, String> {
        if let Some(text) = self.given.borrow().get(name) {
            return Ok(Arc::clone(text));
        }
        let unreadable = |error| format!("cannot read {name}: {error}");
        let length = fs::metadata(name).map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(format!("{name} is longer than {} MiB", LONGEST >> 20));
        }
        let text = fs::read_to_string(name).map_err(unreadable)?;
        Ok(Arc::from(text))
    }
}

/// The text of a module as JavaScript: JSON is the default export.
pub(crate) fn as_script(name: &str, text: &str) -> Result<String, String> {
    if Path::new(name).extension().is_none_or(|it| it != "json") {
        return Ok(text.to_owned());
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(format!("export default {text};")),
        Err(error) => Err(format!("{name} is no JSON: {error}")),
    }
}
