//! Middleware as a file configures it, over real sockets.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_server::config::ActionKind;
use plimsoll_server::{Action, Answer, Counters, Engine, Request, Response, WorkerContext, config};

use crate::server::Server;

/// A server by a file of one listener with `listen`, whose route answers `hello`.
fn serving(listen: &str, route: &str) -> Server {
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n{listen}\n[[route]]\npath = \"/\"\nrespond = {{ body = \"hello\" }}\n{route}\n\
         [[route]]\npath = \"/echo\"\necho = {{}}\n\
         [[route]]\npath = \"/fields\"\nshow = {{}}\n"
    );
    let counters = Arc::<Counters>::default();
    let mut compiler = config::Compiler::new(Path::new("."), &counters);
    compiler.actions.push(SHOW);
    let plan = compiler.compile(&text).unwrap();
    let engine = Engine::start(&plan.engine, counters).unwrap();
    let address = engine.addresses()[0];
    Server { engine, address }
}

/// Answers with the fields that it sees, in lower case, sorted.
const SHOW: ActionKind = ActionKind {
    key: "show",
    compile: |_, _| {
        Some(Arc::new(|_: &WorkerContext| {
            Rc::new(Show) as Rc<dyn Action>
        }))
    },
};

struct Show;

impl Action for Show {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let fields = request.headers();
        let fields = fields.map(|(name, value)| {
            let value = String::from_utf8_lossy(value);
            format!("{}: {value}", name.to_ascii_lowercase())
        });
        let mut lines: Vec<_> = fields.collect();
        lines.sort();
        Answer::now(Response::text(http::StatusCode::OK, lines.join("\n")))
    }
}

/// The answer to a request with these fields.
fn ask(server: &Server, start: &str, fields: &str) -> String {
    server.talk(format!(
        "{start} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n"
    ))
}

#[test]
fn header_rules_change_requests_and_responses() {
    let server = serving(
        "response_headers = { set = { x-a = \"1\" }, remove = [\"content-type\"] }",
        "header = { x-b = \"2\" }",
    );
    let answer = ask(&server, "GET /", "x-b: 2\r\n");
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-a: 1\r\nconnection: close\r\n\r\nhello"
    );
    // Changes of a listener to a request are visible to its routes.
    let server = serving(
        "request_headers = { add = { x-b = \"2\" } }",
        "header = { x-b = \"2\" }",
    );
    assert!(ask(&server, "GET /", "").starts_with("HTTP/1.1 200"));
}

#[test]
fn parts_of_fields_are_rewritten_by_the_first_rule_that_matches() {
    let rules = r#"response_headers = { rewrite = [
        { name = "location", from = "^http://backend:8080/(.*)$", to = "{scheme}://{authority}/app/{1}{query}" },
        { name = "location", from = "backend", to = "other" },
        { name = "x-path", from = "^/(?P<first>[a-z]+)", to = "/b/{first}{path}" },
    ] }"#;
    let server = serving(
        rules,
        "[[route]]\npath = \"/to\"\nrespond = { status = 302, headers = { location = \"http://backend:8080/x\", x-path = \"/a/b\" } }\n\
         [[route]]\npath = \"/other\"\nrespond = { status = 302, headers = { location = \"https://backend/x\" } }",
    );
    let answer = ask(&server, "GET /to?q=1", "");
    for expected in [
        "\r\nlocation: http://a/app/x?q=1\r\n",
        "\r\nx-path: /b/a/to/b\r\n",
    ] {
        assert!(answer.contains(expected), "{expected} in {answer}");
    }
    let answer = ask(&server, "GET /other", "");
    assert!(
        answer.contains("\r\nlocation: https://other/x\r\n"),
        "{answer}"
    );
}

#[test]
fn redirects_take_over_groups_of_the_path() {
    let server = serving(
        "",
        "[[route]]\nregex = \"/users/(?P<user>[a-z]+)(/.*)?\"\nredirect = { to = \"/people/{user}{2}?id={user}{query}\", status = 301 }",
    );
    for (target, location) in [
        ("/users/ann", "/people/ann?id=ann"),
        ("/users/ann/a%20b?x=1", "/people/ann/a%20b?id=ann&x=1"),
        ("/users/ann/%2e%41", "/people/ann/.A?id=ann"),
    ] {
        let answer = ask(&server, &format!("GET {target}"), "");
        assert!(
            answer.contains(&format!("\r\nlocation: {location}\r\n")),
            "{answer}"
        );
    }
}

#[test]
fn browsers_are_kept_safe_and_what_is_set_elsewhere_comes_first() {
    let server = serving(
        "security_headers = true\nresponse_headers = { set = { x-frame-options = \"SAMEORIGIN\" } }",
        "security_headers = { referrer-policy = \"no-referrer\" }",
    );
    let answer = ask(&server, "GET /", "");
    for expected in [
        "\r\ncontent-security-policy: default-src 'self'; ",
        "\r\nx-content-type-options: nosniff\r\n",
        "\r\nx-frame-options: SAMEORIGIN\r\n",
        "\r\nreferrer-policy: no-referrer\r\n",
    ] {
        assert_eq!(
            answer.matches(expected).count(),
            1,
            "{expected} in {answer}"
        );
    }
    // In the clear, anybody could have added it.
    assert!(!answer.contains("strict-transport-security"), "{answer}");
    let refused = ask(&server, "GET /nowhere", "");
    assert!(
        refused.contains("x-content-type-options: nosniff"),
        "{refused}"
    );
    let unknown = "[[listen]]\naddress = \"127.0.0.1:0\"\nsecurity_headers = { x-mine = \"1\" }\n";
    let compiler = config::Compiler::new(Path::new("."), &Arc::default());
    let problems = compiler.compile(unknown).unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .contains("is no field of the preset")
    );
}

#[test]
fn a_listener_sends_clients_to_tls() {
    let server = serving("redirect_https = true", "");
    let answer = ask(&server, "GET //evil.example/%2e?q=1", "");
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    let expected = "\r\nlocation: https://a//evil.example/%2e?q=1\r\n";
    assert!(answer.contains(expected), "{answer}");
    let server = serving("redirect_https = { port = 8443, status = 301 }", "");
    let answer = ask(&server, "OPTIONS *", "");
    assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
    assert!(
        answer.contains("\r\nlocation: https://a:8443/*\r\n"),
        "{answer}"
    );
    for wrong in [
        "redirect_https = { status = 300 }",
        "redirect_https = true\ntls = [{ self_signed = true }]",
    ] {
        let text = format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{wrong}\n");
        let compiler = config::Compiler::new(Path::new("."), &Arc::default());
        assert!(compiler.compile(&text).is_err(), "{wrong}");
    }
}

#[test]
fn requests_are_named() {
    let server = serving("request_id = true", "");
    let answer = ask(&server, "GET /", "x-request-id: mine\r\n");
    let id = answer.split("x-request-id: ").nth(1).unwrap();
    let id = id.split("\r\n").next().unwrap();
    assert_eq!(id.len(), 32, "{answer}");
    let server = serving("request_id = { accept = true, field = \"x-id\" }", "");
    assert!(ask(&server, "GET /", "x-id: mine\r\n").contains("x-id: mine\r\n"));
    assert!(!ask(&server, "GET /", "x-id: two words\r\n").contains("two words"));
}

#[test]
fn a_trace_goes_on_with_a_new_parent() {
    let given = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let server = serving("trace = true", "header = { traceparent = true }");
    assert!(ask(&server, "GET /", "").starts_with("HTTP/1.1 200"));
    assert!(ask(&server, "GET /", given).starts_with("HTTP/1.1 200"));
    let route =
        "header = { traceparent = \"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\" }";
    let server = serving("trace = true", route);
    assert!(ask(&server, "GET /", given).starts_with("HTTP/1.1 404"));
    let server = serving("", route);
    assert!(ask(&server, "GET /", given).starts_with("HTTP/1.1 200"));
}

#[test]
fn browsers_learn_who_may_read() {
    let server = serving(
        "cors = { origins = [\"https://a.example\"], methods = [\"PUT\"], expose = [\"x-a\"], credentials = true, max_age = \"1m\" }",
        "",
    );
    let preflight = "origin: https://a.example\r\naccess-control-request-method: PUT\r\naccess-control-request-headers: x-b\r\n";
    let answer = ask(&server, "OPTIONS /", preflight);
    for expected in [
        "HTTP/1.1 204",
        "access-control-allow-origin: https://a.example\r\n",
        "access-control-allow-methods: PUT\r\n",
        "access-control-allow-headers: x-b\r\n",
        "access-control-allow-credentials: true\r\n",
        "access-control-max-age: 60\r\n",
        "vary: origin\r\n",
    ] {
        assert!(answer.contains(expected), "no `{expected}` in {answer}");
    }
    let answer = ask(&server, "GET /", "origin: https://a.example\r\n");
    assert!(
        answer.contains("access-control-expose-headers: x-a\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = ask(&server, "GET /", "origin: https://b.example\r\n");
    assert!(!answer.contains("access-control"), "{answer}");
    assert!(answer.contains("vary: origin\r\n"), "{answer}");
    let answer = ask(&serving("cors = { origins = \"*\" }", ""), "GET /", "");
    assert!(
        answer.contains("access-control-allow-origin: *\r\n"),
        "{answer}"
    );
}

#[test]
fn clients_are_let_in_by_their_addresses() {
    for (addresses, is_let_in) in [
        ("allow = [\"127.0.0.0/8\"]", true),
        ("allow = [\"127.0.0.0/8\"], deny = \"127.0.0.1\"", false),
        ("allow = [\"10.0.0.0/8\"]", false),
        ("deny = [\"10.0.0.0/8\"]", true),
        ("allow = [\"127.0.0.1\"], deny = \"0.0.0.0/0\"", true),
    ] {
        let layer = format!("addresses = {{ {addresses} }}");
        for server in [serving(&layer, ""), serving("", &layer)] {
            let answer = ask(&server, "GET /", "");
            let status = if is_let_in { "200 OK" } else { "403 Forbidden" };
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{addresses}: {answer}"
            );
        }
    }
}

#[test]
fn trusted_proxies_name_the_client() {
    let allows = "addresses = { allow = \"192.0.2.7\" }";
    let of = |networks: &str| format!("trusted_proxies = [\"{networks}\", \"10.0.0.0/8\"]\n");
    let field = |name: &str, value: &str| format!("{name}: {value}\r\n");
    for (proxies, fields, is_let_in) in [
        ("127.0.0.0/8", field("x-forwarded-for", "192.0.2.7"), true),
        (
            "127.0.0.0/8",
            field("X-Forwarded-For", "6.6.6.6, 192.0.2.7:4711"),
            true,
        ),
        // Proxies behind one another.
        (
            "127.0.0.0/8",
            field("x-forwarded-for", "192.0.2.7, 10.0.0.9"),
            true,
        ),
        (
            "127.0.0.0/8",
            field("x-forwarded-for", "6.6.6.6") + &field("x-forwarded-for", "192.0.2.7"),
            true,
        ),
        // A client may have written what stands before its own address.
        (
            "127.0.0.0/8",
            field("x-forwarded-for", "192.0.2.7, 6.6.6.6"),
            false,
        ),
        (
            "127.0.0.0/8",
            field("x-forwarded-for", "192.0.2.7, unknown"),
            false,
        ),
        ("127.0.0.0/8", String::new(), false),
        ("127.0.0.0/8", field("x-real-ip", "192.0.2.7"), false),
        ("192.0.2.0/24", field("x-forwarded-for", "192.0.2.7"), false),
    ] {
        let server = serving(&(of(proxies) + allows), "");
        let answer = ask(&server, "GET /", &fields);
        assert_eq!(
            answer.starts_with("HTTP/1.1 200 "),
            is_let_in,
            "{fields}: {answer}"
        );
    }
    // The last address is a trusted proxy's own, or a client's in its network.
    let once =
        "trusted_proxies = { networks = [\"127.0.0.1\", \"10.0.0.0/8\"], recursive = false }\n";
    let server = serving(&(once.to_owned() + allows), "");
    for (value, is_let_in) in [("6.6.6.6, 192.0.2.7", true), ("192.0.2.7, 10.0.0.9", false)] {
        let answer = ask(&server, "GET /", &field("x-forwarded-for", value));
        assert_eq!(
            answer.starts_with("HTTP/1.1 200 "),
            is_let_in,
            "{value}: {answer}"
        );
    }
    for (header, value, is_let_in) in [
        ("x-real-ip", "192.0.2.7", true),
        (
            "forwarded",
            "for=6.6.6.6, for=\"192.0.2.7:80\";proto=https",
            true,
        ),
        // A client may choose the host that its proxy names.
        ("forwarded", "for=6.6.6.6;host=\"a,for=192.0.2.7\"", false),
        ("forwarded", "host=\"a;for=192.0.2.7\";for=6.6.6.6", false),
        // Or leave quotes open before what the proxy appends.
        ("forwarded", "for=192.0.2.7;host=\", for=6.6.6.6", false),
    ] {
        let proxies =
            format!("trusted_proxies = {{ networks = \"127.0.0.1\", header = \"{header}\" }}\n");
        let server = serving(&(proxies + allows), "");
        let answer = ask(&server, "GET /", &field(header, value));
        assert_eq!(
            answer.starts_with("HTTP/1.1 200 "),
            is_let_in,
            "{header}: {value}: {answer}"
        );
    }
}

#[test]
fn a_client_over_its_rate_learns_when_to_come_back() {
    let server = serving(
        "rate_limit = { requests = 2, per = \"1h\", key = \"header:x-key\" }",
        "",
    );
    let one = ask(&server, "GET /", "x-key: a\r\n");
    assert!(
        one.contains("ratelimit-policy: \"listener\";q=2;w=3600\r\n"),
        "{one}"
    );
    assert!(
        one.contains("ratelimit: \"listener\";r=1;t=1800\r\n"),
        "{one}"
    );
    ask(&server, "GET /", "x-key: a\r\n");
    let refused = ask(&server, "GET /", "x-key: a\r\n");
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    let wait = refused.split("retry-after: ").nth(1).unwrap();
    let wait: u64 = wait.split("\r\n").next().unwrap().parse().unwrap();
    assert!((1700..=1800).contains(&wait), "{refused}");
    assert!(refused.contains(";r=0;t="), "{refused}");
    let other = ask(&server, "GET /", "x-key: b\r\n");
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
}

#[test]
fn an_address_or_a_password_is_enough_where_any_suffices() {
    let hash = bcrypt::hash("hunter2", 4).unwrap();
    let password = "authorization: basic YWxpY2U6aHVudGVyMg==\r\n";
    for (addresses, satisfy, without, with) in [
        ("allow = [\"127.0.0.0/8\"]", "any", 200, 200),
        ("allow = [\"10.0.0.0/8\"]", "any", 401, 200),
        ("allow = [\"127.0.0.0/8\"]", "all", 401, 200),
        ("allow = [\"10.0.0.0/8\"]", "all", 403, 403),
    ] {
        let server = serving(
            "",
            &format!(
                "addresses = {{ {addresses} }}\nsatisfy = \"{satisfy}\"\nbasic_auth = {{ users = {{ alice = \"{hash}\" }} }}"
            ),
        );
        for (fields, expected) in [("", without), (password, with)] {
            let answer = ask(&server, "GET /", fields);
            let expected = format!("HTTP/1.1 {expected} ");
            assert!(
                answer.starts_with(&expected),
                "{addresses} {satisfy}: {answer}"
            );
        }
    }
}

#[test]
fn a_password_opens() {
    let hash = bcrypt::hash("hunter2", 4).unwrap();
    let server = serving(
        &format!("basic_auth = {{ realm = \"se\\\"cret\", users = {{ alice = \"{hash}\" }} }}"),
        "",
    );
    let none = ask(&server, "GET /", "");
    assert!(none.starts_with("HTTP/1.1 401 "), "{none}");
    assert!(
        none.contains("www-authenticate: Basic realm=\"secret\", charset=\"UTF-8\"\r\n"),
        "{none}"
    );
    // alice:hunter2, twice: checked, then remembered.
    for _ in 0..2 {
        let right = ask(
            &server,
            "GET /",
            "authorization: basic YWxpY2U6aHVudGVyMg==\r\n",
        );
        assert!(right.ends_with("\r\n\r\nhello"), "{right}");
    }
    // alice:hunter3, bob:hunter2, no colon, no base64
    for wrong in ["YWxpY2U6aHVudGVyMw==", "Ym9iOmh1bnRlcjI=", "YWxpY2U=", "!"] {
        let answer = ask(
            &server,
            "GET /",
            &format!("authorization: Basic {wrong}\r\n"),
        );
        assert!(answer.starts_with("HTTP/1.1 401 "), "{wrong}: {answer}");
    }
    // Content reaches the action, though the password is checked before.
    let server = serving(
        &format!("basic_auth = {{ users = {{ alice = \"{hash}\" }} }}"),
        "",
    );
    let answer = ask(
        &server,
        "POST /echo",
        "authorization: Basic YWxpY2U6aHVudGVyMg==\r\ncontent-length: 3\r\n\r\nabc",
    );
    assert!(answer.contains("abc"), "{answer}");
    let snapshot = server.engine.counters().snapshot();
    let counted = ("/echo".to_owned(), [0, 1, 0, 0, 0, 0]);
    assert!(snapshot.routes.contains(&counted), "{:?}", snapshot.routes);
}

#[test]
fn every_kind_of_htpasswd_opens_and_a_changed_file_holds_at_once() {
    // Of the password `secret`, made by OpenSSL, Python and the reference code of Argon2.
    let hashes = [
        (
            "bcrypt",
            "$2b$04$925LOPgaFESm4R9LIQt0/.Bk3T0ZkvO.QFosDML3CC971.9Odv/G.",
        ),
        (
            "argon2",
            "$argon2id$v=19$m=64,t=1,p=1$Qu6wvKASNwNIv+3VXDrbgA$ZTWifuBOn0qxuzQbMNUsbaJM42nPtYjFSN447jRhV04",
        ),
        (
            "sha256",
            "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
        ),
        (
            "sha512",
            "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
        ),
        ("apr1", "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"),
        ("sha1", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
        ("ssha", "{SSHA}1G904nLkTkGWjKNnQuB/hpWXC/hzYWx0c2FsdA=="),
    ];
    let lines = hashes
        .map(|(name, hash)| format!("{name}:{hash}\n"))
        .concat();
    let files = plimsoll_testkit::MaterialFiles::new();
    // As crypt(3) made them once: of such a user no password is known, and the others are let in.
    let old = "old:sa3tHJ3/KuYvI\n";
    let file = files.write("htpasswd", &format!("# users\n\n{old}{lines}"));
    let route = format!("basic_auth = {{ file = \"{}\" }}", file.display());
    let server = serving("", &route);
    let status = |user: &str, password: &str| {
        let field = credentials(user, password);
        let answer = ask(&server, "GET /", &field);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for (name, _) in hashes {
        assert_eq!(status(name, "secret"), "200", "{name}");
        assert_eq!(status(name, "Secret"), "401", "{name}");
    }
    assert_eq!(status("old", "secret"), "401");
    // Another field of the same name, which a server could take instead.
    let two = format!(
        "{}{}",
        credentials("apr1", "secret"),
        credentials("root", "x")
    );
    assert!(ask(&server, "GET /", &two).starts_with("HTTP/1.1 401 "));
    // A broken file changes nothing; a user who is gone is refused although the password was remembered.
    std::fs::write(&file, "apr1").unwrap();
    let (_, rest) = lines.split_once('\n').unwrap();
    assert_eq!(status("bcrypt", "secret"), "200");
    std::fs::write(&file, rest).unwrap();
    plimsoll_testkit::eventually(|| status("bcrypt", "secret") == "401");
    assert_eq!(status("apr1", "secret"), "200");
}

fn credentials(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let text = format!("{user}:{password}");
    let text = base64::prelude::BASE64_STANDARD.encode(text);
    format!("authorization: Basic {text}\r\n")
}

#[test]
fn responses_are_compressed_as_the_client_prefers() {
    let body = "x".repeat(3000);
    let server = serving(
        "",
        &format!(
            "compress = {{ codings = [\"gzip\"] }}\n[[route]]\npath = \"/long\"\ncompress = true\nrespond = {{ body = \"{body}\" }}"
        ),
    );
    let plain = ask(&server, "GET /", "accept-encoding: gzip\r\n");
    assert!(
        !plain.contains("content-encoding"),
        "it is too short: {plain}"
    );
    let mut stream = server.connect();
    std::io::Write::write_all(
        &mut stream,
        b"GET /long HTTP/1.1\r\nhost: a\r\nconnection: close\r\naccept-encoding: gzip;q=0.5, br\r\n\r\n",
    )
    .unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]);
    assert!(head.contains("content-encoding: br\r\n"), "{head}");
    assert!(head.contains("vary: accept-encoding\r\n"), "{head}");
    let length = format!("content-length: {}\r\n", answer.len() - end);
    assert!(head.contains(&length), "{head}");
    let mut content = String::new();
    let mut decoder = brotli::Decompressor::new(&answer[end..], 4096);
    std::io::Read::read_to_string(&mut decoder, &mut content).unwrap();
    assert_eq!(content, body);
    let head = ask(&server, "HEAD /long", "accept-encoding: br\r\n");
    assert!(head.contains("content-encoding: br\r\n"), "{head}");
}

#[test]
fn fields_that_are_read_as_others_are_dropped() {
    let sent = "X_Team: evil\r\nX-Team: client\r\nX_Forwarded_For: 6.6.6.6\r\nX_Other: 1\r\n";
    let layers = "request_headers = { set = { x-team = \"ours\" } }";
    let all = "x-team: ours\nx_forwarded_for: 6.6.6.6\nx_other: 1\nx_team: evil";
    for (setting, kept, dropped) in [
        ("", "x-team: ours\nx_other: 1", 2),
        (
            "underscores = \"collisions\"",
            "x-team: ours\nx_other: 1",
            2,
        ),
        ("underscores = \"drop\"", "x-team: ours", 3),
        ("underscores = \"allow\"", all, 0),
    ] {
        let server = serving(&format!("{layers}\n{setting}"), "");
        let answer = ask(&server, "GET /fields", sent);
        let expected = format!("\r\n\r\nconnection: close\nhost: a\n{kept}");
        assert!(answer.ends_with(&expected), "{setting}: {answer}");
        let counted = server.engine.counters().snapshot().dropped_fields;
        assert_eq!(counted, dropped, "{setting}");
    }
    let wrong = "[[listen]]\naddress = \"127.0.0.1:0\"\nunderscores = \"on\"\n";
    let compiler = config::Compiler::new(Path::new("."), &Arc::default());
    let problems = compiler.compile(wrong).unwrap_err();
    let problem = problems[0].to_string();
    assert!(
        problem.contains("is \"collisions\", \"drop\" or \"allow\""),
        "{problem}"
    );
}
