//! HTTP/2 against servers that are not ours: nginx and nghttpd.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use plimsoll_testkit::{Authority, Http2Origin, eventually, free_port, free_ports};
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::plimsoll::plimsoll;

/// Starts `command` and waits until it listens on `port`; it ends when the value is dropped.
pub(crate) fn start(command: &str, port: u16) -> Process {
    let process = Process::spawn(&ProcessSpec {
        argv: shlex::split(command).unwrap(),
        ..ProcessSpec::default()
    })
    .expect("it is installed by `cargo xtask test`");
    eventually(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    process
}

fn logged(directory: &Path) -> usize {
    let log = fs::read_to_string(directory.join("access.log")).unwrap_or_default();
    log.lines()
        .filter(|line| line.contains("HTTP/2.0\" 200"))
        .count()
}

#[test]
fn nginx_counts_what_we_count_though_it_leaves_connections() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let [port, tls] = free_ports().unwrap();
    let authority = Authority::new();
    let server = authority.issue(&["127.0.0.1"]);
    for (name, text) in [
        ("cert.pem", server.pem()),
        ("key.pem", server.key_pem()),
        ("roots.pem", &authority.pem()),
    ] {
        fs::write(path.join(name), text).unwrap();
    }
    let configuration = include_str!("nginx-http2.conf")
        .replace("{dir}", &path.display().to_string())
        .replace("{port}", &port.to_string())
        .replace("{tls}", &tls.to_string());
    fs::write(path.join("nginx.conf"), configuration).unwrap();
    let command = format!("nginx -p {0} -c {0}/nginx.conf", path.display());
    let _nginx = start(&command, tls);

    let roots = path.join("roots.pem");
    let roots = roots.to_str().unwrap();
    let mut expected = 0;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{tls}/"),
    ] {
        let flags = [
            "load", "--json", "--http2", "-n", "5000", "-c", "4", "-p", "32",
        ];
        let mut arguments = flags.to_vec();
        arguments.extend([
            "--cacert",
            roots,
            "--expect",
            "body == 'hello world\n'",
            &url,
        ]);
        let summary = plimsoll(&arguments).exits(0).json();
        assert_eq!(summary["counts"]["ok"], 5000, "{summary}");
        assert_eq!(summary["load"]["protocol"], "HTTP/2");
        assert_eq!(summary["load"]["streams"], 32);
        // At most a hundred requests on each.
        assert!(
            summary["connections_opened"].as_u64().unwrap() >= 50,
            "{summary}"
        );
        expected += 5000;
        eventually(|| logged(path) == expected);
    }
    let url = format!("https://127.0.0.1:{tls}/");
    let checked = plimsoll(&["check", "--json", "--http2", "--cacert", roots, &url]);
    let checked = checked.exits(0).json();
    assert_eq!(checked["exchange"]["protocol"], "HTTP/2", "{checked}");
    assert_eq!(checked["tls"]["alpn"], "h2");
}

#[test]
fn nghttpd_answers_get_head_and_post() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("index.html"), vec![b'x'; 50_000]).unwrap();
    let port = free_port().unwrap();
    let command = format!("nghttpd --no-tls -d {} {port}", directory.path().display());
    let _nghttpd = start(&command, port);
    let url = format!("http://127.0.0.1:{port}/");
    for (method, size) in [("GET", "50000B"), ("HEAD", "0B"), ("POST", "50000B")] {
        let expected = format!("size == {size}");
        let summary = plimsoll(&[
            "load",
            "--json",
            "--http2",
            "-n",
            "2000",
            "-c",
            "2",
            "-p",
            "16",
            "-m",
            method,
            "--h2-window",
            "20KiB",
            "--h2-connection-window",
            "64KiB",
            "--expect",
            &expected,
            "--expect",
            "status == 200",
            &url,
        ]);
        let summary = summary.exits(0).json();
        assert_eq!(summary["counts"]["ok"], 2000, "{summary}");
        assert_eq!(summary["connections_opened"], 2);
    }
}

#[test]
fn the_summary_names_protocol_and_streams() {
    let origin = Http2Origin::hello();
    let output = plimsoll(&[
        "load",
        "--http2",
        "-n",
        "500",
        "-c",
        "2",
        "-p",
        "8",
        &origin.url("/"),
    ]);
    let output = output.exits(0);
    let expected = "HTTP/2, 2 connections with 8 streams each";
    assert!(output.stdout.contains(expected), "{output}");
    assert_eq!(origin.requests(), 500);
}

#[test]
fn without_a_url_the_embedded_origin_speaks_it_too() {
    let output = plimsoll(&[
        "load",
        "--json",
        "--http2",
        "-n",
        "3000",
        "-c",
        "2",
        "-p",
        "50",
        "--expect",
        "body == 'hello, load\n'",
    ]);
    let summary = output.exits(0).json();
    assert_eq!(summary["counts"]["ok"], 3000, "{summary}");
    assert_eq!(summary["target"]["name"], "embedded origin");
    let output = plimsoll(&[
        "load",
        "--json",
        "--http2",
        "-n",
        "100",
        "-c",
        "1",
        "-p",
        "8",
        "-m",
        "HEAD",
        "--expect",
        "size == 0B",
    ]);
    assert_eq!(output.exits(0).json()["counts"]["ok"], 100);
    // More than the windows that a connection begins with.
    let mut body = tempfile::NamedTempFile::new().unwrap();
    body.write_all(&vec![b'b'; 300_000]).unwrap();
    let path = body.path().to_str().unwrap();
    let output = plimsoll(&[
        "load", "--json", "--http2", "-n", "20", "-c", "1", "-p", "4", "-D", path,
    ]);
    assert_eq!(output.exits(0).json()["counts"]["ok"], 20);
}
