//! `--location` and `--compressed` of `plimsoll check` and `plimsoll load`.

use std::io::Write;

use plimsoll_testkit::{Authority, MaterialFiles, Origin, Script};

use crate::plimsoll::{CommandOutput, plimsoll};

/// An origin that sends each connection to `location` with `status`.
fn redirecting(status: u16, location: &str) -> Origin {
    Origin::scripted(Script::serve(format!(
        "HTTP/1.1 {status} Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
    )))
}

fn ok() -> Origin {
    Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ))
}

fn check(url: &str, flags: &[&str]) -> CommandOutput {
    plimsoll(&[&["check", url], flags].concat())
}

#[test]
fn the_last_response_is_judged_and_times_are_those_of_all() {
    let end = ok();
    let middle = redirecting(302, &end.url("/end"));
    let start = redirecting(301, &middle.url("/middle"));
    let expected = ["--expect", "status == 200", "--expect", "body == 'ok'"];
    let flags = [&["--location", "--json"], &expected[..]].concat();
    let document = check(&start.url("/start"), &flags).exits(0).json();
    assert_eq!(document["url"], end.url("/end"));
    let redirects = document["redirects"].as_array().unwrap();
    let passed: Vec<_> = redirects
        .iter()
        .map(|it| (it["url"].as_str().unwrap(), it["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        passed,
        [
            (start.url("/start").as_str(), 301),
            (middle.url("/middle").as_str(), 302)
        ]
    );
    let before: f64 = redirects
        .iter()
        .map(|it| it["time_us"].as_f64().unwrap())
        .sum();
    assert!(document["exchange"]["time_us"].as_f64().unwrap() > before);
    let text = check(&start.url("/start"), &["-L"]).exits(0).stdout;
    assert!(text.contains("\nredirects\n  301  "), "{text}");

    let unfollowed = check(&start.url("/start"), &["--json"]).exits(0).json();
    assert_eq!(unfollowed["exchange"]["status"], 301);
    assert_eq!(unfollowed["redirects"].as_array().unwrap().len(), 0);
}

#[test]
fn credentials_and_bodies_do_not_leave_the_origin() {
    let end = ok();
    let start = redirecting(302, &end.url("/end"));
    let flags = [
        "-L",
        "-d",
        "secret=1",
        "-a",
        "ann:pass",
        "-H",
        "cookie: a=b",
        "-H",
        "x-kept: yes",
    ];
    check(&start.url("/"), &flags).exits(0);
    let first = start.heads()[0].to_ascii_lowercase();
    assert!(
        first.starts_with("post / ") && first.contains("authorization:"),
        "{first}"
    );
    let last = end.heads()[0].to_ascii_lowercase();
    assert!(last.starts_with("get /end "), "{last}");
    assert!(last.contains("x-kept: yes"), "{last}");
    for gone in [
        "authorization:",
        "cookie:",
        "content-type:",
        "content-length:",
    ] {
        assert!(!last.contains(gone), "{gone} in {last}");
    }

    let again = redirecting(307, &end.url("/again"));
    check(&again.url("/"), &flags).exits(0);
    let last = end.heads()[1].to_ascii_lowercase();
    assert!(
        last.starts_with("post /again ") && last.contains("content-length: 8"),
        "{last}"
    );
    assert!(!last.contains("authorization:"), "{last}");
}

/// An origin that redirects its first request within itself.
fn redirecting_once() -> Origin {
    Origin::builder()
        .script(|connection| match connection {
            0 => {
                Script::serve("HTTP/1.1 307 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n")
            }
            _ => Script::serve("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        })
        .start()
}

#[test]
fn credentials_stay_away_after_another_origin_redirects_within_itself() {
    let elsewhere = redirecting_once();
    let start = redirecting(307, &elsewhere.url("/there"));
    check(&start.url("/"), &["-L", "-a", "ann:pass"]).exits(0);
    let heads = elsewhere.heads();
    assert_eq!(heads.len(), 2);
    for head in heads {
        assert!(
            !head.to_ascii_lowercase().contains("authorization"),
            "{head}"
        );
    }
}

#[test]
fn load_counts_a_chain_as_one_exchange_and_follows_it_to_tls() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let ca = files.write("ca.pem", &authority.pem());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&[b'a'; 1000]).unwrap();
    let content = encoder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        content.len()
    );
    let answer = [head.as_bytes(), &content].concat();
    let end = Origin::builder()
        .tls(authority.issue(&["localhost"]).server_config())
        .script(move |_| Script::serve(answer.clone()))
        .start();
    let start = redirecting(302, &end.url("/").replace("127.0.0.1", "localhost"));
    let url = start.url("/");
    let ca = ca.to_string_lossy();
    let flags = ["-n", "6", "-c", "2", "-L", "--compressed", "--cacert", &ca];
    let document = plimsoll(&[&["load", "--json", &url], &flags[..]].concat())
        .exits(0)
        .json();
    assert_eq!(document["counts"]["ok"], 6);
    assert_eq!(document["counts"]["redirects"], 6);
    assert_eq!(document["statuses"]["200"], 6);
    assert_eq!(document["decoded"]["decoded_bytes"], 6000);
    assert_eq!(document["decoded"]["encoded_bytes"], 6 * content.len());
    assert_eq!((start.requests(), end.requests()), (6, 6));
    let head = end.heads()[0].to_ascii_lowercase();
    assert!(
        head.contains("accept-encoding: gzip, deflate, br, zstd"),
        "{head}"
    );
    let output = plimsoll(&[&["load", &url], &flags[..]].concat()).exits(0);
    let words: Vec<_> = output.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("6 redirects"), "{output}");
    assert!(text.contains("6.00 kB decoded"), "{output}");
}

#[test]
fn load_refuses_redirects_where_there_are_none() {
    for (flags, with) in [
        (vec!["ws://127.0.0.1:1/", "-L"], "the URL of a WebSocket"),
        (
            vec!["http://127.0.0.1:1/", "--sse", "--compressed"],
            "--sse",
        ),
        (
            vec!["http://127.0.0.1:1/", "--grpc", "a.B/C", "-L"],
            "--grpc",
        ),
    ] {
        let output = plimsoll(&[&["load"], &flags[..]].concat()).exits(2);
        let expected = format!("does not go with {with}");
        assert!(output.stderr.contains(&expected), "{output}");
    }
}

#[test]
fn a_redirect_may_lead_to_tls_and_a_loop_fails() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let ca = files.write("ca.pem", &authority.pem());
    let end = Origin::builder()
        .tls(authority.issue(&["localhost"]).server_config())
        .script(|_| Script::serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
        .start();
    let start = redirecting(308, &end.url("/").replace("127.0.0.1", "localhost"));
    let ca = ca.to_string_lossy();
    let flags = ["-L", "--cacert", &ca, "--expect", "cert.days > 0"];
    check(&start.url("/"), &flags).exits(0);

    let circle = redirecting(302, "/");
    let output = check(&circle.url("/"), &["-L", "--max-redirs", "3"]).exits(1);
    assert!(
        output.stdout.contains("redirected more than 3 times"),
        "{output}"
    );
    assert_eq!(circle.requests(), 4);
    let elsewhere = redirecting(302, "file:///etc/passwd");
    let output = check(&elsewhere.url("/"), &["-L"]).exits(1);
    let words: Vec<_> = output.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("a URL of scheme `file`"), "{output}");
}

#[test]
fn compressed_content_is_decoded_for_conditions() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(br#"{"ok": true}"#).unwrap();
    let content = encoder.finish().unwrap();
    let answer = |content: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            content.len()
        );
        Origin::scripted(Script::serve([head.as_bytes(), content].concat()))
    };
    let origin = answer(&content);
    let condition = ["--expect", "body.json($.ok) == true"];
    let flags = [&["--compressed"], &condition[..]].concat();
    check(&origin.url("/"), &flags).exits(0);
    let head = origin.heads()[0].to_ascii_lowercase();
    assert!(
        head.contains("accept-encoding: gzip, deflate, br, zstd"),
        "{head}"
    );
    check(&origin.url("/"), &condition).exits(1);

    let broken = answer(&content[..content.len() - 4]);
    let output = check(&broken.url("/"), &["--compressed"]).exits(1);
    assert!(
        output.stdout.contains("malformed content of coding gzip"),
        "{output}"
    );
}
