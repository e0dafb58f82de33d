//! The sources of a script and its modules.

pub(crate) mod archive;

pub(crate) mod commonjs;

pub(crate) mod error;

mod meta;

pub(crate) mod remote;

pub(crate) mod required;

pub(crate) mod recorded;

pub(crate) mod root;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use plimsoll_script::{
    Limits, ModuleError, Program, Sources, name_of_file, strip_types, text_of_file,
};

use url::Url;

use crate::source::commonjs::{as_module, imported, importing, is_commonjs};
use crate::source::error::SourceError;
use crate::source::meta::with_resolve;
use crate::source::remote::{RemoteError, RemoteModules};
use crate::source::root::FileRoot;

/// Bounds of the VM of each virtual user.
pub(crate) const LIMITS: Limits = Limits {
    memory: 1 << 30,
    stack: 256 << 10,
};

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
    (SUMMARIES, include_str!("js/k6_summary.js")),
    (REPORTER, include_str!("js/k6_reporter.js")),
];

/// Modules that others load at their first use, and the globals.
const LIBRARIES: [(&str, &str); 14] = [
    ("bodies", include_str!("js/bodies.js")),
    ("jars", include_str!("js/jars.js")),
    ("pages", include_str!("js/pages.js")),
    ("expectations", include_str!("js/expectations.js")),
    ("globals", include_str!("js/globals.js")),
    ("constructors", include_str!("js/constructors.js")),
    ("dom", include_str!("js/dom.js")),
    ("require", include_str!("js/require.js")),
    ("shown", include_str!("js/shown.js")),
    ("subtle", include_str!("js/subtle.js")),
    ("summaries", include_str!("js/summaries.js")),
    ("web", include_str!("js/web.js")),
    ("json_path", include_str!("js/json_path.js")),
    // Of blobs.
    ("k6/experimental/streams", include_str!("js/streams.js")),
];

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let compiled = LIBRARIES.iter().map(|(name, _)| {
        let sources = Rc::new(ScriptSources::new(None, None, FileRoot::default()));
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

/// The library that renders a summary as text, whose versions differ.
const SUMMARIES: &str = "https://jslib.k6.io/k6-summary/";

/// The library that renders a summary as HTML; scripts import it by the raw URL of one of its files.
const REPORTER: &str = "k6-reporter";

/// The prefix of those modules' names, by which they are left out of the stacks of errors.
pub(crate) const OWN: &str = "plimsoll:";

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
#[derive(Debug)]
pub(crate) struct ScriptSources {
    /// A text that is not a file, by its name.
    given: Option<(String, Arc<str>)>,
    /// Those of other servers; absent where none are fetched.
    remote: Option<RemoteModules>,
    /// Whether modules are CommonJS, by their names.
    commonjs: Mutex<HashMap<String, bool>>,
    /// Warnings for the user.
    warnings: Mutex<Vec<String>>,
    /// Where absolute paths begin.
    root: FileRoot,
    /// Texts of the script's modules by name, as they were read.
    read: Mutex<BTreeMap<String, Arc<str>>>,
}

impl Sources for ScriptSources {
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, ModuleError> {
        if specifier == "k6" || specifier.starts_with("k6/") {
            return Ok(module(specifier)?);
        }
        if let Some(rest) = specifier.strip_prefix("https://") {
            return Ok(self.remote(specifier, rest)?);
        }
        if specifier.starts_with("http://") {
            return Err(SourceError::Insecure(specifier.to_owned()).into());
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
            return Err(SourceError::NoPath(specifier.to_owned()).into());
        }
        if is_remote {
            let joined = Url::parse(from).and_then(|url| url.join(specifier));
            let joined = joined.map_err(|cause| SourceError::Url {
                specifier: specifier.to_owned(),
                cause,
            })?;
            return self.resolve(from, joined.as_str());
        }
        let directory = Path::new(from).parent().unwrap_or(Path::new("/"));
        self.file(&directory.join(specifier))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, ModuleError> {
        if let Some(own) = name.strip_prefix(OWN) {
            let (module, version) = match own.strip_prefix(SUMMARIES) {
                Some(version) => (SUMMARIES, version),
                None => (own, ""),
            };
            let mut all = MODULES.iter().chain(&LIBRARIES);
            let found = all.find(|(name, _)| *name == module);
            let (_, text) = found.ok_or_else(|| SourceError::NoOwnModule(own.to_owned()))?;
            if module == SUMMARIES {
                return Ok(text
                    .replace("\"VERSION\"", &format!("\"{version}\""))
                    .into());
            }
            return Ok(Arc::from(*text));
        }
        let text = self.javascript(name)?;
        let made = if self.is_commonjs(name, &text) {
            as_module(name, &text).into()
        } else if self.imports_commonjs(name, &text) {
            let is_commonjs = |specifier: &str| self.is_commonjs_at(name, specifier);
            let made = importing(&text, is_commonjs);
            let made = made.map_err(|cause| SourceError::CommonJs {
                name: name.to_owned(),
                cause,
            });
            made?.into()
        } else {
            text
        };
        Ok(with_resolve(name, made))
    }
}

fn module(specifier: &str) -> Result<String, SourceError> {
    if MODULES.iter().any(|(name, _)| *name == specifier) {
        return Ok(format!("{OWN}{specifier}"));
    }
    if specifier == "k6/browser" || specifier.starts_with("k6/browser/") {
        return Err(SourceError::Browser(specifier.to_owned()));
    }
    if let Some((_, instead)) = REMOVED.iter().find(|(name, _)| *name == specifier) {
        return Err(SourceError::Removed {
            specifier: specifier.to_owned(),
            instead,
        });
    }
    let known = MODULES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| name.starts_with("k6"));
    let known = known.collect::<Vec<_>>().join(", ");
    Err(SourceError::Unsupported {
        specifier: specifier.to_owned(),
        known,
    })
}

impl ScriptSources {
    /// Keeps the text of a module for an archive.
    fn note(&self, name: &str, text: &str) {
        let read = self.read.lock();
        let mut read = read.unwrap_or_else(PoisonError::into_inner);
        read.insert(name.to_owned(), Arc::from(text));
    }

    /// Texts of the script's modules by name, as they were read so far.
    pub(crate) fn read(&self) -> BTreeMap<String, Arc<str>> {
        let read = self.read.lock();
        read.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name of the module in a file.
    fn file(&self, path: &Path) -> Result<String, ModuleError> {
        let place = self.root.place(path);
        let place = place.map_err(SourceError::OutsideOfArchive)?;
        let found = place.canonicalize().map_err(|cause| SourceError::Path {
            path: path.to_owned(),
            cause,
        })?;
        name_of_file(&found)
    }

    /// - `given`: a text that is not a file, by its name.
    /// - `remote`: modules of other servers; absent fetches none.
    /// - `root`: where absolute paths begin.
    pub(crate) fn new(
        given: Option<(String, Arc<str>)>,
        remote: Option<RemoteModules>,
        root: FileRoot,
    ) -> Self {
        Self {
            given,
            remote,
            root,
            read: Mutex::default(),
            commonjs: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// What the user should know about the modules that were loaded.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock();
        warnings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The text of a script's module, without types.
    fn javascript(&self, name: &str) -> Result<Arc<str>, ModuleError> {
        let is_typed = |path: &str| Path::new(path).extension().is_some_and(|it| it == "ts");
        let stripped = |text: Arc<str>, path: &str| {
            if !is_typed(path) {
                return Ok(text);
            }
            let stripped = strip_types(&text).map_err(|cause| SourceError::TypeScript {
                name: name.to_owned(),
                cause,
            });
            Ok(Arc::from(stripped?))
        };
        if let Some((given, text)) = &self.given
            && given == name
        {
            self.note(name, text);
            return Ok(Arc::clone(text));
        }
        if let (true, Some(remote)) = (name.starts_with(HTTPS), &self.remote) {
            let text = match remote.text(name) {
                Err(error @ RemoteError::Fetch { .. }) => self.stand_in(name, error)?,
                text => text.map_err(SourceError::Remote)?,
            };
            self.note(name, &text);
            let path = Url::parse(name).map(|url| url.path().to_owned());
            return stripped(text, &path.unwrap_or_default());
        }
        let text = text_of_file(name, LONGEST)?;
        self.note(name, &text);
        stripped(text.into(), name)
    }

    /// The module of this crate in place of one that cannot be fetched.
    fn stand_in(&self, name: &str, error: RemoteError) -> Result<Arc<str>, ModuleError> {
        let library = name.strip_prefix(HTTPS).and_then(library);
        let Some(library) = library else {
            return Err(SourceError::Remote(error).into());
        };
        let warning = format!("{error}; plimsoll's own module takes its place");
        let warnings = self.warnings.lock();
        let mut warnings = warnings.unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
        drop(warnings);
        self.text(&library)
    }

    fn is_commonjs(&self, name: &str, text: &str) -> bool {
        let known = self.commonjs.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(is_commonjs) = known.get(name) {
            return *is_commonjs;
        }
        let is_commonjs = is_commonjs(name, text);
        known.insert(name.to_owned(), is_commonjs);
        is_commonjs
    }

    /// Whether the module that another one imports by `specifier` is CommonJS.
    fn is_commonjs_at(&self, from: &str, specifier: &str) -> bool {
        // What is missing is reported where it is imported.
        let Ok(name) = self.resolve(from, specifier) else {
            return false;
        };
        if name.starts_with(OWN) {
            return false;
        }
        let text = self.javascript(&name);
        text.is_ok_and(|text| self.is_commonjs(&name, &text))
    }

    fn imports_commonjs(&self, name: &str, text: &str) -> bool {
        let mut specifiers = imported(text);
        specifiers.any(|specifier| self.is_commonjs_at(name, specifier))
    }

    /// The name of a module of another server.
    fn remote(&self, specifier: &str, rest: &str) -> Result<String, SourceError> {
        let is_fetched = self.remote.is_some();
        if let Some(library) = library(rest).filter(|_| !is_fetched || !runs_as_is(rest)) {
            return Ok(library);
        }
        if is_fetched {
            let url = Url::parse(specifier).map_err(|cause| SourceError::Url {
                specifier: specifier.to_owned(),
                cause,
            });
            return Ok(url?.to_string());
        }
        let libraries = MODULES
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(JSLIB));
        let built_in: Vec<_> = libraries.map(|name| name.trim_end_matches('/')).collect();
        Err(SourceError::NotFetched {
            specifier: specifier.to_owned(),
            built_in: built_in.join(", "),
        })
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
    let (name, _) = found?;
    if *name != SUMMARIES {
        return Some(format!("{OWN}{name}"));
    }
    let version = rest.rsplit('/').nth(1).unwrap_or_default();
    let is_version = version
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_version.then(|| format!("{OWN}{name}{version}"))
}

/// Whether a library runs as its authors wrote it where it can be fetched: its texts, which name the checks of a run, are its own.
///
/// - `rest`: of the URL, behind `https://`.
fn runs_as_is(rest: &str) -> bool {
    let libraries = ["jslib.k6.io/k6chaijs/", "jslib.k6.io/k6-testing/"];
    libraries.iter().any(|library| rest.starts_with(library))
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
