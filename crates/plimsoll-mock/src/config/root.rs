//! `apimock.toml`: where to listen, which sets of rules, which folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::document::{Document, Table, Value, as_text};

use super::set::Gathered;
use super::{FileProblem, MockFile, directory_of, is_same, read, set};
use crate::config::plan::{BODY_LIMIT, MockPlan};
use crate::folder::Folder;
use crate::middleware::{OPERATIONS, RhaiMiddleware};
use crate::rules::{RuleSet, Strategy};
use crate::store::states::States;
use crate::worker::sharing::Sharing;

/// Addresses and TLS settings that a file asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listener {
    /// In the clear, or over TLS if that has no separate port; absent if the file does not say.
    pub address: Option<(String, u16)>,
    /// With TLS.
    pub tls: Option<TlsListener>,
}

/// TLS addresses and certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsListener {
    /// A certificate in PEM, with those that vouch for it.
    pub certificate: PathBuf,
    /// Its key in PEM.
    pub key: PathBuf,
    /// Its port beside the other one; absent if it takes that one's place.
    pub port: Option<u16>,
    /// For a handshake.
    pub handshake_timeout: Option<Duration>,
    /// Connections at a time.
    pub connections: Option<usize>,
}

/// Whether a file holds rules, not the names of such files.
pub(super) fn is_set(text: &str) -> bool {
    let mut document = Document::parse(text);
    let root = document.root();
    let of_root = ["listener", "log", "service", "file_tree_view"];
    let of_set = ["rules", "rule", "collections", "collection", "openapi"];
    of_set.iter().any(|key| root.has(key)) && !of_root.iter().any(|key| root.has(key))
}

/// - `changed`: a set of rules with the text that stands for it.
pub(super) fn compile(
    file: &Path,
    text: &str,
    changed: Option<(&Path, &str)>,
    states: &States,
) -> Result<MockFile, Vec<FileProblem>> {
    let mut document = Document::parse(text);
    let mut root = document.root();
    let listener = root.table("listener").map(listener);
    log(root.table("log"));
    let editor = root.table("file_tree_view");
    let directory = directory_of(file);
    let service = match root.table("service") {
        None => {
            root.missing(
                "service",
                "such as [service] with fallback_respond_dir = \".\"",
            );
            None
        }
        Some(table) => Some(service(table, &directory)),
    };
    if let Some(mut table) = editor {
        // Only an editor looks at them.
        for key in ["show_hidden", "builtin_excludes", "respect_gitignore"] {
            table.boolean(key);
        }
        for key in ["extra_excludes", "include"] {
            if let Some(value) = table.take_value(key) {
                value.texts_with(|_| None);
            }
        }
        table.finish();
    }
    root.finish();
    let mut problems: Vec<_> = FileProblem::all(file, document.into_problems()).collect();
    let mut service = service.unwrap_or_default();
    let mut files = vec![file.to_owned()];
    let mut gathered = Gathered {
        states: states.clone(),
        ..Gathered::default()
    };
    let mut sets: Vec<RuleSet> = Vec::new();
    for path in &service.sets {
        files.push(path.clone());
        let changed = changed.filter(|(set, _)| is_same(set, path));
        match changed.map_or_else(|| read(path), |(_, text)| Ok(text.to_owned())) {
            Err(problem) => problems.push(problem),
            Ok(text) => {
                let compiled =
                    set::compile(path, &text, &directory, service.strategy, &mut gathered);
                sets.extend(compiled.0);
                problems.extend(compiled.1);
            }
        }
    }
    let mut middlewares = Vec::new();
    for path in &service.middlewares {
        files.push(path.clone());
        match RhaiMiddleware::load(path, service.operations) {
            Ok(middleware) => middlewares.push(middleware),
            Err(error) => problems.push(FileProblem::in_middleware(path, error)),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    files.extend(gathered.named());
    let listener = listener.flatten().unwrap_or_default();
    let key = listener.tls.as_ref().map(|tls| tls.key.clone());
    let hidden = || files.iter().cloned().chain(key.clone());
    let folder = service.folder.take().map(|folder| folder.hiding(hidden()));
    let middlewares = middlewares.into_iter().map(|it| it.hiding(hidden()));
    Ok(MockFile {
        plan: MockPlan {
            sets: sets.into_iter().map(Arc::new).collect(),
            middlewares: middlewares.collect(),
            folder,
            sharing: Sharing {
                is_on: true,
                credentials: service.origins,
            },
            body_limit: service.body_limit.unwrap_or(BODY_LIMIT),
            collections: gathered.collections,
            openapi: gathered.openapi,
            states: states.clone(),
            files,
            others: gathered.others.into_iter().collect(),
            mappings: None,
        },
        listener,
    })
}

#[derive(Default)]
struct Service {
    strategy: Option<Strategy>,
    sets: Vec<PathBuf>,
    middlewares: Vec<PathBuf>,
    /// Limit of each middleware.
    operations: u64,
    folder: Option<Folder>,
    origins: Vec<String>,
    body_limit: Option<u64>,
}

fn service(mut table: Table<'_>, directory: &Path) -> Service {
    let strategy = table.take_value("strategy").and_then(set::strategy);
    let mut sets = Vec::new();
    if let Some(value) = table.take_value("rule_sets") {
        for value in value.elements() {
            let Some(path) = as_text(&value) else {
                continue;
            };
            let path = directory.join(path);
            if path.is_file() {
                sets.push(path);
            } else {
                value.wrong::<()>(format!("there is no file {}", path.display()));
            }
        }
    }
    let mut middlewares = Vec::new();
    if let Some(value) = table.take_value("middlewares") {
        for value in value.elements() {
            let Some(path) = as_text(&value) else {
                continue;
            };
            let path = directory.join(path);
            if path.is_file() {
                middlewares.push(path);
            } else {
                value.wrong::<()>(format!("there is no file {}", path.display()));
            }
        }
    }
    let folder = match table.take_value("fallback_respond_dir") {
        None => {
            table.missing(
                "fallback_respond_dir",
                "a folder, such as fallback_respond_dir = \".\"",
            );
            None
        }
        Some(value) => as_text(&value).and_then(|path| folder(&value, path, directory)),
    };
    let origins = table
        .take_value("cors_allow_credentials_origins")
        .and_then(|value| {
            value.texts_with(|origin| {
                let is_origin = origin.starts_with("http://") || origin.starts_with("https://");
                (!is_origin || origin.ends_with('/'))
                    .then(|| format!("`{origin}` is not an origin such as https://app.example"))
            })
        });
    let body_limit = table.count("max_request_body_bytes", 0..=1 << 40);
    let operations = table.count("middleware_max_operations", 0..=usize::MAX >> 1);
    table.finish();
    Service {
        strategy,
        sets,
        middlewares,
        operations: operations.map_or(OPERATIONS, |most| most as u64),
        folder,
        origins: origins.unwrap_or_default(),
        body_limit: body_limit.and_then(|limit| u64::try_from(limit).ok()),
    }
}

/// The folder; exactly `.` is the working directory, everything else relative to the file.
fn folder(value: &Value<'_>, path: &str, directory: &Path) -> Option<Folder> {
    let path = if path == "." {
        PathBuf::from(".")
    } else {
        directory.join(path)
    };
    let folder = Folder::new(&path);
    value.check(folder.map_err(|error| format!("cannot serve {}: {error}", path.display())))
}

fn log(table: Option<Table<'_>>) {
    let Some(mut table) = table else { return };
    match table.table("verbose") {
        None => table.missing(
            "verbose",
            "such as verbose = { header = true, body = true }",
        ),
        Some(mut verbose) => {
            for key in ["header", "body"] {
                if verbose.boolean(key).is_none() && !verbose.was_given(key) {
                    verbose.missing(key, "true or false");
                }
            }
            verbose.finish();
        }
    }
    table.finish();
}

fn listener(mut table: Table<'_>) -> Option<Listener> {
    let host = table.take_value("ip_address").and_then(|value| {
        let text = as_text(&value)?;
        let is_host = !text.is_empty() && !text.contains([' ', '/']);
        if is_host {
            value.text()
        } else {
            value.wrong("is neither an address nor a name")
        }
    });
    let port = table
        .count("port", 0..=65535)
        .and_then(|port| u16::try_from(port).ok());
    for key in ["ip_address", "port"] {
        if !table.was_given(key) {
            table.missing(key, "ip_address and port, such as \"127.0.0.1\" and 3001");
        }
    }
    let tls = table.table("tls").map(tls);
    table.finish();
    let tls = match tls {
        None => None,
        Some(tls) => Some(tls?),
    };
    Some(Listener {
        address: Some((host?, port?)),
        tls,
    })
}

fn tls(mut table: Table<'_>) -> Option<TlsListener> {
    let mut file = |key: &'static str| {
        let path = table.text(key).map(PathBuf::from);
        if path.is_none() && !table.was_given(key) {
            table.missing(key, "a file in PEM");
        }
        path
    };
    let (certificate, key) = (file("cert"), file("key"));
    let port = table
        .count("port", 0..=65535)
        .and_then(|port| u16::try_from(port).ok());
    let timeout = table.count("handshake_timeout_seconds", 1..=86_400);
    let connections = table.count("max_connections", 1..=1 << 24);
    table.finish();
    Some(TlsListener {
        certificate: certificate?,
        key: key?,
        port,
        handshake_timeout: timeout.map(|seconds| Duration::from_secs(seconds as u64)),
        connections,
    })
}

impl Listener {
    /// Numeric listen address: names are resolved, and the first address counts.
    pub fn resolve(&self) -> Result<Option<SocketAddr>, std::io::Error> {
        let Some((host, port)) = &self.address else {
            return Ok(None);
        };
        let host = host.trim_matches(['[', ']']);
        let mut addresses = std::net::ToSocketAddrs::to_socket_addrs(&(host, *port))?;
        Ok(addresses.next())
    }
}
