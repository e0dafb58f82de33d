//! Passwords on routes: no spelling of a path gets around them to the files of a mock or a site.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use plimsoll_testkit::{MaterialFiles, eventually, http};

use crate::plimsoll::{command, plimsoll};
use crate::served::Served;
use crate::site::serve;

/// The response to one request, as text.
pub(crate) fn ask(served: &Served, request: &str) -> String {
    try_ask(served, request).unwrap()
}

fn try_ask(served: &Served, request: &str) -> io::Result<String> {
    let mut stream = connect(served);
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn connect(served: &Served) -> TcpStream {
    let address = served.url.split("://").nth(1).unwrap();
    http::connect(address.trim_matches('/'))
}

fn get(served: &Served, path: &str) -> String {
    ask(
        served,
        &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
    )
}

#[test]
fn no_spelling_of_a_path_gets_around_a_password() {
    let files = MaterialFiles::new();
    for folder in ["tree", "tree/private", "tree/admin"] {
        fs::create_dir(files.path(folder)).unwrap();
    }
    files.write("tree/open.json", "{\"open\":true}");
    files.write("tree/private/secret.json", "{\"hidden\":1}");
    files.write("tree/admin/secret.json", "{\"hidden\":1}");
    let guard = "basic_auth = { users = { ann = \"$2y$04$abcdefghijklmnopqrstuuKKLzYHSLZiYDFhqk2TWOXkYgGqlqGYm\" } }";
    for action in ["mock = { dir = \"tree\" }", "files = { root = \"tree\" }"] {
        let route = |prefix: &str, more: &str| {
            format!("[[route]]\nname = \"{prefix}{more}\"\nprefix = \"{prefix}\"\n{action}\n")
        };
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}{}{}{guard}\n{}{guard}\n",
            route("/m", ""),
            route("/public", ""),
            route("/m/private", ""),
            route("/m/admin", ""),
        );
        let path = files.write("plimsoll.toml", &text);
        let served = Served::start(&["up", &path.to_string_lossy()]);
        let open = get(&served, "/m/open.json");
        assert!(open.starts_with("HTTP/1.1 200 "), "{open}");
        for path in [
            "/m/private/secret.json",
            "/m/PRIVATE/secret.json",
            "/M/Private/secret.json",
            "/m/private%2Fsecret.json",
            "/m/private%2fsecret.json",
            "/m//private/secret.json",
            "//m/private/secret.json",
            "/m/%70rivate/secret.json",
            "/m/./private/secret.json",
            "/m/x/../private/secret.json",
            "/m/%2e/private/secret.json",
            "/m/..;/m/private/secret.json",
            "/m/private%5Csecret.json",
            "/public/../m/private/secret.json",
            "/public/%2e%2e/m/admin/secret.json",
            "/public/..;/m/admin/secret.json",
            "/m/private/secret",
        ] {
            let answer = get(&served, path);
            assert!(!answer.contains("hidden"), "{action} {path}: {answer}");
            let is_refused = ["400", "401"]
                .iter()
                .any(|status| answer.starts_with(&format!("HTTP/1.1 {status} ")));
            assert!(is_refused, "{action} {path}: {answer}");
        }
    }
}

#[test]
fn addresses_have_short_forms() {
    let config = |arguments: &[&str]| {
        let all = ["serve", "--print-config"];
        plimsoll(&[&all, arguments].concat())
    };
    for (arguments, address) in [
        (&["--listen", "8080"][..], "127.0.0.1:8080"),
        (&["--listen", "localhost:8080"], "127.0.0.1:8080"),
        (&["--listen", ":8199"], "[::]:8199"),
        (&["-p", "8081"], "127.0.0.1:8081"),
        (&["--port=8081"], "127.0.0.1:8081"),
    ] {
        let output = config(arguments).exits(0);
        let line = format!("address = \"{address}\"");
        assert!(output.stdout.contains(&line), "{arguments:?}: {output}");
    }
    let output = config(&["--listen", "example.org"]).exits(2);
    assert!(output.stderr.contains("such as 127.0.0.1:8080"), "{output}");
    let output = config(&["--spa"]).exits(0);
    assert!(
        output.stdout.contains("fallback = \"index.html\""),
        "{output}"
    );
}

#[test]
fn messages_name_what_the_user_wrote() {
    let output = plimsoll(&["serve", "/nonexistent/dir"]).exits(2);
    assert!(output.stderr.contains("error: DIR: "), "{output}");
    let output = plimsoll(&["serve", "--cache-control", "a\u{1}b"]).exits(2);
    assert!(output.stderr.contains("--cache-control: "), "{output}");
    assert!(!output.stderr.contains("route[1]"), "{output}");
    let output = plimsoll(&["serve", "--refresh", "5"]).exits(2);
    assert!(
        output.stderr.contains("--refresh: there is no list"),
        "{output}"
    );
    let files = MaterialFiles::new();
    let path = files.write(
        "bad.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nregex = \"(\"\nrespond = {}\n",
    );
    let output = plimsoll(&["up", "--check", &path.to_string_lossy()]).exits(2);
    assert_eq!(output.stderr.matches("error").count(), 1, "{output}");
    assert!(
        output
            .stderr
            .contains("bad.toml:4:9: route[1].regex: is not a regular expression: unclosed group"),
        "{output}"
    );
}

#[test]
fn a_missing_fallback_is_reported() {
    let files = crate::site::site();
    let public = files.path("public").to_string_lossy().into_owned();
    let mut served = serve(&[&public, "--fallback", "nope.html"]);
    assert!(served.answers("/about", &["body == about"]));
    served.child.kill().unwrap();
    let mut output = String::new();
    let mut stderr = served.child.stderr.take().unwrap();
    stderr.read_to_string(&mut output).unwrap();
    assert!(
        output.contains("warning: fallback: `nope.html` is not there"),
        "{output}"
    );
}

#[test]
fn a_crawl_whose_start_is_missing_has_failed() {
    let files = crate::site::site();
    let public = files.path("public").to_string_lossy().into_owned();
    let served = serve(&[&public]);
    plimsoll(&["crawl", &served.url]).exits(0);
    plimsoll(&["crawl", &format!("{}nope", served.url)]).exits(1);
}

#[test]
fn a_truncated_packed_site_says_so() {
    let files = crate::site::site();
    let path = |name: &str| files.path(name).to_string_lossy().into_owned();
    let (public, packed) = (path("public"), path("packed"));
    plimsoll(&["pack", &public, "-o", &packed]).exits(0);
    let length = fs::metadata(&packed).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&packed).unwrap();
    file.set_len(length - 10).unwrap();
    drop(file);
    let output = crate::plimsoll::run(Command::new(&packed).args(["--listen", "127.0.0.1:0"]));
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.stderr.contains("its end is missing"), "{output}");
    assert!(!output.stderr.contains("Usage"), "{output}");
}

#[test]
fn few_descriptors_limit_connections_and_never_files() {
    let files = MaterialFiles::new();
    fs::create_dir(files.path("public")).unwrap();
    for number in 0..100 {
        files.write(&format!("public/{number}.bin"), &"x".repeat(20_000));
    }
    let public = files.path("public").to_string_lossy().into_owned();
    let program = command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--threads",
        "1",
        &public,
    ]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    let mut served = Served::start_program(&mut limited);
    let mut streams: Vec<_> = (0..200).map(|_| connect(&served)).collect();
    let mut answered = 0;
    for (number, stream) in streams.iter_mut().enumerate() {
        let request = format!("GET /{}.bin HTTP/1.1\r\nhost: a\r\n\r\n", number % 100);
        if stream.write_all(request.as_bytes()).is_err() {
            continue;
        }
        let mut head = [0; 13];
        if stream.read_exact(&mut head).is_ok() {
            assert_eq!(&head, b"HTTP/1.1 200 ");
            answered += 1;
        }
    }
    assert!((5..60).contains(&answered), "{answered}");
    // Another connection after another asks for every file.
    drop(streams);
    for number in 0..100 {
        let request = format!("GET /{number}.bin HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        // While those before are still being closed, the server closes new ones.
        let mut answer = String::new();
        eventually(|| {
            answer = try_ask(&served, &request).unwrap_or_default();
            !answer.is_empty()
        });
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    served.child.kill().unwrap();
    let mut output = String::new();
    let mut stderr = served.child.stderr.take().unwrap();
    stderr.read_to_string(&mut output).unwrap();
    assert!(
        output.contains("warning: the limit on open files leaves room for "),
        "{output}"
    );
}
