//! The sources of a script and its modules.

pub(crate) mod archive;

pub(crate) mod commonjs;

mod meta;

pub(crate) mod remote;

pub(crate) mod recorded;

pub(crate) mod root;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use plimsoll_script::{Program, Sources, strip_types};

use url::Url;

use crate::script::LIMITS;
use crate::source::commonjs::as_module;
use crate::source::meta::with_resolve;
use crate::source::remote::RemoteModules;
use crate::source::root::FileRoot;

/// Longer modules are rejected: bundles with all their libraries have 1 to 5 MiB.
const LONGEST: u64 = 16 << 20;

/// The modules of k6, with their sources.
const MODULES: [(&str, &str); 27] = [
    ("k6", include_str!("js/k6.js")),
    ("k6/http", include_str!("js/http.js")),
    ("k6/metrics", include_str!("js/metrics.js")),
    ("k6/data", include_str!("js/data.js")),
    ("k6/execution", include_str!("js/execution.js")),
    ("k6/timers", include_str!("js/timers.js")),
    ("k6/encoding", include_str!("js/encoding.js")),
    ("k6/ws", include_str!("js/ws.js")),
    ("k6/websockets", include_str!("js/websockets.js")),
    (
        "k6/experimental/websockets",
        include_str!("js/websockets.js"),
    ),
    ("k6/secrets", include_str!("js/secrets.js")),
    ("k6/x/sse", include_str!("js/sse.js")),
    ("k6/net/grpc", include_str!("js/grpc.js")),
    ("k6/html", include_str!("js/html.js")),
    ("k6/crypto", include_str!("js/crypto.js")),
    ("k6/crypto/x509", include_str!("js/x509.js")),
    ("k6/experimental/csv", include_str!("js/csv.js")),
    ("k6/experimental/fs", include_str!("js/fs.js")),
    ("k6/experimental/streams", include_str!("js/streams.js")),
    ("https://jslib.k6.io/httpx/", include_str!("js/httpx.js")),
    (
        "https://jslib.k6.io/k6-testing/",
        include_str!("js/expect.js"),
    ),
    ("https://jslib.k6.io/k6chaijs/", include_str!("js/chai.js")),
    (
        "https://jslib.k6.io/papaparse/",
        include_str!("js/papaparse.js"),
    ),
    ("https://jslib.k6.io/url/", include_str!("js/url.js")),
    (
        "https://jslib.k6.io/k6-utils/",
        include_str!("js/k6_utils.js"),
    ),
    (
        "https://jslib.k6.io/k6-summary/",
        include_str!("js/k6_summary.js"),
    ),
    (REPORTER, include_str!("js/k6_reporter.js")),
];

/// Modules that others load at their first use, and the globals.
const LIBRARIES: [(&str, &str); 11] = [
    ("bodies", include_str!("js/bodies.js")),
    ("jars", include_str!("js/jars.js")),
    ("pages", include_str!("js/pages.js")),
    ("expectations", include_str!("js/expectations.js")),
    ("globals", include_str!("js/globals.js")),
    ("dom", include_str!("js/dom.js")),
    ("shown", include_str!("js/shown.js")),
    ("subtle", include_str!("js/subtle.js")),
    ("web", include_str!("js/web.js")),
    ("json_path", include_str!("js/json_path.js")),
    // Of blobs.
    ("k6/experimental/streams", include_str!("js/streams.js")),
];

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let compiled = LIBRARIES.iter().map(|(name, _)| {
        let sources = Rc::new(ScriptSources::default());
        let program = Program::compile(sources, &format!("{OWN}{name}"), LIMITS);
        program.expect("modules of this crate are valid")
    });
    compiled.collect()
});

/// A module of this crate that is no module of k6; compiled once for all virtual users.
///
/// Panics if the name is not in the list.
pub(crate) fn own_program(name: &str) -> &'static Program {
    let position = LIBRARIES.iter().position(|(library, _)| *library == name);
    &PROGRAMS[position.expect("libraries are named by this crate")]
}

/// The library that renders a summary as HTML; scripts import it by the raw URL of one of its files.
const REPORTER: &str = "k6-reporter";

/// The prefix of those modules' names, by which they are left out of the stacks of errors.
const OWN: &str = "plimsoll:";

/// Modules that were removed from k6, with what takes their place.
const REMOVED: [(&str, &str); 6] = [
    (
        "k6/experimental/browser",
        "k6/browser, which plimsoll does not support",
    ),
    ("k6/experimental/grpc", "k6/net/grpc"),
    (
        "k6/experimental/timers",
        "the global functions of that name",
    ),
    ("k6/experimental/webcrypto", "the global `crypto`"),
    (
        "k6/experimental/tracing",
        "https://jslib.k6.io/http-instrumentation-tempo/1.0.0/index.js",
    ),
    (
        "k6/experimental/redis",
        "k6/x/redis, which plimsoll does not support",
    ),
];

/// Files, standard input and the modules of k6.
#[derive(Debug, Default)]
pub(crate) struct ScriptSources {
    /// A text that is not a file, by its name.
    pub(crate) given: Option<(String, Arc<str>)>,
    /// Those of other servers; absent where none are fetched.
    pub(crate) remote: Option<Rc<RemoteModules>>,
    /// Where absolute paths begin.
    pub(crate) root: FileRoot,
    /// Texts of the script's modules by name, as they were read.
    pub(crate) read: RefCell<BTreeMap<String, Arc<str>>>,
}

impl Sources for ScriptSources {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        if specifier == "k6" || specifier.starts_with("k6/") {
            return module(specifier);
        }
        if let Some(rest) = specifier.strip_prefix("https://") {
            return self.remote(specifier, rest);
        }
        if specifier.starts_with("http://") {
            return Err(format!(
                "`{specifier}`: modules are imported over https only"
            ));
        }
        let is_remote = from.starts_with(HTTPS);
        if let Some(path) = specifier.strip_prefix("file://")
            && !is_remote
        {
            return self.file(Path::new(path));
        }
        let is_path = ["./", "../", "/"]
            .iter()
            .any(|start| specifier.starts_with(start));
        if !is_path {
            return Err(format!(
                "`{specifier}` is neither a module of k6 nor a path: modules of npm have to be bundled, and paths begin with `./`"
            ));
        }
        if is_remote {
            let joined = Url::parse(from).and_then(|url| url.join(specifier));
            let joined = joined.map_err(|error| format!("`{specifier}`: {error}"))?;
            return self.resolve(from, joined.as_str());
        }
        let directory = Path::new(from).parent().unwrap_or(Path::new("/"));
        self.file(&directory.join(specifier))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, String> {
        if let Some(own) = name.strip_prefix(OWN) {
            let mut all = MODULES.iter().chain(&LIBRARIES);
            let found = all.find(|(module, _)| *module == own);
            let (_, text) = found.ok_or_else(|| format!("there is no module {own}"))?;
            return Ok(Arc::from(*text));
        }
        if let Some((given, text)) = &self.given
            && given == name
        {
            self.note(name, text);
            return Ok(self.finished(name, text));
        }
        if let (true, Some(remote)) = (name.starts_with(HTTPS), &self.remote) {
            let mut text = remote.text(name)?;
            self.note(name, &text);
            let path = Url::parse(name).map(|url| url.path().to_owned());
            let path = path.unwrap_or_default();
            if Path::new(&path).extension().is_some_and(|it| it == "ts") {
                let stripped = strip_types(&text);
                text = stripped.map_err(|error| format!("{name}:{error}"))?.into();
            }
            return Ok(self.finished(name, &text));
        }
        let unreadable = |error| format!("cannot read {name}: {error}");
        let length = std::fs::metadata(name).map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(format!("{name} is longer than {} MiB", LONGEST >> 20));
        }
        let mut text = std::fs::read_to_string(name).map_err(unreadable)?;
        self.note(name, &text);
        if Path::new(name).extension().is_some_and(|it| it == "ts") {
            text = strip_types(&text).map_err(|error| format!("{name}:{error}"))?;
        }
        Ok(self.finished(name, &text))
    }
}

fn module(specifier: &str) -> Result<String, String> {
    if MODULES.iter().any(|(name, _)| *name == specifier) {
        return Ok(format!("{OWN}{specifier}"));
    }
    if specifier == "k6/browser" || specifier.starts_with("k6/browser/") {
        return Err(format!(
            "`{specifier}`: browser automation is not supported by plimsoll; run this script with k6"
        ));
    }
    if let Some((_, instead)) = REMOVED.iter().find(|(name, _)| *name == specifier) {
        return Err(format!("`{specifier}` was removed from k6; use {instead}"));
    }
    let known = MODULES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| name.starts_with("k6"));
    let known = known.collect::<Vec<_>>().join(", ");
    Err(format!(
        "`{specifier}` is not supported by plimsoll, which has {known}"
    ))
}

impl ScriptSources {
    /// Keeps the text of a module for an archive.
    fn note(&self, name: &str, text: &str) {
        self.read
            .borrow_mut()
            .insert(name.to_owned(), Arc::from(text));
    }

    /// The name of the module in a file.
    fn file(&self, path: &Path) -> Result<String, String> {
        let place = self.root.place(path)?;
        let found: PathBuf = place
            .canonicalize()
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if !found.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        let name = found.to_str();
        name.map(str::to_owned)
            .ok_or_else(|| format!("the name of {} is not UTF-8", found.display()))
    }

    /// The text of a script's module as the engine compiles it.
    fn finished(&self, name: &str, text: &str) -> Arc<str> {
        let made = as_module(name, text, |specifier| self.resolve(name, specifier));
        with_resolve(name, made)
    }

    /// The name of a module of another server.
    fn remote(&self, specifier: &str, rest: &str) -> Result<String, String> {
        if let Some(library) = library(rest) {
            return Ok(library);
        }
        if self.remote.is_some() {
            let url = Url::parse(specifier).map_err(|error| format!("`{specifier}`: {error}"))?;
            return Ok(url.to_string());
        }
        let libraries = MODULES
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(JSLIB));
        let built_in: Vec<_> = libraries.map(|name| name.trim_end_matches('/')).collect();
        let built_in = built_in.join(", ");
        Err(format!(
            "`{specifier}`: remote modules are not fetched here; save the file beside the script and import it by its path ({built_in} of jslib.k6.io, and k6-reporter, are built in)"
        ))
    }
}

/// Libraries that many scripts import by URL are built in.
///
/// - `rest`: of the URL, behind `https://`.
fn library(rest: &str) -> Option<String> {
    if rest.contains("/k6-reporter/") && rest.ends_with("/bundle.js") {
        return Some(format!("{OWN}{REPORTER}"));
    }
    let found = MODULES.iter().find(|(name, _)| {
        let path = name.strip_prefix("https://");
        path.is_some_and(|path| rest.starts_with(path) && rest.ends_with("/index.js"))
    });
    found.map(|(name, _)| format!("{OWN}{name}"))
}

const HTTPS: &str = "https://";

/// The prefix of the URLs of k6's libraries.
const JSLIB: &str = "https://jslib.k6.io/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_javascript_are_typescript_too() {
        for (name, text) in MODULES.iter().chain(&LIBRARIES) {
            let stripped = strip_types(text).unwrap_or_else(|error| panic!("{name}:{error}"));
            for (is, was) in stripped.lines().zip(text.lines()) {
                // Imports for their effect alone have no names.
                assert_eq!(is, was, "{name}");
            }
        }
    }
}
