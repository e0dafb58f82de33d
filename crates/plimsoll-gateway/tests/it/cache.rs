//! The response cache, between a client and an origin that counts its requests.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_testkit::http::{HttpResponse, connect, exchange, get, get_with};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually};

use crate::server::Served;

/// A gateway with a cache, and the origin behind it.
struct Bench {
    origin: Origin,
    gateway: Served,
}

/// - `logic`: the response to each request, whose number it gets, from 1 on.
fn bench(cache: &str, logic: impl Fn(u64) -> Reply + Send + Sync + 'static) -> Bench {
    let requests = AtomicU64::new(0);
    let logic = Logic::new(move |_| logic(requests.fetch_add(1, Ordering::Relaxed) + 1));
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    let origin = Origin::builder().script(script).start();
    let url = origin.url("");
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\nproxy = {{ to = \"{}\", cache = {cache} }}\n",
        url.trim_end_matches('/')
    ));
    Bench { origin, gateway }
}

impl Bench {
    fn get(&self, path: &str, fields: &str) -> HttpResponse {
        get_with(self.gateway.address(), path, fields)
    }
}

#[test]
fn responses_that_are_not_stored_say_why_they_were_forwarded() {
    let bench = bench("true", |_| {
        Reply::new(200, &[("cache-control", "no-store")])
    });
    let status = |line: &str, fields: &str| {
        let text = format!("{line} HTTP/1.1\r\nhost: a\r\n{fields}connection: close\r\n\r\n");
        let received = exchange(bench.gateway.address(), text.as_bytes());
        received.field("cache-status").map(str::to_owned)
    };
    for (line, fields, expected) in [
        ("GET /a", "", "fwd=uri-miss"),
        // The cache has noted that the response to this is not stored.
        ("GET /a", "", "fwd=uri-miss"),
        ("GET /a", "cache-control: no-store\r\n", "fwd=request"),
        ("GET /b", "range: bytes=0-1\r\n", "fwd=uri-miss"),
        ("HEAD /c", "", "fwd=uri-miss"),
        ("POST /a", "content-length: 0\r\n", "fwd=method"),
        ("OPTIONS /a", "", "fwd=method"),
    ] {
        let expected = format!("plimsoll; {expected}");
        assert_eq!(status(line, fields), Some(expected), "{line} {fields}");
    }
}

#[test]
fn a_fresh_response_is_sent_without_the_origin() {
    let bench = bench("true", |_| {
        Reply::new(200, &[("cache-control", "max-age=60"), ("etag", "\"a\"")])
    });
    let first = bench.get("/x?a", "");
    assert_eq!(
        first.field("cache-status"),
        Some("plimsoll; fwd=uri-miss; stored")
    );
    let second = bench.get("/x?a", "");
    assert_eq!(second.text(), "hello");
    assert_eq!(second.field("cache-status"), Some("plimsoll; hit"));
    assert_eq!(second.field("age"), Some("0"));
    assert_eq!(bench.origin.requests(), 1);
    // Another query is another response.
    bench.get("/x?b", "");
    assert_eq!(bench.origin.requests(), 2);
    let unchanged = bench.get("/x?a", "If-None-Match: \"a\"\r\n");
    assert_eq!((unchanged.status, unchanged.text()), (304, ""));
    let part = bench.get("/x?a", "Range: bytes=1-3\r\n");
    assert_eq!((part.status, part.text()), (206, "ell"));
    assert_eq!(part.field("content-range"), Some("bytes 1-3/5"));
    let none = bench.get("/x?a", "Range: bytes=9-\r\n");
    assert_eq!(
        (none.status, none.field("content-range")),
        (416, Some("bytes */5"))
    );
    let request = "HEAD /x?a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let head = exchange(bench.gateway.address(), request.as_bytes());
    assert_eq!((head.field("content-length"), head.text()), (Some("5"), ""));
    assert_eq!(bench.origin.requests(), 2);
    let metrics = get(bench.gateway.addresses[1], "/metrics").into_text();
    let hits = "plimsoll_gateway_cache_total{route=\"/\",event=\"hit\"} 5";
    assert!(metrics.contains(hits), "{metrics}");
}

#[test]
fn what_may_not_be_stored_is_forwarded_each_time() {
    for fields in [
        vec![("cache-control", "no-store, max-age=60")],
        vec![("cache-control", "private, max-age=60")],
        vec![("cache-control", "max-age=60"), ("vary", "*")],
        vec![("cache-control", "max-age=60"), ("set-cookie", "a=b")],
        vec![("cache-control", "max-age=0")],
        vec![],
    ] {
        let shown = format!("{fields:?}");
        let bench = bench("true", move |_| Reply::new(200, &fields));
        bench.get("/", "");
        assert_eq!(bench.get("/", "").text(), "hello", "{shown}");
        assert_eq!(bench.origin.requests(), 2, "{shown}");
    }
    let bench = bench("true", |_| {
        Reply::new(200, &[("cache-control", "max-age=60")])
    });
    for _ in 0..2 {
        bench.get("/", "Authorization: Basic eA==\r\n");
    }
    assert_eq!(bench.origin.requests(), 2);
    let small = self::bench("{ max_object = \"4B\" }", |_| {
        Reply::new(200, &[("cache-control", "max-age=60")])
    });
    for _ in 0..2 {
        assert_eq!(small.get("/", "").text(), "hello");
    }
    assert_eq!(small.origin.requests(), 2);
}

#[test]
fn variants_are_chosen_by_the_fields_that_vary_names() {
    let bench = bench("true", |_| {
        Reply::new(
            200,
            &[("cache-control", "max-age=60"), ("vary", "Accept-Language")],
        )
    });
    for fields in ["Accept-Language: en\r\n", "Accept-Language: de, en\r\n", ""] {
        for _ in 0..2 {
            bench.get("/", fields);
        }
    }
    assert_eq!(bench.origin.requests(), 3);
    bench.get("/", "Accept-Language: de,en\r\n");
    assert_eq!(bench.origin.requests(), 3);
}

#[test]
fn a_stale_response_is_validated_and_used_again() {
    let bench = bench("true", |number| match number {
        1 => Reply::new(
            200,
            &[
                ("cache-control", "no-cache"),
                ("etag", "\"a\""),
                ("x-version", "1"),
            ],
        ),
        2 => Reply::new(304, &[("etag", "\"a\""), ("x-version", "2")]),
        _ => Reply::new(
            200,
            &[
                ("cache-control", "no-cache"),
                ("etag", "\"b\""),
                ("x-version", "3"),
            ],
        ),
    });
    bench.get("/", "");
    let validated = bench.get("/", "");
    assert_eq!(validated.text(), "hello");
    assert_eq!(validated.field("x-version"), Some("2"));
    let head = bench.origin.heads().pop().unwrap();
    assert!(head.contains("if-none-match: \"a\""), "{head}");
    assert_eq!(bench.get("/", "").field("x-version"), Some("3"));
}

#[test]
fn a_stale_response_stands_in_for_an_error_and_while_it_is_validated() {
    let bench = bench("{ stale_if_error = \"1h\" }", |number| match number {
        1 => Reply::new(200, &[("cache-control", "max-age=0"), ("etag", "\"a\"")]),
        _ => Reply::new(503, &[]),
    });
    bench.get("/", "");
    let stale = bench.get("/", "");
    assert_eq!((stale.status, stale.text()), (200, "hello"));
    assert_eq!(
        stale.field("cache-status"),
        Some("plimsoll; hit; detail=error")
    );

    let revalidating = self::bench("{ stale_while_revalidate = \"1h\" }", |number| {
        let version = number.to_string();
        Reply::new(
            200,
            &[
                ("cache-control", "max-age=0"),
                ("etag", "\"a\""),
                ("x-version", &version),
            ],
        )
    });
    revalidating.get("/", "");
    let stale = revalidating.get("/", "");
    assert_eq!(stale.field("x-version"), Some("1"));
    assert_eq!(
        stale.field("cache-status"),
        Some("plimsoll; hit; detail=stale")
    );
    eventually(|| revalidating.origin.requests() == 2);
    eventually(|| revalidating.get("/", "").field("x-version") != Some("1"));
}

#[test]
fn a_change_removes_what_is_stored() {
    let bench = bench("true", |_| {
        Reply::new(
            200,
            &[
                ("cache-control", "max-age=60"),
                ("content-location", "/list"),
            ],
        )
    });
    bench.get("/item", "");
    bench.get("/list", "");
    assert_eq!(bench.origin.requests(), 2);
    let request = "DELETE /item HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(
        exchange(bench.gateway.address(), request.as_bytes()).status,
        200
    );
    bench.get("/item", "");
    bench.get("/list", "");
    assert_eq!(bench.origin.requests(), 5);
}

#[test]
fn requests_for_one_missing_response_become_one() {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";
    let script = Script::new().then(Step::ReadHead).then(Step::Hold);
    let origin = Origin::scripted(script.then(Step::Write(answer.into())));
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", cache = true }}\n",
        url.trim_end_matches('/')
    ));
    let address = gateway.address();
    let clients: Vec<_> = (0..10)
        .map(|_| thread::spawn(move || get(address, "/")))
        .collect();
    eventually(|| origin.requests() == 1 && gateway.open_connections() == 10);
    origin.release();
    for client in clients {
        assert_eq!(client.join().unwrap().text(), "hello");
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn one_of_the_requests_that_wait_goes_on_when_the_client_of_the_first_leaves() {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";
    let script = Script::new().then(Step::ReadHead).then(Step::Hold);
    let origin = Origin::scripted(script.then(Step::Write(answer.into())));
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", cache = true }}\n",
        url.trim_end_matches('/')
    ));
    let address = gateway.address();
    let mut first = connect(address);
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    first.write_all(request).unwrap();
    eventually(|| origin.requests() == 1);
    let clients: Vec<_> = (0..10)
        .map(|_| thread::spawn(move || get(address, "/")))
        .collect();
    eventually(|| gateway.open_connections() == 11);
    drop(first);
    eventually(|| origin.requests() == 2);
    origin.release();
    for client in clients {
        assert_eq!(client.join().unwrap().text(), "hello");
    }
    assert_eq!(origin.requests(), 2);
}

#[test]
fn many_stale_responses_cost_one_validation() {
    let stale = "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nhello";
    let numbers = AtomicU64::new(0);
    let origin = Origin::builder()
        .script(move |_| {
            let script = Script::new().then(Step::ReadHead);
            // The validations are held.
            let script = match numbers.fetch_add(1, Ordering::Relaxed) {
                0 => script,
                _ => script.then(Step::Hold),
            };
            script.then(Step::Write(stale.into()))
        })
        .start();
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", cache = {{ stale_while_revalidate = \"1h\" }} }}\n",
        url.trim_end_matches('/')
    ));
    for _ in 0..6 {
        let received = get(gateway.address(), "/");
        assert_eq!((received.status, received.text()), (200, "hello"));
    }
    eventually(|| origin.requests() == 2);
    assert_eq!(get(gateway.address(), "/").text(), "hello");
    assert_eq!(origin.requests(), 2);
    origin.release();
}

#[test]
fn a_response_that_breaks_off_is_not_stored() {
    let half = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100000\r\n\r\nhalf";
    let origin = Origin::scripted(Script::answer_once(half));
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", cache = true, retry = false }}\n",
        url.trim_end_matches('/')
    ));
    for expected in 1..=2 {
        let mut stream = connect(gateway.address());
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut all).ok();
        assert!(all.len() < 1000);
        assert_eq!(origin.requests(), expected);
    }
}

#[test]
fn lifetimes_of_the_configuration_are_for_responses_that_give_none() {
    let bench = bench(
        "{ default_lifetime = { 200 = \"1h\", 4xx = \"0s\" } }",
        |number| match number {
            1 => Reply::new(200, &[]),
            2 => Reply::new(200, &[("cache-control", "no-store")]),
            3 => Reply::new(200, &[("set-cookie", "a=b")]),
            4 => Reply::new(404, &[]),
            _ => Reply::new(200, &[("cache-control", "max-age=0")]),
        },
    );
    let expected = [
        ("/default", true),
        ("/no-store", false),
        ("/cookie", false),
        ("/missing", false),
        ("/own", false),
    ];
    for (path, _) in expected {
        bench.get(path, "");
    }
    for (path, is_kept) in expected {
        let status = bench.get(path, "");
        let is_hit = status.field("cache-status") == Some("plimsoll; hit");
        assert_eq!(is_hit, is_kept, "{path}: {}", status.head);
    }
}

#[test]
fn caches_are_shown_and_purged_at_run_time() {
    let bench = bench("{ default_lifetime = \"1h\" }", |_| Reply::new(200, &[]));
    let admin = bench.gateway.addresses[1];
    let purge = |query: &str| {
        let request = format!(
            "DELETE /caches{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let received = exchange(admin, request.as_bytes());
        (received.status, received.text().replace([' ', '\n'], ""))
    };
    for path in ["/a", "/a/b?c", "/d"] {
        bench.get(path, "");
    }
    let shown = get(admin, "/caches").into_text();
    for part in ["\"entries\": 3", "\"stored\": 3", "\"miss\": 3"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(purge("").0, 400);
    assert_eq!(purge("?uri=*").0, 400);
    assert_eq!(purge("?url=*&route=/other").0, 404);
    let page = get(admin, "/gateway/").into_text();
    assert!(page.contains("<button data-empty=\"/\">"), "{page}");
    assert!(page.contains("data-label=\"URLs\">3</td>"), "{page}");
    let url = "?url=http://localhost";
    assert_eq!(
        purge(&format!("{url}/a")),
        (200, "{\"purged\":1}".to_owned())
    );
    bench.get("/a", "");
    bench.get("/d", "");
    assert_eq!(bench.origin.requests(), 4);
    assert_eq!(
        purge(&format!("{url}/a*")),
        (200, "{\"purged\":2}".to_owned())
    );
    assert_eq!(purge("?url=*&route=/"), (200, "{\"purged\":1}".to_owned()));
    bench.get("/d", "");
    assert_eq!(bench.origin.requests(), 5);
}

#[test]
fn variants_are_of_what_the_server_sees() {
    let bench = bench("true", |number| {
        let number = number.to_string();
        let fields = [
            ("cache-control", "max-age=60"),
            ("vary", "X-V, X-Forwarded-Host"),
            ("x-number", number.as_str()),
        ];
        Reply::new(200, &fields)
    });
    let number = |received: &HttpResponse| received.field("x-number").map(str::to_owned);
    // The server does not see the field, so the response is not for those who send it.
    let hidden = bench.get("/", "X-V: A\r\nConnection: x-v\r\n");
    assert_eq!(number(&hidden).as_deref(), Some("1"));
    assert_eq!(number(&bench.get("/", "X-V: A\r\n")).as_deref(), Some("2"));
    assert_eq!(number(&bench.get("/", "")).as_deref(), Some("1"));
    assert_eq!(number(&bench.get("/", "X-V: A\r\n")).as_deref(), Some("2"));
    // Nor does it see what an untrusted client says of itself.
    let forged = bench.get("/", "X-Forwarded-Host: evil\r\n");
    assert_eq!(number(&forged).as_deref(), Some("1"));
}

#[test]
fn what_the_cache_did_is_a_place_of_responses() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello",
    ));
    let served = Served::routes(&format!(
        r#"
        [[route]]
        response_headers = {{ set = {{ x-cache-status = "{{cache.status}}" }} }}
        proxy = {{ to = "{}", cache = true }}
        "#,
        origin.url("").trim_end_matches('/'),
    ));
    let status = || {
        let received = get(served.address(), "/");
        received.field("x-cache-status").map(str::to_owned)
    };
    assert_eq!(status().as_deref(), Some("MISS"));
    assert_eq!(status().as_deref(), Some("HIT"));
}

#[test]
fn requests_are_kept_apart_and_kept_out_by_places() {
    let bench = bench(
        "{ default_lifetime = \"1h\", key = \"{cookie:lang}\", skip = [\"{cookie:session}\", \"{query:fresh}\"] }",
        |number| Reply::new(200, &[]).content(number.to_string()),
    );
    let get = |path: &str, cookie: &str| {
        let fields = format!("Cookie: {cookie}\r\n");
        get_with(bench.gateway.address(), path, &fields).into_text()
    };
    assert_eq!(get("/", "lang=de"), "1");
    assert_eq!(get("/", "lang=en"), "2");
    assert_eq!(get("/", "lang=de; other=x"), "1");
    // Neither sent from the cache nor kept.
    assert_eq!(get("/", "lang=de; session=x"), "3");
    assert_eq!(get("/", "lang=de"), "1");
    assert_eq!(get("/?fresh=1", "lang=de"), "4");
    assert_eq!(get("/?fresh=0", "lang=de"), "5");
    assert_eq!(get("/?fresh=0", "lang=de"), "5");
}

#[test]
fn a_request_that_bypasses_the_cache_renews_what_is_stored() {
    let bench = bench(
        "{ default_lifetime = \"1h\", bypass = \"{header:x-fresh}\" }",
        |number| {
            let fields: &[_] = match number {
                3 => &[("cache-control", "private")],
                _ => &[],
            };
            Reply::new(200, fields).content(number.to_string())
        },
    );
    let get = |path: &str, fields: &str| {
        let received = bench.get(path, fields);
        let status = received.field("cache-status").unwrap().to_owned();
        (received.into_text(), status)
    };
    let is = |text: &str, status: &str| (text.to_owned(), format!("plimsoll; {status}"));
    assert_eq!(get("/", ""), is("1", "fwd=uri-miss; stored"));
    let fresh = "X-Fresh: 1\r\n";
    assert_eq!(get("/", fresh), is("2", "fwd=bypass; stored"));
    assert_eq!(get("/", ""), is("2", "hit"));
    assert_eq!(get("/", "X-Fresh: 0\r\n"), is("2", "hit"));
    // What may not be stored leaves what is stored as it is, and says nothing about other requests.
    assert_eq!(get("/", fresh), is("3", "fwd=bypass"));
    assert_eq!(get("/", ""), is("2", "hit"));
    // A part is not stored, nor is what a request itself wants nobody to store.
    let part = format!("{fresh}Range: bytes=0-0\r\n");
    assert_eq!(get("/", &part), is("4", "fwd=bypass"));
    let unstored = format!("{fresh}Cache-Control: no-store\r\n");
    assert_eq!(get("/", &unstored), is("5", "fwd=request"));
    assert_eq!(get("/", ""), is("2", "hit"));
    let metrics = get_with(bench.gateway.addresses[1], "/metrics", "").into_text();
    let misses = "plimsoll_gateway_cache_total{route=\"/\",event=\"miss\"} 1";
    assert!(metrics.contains(misses), "{metrics}");
}

#[test]
fn a_response_that_is_not_to_be_stored_is_not_but_stored_ones_are_sent() {
    let bench = bench(
        "{ default_lifetime = \"1h\", no_store = [\"{cookie:session}\", \"{query:once}\"] }",
        |number| Reply::new(200, &[]).content(number.to_string()),
    );
    let get = |path: &str, fields: &str| bench.get(path, fields).into_text();
    let session = "Cookie: session=x\r\n";
    assert_eq!(get("/", session), "1");
    assert_eq!(get("/", session), "2");
    // The first two say nothing about other requests.
    assert_eq!(get("/", ""), "3");
    assert_eq!(get("/", session), "3");
    assert_eq!(get("/?once=1", ""), "4");
    assert_eq!(get("/?once=1", ""), "5");
}

#[test]
fn a_stale_response_is_validated_for_a_request_whose_response_is_not_stored() {
    let bench = bench("{ no_store = \"{cookie:session}\" }", |number| {
        let fields = [("cache-control", "no-cache"), ("etag", "\"a\"")];
        match number {
            1 => Reply::new(200, &fields).content("old"),
            3 => Reply::new(200, &[("cache-control", "max-age=60")]).content("own"),
            _ => Reply::new(304, &fields),
        }
    });
    let get = |fields: &str| bench.get("/", fields).into_text();
    let session = "Cookie: session=x\r\n";
    assert_eq!(get(""), "old");
    assert_eq!(get(session), "old");
    assert_eq!(get(session), "own");
    assert_eq!(get(""), "old");
    assert_eq!(bench.origin.requests(), 4);
}
