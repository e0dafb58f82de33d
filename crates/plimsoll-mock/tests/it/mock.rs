//! A mock on an engine.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_mock::{Folder, Mock, MockPlan, SharedMock};
use plimsoll_server::{
    Action, Counters, Engine, EnginePlan, ListenerPlan, MakeAction, Notices, Serves, WorkerContext,
};
use plimsoll_testkit::http::{HttpResponse, request, talk};
use tempfile::TempDir;

/// A folder of files, served.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) shared: Arc<SharedMock>,
    engine: Engine,
}

pub(crate) fn make(shared: &Arc<SharedMock>) -> Arc<MakeAction> {
    let shared = Arc::clone(shared);
    Arc::new(move |_: &WorkerContext| {
        Rc::new(Mock::new(Arc::clone(&shared), "/")) as Rc<dyn Action>
    })
}

/// Writes files, each with its folders.
pub(crate) fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

impl Served {
    /// The files themselves.
    pub(crate) fn folder(files: &[(&str, &str)]) -> Self {
        let folder = self::files(files);
        let plan = MockPlan::of_folder(Folder::new(folder.path()).unwrap());
        Self::start(folder, SharedMock::fixed(plan))
    }

    /// The rules of `rules.toml`.
    pub(crate) fn rules(rules: &str) -> Self {
        Self::rules_with(rules, &[])
    }

    /// The same with files beside it.
    pub(crate) fn rules_with(rules: &str, files: &[(&str, &str)]) -> Self {
        let folder = self::files(files);
        let file = folder.path().join("rules.toml");
        fs::write(&file, rules).unwrap();
        let shared = SharedMock::of_file(&file, &Notices::default())
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        Self::start(folder, shared)
    }

    pub(crate) fn start(folder: TempDir, shared: Arc<SharedMock>) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = ListenerPlan::new(address, Serves::clear(make(&shared)));
        let plan = EnginePlan::new(vec![listener]);
        let engine = Engine::start(&plan, Arc::<Counters>::default()).unwrap();
        Self {
            folder,
            shared,
            engine,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.engine.addresses()[0]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(Path::new(name))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn get(&self, target: &str) -> HttpResponse {
        self.ask("GET", target, &[], "")
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        target: &str,
        fields: &[&str],
        body: &str,
    ) -> HttpResponse {
        request(
            self.address(),
            method,
            target,
            &[&["host: a"], fields].concat(),
            body,
        )
    }

    /// All that comes back until the connection ends.
    pub(crate) fn talk(&self, request: &[u8]) -> Vec<u8> {
        talk(self.address(), request)
    }
}
