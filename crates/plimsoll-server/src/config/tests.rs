use std::fmt::Write;

use plimsoll_testkit::{Authority, MaterialFiles};
use serde_json::Value;

use super::*;
use crate::limits::FloodLimits;

fn check(text: &str) -> Result<ServerPlan, String> {
    compile(text, Path::new("/nonexistent"), &Arc::default(), 3).map_err(|problems| {
        problems.iter().fold(String::new(), |mut all, problem| {
            write!(all, "{}:{}: {problem}", problem.line, problem.column).unwrap();
            if let Some(hint) = &problem.hint {
                write!(all, " ({hint})").unwrap();
            }
            all + "\n"
        })
    })
}

#[test]
fn the_starter_is_a_file_without_mistakes() {
    let plan = check(STARTER).unwrap();
    assert_eq!(plan.engine.threads, 3);
    assert_eq!(plan.engine.listeners.len(), 1);
    assert_eq!(plan.drain, Duration::from_secs(10));
    let document: Value =
        serde_json::to_value(toml::from_str::<toml::Table>(STARTER).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}

#[test]
fn everything_that_can_be_said_is_in_the_schema() {
    let text = r#"
        threads = 1
        pin = false
        drain = "1s"
        [limits]
        connections = 9
        connections_per_address = 8
        headers = 7
        http2_streams = 6
        head = "4KiB"
        body = "1MiB"
        discard = "2KiB"
        header_timeout = "1s"
        body_timeout = "2s"
        idle_timeout = "3s"
        write_timeout = "4s"
        handshake_timeout = "5s"
        body_rate = "1KiB"
        read_rate = "0B"
        http2_pings = 11
        http2_settings = 12
        http2_empty_data = 13
        http2_window_updates = 14
        http2_priorities = 15
        http2_resets = 16
        http2_continuations = 17
        http2_provoked_resets = 18
        [admin]
        address = "0.0.0.0:9090"
        token = "0123456789abcdef"
        [[listen]]
        address = "[::1]:0"
        share_port = true
        http2 = false
        [[route]]
        name = "all"
        host = "*.example.org"
        method = ["GET", "POST"]
        pattern = "/a/{b}/{c...}"
        query = { q = "1", r = true }
        header = { x-y = "z" }
        delay = "1ms"
        respond = { status = 201, type = "text/html", body = "x", headers = { x-a = "b" } }
        [[route]]
        regex = "/[0-9]+"
        redirect = { to = "https://{host}{path}{query}" }
    "#;
    let plan = check(text).unwrap();
    assert_eq!(plan.engine.limits.request.headers, 7);
    assert_eq!(plan.engine.limits.request.head_bytes, 4096);
    let limits = plan.engine.limits;
    assert_eq!(limits.http2.streams, 6);
    assert_eq!((limits.body_rate, limits.read_rate), (1024, 0));
    assert_eq!(limits.http2.provoked_resets, 18);
    let expected = FloodLimits {
        pings: 11,
        settings: 12,
        empty_data: 13,
        window_updates: 14,
        priorities: 15,
        resets: 16,
        continuations: 17,
    };
    assert_eq!(limits.http2.floods, expected);
    assert_eq!(plan.engine.limits.handshake_timeout, Duration::from_secs(5));
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}

#[test]
fn ten_mistakes_are_all_told() {
    let problems = check(
        r#"thread = 2
drain = 10

[limits]
body = "lots"

[[listen]]
address = "localhost"

[[listen]]
adress = "127.0.0.1:0"

[[route]]
path = "no-slash"
respond = { status = 99 }

[[route]]
method = "get"
prefix = "/"
echo = {}
redirect = { to = "/" }

[[route]]
redirect = { to = "/{pth}" }
"#,
    )
    .unwrap_err();
    assert_eq!(
        problems,
        "1:1: thread: unknown key (did you mean `threads`?)\n\
         2:9: drain: must be a duration in quotes, such as \"10s\"\n\
         5:8: limits.body: `lots` does not start with a number; write for example `64KiB`\n\
         8:11: listen[1].address: `localhost` is not an address with a port, such as 127.0.0.1:8080 or [::]:8080\n\
         10:1: listen[2]: `address` is missing (such as address = \"127.0.0.1:8080\")\n\
         11:1: listen[2].adress: unknown key (did you mean `address`?)\n\
         14:8: route[1].path: must begin with `/`\n\
         15:22: route[1].respond.status: must be a whole number from 200 to 599\n\
         17:1: route[2]: more than one action (a route has one of `respond`, `redirect` or `echo`)\n\
         18:10: route[2].method: `get` is not a method, such as GET\n\
         24:19: route[3].redirect.to: `{pth}` is not known; there are {host}, {path} and {query}\n"
    );
}

#[test]
fn the_admin_port_is_on_the_loopback_or_has_a_token() {
    let problems = |admin: &str| {
        check(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\n{admin}\n"
        ))
        .err()
    };
    assert_eq!(problems("address = \"127.0.0.1:9090\""), None);
    assert_eq!(
        problems("address = \"0.0.0.0:9090\"").as_deref(),
        Some("4:11: admin.address: is not on the loopback, so a `token` is needed\n")
    );
    assert!(problems("address = \"[::1]:1\"\ntoken = \"short\"").is_some());
    let text = "[[listen]]\naddress = \"127.0.0.1:9\"\n[admin]\naddress = \"127.0.0.1:9\"\n";
    assert!(
        check(text)
            .unwrap_err()
            .contains("is that of a [[listen]] already")
    );
}

#[test]
fn mistakes_of_syntax_have_their_place_too() {
    let problems = check("[[listen]]\naddress = \n").unwrap_err();
    assert!(problems.starts_with("2:"), "{problems}");
}

#[test]
fn certificates_are_read_with_the_file() {
    let (files, leaf) = (MaterialFiles::new(), Authority::new().issue(&["a.example"]));
    let cert = files.write("a.pem", leaf.pem());
    files.write("a.key", leaf.key_pem());
    let directory = cert.parent().unwrap();
    let compile = |key: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = [{{ cert = \"a.pem\", key = \"{key}\" }}]\n"
        );
        compile(&text, directory, &Arc::default(), 1)
    };
    assert!(compile("a.key").is_ok());
    let problems = compile("b.key").unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("b.key"), "{}", problems[0]);
}
