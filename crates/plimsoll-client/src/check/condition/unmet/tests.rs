use std::net::{IpAddr, Ipv4Addr};

use plimsoll_model::{GrpcStatus, Phases};

use super::*;
use crate::check::Facts;

/// The reason why the first unmet one of `conditions` is unmet.
fn reason(conditions: &[&str], facts: Facts, body: &[u8]) -> String {
    let headers = [("content-type".to_owned(), b"text/html".to_vec())];
    let observed = Observed::new(facts, &headers, body, body.len() as u64);
    let all: Vec<_> = conditions
        .iter()
        .map(|text| Condition::parse(text).unwrap())
        .collect();
    let unmet = all.iter().find(|one| !one.is_met(&observed));
    let unmet = unmet.unwrap_or_else(|| panic!("{conditions:?} are met"));
    unmet.unmet_text(&all, &observed)
}

fn facts() -> Facts {
    let mut phases = Phases::default();
    phases.set(Phase::Dns, Duration::from_millis(240));
    phases.set(Phase::Tls, Duration::from_micros(1_500));
    Facts {
        status: 500,
        time: Duration::from_millis(1_240),
        phases,
        peer: Some(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))),
        certificate_days: Some(5),
        grpc_status: GrpcStatus::all().find(|status| status.name() == "UNAVAILABLE"),
    }
}

#[test]
fn every_kind_of_condition_has_its_words() {
    for (conditions, text) in [
        // Status: all conditions on it are one range.
        (&["status == 200"][..], "status 500, expected 200"),
        (
            &["status >= 200", "status <= 299"],
            "status 500, expected 200–299",
        ),
        (
            &["time < 1h", "status >= 200", "status < 400"],
            "status 500, expected 200–399",
        ),
        (&["status < 400"], "status 500, expected at most 399"),
        (&["status > 500"], "status 500, expected at least 501"),
        (&["status != 500"], "status 500, expected any but 500"),
        (
            &["status != 500", "status != 404"],
            "status 500, expected any but 500 or 404",
        ),
        (
            &["status >= 400", "status != 500"],
            "status 500, expected at least 400 but not 500",
        ),
        (&["not(status == 500)"], "status 500, expected any but 500"),
        (&["not(status >= 400)"], "status 500, expected at most 399"),
        (
            &["any(status == 200, status == 204)"],
            "status 500, expected 200 or 204",
        ),
        (
            &["any(status == 200, status == 204, status == 206)"],
            "status 500, expected 200, 204 or 206",
        ),
        // Times.
        (&["time < 500ms"], "took 1,240 ms, limit 500 ms"),
        (&["time <= 1239.6ms"], "took 1,240 ms, limit 1,239.6 ms"),
        (&["time > 2s"], "took 1,240 ms, expected more than 2,000 ms"),
        (&["not(time >= 1s)"], "took 1,240 ms, limit 1,000 ms"),
        (&["dns < 100ms"], "DNS took 240 ms, limit 100 ms"),
        (&["tls < 1ms"], "TLS took 1.5 ms, limit 1 ms"),
        (&["wait > 0s"], "wait took 0 ms, expected more than 0 ms"),
        // Address, certificate, gRPC.
        (
            &["ip in 192.168.0.0/16"],
            "address 10.1.2.3, expected one in 192.168.0.0/16",
        ),
        (&["ip == 10.1.2.4"], "address 10.1.2.3, expected 10.1.2.4"),
        (&["ip != 10.1.2.3"], "address 10.1.2.3, expected another"),
        (
            &["not(ip in 10.0.0.0/8)"],
            "address 10.1.2.3, expected none in 10.0.0.0/8",
        ),
        (
            &["cert.days > 14"],
            "certificate expires in 5 days, expected more than 14 days",
        ),
        (
            &["cert.days <= 1"],
            "certificate expires in 5 days, expected at most 1 day",
        ),
        (
            &["grpc.status == OK"],
            "gRPC status UNAVAILABLE, expected OK",
        ),
        (
            &["grpc.status != UNAVAILABLE"],
            "gRPC status UNAVAILABLE, expected another",
        ),
        // Content.
        (&["size < 5"], "size 9 bytes, limit 5 bytes"),
        (
            &["size >= 64KiB"],
            "size 9 bytes, expected at least 65,536 bytes",
        ),
        (
            &["body contains 'fine'"],
            "body does not contain 'fine': all is ok",
        ),
        (
            &["not(body contains 'ok')"],
            "body contains 'ok': all is ok",
        ),
        (&["body == 'ok'"], "body is not 'ok': all is ok"),
        (&["body != 'all is ok'"], "body is 'all is ok'"),
        (
            &["body matches '^ok'"],
            "body does not match ^ok: all is ok",
        ),
        (&["not(body matches 'ok$')"], "body matches ok$: all is ok"),
        (
            &["body.json($.ok) == true"],
            "body is not JSON, expected JSON with $.ok",
        ),
        // Headers.
        (&["header.etag exists"], "header etag is missing"),
        (
            &["header.etag == 'x'"],
            "header etag is missing, expected 'x'",
        ),
        (
            &["header.content-type contains 'json'"],
            "header content-type is 'text/html', expected text with 'json'",
        ),
        (
            &["header.content-type != 'text/html'"],
            "header content-type is 'text/html', expected another value",
        ),
        (
            &["header.content-type matches '^app'"],
            "header content-type is 'text/html', expected a match of ^app",
        ),
        (
            &["not(header.content-type exists)"],
            "header content-type is 'text/html', expected none",
        ),
        // Several.
        (
            &["any(status == 200, body contains 'fine')"],
            "status 500, expected 200; body does not contain 'fine': all is ok",
        ),
        (
            &["not(any(status == 200, body contains 'ok'))"],
            "body contains 'ok': all is ok",
        ),
        (&["not(not(status == 200))"], "status 500, expected 200"),
    ] {
        assert_eq!(reason(conditions, facts(), b"all is ok"), text);
    }
}

#[test]
fn hashes_are_shown_whole() {
    let digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let equal = format!("body.sha256 == {digits}");
    let other = "486ea46224d1bb4fb680f34f7c9ad96a8f24ec88be73ea8e5a6c65260e9cb8a7";
    assert_eq!(
        reason(&[&equal], facts(), b"world"),
        format!("SHA-256 of the body is {other}, expected {digits}")
    );
    let unequal = format!("body.sha256 != {digits}");
    assert_eq!(
        reason(&[&unequal], facts(), b"hello"),
        format!("SHA-256 of the body is {digits}, expected another")
    );
}

#[test]
fn values_of_json_are_shown_as_json() {
    let body = br#"{"state": "down", "n": 3, "all": [true, false]}"#;
    for (condition, text) in [
        (
            "body.json($.state) == 'up'",
            "$.state is \"down\", expected \"up\"",
        ),
        ("body.json($.n) > 4", "$.n is 3, expected more than 4"),
        ("not(body.json($.n) < 4)", "$.n is 3, expected at least 4"),
        ("body.json($.n) != 3", "$.n is 3, expected anything but 3"),
        (
            "body.json($.all[*]) == true",
            "$.all[*] is true, false, expected true",
        ),
        (
            "body.json($.gone) exists",
            "$.gone is missing, expected a value",
        ),
        (
            "body.json($.state) contains 'up'",
            "$.state is \"down\", expected text with 'up'",
        ),
        (
            "body.json($.state) matches '^up'",
            "$.state is \"down\", expected a match of ^up",
        ),
        (
            "not(body.json($.state) exists)",
            "$.state is \"down\", expected none",
        ),
    ] {
        assert_eq!(reason(&[condition], facts(), body), text);
    }
}

#[test]
fn what_is_missing_is_named() {
    let bare = Facts::default();
    for (condition, text) in [
        ("status == 200", "no status, expected 200"),
        ("ip in ::/0", "no address, expected one in ::/0"),
        (
            "cert.days > 14",
            "no certificate, expected more than 14 days",
        ),
        ("grpc.status == OK", "no gRPC status, expected OK"),
        (
            "body contains 'ok'",
            "body does not contain 'ok'; it is empty",
        ),
    ] {
        assert_eq!(reason(&[condition], bare, b""), text);
    }
}

#[test]
fn days_of_a_certificate_are_whole_ones() {
    for (days, text) in [
        (1, "certificate expires in 1 day"),
        (0, "certificate expires within a day"),
        (-1, "certificate expired within the last day"),
        (-2, "certificate expired 1 day ago"),
        (-9, "certificate expired 8 days ago"),
    ] {
        assert_eq!(certificate_text(days), text);
    }
}

#[test]
fn times_that_differ_are_shown_as_different() {
    let shown = |one: u64, other: u64| {
        milliseconds(Duration::from_micros(one), Duration::from_micros(other))
    };
    let texts = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(shown(1_240_000, 500_000), texts("1,240 ms", "500 ms"));
    assert_eq!(shown(500_400, 500_000), texts("500.4 ms", "500 ms"));
    assert_eq!(shown(500_001, 500_000), texts("500.001 ms", "500 ms"));
    assert_eq!(shown(1_200, 1_000), texts("1.2 ms", "1 ms"));
    assert_eq!(shown(0, 0), texts("0 ms", "0 ms"));
}
