//! A script as rules have it: read once, with all that it imports, and tried before anybody asks.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_script::{Folder, Limits, ModuleError, Program, ScriptError, Sources, Stacks};

use super::Text;
use super::engine::Engine;
use super::host::MockHost;
use crate::script::notice_limiter::NoticeLimiter;
use crate::store::Store;

/// Of every VM of a mock.
pub(super) const LIMITS: Limits = Limits {
    memory: 32 << 20,
    stack: 512 << 10,
};

/// The name of a script within a rule.
const INLINE: &str = "respond.javascript.text";

/// A module whose default export answers requests.
#[derive(Debug)]
pub struct Script {
    pub(super) program: Program,
    pub(super) time: Duration,
    /// Of segments of the path, with their numbers.
    pub(super) names: Vec<(String, usize)>,
    root: PathBuf,
    shown: String,
}

/// Why a script cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScriptLoadError {
    /// The file cannot be a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// It is no valid script, as its author knows the files.
    #[error("{0}")]
    Script(String),
}

impl Script {
    /// Reads a script and runs its modules once, so that mistakes are known. The files that it consists of come with it.
    ///
    /// - `root`: what files must be in, links resolved.
    /// - `time`: that it may take for a request.
    /// - `names`: of segments of the path, with their numbers.
    pub fn load(
        text: Text<'_>,
        root: &Path,
        time: Duration,
        names: &[(String, usize)],
    ) -> Result<(Self, Vec<PathBuf>), ScriptLoadError> {
        let folder = Rc::new(Folder::new(root));
        let (name, shown) = match text {
            Text::File(path) => {
                let path = path.trim_start_matches('/');
                (folder.name_of(path.as_ref())?, path.to_owned())
            }
            Text::Inline(text) => {
                // Each is a module of its own.
                static COUNT: AtomicU64 = AtomicU64::new(0);
                let count = COUNT.fetch_add(1, Ordering::Relaxed);
                let name = folder.with_text(&format!("{INLINE}#{count}"), text);
                (name, "a function of JavaScript".to_owned())
            }
        };
        let described =
            |error: ScriptError| ScriptLoadError::Script(as_written(&error, &name, root));
        let program = Program::compile(Rc::clone(&folder) as Rc<dyn Sources>, &name, LIMITS);
        let program = program.map_err(described)?;
        let script = Self {
            program,
            time,
            names: names.to_owned(),
            root: root.to_owned(),
            shown,
        };
        let host = Rc::new(MockHost::new(
            Store::default(),
            Arc::new(NoticeLimiter::default()),
        ));
        let engine = Engine::new(&Stacks::new(LIMITS), &host);
        let tried = engine.and_then(|mut engine| engine.handler(&script).map(drop));
        tried.map_err(described)?;
        let files = script.program.names().filter(|name| !name.contains('#'));
        let files = files.map(PathBuf::from).collect();
        Ok((script, files))
    }

    /// Its name.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// An error as the author of the rules knows the files.
    pub(super) fn describe(&self, error: &ScriptError) -> String {
        as_written(error, self.program.entry(), &self.root)
    }
}

/// - `name`: of the first module.
fn as_written(error: &ScriptError, name: &str, root: &Path) -> String {
    let inline = name
        .rsplit_once('#')
        .map(|(_, number)| format!("#{number}"));
    let root = format!("{}/", root.display());
    let text = error.to_string().replace(&root, "");
    match inline {
        Some(number) => text.replace(&number, ""),
        None => text,
    }
}
