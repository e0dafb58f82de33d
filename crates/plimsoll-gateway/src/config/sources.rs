//! What lists the servers of an upstream: `srv`, `kubernetes`, `docker` and `consul`, each a text or a table.

use std::path::PathBuf;

use plimsoll_client::Endpoint;
use plimsoll_server::config::{NamedPaths, PathUse, Table, Value, as_text};
use plimsoll_wire::tls::Trust;

use crate::upstream::{
    ApiAccess, ConsulPlan, Discovery, DockerPlan, KubernetesPlan, LABEL, ServerScheme, ServicePort,
    ServicesPlan,
};

/// The keys of an upstream of which one says where its servers are listed.
pub(super) const KEYS: [&str; 4] = ["srv", "kubernetes", "docker", "consul"];

/// Where an API server is for pods (Kubernetes, "Accessing the API from a Pod").
const CLUSTER: &str = "https://kubernetes.default.svc";
const CLUSTER_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const CLUSTER_ROOTS: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// The sockets of engines.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// The agent of this machine.
const CONSUL: &str = "http://127.0.0.1:8500";

/// The source that `key` describes; `None` if anything in it is wrong.
pub(super) fn compile(key: &str, value: Value<'_>, paths: &NamedPaths<'_>) -> Option<Discovery> {
    match key {
        "srv" => services(value).map(Discovery::Services),
        "kubernetes" => kubernetes(value, paths).map(Discovery::Kubernetes),
        "docker" => docker(value, paths).map(Discovery::Docker),
        _ => consul(value, paths).map(Discovery::Consul),
    }
}

/// The one thing that a text says, or the table that says more, with that under `name`.
///
/// - `example`: of the text.
fn main_and_rest<'i>(
    value: Value<'i>,
    name: &'static str,
    example: &str,
) -> Option<(Value<'i>, Option<Table<'i>>)> {
    if !value.is_table() {
        return Some((value, None));
    }
    let mut table = value.table()?;
    let Some(main) = table.take_value(name) else {
        table.missing(name, &format!("such as {name} = \"{example}\""));
        return None;
    };
    Some((main, Some(table)))
}

fn scheme(table: Option<&mut Table<'_>>) -> Option<ServerScheme> {
    let Some(value) = table.and_then(|table| table.take_value("scheme")) else {
        return Some(ServerScheme::default());
    };
    let text = as_text(&value)?;
    let found = ServerScheme::ALL.into_iter().find(|it| it.name() == text);
    found.or_else(|| {
        let names = ServerScheme::ALL.map(|it| format!("\"{it}\""));
        value.wrong(format!("is one of {}", names.join(", ")))
    })
}

fn finish(table: Option<Table<'_>>) {
    if let Some(table) = table {
        table.finish();
    }
}

fn services(value: Value<'_>) -> Option<ServicesPlan> {
    const EXAMPLE: &str = "_http._tcp.api.example.org";

    let (name, mut table) = main_and_rest(value, "name", EXAMPLE)?;
    let scheme = scheme(table.as_mut());
    finish(table);
    let text = as_text(&name)?;
    let is_name = text.len() <= 253 && text.split('.').all(|label| (1..=63).contains(&label.len()));
    if !is_name || !text.starts_with('_') {
        return name.wrong_with(
            "is not the name of a service",
            Some(format!("such as \"{EXAMPLE}\" (RFC 2782)")),
        );
    }
    Some(ServicesPlan {
        // It is one of the root: a domain that is searched would be asked first.
        name: format!("{}.", text.trim_end_matches('.')),
        scheme: scheme?,
    })
}

fn kubernetes(value: Value<'_>, paths: &NamedPaths<'_>) -> Option<KubernetesPlan> {
    let (service, mut table) = main_and_rest(value, "service", "shop/api:http")?;
    let scheme = scheme(table.as_mut());
    let api = table.as_mut().and_then(|it| it.take_value("api"));
    let access = access(table.as_mut(), api.as_ref(), CLUSTER, paths);
    finish(table);
    let place = as_text(&service).and_then(|text| match service_place(text) {
        Some(place) => Some(place),
        None => service.wrong_with(
            "is not a service",
            Some("write namespace/service:port, the port by its name or number".to_owned()),
        ),
    });
    let mut access = access?;
    if api.is_none() {
        let read = |path: &str| {
            let path = PathBuf::from(path);
            service.check(paths.note(&path, PathUse::Read))?;
            Some(path)
        };
        access.token = match access.token {
            Some(token) => Some(token),
            None => Some(read(CLUSTER_TOKEN)?),
        };
        if access.trust == Trust::PublicRoots {
            access.trust = Trust::Only(read(CLUSTER_ROOTS)?);
        }
    }
    let (namespace, service, port) = place?;
    Some(KubernetesPlan {
        namespace,
        service,
        port,
        scheme: scheme?,
        access,
    })
}

/// Namespace, name and port of `shop/api:http`. Names are labels of DNS (RFC 1123).
fn service_place(text: &str) -> Option<(String, String, Option<ServicePort>)> {
    let (namespace, rest) = text.split_once('/')?;
    let (service, port) = match rest.split_once(':') {
        None => (rest, None),
        Some((service, port)) => (service, Some(port)),
    };
    let is_label = |text: &str| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&text.len())
            && text.bytes().all(is_plain)
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    let port = match port {
        None => None,
        Some(text) => Some(match text.parse::<u16>() {
            Ok(0) => return None,
            Ok(number) => ServicePort::Number(number),
            Err(_) if is_label(text) => ServicePort::Name(text.to_owned()),
            Err(_) => return None,
        }),
    };
    let is_whole = is_label(namespace) && is_label(service);
    is_whole.then(|| (namespace.to_owned(), service.to_owned(), port))
}

fn docker(value: Value<'_>, paths: &NamedPaths<'_>) -> Option<DockerPlan> {
    if !value.is_table() {
        let name = as_text(&value)?;
        return Some(DockerPlan {
            labels: vec![format!("{LABEL}={name}")],
            port: None,
            network: None,
            scheme: ServerScheme::default(),
            access: engine(PathBuf::from(DOCKER_SOCKET)),
        });
    }
    let mut table = value.table()?;
    let scheme = scheme(Some(&mut table));
    let labels = table.take_value("labels").map(|value| {
        value.texts_with(|text| text.is_empty().then(|| "a label has a name".to_owned()))
    });
    if labels.is_none() {
        let hint = format!("such as labels = [\"{LABEL}=api\"]");
        table.missing("labels", &hint);
    }
    let port = table.count("port", 1..=65_535);
    let network = table.text("network");
    let socket = table.take_value("socket");
    let api = table.take_value("api");
    let access = match (socket, api) {
        (Some(socket), Some(_)) => socket.wrong("`api` is given too"),
        (Some(socket), None) => as_text(&socket).map(|path| engine(PathBuf::from(path))),
        (None, Some(api)) => access(Some(&mut table), Some(&api), "", paths),
        (None, None) => Some(engine(PathBuf::from(DOCKER_SOCKET))),
    };
    table.finish();
    Some(DockerPlan {
        labels: labels??,
        port: port.and_then(|port| u16::try_from(port).ok()),
        network,
        scheme: scheme?,
        access: access?,
    })
}

/// An engine behind its socket.
fn engine(socket: PathBuf) -> ApiAccess {
    ApiAccess {
        base: "http://localhost".to_owned(),
        socket: Some(socket),
        trust: Trust::PublicRoots,
        token: None,
    }
}

fn consul(value: Value<'_>, paths: &NamedPaths<'_>) -> Option<ConsulPlan> {
    let (service, mut table) = main_and_rest(value, "service", "api")?;
    let scheme = scheme(table.as_mut());
    let api = table.as_mut().and_then(|it| it.take_value("api"));
    let access = access(table.as_mut(), api.as_ref(), CONSUL, paths);
    let tags = table.as_mut().and_then(|it| it.take_value("tags"));
    let tags = tags.map(|value| value.texts_with(|_| None));
    let datacenter = table.as_mut().and_then(|it| it.text("datacenter"));
    let uses_warned = table.as_mut().and_then(|it| it.boolean("warned"));
    finish(table);
    let name = as_text(&service)?;
    if name.is_empty() {
        return service.wrong("is empty");
    }
    Some(ConsulPlan {
        service: name.to_owned(),
        tags: match tags {
            None => Vec::new(),
            Some(tags) => tags?,
        },
        datacenter,
        uses_warned: uses_warned.unwrap_or(true),
        scheme: scheme?,
        access: access?,
    })
}

/// `api`, `token` and `ca`.
///
/// - `usual`: the API unless another is given.
fn access(
    table: Option<&mut Table<'_>>,
    api: Option<&Value<'_>>,
    usual: &str,
    paths: &NamedPaths<'_>,
) -> Option<ApiAccess> {
    let base = match api {
        None => Some(usual.to_owned()),
        Some(value) => as_text(value).and_then(|text| {
            let endpoint = value.check(Endpoint::parse(text))?;
            if endpoint.credentials().is_some() {
                return value.wrong("has a user; give the token in a file, as `token`");
            }
            Some(text.to_owned())
        }),
    };
    let Some(table) = table else {
        return Some(ApiAccess {
            base: base?,
            socket: None,
            trust: Trust::PublicRoots,
            token: None,
        });
    };
    let mut file = |key| {
        let value = table.take_value(key);
        value.map(|value| paths.read(&value))
    };
    let (token, roots) = (file("token"), file("ca"));
    Some(ApiAccess {
        base: base?,
        socket: None,
        trust: match roots {
            None => Trust::PublicRoots,
            Some(roots) => Trust::Only(roots?),
        },
        token: match token {
            None => None,
            Some(token) => Some(token?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_a_namespace_and_may_have_a_port() {
        let place = |text: &str| {
            let (namespace, service, port) = service_place(text)?;
            Some(format!("{namespace} {service} {port:?}"))
        };
        for (text, expected) in [
            ("shop/api", Some("shop api None")),
            ("shop/api:8080", Some("shop api Some(Number(8080))")),
            ("shop/api:http", Some("shop api Some(Name(\"http\"))")),
            ("api", None),
            ("shop/api:0", None),
            ("shop/api/v1", None),
            ("shop/api?watch=1", None),
            ("../api", None),
            ("Shop/api", None),
        ] {
            assert_eq!(place(text).as_deref(), expected, "{text}");
        }
    }
}
