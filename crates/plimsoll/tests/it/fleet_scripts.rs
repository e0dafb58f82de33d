//! k6 scripts by `plimsoll load --fleet`: the agents' iterations are those of one run, and everything else happens once.

use std::fs;
use std::process::Stdio;

use plimsoll_testkit::{NatsServer, Origin, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet_process::{agents, is_clean};
use crate::plimsoll::{CommandOutput, command, run};

const SCRIPT: &str = r"
import http from 'k6/http';
import { check, group } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import exec from 'k6/execution';
import { word } from './words.js';

const made = new Counter('made');
const numbers = new Trend('numbers');
const rows = JSON.parse(open('./rows.json'));

export const options = {
  scenarios: { shared: { executor: 'shared-iterations', vus: 7, iterations: 101 } },
  thresholds: { made: ['count==101'], checks: ['rate==1'], 'numbers{kind:row}': ['max<300'] },
};

export function setup() {
  http.get(`${__ENV.BASE}/setup`);
  return { word };
}

export default function (data) {
  const number = exec.scenario.iterationInTest;
  const response = http.get(`${__ENV.BASE}/iteration-${number}-end`);
  group('inner', () => check(response, { 'is 200': (it) => it.status === 200 }));
  check(data, { 'has the word': (it) => it.word === 'hello' });
  made.add(1);
  numbers.add(rows[number % rows.length], { kind: 'row' });
}

export function teardown(data) {
  http.get(`${__ENV.BASE}/teardown-${data.word}`);
}

export function handleSummary(data) {
  const checks = data.root_group.checks.concat(data.root_group.groups[0].checks);
  const values = (name) => data.metrics[name].values;
  return {
    'summary.json': JSON.stringify({
      iterations: values('iterations').count,
      requests: values('http_reqs').count,
      made: values('made').count,
      numbers: values('numbers'),
      checks: checks.map((it) => [it.name, it.passes, it.fails]),
    }),
    stdout: 'summary\n',
  };
}
";

/// A folder with a script and what it reads.
pub(crate) fn folder(script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("script.js", script);
    write("words.js", "export const word = 'hello';\n");
    write("rows.json", "[100, 200]");
    folder
}

/// The arguments of a run over two agents, in the folder of its script.
pub(crate) fn load(
    server: &NatsServer,
    origin: &Origin,
    folder: &tempfile::TempDir,
) -> std::process::Command {
    load_of(server, &origin.url("/"), folder)
}

/// The same against any server.
fn load_of(server: &NatsServer, url: &str, folder: &tempfile::TempDir) -> std::process::Command {
    let base = format!("BASE={}", url.trim_end_matches('/'));
    let broker = server.url();
    let flags = [
        "load",
        "--fleet",
        &broker,
        "--agents",
        "2",
        "--most-spread",
        "5s",
        "-e",
        &base,
        "script.js",
    ];
    let mut command = command(&flags);
    command.current_dir(folder.path());
    command
}

#[test]
fn a_script_over_two_agents_is_that_of_one_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = folder(SCRIPT);
    let output = run(&mut load(&server, &origin, &folder)).exits(0);
    assert_eq!(output.stdout.matches("summary\n").count(), 1, "{output}");
    assert!(output.stdout.contains("agent  workers"), "{output}");
    let summary = fs::read(folder.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["iterations"], 101);
    assert_eq!(summary["made"], 101);
    // With those of `setup()` and `teardown()`.
    assert_eq!(summary["requests"], 103);
    assert_eq!(summary["numbers"]["max"], 200);
    assert_eq!(summary["numbers"]["min"], 100);
    let checks = serde_json::json!([["has the word", 101, 0], ["is 200", 101, 0]]);
    assert_eq!(summary["checks"], checks);
    assert_eq!(origin.requests(), 103);
    let heads = origin.heads().concat();
    for number in 0..101 {
        let path = format!("/iteration-{number}-end");
        assert_eq!(heads.matches(&path).count(), 1, "{path}");
    }
    assert_eq!(heads.matches("/setup").count(), 1);
    assert_eq!(heads.matches("/teardown-hello").count(), 1);
    eventually(|| is_clean(&server));
}

#[test]
fn what_metrics_leave_out_is_counted_over_all_agents() {
    let server = NatsServer::start();
    let origin = Origin::silent();
    let _agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: {
    waits: { executor: 'constant-vus', vus: 4, duration: '1s', gracefulStop: '0s' },
    waits_too: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', gracefulStop: '0s',
      preAllocatedVUs: 2, maxVUs: 2 },
  },
};
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let output = run(&mut load(&server, &origin, &folder)).exits(0);
    for caution in [
        "warning: 6 requests were under way when the run ended",
        "warning: 6 iterations were under way when the run ended",
        "warning: 18 iterations were dropped",
    ] {
        assert!(output.stderr.contains(caution), "no {caution} in {output}");
    }
}

#[test]
fn thresholds_of_a_script_are_judged_over_all_agents_and_end_it() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '60s', preAllocatedVUs: 6 } },
  thresholds: { http_reqs: [{ threshold: 'count<150', abortOnFail: true }] },
};
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let output = run(&mut load(&server, &origin, &folder)).exits(99);
    assert!(output.stderr.contains("have been crossed"), "{output}");
    assert!(origin.requests() < 3000, "{}", origin.requests());
}

#[test]
fn an_iteration_that_aborts_the_test_ends_all_agents() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
import exec from 'k6/execution';
export const options = { vus: 4, duration: '60s' };
export default function () {
  http.get(`${__ENV.BASE}/`);
  if (exec.vu.idInTest === 3) exec.test.abort('enough');
}
";
    let folder = folder(script);
    let output = run(&mut load(&server, &origin, &folder)).exits(108);
    assert!(output.stderr.contains("enough"), "{output}");
}

#[test]
fn an_exception_in_setup_is_that_of_the_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let script = "export const options = { vus: 2, iterations: 2 };\nexport function setup() { throw new Error('no data'); }\nexport default function () {}\n";
    let folder = folder(script);
    let output = run(&mut load(&server, &origin, &folder)).exits(107);
    assert!(output.stderr.contains("no data"), "{output}");
    eventually(|| {
        agents
            .iter()
            .all(|agent| agent.has_said("has left the run"))
    });
    assert_eq!(origin.requests(), 0);
}

#[test]
fn an_agent_that_is_killed_makes_a_script_incomplete() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '60s', preAllocatedVUs: 6 } },
};
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let child = load(&server, &origin, &folder)
        .args(["--agent-timeout", "5s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 200);
    agents[0].signal(Signal::KILL);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(4);
    assert!(output.stderr.contains("incomplete: agent one"), "{output}");
    assert!(origin.requests() < 6000);
}

#[test]
fn what_needs_one_machine_is_refused() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let folder = folder(SCRIPT);
    for (flags, part) in [
        (["--pid", "1"], "does not go with --fleet"),
        (["--out", "json=x.json"], "agents send no single samples"),
        (["--out", "csv"], "write result files: --out DIR"),
    ] {
        let output = run(load(&server, &origin, &folder).args(flags)).exits(104);
        assert!(output.stderr.contains(part), "no {part} in {output}");
    }
    assert!(!folder.path().join("csv").exists());
}

/// Requests of two names, the arrivals of one of which are on a schedule.
const NAMED: &str = r"
import http from 'k6/http';
export const options = {
  scenarios: {
    shared: { executor: 'shared-iterations', vus: 6, iterations: 100, exec: 'shared' },
    rate: { executor: 'constant-arrival-rate', rate: 40, duration: '3s', preAllocatedVUs: 6, exec: 'rate' },
  },
};
export function setup() { http.get(`${__ENV.BASE}/setup`); }
export function shared() { http.get(`${__ENV.BASE}/a`, { tags: { name: 'shared' } }); }
export function rate() { http.get(`${__ENV.BASE}/b`, { tags: { name: 'rate' } }); }
";

#[test]
fn result_files_of_a_script_have_the_exchanges_of_all_agents() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = folder(NAMED);
    let page = folder.path().join("live.html");
    let mut load = load(&server, &origin, &folder);
    load.args(["--out", "results"])
        .env("K6_WEB_DASHBOARD", "true")
        .env("K6_WEB_DASHBOARD_PORT", "-1")
        .env("K6_WEB_DASHBOARD_EXPORT", &page);
    let output = run(&mut load).exits(0);
    let read = |name: &str| {
        let text = fs::read_to_string(folder.path().join("results").join(name));
        text.unwrap_or_else(|error| panic!("{name}: {error} in {output}"))
    };
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    let (summary, data) = (json("summary.json"), json("script.json"));
    // Those of the origin, but that of `setup()`.
    let made = origin.requests() - 1;
    assert!(made > 150, "{made}");
    assert_eq!(summary["counts"]["ok"], made);
    assert_eq!(data["metrics"]["http_reqs"]["values"]["count"], made + 1);
    let agents = summary["agents"].as_array().unwrap();
    let of_agents: u64 = agents.iter().map(|it| it["ok"].as_u64().unwrap()).sum();
    assert_eq!((agents.len(), of_agents), (2, made), "{agents:?}");
    let workers: u64 = agents
        .iter()
        .map(|it| it["workers"].as_u64().unwrap())
        .sum();
    assert_eq!(summary["load"]["workers"], workers);
    let requests = summary["requests"].as_array().unwrap();
    let count = |name: &str| {
        let found = requests.iter().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {requests:?}"))["count"].as_u64()
    };
    assert_eq!(count("GET shared"), Some(100));
    assert_eq!(count("GET rate"), Some(made - 100));
    // The dashboard has the agents side by side, to its end.
    let dashboard = fs::read_to_string(&page).unwrap();
    let agents = dashboard.split_once(">Agents</h2>").unwrap().1;
    let agents = agents.split_once("</table>").unwrap().0;
    for name in ["one", "two"] {
        assert!(agents.contains(&format!(">{name}</")), "{agents}");
    }
    // Each second has one row for all agents.
    let series = read("series.csv");
    let mut rows = series.lines();
    let head = rows.next().unwrap();
    let column = |name: &str| head.split(',').position(|known| known == name);
    let (at, ok) = (column("at_us").unwrap(), column("ok").unwrap());
    let rows: Vec<(f64, u64)> = rows
        .map(|row| {
            let cells: Vec<_> = row.split(',').collect();
            (cells[at].parse().unwrap(), cells[ok].parse().unwrap())
        })
        .collect();
    assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), made, "{series}");
    let are_apart = rows.windows(2).all(|pair| pair[1].0 > pair[0].0);
    assert!(rows.len() >= 3 && are_apart, "{series}");
    let report = read("report.html");
    for part in ["<h2>Agents</h2>", "Metrics of the script", "GET shared"] {
        assert!(report.contains(part), "no {part} in the page");
    }
    for name in ["latency.hdr", "summary.txt", "conditions.json"] {
        assert!(!read(name).is_empty(), "{name}");
    }
    let live = fs::read_to_string(page).unwrap();
    assert!(
        live.contains("http_req_duration"),
        "the page of the end has the metrics"
    );
    eventually(|| is_clean(&server));
}

#[test]
fn an_agent_that_is_lost_begins_the_cautions_of_the_files() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '60s', preAllocatedVUs: 6 } },
};
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let child = load(&server, &origin, &folder)
        .args(["--agent-timeout", "5s", "--out", "results"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 300);
    agents[0].signal(Signal::KILL);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(4);
    let summary = fs::read(folder.path().join("results/summary.json"));
    let summary = summary.unwrap_or_else(|error| panic!("{error}: {output}"));
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let first = summary["conditions"]["warnings"][0].as_str().unwrap();
    assert!(first.starts_with("incomplete: agent one"), "{summary}");
    // Seconds of the agent that is left are there, and those of the other one as far as they were sent.
    let counted = summary["counts"]["ok"].as_u64().unwrap();
    assert!(counted >= 200 && counted <= origin.requests(), "{counted}");
    let rows: u64 = summary["ticks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tick| tick["ok"].as_u64().unwrap())
        .sum();
    assert_eq!(rows, counted);
    assert_eq!(
        output.stderr.matches("incomplete: agent one").count(),
        1,
        "{output}"
    );
}

#[test]
fn an_agent_that_stood_still_is_a_caution() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '7s', preAllocatedVUs: 6 } },
};
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let child = load(&server, &origin, &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 100);
    agents[1].signal(Signal::STOP);
    // The other one makes fifty a second.
    let before = origin.requests();
    eventually(|| origin.requests() >= before + 100);
    agents[1].signal(Signal::CONT);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(0);
    let caution = "warning: the generator stood still for ";
    assert!(output.stderr.contains(caution), "{output}");
}

#[cfg(all(feature = "site", target_os = "linux"))]
#[test]
fn the_coordinator_observes_servers_of_a_script() {
    let server = NatsServer::start();
    let web = crate::served::Served::start(&["origin"]);
    let _agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = {
  scenarios: { shared: { executor: 'shared-iterations', vus: 4, iterations: 400 } },
  thresholds: { 'server_cpu_per_request{name:web}': ['value<1us'] },
};
export function setup() { http.get(`${__ENV.BASE}/`); }
export default function () { http.get(`${__ENV.BASE}/`); }
";
    let folder = folder(script);
    let place = format!("web=pid:{}", web.child.id());
    let mut load = load_of(&server, &web.url, &folder);
    let output = run(load.args(["--observe", &place])).exits(99);
    assert!(output.stdout.contains("✗ 'value<1us' value="), "{output}");
    let (_, server) = output.stdout.split_once("SERVER web\n").unwrap();
    let cost = server
        .lines()
        .find_map(|line| line.split_once("cpu_per_request")?.1.split_once(": "));
    let cost = cost.unwrap().1.strip_suffix("µs").unwrap();
    // A request costs the program of the tests less than a millisecond and more than nothing.
    let cost: f64 = cost.parse().unwrap();
    assert!(cost > 0.0 && cost < 10_000.0, "{output}");
}

#[test]
fn executors_make_the_iterations_of_one_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
import { sleep } from 'k6';
export const options = {
  scenarios: {
    users: { executor: 'per-vu-iterations', vus: 6, iterations: 5, exec: 'user' },
    ramp: {
      executor: 'ramping-arrival-rate', startRate: 20, preAllocatedVUs: 10, exec: 'arrival',
      stages: [{ target: 80, duration: '1s' }, { target: 10, duration: '1s' }],
    },
    vus: { executor: 'ramping-vus', startVUs: 2, stages: [{ target: 4, duration: '1s' }], exec: 'vu' },
  },
};
export function user() { http.get(`${__ENV.BASE}/user-${__VU}-${__ITER}-end`); }
export function arrival() { http.get(`${__ENV.BASE}/arrival`); }
export function vu() { http.get(`${__ENV.BASE}/vu`); sleep(0.2); }
";
    let folder = folder(script);
    run(&mut load(&server, &origin, &folder)).exits(0);
    let heads = origin.heads().concat();
    assert_eq!(heads.matches("GET /user-").count(), 30);
    for number in 0..5 {
        // Each of the six made its iteration of that number.
        assert_eq!(heads.matches(&format!("-{number}-end ")).count(), 6);
    }
    // The area below the ramp is 95; one run makes 94, as the last one would be at its end.
    assert_eq!(heads.matches("GET /arrival ").count(), 94);
    assert!(heads.matches("GET /vu ").count() > 4);
    eventually(|| is_clean(&server));
}
