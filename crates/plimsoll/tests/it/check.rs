//! `plimsoll check`: what it prints, and how its exit code says the verdict.

use insta::assert_snapshot;
use plimsoll_testkit::{Authority, MaterialFiles, Origin, Script, refused_address};
use serde_json::Value;

use crate::nginx::Nginx;
use crate::plimsoll::{CommandOutput, command, plimsoll, run};

const OK: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";

fn check(origin: &Origin, flags: &[&str]) -> CommandOutput {
    let url = origin.url("/health");
    let mut arguments = vec!["check"];
    arguments.extend(flags);
    arguments.push(&url);
    plimsoll(&arguments)
}

fn json(origin: &Origin, flags: &[&str], code: i32) -> Value {
    check(origin, &[&["--json"], flags].concat())
        .exits(code)
        .json()
}

/// The text with everything that differs from run to run replaced.
///
/// Times become `TIME` and bars vanish; the lines, their order and all else stay.
fn steady(output: &CommandOutput, origin: &Origin) -> String {
    let text = output
        .to_string()
        .replace(&origin.address().to_string(), "ADDRESS");
    let lines = text.lines().map(|line| {
        let mut words: Vec<String> = Vec::new();
        for word in line.trim_end_matches(['█', '░', ' ']).split(' ') {
            let is_unit = ["ns", "µs", "ms", "s"].contains(&word.trim_end_matches(','));
            match words.last_mut() {
                Some(number) if is_unit && number.parse::<f64>().is_ok() => {
                    let comma = if word.ends_with(',') { "," } else { "" };
                    *number = format!("TIME{comma}");
                }
                _ => words.push(word.to_owned()),
            }
        }
        let indent = line.len() - line.trim_start().len();
        words.retain(|word| !word.is_empty());
        format!("{}{}", " ".repeat(indent), words.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn met() {
    let origin = Origin::scripted(Script::serve(OK));
    let output = check(
        &origin,
        &[
            "--expect",
            "status == 200",
            "--expect",
            "body.json($.ok) == true",
            "--expect",
            "time < 10s",
        ],
    );
    assert_snapshot!(steady(&output.exits(0), &origin), @"
    GET http://ADDRESS/health
    200 in TIME, 11 B of content

    conditions all met
      ✓ met status == 200 was 200
      ✓ met body.json($.ok) == true was true
      ✓ met time < 10s was TIME

    phases
      connect TIME
      send TIME
      wait TIME
      receive TIME
      total TIME

    connection
      peer ADDRESS
      protocol HTTP/1.1
      bytes 107 sent, 82 received
    exit 0
    ");
}

#[test]
fn unmet() {
    let origin = Origin::scripted(Script::serve(OK));
    let output = check(
        &origin,
        &[
            "--expect",
            "status == 503",
            "--expect",
            "any(header.etag exists, not(body contains ok))",
        ],
    );
    assert_snapshot!(steady(&output.exits(1), &origin), @r#"
    GET http://ADDRESS/health
    200 in TIME, 11 B of content

    conditions 2 of 2 unmet
      ✗ unmet status == 503 was 200
      ✗ unmet any(header.etag exists, not(body contains ok)) was {"ok":true}

    phases
      connect TIME
      send TIME
      wait TIME
      receive TIME
      total TIME

    connection
      peer ADDRESS
      protocol HTTP/1.1
      bytes 107 sent, 82 received
    exit 1
    "#);
}

#[test]
fn without_a_condition_any_response_will_do() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
    ));
    let output = check(&origin, &[]).exits(0);
    assert!(output.stdout.contains("\n500 in "), "{output}");
}

#[test]
fn refused() {
    let url = format!("http://{}/", refused_address());
    let output = plimsoll(&["check", "--expect", "status == 200", &url]).exits(1);
    assert!(output.stderr.is_empty(), "{output}");
    let mut lines = output.stdout.lines();
    assert_eq!(lines.next(), Some(format!("GET {url}").as_str()));
    let failure = lines.next().unwrap();
    assert!(
        failure.starts_with("✗ failed after ") && failure.contains(": refused during connect: "),
        "{output}"
    );
    assert!(
        output
            .stdout
            .contains("not judged: no complete response came"),
        "{output}"
    );
}

#[test]
fn late() {
    let origin = Origin::silent();
    let document = json(&origin, &["--timeout", "200ms"], 1);
    assert_eq!(document["verdict"], "failed");
    assert_eq!(document["exchange"]["failure"]["kind"], "timeout");
    assert_eq!(document["exchange"]["failure"]["phase"], "wait");
    assert_eq!(document["exchange"]["status"], Value::Null);
}

#[test]
fn over_tls() {
    let authority = Authority::new();
    let origin = Origin::builder()
        .tls(authority.issue(&["127.0.0.1", "a.test"]).server_config())
        .start();
    let files = MaterialFiles::new();
    let roots = files.write("roots.pem", &authority.pem());
    let output = check(
        &origin,
        &[
            "--cacert",
            roots.to_str().unwrap(),
            "--expect",
            "cert.days > 14",
        ],
    )
    .exits(0);
    for part in [
        "tls              TLS 1.3, TLS13_",
        "certificate      CN=127.0.0.1",
        "names            127.0.0.1, a.test",
        "issuer           CN=plimsoll test authority",
        "valid until      4096-01-01T00:00:00Z, ",
    ] {
        assert!(output.stdout.contains(part), "{part} in {output}");
    }
    let output = check(&origin, &[]).exits(1);
    assert!(
        output.stdout.contains(": certificate-untrusted during tls"),
        "{output}"
    );
    let document = json(&origin, &["-k"], 0);
    assert_eq!(document["tls"]["certificate"]["subject"], "CN=127.0.0.1");
}

#[test]
fn json_has_everything() {
    let origin = Origin::scripted(Script::serve(OK));
    let document = json(
        &origin,
        &[
            "--expect",
            "status == 200",
            "--expect",
            "body.json($.ok) == false",
        ],
        1,
    );
    assert_eq!(document["schema"], "plimsoll.check/1");
    assert_eq!(document["url"], origin.url("/health"));
    assert_eq!(document["verdict"], "unmet");
    assert_eq!(
        document["conditions"][1],
        serde_json::json!({
            "condition": "body.json($.ok) == false",
            "met": false,
            "observed": "true",
        })
    );
    let exchange = &document["exchange"];
    assert_eq!(exchange["status"], 200);
    assert_eq!(exchange["failure"], Value::Null);
    assert_eq!(exchange["content_bytes"], 11);
    assert_eq!(exchange["received_bytes"], OK.len());
    assert_eq!(exchange["peer"], origin.address().to_string());
    assert_eq!(exchange["headers"][0]["name"], "content-type");
    let phases: Vec<&str> = exchange["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["phase"].as_str().unwrap())
        .collect();
    assert_eq!(phases, ["connect", "send", "wait", "receive"]);
    assert_eq!(document["tls"], Value::Null);
}

#[test]
fn the_request_is_as_the_flags_say() {
    let origin = Origin::hello();
    check(
        &origin,
        &[
            "-d",
            "a=b",
            "-H",
            "x-test: 1",
            "--host",
            "a.test",
            "-a",
            "me:secret",
        ],
    )
    .exits(0);
    let head = origin.heads().concat().to_lowercase();
    for line in [
        "post /health http/1.1",
        "host: a.test",
        "x-test: 1",
        "content-length: 3",
        "connection: close",
        "authorization: basic bwu6c2vjcmv0",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn the_password_of_the_url_is_sent_and_not_shown() {
    let origin = Origin::hello();
    let url = format!("http://me:hunter2@{}/", origin.address());
    for flags in [&["check"][..], &["check", "--json"]] {
        let output = plimsoll(&[flags, &[&url]].concat()).exits(0);
        assert!(!output.to_string().contains("hunter2"), "{output}");
    }
    assert!(
        origin.heads()[0]
            .to_lowercase()
            .contains("authorization: basic ")
    );
}

#[test]
fn mistakes() {
    assert_snapshot!(plimsoll(&["check", "ftp://example.org/"]), @"
    error: URL: unknown scheme `ftp`; plimsoll speaks http:// and https://
    exit 2
    ");
    assert_snapshot!(
        plimsoll(&[
            "check",
            "--expect",
            "staus == 200",
            "--expect",
            "body.json(ok) == true",
            "--expect",
            "any(status == 200",
            "-H",
            "no colon",
            "http://127.0.0.1/",
        ]),
        @"
    error: --expect: unknown subject `staus`; did you mean `status`? known are status, time, dns, connect, tls, send, wait, receive, size, ip, cert.days, grpc.status, body, body.sha256, body.json(PATH), header.NAME, any(…), not(…)
    error: --expect: JSON path `ok`: at position 0, parser error; write for example `$.items[0].name`
    error: --expect: a parenthesis or a quote in `any(status == 200` is not closed
    error: -H: `no colon` is not of the form `Name: value`
    exit 2
    "
    );
    let output = run(&mut command(&["check"])).exits(2);
    assert!(output.stderr.contains("<URL>"), "{output}");
}

#[test]
fn nginx_believes_the_proxy_header() {
    let nginx = Nginx::configure().start();
    let url = nginx.proxied_url();
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    for (version, client) in [
        ("--haproxy-protocol", "192.0.2.7"),
        ("--haproxy-protocol=v1", "2001:db8::7"),
        ("--haproxy-protocol=v2", "192.0.2.7"),
        ("--haproxy-protocol=v2", "2001:db8::7"),
    ] {
        let body = format!("body == '{client} to {port}\n'");
        plimsoll(&[
            "check",
            version,
            "--haproxy-clientip",
            client,
            "--expect",
            &body,
            &url,
        ])
        .exits(0);
    }
    let own_end = format!("body == '127.0.0.1 to {port}\n'");
    plimsoll(&["check", "--haproxy-protocol", "--expect", &own_end, &url]).exits(0);
    plimsoll(&["check", &url]).exits(1);
}

#[test]
fn versions_suites_and_secrets_of_tls() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let roots = files.write("roots.pem", &authority.pem());
    let origin = Origin::builder()
        .script(|_| Script::serve(OK))
        .tls(authority.issue(&["127.0.0.1"]).server_config())
        .start();
    let keys = files.write("keys.log", "");
    let common = ["--cacert", roots.to_str().unwrap()];
    let session = |flags: &[&str]| json(&origin, &[&common, flags].concat(), 0)["tls"].clone();

    let newest = session(&["--tls-key-log", keys.to_str().unwrap()]);
    assert_eq!(newest["version"], "TLS 1.3");
    let secrets = std::fs::read_to_string(&keys).unwrap();
    assert!(secrets.contains("CLIENT_TRAFFIC_SECRET_0 "), "{secrets}");

    let older = session(&[
        "--tls-max",
        "1.2",
        "--ciphers",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ]);
    assert_eq!(older["version"], "TLS 1.2");
    assert_eq!(
        older["cipher"],
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    );

    let mut with_variable = command(&[
        "check",
        "--cacert",
        roots.to_str().unwrap(),
        &origin.url("/"),
    ]);
    run(with_variable.env("SSLKEYLOGFILE", &keys)).exits(0);
    let more = std::fs::read_to_string(&keys).unwrap();
    assert!(more.len() > secrets.len() && more.starts_with(&secrets));
}

#[test]
fn tls_settings_that_cannot_be() {
    for flags in [
        &["--tls-min", "1.3", "--tls-max", "1.2"][..],
        &["--tls-min", "1.0"],
        &["--ciphers", "RC4-SHA"],
        &[
            "--ciphers",
            "ECDHE-RSA-AES128-GCM-SHA256",
            "--tls-min",
            "1.3",
        ],
        &["--tls-key-log", "/nowhere/at/all"],
        &["--haproxy-clientip", "127.0.0.1"],
        &["--haproxy-protocol=v3"],
    ] {
        let output = plimsoll(&[&["check"], flags, &["https://127.0.0.1:9/"]].concat()).exits(2);
        assert!(
            output
                .to_string()
                .contains(flags[0].split('=').next().unwrap()),
            "{output}"
        );
    }
}
