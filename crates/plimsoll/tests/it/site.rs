//! `plimsoll serve` and `plimsoll crawl` as a user meets them.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use plimsoll_testkit::{MaterialFiles, Origin, Script, eventually};
use serde_json::{Value, json};

use crate::plimsoll::{command, plimsoll, run};
use crate::served::Served;

pub(crate) fn serve(arguments: &[&str]) -> Served {
    let all = ["serve", "--listen", "127.0.0.1:0", "--threads", "1"];
    Served::start(&[&all, arguments].concat())
}

pub(crate) fn site() -> MaterialFiles {
    let files = MaterialFiles::new();
    fs::create_dir(files.path("public")).unwrap();
    files.write(
        "public/index.html",
        "<a href=about>a</a><a href=missing>m</a>",
    );
    files.write("public/about.html", "about");
    files.write("links.txt", "gh https://a.example/\nnonsense\n");
    files
}

#[test]
fn a_directory_is_served_crawled_and_loaded() {
    let files = site();
    let public = files.path("public");
    let links = files.path("links.txt");
    let (public, links) = (public.to_string_lossy(), links.to_string_lossy());
    let serving = serve(&[&public, "--redirects", &links]);
    let url = &serving.url;
    assert!(serving.answers("/about", &["body == about"]));
    let leads_there = "header.location == 'https://a.example/'";
    eventually(|| serving.answers("/gh", &[leads_there]));
    let out = files.path("out");
    let folder = out.to_string_lossy();
    let output = plimsoll(&["crawl", url, "--out", &folder, "--redirects", &links]).exits(0);
    assert_eq!(output.stdout, format!("{url}\n{url}about\n"));
    assert!(output.stderr.contains("missing: 404"), "{output}");
    assert!(
        output.stderr.contains(&format!("linked from {url}")),
        "{output}"
    );
    assert!(
        output
            .stderr
            .contains("links.txt:2: is not an alias and a URL"),
        "{output}"
    );
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(out.join(name)).unwrap()).unwrap()
    };
    assert_eq!(read("paths.json"), json!(["", "about"]));
    assert_eq!(read("redirects.json"), json!(["gh"]));
    let output = plimsoll(&["crawl", url, "--json", "--fail-on-broken"]).exits(1);
    assert_eq!(output.json(), json!(["", "about"]));
    files.write("public/index.html", "<a href=about#part>a</a>");
    files.write("public/about.html", "about");
    let crawl = ["crawl", url, "--fail-on-broken"];
    eventually(|| plimsoll(&crawl).code == Some(0));
    let output = plimsoll(&[&crawl[..], &["--anchors"]].concat()).exits(1);
    let expected = format!("warning: {url}about#part: the page has no such anchor");
    assert!(output.stderr.contains(&expected), "{output}");
    let urls = out.join("urls.txt");
    let output = plimsoll(&[
        "load",
        "--from",
        &urls.to_string_lossy(),
        "-n",
        "20",
        "-c",
        "2",
        "--json",
    ]);
    assert_eq!(output.exits(0).json()["counts"]["ok"], 20);
}

#[test]
fn a_packed_site_runs_in_an_empty_folder() {
    let files = site();
    files.write("public/_redirects", "/old /about 301\n");
    fs::create_dir(files.path("empty")).unwrap();
    let path = |name: &str| files.path(name).to_string_lossy().into_owned();
    let (public, links, packed) = (path("public"), path("links.txt"), path("packed"));
    let output = plimsoll(&[
        "pack",
        &public,
        "-o",
        &packed,
        "--redirects",
        &links,
        "--dialect",
        "netlify",
    ]);
    let output = output.exits(0);
    assert!(output.stdout.contains("packed: 3 files"), "{output}");
    assert!(
        output
            .stderr
            .contains("links.txt:2: is not an alias and a URL"),
        "{output}"
    );
    fs::remove_dir_all(files.path("public")).unwrap();
    fs::remove_file(files.path("links.txt")).unwrap();
    let mut program = Command::new(&packed);
    program
        .args(["--listen", "127.0.0.1:0", "--threads", "1"])
        .current_dir(path("empty"));
    let serving = Served::start_program(&mut program);
    for (path, condition) in [
        ("/about", "body == about"),
        ("/gh", "header.location == 'https://a.example/'"),
        ("/old", "header.location == '/about'"),
        ("/missing", "status == 404"),
    ] {
        eventually(|| serving.answers(path, &[condition]));
    }
    let output = plimsoll(&["pack", "--list", &packed]).exits(0);
    assert_eq!(output.stdout.lines().count(), 3, "{output}");
    let out = path("out");
    plimsoll(&["pack", "--extract", &out, &packed]).exits(0);
    assert_eq!(fs::read(files.path("out/about.html")).unwrap(), b"about");
    plimsoll(&["pack", "--list", &path("out/about.html")]).exits(2);
    // Packing into it replaces what it holds.
    let again = path("again");
    plimsoll(&["pack", &out, "-o", &again, "--program", &packed]).exits(0);
    let length = |name: &str| fs::metadata(files.path(name)).unwrap().len();
    assert!(length("again") < length("packed"), "the links are gone");
    // A byte of its content is another one.
    let mut bytes = fs::read(&again).unwrap();
    let at = bytes.len() - 200;
    bytes[at] ^= 1;
    fs::write(&again, bytes).unwrap();
    // A child of another test, forked during the write, has the file open until it starts its own program.
    let mut output = None;
    eventually(|| {
        let result = Command::new(&again).output();
        let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ExecutableFileBusy;
        output = (!result.as_ref().is_err_and(is_busy)).then(|| result.unwrap());
        output.is_some()
    });
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("is damaged"), "{stderr}");
}

#[test]
fn servy_and_gosherve_can_be_replaced_without_changing_how_they_are_started() {
    let files = site();
    files.write("public/404.html", "gone");
    let variables = [
        ("SERVY_ASSETS_DIR", "."),
        ("SERVY_PORT", "0"),
        ("SERVY_METRICS_PORT", "0"),
        ("SERVY_REDIRECTS_URL", "../links.txt"),
    ];
    let mut servy = command(&[]);
    let servy = servy.arg0("/usr/bin/servy").envs(variables);
    let (serving, [metrics]) = Served::with_more(servy.current_dir(files.path("public")));
    let metrics = format!("{metrics}metrics");
    assert!(serving.answers("/about", &["body == about"]));
    assert!(serving.answers("/about", &["status == 200"]));
    eventually(|| serving.answers("/gh", &["header.location == 'https://a.example/'"]));
    assert!(serving.answers("/gh", &["status == 308"]));
    for condition in [
        "body contains 'servy_redirects_served{alias=\"gh\"} 2\n'",
        "body contains 'servy_response_status{status=\"200\"} 2\n'",
        "body contains 'servy_redirects_defined 1\n'",
    ] {
        plimsoll(&["check", &metrics, "--expect", condition]).exits(0);
    }

    let mut gosherve = command(&["--print-config"]);
    let gosherve = gosherve
        .arg0("gosherve")
        .env("GOSHERVE_REDIRECT_MAP_URL", "https://a.example/list");
    let output = run(gosherve).exits(0).stdout;
    assert_eq!(
        output,
        r#"[[listen]]
address = "[::]:8080"

[metrics]
address = "[::]:8081"
prefix = "gosherve"

[[route]]
files = { cache_control = "public, max-age=31536000, must-revalidate", redirects = ["https://a.example/list"], redirect_status = 301 }
"#
    );
    let wrong = [("SERVY_PORT", "http"), ("SERVY_HOST", "localhost")];
    let output = run(command(&["serve"]).envs(wrong)).exits(2);
    for expected in [
        "SERVY_PORT: `http` is no port",
        "SERVY_HOST: `localhost` is no address",
    ] {
        assert!(output.stderr.contains(expected), "{output}");
    }
}

#[test]
fn clients_are_sent_to_tls() {
    let config = |more: &[&str]| {
        let mut all = vec![
            "serve",
            "--print-config",
            "--https-redirect",
            "127.0.0.1:8000",
        ];
        all.extend(more);
        plimsoll(&all)
    };
    let output = config(&["--tls", "--security-headers"]).exits(0).stdout;
    for expected in [
        "tls = [{ self_signed = true }]\nsecurity_headers = true\n",
        "\n[[listen]]\naddress = \"127.0.0.1:8000\"\nredirect_https = { port = 8080 }\n",
    ] {
        assert!(output.contains(expected), "no {expected} in {output}");
    }
    let output = config(&[]).exits(2);
    assert!(
        output.stderr.contains("--https-redirect: there is no TLS"),
        "{output}"
    );
    config(&["--tls", "--listen", "127.0.0.1:0"]).exits(2);
}

#[test]
fn every_serving_command_speaks_http3_over_tls() {
    let files = site();
    let public = files.path("public");
    let public = public.to_string_lossy();
    for serving in ["serve", "mock"] {
        let arguments = ["--tls", "--http3", "--listen", "127.0.0.1:0"];
        let served = Served::start(&[&[serving, &*public], &arguments[..]].concat());
        let checked = plimsoll(&["check", "--http3", "-k", "--json", &served.url]);
        let checked = checked.exits(0).json();
        assert_eq!(checked["exchange"]["protocol"], "HTTP/3", "{checked}");
        assert_eq!(checked["exchange"]["status"], 200, "{checked}");
        let reported = plimsoll(&[
            "check",
            "-k",
            "--expect",
            "header.alt-svc contains h3",
            &served.url,
        ]);
        reported.exits(0);
        let output = plimsoll(&[serving, &*public, "--http3"]).exits(2);
        assert!(
            output.stderr.contains("--http3: there is no TLS"),
            "{output}"
        );
    }
}

#[test]
fn the_command_line_means_a_configuration() {
    let files = site();
    let public = files.path("public");
    let public = public.to_string_lossy();
    let output = plimsoll(&[
        "serve",
        &public,
        "--print-config",
        "--fallback",
        "index.html",
        "--no-compress",
        "--cache",
        "1MiB",
    ]);
    let written = output.exits(0).stdout;
    let file = files.write("plimsoll.toml", &written);
    plimsoll(&["up", "--check", &file.to_string_lossy()]).exits(0);
    for expected in [
        "fallback = \"index.html\"",
        "compress = false",
        "cache = \"1048576B\"",
    ] {
        assert!(written.contains(expected), "{written}");
    }
    let output = plimsoll(&["serve", "/nonexistent"]).exits(2);
    assert!(
        output.stderr.contains("DIR: cannot read /nonexistent"),
        "{output}"
    );
    plimsoll(&["crawl", "ftp://a.example/"]).exits(2);
    plimsoll(&["crawl", "http://127.0.0.1:1/"]).exits(3);
}

/// A server whose first answers are pages, and then the text.
fn late_list(pages: u64, text: &str) -> Origin {
    let answer = |kind: &str, text: &str| {
        let length = text.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}");
        Script::answer_once(format!("{head}\r\nconnection: close\r\n\r\n{text}"))
    };
    let (page, list) = (answer("text/html", "<p>soon"), answer("text/plain", text));
    let script = move |number| {
        if number < pages {
            page.clone()
        } else {
            list.clone()
        }
    };
    Origin::builder().script(script).start()
}

#[test]
fn a_crawl_waits_for_a_list_of_short_links_and_keeps_what_it_found_without_one() {
    let files = site();
    let serving = serve(&[&files.path("public").to_string_lossy()]);
    let crawl = |links: &Origin| {
        let out = files.path(&format!("out-{}", links.port()));
        let (folder, url) = (out.to_string_lossy().into_owned(), links.url("/links"));
        let arguments = ["crawl", &serving.url, "--out", &folder, "--redirects", &url];
        (plimsoll(&arguments), out)
    };
    let read = |folder: &Path, name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let links = late_list(1, "gh https://a.example/\nab https://b.example/\n");
    let (output, out) = crawl(&links);
    output.exits(0);
    assert_eq!(links.connections(), 2);
    assert_eq!(read(&out, "redirects.json"), json!(["ab", "gh"]));

    let links = late_list(u64::MAX, "");
    let (output, out) = crawl(&links);
    let output = output.exits(3);
    assert!(output.stderr.contains("--redirects: "), "{output}");
    assert!(output.stdout.contains("about"), "{output}");
    assert_eq!(links.connections(), 3);
    assert_eq!(read(&out, "paths.json"), json!(["", "about"]));
    assert!(!out.join("redirects.json").exists());
}

#[test]
fn what_would_be_served_is_printed() {
    let files = site();
    files.write("public/_redirects", "/old /about 301\n/broken\n");
    files.write("public/_headers", "/*\n  x-a: 1\n");
    let path = |name: &str| files.path(name).to_string_lossy().into_owned();
    let (public, links) = (path("public"), path("links.txt"));
    let output = plimsoll(&[
        "serve",
        &public,
        "--check",
        "--dialect",
        "netlify",
        "--redirects",
        &links,
        "--listen",
        "127.0.0.1:8089",
    ]);
    let output = output.exits(0);
    for expected in [
        &format!("files of {public}, with 1 redirect and 1 rule for header fields\n"),
        &format!("short links of {links}\n"),
        "would listen on http://127.0.0.1:8089/",
    ] {
        assert!(
            output.stdout.contains(expected),
            "no `{expected}` in {output}"
        );
    }
    assert!(output.stderr.contains("_redirects:2:"), "{output}");
    plimsoll(&["serve", "/nonexistent", "--validate"]).exits(2);
    let output = plimsoll(&["serve", &public, "--check", "--print-config"]);
    output.exits(2);
}
