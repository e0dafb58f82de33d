//! `servers` of an upstream, in the configuration or in a file.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use plimsoll_client::{Endpoint, EndpointError};
use plimsoll_model::document::Document;
use plimsoll_server::config::{ConfigProblem, Value, as_text};

use crate::upstream::{ServerPlan, Transport};

/// What the address of a server at a Unix socket begins with, as that of a listener does.
pub(super) const UNIX_SOCKET: &str = "unix:";

/// The servers of a file: `servers = […]`, as in the configuration.
pub(super) fn read(path: &Path) -> Result<Vec<ServerPlan>, Vec<ConfigProblem>> {
    let whole = |message: String| {
        vec![ConfigProblem {
            line: 1,
            column: 1,
            key: String::new(),
            message,
            hint: None,
        }]
    };
    let text =
        fs::read_to_string(path).map_err(|error| whole(format!("cannot read it: {error}")))?;
    let mut document = Document::parse(&text);
    let mut root = document.root();
    let servers = root.take_value("servers");
    if servers.is_none() {
        root.missing("servers", "such as servers = [\"http://10.0.0.1:8080\"]");
    }
    let servers = servers.and_then(compile);
    root.finish();
    let problems = document.into_problems();
    match servers {
        Some(servers) if problems.is_empty() && !servers.is_empty() => Ok(servers),
        _ if problems.is_empty() => Err(whole("there is no server".to_owned())),
        _ => Err(problems),
    }
}

/// URLs, or tables with `url` and how much a server gets.
pub(super) fn compile(value: Value<'_>) -> Option<Vec<ServerPlan>> {
    let mut known = HashSet::new();
    let mut is_whole = true;
    let mut servers = Vec::new();
    let elements = value.elements();
    for element in elements {
        let server = server(element, &mut known);
        is_whole &= server.is_some();
        servers.extend(server);
    }
    is_whole.then_some(servers)
}

fn server(value: Value<'_>, known: &mut HashSet<String>) -> Option<ServerPlan> {
    if !value.is_table() {
        return plain(&value, known);
    }
    let mut table = value.table()?;
    let url = table.take_value("url");
    if url.is_none() {
        table.missing("url", "such as url = \"http://10.0.0.1:8080\"");
    }
    let plan = url.and_then(|url| plain(&url, known));
    // 0 drains a server: it is kept, checked and shown, and gets no requests.
    let weight = table.count("weight", 0..=1000);
    let zone = table.text("zone");
    let is_backup = table.boolean("backup").unwrap_or(false);
    table.finish();
    Some(ServerPlan {
        weight: weight.map_or(1, |weight| u32::try_from(weight).unwrap_or(1)),
        zone,
        is_backup,
        ..plan?
    })
}

/// Why a text is not the address of a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressProblem {
    /// Connections and datagrams have no usual port.
    #[error("`{text}` needs a port, such as {scheme}://10.0.0.1:5432")]
    NoPort { text: String, scheme: String },
    /// The path of a socket is not whole.
    #[error("`{0}` needs a whole path, such as unix:/run/app.sock")]
    Socket(String),
    /// It is not a URL.
    #[error(transparent)]
    Url(#[from] EndpointError),
}

/// Address of a `tcp://`, `tls://` or `udp://` target; HTTP has URLs.
pub(super) fn raw_endpoint(text: &str) -> Option<Result<(Transport, Endpoint), AddressProblem>> {
    let (scheme, rest) = text.split_once("://")?;
    let (transport, as_url) = match scheme {
        "tcp" => (Transport::Tcp, "http"),
        "tls" => (Transport::Tcp, "https"),
        "udp" => (Transport::Udp, "http"),
        _ => return None,
    };
    let port = rest
        .rsplit_once(':')
        .map(|(_, port)| port.trim_end_matches('/'));
    let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if !has_port {
        let (text, scheme) = (text.to_owned(), scheme.to_owned());
        return Some(Err(AddressProblem::NoPort { text, scheme }));
    }
    let endpoint = Endpoint::parse(&format!("{as_url}://{rest}"));
    Some(match endpoint {
        Ok(endpoint) => Ok((transport, endpoint)),
        Err(error) => Err(error.into()),
    })
}

/// A URL, or `unix:` with the path of a socket.
pub(super) fn http_endpoint(text: &str) -> Result<Endpoint, AddressProblem> {
    let Some(path) = text.strip_prefix(UNIX_SOCKET) else {
        return Ok(Endpoint::parse(text)?);
    };
    if !path.starts_with('/') {
        return Err(AddressProblem::Socket(text.to_owned()));
    }
    Ok(Endpoint::unix_socket(path.into()))
}

/// A server by its URL alone.
fn plain(value: &Value<'_>, known: &mut HashSet<String>) -> Option<ServerPlan> {
    let text = as_text(value)?;
    let (transport, endpoint) = match raw_endpoint(text) {
        Some(raw) => value.check(raw)?,
        None => (Transport::Http, value.check(http_endpoint(text))?),
    };
    if endpoint.path_and_query() != "/" {
        return value.wrong_with(
            "a server is a scheme, a host and a port, without a path",
            Some("change paths in the route: proxy = { to = NAME, path = \"/prefix\" }".into()),
        );
    }
    if endpoint.credentials().is_some() {
        return value.wrong_with(
            "the URL has a user, who would be lost",
            Some("set the field in the route: proxy = { to = NAME, headers = { authorization = … } }".into()),
        );
    }
    let plan = ServerPlan::new(transport, endpoint);
    if !known.insert(plan.name()) {
        return value.wrong_with(
            "the server is given twice",
            Some("give it a weight: { url = …, weight = 2 }".into()),
        );
    }
    Some(plan)
}
