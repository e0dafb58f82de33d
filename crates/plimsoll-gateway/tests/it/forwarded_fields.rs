//! What of a request's fields servers receive: those that are ours arrive once, with our values, whatever clients send.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Head, Pool, Speaks};
use plimsoll_testkit::http::{exchange, get_with};
use plimsoll_testkit::{Http2Origin, Logic, Origin, Question, Reply, Script, Step, eventually};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::client::{pool, run_local};
use crate::pairs::Sent;
use crate::server::Served;

/// A server that keeps what it received last.
struct Witness {
    origin: Origin,
    last: Arc<Mutex<Option<Question>>>,
}

impl Witness {
    /// - `fields`: those of its responses.
    fn new(fields: &[(&str, &str)]) -> Self {
        let last = Arc::<Mutex<Option<Question>>>::default();
        let seen = Arc::clone(&last);
        let reply = Reply::new(200, fields);
        let logic = Logic::new(move |question| {
            *seen.lock().unwrap() = Some(question.clone());
            reply.clone()
        });
        let script = move |_| Script::new().then(Step::Reply(logic.clone()));
        let origin = Origin::builder().script(script).start();
        Self { origin, last }
    }

    fn url(&self) -> String {
        self.origin.url("").trim_end_matches('/').to_owned()
    }

    fn received(&self) -> Question {
        let last = self.last.lock().unwrap().take();
        last.expect("a request reached the server")
    }
}

/// A name as CGI, WSGI and Rack read it.
fn folded(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// The values that such a server has for a field.
fn values<'a>(question: &'a Question, name: &str) -> Vec<&'a str> {
    let fields = question.fields.iter();
    let same = fields.filter(|(known, _)| folded(known) == folded(name));
    same.map(|(_, value)| value.as_str()).collect()
}

#[track_caller]
fn expect(question: &Question, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let seen = values(question, name);
        assert_eq!(seen, [*value], "{name} of {:?}", question.fields);
    }
}

const LAYERS: &str = "request_id = true\n\
    request_headers = { set = { x-forwarded-prefix = \"/app\", x-layer = \"ours\" } }\n";

/// A gateway with every source of fields: in the clear and over TLS with HTTP/3.
fn gateway(server: &str, service: &str) -> Served {
    gateway_and(server, service, "")
}

/// The same with more configuration.
fn gateway_and(server: &str, service: &str, more: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{LAYERS}\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n{LAYERS}\
        [[route]]\nproxy = {{ to = \"{server}\", \
        headers = {{ x-tenant = \"safe\", x_team = \"core\", x-real-ip = \"{{client}}\", x-gone = false }}, \
        auth = {{ to = \"{service}\", copy = [\"x-user\", \"x-role\"] }} }}\n{more}"
    ))
}

/// Every field that [`gateway`] sets, with the value that servers get.
const OURS: [(&str, &str); 7] = [
    ("x-tenant", "safe"),
    ("x-team", "core"),
    ("x-real-ip", "127.0.0.1"),
    ("x-forwarded-for", "127.0.0.1"),
    ("x-forwarded-prefix", "/app"),
    ("x-layer", "ours"),
    ("x-user", "ann"),
];

#[test]
fn a_client_cannot_remove_what_is_ours_by_its_connection_field() {
    let (server, service) = (Witness::new(&[]), Witness::new(&[("x-user", "ann")]));
    let gateway = gateway(&server.url(), &service.url());
    let nominated = "x-forwarded-for, x-real-ip, x-tenant, x-team, x_team, x-user, x-layer, \
        x-forwarded-proto, x-forwarded-host, x-forwarded-prefix, x-forwarded-uri, x-forwarded-method, \
        x-request-id, via, x-hop";
    let fields =
        format!("Connection: close, {nominated}\r\nX-Hop: 1\r\nX-User: root\r\nX-Kept: 1\r\n");
    let request = format!("GET /a?b HTTP/1.1\r\nHost: shop.test\r\n{fields}\r\n");
    assert_eq!(exchange(gateway.address(), request.as_bytes()).status, 200);
    let seen = server.received();
    expect(&seen, &OURS);
    let more = [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "shop.test"),
        ("via", "1.1 plimsoll"),
        ("x-kept", "1"),
    ];
    expect(&seen, &more);
    assert_eq!(values(&seen, "x-request-id").len(), 1);
    assert!(values(&seen, "x-hop").is_empty());
    let asked = service.received();
    expect(&asked, &OURS[..6]);
    expect(&asked, &more);
    expect(
        &asked,
        &[("x-forwarded-uri", "/a?b"), ("x-forwarded-method", "GET")],
    );
    // What only the service sets nobody else does.
    assert!(values(&asked, "x-user").is_empty(), "{:?}", asked.fields);
}

/// The copy of a request follows the order of its head.
#[test]
fn a_mirror_receives_the_fields_that_the_server_receives() {
    let (server, service) = (Witness::new(&[]), Witness::new(&[("x-user", "ann")]));
    let mirror = Witness::new(&[]);
    let more = format!("[upstream.shadow]\nservers = [\"{}\"]\n", mirror.url());
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{LAYERS}\
        [[route]]\nproxy = {{ to = \"{}\", mirror = \"shadow\", \
        headers = {{ x-tenant = \"safe\", x_team = \"core\", x-real-ip = \"{{client}}\", x-gone = false }}, \
        auth = {{ to = \"{}\", copy = [\"x-user\", \"x-role\"] }} }}\n{more}",
        server.url(),
        service.url()
    ));
    let nominated = OURS.map(|(name, _)| name).join(", ");
    let evil = [
        "X-User",
        "X_Tenant",
        "X_Team",
        "X-Team",
        "X-Role",
        "X-Gone",
        "X-Forwarded-For",
        "X_Forwarded_For",
        "X-Layer",
    ];
    let evil = evil.map(|name| format!("{name}: evil\r\n")).concat();
    let request = format!(
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close, x-hop, {nominated}\r\n{evil}X-Hop: 1\r\n\r\n"
    );
    assert_eq!(exchange(gateway.address(), request.as_bytes()).status, 200);
    eventually(|| mirror.origin.requests() == 1);
    eventually(|| mirror.last.lock().unwrap().is_some());
    let (seen, copied) = (server.received(), mirror.received());
    for question in [&seen, &copied] {
        expect(question, &OURS);
        for name in ["x-hop", "x-role", "x-gone"] {
            assert!(values(question, name).is_empty(), "{:?}", question.fields);
        }
    }
}

#[test]
fn fields_of_proxies_come_from_trusted_ones_alone() {
    let server = Witness::new(&[]);
    let url = server.url();
    let trusting = format!(
        "[[route]]\nprefix = \"/t\"\nproxy = {{ to = \"{url}\", trust = [\"127.0.0.0/8\"] }}\n\
         [[route]]\nproxy = {{ to = \"{url}\", forwarded = \"none\" }}\n"
    );
    let gateway = Served::routes(&trusting);
    let names = [
        "X-Forwarded-Prefix",
        "X-Forwarded-User",
        "X-Forwarded-Email",
        "X-Forwarded-Ssl",
        "X-Forwarded-Port",
        "X-Forwarded-Client-Cert",
        "Forwarded",
        "X-Real-IP",
        "True-Client-IP",
        "X-Original-URL",
        "X-Rewrite-URL",
    ];
    let fields = names.map(|name| format!("{name}: evil\r\n")).concat();
    get_with(gateway.address(), "/", &fields);
    let seen = server.received();
    for name in names {
        assert!(values(&seen, name).is_empty(), "{name}");
    }
    // A client behind a trusted proxy cannot have it forget whom it speaks for.
    let nominated = format!("{fields}Connection: {}\r\n", names.join(", "));
    let request = format!(
        "GET /t HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{nominated}X-Forwarded-For: 192.0.2.7\r\n\r\n"
    );
    exchange(gateway.address(), request.as_bytes());
    let seen = server.received();
    for name in names {
        assert_eq!(values(&seen, name), ["evil"], "{name}");
    }
    expect(&seen, &[("x-forwarded-for", "192.0.2.7, 127.0.0.1")]);
}

/// Fields that a client sends: names of ours in many spellings, and others.
fn sent() -> impl Strategy<Value = Vec<(String, String)>> {
    let names = OURS.iter().map(|(name, _)| *name);
    let more = [
        "x-forwarded-proto",
        "via",
        "x-request-id",
        "x-role",
        "x-gone",
        "cookie",
        "x-other",
    ];
    let name = prop::sample::select(names.chain(more).collect::<Vec<_>>());
    let spelled = (name, any::<u32>()).prop_map(|(name, choices)| {
        let spell = |(at, letter): (usize, char)| match (choices >> (at % 32)) & 1 {
            0 => letter,
            _ if letter == '-' => '_',
            _ => letter.to_ascii_uppercase(),
        };
        name.chars().enumerate().map(spell).collect::<String>()
    });
    prop::collection::vec((spelled, "evil[0-9]"), 0..12)
}

/// Sends a GET with these fields.
async fn get(pool: &Pool, url: &str, fields: &[(String, String)]) -> u16 {
    let endpoint = Endpoint::parse(url).unwrap();
    let lease = pool.acquire(&endpoint).await.unwrap();
    let fields = fields.to_vec();
    let head = Head::new("GET", "/", &fields);
    let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
    let status = exchange.final_head().await.unwrap().status;
    while exchange.frame().await.is_some() {}
    status.as_u16()
}

/// Over every version a client may spell and repeat fields as it likes. `PLIMSOLL_SEED` repeats a run, and `PLIMSOLL_CASES`
/// makes a longer one.
#[test]
fn servers_receive_exactly_our_value_under_every_spelling() {
    let (server, service) = (Witness::new(&[]), Witness::new(&[("x-user", "ann")]));
    let gateway = gateway(&server.url(), &service.url());
    let (clear, tls) = (gateway.addresses[0], gateway.addresses[1]);
    let nominated = prop::sample::subsequence(OURS.map(|(name, _)| name).to_vec(), 0..=7);
    let number = plimsoll_testkit::seed(fastrand::u64(..));
    let mut runner = TestRunner::new(Config {
        cases: plimsoll_testkit::cases(100),
        rng_seed: RngSeed::Fixed(number),
        failure_persistence: None,
        ..Config::default()
    });
    for (speaks, url) in [
        (Speaks::Http1, format!("http://{clear}")),
        (Speaks::Http2, format!("http://{clear}")),
        (Speaks::Http2, format!("https://{tls}")),
        (Speaks::Http3, format!("https://{tls}")),
    ] {
        let cases = (sent(), nominated.clone());
        let checked = runner.run(&cases, |(fields, nominated)| {
            let lower = |name: &String| name.to_ascii_lowercase();
            if speaks == Speaks::Http1 {
                let lines = fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n"));
                let lines: String = lines.collect();
                let more = format!("{lines}Connection: {}\r\n", nominated.join(", "));
                prop_assert_eq!(get_with(clear, "/", &more).status, 200);
            } else {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| (lower(name), value.clone()))
                    .collect();
                let status = run_local(async { get(&pool(speaks), &url, &fields).await });
                prop_assert_eq!(status, 200);
            }
            let seen = server.received();
            for (name, value) in OURS {
                prop_assert_eq!(
                    values(&seen, name),
                    [value],
                    "{} of {:?}",
                    name,
                    seen.fields
                );
            }
            let id = values(&seen, "x-request-id");
            prop_assert!(
                id.len() == 1 && !id[0].contains("evil"),
                "{:?}",
                seen.fields
            );
            let via = values(&seen, "via");
            prop_assert!(
                via.len() == 1 && via[0].ends_with(" plimsoll"),
                "{:?}",
                seen.fields
            );
            let scheme = if url.starts_with("https") {
                "https"
            } else {
                "http"
            };
            prop_assert_eq!(values(&seen, "x-forwarded-proto"), [scheme]);
            for name in ["x-role", "x-gone"] {
                prop_assert!(values(&seen, name).is_empty(), "{:?}", seen.fields);
            }
            // What is the client's alone arrives as it was sent, cookies as one.
            let others = fields.iter().filter(|(name, _)| folded(name) == "X_OTHER");
            prop_assert_eq!(others.count(), values(&seen, "x-other").len());
            let cookies: Vec<_> = fields
                .iter()
                .filter(|(name, _)| lower(name) == "cookie")
                .collect();
            let joined = cookies
                .iter()
                .map(|(_, value)| value.as_str())
                .collect::<Vec<_>>()
                .join("; ");
            let expected: &[&str] = if cookies.is_empty() { &[] } else { &[&joined] };
            prop_assert_eq!(values(&seen, "cookie"), expected);
            Ok(())
        });
        checked.unwrap_or_else(|error| {
            panic!("repeat it with PLIMSOLL_SEED={number}: {speaks:?} {url}: {error}")
        });
    }
}

/// Trailers of a client that no server may get: fields of ours, those that only we set, other spellings of both, and
/// fields of heads.
const WITHHELD: [&str; 37] = [
    "x-tenant",
    "x-real-ip",
    "x-forwarded-for",
    "x-forwarded-prefix",
    "x-layer",
    "x-user",
    "x_tenant",
    "x-team",
    "x_forwarded_for",
    "x-role",
    "x-gone",
    "x-forwarded-proto",
    "x-forwarded-user",
    "x-request-id",
    "via",
    // Those that belong to a head (RFC 9110, section 6.5.1).
    "authorization",
    "cache-control",
    "content-encoding",
    "content-range",
    "content-type",
    "cookie",
    "age",
    "date",
    "expect",
    "expires",
    "if-match",
    "if-none-match",
    "location",
    "max-forwards",
    "proxy-authorization",
    "range",
    "retry-after",
    "set-cookie",
    "te",
    "vary",
    "warning",
    "www-authenticate",
];

/// A server may merge trailers into the head: what a client cannot send there it cannot send behind its content either.
#[test]
fn trailers_of_a_client_follow_the_rules_of_its_head() {
    let service = Witness::new(&[("x-user", "ann")]);
    let echo = Served::new(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n\
        [[route]]\necho = {}\n",
    );
    for (protocol, server) in [
        ("http1", format!("http://{}", echo.addresses[0])),
        ("http2", format!("http://{}", echo.addresses[0])),
        ("http3", format!("https://{}", echo.addresses[1])),
    ] {
        let more = format!(
            "[upstream.all]\nservers = [\"{server}\"]\nprotocol = \"{protocol}\"\n\
            tls = {{ insecure = true }}\n"
        );
        let gateway = gateway_and("all", &service.url(), &more);
        let (clear, tls) = (gateway.addresses[0], gateway.addresses[1]);
        for allowed in ["x-sum: 7\r\n", ""] {
            let evil = WITHHELD.map(|name| format!("{name}: evil\r\n")).concat();
            let request = format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, te, x-hop\r\n\
                Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{evil}x-hop: evil\r\n{allowed}\r\n"
            );
            let received = exchange(clear, request.as_bytes());
            assert_eq!(received.status, 200, "{protocol}: {}", received.head);
            let text = format!("{}\n{}", received.text(), received.trailers);
            assert!(text.contains("hi"), "{protocol}: {text}");
            assert!(!text.contains("evil"), "{protocol}: {text}");
            let has_allowed = text.contains("x-sum: 7");
            assert_eq!(has_allowed, !allowed.is_empty(), "{protocol}: {text}");
        }
        for (speaks, url) in [
            (Speaks::Http2, format!("http://{clear}")),
            (Speaks::Http3, format!("https://{tls}")),
        ] {
            let evil = WITHHELD.map(|name| (name, "evil"));
            for allowed in [[("x-sum", "7")].as_slice(), &[]] {
                let sent = evil.iter().chain(allowed).copied();
                let received = run_local(trailers(&pool(speaks), &url, map(sent)));
                let expected = map(allowed.iter().copied());
                assert_eq!(received, expected, "{speaks:?} to {protocol}");
            }
        }
    }
}

#[test]
fn a_trusted_proxy_may_describe_its_client_in_trailers() {
    let echo = Served::routes("[[route]]\necho = {}\n");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", trust = [\"127.0.0.0/8\"] }}\n",
        echo.url()
    ));
    let sent = map([("x-forwarded-user", "ann"), ("x-forwarded-for", "evil")]);
    let received = run_local(trailers(&pool(Speaks::Http2), &gateway.url(), sent));
    assert_eq!(received, map([("x-forwarded-user", "ann")]));
}

fn map(fields: impl IntoIterator<Item = (&'static str, &'static str)>) -> HeaderMap {
    let fields = fields.into_iter().map(|(name, value)| {
        let (name, value) = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        (name, value)
    });
    fields.collect()
}

/// Posts content with trailers; returns those of the response.
async fn trailers(pool: &Pool, url: &str, trailers: HeaderMap) -> HeaderMap {
    let endpoint = Endpoint::parse(url).unwrap();
    let lease = pool.acquire(&endpoint).await.unwrap();
    let body = Sent::of_pieces([Frame::data("hi".into()), Frame::trailers(trailers)]);
    let fields = [("te", "trailers")];
    let head = Head::new("POST", "/", &fields);
    let mut exchange = lease.begin(&head, body).unwrap();
    assert_eq!(exchange.final_head().await.unwrap().status, 200);
    let content = exchange.into_response_body().collect().await.unwrap();
    let trailers = content.trailers().cloned();
    assert_eq!(content.to_bytes(), "hi");
    trailers.unwrap_or_default()
}

#[test]
fn cookies_of_every_version_are_one_field_for_servers_of_http_1_and_for_us() {
    let server = Witness::new(&[]);
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n\
        [[route]]\nproxy = {{ to = \"{}\" }}\n",
        server.url()
    ));
    let fields =
        ["theme=dark", "session=SECRET", "csrf=t"].map(|it| ("cookie".to_owned(), it.to_owned()));
    for (speaks, url) in [
        (Speaks::Http1, format!("http://{}", gateway.addresses[0])),
        (Speaks::Http2, format!("http://{}", gateway.addresses[0])),
        (Speaks::Http3, format!("https://{}", gateway.addresses[1])),
    ] {
        let status = run_local(async { get(&pool(speaks), &url, &fields).await });
        assert_eq!(status, 200);
        expect(
            &server.received(),
            &[("cookie", "theme=dark; session=SECRET; csrf=t")],
        );
    }
}

#[test]
fn no_tunnel_for_an_unknown_protocol_reaches_a_server() {
    let server = Witness::new(&[]);
    let url = server.url();
    let gateway = Served::routes(&format!(
        "[[route]]\nprefix = \"/no\"\nproxy = {{ to = \"{url}\", websocket = false }}\n\
         [[route]]\nproxy = {{ to = \"{url}\" }}\n"
    ));
    for (protocol, path) in [
        ("connect-udp", "/any"),
        ("websockets", "/any"),
        ("websocket", "/no"),
    ] {
        let status = run_local(async {
            let lease = pool(Speaks::Http2)
                .acquire(&Endpoint::parse(&gateway.url()).unwrap())
                .await
                .unwrap();
            lease.settled().await;
            let head = Head {
                upgrade: Some(protocol),
                ..Head::new("CONNECT", path, &())
            };
            let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
            exchange.final_head().await.unwrap().status.as_u16()
        });
        assert_eq!(status, 501, "{protocol} {path}");
    }
    let plain = b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(gateway.address(), plain).status, 405);
    assert_eq!(server.origin.requests(), 0);
    assert_eq!(server.origin.connections(), 0);
}

#[test]
fn responses_whose_end_others_may_see_elsewhere_are_a_502() {
    for (fields, expected) in [
        ("Transfer-Encoding: gzip, chunked\r\n", 502),
        ("Transfer-Encoding: foo\r\n", 502),
        ("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", 502),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 502),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 502),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 200),
    ] {
        let content = if fields.contains("hunked") {
            "5\r\nhello\r\n0\r\n\r\n"
        } else {
            "hello"
        };
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{content}");
        let origin = Origin::scripted(Script::serve(response));
        let url = origin.url("");
        let gateway = Served::routes(&format!(
            "[[route]]\nproxy = {{ to = \"{}\", retry = false }}\n",
            url.trim_end_matches('/')
        ));
        let received = get_with(gateway.address(), "/", "");
        assert_eq!(received.status, expected, "{fields}: {}", received.head);
    }
}

#[test]
fn servers_of_http_2_get_our_fields_too() {
    let last = Arc::<Mutex<Option<Question>>>::default();
    let seen = Arc::clone(&last);
    let logic = Logic::new(move |question| {
        *seen.lock().unwrap() = Some(question.clone());
        Reply::new(200, &[])
    });
    let origin = Http2Origin::builder().logic(logic).start();
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"all\", headers = {{ x-tenant = \"safe\" }} }}\n\
        [upstream.all]\nservers = [\"http://{}\"]\nprotocol = \"http2\"\n",
        origin.address()
    ));
    let fields =
        "X-Tenant: evil\r\nConnection: x-tenant, x-forwarded-for\r\nX-Forwarded-For: 6.6.6.6\r\n";
    assert_eq!(get_with(gateway.address(), "/", fields).status, 200);
    let seen = last.lock().unwrap().take().unwrap();
    expect(
        &seen,
        &[("x-tenant", "safe"), ("x-forwarded-for", "127.0.0.1")],
    );
}
