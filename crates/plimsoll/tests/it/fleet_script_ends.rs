//! How k6 scripts of a fleet end: by Ctrl-C, without their coordinator, and without their broker.

use std::fs;

use plimsoll_testkit::{NatsServer, Origin, eventually};
use serde_json::Value;

use crate::fleet_process::{AgentProcess, RunProcess, agents, is_clean};
use crate::fleet_scripts::{folder, load};
use crate::plimsoll::{CommandOutput, command, run};

/// Starts a script, and kills its coordinator in the middle. Returns the name of the run.
fn abandoned(server: &NatsServer, origin: &Origin, folder: &tempfile::TempDir) -> String {
    let run = RunProcess::start(load(server, origin, folder).args(["--out", "first"]));
    eventually(|| origin.requests() >= 100);
    run.kill()
}

const ABANDONED: &str = r"
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 30, duration: '6s', preAllocatedVUs: 10 } },
  thresholds: { checks: ['rate==1'], http_reqs: [__ENV.LIMIT] },
};
export function setup() {
  check(http.get(`${__ENV.BASE}/setup`), { 'is there': (it) => it.status === 200 });
  // more
  return { word: 'hello' };
}
export default function (data) {
  check(http.get(`${__ENV.BASE}/${data.word}`), { 'is 200': (it) => it.status === 200 });
}
export function teardown(data) { http.get(`${__ENV.BASE}/teardown-${data.word}`); }
export function handleSummary(data) {
  const groups = [data.root_group, ...data.root_group.groups];
  const checks = groups.flatMap((group) => group.checks).map((it) => [it.name, it.passes, it.fails]).sort();
  return { stdout: `summary ${JSON.stringify([data.metrics.http_reqs.values.count, checks, data.setup_data])}\n` };
}
";

#[test]
fn a_script_whose_coordinator_was_killed_is_attached_again_and_whole() {
    let fails = "exec.test.fail('no stock');";
    for (limit, more, exit) in [
        ("count>=181", "", 0),
        ("count<100", "", 99),
        ("count>=181", fails, 110),
    ] {
        let server = NatsServer::start();
        let origin = Origin::hello();
        let _agents = agents(&server, &[]);
        let script = ABANDONED.replace("__ENV.LIMIT", &format!("'{limit}'"));
        let folder = folder(&script.replace("// more", more));
        let name = abandoned(&server, &origin, &folder);
        let url = server.url();
        let mut attach = command(&[
            "load", "--fleet", &url, "--attach", &name, "--out", "second",
        ]);
        let output = run(attach.current_dir(folder.path())).exits(exit);
        // What `setup()` has measured and returned is there, and it was called once.
        let made = origin.requests();
        let summary = format!(
            r#"summary [{made},[["is 200",{},0],["is there",1,0]],{{"word":"hello"}}]"#,
            made - 2
        );
        assert!(output.stdout.contains(&summary), "no {summary} in {output}");
        let heads = origin.heads().concat();
        assert_eq!(heads.matches("/setup").count(), 1);
        assert_eq!(heads.matches("/teardown-hello").count(), 1);
        let files = folder.path().join("second/summary.json");
        let files: Value = serde_json::from_slice(&fs::read(files).unwrap()).unwrap();
        assert_eq!(files["counts"]["ok"], made - 2);
        // The run is as long as it was, not as the second coordinator saw it.
        let seconds = files["window_us"].as_f64().unwrap() / 1e6;
        assert!(seconds > 5.5, "{seconds}");
        eventually(|| is_clean(&server));
        let mut again = command(&["load", "--fleet", &url, "--attach", &name]);
        let output = run(&mut again).exits(3);
        assert!(output.stderr.contains("has no run"), "{output}");
    }
}

#[test]
fn a_script_is_attached_too_late_where_its_agents_have_stopped() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &["--orphan-timeout", "5s"]);
    let script = ABANDONED.replace("__ENV.LIMIT", "'count>1'");
    let get = "http.get(`${__ENV.BASE}/teardown-${data.word}`)";
    let script = script.replace(get, "console.log(`torn down ${data.word}`)");
    let folder = folder(&script.replace("'6s'", "'60s'"));
    let name = abandoned(&server, &origin, &folder);
    let has_left = |agent: &AgentProcess| agent.has_said("has left the run");
    eventually(|| agents.iter().all(has_left));
    let url = server.url();
    let mut attach = command(&["load", "--fleet", &url, "--attach", &name]);
    let output = run(attach.current_dir(folder.path())).exits(4);
    let made = origin.requests();
    // Those that were under way when they stopped are in no figure: one of each virtual user at most.
    let counted = summary_of(&output);
    assert!(
        counted <= made && counted + 10 >= made,
        "{counted} of {made}"
    );
    assert_eq!(
        output.stderr.matches("torn down hello").count(),
        1,
        "{output}"
    );
    for agent in ["one", "two"] {
        let line =
            format!("incomplete: agent {agent}: nothing was heard of the coordinator for 5s");
        assert!(output.stderr.contains(&line), "no {line} in {output}");
    }
    eventually(|| is_clean(&server));
}

/// Iterations a second for as long as nothing ends them; the summary has the number of requests.
const LONG: &str = r"
import http from 'k6/http';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '60s', preAllocatedVUs: 6 } },
};
export default function () { http.get(`${__ENV.BASE}/`); }
export function teardown() { console.log('torn down'); }
export function handleSummary(data) {
  return { stdout: `summary ${data.metrics.http_reqs.values.count}\n` };
}
";

/// The number of requests in its summary, which is printed once.
fn summary_of(output: &CommandOutput) -> u64 {
    let lines = output.stdout.lines();
    let summaries: Vec<_> = lines.filter_map(|it| it.strip_prefix("summary ")).collect();
    let [summary] = summaries[..] else {
        panic!("{output}");
    };
    let number = summary.trim_start_matches('[').split(',').next();
    number.unwrap().parse().unwrap()
}

#[test]
fn ctrl_c_ends_a_script_on_all_agents_and_its_summary_has_all_of_it() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let folder = folder(LONG);
    let running = RunProcess::start(&mut load(&server, &origin, &folder));
    eventually(|| origin.requests() >= 200);
    running.interrupt();
    let output = running.end().exits(105);
    let made = origin.requests();
    assert!(made < 6000, "{made}");
    // A signal interrupts iterations: a request of each virtual user may have been under way.
    let counted = summary_of(&output);
    assert!(
        counted <= made && counted + 6 >= made,
        "{counted} of {made}"
    );
    assert_eq!(output.stderr.matches("torn down").count(), 1, "{output}");
    assert!(output.stderr.contains("stopped by a signal"), "{output}");
    assert!(!output.stderr.contains("incomplete"), "{output}");
    eventually(|| agents.iter().all(|agent| agent.has_said("the run is over")));
    eventually(|| is_clean(&server));
}

#[test]
fn a_second_ctrl_c_waits_for_no_iteration() {
    let server = NatsServer::start();
    let origin = Origin::silent();
    let agents = agents(&server, &[]);
    let script = r"
import http from 'k6/http';
export const options = { vus: 4, duration: '60s' };
export default function () { http.get(`${__ENV.BASE}/`, { timeout: '600s' }); }
export function handleSummary(data) {
  return { stdout: `summary ${data.metrics.iterations ? 'whole' : 'none'}\n` };
}
";
    let folder = folder(script);
    let mut running = RunProcess::start(&mut load(&server, &origin, &folder));
    eventually(|| origin.open_connections() >= 4);
    running.interrupt_to_the_end();
    let output = running.end().exits(105);
    assert!(output.stdout.contains("summary none\n"), "{output}");
    eventually(|| {
        agents
            .iter()
            .all(|agent| agent.has_said("has left the run"))
    });
    eventually(|| is_clean(&server));
}

#[test]
fn a_broker_that_restarts_in_the_middle_of_a_script_loses_nothing() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &["--orphan-timeout", "60s"]);
    let folder = folder(&LONG.replace("'60s'", "'8s'"));
    let running = RunProcess::start(&mut load(&server, &origin, &folder));
    eventually(|| origin.requests() >= 200);
    server.stop();
    running.says("the broker is away; the run waits for it for up to 30s");
    server.resume();
    running.says("the broker is back after");
    let output = running.end().exits(0);
    let made = origin.requests();
    assert_eq!(summary_of(&output), made, "{output}");
    assert!(!output.stderr.contains("incomplete"), "{output}");
    eventually(|| is_clean(&server));
}

#[test]
fn a_broker_that_stays_away_leaves_a_script_its_summary() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &["--orphan-timeout", "5s"]);
    let folder = folder(LONG);
    let running =
        RunProcess::start(load(&server, &origin, &folder).args(["--broker-timeout", "2s"]));
    eventually(|| origin.requests() >= 400);
    server.stop();
    let output = running.end().exits(4);
    let counted = summary_of(&output);
    assert!(counted > 0 && counted <= origin.requests(), "{counted}");
    assert_eq!(output.stderr.matches("torn down").count(), 1, "{output}");
    for line in [
        "the run ends with what was counted: the broker was away for 2s",
        "incomplete: agent one: the broker was away for 2s",
        "stay on the broker for a day: cannot delete the log: the broker is away",
    ] {
        assert!(output.stderr.contains(line), "no {line} in {output}");
    }
    eventually(|| {
        agents
            .iter()
            .all(|agent| agent.has_said("has left the run"))
    });
}

#[test]
fn flags_of_the_run_and_its_script_are_not_given_again() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = folder(&ABANDONED.replace("__ENV.LIMIT", "'count>1'"));
    let name = abandoned(&server, &origin, &folder);
    let url = server.url();
    let attach = |flags: &[&str]| {
        let arguments = ["load", "--fleet", &url, "--attach", &name];
        run(command(&[&arguments, flags].concat()).current_dir(folder.path()))
    };
    let output = attach(&["script.js"]).exits(104);
    assert!(output.stderr.contains("leave the script out"), "{output}");
    let output = attach(&["-c", "3"]).exits(2);
    assert!(output.stderr.contains("is a matter of the run"), "{output}");
    attach(&[]).exits(0);
}
