//! Where modules come from.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Longer modules are refused.
const LONGEST: u64 = 4 << 20;

/// More modules than these are refused.
const MOST: usize = 1000;

/// Finds modules and their texts. Failures are for people.
pub trait Sources {
    /// The name of the module that another one imports by `specifier`.
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String>;

    /// The text of a module.
    fn text(&self, name: &str) -> Result<Arc<str>, String>;
}

/// Modules that were read before.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    texts: BTreeMap<String, Arc<str>>,
    /// What a module imports, by its name and the specifier.
    resolved: BTreeMap<(String, String), String>,
}

impl Modules {
    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }

    /// Adds those of another one; they take the place of what has the same name.
    pub fn add(&mut self, other: &Self) {
        self.texts.extend(
            other
                .texts
                .iter()
                .map(|(name, text)| (name.clone(), Arc::clone(text))),
        );
        self.resolved.extend(
            other
                .resolved
                .iter()
                .map(|(from, to)| (from.clone(), to.clone())),
        );
    }
}

impl Sources for RefCell<Modules> {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        let modules = self.borrow();
        let key = (from.to_owned(), specifier.to_owned());
        let name = modules.resolved.get(&key);
        name.cloned()
            .ok_or_else(|| format!("`{specifier}` was not imported when {from} was loaded"))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, String> {
        let modules = self.borrow();
        let text = modules.texts.get(name).map(Arc::clone);
        text.ok_or_else(|| format!("there is no module {name}"))
    }
}

/// The modules below a folder: files of JavaScript and JSON in UTF-8. Links are followed only inside.
///
/// Names are paths. What is read is kept.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    kept: Rc<RefCell<Modules>>,
}

impl Folder {
    /// - `root`: links resolved.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            kept: Rc::default(),
        }
    }

    /// Has a text as one of the modules, as if it lay in the folder under that name, and answers its name among modules.
    pub fn with_text(&self, name: &str, text: &str) -> String {
        let name = self.root.join(name).to_string_lossy().into_owned();
        let mut kept = self.kept.borrow_mut();
        kept.texts.insert(name.clone(), Arc::from(text));
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

    /// What was read so far.
    pub fn kept(&self) -> Modules {
        self.kept.borrow().clone()
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
        let name = self.name_of(&directory.join(specifier))?;
        let mut kept = self.kept.borrow_mut();
        let key = (from.to_owned(), specifier.to_owned());
        kept.resolved.insert(key, name.clone());
        Ok(name)
    }

    fn text(&self, name: &str) -> Result<Arc<str>, String> {
        if let Some(text) = self.kept.borrow().texts.get(name) {
            return Ok(Arc::clone(text));
        }
        if self.kept.borrow().texts.len() >= MOST {
            return Err(format!("more than {MOST} modules are imported"));
        }
        let unreadable = |error| format!("cannot read {name}: {error}");
        let length = fs::metadata(name).map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(format!("{name} is longer than {} MiB", LONGEST >> 20));
        }
        let text = fs::read_to_string(name).map_err(unreadable)?;
        let text: Arc<str> = Arc::from(text);
        let mut kept = self.kept.borrow_mut();
        kept.texts.insert(name.to_owned(), Arc::clone(&text));
        Ok(text)
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
