use std::net::{IpAddr, Ipv4Addr};

use plimsoll_model::{GrpcStatus, Phases};
use proptest::prelude::*;

use super::*;
use crate::check::Facts;

const JSON: &[u8] = br#"{"ok": true, "n": 3, "big": 9007199254740993, "s": "up", "none": null,
    "items": [{"id": 1, "up": true}, {"id": 2, "up": true}], "it's": "here"}"#;

fn facts() -> Facts {
    let mut phases = Phases::default();
    phases.set(Phase::Connect, Duration::from_millis(3));
    phases.set(Phase::Tls, Duration::from_millis(20));
    phases.set(Phase::Wait, Duration::from_millis(200));
    Facts {
        status: 200,
        time: Duration::from_millis(250),
        phases,
        peer: Some(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))),
        certificate_days: Some(30),
        grpc_status: GrpcStatus::all().nth(5),
    }
}

#[test]
fn a_call_has_a_status_by_name_and_by_code() {
    for text in [
        "grpc.status == NOT_FOUND",
        "grpc.status = not_found",
        "grpc.status == 5",
        "grpc.status != OK",
    ] {
        assert!(met(text), "{text}");
        assert!(Condition::parse(text).unwrap().needs_grpc());
    }
    for text in ["grpc.status == OK", "grpc.status != 5"] {
        assert!(!met(text), "{text}");
    }
    let none = Facts {
        grpc_status: None,
        ..facts()
    };
    assert!(!met_by("grpc.status == OK", none, b""));
    for wrong in [
        "grpc.status == FINE",
        "grpc.status < OK",
        "grpc.status == 17",
        "grpc.status == 05",
    ] {
        assert!(Condition::parse(wrong).is_err(), "{wrong}");
    }
}

fn met_by(text: &str, facts: Facts, body: &[u8]) -> bool {
    let headers = [("content-type".to_owned(), b"application/json".to_vec())];
    let observed = Observed::new(facts, &headers, body, body.len() as u64);
    Condition::parse(text).unwrap().is_met(&observed)
}

fn met(text: &str) -> bool {
    met_by(text, facts(), b"all is ok")
}

fn json(text: &str) -> bool {
    met_by(text, facts(), JSON)
}

#[test]
fn each_subject_and_operator() {
    for text in [
        "status == 200",
        "status==200",
        "status < 300",
        "status != 404",
        "time < 300ms",
        "time >= 0.25s",
        "size == 9",
        "size < 1KiB",
        "body contains 'is ok'",
        "body contains is ok",
        "body matches '^all .* ok$'",
        "body == \"all is ok\"",
        "body != 'ok'",
        "header.Content-Type contains 'json'",
        "header.content-type exists",
        "header.etag != 'x'",
        "connect < 10ms",
        "tls >= 20ms",
        "wait < 1s",
        "dns < 1ms",
        "receive == 0s",
        "send <= 1us",
        "ip == 10.1.2.3",
        "ip != 10.1.2.4",
        "ip in 10.0.0.0/8",
        "ip in 10.1.2.3",
        "cert.days > 14",
        "cert.days >= -3",
    ] {
        assert!(met(text), "{text}");
    }
    for text in [
        "status == 404",
        "time < 100ms",
        "size > 9",
        "body contains 'fail'",
        "body matches '^ok'",
        "header.etag exists",
        "header.etag == ''",
        "wait < 100ms",
        "dns > 0ms",
        "ip == ::1",
        "ip in 192.168.0.0/16",
        "cert.days < 30",
    ] {
        assert!(!met(text), "{text}");
    }
}

#[test]
fn what_is_not_there() {
    let bare = Facts {
        status: 200,
        ..Facts::default()
    };
    for text in [
        "tls < 1ms",
        "ip != ::1",
        "not(cert.days > 0)",
        "not(cert.days < 0)",
    ] {
        assert!(met_by(text, bare, b""), "{text}");
    }
    for text in ["ip == ::1", "ip in ::/0", "cert.days > 0", "cert.days < 0"] {
        assert!(!met_by(text, bare, b""), "{text}");
    }
}

#[test]
fn values_that_a_json_path_selects() {
    for text in [
        "body.json($.ok) == true",
        "body.json($.ok) != false",
        "body.json($.n) == 3",
        "body.json($.n) == 3.0",
        "body.json($.n) >= 2.5",
        "body.json($.n) < 4",
        "body.json($.big) == 9007199254740993",
        "body.json($.big) != 9007199254740992",
        "body.json($.s) == 'up'",
        "body.json($.s) == up",
        "body.json($.s) contains u",
        "body.json($.s) matches '^u.$'",
        "body.json($.s) > 'down'",
        "body.json($.n) != '3'",
        "body.json($.none) == null",
        "body.json($.none) exists",
        "body.json($.gone) != 3",
        "body.json($['it\\'s']) == here",
        "body.json( $.items[*].up ) == true",
        "body.json($.items[?@.id == 2].up) == true",
        "body.json($.items[?(@.id == 2)].id) == 2",
        "body.json($.items[?@.name == ')']) != 1",
    ] {
        assert!(json(text), "{text}");
    }
    for text in [
        "body.json($.ok) == 'true'",
        "body.json($.ok) == false",
        "body.json($.ok) > false",
        "body.json($.n) == '3'",
        "body.json($.n) contains 3",
        "body.json($.gone) == null",
        "body.json($.gone) exists",
        "body.json($.items[*].id) == 1",
        "body.json($.items) == 1",
    ] {
        assert!(!json(text), "{text}");
    }
    assert!(!met("body.json($) exists"), "no JSON at all");
    assert!(met("body.json($.ok) != true"));
}

#[test]
fn conditions_of_conditions() {
    for text in [
        "any(status == 404, status == 200)",
        "any( status==200 )",
        "not(status == 404)",
        "not (status == 404)",
        "not(any(status == 404, body contains 'x, y)'))",
        "any(body contains it's, body contains 'ok')",
        "any(body matches '(a|b),\\'', time < 1s)",
        "not(not(any(header.etag exists, header.content-type exists)))",
    ] {
        assert!(met(text), "{text}");
    }
    for text in [
        "any(status == 404, status == 500)",
        "not(status == 200)",
        "not(any(status == 200))",
    ] {
        assert!(!met(text), "{text}");
    }
    assert!(json(
        "any(body.json($.items[?(@.id == 9)].up) == true, body.json($['it\\'s']) exists)"
    ));
}

#[test]
fn what_was_found_is_reported() {
    let observed = Observed::new(facts(), &[], JSON, 4_000_000);
    let found = |text| Condition::parse(text).unwrap().observe(&observed);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(found("status == 1"), text("200"));
    assert_eq!(found("time < 1s"), text("250 ms"));
    assert_eq!(found("tls < 1s"), text("20.0 ms"));
    assert_eq!(found("dns < 1s"), None);
    assert_eq!(found("size < 1"), text("4000000 bytes"));
    assert_eq!(found("ip == ::1"), text("10.1.2.3"));
    assert_eq!(found("cert.days > 1"), text("30"));
    assert_eq!(found("header.etag exists"), None);
    assert_eq!(found("body.json($.gone) exists"), None);
    assert_eq!(found("body.json($.items[*].id) == 1"), text("1, 2"));
    assert_eq!(found("body.json($.s) == 1"), text("\"up\""));
    assert_eq!(
        found("any(status == 1, not(status == 2), ip == ::1, dns < 1s)"),
        text("200; 10.1.2.3")
    );
    let body = found("body == 1").unwrap();
    assert!(
        body.starts_with("{\"ok\": true") && body.ends_with('…'),
        "{body}"
    );
    let none = Observed::new(Facts::default(), &[], b"x", 1);
    let condition = Condition::parse("body.json($) exists").unwrap();
    assert_eq!(condition.observe(&none), text("not JSON"));
}

#[test]
fn mistakes_are_explained() {
    const KNOWN: &str = "known are status, time, dns, connect, tls, send, wait, receive, size, ip, \
                         cert.days, grpc.status, body, body.sha256, body.json(PATH), header.NAME, any(…), not(…)";
    let error = |text| Condition::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("statu == 200"),
        format!("unknown subject `statu`; did you mean `status`? {KNOWN}")
    );
    assert_eq!(
        error("xyzzy == 200"),
        format!("unknown subject `xyzzy`; {KNOWN}")
    );
    assert_eq!(
        error("all(status == 200) == 1"),
        format!("unknown subject `all(status == 200)`; {KNOWN}")
    );
    assert_eq!(
        error("status ~ 200"),
        "`status` has no operator `~`; it has ==, !=, <, <=, >, >="
    );
    assert_eq!(
        error("ip < ::1"),
        "`ip` has no operator `<`; it has ==, !=, in"
    );
    assert_eq!(
        error("body.json($.a) like 3"),
        "`body.json` has no operator `like`; it has ==, !=, <, <=, >, >=, contains, matches, exists"
    );
    assert_eq!(error("status == ok"), "`ok` is not a whole number");
    assert_eq!(error("cert.days > 14d"), "`14d` is not a whole number");
    assert_eq!(
        error("status"),
        "`status` is not a condition; write for example `status == 200`"
    );
    assert_eq!(
        error("any(status == 200, )"),
        "`` is not a condition; write for example `status == 200`"
    );
    assert!(error("time < 3 apples").starts_with("unknown unit"));
    assert!(error("body matches '('").starts_with("regular expression"));
    assert_eq!(
        error("body.json == 3"),
        "`body.json` needs a path; write for example `body.json($.ok) == true`"
    );
    assert!(error("body.json(.ok) == true").starts_with("JSON path `.ok`: "));
    assert_eq!(
        error("ip in somewhere"),
        "`somewhere` is not an address; write for example `127.0.0.1`, or `in 10.0.0.0/8`"
    );
    assert_eq!(
        error("any(status == 200"),
        "a parenthesis or a quote in `any(status == 200` is not closed"
    );
    assert_eq!(
        error("not(status == 200) == true"),
        "nothing may stand behind `not(…)`, but `== true` does"
    );
    assert_eq!(
        error("not(status == 200, status == 201)"),
        "`not` takes one condition; write for example `not(any(A, B))`"
    );
    assert_eq!(
        error("not status == 200"),
        "`not` needs conditions in parentheses; write for example `not(status == 200)`"
    );
    let deep = "not(".repeat(500) + "status == 200" + &")".repeat(500);
    assert_eq!(error(&deep), "conditions are nested more than 16 deep");
    let long = format!("body.json({}$) == 1", "(".repeat(200) + &")".repeat(200));
    assert!(error(&long).contains("longer than 256 bytes"));
    let nested = |depth: usize| {
        format!(
            "body.json($[?{}@.a{}]) exists",
            "@[?".repeat(depth),
            "]".repeat(depth)
        )
    };
    assert!(error(&nested(8)).contains("brackets are nested more than 8 deep"));
    assert!(Condition::parse(&nested(7)).is_ok());
    assert!(Condition::parse("body.json($['[[[[[((((((\\'[['])) exists").is_err());
    assert!(Condition::parse("body.json($['[[[[[((((((\\'[[']) exists").is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        drop(Condition::parse(&text));
    }

    #[test]
    fn nothing_like_a_condition_makes_the_parser_panic(
        text in "(any|not|body\\.json|ip|status|body)[()'\"\\\\, =!<>$.\\[\\]?@*a1]{0,40}"
    ) {
        if let Ok(condition) = Condition::parse(&text) {
            prop_assert_eq!(condition.text(), text.trim());
        }
    }
}

#[test]
fn content_has_a_hash_unless_it_was_cut() {
    // `printf hello | sha256sum`
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    let observed = |body: &'static [u8], size| Observed::new(facts(), &[], body, size);
    let condition = |text: &str| Condition::parse(text).unwrap();
    let equal = condition(&format!("body.sha256 == {HELLO}"));
    let other = condition(&format!("body.sha256 != '{}'", HELLO.to_uppercase()));
    assert!(equal.needs_body());
    let hello = observed(b"hello", 5);
    assert!(equal.is_met(&hello) && !other.is_met(&hello));
    assert_eq!(equal.observe(&hello).as_deref(), Some(HELLO));
    for (observed, why) in [
        (observed(b"hello", 6), "it was cut"),
        (
            observed(b"hello", 5).altered(),
            "it is not what was received",
        ),
    ] {
        assert!(!equal.is_met(&observed) && other.is_met(&observed), "{why}");
        assert_eq!(equal.observe(&observed), None, "{why}");
    }
    // `printf '' | sha256sum`
    let empty = "body.sha256 = e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert!(met_by(empty, facts(), b"") && !met_by(empty, facts(), b"x"));
    for wrong in [
        "abc",
        HELLO.trim_start_matches('2'),
        &format!("{HELLO}0"),
        &HELLO.replace('2', "g"),
    ] {
        let error = Condition::parse(&format!("body.sha256 == {wrong}")).unwrap_err();
        assert!(error.to_string().contains("64 digits"), "{error}");
    }
    let error = Condition::parse(&format!("body.sha256 contains {HELLO}")).unwrap_err();
    assert!(error.to_string().contains("it has ==, !="), "{error}");
}
