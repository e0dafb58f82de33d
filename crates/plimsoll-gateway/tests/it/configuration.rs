//! Errors in the configuration: all of them, each with its key and what to do.

use plimsoll_server::config::ConfigProblem;
use plimsoll_testkit::http::get;

use crate::server::{Served, compiled, named};

#[test]
fn every_error_is_reported_with_a_hint() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"

[[route]]
proxy = "shop"

[[route]]
path = "/b"
proxy = { to = "api", forwarded = "all", trust = ["10.0.0.0/99"], headers = { host = "x" }, stripp = true }

[[route]]
path = "/c"
proxy = "http://user:secret@10.0.0.1/"

[[route]]
path = "/d"
proxy = { to = "http://10.0.0.1", rewrite = { from = "(", to = "../x" }, error_pages = { 200 = { body = "x" }, 502 = { file = "missing.html" } }, split = { api = 60, keyed = 60, gone = 1 }, mirror = "gone", fault = {}, auth = { copy = "content-length" } }

[[route]]
path = "/g"
proxy = { to = "http://10.0.0.1", headers = { x-user = "{clint}" }, auth = { to = "http://10.0.0.2/x?a b", headers = { x-user = "{owner}" } } }

[[route]]
path = "/e"
proxy = { to = "http://10.0.0.1", cache = true, auth = { to = "http://10.0.0.2" } }

[[route]]
path = "/f"
proxy = { to = "http://10.0.0.1", cache = true, split = { "http://10.0.0.9" = 10 } }

[[route]]
path = "/h"
proxy = { to = "http://10.0.0.1", headers = { X-A = "1", x-a = "2", X-B = false, x-b = "{client}" }, auth = { to = "http://10.0.0.2", headers = { X-C = "1", x-c = "2" } } }

[[route]]
path = "/i"
auth = { copy = "content-length", trust = "x", relay = "no" }
respond = {}

[[route]]
path = "/j"
auth = { to = "gone", headers = { x-user = "{auth:a/b}" } }
respond = {}

[upstream.api]
servers = ["http://10.0.0.1:80", { url = "http://10.0.0.1", weight = 2 }, "http://10.0.0.2/path", "unix:run/app.sock"]
balance = "fastest"
retry = { on = ["sometimes"] }

[upstream.limits]
servers = "http://10.0.0.1"
concurrency = { requests = 1, adaptive = true }

[upstream.file]
file = "missing.toml"

[upstream.both]
file = "missing.toml"
servers = "http://10.0.0.1"
resolvers = "10.0.0.2"
health = { kind = "tcp", path = "/", service = "a" }

[upstream.zero]
servers = "http://10.0.0.1"
concurrency = 0

[upstream.checked]
servers = "http://10.0.0.1"
health = { method = "HEAD", host = "a@b", headers = { Connection = "close" }, content = "up" }

[upstream.empty]
servers = []

[upstream.spare]
servers = { url = "http://10.0.0.1", backup = true }

[upstream.keyed]
servers = ["http://10.0.0.1"]
balance = "maglev"
"#;
    let problems = compiled(text).unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|it| format!("{}: {} {:?}", it.key, it.message, it.hint))
        .collect();
    let shown = shown.join("\n");
    for part in [
        "route[1].proxy: there is no upstream `shop` Some(\"there are api, both, checked, empty, file, keyed, limits, spare, zero\")",
        "route[2].proxy.forwarded: is \"x\", \"rfc7239\", \"both\" or \"none\"",
        "`10.0.0.0/99` is not a network",
        "route[2].proxy.headers.host: is set by the gateway",
        "route[2].proxy.stripp: unknown key Some(\"did you mean `strip`?\")",
        "route[3].proxy: has a user",
        "route[6].proxy.cache: responses would be sent from the cache without authorization",
        "route[7].proxy.cache: the cache would mix responses",
        "route[4].proxy.rewrite.from: is not a regular expression: unclosed group",
        "route[4].proxy.rewrite.to: begins with a slash",
        "route[4].proxy.error_pages.200: `200` is not a status from 400 to 599",
        "route[4].proxy.error_pages.502.file: cannot read missing.html",
        "route[4].proxy.split.gone: there is no upstream `gone`",
        "route[4].proxy.split.keyed: is with those before it more than 100 percent",
        "route[4].proxy.mirror: there is no upstream `gone`",
        "route[4].proxy.fault: `delay` is missing",
        "route[4].proxy.auth: `to` is missing",
        "route[4].proxy.auth.copy: `content-length` is not a field that can be copied",
        "route[5].proxy.headers.x-user: `{clint}` is no place, such as {host}, {path}, {header:NAME} or {map:NAME} Some(\"did you mean `{client}`?\")",
        "route[5].proxy.auth.headers.x-user: `{owner}` is no place",
        "route[5].proxy.auth.to: has a query with a blank",
        "route[8].proxy.headers.x-a: `X-A` and `x-a` are the same header field",
        "route[8].proxy.headers.x-b: `X-B` and `x-b` are the same header field",
        "route[8].proxy.auth.headers.x-c: `X-C` and `x-c` are the same header field",
        "route[9].auth: `to` is missing",
        "route[9].auth.copy: `content-length` is not a field that can be copied",
        "route[9].auth.trust: `x` is not a network",
        "route[9].auth.relay: ",
        "route[10].auth.to: there is no upstream `gone`",
        "route[10].auth.headers.x-user: `{auth:a/b}` does not name a field",
        "upstream.api.servers[2].url: the server is given twice",
        "upstream.api.servers[3]: a server is a scheme, a host and a port",
        "upstream.api.balance: `fastest` is not a balancer",
        "upstream.api.retry.on: `sometimes` is not",
        "upstream.empty: there is no server",
        "upstream.file.file: missing.toml:1: cannot read it",
        "upstream.both.file: `servers` are given too",
        "upstream.both.resolvers: `10.0.0.2` is not an address with a port",
        "upstream.both.health: only checks over HTTP have `path`",
        "upstream.both.health: `service` names a service of gRPC",
        "upstream.checked.health.host: is a host name, with a port or without",
        "upstream.checked.health.headers.Connection: is set by itself",
        "upstream.checked.health.content: is not there in responses to HEAD",
        "upstream.zero.concurrency: is a number of requests",
        "upstream.spare: all servers are backups",
        "needs a whole path, such as unix:/run/app.sock",
        "upstream.limits.concurrency: a limit is fixed or adaptive",
        "upstream.keyed: `balance = \"maglev\"` chooses by a key",
    ] {
        assert!(shown.contains(part), "{part}\n---\n{shown}");
    }
    assert!(!shown.contains("secret"), "{shown}");
}

/// Every key, as the schema has it too.
#[test]
fn every_key_is_in_the_schema() {
    let upstream = r#"
balance = "maglev"
by = "source"
sticky = "server"
protocol = "http1"
connect_timeout = "1s"
response_timeout = "1s"
idle_timeout = "1s"
timeout = "1s"
connections = 1
queue = 0
keep = 1
keep_for = "1s"
lifetime = "1m"
tls = { insecure = true }
retry = { retries = 2, on = ["connect", "reset", "timeout", "5xx", "503"], budget = 10 }
dns = true
resolvers = ["10.0.0.2:53"]
zone = "a"
hedge = "50ms"
concurrency = { requests = 5, queue = 1, wait = "1s" }
breaker = { failures = 10, requests = 5, window = "1s", open = "1s", probes = 1 }
health = { kind = "http", path = "/", interval = "1s", timeout = "1s", healthy = 1, unhealthy = 1, status = 200, method = "POST", host = "a.test:81", headers = { authorization = "Bearer x" }, content = "up" }
eject = { failures = 1, time = "1s", most = 50 }
slow_start = "10s"
panic_threshold = 50
"#;
    let inline = upstream.trim().replace('\n', ", ");
    let text = format!(
        r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
prefix = "/a"
proxy = {{ to = "all", response_timeout = "2s", idle_timeout = "3s", timeout = "4s", strip = true, path = "/v1", host = "server", forwarded = "none", trust = ["10.0.0.0/8"], headers = {{ x-a = "1", cookie = false }}, rewrite = {{ from = "^/a", to = "/b" }}, max_request = "1MiB", max_response = "1MiB", buffer_response = "1MiB", error_pages = {{ 502 = {{ body = "b", type = "text/plain", status = 503 }}, 5xx = {{ file = "Cargo.toml" }} }}, intercept_errors = true, grpc_health = true, split = {{ least = 5, "http://10.0.0.8" = 1 }}, split_cookie = "variant", mirror = {{ to = "least", share = 5 }}, fault = {{ delay = "1ms", delay_share = 1, abort = 503, abort_share = 1 }}, auth = {{ to = "http://10.0.0.7/check", path = "/x", headers = {{ x-a = "{{client}}", cookie = false }}, copy = ["x-user"], to_client = ["x-level"], relay = false }} }}
[[route]]
prefix = "/c"
proxy = {{ to = "all", rewrite = [{{ from = "a", to = "/b" }}], mirror = "least", cache = true }}
[[route]]
prefix = "/d"
proxy = {{ to = "all", cache = false }}
[[route]]
prefix = "/e"
proxy = {{ to = "all", cache = {{ size = "1MiB", max_object = "1KiB", stale_while_revalidate = "1s", stale_if_error = "1s", default_lifetime = {{ 200 = "1m" }} }} }}
[[route]]
prefix = "/f"
jwt = {{ issuer = ["https://id.test"], audience = "a", jwks = "https://id.test/keys", refresh = "1m", refetch = "1s", algorithms = ["ES256"], type = "at+jwt", from = ["header", "cookie:t"], leeway = "0s", claims = {{ a = "b", c = true, d = ["e"] }}, pass_on = false, optional = true, realm = "r", cache = 0 }}
respond = {{}}
[[route]]
prefix = "/g"
auth = {{ to = "all", path = "/x", headers = {{ x-a = "{{client}}", cookie = false }}, copy = ["x-user"], to_client = ["x-level"], relay = false, trust = ["10.0.0.0/8"] }}
jwt = {{ issuer = "https://id.test", audience = false, jwks = {{ keys = [{{ kty = "OKP", crv = "Ed25519", x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }}] }} }}
respond = {{}}
[[route]]
prefix = "/h"
oidc = {{ issuer = "https://id.test", client_id = "a", client_secret = "b", url = "https://a.test", callback = "/h/back", logout = "/h/out", secret = ["0123456789abcdef0123456789abcdef"], lifetime = "1h", claims = {{ groups = "a" }}, keep = ["email"], userinfo = true, scopes = "email", cookie = "__Host-a" }}
respond = {{}}
[[route]]
prefix = "/b"
proxy = {{ to = "https://10.0.0.9", {inline} }}
[upstream.all]
servers = ["http://10.0.0.1", {{ url = "http://10.0.0.2:8080", weight = 3, zone = "a", backup = true }}]
{upstream}
[upstream.least]
servers = "http://10.0.0.1"
retry = false
health = true
eject = true
breaker = true
concurrency = {{ adaptive = true, min = 1, max = 9 }}
[traces]
otlp = "http://127.0.0.1:4318/v1/traces"
service = "edge"
[upstream.fixed]
servers = "http://10.0.0.1"
concurrency = 9
health = {{ kind = "grpc", service = "a.B" }}
"#
    );
    let plan = compiled(&text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}

#[test]
fn a_configuration_of_expressgateway_serves_once_it_is_translated() {
    let server = named("behind");
    let text = format!(
        "[[listeners]]\naddress = \"127.0.0.1:0\"\nprotocol = \"h1\"\n\
         backends = [{{ address = \"{0}\" }}, {{ address = \"{0}\", protocol = \"h2\" }}]\n\
         [listeners.websocket]\nidle_timeout_seconds = 5\nmax_message_size_bytes = 100\n\
         [listeners.http]\ntotal_timeout_ms = 9000\nheader_timeout_ms = 4000\n\
         [runtime]\nconnect_timeout_ms = 2000\nper_ip_connection_cap = 100\n\
         [passthrough]\nbind_addr = \"127.0.0.1:0\"\nbackends = [\"127.0.0.1:9\"]\n",
        server.address()
    );
    let imported = plimsoll_gateway::import_expressgateway("gateway.toml", &text).unwrap();
    let gateway = Served::new(&imported.toml);
    for _ in 0..8 {
        assert_eq!(get(gateway.address(), "/").text(), "behind");
    }
}

/// The examples of docs/auth.md, but for files that are not there.
#[test]
fn the_examples_of_the_page_load() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/auth.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = page.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        let (text, _) = block.split_once("```").unwrap();
        let problems = compiled(text).err().unwrap_or_default();
        let missing = |it: &ConfigProblem| it.message.contains("No such file");
        let others: Vec<_> = problems.iter().filter(|it| !missing(it)).collect();
        assert!(others.is_empty(), "{others:?}\n{text}");
    }
}

/// Copies and subrequests have no parameters, without which an application understands nothing.
#[test]
fn applications_get_no_requests_without_parameters() {
    for protocol in ["fastcgi", "uwsgi"] {
        for (key, names) in [
            ("mirror", "\"php\""),
            ("mirror", "{ to = \"php\", share = 5 }"),
            ("auth", "{ to = \"php\" }"),
            ("auth", "{ to = \"php\", path = \"/check\" }"),
        ] {
            let text = format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\n\
                 [[route]]\nproxy = {{ to = \"http://10.0.0.1\", {key} = {names} }}\n\
                 [upstream.php]\nservers = \"10.0.0.2:9000\"\nprotocol = \"{protocol}\"\n"
            );
            let problems = compiled(&text).unwrap_err();
            let [problem] = problems.as_slice() else {
                panic!("{problems:?}");
            };
            assert!(
                problem.key.starts_with(&format!("route[1].proxy.{key}"))
                    && problem.message.contains("speak FastCGI or uwsgi"),
                "{problem:?}"
            );
        }
    }
}
