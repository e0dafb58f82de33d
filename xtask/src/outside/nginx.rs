//! Configurations of nginx from public projects: the same requests to nginx, and to `plimsoll up` with the configuration
//! that `plimsoll gateway import` makes of them.
//!
//! Names of servers, ports and paths are replaced in both, and nothing else. A case is a request; it fails where the
//! status, a field that the configuration sets, or the request that reaches the server differs. Files of plimsoll have
//! `cache-control: no-cache` where the configuration says nothing, which is no difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::exchange::{Answer, Origin, by_curl};
use super::{Bench, Results};
use crate::Failure;
use crate::free_port::free_port;
use crate::packages::{self, NGINX, OPENSSL};
use crate::server::{Server, wait_for};

/// A file of a project, and how it is made to run on one machine.
struct Deployment {
    /// The repository.
    name: &'static str,
    file: &'static str,
    /// Whether it has only `server` blocks, which an outer file includes.
    is_included: bool,
    /// `{http}` and `{https}` stand for ports, `{0}` and so on for those of servers, and `{dir}` for a folder.
    replaced: &'static [(&'static str, &'static str)],
    /// Files below that folder.
    files: &'static [&'static str],
    is_tls: bool,
    host: &'static str,
    /// The method and the target, fields behind `+`, and content behind `|`.
    requests: &'static [&'static str],
}

const DEPLOYMENTS: [Deployment; 4] = [
    Deployment {
        name: "self-hosted",
        file: "nginx.conf",
        is_included: false,
        replaced: &[
            ("user nginx;", ""),
            ("pid /var/run/nginx.pid;", ""),
            ("/var/log/nginx", "{dir}"),
            ("server relay:3000", "server 127.0.0.1:{0}"),
            ("server web:9000", "server 127.0.0.1:{1}"),
            ("listen 80", "listen {http}"),
            ("/var/www/", "{dir}/www/"),
        ],
        files: &["www/js-sdk/bundle.js"],
        is_tls: false,
        host: "sentry.test",
        requests: &[
            "GET /",
            "GET /organizations/acme/issues/?query=is%3Aunresolved&sort=date",
            "GET /api/0/organizations/",
            "GET /api/0/relays/projectconfigs/",
            "POST /api/0/relays/register/challenge/|{}",
            "POST /api/1/envelope/|{}",
            "POST /api/12/store/?sentry_key=a|{}",
            "POST /api/store/|{}",
            "GET /api/store",
            "GET /api/01/envelope/",
            "GET /api/1",
            "GET /_assets/app.js",
            "GET /_static/dist/sentry/entrypoints/app.js",
            "GET /js-sdk/bundle.js",
            "HEAD /js-sdk/bundle.js",
            "GET /js-sdk/missing.js",
            "OPTIONS /api/1/envelope/ + Origin: https://a.test",
            "GET / + X-Forwarded-For: 192.0.2.1",
            "DELETE /api/0/teams/a/b/",
        ],
    },
    Deployment {
        name: "lemmy",
        file: "docker/nginx.conf",
        is_included: false,
        replaced: &[
            ("\"lemmy:8536\"", "127.0.0.1:{0}"),
            ("\"lemmy-ui:1234\"", "127.0.0.1:{1}"),
            ("listen 1236;", "listen {http};"),
            ("listen 8536;", ""),
        ],
        files: &[],
        is_tls: false,
        host: "localhost",
        requests: &[
            "GET /",
            "GET /c/main?page=2",
            "GET /post/5 + Accept: application/activity+json",
            "GET /u/ann + Accept: application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\"",
            "GET /u/ann + Accept: text/html",
            "POST /inbox|{}",
            "PUT /inbox|{}",
            "GET /api/v3/site",
            "POST /api/v3/user/login|{}",
            "GET /pictrs/image/x.png?format=webp&thumbnail=96",
            "GET /feeds/all.xml?sort=Active",
            "GET /nodeinfo/2.0.json",
            "GET /version",
            "GET /.well-known/webfinger?resource=acct:ann@localhost",
            "GET /apiary",
            "GET /API/v3",
            "GET /c/main/",
        ],
    },
    Deployment {
        name: "taiga-docker",
        file: "taiga-gateway/taiga.conf",
        is_included: true,
        replaced: &[
            ("listen 80 ", "listen {http} "),
            ("http://taiga-front/", "http://127.0.0.1:{0}/"),
            ("http://taiga-back:8000/", "http://127.0.0.1:{1}/"),
            ("http://taiga-protected:8003/", "http://127.0.0.1:{2}/"),
            ("http://taiga-events:8888/", "http://127.0.0.1:{3}/"),
            ("alias /taiga/", "alias {dir}/"),
        ],
        files: &[
            "static/admin/app.css",
            "media/exports/1/dump.json",
            "media/user/a.png",
        ],
        is_tls: false,
        host: "taiga.test",
        requests: &[
            "GET /",
            "GET /project/a-b/timeline?x=1",
            "GET /api/v1/projects?member=5",
            "POST /api/v1/auth|{}",
            "GET /api",
            "GET /admin/",
            "GET /admin/login/?next=/admin/",
            "GET /static/admin/app.css",
            "GET /static/missing.css",
            "GET /_protected/user/a.png",
            "GET /media/exports/1/dump.json",
            "GET /media/user/a.png?token=x",
            "GET /media/a%20b.png",
            "GET /events",
            "GET /events/5",
            "GET /eventsource",
            "PATCH /api/v1/tasks/5|{}",
        ],
    },
    Deployment {
        name: "netbox",
        file: "contrib/nginx.conf",
        is_included: true,
        replaced: &[
            ("]:443 ", "]:{https} "),
            ("]:80 ", "]:{http} "),
            ("/etc/ssl/certs/netbox.crt", "{dir}/cert.pem"),
            ("/etc/ssl/private/netbox.key", "{dir}/key.pem"),
            ("/opt/netbox/netbox/static/", "{dir}/static/"),
            ("127.0.0.1:8001", "127.0.0.1:{0}"),
        ],
        files: &["static/netbox.css"],
        is_tls: true,
        host: "netbox.example.com",
        requests: &[
            "GET /",
            "GET /dcim/devices/?site=a&per_page=50",
            "POST /api/dcim/sites/|{}",
            "GET /api/status/ + Authorization: Token x",
            "GET /static/netbox.css",
            "GET /static/missing.css",
            "GET /static",
            "HEAD /login/",
            "GET / + X-Forwarded-Proto: http",
            "PATCH /api/ipam/prefixes/5/|{}",
            "http GET /",
            "http GET /dcim/devices/?site=a",
        ],
    },
];

/// Servers that return the request as it reached them.
const SERVERS: &str = r"
const http = require('http')
const ports = []
const count = Number(process.argv[1])
for (let number = 0; number < count; number++) {
  const server = http.createServer((request, response) => {
    let bytes = 0
    request.on('data', data => { bytes += data.length })
    request.on('end', () => {
      const fields = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`).sort()
      response.writeHead(200, { 'content-type': 'text/plain', 'x-powered-by': 'node', 'content-disposition': 'inline' })
      response.end([`server ${number}`, `${request.method} ${request.url}`, ...fields, `${bytes} bytes`].join('\n'))
    })
  })
  server.listen(0, '127.0.0.1', () => {
    ports[number] = server.address().port
    if (ports.filter(Boolean).length === count) console.log(JSON.stringify(ports))
  })
}
";

/// Fields of responses that configurations set.
const COMPARED: [&str; 9] = [
    "location",
    "cache-control",
    "x-frame-options",
    "x-content-type-options",
    "x-xss-protection",
    "access-control-allow-origin",
    "content-disposition",
    "x-powered-by",
    "strict-transport-security",
];

/// Ports of a server under test.
#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    https: u16,
}

impl Ports {
    fn free() -> Result<Self, Failure> {
        let port = || free_port().map_err(|error| error.to_string());
        Ok(Self {
            http: port()?,
            https: port()?,
        })
    }
}

/// Runs one project's configuration.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    packages::install(bench.checkout, &[NGINX, OPENSSL])?;
    let name = bench.checkout.file_name().unwrap_or_default();
    let mut deployments = DEPLOYMENTS.iter();
    let deployment = deployments
        .find(|it| name == it.name)
        .ok_or("there is no such deployment")?;
    let text = |error: std::io::Error| error.to_string();
    let source = bench.checkout.join(deployment.file);
    let source =
        fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for file in deployment.files {
        let path = bench.scratch.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(text)?;
        fs::write(&path, format!("the file {file}\n")).map_err(text)?;
    }
    certificate(&bench.scratch, deployment.host)?;
    let (_servers, servers) = start_servers(4)?;
    let (theirs, ours) = (Ports::free()?, Ports::free()?);
    let adapted = |ports: Ports| adapt(deployment, &source, ports, &servers, &bench.scratch);
    let _nginx = start_nginx(deployment, &adapted(theirs)?, theirs, &bench.scratch)?;
    let _plimsoll = start_plimsoll(bench, deployment, &adapted(ours)?, ours)?;
    let mut results = Results::default();
    for request in deployment.requests {
        let expected = exchange(deployment, theirs, request)?;
        let found = exchange(deployment, ours, request)?;
        let expected = shown(&expected, deployment.host, theirs);
        let found = shown(&found, deployment.host, ours);
        results.add_result(*request, compare(&expected, &found));
    }
    Ok(results)
}

/// The configuration with ports and paths of this machine.
fn adapt(
    deployment: &Deployment,
    source: &str,
    ports: Ports,
    servers: &[u16],
    folder: &Path,
) -> Result<String, Failure> {
    let mut text = source.to_owned();
    for (from, to) in deployment.replaced {
        if !text.contains(from) {
            return Err(format!("{} does not have `{from}` any more", deployment.file).into());
        }
        let mut to = to
            .replace("{http}", &ports.http.to_string())
            .replace("{https}", &ports.https.to_string())
            .replace("{dir}", &folder.display().to_string());
        for (number, port) in servers.iter().enumerate() {
            to = to.replace(&format!("{{{number}}}"), &port.to_string());
        }
        text = text.replace(from, &to);
    }
    Ok(text)
}

fn certificate(folder: &Path, host: &str) -> Result<(), Failure> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
    openssl.args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]);
    openssl.args(["-subj", &format!("/CN={host}")]);
    openssl.args(["-addext", &format!("subjectAltName=DNS:{host}")]);
    crate::step::run(folder, &mut openssl)
}

fn start_servers(count: usize) -> Result<(Server, Vec<u16>), Failure> {
    let mut node = Command::new("node");
    node.args(["-e", SERVERS, &count.to_string()]);
    let child = node.stdout(Stdio::piped()).spawn();
    let mut server = Server(child.map_err(|error| format!("cannot start node: {error}"))?);
    let output = server.0.stdout.take().ok_or("node has no output")?;
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    let ports = serde_json::from_str(&line).map_err(|error| format!("node: {error}"))?;
    Ok((server, ports))
}

fn start_nginx(
    deployment: &Deployment,
    text: &str,
    ports: Ports,
    folder: &Path,
) -> Result<Server, Failure> {
    let file = folder.join("nginx.conf");
    let text = if deployment.is_included {
        // As the images of nginx do.
        format!(
            "events {{ }}\nhttp {{\ninclude /etc/nginx/mime.types;\ndefault_type application/octet-stream;\naccess_log off;\n{text}\n}}\n"
        )
    } else {
        text.to_owned()
    };
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let nginx = packages::find("nginx", &[]).ok_or("nginx is not installed")?;
    let mut nginx = Command::new(nginx);
    let shown = folder.display();
    nginx.arg("-p").arg(folder).arg("-c").arg(&file);
    nginx.args([
        "-g",
        &format!("daemon off; user root; pid {shown}/nginx.pid; error_log {shown}/error.log;"),
    ]);
    let server = Server::start(&mut nginx)?;
    wait_for(ports.http)?;
    Ok(server)
}

fn start_plimsoll(
    bench: &Bench<'_>,
    deployment: &Deployment,
    text: &str,
    ports: Ports,
) -> Result<Server, Failure> {
    let (file, imported) = (
        bench.scratch.join(deployment.name).with_extension("conf"),
        bench.scratch.join("plimsoll.toml"),
    );
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut import = Command::new(&bench.plimsoll);
    import.args(["gateway", "import"]).arg(&file);
    crate::step::run(bench.checkout, import.arg("-o").arg(&imported))?;
    let mut up = Command::new(&bench.plimsoll);
    up.arg("up").arg(&imported).stdout(Stdio::null());
    let server = Server::start(&mut up)?;
    wait_for(ports.http)?;
    Ok(server)
}

/// Sends a request, over TLS where the deployment has it and the request does not begin with `http`.
fn exchange(deployment: &Deployment, ports: Ports, request: &str) -> Result<Answer, Failure> {
    let is_plain = request.starts_with("http ");
    let (scheme, port) = if deployment.is_tls && !is_plain {
        ("https", ports.https)
    } else {
        ("http", ports.http)
    };
    let origin = Origin {
        scheme,
        host: deployment.host,
        address: Ipv4Addr::LOCALHOST,
        port,
    };
    by_curl(&origin, request.trim_start_matches("http "), &[])
}

/// What has to be the same, by name: the status, fields, and the request as the server got it or the file.
fn shown(answer: &Answer, host: &str, ports: Ports) -> BTreeMap<String, String> {
    let named = |text: &str| {
        let text = text.replace(&ports.https.to_string(), "HTTPS");
        text.replace(&ports.http.to_string(), "HTTP")
    };
    // nginx makes the targets of its redirects URLs.
    let own = format!("http://{host}:HTTP");
    let mut shown = BTreeMap::from([("status".to_owned(), answer.status.to_string())]);
    for name in COMPARED {
        // A file that is not there has the `no-cache` of plimsoll.
        if let Some(value) = answer.field(name)
            && (answer.status < 400 || name != "cache-control")
        {
            let value = named(value);
            let value = value.strip_prefix(&own).unwrap_or(&value);
            shown.insert(name.to_owned(), value.to_owned());
        }
    }
    // Pages of errors are each server's own.
    if answer.status == 200 {
        for (number, line) in answer.text().lines().enumerate() {
            let (name, value) = match line.split_once(": ") {
                Some((name, value)) => (format!("received {name}"), value),
                None => (format!("line {number}"), line),
            };
            // The order of fields is not that of lines, and these are of the connection.
            let is_last = line.ends_with(" bytes");
            let name = if is_last { "length".to_owned() } else { name };
            // An address of IPv4 at a socket for both families; and a number that is another one each time.
            let value = value.strip_prefix("::ffff:").unwrap_or(value);
            let is_id = name == "received x-request-id" && value.len() == 32;
            let value = if is_id { "an ID" } else { value };
            if !["received connection", "received via"].contains(&name.as_str()) {
                shown.insert(name, named(value));
            }
        }
    }
    shown
}

/// Nothing, or the first few differences.
fn compare(
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut differences = String::new();
    let names = expected.keys().chain(found.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    for name in names {
        // A gateway that forwards the client's address forwards these, too.
        let is_extra = [
            "received x-forwarded-for",
            "received x-forwarded-host",
            "received x-forwarded-proto",
        ]
        .contains(&name.as_str())
            || (name == "cache-control" && found.get(name).is_some_and(|it| it == "no-cache"));
        let is_extra = is_extra && !expected.contains_key(name);
        if expected.get(name) != found.get(name) && !is_extra {
            let of = |map: &BTreeMap<String, String>| {
                map.get(name).map_or("none", String::as_str).to_owned()
            };
            write!(
                differences,
                "{name}: nginx {:?}, plimsoll {:?}; ",
                of(expected),
                of(found)
            )
            .ok();
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(differences)
    }
}
