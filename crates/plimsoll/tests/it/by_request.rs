//! Figures per request of a file.

use std::fs;

use plimsoll_testkit::{Http2Origin, Origin};
use serde_json::Value;

use crate::plimsoll::{CommandOutput, plimsoll};

/// Two named requests and one without a name, which has a place.
fn file(folder: &tempfile::TempDir, url: &str) -> String {
    let path = folder.path().join("shop.http");
    let text = format!(
        "### front\nGET {url}\n\n### search\nGET {url}search?q=shoe&token=hunter2\n\n###\nGET {url}items/{{{{$random.integer(0, 1000)}}}}\n"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn counts(output: &CommandOutput) -> Vec<(String, u64)> {
    let document: Value = output.json();
    let mut counts: Vec<_> = document["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| {
            assert!(
                request["latency"]["p99_us"].as_f64().unwrap() > 0.0,
                "{output}"
            );
            assert_eq!(request["error_percent"], 0.0, "{output}");
            let name = request["name"].as_str().unwrap().to_owned();
            (name, request["count"].as_u64().unwrap())
        })
        .collect();
    counts.sort();
    counts
}

#[test]
fn requests_of_a_file_have_figures_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::hello();
    let url = origin.url("/");
    let file = file(&folder, &url);
    let arguments = ["load", "--from", &file, "-n", "30", "-c", "1", "--json"];
    let output = plimsoll(&arguments).exits(0);
    let generated = format!("GET {url}items/{{{{$random.integer(0, 1000)}}}}");
    let expected = [(&*generated, 10), ("front", 10), ("search", 10)];
    assert_eq!(
        counts(&output),
        expected.map(|(name, count)| (name.to_owned(), count))
    );
}

#[test]
fn requests_of_a_file_are_counted_over_http2() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Http2Origin::hello();
    let file = file(&folder, &origin.url("/"));
    let output = plimsoll(&[
        "load", "--from", &file, "-n", "30", "-c", "1", "-p", "3", "--http2", "--json",
    ])
    .exits(0);
    let total: u64 = counts(&output).iter().map(|(_, count)| count).sum();
    assert_eq!((counts(&output).len(), total), (3, 30));
}

#[test]
fn the_text_and_the_page_have_a_table_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::hello();
    let file = file(&folder, &origin.url("/"));
    let out = folder.path().join("run");
    let output = plimsoll(&[
        "load",
        "-v",
        "--from",
        &file,
        "-n",
        "30",
        "-c",
        "1",
        "--out",
        out.to_str().unwrap(),
    ])
    .exits(0);
    assert!(output.stdout.contains("by request"), "{output}");
    assert!(output.stdout.contains("\nslowest    "), "{output}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(">search</th>"), "{page}");
    assert!(!page.contains("hunter2") && !output.stdout.contains("hunter2"));
}
