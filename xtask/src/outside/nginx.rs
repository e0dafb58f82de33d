//! Configurations of nginx from public projects: the same requests to nginx, and to `plimsoll up` with the configuration
//! that `plimsoll gateway import` makes of them.
//!
//! A project is a file of `nginx/`, by the name of its checkout: what stands in for its names of servers, ports and paths,
//! and requests. Nothing else of its configuration is replaced, but for the number of workers, each of which would count
//! turns by itself.

mod comparison;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use self::comparison::{Asked, compare, shown};
use super::exchange::{Origin, by_curl};
use super::{Bench, Results, Suite};
use crate::Failure;
use crate::free_port::free_port;
use crate::packages::{self, NGINX, OPENSSL};
use crate::server::{Server, wait_for};

/// The names of checkouts, what each suite tests, and its file.
const DEPLOYMENTS: [(&str, &str, &str); 25] = [
    (
        "self-hosted",
        "Sentry's nginx.conf, imported: requests compared with nginx",
        include_str!("nginx/self-hosted.toml"),
    ),
    (
        "lemmy",
        "Lemmy's nginx.conf, in the same way",
        include_str!("nginx/lemmy.toml"),
    ),
    (
        "taiga-docker",
        "Taiga's configuration of nginx, in the same way",
        include_str!("nginx/taiga-docker.toml"),
    ),
    (
        "netbox",
        "NetBox's configuration of nginx, in the same way",
        include_str!("nginx/netbox.toml"),
    ),
    (
        "AppFlowy-Cloud",
        "AppFlowy's: servers named by variables, CORS by `if`, nested locations",
        include_str!("nginx/AppFlowy-Cloud.toml"),
    ),
    (
        "bookwyrm",
        "BookWyrm's: `limit_req`, an included file, `alias`, a redirect of other hosts",
        include_str!("nginx/bookwyrm.toml"),
    ),
    (
        "budibase",
        "Budibase's: 14 locations that overlap, `rewrite … break`, a page of errors",
        include_str!("nginx/budibase.toml"),
    ),
    (
        "chatwoot",
        "Chatwoot's: TLS, a field of all responses, WebSockets",
        include_str!("nginx/chatwoot.toml"),
    ),
    (
        "countly-server",
        "Countly's: exact locations beside `^~`, each with an `if`",
        include_str!("nginx/countly-server.toml"),
    ),
    (
        "discourse",
        "Discourse's: Unix sockets, nested regular expressions, `X-Accel-Redirect`, caches, a root in a variable",
        include_str!("nginx/discourse.toml"),
    ),
    (
        "document-server-proxy",
        "OnlyOffice's: maps of forwarded fields, a path that the server does not see",
        include_str!("nginx/document-server-proxy.toml"),
    ),
    (
        "gitlabhq",
        "GitLab's: TLS, `try_files`, statuses that lead to named locations, precompressed files",
        include_str!("nginx/gitlabhq.toml"),
    ),
    (
        "immich",
        "Immich's: `proxy_set_header` of a server, a map of schemes, a rewritten prefix",
        include_str!("nginx/immich.toml"),
    ),
    (
        "infisical",
        "Infisical's: a regular expression before prefixes, paths of cookies",
        include_str!("nginx/infisical.toml"),
    ),
    (
        "jitsi-meet",
        "Jitsi Meet's: `alias` with groups, rewritten rooms, WebSockets with a query",
        include_str!("nginx/jitsi-meet.toml"),
    ),
    (
        "mastodon",
        "Mastodon's: TLS, a cache, files in nested locations, a page of errors",
        include_str!("nginx/mastodon.toml"),
    ),
    (
        "mattermost-docker",
        "Mattermost's (repository `docker`): fields `always`, a cache from the second use, a redirect to TLS",
        include_str!("nginx/mattermost-docker.toml"),
    ),
    (
        "minio",
        "MinIO's: four servers in turn",
        include_str!("nginx/minio.toml"),
    ),
    (
        "misskey",
        "Misskey's: `ssl on`, a cache, WebSockets",
        include_str!("nginx/misskey.toml"),
    ),
    (
        "overleaf",
        "Overleaf's: `internal`, files by prefix, four regular expressions",
        include_str!("nginx/overleaf.toml"),
    ),
    (
        "PeerTube",
        "PeerTube's: `auth_request`, `limit_except`, named locations, files or the server",
        include_str!("nginx/PeerTube.toml"),
    ),
    (
        "penpot",
        "Penpot's: redirects of a server that are followed, `X-Accel-Redirect`, locations without a slash",
        include_str!("nginx/penpot.toml"),
    ),
    (
        "weblate",
        "Weblate's: `alias` of a file and of a folder",
        include_str!("nginx/weblate.toml"),
    ),
    (
        "zammad",
        "Zammad's: files by a regular expression, WebSockets, a field that is taken away",
        include_str!("nginx/zammad.toml"),
    ),
    (
        "zipkin",
        "Zipkin's: `try_files` of a page, `expires` of proxied responses, `deny`",
        include_str!("nginx/zipkin.toml"),
    ),
];

/// Arguments of curl for the fields of a request that opens a WebSocket.
const WEBSOCKET: [&str; 8] = [
    "-H",
    "Connection: Upgrade",
    "-H",
    "Upgrade: websocket",
    "-H",
    "Sec-WebSocket-Version: 13",
    "-H",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// How many servers there are for a configuration to forward to.
const SERVERS: usize = 8;

/// A file of a project, and how it is made to run on one machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deployment {
    /// The configuration, in the checkout.
    file: String,
    /// Files of the checkout that it includes.
    #[serde(default)]
    includes: Vec<String>,
    /// Whether it has only `server` blocks, which an outer file includes.
    #[serde(default)]
    is_included: bool,
    #[serde(default)]
    is_tls: bool,
    host: String,
    /// `{http}`, `{https}` and `{extra}` stand for ports, `{0}` and so on for those of servers, whose sockets are
    /// `{dir}/0.sock`; `{dir}` is a folder, and `{own}` one that the two programs do not share, with the included files.
    replaced: Vec<(String, String)>,
    /// How many servers, from the first one on, take turns: which of them gets a request is each program's choice.
    #[serde(default)]
    alike: usize,
    /// Files below `{dir}`; those that end in `.gz` are compressed.
    #[serde(default)]
    files: Vec<String>,
    /// The method and the target, fields behind `+`, and content behind `|`, of which `{5 bytes}` is that many. `http`,
    /// `https` and `extra` before them choose the port, and `plain` the one for TLS without TLS. The method `WEBSOCKET` is a
    /// GET that opens one.
    requests: Vec<String>,
}

/// Ports of a server under test.
#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    https: u16,
    extra: u16,
}

impl Ports {
    fn free() -> Result<Self, Failure> {
        let port = || free_port().map_err(|error| error.to_string());
        Ok(Self {
            http: port()?,
            https: port()?,
            extra: port()?,
        })
    }
}

/// The suites, one for each project.
pub(super) fn suites() -> impl Iterator<Item = Suite> {
    let deployments = DEPLOYMENTS.into_iter();
    deployments.map(|(name, about, _)| Suite { name, about, run })
}

/// One of the two programs: its ports, and the folder with the files that are made for it alone.
#[derive(Debug)]
struct Side {
    ports: Ports,
    own: PathBuf,
    configuration: PathBuf,
}

/// Runs one project's configuration.
fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    packages::install(bench.checkout, &[NGINX, OPENSSL])?;
    let name = bench.checkout.file_name().unwrap_or_default();
    let mut deployments = DEPLOYMENTS.iter();
    let (name, _, text) = deployments
        .find(|(it, ..)| name == *it)
        .ok_or("there is no such deployment")?;
    let deployment: Deployment =
        toml::from_str(text).map_err(|error| format!("xtask/src/outside/nginx/{name}: {error}"))?;
    for file in &deployment.files {
        write(&bench.scratch.join(file), &content(file)?)?;
    }
    certificate(&bench.scratch, &deployment.host)?;
    let (_servers, servers) = start_servers(&bench.scratch)?;
    let theirs = adapt(bench, &deployment, "nginx", &servers)?;
    let ours = adapt(bench, &deployment, "plimsoll", &servers)?;
    let _nginx = start_nginx(&deployment, &theirs)?;
    let _plimsoll = start_plimsoll(bench, &ours)?;
    for side in [&theirs, &ours] {
        let text = fs::read_to_string(&side.configuration).map_err(|error| error.to_string())?;
        for port in [side.ports.http, side.ports.https, side.ports.extra] {
            if text.contains(&port.to_string()) {
                wait_for(port)?;
            }
        }
    }
    let mut results = Results::default();
    for request in &deployment.requests {
        let expected = exchange(&deployment, &theirs, &servers, request)?;
        let found = exchange(&deployment, &ours, &servers, request)?;
        results.add_result(request, compare(&expected, &found));
    }
    Ok(results)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, content))
        .map_err(|error| format!("{}: {error}", path.display()).into())
}

fn content(file: &str) -> Result<Vec<u8>, Failure> {
    if file.strip_suffix(".gz").is_none() {
        return Ok(format!("the file {file}\n").into_bytes());
    }
    // One that is longer than what it stands for is not sent.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(b"gz\n")
        .and_then(|()| encoder.finish())
        .map_err(|error| error.to_string().into())
}

/// The configuration with ports and paths of this machine.
fn adapt(
    bench: &Bench<'_>,
    deployment: &Deployment,
    side: &str,
    servers: &[u16],
) -> Result<Side, Failure> {
    let ports = Ports::free()?;
    let own = bench.scratch.join(side);
    let mut texts = Vec::new();
    for file in std::iter::once(&deployment.file).chain(&deployment.includes) {
        let path = bench.checkout.join(file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        texts.push(text);
    }
    for (from, to) in &deployment.replaced {
        if !texts.iter().any(|text| text.contains(from)) {
            return Err(format!("{} does not have `{from}` any more", deployment.file).into());
        }
        let to = to
            .replace("{http}", &ports.http.to_string())
            .replace("{https}", &ports.https.to_string())
            .replace("{extra}", &ports.extra.to_string())
            .replace("{own}", &own.display().to_string())
            .replace("{dir}", &bench.scratch.display().to_string());
        let to = with_servers(&to, servers);
        for text in &mut texts {
            *text = text.replace(from, &to);
        }
    }
    let mut texts = texts.into_iter();
    let configuration = own.join("site.conf");
    write(&configuration, texts.next().unwrap_or_default().as_bytes())?;
    for (file, text) in deployment.includes.iter().zip(texts) {
        write(&own.join(file), text.as_bytes())?;
    }
    Ok(Side {
        ports,
        own,
        configuration,
    })
}

/// `text` with the ports of servers in the place of their numbers.
fn with_servers(text: &str, servers: &[u16]) -> String {
    let mut text = text.to_owned();
    for (number, port) in servers.iter().enumerate() {
        text = text.replace(&format!("{{{number}}}"), &port.to_string());
    }
    text
}

/// A certificate, its key, and parameters of Diffie and Hellman.
fn certificate(folder: &Path, host: &str) -> Result<(), Failure> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048"]);
    openssl.args(["-nodes", "-days", "2"]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]);
    openssl.args(["-subj", &format!("/CN={host}")]);
    openssl.args(["-addext", &format!("subjectAltName=DNS:{host}")]);
    crate::step::run(folder, &mut openssl)?;
    let mut openssl = Command::new("openssl");
    openssl.args(["genpkey", "-genparam", "-algorithm", "DH"]);
    openssl.args(["-pkeyopt", "group:ffdhe2048", "-out", "dh.pem"]);
    crate::step::run(folder, &mut openssl)
}

/// Starts servers that return each request as it reached them, and says their ports.
fn start_servers(folder: &Path) -> Result<(Server, Vec<u16>), Failure> {
    let mut node = Command::new("node");
    node.args(["-e", include_str!("nginx/servers.js"), &SERVERS.to_string()]);
    let child = node.arg(folder).stdout(Stdio::piped()).spawn();
    let mut server = Server(child.map_err(|error| format!("cannot start node: {error}"))?);
    let output = server.0.stdout.take().ok_or("node has no output")?;
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    let ports = serde_json::from_str(&line).map_err(|error| format!("node: {error}"))?;
    Ok((server, ports))
}

fn start_nginx(deployment: &Deployment, side: &Side) -> Result<Server, Failure> {
    let text = fs::read_to_string(&side.configuration).map_err(|error| error.to_string())?;
    let text = if deployment.is_included {
        // As the images of nginx do.
        format!(
            "events {{ }}\nhttp {{\ninclude /etc/nginx/mime.types;\ndefault_type application/octet-stream;\naccess_log off;\n{text}\n}}\n"
        )
    } else {
        text
    };
    let file = side.own.join("nginx.conf");
    write(&file, text.as_bytes())?;
    let nginx = packages::find("nginx", &[]).ok_or("nginx is not installed")?;
    let mut nginx = Command::new(nginx);
    let shown = side.own.display();
    nginx.arg("-p").arg(&side.own).arg("-c").arg(&file);
    nginx.args([
        "-g",
        &format!("daemon off; user root; pid {shown}/nginx.pid; error_log {shown}/error.log;"),
    ]);
    Server::start(&mut nginx)
}

fn start_plimsoll(bench: &Bench<'_>, side: &Side) -> Result<Server, Failure> {
    let imported = side.own.join("plimsoll.toml");
    let mut import = Command::new(&bench.plimsoll);
    import.args(["gateway", "import"]).arg(&side.configuration);
    crate::step::run(bench.checkout, import.arg("-o").arg(&imported))?;
    let mut up = Command::new(&bench.plimsoll);
    up.arg("up").arg(&imported).stdout(Stdio::null());
    Server::start(&mut up)
}

/// Sends a request to one of the programs; what has to be the same of its response, by name.
fn exchange(
    deployment: &Deployment,
    side: &Side,
    servers: &[u16],
    request: &str,
) -> Result<comparison::Shown, Failure> {
    let Ports { http, https, extra } = side.ports;
    let usual = if deployment.is_tls { "https" } else { "http" };
    let (place, request) = match request.split_once(' ') {
        Some((place @ ("http" | "https" | "extra" | "plain"), rest)) => (place, rest),
        _ => (usual, request),
    };
    let (scheme, port) = match place {
        "https" => ("https", https),
        "extra" => ("http", extra),
        "plain" => ("http", https),
        _ => ("http", http),
    };
    let origin = Origin {
        scheme,
        host: &deployment.host,
        address: Ipv4Addr::LOCALHOST,
        port,
    };
    let request = with_content(&with_servers(request, servers))?;
    let (request, more) = match request.strip_prefix("WEBSOCKET ") {
        Some(rest) => (format!("GET {rest}"), WEBSOCKET.as_slice()),
        None => (request, [].as_slice()),
    };
    let answer = by_curl(&origin, &request, more)?;
    let asked = Asked {
        is_head: request.starts_with("HEAD "),
        port,
        alike: deployment.alike,
    };
    Ok(shown(&answer, &asked, side.ports))
}

/// A request whose content is `{5 bytes}`, with that many.
fn with_content(request: &str) -> Result<String, Failure> {
    let count = request.split_once("|{").and_then(|(head, content)| {
        let count = content.strip_suffix(" bytes}")?;
        Some((head, count))
    });
    let Some((head, count)) = count else {
        return Ok(request.to_owned());
    };
    let count = count.parse().map_err(|_| format!("{count}: no number"))?;
    Ok(format!("{head}|{}", "x".repeat(count)))
}
