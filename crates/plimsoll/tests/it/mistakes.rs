//! What people get wrong, and the messages they get.

use insta::assert_snapshot;
use plimsoll_testkit::{Origin, Script, Step, refused_address};

use crate::plimsoll::{command, files_in, plimsoll, run};

#[test]
fn urls() {
    assert_snapshot!(plimsoll(&["load", "ftp://example.org/"]), @"
    error: URL: unknown scheme `ftp`; plimsoll speaks http:// and https://
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "http://user:hunter2@a b/"]), @"
    error: URL: `http://…@a b/` is not a URL: invalid international domain name
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "--urls", "missing.txt"]), @"
    error: --urls: cannot read missing.txt: No such file or directory (os error 2)
    exit 2
    ");
}

#[test]
fn help_is_a_command_too() {
    let whole = |words: &[&str]| plimsoll(words).exits(0).stdout;
    assert_eq!(whole(&["help", "load"]), whole(&["load", "--help"]));
    assert_eq!(whole(&["help"]), whole(&["--help"]));
    let unknown = plimsoll(&["help", "laod"]).exits(2);
    assert!(unknown.stderr.contains("laod"), "{unknown}");
}

#[test]
fn targets_that_are_not_there() {
    assert_snapshot!(plimsoll(&["load", "http://nosuch.invalid/"]), @"
    error: cannot reach http://nosuch.invalid: name-not-found during dns: there is no host named `nosuch.invalid`
      hint: correct the host, or name its address: --resolve HOST:PORT:ADDRESS
    exit 3
    ");
    let refused = format!("http://{}/", refused_address());
    let output = plimsoll(&["load", &refused]).exits(3);
    let expected = format!(
        "error: cannot reach {}: refused during connect: ",
        refused.trim_end_matches('/')
    );
    assert!(output.stderr.starts_with(&expected), "{output}");
    let hint = "hint: start the server, or correct host and port";
    assert!(output.stderr.contains(hint), "{output}");
}

#[test]
fn a_plain_server_behind_https() {
    let script = Script::new()
        .then(Step::ReadBody(5))
        .then(Step::Write(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()));
    let origin = Origin::scripted(script);
    let url = format!("https://{}/", origin.address());
    let output = plimsoll(&["load", &url]).exits(3);
    assert!(output.stderr.contains("the answer is not TLS"), "{output}");
}

#[test]
fn flags_all_at_once() {
    assert_snapshot!(
        plimsoll(&[
            "load", "--expect", "statu == 200", "--fail-status", "6x", "-H", "no colon",
            "--resolve", "nonsense", "-x", "gopher://p", "http://127.0.0.1/",
        ]),
        @"
    error: --expect: unknown subject `statu`; did you mean `status`? known are status, time, dns, connect, tls, send, wait, receive, size, ip, cert.days, grpc.status, body, body.sha256, body.json(PATH), header.NAME, any(…), not(…)
    error: --fail-status: `6x` is not a status; write for example `500`, `5xx`, `400-499` or `none`
    error: -H: `no colon` is not of the form `Name: value`
    error: --resolve: expected HOST:PORT:ADDRESS, such as `example.com:443:127.0.0.1`
    error: -x: unknown proxy scheme `gopher`; plimsoll speaks http://, https://, socks4://, socks4a://, socks5:// and socks5h://
    exit 2
    "
    );
}

#[test]
fn what_http2_does_not_go_with() {
    assert_snapshot!(
        plimsoll(&[
            "load", "--http2", "--disable-keepalive", "--max-in-flight", "5", "-p", "1",
            "--h2-window", "0B", "--h2-connection-window", "3GiB", "-H", "connection: close",
            "-q", "1", "http://127.0.0.1/",
        ]),
        @"
    error: --disable-keepalive: has no meaning with --http2, whose connections carry requests side by side
    error: --max-in-flight: does not go with --http2
      hint: the connections (-c) times their streams (-p) are under way at most
    error: --h2-window: must be from 1 to 2147483647 bytes
    error: --h2-connection-window: must be from 65535 to 2147483647 bytes
    error: request: header `connection` cannot be given in HTTP/2: the connection, the length and the authority are set apart
    exit 2
    "
    );
    let proxied = [
        "load",
        "--http2",
        "-x",
        "http://127.0.0.1:1",
        "http://127.0.0.1/",
    ];
    assert_snapshot!(plimsoll(&proxied), @"
    error: request: --http2 on an http:// URL does not go through an HTTP proxy; use a SOCKS proxy, or none with `-x ''`
    exit 2
    ");
    let output = plimsoll(&["load", "-p", "4", "http://127.0.0.1/"]).exits(2);
    assert!(output.stderr.contains("--http2"), "{output}");
    let origin = Origin::hello();
    let output = plimsoll(&["load", "--http2", &origin.url("/")]).exits(3);
    assert!(
        output.stderr.contains("speaks HTTP/1, not HTTP/2"),
        "{output}"
    );
}

#[test]
fn flags_that_contradict_one_another() {
    assert_snapshot!(plimsoll(&["load", "-c", "10", "-n", "5", "http://127.0.0.1/"]), @"
    error: -n: 5 requests do not need 10 connections
      hint: lower -c or raise -n
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "-c", "2", "-t", "3", "http://127.0.0.1/"]), @"
    error: -t: 3 threads have nothing to do with 2 connections
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "--on-full", "drop", "http://127.0.0.1/"]), @"
    error: --on-full: needs a schedule
      hint: give a rate with -q, or stages such as `10s:100/s`
    exit 2
    ");
    assert_snapshot!(
        plimsoll(&["load", "-q", "10", "-c", "5", "--max-in-flight", "9", "http://127.0.0.1/"]),
        @"
    error: --max-in-flight: 9 requests cannot be under way on 5 connections
      hint: over HTTP/1 a connection carries one request at a time: raise -c
    exit 2
    "
    );
    assert_snapshot!(plimsoll(&["load", "-q", "50M", "http://127.0.0.1/"]), @"
    error: -q: 50000000 requests a second is more than one machine can start (at most 10000000)
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "--stages", "10s:5,5s:9/s", "http://127.0.0.1/"]), @"
    error: --stages: write `/s` behind all levels (rates) or none (connections)
    exit 2
    ");
}

#[test]
fn thresholds_that_cannot_be_judged() {
    assert_snapshot!(
        plimsoll(&[
            "load", "--threshold", "http_reqs:p(99)<1s", "--threshold", "errors:rate<few",
            "--threshold", "server_rss:max<1GB", "http://127.0.0.1/",
        ]),
        @"
    error: --threshold: `http_reqs` has no `p(99)`; it has count, rate
    error: --threshold: `few` is no limit for this; write for example `1%`
    error: --threshold: `server_rss:max<1GB` needs the processes of the server
      hint: name them with --pid or --observe, or start them with --spawn
    exit 2
    "
    );
}

#[test]
fn files_that_cannot_be_used() {
    assert_snapshot!(plimsoll(&["load", "--cacert", "missing.pem", "https://127.0.0.1/"]), @"
    error: --cacert: cannot read `missing.pem`: No such file or directory (os error 2)
    exit 2
    ");
    assert_snapshot!(plimsoll(&["load", "-D", "missing.body", "http://127.0.0.1/"]), @"
    error: -D: cannot read missing.body: No such file or directory (os error 2)
    exit 2
    ");
}

#[test]
fn commands_that_do_not_serve() {
    let url = format!("http://{}/", refused_address());
    let spawn = |command: &str| {
        plimsoll(&["load", "--spawn", command, "--spawn-timeout", "1s", &url])
            .to_string()
            .replace(&refused_address().ip().to_string(), "ADDRESS")
    };
    assert_snapshot!(spawn("no-such-program"), @"
    error: --spawn: program `no-such-program` not found
    exit 3
    ");
    assert_snapshot!(spawn("sh -c 'echo port taken >&2; exit 7'"), @"
    error: --spawn: `sh` ended before it served (exit status: 7)
      port taken
    exit 3
    ");
    assert_snapshot!(spawn("true"), @"
    error: --spawn: `true` ended before it served (exit status: 0); if it went into the background, it still runs there: keep it in the foreground (nginx: `-g 'daemon off;'`)
    exit 3
    ");
    assert_snapshot!(spawn("unclosed '"), @"
    error: --spawn: a quote is not closed
    exit 2
    ");
    assert!(spawn("sleep 60").contains("does not accept connections on"));
}

#[test]
fn processes_that_are_not_there() {
    assert_snapshot!(plimsoll(&["load", "--pid", "4194305", &Origin::hello().url("/")]), @"
    error: --pid: there is no process 4194305
    exit 3
    ");
}

#[test]
fn too_few_descriptors() {
    let origin = Origin::hello();
    let script = format!(
        "ulimit -n 100; exec {} load -c 500 {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        origin.url("/")
    );
    let output = run(std::process::Command::new("sh").args(["-c", &script]));
    assert_snapshot!(output, @"
    error: -c: needs 564 open files, but the limit is 100 (hard limit 100): raise it with `ulimit -n 564`, as root beyond the hard limit
    exit 3
    ");
    assert_eq!(origin.requests(), 0);
}

#[test]
fn results_that_cannot_be_written() {
    let origin = Origin::hello();
    let output = plimsoll(&[
        "load",
        "-n",
        "1",
        "--out",
        "/proc/results",
        &origin.url("/"),
    ]);
    assert_snapshot!(output, @"
    error: --out: cannot write to /proc/results: No such file or directory (os error 2)
    exit 3
    ");
    assert_eq!(origin.requests(), 0, "reported before the run");
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let arguments = [
        "load",
        "-n",
        "1",
        "--out",
        out.to_str().unwrap(),
        &origin.url("/"),
    ];
    plimsoll(&arguments).exits(0);
    let files = files_in(&out);
    let again = plimsoll(&arguments).exits(2);
    assert!(again.stderr.contains("exists already"), "{again}");
    assert_eq!(files_in(&out), files);
}

#[test]
fn proxies_of_the_environment() {
    let origin = Origin::hello();
    let output =
        run(command(&["load", "-n", "1", &origin.url("/")]).env("http_proxy", "gopher://p"));
    assert_snapshot!(output, @"
    error: environment: environment variable `http_proxy`: unknown proxy scheme `gopher`; plimsoll speaks http://, https://, socks4://, socks4a://, socks5:// and socks5h://
    exit 2
    ");
}

#[test]
fn hidden_commands_are_not_suggested() {
    for word in ["lode", "loadtest-origin"] {
        let output = plimsoll(&[word]).exits(2);
        assert!(output.stderr.contains("loadtest"), "{output}");
        assert!(!output.stderr.contains("loadtest-origins"), "{output}");
        assert!(!output.stderr.contains("loadtest-clients"), "{output}");
    }
}

#[test]
fn a_path_without_its_slash_is_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("paths.txt");
    std::fs::write(&list, "/a\nb?x=1\nc.example/d\n").unwrap();
    let list = list.to_str().unwrap();
    let arguments = ["load", "--check", "--urls", list, "http://127.0.0.1:1/"];
    let output = plimsoll(&arguments).exits(2);
    assert!(
        output.stderr.contains("`b?x=1` would be a host"),
        "{output}"
    );
    assert!(
        output.stderr.contains("begins with a slash: /b?x=1"),
        "{output}"
    );
    assert!(!output.stderr.contains("c.example"), "{output}");
}
