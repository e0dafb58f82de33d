//! A script as rules have it: read once, with all that it imports, and tried before anybody asks.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_script::{Folder, Handler, Limits, Modules, Runtime, ScriptError, Sources};
use plimsoll_wire::SystemClock;

use super::Text;
use super::host::MockHost;
use crate::store::Store;
use crate::teller::Teller;

/// What its modules may take to run once.
const LOADING: Duration = Duration::from_secs(2);

/// Goes around every handler: makes the request and the context of what came, and an answer of what comes back.
const PRELUDE: &str = include_str!("prelude.js");

/// What stands in a rule is called so.
const INLINE: &str = "respond.javascript.text";

/// A module whose default export answers requests.
#[derive(Debug)]
pub struct Script {
    /// Of its module, in `modules`.
    pub(super) name: String,
    pub(super) modules: Modules,
    pub(super) time: Duration,
    /// Of segments of the path, with their numbers.
    pub(super) names: Vec<(String, usize)>,
    root: PathBuf,
    shown: String,
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
    ) -> Result<(Self, Vec<PathBuf>), String> {
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
        let mut script = Self {
            name,
            modules: Modules::default(),
            time,
            names: names.to_owned(),
            root: root.to_owned(),
            shown,
        };
        let host = Rc::new(MockHost::new(Store::default(), Arc::new(Teller::default())));
        let loaded = runtime(Rc::clone(&folder) as Rc<dyn Sources>, host)
            .and_then(|runtime| script.load_into(&runtime));
        loaded.map_err(|error| script.told(&error))?;
        script.modules = folder.kept();
        let files = script.modules.names().filter(|name| !name.contains('#'));
        let files = files.map(PathBuf::from).collect();
        Ok((script, files))
    }

    /// What it is called.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn load_into(&self, runtime: &Runtime) -> Result<Handler, ScriptError> {
        runtime.load(&self.name, LOADING)
    }

    /// A mistake as its author knows the files.
    pub(super) fn told(&self, error: &ScriptError) -> String {
        let inline = self
            .name
            .rsplit_once('#')
            .map(|(_, number)| format!("#{number}"));
        let root = format!("{}/", self.root.display());
        let text = error.to_string().replace(&root, "");
        match inline {
            Some(number) => text.replace(&number, ""),
            None => text,
        }
    }
}

/// A runtime of a mock.
pub(super) fn runtime(
    sources: Rc<dyn Sources>,
    host: Rc<MockHost>,
) -> Result<Runtime, ScriptError> {
    let runtime = Runtime::new(Limits::default(), Rc::new(SystemClock), sources, host)?;
    runtime.prelude(PRELUDE)?;
    Ok(runtime)
}

/// The same with the modules of scripts, to which more may be added.
pub(super) fn runtime_of(
    modules: &Rc<RefCell<Modules>>,
    host: &Rc<MockHost>,
) -> Result<Runtime, ScriptError> {
    let sources = Rc::clone(modules) as Rc<dyn Sources>;
    runtime(sources, Rc::clone(host))
}
