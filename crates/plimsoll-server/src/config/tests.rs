use std::fmt::Write;

use plimsoll_testkit::{Authority, MaterialFiles};
use serde_json::Value;

use super::*;
use crate::engine::{Http3Plan, Serves};
use crate::limits::FloodLimits;

fn check(text: &str) -> Result<ServerPlan, String> {
    let mut compiler = Compiler::new(Path::new("/nonexistent"), &Arc::default());
    compiler.threads = 3;
    compiler.compile(text).map_err(|problems| {
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
fn everything_that_can_be_written_is_in_the_schema() {
    let text = r#"
        threads = 1
        pin = false
        drain = "1s"
        [metrics]
        address = "0.0.0.0:9100"
        prefix = "servy"
        token = "sixteen-and-more"
        [limits]
        connections = 9
        connections_per_address = 8
        headers = 7
        http2_streams = 6
        head = "4KiB"
        target = "2KiB"
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
        http3_streams = 19
        http3_resets = 20
        http3_empty_frames = 21
        http3_unvalidated = 22
        [log]
        file = "-"
        format = "combined"
        queue = "1MiB"
        [admin]
        address = "0.0.0.0:9090"
        token = "0123456789abcdef"
        [[listen]]
        address = "[::1]:0"
        share_port = true
        proxied_by = ["10.0.0.0/8", "::1"]
        trusted_proxies = { networks = ["10.0.0.0/8"], header = "x-real-ip", recursive = false }
        underscores = "drop"
        http2 = false
        http3 = false
        request_id = { field = "x-id", accept = true }
        trace = { accept = false, sampled = 50 }
        response_headers = { remove = ["server", "x-a"], set = { x-b = "c" }, add = { x-d = "e" } }
        request_headers = { remove = "x-f" }
        cors = { origins = ["https://a.example"], methods = "PUT", headers = ["x-g"], expose = "x-h", credentials = true, max_age = "1h" }
        addresses = { allow = ["10.0.0.0/8", "::1"], deny = "10.1.0.0/16" }
        rate_limit = { requests = 5, per = "1m", burst = 6, key = "header:x-i", clients = 7 }
        basic_auth = { realm = "r", users = { alice = "$2y$04$abcdefghijklmnopqrstuuKKLzYHSLZiYDFhqk2TWOXkYgGqlqGYm" } }
        compress = { codings = ["br", "zstd"], types = "text/*", least = "2KiB" }
        security_headers = { referrer-policy = "no-referrer", permissions-policy = false }
        [[listen]]
        address = "[::1]:0"
        redirect_https = { port = 8443, status = 301 }
        trusted_proxies = "10.0.0.0/8"
        security_headers = true
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
    assert_eq!(plan.engine.listeners[0].proxied_by.len(), 2);
    assert_eq!(plan.logs[0].target, LogTarget::Stdout);
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}

#[test]
fn all_mistakes_are_reported() {
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
         8:11: listen[1].address: `localhost` is not an address with a port, such as 127.0.0.1:8080, localhost:8080, 8080 (this machine only) or :8080 (every address), nor unix:PATH or inherited:NAME\n\
         11:1: listen[2].adress: unknown key (did you mean `address`?)\n\
         14:8: route[1].path: must begin with `/`\n\
         15:22: route[1].respond.status: must be a whole number from 200 to 599\n\
         17:1: route[2]: more than one action (a route has one of `respond`, `redirect`, `rewrite` or `echo`)\n\
         18:10: route[2].method: `get` is not a method, such as GET\n\
         24:19: route[3].redirect.to: `{pth}` is no place, such as {host}, {path} or {query}, and no group of a regular expression, such as {1} (did you mean `{path}`?)\n"
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
            .contains("is that of another listener already")
    );
}

#[test]
fn client_certificates_are_for_tls() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\nclient_certificates = { required = 1 }\n";
    assert_eq!(
        check(text).unwrap_err(),
        "1:1: listen[1]: `client_certificates` are given, but no `tls`\n\
         3:23: listen[1].client_certificates: `ca` is missing (a file in PEM with those that vouch for clients)\n\
         3:36: listen[1].client_certificates.required: must be true or false\n"
    );
}

/// Case does not distinguish names of fields: which value would hold is not for their order to decide.
#[test]
fn fields_in_two_spellings_are_reported() {
    let text = r#"[[listen]]
address = "127.0.0.1:0"
request_headers = { set = { X-A = "1", x-a = "2" } }
response_headers = { set = { X-A = "1" }, add = { x-a = "1", X-A = "2" } }
security_headers = { Referrer-Policy = "no-referrer", referrer-policy = false }
[[route]]
header = { X-A = "1", x-a = "2" }
query = { A = "1", a = "2" }
respond = { headers = { Set-Cookie = "a=1", set-cookie = "b=2" } }
"#;
    assert_eq!(
        check(text).unwrap_err(),
        "3:46: listen[1].request_headers.set.x-a: `X-A` and `x-a` are the same header field (give it once)\n\
         4:68: listen[1].response_headers.add.X-A: `x-a` and `X-A` are the same header field (give it once)\n\
         5:73: listen[1].security_headers.referrer-policy: `Referrer-Policy` and `referrer-policy` are the same header field (give it once)\n\
         7:29: route[1].header.x-a: `X-A` and `x-a` are the same header field (give it once)\n\
         9:58: route[1].respond.headers.set-cookie: `Set-Cookie` and `set-cookie` are the same header field (give it once)\n"
    );
}

#[test]
fn mistakes_in_middleware_are_reported() {
    let text = r#"[[listen]]
address = "127.0.0.1:0"
request_id = false
proxied_by = "everybody"
trace = { sampled = 101 }
response_headers = { set = { date = "today" }, remove = ["a b"] }
cors = { origins = "*", credentials = true }
rate_limit = { per = "0s", key = "colour" }
[[route]]
basic_auth = { users = { alice = "plain" } }
compress = { codings = ["gzip", "deflate"], types = "text", last = "1KiB" }
cors = { methods = "put" }
echo = {}
[[route]]
basic_auth = { file = "none" }
rate_limit = { requests = 0 }
addresses = { deny = ["10.0.0.0/33"], alow = "::1", allow = [] }
echo = {}
"#;
    assert_eq!(
        check(text).unwrap_err(),
        "3:14: listen[1].request_id: must be true or a table\n\
         4:14: listen[1].proxied_by: `everybody` is not a network, such as 10.0.0.0/8\n\
         5:21: listen[1].trace.sampled: must be a whole number from 0 to 100\n\
         6:37: listen[1].response_headers.set.date: is set by the server and cannot be given\n\
         6:58: listen[1].response_headers.remove: `a b` is not the name of a header field\n\
         7:8: listen[1].cors: browsers do not send credentials to `*` (name the origins, or leave `credentials` out)\n\
         8:14: listen[1].rate_limit: `requests` is missing (such as requests = 100, per = \"1m\")\n\
         8:14: listen[1].rate_limit: `per` must be longer than nothing\n\
         8:34: listen[1].rate_limit.key: `colour` is not known; there are address, all, header:NAME and texts with places, such as {cookie:id}\n\
         10:34: route[1].basic_auth.users.alice: is no hash of a password that is known (bcrypt, argon2, $6$, $5$, $apr1$, $1$, {SSHA}, {SHA}, {PLAIN}); `htpasswd -nB NAME` makes one\n\
         11:33: route[1].compress.codings: `deflate` is not known; there are zstd, br and gzip\n\
         11:53: route[1].compress.types: `text` is not a media type, such as text/html, text/* or *+json\n\
         11:61: route[1].compress.last: unknown key (did you mean `least`?)\n\
         12:8: route[1].cors: `origins` is missing (such as origins = [\"https://example.org\"], or \"*\")\n\
         12:20: route[1].cors.methods: `put` is not a method, such as PUT\n\
         15:23: route[2].basic_auth.file: cannot read /nonexistent/none: No such file or directory (os error 2)\n\
         16:27: route[2].rate_limit.requests: must be a whole number from 1 to 10000000\n\
         17:13: route[2].addresses: `allow` names no network\n\
         17:23: route[2].addresses.deny: `10.0.0.0/33` is not a network, such as 10.0.0.0/8\n\
         17:39: route[2].addresses.alow: unknown key (did you mean `allow`?)\n"
    );
}

#[test]
fn mistakes_in_rules_that_rewrite_are_reported() {
    let text = r#"[[listen]]
address = "127.0.0.1:0"
response_headers = { rewrite = [
  { name = "location", from = "(" , to = "/" },
  { name = "location", from = "^/(.)", to = "/{2}" },
  { name = "content-length", from = "1", to = "2" },
  { name = "a b", to = "/" },
] }
[[route]]
regex = "/a/(.*)"
redirect = { to = "/{1}{2}" }
"#;
    assert_eq!(
        check(text).unwrap_err(),
        "4:31: listen[1].response_headers.rewrite[1].from: `(` is not a regular expression\n\
         5:45: listen[1].response_headers.rewrite[2].to: `{2}` is no place, such as {host}, {path} or {query}, and no group of a regular expression, such as {1}\n\
         6:12: listen[1].response_headers.rewrite[3].name: is set by the server and cannot be given\n\
         7:3: listen[1].response_headers.rewrite[4]: `from` is missing (such as from = \"^http://10.0.0.1:8080/\")\n\
         7:12: listen[1].response_headers.rewrite[4].name: `a b` is not the name of a header field\n\
         11:19: route[1].redirect.to: `{2}` is no place, such as {host}, {path} or {query}, and no group of a regular expression, such as {1}\n"
    );
}

#[test]
fn a_log_needs_a_place() {
    let problems = |log: &str| {
        check(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[log]\n{log}\n"
        ))
        .unwrap_err()
    };
    assert!(problems("").starts_with("3:1: log: `file` is missing"));
    assert_eq!(
        problems("file = \"a.log\"\nformat = \"xml\"\nqueue = \"1KiB\""),
        "3:1: log: `queue` must be from 64KiB to 1GiB\n\
         4:8: log.file: no file can be at /nonexistent/a.log\n\
         5:10: log.format: `xml` is not a format; there are json and combined (or write a text with places, such as format = \"{client} {request.line} {status}\")\n"
    );
}

#[test]
fn several_logs_differ_and_routes_choose_known_ones() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
log = ["a", "c"]
respond = {}
[[log]]
name = "a"
file = "-"
[[log]]
name = "a"
file = "-"
[[log]]
default = false
file = "-"
when = "{nonsense}"
"#;
    assert_eq!(
        check(text).unwrap_err(),
        "5:13: route[1].log: there is no log `c`; there are a\n\
         11:8: log[2].name: another log is called `a`\n\
         12:8: log[2].file: another log is written to the standard output\n\
         13:1: log[3]: the log has no requests (give it a `name`, by which routes choose it)\n\
         15:8: log[3].file: another log is written to the standard output\n\
         16:8: log[3].when: `{nonsense}` is no place, such as {host}, {path}, {header:NAME} or {map:NAME}\n"
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
        Compiler::new(directory, &Arc::default()).compile(&text)
    };
    let plan = compile("a.key").unwrap();
    assert_eq!(plan.certificates, [cert.clone(), directory.join("a.key")]);
    let problems = compile("b.key").unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("b.key"), "{}", problems[0]);
}

#[test]
fn a_certificate_that_is_made_stays_the_same() {
    let text = |tls: &str| format!("[[listen]]\naddress = \"127.0.0.1:0\"\ntls = [{tls}]\n");
    let compiler = Compiler::new(Path::new(""), &Arc::default());
    for _ in 0..2 {
        compiler.compile(&text("{ self_signed = true }")).unwrap();
    }
    assert_eq!(compiler.self_signed.borrow().len(), 1);
    let problems = check(&text(
        "{ self_signed = [\"a.example\", \"ä.example\"] }, { self_signed = true, key = \"a\" }",
    ))
    .unwrap_err();
    assert_eq!(
        problems,
        "3:38: listen[1].tls[1].self_signed: `ä.example` is neither a host nor an address\n\
         3:54: listen[1].tls[2]: both `self_signed` and files are given\n"
    );
}

#[test]
fn actions_of_other_crates_have_their_keys_and_places() {
    let kind = ActionKind {
        key: "brew",
        compile: |value, mounted| {
            if as_text(&value)? != mounted.prefix {
                return value.wrong("is not the prefix");
            }
            Some(Arc::new(|_: &WorkerContext| {
                Rc::new(crate::Echo) as Rc<dyn Action>
            }))
        },
    };
    let mut compiler = Compiler::new(Path::new(""), &Arc::default());
    compiler.actions.push(kind);
    let text = |action: &str| {
        format!("[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nprefix = \"/a\"\n{action}\n")
    };
    compiler.compile(&text("brew = \"/a\"")).unwrap();
    let problems = compiler.compile(&text("brew = \"/b\"")).unwrap_err();
    assert_eq!(problems[0].to_string(), "route[1].brew: is not the prefix");
    let problems = compiler.compile(&text("brwe = 1")).unwrap_err();
    let hints: Vec<_> = problems
        .iter()
        .filter_map(|it| it.hint.as_deref())
        .collect();
    assert_eq!(
        hints,
        [
            "give it `respond`, `redirect`, `rewrite`, `echo` or `brew`",
            "did you mean `brew`?"
        ]
    );
}

#[test]
fn http3_is_for_tls() {
    let listen = |more: &str| format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{more}\n");
    let http3 = |more: &str| {
        let plan = check(&listen(more))?;
        match &plan.engine.listeners[0].serves {
            Serves::Http { http3, .. } => Ok(http3.clone()),
            _ => Err("it is not HTTP".to_owned()),
        }
    };
    let tls = "tls = [{ self_signed = true }]\n";
    assert_eq!(http3(&format!("{tls}http3 = false")), Ok(None));
    let is_on = |advertised| {
        Ok(Some(Http3Plan {
            advertised,
            ..Http3Plan::default()
        }))
    };
    assert_eq!(http3(&format!("{tls}http3 = true")), is_on(None));
    let elsewhere = format!("{tls}http3 = {{ advertise = 443 }}");
    assert_eq!(http3(&elsewhere), is_on(Some(443)));
    let document =
        serde_json::to_value(toml::from_str::<toml::Table>(&listen(&elsewhere)).unwrap());
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validate(&schema, &document.unwrap()).unwrap();
    let mistake = http3("http3 = true").unwrap_err();
    assert!(mistake.contains("QUIC is always encrypted"), "{mistake}");
    assert!(http3(&format!("{tls}http3 = {{ advertise = 0 }}")).is_err());
    let mistake = http3(&format!("{tls}http3 = {{ retry_key = \"none\" }}")).unwrap_err();
    assert!(
        mistake.contains("http3.retry_key: cannot read"),
        "{mistake}"
    );
}

#[test]
fn where_to_listen_is_a_port_a_file_or_a_socket_that_is_there() {
    let listen = |more: &str| format!("[[listen]]\n{more}\n");
    let file = "address = \"unix:/run/x.sock\"\nmode = \"0660\"";
    let named = "address = \"inherited:web\"";
    let udp = "address = \"127.0.0.1:53\"\nudp = { echo = {} }";
    let port = "address = \"127.0.0.1:53\"";
    let text = [file, named, udp, port].map(listen).concat();
    let plan = check(&text).unwrap();
    let listeners = &plan.engine.listeners;
    assert_eq!(listeners[0].mode, Some(0o660));
    let shown = listeners.iter().map(|listener| format!("{listener:?}"));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "http at unix:/run/x.sock",
            "http at inherited:web",
            "udp at 127.0.0.1:53",
            "http at 127.0.0.1:53",
        ]
    );
    let document = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let tls = "tls = [{ self_signed = true }]";
    for (more, problem) in [
        (
            format!("{file}\n{tls}"),
            "`tls` is not for unix:/run/x.sock",
        ),
        (
            format!("{file}\nproxied_by = \"10.0.0.0/8\""),
            "`proxied_by` is not for",
        ),
        (
            format!("{named}\n{tls}\nhttp3 = true"),
            "HTTP/3 needs a port",
        ),
        (
            format!("{port}\nmode = \"0660\""),
            "is for a socket in the file system",
        ),
        (file.replace("0660", "rw"), "`rw` is no mode"),
        (file.replace("0660", "1777"), "`1777` is no mode"),
        ("address = \"x\"".to_owned(), "unix:PATH or inherited:NAME"),
        (
            "address = \"unix:x\"\nudp = { echo = {} }".to_owned(),
            "`udp` is not for",
        ),
        (format!("{port}\nudp = {{}}"), "udp = { echo = {} }"),
        (format!("{udp}\nhttp2 = true"), "http2"),
    ] {
        let problems = check(&listen(&more)).unwrap_err();
        assert!(problems.contains(problem), "{more}: {problems}");
    }
    for twice in [[udp, udp], [file, file], [named, named]] {
        let problems = check(&twice.map(listen).concat()).unwrap_err();
        assert!(problems.contains("is listened on already"), "{problems}");
    }
    let quic = listen(&format!("{port}\n{tls}\nhttp3 = true"));
    let both = [listen(udp), quic].concat();
    assert!(check(&both).unwrap_err().contains("is listened on already"));
}

#[test]
fn routes_are_served_by_the_listeners_that_they_name() {
    let listens = "[[listen]]\naddress = \"127.0.0.1:0\"\nname = \"a\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n";
    let route = |listen: &str| format!("[[route]]\nlisten = {listen}\nrespond = {{}}\n");
    assert!(check(&format!("{listens}{}", route("\"a\""))).is_ok());
    let problems = check(&format!("{listens}{}", route("[\"a\", \"c\"]"))).unwrap_err();
    assert_eq!(
        problems,
        "7:16: route[1].listen: there is no listener `c`; there are a\n"
    );
    let twice = "[[listen]]\naddress = \"127.0.0.1:0\"\nname = \"a\"\n".repeat(2);
    let problems = check(&twice).unwrap_err();
    assert_eq!(
        problems,
        "6:8: listen[2].name: another listener is called `a`\n"
    );
}
