//! Errors in the configuration: all of them, each with its key and what to do.

use crate::server::compiled;

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

[upstream.api]
servers = ["http://10.0.0.1:80", { url = "http://10.0.0.1", weight = 2 }, "http://10.0.0.2/path"]
balance = "fastest"
retry = { on = ["sometimes"] }

[upstream.empty]
servers = []

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
        "route[1].proxy: there is no upstream `shop` Some(\"there are api, empty, keyed\")",
        "route[2].proxy.forwarded: is \"x\", \"rfc7239\", \"both\" or \"none\"",
        "`10.0.0.0/99` is not a network",
        "route[2].proxy.headers.host: is set by the gateway",
        "route[2].proxy.stripp: unknown key Some(\"did you mean `strip`?\")",
        "route[3].proxy: has a user",
        "upstream.api.servers[2].url: the server is given twice",
        "upstream.api.servers[3]: a server is a scheme, a host and a port",
        "upstream.api.balance: `fastest` is not a balancer",
        "upstream.api.retry.on: `sometimes` is not",
        "upstream.empty: there is no server",
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
connections = 1
queue = 0
keep = 1
keep_for = "1s"
lifetime = "1m"
tls = { insecure = true }
retry = { retries = 2, on = ["connect", "reset", "timeout", "5xx", "503"], budget = 10 }
health = { path = "/", interval = "1s", timeout = "1s", healthy = 1, unhealthy = 1, status = 200 }
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
proxy = {{ to = "all", strip = true, path = "/v1", host = "server", forwarded = "none", trust = ["10.0.0.0/8"], headers = {{ x-a = "1", cookie = false }} }}
[[route]]
prefix = "/b"
proxy = {{ to = "https://10.0.0.9", {inline} }}
[upstream.all]
servers = ["http://10.0.0.1", {{ url = "http://10.0.0.2:8080", weight = 3 }}]
{upstream}
[upstream.least]
servers = "http://10.0.0.1"
retry = false
health = true
eject = true
"#
    );
    let plan = compiled(&text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}
