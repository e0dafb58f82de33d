//! The conformance tests of Kubernetes' Gateway API: manifests of HTTP routes, translated and served, and the requests that
//! the tests send.
//!
//! No cluster is needed: endpoints of services become servers of this task, which say what they received. A test that names
//! several Gateways is run with each of them alone, and a case has passed if it does at one of these. What a test changes on
//! its way is not followed.

mod backend;

mod literal;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::{Captures, Regex};
use serde_json::Value;

use self::backend::Backends;
use super::exchange::{Answer, parse};
use super::{Bench, Results};
use crate::Failure;
use crate::bench::free_ports;
use crate::server::{Server, wait_for};

/// Names of the suite that its tables use.
const NAMES: [(&str, &str); 8] = [
    ("AppBackendNamespace", "gateway-conformance-app-backend"),
    ("InfraBackendServiceNameV1", "infra-backend-v1"),
    ("InfraBackendServiceNameV2", "infra-backend-v2"),
    ("InfraBackendServiceNameV3", "infra-backend-v3"),
    ("InfrastructureNamespace", "gateway-conformance-infra"),
    ("WebBackendNamespace", "gateway-conformance-web-backend"),
    ("appBackend", "gateway-conformance-app-backend"),
    ("ns", "gateway-conformance-infra"),
];

/// The endpoints of a service in a translation.
const SERVICE: &str = r#"kubernetes = "([^:"]*)[^"]*""#;

/// Objects that only a cluster reads.
const OF_CLUSTERS: [&str; 3] = ["ConfigMap", "Deployment", "Secret"];

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let folder = bench.checkout.join("conformance");
    let read =
        |path: &Path| fs::read_to_string(path).map_err(|it| format!("{}: {it}", path.display()));
    let base = read(&folder.join("base/manifests.yaml"))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder.join("tests")).map_err(|it| it.to_string())? {
        let path = entry.map_err(|it| it.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("httproute-") && name.ends_with(".yaml") {
            files.push(path);
        }
    }
    files.sort();
    let backends = Backends::default();
    let names = |name: &str| {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, it)| *it)
    };
    let mut results = Results::default();
    for file in files {
        let Ok(source) = fs::read_to_string(file.with_extension("go")) else {
            results.skip("manifests of another test");
            continue;
        };
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let cases = literal::values(&source, "ExpectedResponse", &names);
        if cases.is_empty() {
            results.skip("a test without a table of requests");
            continue;
        }
        let manifests = format!("{base}\n---\n{}", read(&file)?);
        let mut seen: Vec<Vec<Result<(), String>>> = Vec::new();
        for gateway in gateways(&manifests, &source) {
            let served = Served::start(bench, &manifests, &gateway, &backends);
            seen.push(match served {
                Ok(served) => cases.iter().map(|it| served.check(it, &backends)).collect(),
                Err(Failure(reason)) => cases.iter().map(|_| Err(reason.clone())).collect(),
            });
        }
        for (number, case) in cases.iter().enumerate() {
            if is_computed(case) {
                results.skip("a case that is computed");
                continue;
            }
            let shown = format!("{name} {} {}", number + 1, text(case, "/Request/Path"));
            let mut own = seen.iter().filter_map(|it| it.get(number));
            let first = own.clone().next().cloned().unwrap_or(Ok(()));
            let result = if own.any(Result::is_ok) {
                Ok(())
            } else {
                first
            };
            results.add_result(shown, result);
        }
    }
    Ok(results)
}

/// Whether a value comes from somewhere else in the test.
fn is_computed(case: &Value) -> bool {
    let path = text(case, "/Request/Path");
    let status = case.pointer("/Response/StatusCode");
    !path.is_empty() && !path.starts_with('/') || status.is_some_and(|it| !it.is_u64())
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The Gateways of the manifests that a test names.
fn gateways(manifests: &str, source: &str) -> Vec<String> {
    let known: BTreeSet<_> = objects(manifests)
        .filter(|it| kind(it) == "Gateway")
        .filter_map(name)
        .collect();
    let mut named: Vec<String> = Vec::new();
    for text in literal::texts(source) {
        if known.contains(text.as_str()) && !named.contains(&text) {
            named.push(text);
        }
    }
    if named.is_empty() {
        named.push("same-namespace".to_owned());
    }
    named
}

fn objects(manifests: &str) -> impl Iterator<Item = &str> {
    manifests.split("\n---\n")
}

fn kind(object: &str) -> &str {
    let line = object.lines().find_map(|it| it.strip_prefix("kind: "));
    line.unwrap_or_default().trim()
}

fn name(object: &str) -> Option<&str> {
    let metadata = object.lines().skip_while(|it| *it != "metadata:").skip(1);
    let mut names = metadata.filter_map(|it| it.strip_prefix("  name: "));
    names.next().map(str::trim)
}

/// A translation that is served.
struct Served {
    /// Stopped with the value.
    _server: Server,
    listeners: Vec<Listener>,
}

struct Listener {
    /// That of the Gateway.
    port: u16,
    own_port: u16,
    has_tls: bool,
}

impl Served {
    fn start(
        bench: &Bench<'_>,
        manifests: &str,
        gateway: &str,
        backends: &Backends,
    ) -> Result<Self, Failure> {
        let line = format!("name: {gateway}");
        let kept = objects(manifests).filter(|object| {
            let kind = kind(object);
            let is_named = || {
                object
                    .lines()
                    .any(|it| it.trim().trim_start_matches("- ") == line)
            };
            match kind {
                "Gateway" => name(object) == Some(gateway),
                _ if kind.ends_with("Route") => is_named(),
                _ => !OF_CLUSTERS.contains(&kind),
            }
        });
        let file = bench.scratch.join("manifests.yaml");
        fs::write(&file, kept.collect::<Vec<_>>().join("\n---\n")).map_err(|it| it.to_string())?;
        let output = Command::new(&bench.plimsoll)
            .args(["gateway", "import"])
            .arg(&file)
            .output()
            .map_err(|it| it.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let toml = String::from_utf8_lossy(&output.stdout).into_owned();
        let (toml, listeners) = on_free_ports(&toml)?;
        let service = Regex::new(SERVICE).map_err(|it| it.to_string())?;
        let toml = service.replace_all(&toml, |found: &Captures<'_>| {
            let own = found.get(1).map_or("", |it| it.as_str());
            // One that the manifests do not have has no endpoint.
            let is_there = objects(manifests)
                .filter(|it| kind(it) == "Service")
                .any(|it| name(it) == own.split('/').nth(1));
            let port = if is_there { backends.port(own) } else { 9 };
            format!("servers = [\"http://127.0.0.1:{port}\"]")
        });
        // The servers here speak HTTP/1 alone.
        let toml = toml.replace("protocol = \"http2\"\n", "");
        let file = bench.scratch.join("plimsoll.toml");
        fs::write(&file, toml).map_err(|it| it.to_string())?;
        let mut command = Command::new(&bench.plimsoll);
        command
            .arg("up")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Server(command.spawn().map_err(|it| it.to_string())?);
        for listener in &listeners {
            wait_for(listener.own_port)?;
        }
        Ok(Self {
            _server: server,
            listeners,
        })
    }

    /// Sends the request of a case, and compares what comes of it.
    fn check(&self, case: &Value, backends: &Backends) -> Result<(), String> {
        let host = match text(case, "/Request/Host") {
            "" => "anything.test",
            host => host,
        };
        let port = host
            .rsplit_once(':')
            .and_then(|(_, it)| it.parse::<u16>().ok());
        let listener = port.and_then(|port| self.listeners.iter().find(|it| it.port == port));
        let listener = listener
            .or(self.listeners.first())
            .ok_or("it has no listener")?;
        let answer = ask(case, host, listener)?;
        let statuses = statuses(case);
        if !statuses.contains(&u64::from(answer.status)) {
            return Err(format!("status {}, expected {statuses:?}", answer.status));
        }
        compare_response(case, &answer)?;
        if answer.status == 200 && !text(case, "/Backend").is_empty() {
            let seen: Value = serde_json::from_slice(&answer.body).map_err(|it| it.to_string())?;
            compare_request(case, &seen)?;
            for mirrored in case
                .pointer("/MirroredTo")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                // Copies of a share of the requests are for another kind of test.
                let is_part = mirrored.pointer("/Percent").is_some();
                let service = format!(
                    "{}/{}",
                    text(mirrored, "/BackendRef/Namespace"),
                    text(mirrored, "/BackendRef/Name")
                );
                if !is_part && !backends.has_received(&service, text(&seen, "/target")) {
                    return Err(format!("no copy came to {service}"));
                }
            }
        }
        Ok(())
    }
}

/// The translation with free ports in place of those of the Gateway.
fn on_free_ports(toml: &str) -> Result<(String, Vec<Listener>), Failure> {
    let mut listeners = Vec::new();
    let mut text = String::new();
    for table in toml.split_inclusive("\n\n") {
        let address = table
            .lines()
            .find_map(|it| it.strip_prefix("address = \":"));
        let port = address.and_then(|it| it.trim_end_matches('"').parse::<u16>().ok());
        let Some(port) = port else {
            text.push_str(table);
            continue;
        };
        let [own_port] = free_ports()?;
        listeners.push(Listener {
            port,
            own_port,
            has_tls: table.contains("\ntls = "),
        });
        text.push_str(&table.replace(
            &format!("\":{port}\""),
            &format!("\"127.0.0.1:{own_port}\""),
        ));
    }
    Ok((text, listeners))
}

/// The response to the request of a case, by curl.
fn ask(case: &Value, host: &str, listener: &Listener) -> Result<Answer, String> {
    let scheme = if listener.has_tls { "https" } else { "http" };
    let name = host.split(':').next().unwrap_or(host);
    let path = match text(case, "/Request/Path") {
        "" => "/",
        path => path,
    };
    let mut curl = Command::new("curl");
    curl.args([
        "-s",
        "-k",
        "-i",
        "--path-as-is",
        "--http1.1",
        "--max-time",
        "5",
    ]);
    curl.args(["--noproxy", "*", "--connect-to"]);
    curl.arg(format!("::127.0.0.1:{}", listener.own_port));
    curl.args(["-H", &format!("Host: {host}")]);
    match text(case, "/Request/Method") {
        "" => {}
        "HEAD" => _ = curl.arg("-I"),
        method => _ = curl.args(["-X", method]),
    }
    let fields = case.pointer("/Request/Headers").and_then(Value::as_object);
    for (name, value) in fields.into_iter().flatten() {
        curl.args([
            "-H",
            &format!("{name}: {}", value.as_str().unwrap_or_default()),
        ]);
    }
    let set = case
        .pointer("/BackendSetResponseHeaders")
        .and_then(Value::as_object);
    for (name, value) in set.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        curl.args(["-H", &format!("{}: {name}:{value}", backend::SET_FIELD)]);
    }
    curl.arg(format!("{scheme}://{name}{path}"));
    let output = curl.output().map_err(|it| it.to_string())?;
    let mut answer = Answer::default();
    parse(&output.stdout, &mut answer);
    Ok(answer)
}

/// 200 unless the case has others.
fn statuses(case: &Value) -> Vec<u64> {
    let one = case.pointer("/Response/StatusCode").and_then(Value::as_u64);
    let several = case
        .pointer("/Response/StatusCodes")
        .and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(Value::as_u64);
    let all: Vec<_> = one.into_iter().chain(several).collect();
    if all.is_empty() { vec![200] } else { all }
}

fn compare_response(case: &Value, answer: &Answer) -> Result<(), String> {
    let values = |name: &str| {
        let own = answer
            .fields
            .iter()
            .filter(|(it, _)| it.eq_ignore_ascii_case(name));
        let values: Vec<_> = own.map(|(_, value)| value.as_str()).collect();
        values.join(",").replace(' ', "")
    };
    let wanted = case.pointer("/Response/Headers").and_then(Value::as_object);
    for (name, wanted) in wanted.into_iter().flatten() {
        let wanted = wanted.as_str().unwrap_or_default().replace(' ', "");
        if values(name) != wanted {
            return Err(format!("{name}: {}, expected {wanted}", values(name)));
        }
    }
    let absent = case
        .pointer("/Response/AbsentHeaders")
        .and_then(Value::as_array);
    for name in absent.into_iter().flatten().filter_map(Value::as_str) {
        if answer.field(name).is_some() {
            return Err(format!("the response has {name}"));
        }
    }
    let Some(redirect) = case.pointer("/RedirectRequest") else {
        return Ok(());
    };
    let location = answer.field("location").unwrap_or_default();
    let (scheme, rest) = location.split_once("://").unwrap_or_default();
    let path = rest
        .find('/')
        .map_or("", |at| rest.get(at..).unwrap_or_default());
    let authority = rest.strip_suffix(path).unwrap_or(rest);
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let path = path.split('?').next().unwrap_or_default();
    for (key, found) in [
        ("Scheme", scheme),
        ("Host", host),
        ("Port", port),
        ("Path", path),
    ] {
        let wanted = text(redirect, &format!("/{key}"));
        if !wanted.is_empty() && wanted != found {
            return Err(format!("it leads to {location}, expected {redirect}"));
        }
    }
    Ok(())
}

/// - `seen`: what the server received.
fn compare_request(case: &Value, seen: &Value) -> Result<(), String> {
    let wanted = format!("{}/{}", text(case, "/Namespace"), text(case, "/Backend"));
    let service = text(seen, "/service");
    let is_it = match text(case, "/Namespace") {
        "" => service.ends_with(&wanted),
        _ => service == wanted,
    };
    if !is_it {
        return Err(format!("{service} got it, expected {wanted}"));
    }
    let expected = case.pointer("/ExpectedRequest/Request");
    let of = |key: &str| expected.map_or("", |it| text(it, key));
    let path = [of("/Path"), text(case, "/Request/Path"), "/"];
    let path = path.into_iter().find(|it| !it.is_empty()).unwrap_or("/");
    if text(seen, "/target") != path {
        return Err(format!(
            "the path is {}, expected {path}",
            text(seen, "/target")
        ));
    }
    if !of("/Host").is_empty() && of("/Host") != text(seen, "/fields/host") {
        return Err(format!("the host is {}", text(seen, "/fields/host")));
    }
    let fields = expected
        .and_then(|it| it.pointer("/Headers"))
        .and_then(Value::as_object);
    for (name, wanted) in fields.into_iter().flatten() {
        let found = text(seen, &format!("/fields/{}", name.to_ascii_lowercase()));
        let wanted = wanted.as_str().unwrap_or_default();
        if found.replace(' ', "") != wanted.replace(' ', "") {
            return Err(format!("{name}: {found}, expected {wanted}"));
        }
    }
    let absent = case
        .pointer("/ExpectedRequest/AbsentHeaders")
        .and_then(Value::as_array);
    for name in absent.into_iter().flatten().filter_map(Value::as_str) {
        if !text(seen, &format!("/fields/{}", name.to_ascii_lowercase())).is_empty() {
            return Err(format!("the request has {name}"));
        }
    }
    Ok(())
}
