//! `plimsoll observe` and `--observe`: the cost of servers by the agent of their machine.

use std::process::Stdio;

use plimsoll_testkit::{Authority, MaterialFiles, Origin, eventually, refused_address};
use serde_json::Value;

use crate::plimsoll::{CommandOutput, command, plimsoll};
use crate::served::Served;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An agent that allows every process of this machine.
fn agent() -> Served {
    observe(&["--allow", "pid"])
}

fn observe(flags: &[&str]) -> Served {
    let arguments = ["observe", "--listen", "127.0.0.1:0"];
    Served::start(&[&arguments, flags].concat())
}

/// A program that answers requests, in a process of its own.
pub(crate) fn server() -> Served {
    Served::start(&["origin"])
}

pub(crate) fn pid(served: &Served) -> String {
    served.child.id().to_string()
}

/// The value of `--observe` for a process.
fn of_process(name: &str, agent: &Served, pid: &str) -> String {
    format!("{name}={}?pid={pid}", agent.url)
}

fn cpu_us_per_request(cost: &Value) -> f64 {
    let value = cost["cpu_us_per_request"].as_f64();
    value.unwrap_or_else(|| panic!("no cost in {cost}"))
}

#[test]
fn an_agent_finds_the_same_cost_as_the_run_itself() {
    let (agent, server) = (agent(), server());
    let pid = pid(&server);
    let web = of_process("web", &agent, &pid);
    let run = [
        "load",
        "--json",
        "-z",
        "3s",
        "-c",
        "4",
        "--pid",
        &pid,
        "--observe",
        &web,
        &server.url,
    ];
    let summary = plimsoll(&run).exits(0).json();
    let web = &summary["observed"][0];
    assert_eq!(summary["target"]["name"], format!("pid {pid}"));
    assert_eq!(web["name"], "web");
    assert_eq!(web["agent"], agent.url.trim_end_matches('/'));
    assert_eq!(web["whole"], true, "{web}");
    let (here, there) = (
        cpu_us_per_request(&summary["target"]),
        cpu_us_per_request(&web["cost"]),
    );
    // Samples at the ends of the window are some milliseconds apart on a busy machine.
    assert!((there / here - 1.0).abs() < 0.05, "{there} {here}");
    assert_eq!(web["cost"]["exchanges"], summary["target"]["exchanges"]);
    assert_eq!(web["cost"]["processes"], 1);
    assert_eq!(web["gaps"].as_array().map(Vec::len), Some(0), "{web}");
    // Both clocks are the same one.
    let offset = web["clock_offset_us"].as_f64().unwrap().abs();
    let error = web["clock_error_us"].as_f64().unwrap();
    assert!(offset <= error + 1_000.0, "{offset} ± {error}");
}

#[test]
fn the_first_observed_server_is_the_target_and_thresholds_name_others() {
    let (agent, server) = (agent(), server());
    let web = of_process("web", &agent, &pid(&server));
    let db = of_process("db", &agent, &pid(&agent));
    let threshold = |text: &str| {
        plimsoll(&[
            "load",
            "-z",
            "1s",
            "-c",
            "2",
            "--observe",
            &web,
            "--observe",
            &db,
            "--threshold",
            text,
            &server.url,
        ])
    };
    let output = threshold("server_cpu_per_request:value<1s").exits(0);
    for part in [
        "cost of each server",
        "\n  web  ",
        "\n  db  ",
        "of CPU per request",
    ] {
        assert!(output.stdout.contains(part), "{part} in {output}");
    }
    let output = threshold("server_rss{name:db}:max<1kB").exits(1);
    assert!(
        output.stdout.contains("server_rss{name:db}:max<1kB"),
        "{output}"
    );
    let output = threshold("server_rss{name:cache}:max<1GB").exits(2);
    assert!(
        output
            .stderr
            .contains("is of a server that is not observed"),
        "{output}"
    );
}

#[test]
fn a_server_here_is_observed_without_an_agent_and_in_every_file() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let web = format!("web=pid:{}", pid(&server));
    let out = out.to_str().unwrap();
    plimsoll(&[
        "load",
        "-z",
        "1s",
        "-c",
        "2",
        "--observe",
        &web,
        "--out",
        out,
        &server.url,
    ])
    .exits(0);
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(summary["target"]["name"], format!("pid {}", pid(&server)));
    assert_eq!(summary["conditions"]["co_located"], true);
    assert!(summary["observed"][0]["agent"].is_null());
    let ticks = summary["ticks"].as_array().unwrap();
    assert!(
        ticks
            .iter()
            .any(|tick| tick["target_memory_bytes"].is_u64()),
        "{ticks:?}"
    );
    let page = read("report.html");
    assert!(
        page.contains("Cost of each server"),
        "the table is on the page"
    );
    assert!(page.contains("<th scope=\"row\" class=\"name\">web</th>"));
}

#[test]
fn every_refusal_says_what_to_do() {
    let files = MaterialFiles::new();
    let token = files.write("token", TOKEN);
    let wrong = files.write("wrong", "another-token-0123456789");
    let (token, wrong) = (token.to_str().unwrap(), wrong.to_str().unwrap());
    let server = server();
    let own = format!("pid:{}", pid(&server));
    let agent = observe(&["--allow", &own, "--token-file", token]);
    let load = |pid: &str, flags: &[&str]| {
        let web = of_process("web", &agent, pid);
        let arguments = ["load", "-n", "10", "--observe", &web];
        plimsoll(&[&arguments, flags, &[&server.url]].concat())
    };
    let refused = |output: CommandOutput, parts: &[&str]| {
        let output = output.exits(3);
        for part in parts {
            assert!(output.stderr.contains(part), "{part} in {output}");
        }
        assert!(!output.stderr.contains(TOKEN), "{output}");
    };
    load(&pid(&server), &["--observe-token-file", token]).exits(0);
    refused(
        load(&pid(&server), &["--observe-token-file", wrong]),
        &[
            "--observe",
            "rejects the token",
            "--observe-token-file FILE",
        ],
    );
    refused(load(&pid(&server), &[]), &["rejects the token"]);
    refused(
        load("1", &["--observe-token-file", token]),
        &["does not allow pid 1", "--allow pid:1"],
    );
    let nobody = format!("http://{}/?pid=1", refused_address());
    refused(
        plimsoll(&["load", "-n", "10", "--observe", &nobody, &server.url]),
        &[
            "does not answer",
            "start `plimsoll observe` on that machine",
        ],
    );
    let output = plimsoll(&["load", "-n", "1", "--observe", "nginx", &server.url]).exits(2);
    assert!(output.stderr.contains("KIND:VALUE"), "{output}");
}

#[test]
fn an_agent_that_is_killed_leaves_a_gap_and_a_caution() {
    let agent = agent();
    let origin = Origin::hello();
    let own = std::process::id().to_string();
    let web = of_process("web", &agent, &own);
    let run = |flags: &[&str]| {
        let arguments = ["load", "--json", "-z", "4s", "-c", "2", "--observe", &web];
        let url = origin.url("/");
        command(&[&arguments, flags, &[&url]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let threshold = ["--threshold", "server_cpu_per_request{name:web}:value<1s"];
    let (plain, judged) = (run(&[]), run(&threshold));
    // Both runs have begun, and the first samples are taken.
    eventually(|| origin.open_connections() >= 4 && origin.requests() > 2_000);
    drop(agent);
    let plain = CommandOutput::from_output(plain.wait_with_output().unwrap()).exits(0);
    let summary = plain.json();
    let web = &summary["observed"][0];
    assert_eq!(web["whole"], false, "{web}");
    assert!(
        summary["target"].is_null(),
        "half a window is not the cost of the run"
    );
    let gap = web["gaps"].as_array().unwrap().last().unwrap();
    assert!(
        gap["reason"].as_str().unwrap().contains("does not answer"),
        "{gap}"
    );
    let length = gap["to_us"].as_f64().unwrap() - gap["from_us"].as_f64().unwrap();
    assert!(length > 100_000.0, "{gap}");
    let warnings = summary["conditions"]["warnings"].to_string();
    assert!(warnings.contains("web gave no samples for"), "{warnings}");
    // Without a figure it was not shown to hold.
    let judged = CommandOutput::from_output(judged.wait_with_output().unwrap()).exits(1);
    assert_eq!(judged.json()["thresholds"][0]["verdict"], "no-data");
}

#[test]
fn tls_is_verified_by_the_given_authority() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let leaf = authority.issue(&["localhost", "127.0.0.1"]);
    let write = |name: &str, text: &str| {
        let path = files.write(name, text);
        path.to_str().unwrap().to_owned()
    };
    let token = write("token", TOKEN);
    let (cert, key) = (
        write("cert.pem", leaf.pem()),
        write("key.pem", leaf.key_pem()),
    );
    let ca = write("ca.pem", &authority.pem());
    let agent = observe(&[
        "--allow",
        "pid",
        "--token-file",
        &token,
        "--cert",
        &cert,
        "--key",
        &key,
    ]);
    assert!(agent.url.starts_with("https://"), "{}", agent.url);
    let server = server();
    let web = of_process("web", &agent, &pid(&server));
    let load = |flags: &[&str]| {
        let arguments = ["load", "--json", "-n", "500", "--observe", &web];
        let token = ["--observe-token-file", &token];
        plimsoll(&[&arguments, token.as_slice(), flags, &[&server.url]].concat())
    };
    let summary = load(&["--observe-ca", &ca]).exits(0).json();
    assert_eq!(summary["observed"][0]["whole"], true, "{summary}");
    let output = load(&[]).exits(3);
    assert!(output.stderr.contains("--observe-ca FILE"), "{output}");
}

#[test]
fn nothing_is_served_to_other_machines_without_a_token_and_tls() {
    let files = MaterialFiles::new();
    let token = files.write("token", TOKEN);
    let token = token.to_str().unwrap();
    let exposed = ["observe", "--listen", ":0", "--allow", "pid"];
    let output = plimsoll(&exposed).exits(2);
    for part in ["--listen", "neither a token nor TLS", "--token-file FILE"] {
        assert!(output.stderr.contains(part), "{part} in {output}");
    }
    let output = plimsoll(&[&exposed[..], &["--token-file", token]].concat()).exits(2);
    assert!(output.stderr.contains("it has no TLS"), "{output}");
    let short = files.write("short", "secret");
    let arguments = [&exposed[..], &["--token-file", short.to_str().unwrap()]].concat();
    let output = plimsoll(&arguments).exits(2);
    assert!(output.stderr.contains("openssl rand -hex 32"), "{output}");
    let output = plimsoll(&["observe", "--allow", "service:x"]).exits(2);
    assert!(output.stderr.contains("kinds are pid, unit"), "{output}");
}

#[test]
fn the_load_line_costs_what_the_observed_server_spends() {
    let (agent, server) = (agent(), server());
    let web = of_process("web", &agent, &pid(&server));
    let line = plimsoll(&[
        "line",
        "--json",
        "--observe",
        &web,
        "--first",
        "200",
        "--most",
        "400",
        "--window",
        "500ms",
        "--confirm",
        "0s",
        "--rounds",
        "1",
        "--objective",
        "p99<10s",
        "--objective",
        "server_cpu_per_request{name:web}:value<1s",
        &server.url,
    ])
    .exits(0)
    .json();
    let text = line.to_string();
    assert!(
        text.contains(&format!("pid {} at http", pid(&server))),
        "{text}"
    );
    assert!(text.contains("cpu_us_per_request"), "{text}");
}

#[test]
fn two_servers_that_run_are_compared_by_what_each_spends() {
    let (agent, one, other) = (agent(), server(), server());
    let new = of_process("new", &agent, &pid(&one));
    let old = of_process("old", &agent, &pid(&other));
    let names = ["--name", "new", "--name", "old"];
    let short = [
        "compare",
        "--json",
        "--trials",
        "2",
        "--seconds",
        "1",
        "-c",
        "2",
    ];
    let urls = [one.url.as_str(), other.url.as_str()];
    let observe = ["--observe", &new, "--observe", &old];
    let all = [&short[..], &names, &observe, &urls].concat();
    let comparison = plimsoll(&all).exits(0).json();
    let operands = comparison["operands"].as_array().unwrap();
    for operand in operands {
        for trial in operand["trials"].as_array().unwrap() {
            // The driver is another process, whose time is apart.
            let costs = ["cpu_us_per_request", "other_end_cpu_us_per_request"];
            for name in costs {
                assert!(
                    trial[name].as_f64().is_some_and(|it| it > 0.0),
                    "{name}: {trial}"
                );
            }
            let memory = trial["peak_rss_bytes"].as_f64().unwrap();
            assert!(memory > 1e6, "{trial}");
        }
    }
    let half = [&short[..], &names, &observe[..2], &urls].concat();
    let output = plimsoll(&half).exits(2);
    assert!(output.stderr.contains("name one for each"), "{output}");
    let other = [
        &short[..],
        &names,
        &observe,
        &["--observe", "x=unit:a", "--observe", "y=unit:b"],
        &urls,
    ];
    let output = plimsoll(&other.concat()).exits(2);
    assert!(
        output.stderr.contains("no operand has the name `y`"),
        "{output}"
    );
}

#[test]
fn a_soak_judges_a_target_of_an_agent() {
    let (agent, server) = (agent(), server());
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("soak");
    let web = of_process("web", &agent, &pid(&server));
    let out = out.to_str().unwrap();
    let soak = [
        "soak", "--json", "--sample", "100ms", "-z", "2s", "--out", out,
    ];
    let result = plimsoll(&[&soak[..], &["--observe", &web]].concat())
        .exits(0)
        .json();
    let series = result["scenarios"][0]["series"].to_string();
    for name in ["anonymous_bytes", "descriptors", "threads"] {
        assert!(series.contains(name), "{name} in {series}");
    }
    let output = plimsoll(&["soak", "--observe", &web, "--pid", &pid(&server)]).exits(2);
    assert!(output.stderr.contains("one target is judged"), "{output}");
}

#[test]
fn a_matrix_has_the_server_behind_its_targets() {
    let (agent, db) = (agent(), server());
    let directory = tempfile::tempdir().unwrap();
    let plan = directory.path().join("plan.toml");
    let text = r#"
name = "behind"
repeats = 1
warm_up = "0s"
window = "500ms"

[[target]]
name = "web"
command = "{plimsoll} origin --port {port}"
url = "http://127.0.0.1:{port}/"

[[load]]
name = "closed"
connections = 2
"#;
    std::fs::write(&plan, text).unwrap();
    let out = directory.path().join("out");
    let db = of_process("db", &agent, &pid(&db));
    let (plan, out) = (plan.to_str().unwrap(), out.to_str().unwrap());
    let matrix = plimsoll(&["lab", plan, "--json", "--out", out, "--observe", &db]);
    let matrix = matrix.exits(0).json().to_string();
    assert!(matrix.contains("\"upstream db\""), "{matrix}");
}

#[cfg(feature = "k6")]
#[test]
fn scripts_print_and_record_the_cost_of_each_server() {
    let (agent, server) = (agent(), server());
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.js");
    let text = "import http from 'k6/http'; export const options = { vus: 2, duration: '1s' };
                export default function () { http.get(__ENV.BASE); }";
    std::fs::write(&script, text).unwrap();
    let out = directory.path().join("results");
    let base = format!("BASE={}", server.url);
    let web = of_process("web", &agent, &pid(&server));
    let (script, out) = (script.to_str().unwrap(), out.to_str().unwrap());
    let output = plimsoll(&["load", "-e", &base, "--observe", &web, "--out", out, script]).exits(0);
    let printed = &output.stdout;
    assert!(
        printed.contains("    SERVER web\n    cpu_per_request"),
        "{output}"
    );
    let summary = std::fs::read_to_string(format!("{out}/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["observed"][0]["name"], "web");
    assert!(cpu_us_per_request(&summary["target"]) > 0.0);
}

#[cfg(feature = "k6")]
#[test]
fn thresholds_of_scripts_are_judged_on_observed_servers() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.js");
    let text = "import http from 'k6/http';
        export const options = { vus: 2, iterations: 200, thresholds: JSON.parse(__ENV.THRESHOLDS) };
        export default function () { http.get(__ENV.BASE); }
        export function handleSummary(data) {
          if (__ENV.DATA) return { [__ENV.DATA]: JSON.stringify(data.metrics) };
        }";
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let data = directory.path().join("data.json");
    let base = format!("BASE={}", server.url);
    let web = format!("web=pid:{}", pid(&server));
    let load = |flags: &[&str], thresholds: &str| {
        let thresholds = format!("THRESHOLDS={thresholds}");
        let arguments = ["load", "-e", &base, "-e", &thresholds];
        plimsoll(&[&arguments, flags, &[script]].concat())
    };
    let observe = ["--observe", web.as_str()];
    let met = r#"{ "server_cpu_per_request": ["value<1s", "value>0"], "server_rss{name:web}": ["max<1000GB"] }"#;
    let output = load(&observe, met).exits(0);
    for part in [
        "THRESHOLDS",
        "  server_cpu_per_request\n",
        "✓ 'value<1s' value=",
        "  server_rss{name:web}\n",
        "✓ 'max<1000GB' max=",
        "SERVER web",
    ] {
        assert!(output.stdout.contains(part), "no {part} in {output}");
    }
    let breached = r#"{ "server_rss{name:web}": ["max<1kB"] }"#;
    let output = load(&observe, breached).exits(99);
    let message = "thresholds on metrics 'server_rss{name:web}' have been crossed";
    assert!(output.stderr.contains(message), "{output}");
    assert!(output.stdout.contains("✗ 'max<1kB' max="), "{output}");
    let variable = format!("DATA={}", data.display());
    load(&[&observe[..], &["-e", &variable]].concat(), breached).exits(99);
    let metrics: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    let memory = &metrics["server_rss{name:web}"];
    assert_eq!(memory["type"], "gauge");
    assert_eq!(memory["contains"], "data");
    assert_eq!(memory["thresholds"]["max<1kB"]["ok"], false);
    // No program of ours has less than a megabyte.
    assert!(memory["values"]["min"].as_f64().unwrap() > 1e6, "{memory}");
    assert_eq!(metrics["server_rss"]["values"], memory["values"]);
    // A process that is named by --pid is the target and has no name.
    let id = pid(&server);
    load(&["--pid", &id], r#"{ "server_cpu": ["value>0"] }"#).exits(0);
    let of_name = load(&["--pid", &id], breached).exits(104);
    assert!(
        of_name
            .stderr
            .contains("no server `web` is observed; add --observe web="),
        "{of_name}"
    );
    let unobserved = load(&[], r#"{ "server_cpu": ["value>0"] }"#).exits(104);
    assert!(
        unobserved
            .stderr
            .contains("name the server: --pid 4711, or --observe"),
        "{unobserved}"
    );
    let abort = r#"{ "server_cpu": [{ "threshold": "value<1", "abortOnFail": true }] }"#;
    let output = load(&observe, abort).exits(104);
    assert!(
        output.stderr.contains("leave out `abortOnFail`"),
        "{output}"
    );
}
