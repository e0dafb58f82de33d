//! HTTP/3 against others: caddy, whose QUIC is quic-go, as the server, and the client of ngtcp2.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use insta::assert_snapshot;
use plimsoll_testkit::{Authority, Http3Origin, Leaf, MaterialFiles, eventually, free_port};
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::plimsoll::plimsoll;
use crate::served::Served;

/// Starts Caddy on another port each time; with the URL that it serves.
fn caddy(path: &Path) -> (Process, String) {
    let port = free_port().unwrap();
    let configuration = include_str!("Caddyfile")
        .replace("{dir}", &path.display().to_string())
        .replace("{port}", &port.to_string());
    fs::write(path.join("Caddyfile"), configuration).unwrap();
    let command = format!(
        "env XDG_DATA_HOME={0} XDG_CONFIG_HOME={0} caddy run --config {0}/Caddyfile",
        path.display()
    );
    let process = Process::spawn(&ProcessSpec {
        argv: shlex::split(&command).unwrap(),
        ..ProcessSpec::default()
    });
    let process = process.expect("it is installed by `cargo xtask test`");
    (process, format!("https://localhost:{port}/"))
}

#[test]
fn caddy_counts_what_we_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let authority = Authority::new();
    let server = authority.issue(&["localhost"]);
    let large: Vec<u8> = (0..=250).cycle().take(300_000).collect();
    for (name, bytes) in [
        ("cert.pem", server.pem().as_bytes()),
        ("key.pem", server.key_pem().as_bytes()),
        ("roots.pem", authority.pem().as_bytes()),
        ("large", &large),
    ] {
        fs::write(path.join(name), bytes).unwrap();
    }
    let roots = path.join("roots.pem");
    let roots = roots.to_str().unwrap();
    let check = |url: &str| {
        let large = format!("{url}large");
        plimsoll(&[
            "check",
            "--json",
            "--http3",
            "--udp-payload",
            "1300",
            "--cacert",
            roots,
            "--expect",
            "size == 300000B",
            "--expect",
            "cert.days > 14",
            &large,
        ])
    };
    let (mut caddy, mut url) = caddy(path);
    // Caddy listens for TCP before UDP: only a response over QUIC shows that it serves. It ends where another program has the
    // port of UDP.
    eventually(|| {
        if caddy.wait(Duration::ZERO).is_some() {
            (caddy, url) = self::caddy(path);
        }
        check(&url).code == Some(0)
    });
    let checked = check(&url).exits(0).json();
    assert_eq!(checked["exchange"]["protocol"], "HTTP/3", "{checked}");
    assert_eq!(checked["tls"]["alpn"], "h3");

    let summary = plimsoll(&[
        "load",
        "--json",
        "--http3",
        "-n",
        "2000",
        "-c",
        "2",
        "-p",
        "16",
        "--cacert",
        roots,
        "--expect",
        "body == 'hello world'",
        &url,
    ]);
    let summary = summary.exits(0).json();
    assert_eq!(summary["counts"]["ok"], 2000, "{summary}");
    assert_eq!(summary["load"]["protocol"], "HTTP/3");
    assert_eq!(summary["connections_opened"], 2);
    let log = path.join("access.log");
    let logged = || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        log.lines()
            .filter(|line| {
                [r#""uri":"/","#, r#""proto":"HTTP/3.0""#, r#""status":200"#]
                    .iter()
                    .all(|part| line.contains(part))
            })
            .count()
    };
    eventually(|| logged() == 2000);
}

#[test]
fn the_summary_names_protocol_and_streams() {
    let origin = Http3Origin::hello(Leaf::self_signed(&["127.0.0.1"]).server_config());
    let url = origin.url("/");
    let flags = [
        "load", "--http3", "-k", "-n", "200", "-c", "2", "-p", "8", &url,
    ];
    let output = plimsoll(&flags).exits(0);
    let expected = "HTTP/3, 2 connections with 8 streams each";
    assert!(output.stdout.contains(expected), "{output}");
    assert_eq!(origin.requests(), 200);
}

#[test]
fn what_http3_does_not_go_with() {
    let refused = |flags: &[&str]| {
        let mut arguments = vec!["load", "--http3"];
        arguments.extend(flags);
        plimsoll(&arguments).exits(2).stderr
    };
    assert_snapshot!(refused(&[
        "--disable-keepalive", "-q", "9", "--max-in-flight", "5", "--udp-payload", "1199",
        "--unix-socket", "/s", "--haproxy-protocol", "https://localhost/",
    ]), @"
    error: --disable-keepalive: has no meaning with --http3, whose connections carry requests side by side
    error: --max-in-flight: does not go with --http3
      hint: the connections (-c) times their streams (-p) are under way at most
    error: --unix-socket: has no meaning with --http3, which runs over UDP
    error: --haproxy-protocol: has no meaning with --http3, which runs over UDP
    error: --udp-payload: a UDP payload of 1199 bytes cannot be had; QUIC takes from 1200 to 65527
    ");
    assert_snapshot!(refused(&["http://localhost/", "-x", "socks5://127.0.0.1:1"]), @"
    error: --http3: needs an https:// URL, and http://localhost/ is none
    error: --http3: does not go through a proxy; use none with `-x ''`
    ");
    assert_snapshot!(refused(&["--tls-max", "1.2", "https://localhost/"]), @"
    error: --http3: QUIC needs TLS 1.3 and its suite TLS13_AES_128_GCM_SHA256, and one of them is excluded
    ");
    assert!(refused(&["--http2", "https://localhost/"]).contains("cannot be used with"));
}

#[test]
fn a_client_that_is_not_ours_is_served() {
    let (files, authority) = (MaterialFiles::new(), Authority::new());
    let leaf = authority.issue(&["localhost"]);
    files.write("cert.pem", leaf.pem());
    files.write("key.pem", leaf.key_pem());
    let numbers: Vec<_> = (0..40_000).map(|number| number.to_string()).collect();
    let content = numbers.join(",");
    let sent = files.write("content", &content);
    let text = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
                tls = { cert = \"cert.pem\", key = \"key.pem\" }\n\
                [[route]]\npath = \"/\"\nrespond = { body = \"hello\" }\n\
                [[route]]\npath = \"/echo\"\necho = {}\n";
    let path = files.write("plimsoll.toml", text);
    let up = Served::start(&["up", &path.to_string_lossy()]);
    let port = up.url.trim_end_matches('/').rsplit(':').next().unwrap();
    let client = |arguments: &[&str], path: &str| {
        let mut command = Command::new("gtlsclient");
        command
            .args([
                "--no-quic-dump",
                "--exit-on-all-streams-close",
                "--timeout=20s",
            ])
            .args(arguments)
            .args([
                "127.0.0.1",
                port,
                &format!("https://localhost:{port}{path}"),
            ]);
        let output = command
            .output()
            .expect("gtlsclient is installed by `cargo xtask test`");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // Twenty requests side by side.
    let output = client(&["-n", "20"], "/");
    assert_eq!(output.matches("[:status: 200]").count(), 20, "{output}");
    // A body may come in two packets.
    let bodies = output.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" body ")?;
        rest.strip_suffix(" bytes")?.parse::<usize>().ok()
    });
    assert_eq!(bodies.sum::<usize>(), 20 * "hello".len(), "{output}");
    // More than any window holds, under keys that change and from an address that does.
    let folder = files.path("received");
    fs::create_dir(&folder).unwrap();
    let (sent, folder) = (sent.to_string_lossy(), folder.to_string_lossy());
    let (data, download) = (format!("--data={sent}"), format!("--download={folder}"));
    let arguments = [
        "-m",
        "POST",
        &data,
        &download,
        "--key-update=5ms",
        "--change-local-addr=10ms",
    ];
    let output = client(&arguments, "/echo");
    let received = fs::read_to_string(files.path("received").join("echo")).unwrap_or_default();
    assert!(received == content, "{output}");
}
