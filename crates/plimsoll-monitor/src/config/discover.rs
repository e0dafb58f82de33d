//! `[[discover]]`: what lists further monitors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::Endpoint;
use plimsoll_client::json_api::ApiAccess;
use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_wire::tls::Trust;

use crate::notify::Settings;

/// How often a list is fetched, containers are listed, and a folder looked at, unless the file says otherwise.
const REFRESH_LIST: Duration = Duration::from_secs(30);
const REFRESH_DOCKER: Duration = Duration::from_secs(5);
const REFRESH_FOLDER: Duration = Duration::from_secs(2);

/// The shortest that may be given.
const SOONEST: Duration = Duration::from_millis(100);

/// Something that lists monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoverPlan {
    /// Unique among those of the file; the store keeps its list under it.
    pub name: String,
    /// What lists them.
    pub source: DiscoverSource,
    /// How often it is read again.
    pub refresh: Duration,
}

/// What lists monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoverSource {
    /// A list behind a URL.
    Http(HttpListPlan),
    /// A folder of files.
    Folder(PathBuf),
    /// Containers of an engine, by their labels.
    Docker(ApiAccess),
    /// Ingresses and Services, by their annotations.
    Kubernetes(KubernetesListPlan),
}

/// What of a cluster is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesListPlan {
    /// Its API.
    pub access: ApiAccess,
    /// One namespace alone.
    pub namespace: Option<String>,
}

/// A list of monitors behind a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpListPlan {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Header fields.
    pub fields: Vec<(String, Secret)>,
    /// Whose certificates the server may have.
    pub trust: Trust,
    /// Whether only public addresses may be connected to.
    pub is_public_only: bool,
}

impl DiscoverSource {
    /// The key in the file.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Folder(_) => "folder",
            Self::Docker(_) => "docker",
            Self::Kubernetes(_) => "kubernetes",
        }
    }

    /// Where it is, without credentials.
    pub fn place(&self) -> String {
        match self {
            Self::Http(list) => {
                let (scheme, authority) =
                    (list.endpoint.scheme(), list.endpoint.authority_with_port());
                let path = list.endpoint.path_and_query().to_string();
                let path = path.split('?').next().unwrap_or_default();
                format!("{scheme}://{authority}{path}")
            }
            Self::Folder(path) => path.display().to_string(),
            Self::Docker(access) => match &access.socket {
                Some(socket) => socket.display().to_string(),
                None => access.base.clone(),
            },
            Self::Kubernetes(list) => match &list.namespace {
                Some(namespace) => format!("{} {namespace}", list.access.base),
                None => list.access.base.clone(),
            },
        }
    }

    /// Whether its monitors may name files of this machine, as those of the configuration file may.
    pub(crate) const fn may_name_files(&self) -> bool {
        matches!(self, Self::Folder(_))
    }
}

/// What the tables are compiled against.
pub(super) struct Surroundings<'t> {
    pub(super) directory: &'t Path,
    pub(super) is_public_only: bool,
    pub(super) environment: &'t dyn Fn(&str) -> Option<String>,
}

pub(super) fn compile<'t>(
    tables: Vec<Table<'t>>,
    surroundings: &Surroundings<'t>,
) -> Vec<Arc<DiscoverPlan>> {
    let mut plans: Vec<Arc<DiscoverPlan>> = Vec::new();
    for mut table in tables {
        let name = table.take_value("name");
        if name.is_none() {
            table.missing("name", "under which its list is kept");
        }
        let compiled = compile_one(table, surroundings);
        let (Some(name), Some((source, refresh))) = (name, compiled) else {
            continue;
        };
        let Some(text) = as_text(&name).filter(|text| !text.trim().is_empty()) else {
            name.wrong::<()>("is empty");
            continue;
        };
        if plans.iter().any(|known| known.name == text) {
            name.wrong::<()>(format!("there is another `{text}`"));
            continue;
        }
        plans.push(Arc::new(DiscoverPlan {
            name: text.to_owned(),
            source,
            refresh,
        }));
    }
    plans
}

fn compile_one<'t>(
    mut table: Table<'t>,
    surroundings: &Surroundings<'t>,
) -> Option<(DiscoverSource, Duration)> {
    let refresh = table.take_value("refresh").map(|value| {
        let given = value.check(plimsoll_model::parse_duration(as_text(&value)?))?;
        if given < SOONEST {
            return value.wrong("must be at least 100ms");
        }
        Some(given)
    });
    let given = ["http", "folder", "docker", "kubernetes"].map(|key| (key, table.take_value(key)));
    let mut given = given
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    let (source, default) = match given.next() {
        Some(("http", value)) => {
            let list = http_list(value, surroundings);
            (list.map(DiscoverSource::Http), REFRESH_LIST)
        }
        Some(("folder", value)) => {
            let path = as_text(&value).map(|text| surroundings.directory.join(text));
            (path.map(DiscoverSource::Folder), REFRESH_FOLDER)
        }
        Some(("docker", value)) => {
            let access = docker(value, surroundings);
            (access.map(DiscoverSource::Docker), REFRESH_DOCKER)
        }
        Some((_, value)) => {
            let list = kubernetes(value, surroundings);
            (list.map(DiscoverSource::Kubernetes), REFRESH_LIST)
        }
        None => {
            let hint = "write `http = \"https://…\"`, `folder = \"monitors.d\"`, `docker = true` or `kubernetes = true`";
            table.wrong("nothing says what lists monitors", Some(hint.to_owned()));
            (None, REFRESH_LIST)
        }
    };
    if let Some((_, value)) = given.next() {
        value.wrong::<()>("has no place beside another source; write another [[discover]]");
    }
    drop(given);
    table.finish();
    Some((source?, refresh.unwrap_or(Some(default))?))
}

fn http_list<'t>(value: Value<'t>, surroundings: &Surroundings<'t>) -> Option<HttpListPlan> {
    let (url, settings) = if value.is_table() {
        let mut settings = Settings::new(value.table()?, surroundings.environment);
        let url = settings.table.take_value("url");
        if url.is_none() {
            settings.table.missing("url", "where the list is");
        }
        (url, Some(settings))
    } else {
        (Some(value), None)
    };
    let (mut fields, mut trust) = (Vec::new(), Trust::PublicRoots);
    if let Some(mut settings) = settings {
        if let Some(token) = settings.optional_secret("bearer") {
            let value = Secret::new(format!("Bearer {}", token.expose()));
            fields.push(("authorization".to_owned(), value));
        }
        let ca = settings.table.take_value("ca");
        if let Some(ca) = ca.as_ref().and_then(as_text) {
            trust = Trust::Only(surroundings.directory.join(ca));
        }
        if let Some(mut headers) = settings.table.table("headers") {
            for (name, value) in headers.rest_of_fields() {
                fields.push((name.to_ascii_lowercase(), Secret::new(value.text()?)));
            }
        }
        settings.table.finish();
    }
    let url = url?;
    let text = as_text(&url)?;
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return url.wrong("must be a URL that begins with `https://` or `http://`");
    }
    Some(HttpListPlan {
        endpoint: url.check(Endpoint::parse(text))?,
        fields,
        trust,
        is_public_only: surroundings.is_public_only,
    })
}

/// `true`, the address of an engine, or a table with it.
fn docker(value: Value<'_>, surroundings: &Surroundings<'_>) -> Option<ApiAccess> {
    /// Where container engines listen.
    const SOCKET: &str = "unix:///var/run/docker.sock";

    let (host, ca) = if value.is_table() {
        let mut table = value.table()?;
        let found = (table.take_value("host"), table.text("ca"));
        table.finish();
        found
    } else if value.is_true() {
        (None, None)
    } else {
        (Some(value), None)
    };
    let text = host.as_ref().map_or(Some(SOCKET), as_text)?;
    let trust = ca.map_or(Trust::PublicRoots, |ca| {
        Trust::Only(surroundings.directory.join(ca))
    });
    let access = |base: &str, socket: Option<&str>| ApiAccess {
        base: base.to_owned(),
        socket: socket.map(PathBuf::from),
        trust,
        token: None,
    };
    match (text.split_once("://"), &host) {
        (Some(("unix", path)), _) if path.starts_with('/') => {
            Some(access("http://localhost", Some(path)))
        }
        (Some(("http" | "https", _)), _) => Some(access(text, None)),
        (_, Some(host)) => host.wrong(
            "must be `true`, `unix:///run/podman/podman.sock`, `http://host:2375` or `https://host:2376`",
        ),
        (_, None) => None,
    }
}

/// `true`, a namespace, or a table.
fn kubernetes(value: Value<'_>, surroundings: &Surroundings<'_>) -> Option<KubernetesListPlan> {
    /// Where the API server is for pods (Kubernetes, "Accessing the API from a Pod").
    const CLUSTER: &str = "https://kubernetes.default.svc";
    const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    const ROOTS: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

    let cluster = ApiAccess {
        base: CLUSTER.to_owned(),
        socket: None,
        trust: Trust::Only(PathBuf::from(ROOTS)),
        token: Some(PathBuf::from(TOKEN)),
    };
    if value.is_true() {
        return Some(KubernetesListPlan {
            access: cluster,
            namespace: None,
        });
    }
    if !value.is_table() {
        return Some(KubernetesListPlan {
            access: cluster,
            namespace: Some(as_text(&value)?.to_owned()),
        });
    }
    let mut table = value.table()?;
    let namespace = table.text("namespace");
    let api = table.take_value("api");
    let file = |table: &mut Table<'_>, key| {
        let name = table.text(key)?;
        Some(surroundings.directory.join(name))
    };
    let (token, roots) = (file(&mut table, "token"), file(&mut table, "ca"));
    table.finish();
    let access = match api {
        None => ApiAccess {
            trust: roots.map_or(cluster.trust, Trust::Only),
            token: token.or(cluster.token),
            ..cluster
        },
        Some(api) => {
            let text = as_text(&api)?;
            api.check(Endpoint::parse(text))?;
            ApiAccess {
                base: text.to_owned(),
                socket: None,
                trust: roots.map_or(Trust::PublicRoots, Trust::Only),
                token,
            }
        }
    };
    Some(KubernetesListPlan { access, namespace })
}
