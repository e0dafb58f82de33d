//! `plimsoll load` with requests from files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use insta::assert_snapshot;
use plimsoll_testkit::{Http2Origin, Origin};
use tempfile::TempDir;

use crate::plimsoll::{command, plimsoll, run};

/// A folder with files of requests and rows.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// What the program says, without the folder's name.
    fn reported(&self, arguments: &[&str]) -> String {
        let output = plimsoll(arguments).to_string();
        output.replace(&format!("{}/", self.0.path().display()), "")
    }
}

/// Method and target of each request that came.
fn lines(origin: &Origin) -> Vec<String> {
    origin
        .heads()
        .iter()
        .map(|head| head.split(" HTTP/").next().unwrap().to_owned())
        .collect()
}

#[test]
fn templates_are_filled_from_rows_variables_and_generators() {
    let origin = Origin::hello();
    let files = Files::new();
    let requests = files.write(
        "shop.http",
        "@base = /{{region}}\nPOST {{base}}/{{user}}?n={{$counter}}\nx-id: {{$uuid}}\n\n{\"user\":\"{{user}}\"}\n",
    );
    let rows = files.write("users.csv", "user\nann\nbob b\n");
    plimsoll(&[
        "load",
        "-n",
        "4",
        "-c",
        "1",
        "--from",
        &requests,
        "--feeder",
        &rows,
        "--var",
        "region=eu",
        &origin.url("/api/"),
    ])
    .exits(0);
    assert_eq!(
        lines(&origin),
        [
            "POST /api/eu/ann?n=1",
            "POST /api/eu/bob%20b?n=2",
            "POST /api/eu/ann?n=3",
            "POST /api/eu/bob%20b?n=4",
        ]
    );
    let heads = origin.heads();
    let lengths: Vec<_> = heads
        .iter()
        .map(|head| head.split("content-length: ").nth(1).unwrap().trim())
        .collect();
    assert_eq!(lengths, ["14", "16", "14", "16"]);
    let ids: BTreeSet<_> = heads
        .iter()
        .map(|head| head.split("x-id: ").nth(1).unwrap().lines().next())
        .collect();
    assert_eq!(ids.len(), 4);
    // The bodies were read whole: nothing of one was taken for the next request.
    let announced: usize = heads.iter().map(String::len).sum::<usize>() + 60;
    assert_eq!(origin.bytes_read(), announced as u64);
}

#[test]
fn files_and_templates_go_over_http2() {
    let origin = Http2Origin::hello();
    let files = Files::new();
    let requests = files.write(
        "shop.http",
        "GET /fixed\n\n###\nPOST /{{user}}?n={{$counter}}\nx-id: {{$uuid}}\n\n{\"user\":\"{{user}}\"}\n",
    );
    let rows = files.write("users.csv", "user\nann\nbob b\n");
    let url = origin.url("/api");
    plimsoll(&[
        "load", "--http2", "-n", "8", "-c", "1", "-p", "2", "--from", &requests, "--feeder", &rows,
        &url,
    ])
    .exits(0);
    let heads = origin.heads();
    let authority = origin.address();
    let count = |wanted: &str| {
        let wanted = wanted.replace("HOST", &format!("http://{authority}/api"));
        heads
            .iter()
            .filter(|head| head.starts_with(&wanted))
            .count()
    };
    assert_eq!(count("GET HOST/fixed"), 4, "{heads:?}");
    assert_eq!(count("POST HOST/ann?n="), 2, "{heads:?}");
    assert_eq!(count("POST HOST/bob%20b?n="), 2, "{heads:?}");
    for number in 1..=4 {
        let ending = format!("?n={number}");
        let with_number = heads.iter().filter(|head| head.ends_with(&ending));
        assert_eq!(with_number.count(), 1, "{heads:?}");
    }
    assert_eq!(origin.body_bytes(), 2 * (14 + 16));
}

#[test]
fn bodies_are_compressed_with_and_without_places() {
    let files = Files::new();
    let rows = files.write("users.csv", "user\nann\nbob\n");
    let body = files.write(
        "body",
        &format!("{{{{user}}}} {}", "0123456789".repeat(1_000)),
    );
    let (one, two) = (Origin::hello(), Http2Origin::hello());
    for more in [&[][..], &["--feeder", &rows]] {
        let mut arguments = vec![
            "load",
            "-n",
            "4",
            "-c",
            "1",
            "--compress-body",
            "gzip",
            "-D",
            &body,
        ];
        arguments.extend(more);
        let url = one.url("/");
        plimsoll(&[&arguments[..], &[&url]].concat()).exits(0);
        let url = two.url("/");
        plimsoll(&[&arguments[..], &["--http2", &url]].concat()).exits(0);
    }
    let heads = one.heads();
    assert_eq!(heads.len(), 8);
    for head in &heads {
        assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
        let length = head.split("content-length: ").nth(1).unwrap().trim();
        assert!(length.parse::<u32>().unwrap() < 200, "{head}");
    }
    assert!((1..8 * 200).contains(&two.body_bytes()));
    let wrong = [
        "-H",
        "content-encoding: br",
        "--compress-body",
        "gzip",
        "-d",
        "x",
    ];
    let output = plimsoll(&[&["check"][..], &wrong, &[&one.url("/")]].concat()).exits(2);
    assert!(output.stderr.contains("--compress-body"), "{output}");
    let bodiless = ["load", "--compress-body", "gzip", &one.url("/")];
    let output = plimsoll(&bodiless).exits(2);
    assert!(output.stderr.contains("there is no body"), "{output}");
}

#[test]
fn each_row_is_used_once_by_all_workers_together() {
    let origin = Origin::hello();
    let files = Files::new();
    let ids: Vec<String> = (0..100).map(|id| id.to_string()).collect();
    let rows = files.write("ids.csv", &format!("id\n{}\n", ids.join("\n")));
    for loop_flags in [&["-c", "7"][..], &["-c", "7", "-q", "5000"]] {
        let before = lines(&origin).len();
        let url = origin.url("/{{id}}");
        let mut arguments = vec![
            "load",
            "-t",
            "2",
            "--feeder",
            &rows,
            "--feeder-order",
            "sequential",
        ];
        arguments.extend(loop_flags);
        arguments.push(&url);
        let output = plimsoll(&arguments).exits(0);
        let shown = format!("GET {url}");
        assert!(output.stdout.starts_with(&shown), "{output}");
        let targets: BTreeSet<_> = lines(&origin).split_off(before).into_iter().collect();
        let expected: BTreeSet<_> = ids.iter().map(|id| format!("GET /{id}")).collect();
        assert_eq!(targets, expected);
    }
}

#[test]
fn a_run_ends_after_the_last_row_although_only_one_of_its_requests_needs_rows() {
    let origin = Origin::hello();
    let files = Files::new();
    let ids: Vec<String> = (0..30).map(|id| id.to_string()).collect();
    let rows = files.write("ids.csv", &format!("id\n{}\n", ids.join("\n")));
    let base = origin.url("");
    let urls = files.write(
        "some.urls",
        &format!("{base}/plain\n{base}/{{{{id}}}}\n{base}/other\n"),
    );
    for loop_flags in [&["-c", "4"][..], &["-c", "4", "-q", "2000"]] {
        let before = lines(&origin).len();
        let mut arguments = vec!["load", "-t", "2", "--from", &urls, "--feeder", &rows];
        arguments.extend(["--feeder-order", "sequential"]);
        arguments.extend(loop_flags);
        plimsoll(&arguments).exits(0);
        let mut sent = lines(&origin).split_off(before);
        sent.retain(|line| !["GET /plain", "GET /other"].contains(&line.as_str()));
        let expected: BTreeSet<_> = ids.iter().map(|id| format!("GET /{id}")).collect();
        assert_eq!(sent.len(), ids.len());
        assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn requests_of_a_recording_are_chosen_and_what_is_left_out_is_reported() {
    let (origin, other) = (Origin::hello(), Origin::hello());
    let files = Files::new();
    let recording = files.write(
        "a.har",
        &format!(
            r#"{{"log": {{"entries": [
              {{"request": {{"method": "PUT", "url": "{}", "headers": [{{"name": ":path", "value": "/"}}]}}}},
              {{"request": {{"method": "GET", "url": "{}", "headers": []}}}},
              {{"request": {{"method": "GET", "url": "{}", "headers": []}}}}]}}}}"#,
            origin.url("/a"),
            origin.url("/b"),
            other.url("/c")
        ),
    );
    let host = format!("host={}", origin.address());
    let output = plimsoll(&[
        "load", "-n", "4", "-c", "1", "--json", "--from", &recording, "--only", &host,
    ])
    .exits(0);
    assert!(
        output
            .stderr
            .contains("left out 1 pseudo header field of HTTP/2"),
        "{output}"
    );
    assert_eq!(lines(&origin), ["PUT /a", "GET /b", "PUT /a", "GET /b"]);
    assert_eq!(other.connections(), 0);
}

#[test]
fn commands_of_curl_from_standard_input() {
    let origin = Origin::hello();
    let mut child = command(&["load", "-n", "1", "-c", "1", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let curl = format!(
        "curl -k '{}' \\\n -H 'X-Test: 1' --data-raw $'it\\'s'\n",
        origin.url("/x")
    );
    child
        .stdin
        .take()
        .unwrap()
        .write_all(curl.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(
        reported.contains("note: --from: -:1: left out `-k`\n  hint: give `-k` to plimsoll"),
        "{reported}"
    );
    let head = origin.heads().concat();
    assert!(head.starts_with("POST /x HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("X-Test: 1\r\n") && head.contains("content-length: 4\r\n"),
        "{head}"
    );
}

#[test]
fn weights_and_flags_that_go_before_the_file() {
    let origin = Origin::hello();
    let files = Files::new();
    let requests = files.write(
        "a.http",
        "# @weight 9\nGET /often\nUser-Agent: file\nX-A: file\n\n###\n# @name rare\nGET /rarely\n",
    );
    let url = origin.url("");
    let arguments = [
        "load",
        "-n",
        "200",
        "-c",
        "2",
        "--from",
        &requests,
        "-H",
        "x-a: flag",
        &url,
    ];
    plimsoll(&arguments).exits(0);
    let often = lines(&origin)
        .iter()
        .filter(|line| *line == "GET /often")
        .count();
    assert!((150..200).contains(&often), "{often}");
    for head in origin.heads() {
        assert_eq!(
            head.matches("x-a: flag").count() + head.matches("X-A").count(),
            1,
            "{head}"
        );
        let agent = if head.starts_with("GET /often") {
            "User-Agent: file"
        } else {
            "user-agent: plimsoll/"
        };
        assert!(head.contains(agent), "{head}");
    }
    let before = lines(&origin).len();
    plimsoll(&[
        "load",
        "-n",
        "3",
        "-c",
        "1",
        "--from",
        &requests,
        "--only",
        "name=rare",
        &url,
    ])
    .exits(0);
    assert_eq!(
        lines(&origin)[before..],
        ["GET /rarely", "GET /rarely", "GET /rarely"]
    );
}

#[test]
fn mistakes_are_reported_all_at_once() {
    let files = Files::new();
    let requests = files.write(
        "a.http",
        "GET /x\n###\nGET http://{{host}}/\n###\nGET http://h/{{nam}}\n###\nGET http://h/\nx-note: {{note}}\n",
    );
    let rows = files.write("rows.csv", "host,name,note\na,b,\"c\r\nx: y\"\n");
    assert_snapshot!(
        files.reported(&["load", "--from", &requests, "--feeder", &rows, "--only", "site=x"]),
        @r"
    error: --only: `site=x` is not of the form `host=example.org`; known are host, path, method, name and tag
    error: --from: a.http:1: `/x` has no host
      hint: give the URL that it stands behind on the command line
    error: --from: a.http:3: the host of `http://{{host}}/` has a place for a value
      hint: a host is the same for every exchange: write a request for each, or give it by --var
    error: --from: a.http:5: `{{nam}}` has no value
      hint: give it by `--var nam=VALUE`; the feeders have host, name, note
    exit 2
    "
    );
    let requests = files.write(
        "values.http",
        "@base = {{host}}/api\n\nGET {{base}}/a\n###\nGET {{base}}/b\nAuthorization: {{token}}\nx-host: {{host}}\n###\n\
         POST {{host}}/c\n\n{{body}} {{token}}\n",
    );
    // Each once, whichever part of a request needs it.
    assert_snapshot!(files.reported(&["load", "--from", &requests]), @r"
    error: --from: values.http:3: `{{host}}` has no value, here and in 2 other places
      hint: give it by `--var host=VALUE`, or rows with such a column by --feeder
    error: --from: values.http:5: `{{token}}` has no value, here and in another place
      hint: give it by `--var token=VALUE`, or rows with such a column by --feeder
    error: --from: values.http:9: `{{body}}` has no value
      hint: give it by `--var body=VALUE`, or rows with such a column by --feeder
    exit 2
    ");
    let requests = files.write("b.http", "GET http://h/\nx-note: {{note}}\n");
    assert_snapshot!(files.reported(&["load", "--from", &requests, "--feeder", &rows]), @r"
    error: --from: b.http:1: row 1 of rows.csv: `note` contains a control character, which header `x-note` must not
    exit 2
    ");
    let url = "http://127.0.0.1:1/{{name}}";
    assert_snapshot!(
        files.reported(&["load", "--feeder", &rows, "--feeder-order", "sequential", "-n", "5", "--warm-up", "1s", url]),
        @"
    error: -n: 5 requests need as many rows, but there are 1
      hint: use rows again with `--feeder-order cyclic`
    error: --warm-up: would use up rows that are used once
      hint: use rows again with `--feeder-order cyclic`
    exit 2
    "
    );
    assert_snapshot!(files.reported(&["load", "--feeder", &rows, "http://127.0.0.1:1/"]), @"
    error: --feeder: no request has a place for a value of rows.csv: `{{host}}`, `{{name}}`, `{{note}}`
    exit 2
    ");
    let curl = files.write("a.curl", "curl --dta x \"$URL\"");
    assert_snapshot!(files.reported(&["load", "--from", &curl]), @"
    error: --from: a.curl:1: curl's option `--dta` is not known here
      hint: did you mean `--data`?
    exit 2
    ");
}

#[test]
fn variables_of_the_environment() {
    let origin = Origin::hello();
    let url = origin.url("/{{PLACE}}");
    let arguments = ["load", "-n", "1", "-c", "1", "--var", "PLACE", &url];
    let output = run(command(&arguments).env_remove("PLACE"));
    assert_snapshot!(output, @"
    error: --var: the environment has no variable `PLACE`
      hint: write `--var PLACE=VALUE` to give the value itself
    exit 2
    ");
    run(command(&arguments).env("PLACE", "here")).exits(0);
    assert_eq!(lines(&origin), ["GET /here"]);
}

#[test]
fn forms_and_tokens() {
    let origin = Origin::hello();
    let files = Files::new();
    let upload = files.write("a.txt", "two\nlines");
    let field = format!("up=@{upload};type=text/x");
    for command in ["check", "load"] {
        let before = (origin.heads().len(), origin.bytes_read());
        let url = origin.url("/form");
        let mut arguments = vec![command, "-F", "a=1", "-F", &field, "--bearer", "abc", &url];
        if command == "load" {
            arguments.extend(["-n", "1", "-c", "1"]);
        }
        plimsoll(&arguments).exits(0);
        let head = origin.heads().split_off(before.0).concat();
        let body = origin.bytes_read() - before.1 - head.len() as u64;
        assert!(head.starts_with("POST /form "), "{head}");
        assert!(head.contains("authorization: Bearer abc\r\n"), "{head}");
        assert!(
            head.contains("content-type: multipart/form-data; boundary=-"),
            "{head}"
        );
        assert!(
            head.contains(&format!("content-length: {body}\r\n")),
            "{body} in {head}"
        );
        // Three boundaries, two heads of parts and their contents.
        assert!(body > 200, "{body}");
    }
    assert_snapshot!(files.reported(&["check", "-F", "a", "-F", "b=@missing", "http://127.0.0.1:1/"]), @"
    error: -F: `a` is not of the form `name=value` or `name=@file`
    error: -F: cannot read missing: No such file or directory (os error 2)
    exit 2
    ");
}

/// The files that the documentation shows can be used as they are.
#[test]
fn examples_of_the_documentation() {
    let origin = Origin::hello();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/");
    let example = |name: &str| format!("{examples}{name}");
    let shop = example("shop.http");
    for rows in ["users.csv", "users.json"] {
        let rows = example(rows);
        plimsoll(&[
            "load",
            "-n",
            "50",
            "-c",
            "2",
            "--from",
            &shop,
            "--feeder",
            &rows,
            "--var",
            "currency=EUR",
            &origin.url(""),
        ])
        .exits(0);
    }
    assert_eq!(origin.requests(), 100);
    let document = example("shop.openapi.yaml");
    let before = lines(&origin).len();
    plimsoll(&[
        "load",
        "-n",
        "2",
        "-c",
        "1",
        "--from",
        &document,
        &origin.url("/v2/"),
    ])
    .exits(0);
    assert_eq!(
        lines(&origin)[before..],
        ["GET /v2/items?page=1&color=red", "POST /v2/baskets/ann"]
    );
    let missing = plimsoll(&["load", "--from", &shop, &origin.url("")]).exits(2);
    assert!(
        missing.stderr.contains("`{{currency}}` has no value"),
        "{missing}"
    );
}
