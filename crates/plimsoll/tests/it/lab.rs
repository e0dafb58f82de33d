//! The instruments as people call them: the line, merged results, drivers by name.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use plimsoll_testkit::{Origin, Script, Step, TokenBucket};
use serde_json::Value;

use crate::load::interrupt;
use crate::observe::{pid, server};
use crate::plimsoll::{command, files_in, plimsoll, run};

/// An origin that refuses what is more than `per_second`.
fn limited(per_second: f64) -> Origin {
    let logic = TokenBucket {
        per_second,
        capacity: 20.0,
    }
    .logic();
    Origin::builder()
        .script(move |_| Script::new().then(Step::Reply(logic.clone())))
        .start()
}

#[test]
fn a_line_is_printed_and_written() {
    let origin = limited(400.0);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("line");
    let out = out.to_str().unwrap();
    let url = origin.url("/");
    let arguments = [
        "line",
        "--first",
        "300",
        "--objective",
        "errors<2%",
        "--window",
        "400ms",
        "--warm-up",
        "200ms",
        "--rounds",
        "1",
        "--precision",
        "10%",
        "--json",
        "--out",
        out,
        "--at-least",
        "50",
        &url,
    ];
    let output = run(&mut command(&arguments)).exits(0);
    let document = output.json();
    assert_eq!(document["schema"], "plimsoll.line/1");
    assert_eq!(document["ended"], "line", "{output}");
    let line = document["line_per_second"].as_f64().unwrap();
    assert!((300.0..600.0).contains(&line), "{line}");
    assert_eq!(
        files_in(out.as_ref()),
        ["line.html", "line.json", "line.txt"]
    );
    // Each window was reported on the way.
    assert!(output.stderr.contains("/s held: p99 "), "{output}");
    assert!(output.stderr.contains("/s broke: p99 "), "{output}");
    let again = plimsoll(&arguments).exits(2);
    assert!(again.stderr.contains("exists already"), "{again}");
}

#[test]
fn a_line_that_is_interrupted_prints_what_it_has() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let arguments = [
        "line",
        "--json",
        "--window",
        "200ms",
        "--warm-up",
        "0s",
        "--rounds",
        "1000",
        "--first",
        "50",
        "--objective",
        "http_reqs:rate<120",
        &url,
    ];
    let mut child = command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reported = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = reported.next().unwrap().unwrap();
    assert!(first.contains("50/s held"), "{first}");
    interrupt(child.id());
    reported.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["ended"], "interrupted");
    assert!(line["held_up_to_per_second"].as_f64().unwrap() >= 50.0);
    assert!(!line["windows"].as_array().unwrap().is_empty());
}

#[test]
fn what_a_line_cannot_be_searched_with_is_reported_at_once() {
    assert_snapshot!(
        plimsoll(&[
            "line", "--objective", "p99", "--objective", "server_rss:max<1MB", "--first", "10",
            "--most", "5", "http://127.0.0.1:1/",
        ]),
        @"
    error: --objective: `p99` is not an objective: expected one of <, <=, >, >=, ==, != between the aggregation and the limit
    error: --objective: `server_rss:max<1MB` needs the processes of the server
      hint: name them with --pid or --observe, or start them with --spawn
    error: --most: is below --first (10/s)
    exit 2
    "
    );
}

#[test]
fn results_of_several_generators_become_one() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let url = origin.url("/");
    for name in ["one", "two"] {
        let out = path(name);
        plimsoll(&["load", "-n", "60", "-c", "2", "--out", &out, &url]).exits(0);
    }
    let (one, two) = (path("one"), path("two"));
    let merged = plimsoll(&["report", "--merge", "--format", "json", &one, &two])
        .exits(0)
        .json();
    assert_eq!(merged["counts"]["ok"], 120);
    assert_eq!(merged["latency"]["from_started"]["count"], 120);
    assert_eq!(merged["statuses"]["200"], 120);
    assert_eq!(merged["load"]["connections"], 4);
    assert_eq!(origin.requests(), 120);
    let text = plimsoll(&["report", "--merge", &one, &two]).exits(0).stdout;
    assert!(text.contains("120"), "{text}");

    assert_snapshot!(plimsoll(&["report", "--format", "json", &one, &two]), @"
    error: --format: json shows a single result
      hint: name one folder, or merge those of several generators with --merge
    exit 2
    ");
    let other = path("other");
    let post = origin.url("/other");
    plimsoll(&["load", "-n", "10", "-c", "2", "--out", &other, &post]).exits(0);
    let output = plimsoll(&["report", "--merge", &one, &other]).exits(2);
    assert!(output.stderr.contains("the URLs of"), "{output}");
}

#[test]
fn drivers_are_checked_before_anything_runs() {
    assert_snapshot!(
        plimsoll(&["compare", "--driver", "wrk,oha", "--http2", "http://127.0.0.1:1/"]),
        @"
    error: --driver: wrk does not speak HTTP/2
    exit 2
    "
    );
    assert_snapshot!(plimsoll(&["compare", "http://127.0.0.1:1/"]), @"
    error: a comparison takes at least two operands, and one is given; add a URL or a command
    exit 2
    ");
    assert_snapshot!(
        plimsoll(&["compare", "--driver", "oha", "--rates", "10,20", "http://127.0.0.1:1/"]),
        @"
    error: --driver: oha does not go with --rates
    exit 2
    "
    );
}

#[test]
fn results_with_profiles_say_what_each_function_costs() {
    let served = server();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, stacks) in [
        ("before", "t;main;<read> 3\n"),
        ("after", "t;main;parse 1\n"),
    ] {
        let load = ["load", "-z", "500ms", "-c", "2", "--pid", &pid(&served)];
        let out = ["--out", &path(name), &served.url];
        plimsoll(&[&load[..], &out].concat()).exits(0);
        // As `--profile` writes it.
        std::fs::write(folder.path().join(name).join("profile.folded"), stacks).unwrap();
    }
    let (before, after) = (path("before"), path("after"));
    let text = plimsoll(&["report", &before, &after]).exits(0).stdout;
    assert!(text.contains("CPU µs per request, by function"), "{text}");
    assert!(text.contains("\n<read> "), "{text}");
    let html = plimsoll(&["report", "--format", "html", &before, &after]);
    let html = html.exits(0).stdout;
    let (_, table) = html
        .split_once("<h2>CPU µs per request, by function</h2>")
        .unwrap();
    assert!(table.contains("<td>&lt;read&gt;</td>"), "{table}");
    let one = plimsoll(&["report", "--format", "html", &before]).exits(0);
    assert!(!one.stdout.contains("by function"), "{one}");
}

#[test]
fn a_gate_that_cannot_tell_and_one_that_holds_have_codes_of_their_own() {
    let origin = Origin::hello();
    let url = origin.url("/");
    // Two trials are too few for any limit.
    let compare = ["compare", "--seconds", "1", "-c", "2", "--trials", "2"];
    let gate = ["--fail-if-slower", "100000%"];
    let unsure = plimsoll(&[&compare[..], &gate, &[&url, &url]].concat()).exits(4);
    assert!(unsure.stdout.contains("cannot tell"), "{unsure}");
    let until_sure = ["--until-sure", "8"];
    let held = [&compare[..], &gate, &until_sure, &[&url, &url]].concat();
    let held = plimsoll(&held).exits(0);
    assert!(held.stdout.contains("held"), "{held}");
}

#[test]
fn runs_append_lines_to_a_file_that_a_trend_reads() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("costs.jsonl");
    let file = file.to_str().unwrap();
    let url = origin.url("/");
    for commit in ["1a2b3c4", "5d6e7f8"] {
        let run = ["load", "-n", "10", "-c", "1", "--append", file];
        let named = ["--run-name", commit, &url];
        plimsoll(&[run.as_slice(), &named].concat()).exits(0);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/cost.v1.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let lines = std::fs::read_to_string(file).unwrap();
    for line in lines.lines() {
        let line = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&line), "{line}");
    }
    // The file by itself, and as what is found in a folder.
    for results in [file, folder.path().to_str().unwrap()] {
        let text = plimsoll(&["report", "--trend", results]).exits(0).stdout;
        let summary = "2 results from 1a2b3c4 to 5d6e7f8: GET http://";
        assert!(text.starts_with(summary), "{text}");
    }
    std::fs::write(file, format!("{lines}\n{{}}\n")).unwrap();
    let output = plimsoll(&["report", "--trend", file]).exits(2);
    assert!(output.stderr.contains("costs.jsonl:4: "), "{output}");
    let nowhere = format!("{file}/costs.jsonl");
    let output = plimsoll(&["load", "-n", "1", "--append", &nowhere, &url]).exits(3);
    assert!(output.stderr.contains("--append"), "{output}");
}

#[test]
fn a_trend_reports_the_step_that_changed_a_figure() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let results = results.to_str().unwrap();
    let url = origin.url("/");
    // A figure that does not vary by chance: all of the later ones fail their condition.
    for number in 0..12 {
        let out = format!("{results}/{number:02}");
        let mut arguments = vec!["load", "-n", "10", "-c", "1", "--out", &out];
        if number >= 6 {
            arguments.extend(["--expect", "status == 404"]);
        }
        arguments.push(&url);
        plimsoll(&arguments).exits(i32::from(number >= 6));
    }
    let document = plimsoll(&["report", "--trend", "--format", "json", results])
        .exits(0)
        .json();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/trend.v1.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    assert!(validator.is_valid(&document), "{document}");
    let figures = document["figures"].as_array().unwrap();
    let errors = figures
        .iter()
        .find(|figure| figure["figure"] == "error_share")
        .unwrap();
    let steps = errors["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{errors}");
    assert_eq!(steps[0]["name"], "06");
    assert_eq!(steps[0]["better"], false);
    let text = plimsoll(&["report", "--trend", results]).exits(0).stdout;
    assert!(text.contains("worse, from 06 on"), "{text}");
    let page = plimsoll(&["report", "--trend", "--format", "html", results])
        .exits(0)
        .stdout;
    assert!(page.contains("Trend over 12 results"), "{page}");
    let one = format!("{results}/00");
    let output = plimsoll(&["report", "--trend", &one]).exits(0);
    let few = "warning: a step stands out from chance from 10 results on; there are 1";
    assert!(output.stdout.contains(few), "{output}");
    let elsewhere = format!("{results}/99");
    let other = origin.url("/other");
    plimsoll(&["load", "-n", "10", "-c", "1", "--out", &elsewhere, &other]).exits(0);
    let output = plimsoll(&["report", "--trend", results]).exits(2);
    assert!(
        output.stderr.contains("are not of the same load"),
        "{output}"
    );
    std::fs::remove_dir_all(&elsewhere).unwrap();
    let output = plimsoll(&["report", "--trend", "--format", "junit", results]).exits(2);
    assert!(
        output.stderr.contains("a trend is text, html or json"),
        "{output}"
    );
}

#[test]
fn a_soak_loads_the_url_behind_its_flags() {
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("soak");
    let out = out.to_str().unwrap();
    let spawn = format!("{program} origin --port {{port}}");
    let soak = [
        "soak", "--json", "-z", "2s", "--sample", "100ms", "--out", out,
    ];
    let target = ["--spawn", &spawn, "http://127.0.0.1:{port}/"];
    let output = plimsoll(&[&soak[..], &target].concat());
    let responses = output.json()["scenarios"][0]["loads"][0]["ok"].clone();
    assert!(responses.as_u64().unwrap_or_default() > 10, "{output}");
    // Missing arguments are reported at once.
    let refused = |arguments: &[&str], says: &str| {
        let output = plimsoll(&[&["soak"], arguments].concat()).exits(2);
        assert!(output.stderr.contains(says), "{output}");
    };
    refused(
        &["http://127.0.0.1:1/"],
        "which process or metrics to watch",
    );
    refused(
        &["--spawn", "server"],
        "--spawn: needs the URL of the target",
    );
    refused(
        &["plan.toml", "--spawn", "server"],
        "does not go with a plan",
    );
    refused(
        &["--pid", "1", "--list", "http://127.0.0.1:1/"],
        "--list: needs a plan",
    );
}
