//! Lifecycle, exit codes, summaries.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_k6::{Output, Overrides};

use crate::fixture::{run_script, run_with};
use crate::server::Server;

#[test]
fn setup_gives_its_result_to_iterations_and_teardown() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http'; import { check } from 'k6';
         export const options = { vus: 2, iterations: 4, thresholds: { 'http_reqs{group:::setup}': [], 'http_reqs{group:::teardown}': [] } };
         export function setup() { check(1, { 'in setup': () => true }); return { token: http.get('URL/json').json('name'), later: undefined, __VU }; }
         export default function (data) { if (data.token !== 'n' || data.__VU !== 0 || 'later' in data) throw new Error('no data'); data.token = 'n'; }
         export function teardown(data) { http.get('URL/'); console.log('torn down', data.token); }",
        &server.url(),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.log, ["Info: torn down n"]);
    assert_eq!(ran.metric("iterations", "count"), 4.0);
    assert_eq!(ran.metric("http_reqs{group:::setup}", "count"), 1.0);
    assert_eq!(ran.metric("http_reqs{group:::teardown}", "count"), 1.0);
    assert!(!ran.has_metric("vus"), "gauges are sampled once a second");
    assert!(ran.metric("data_received", "count") > 100.0);
}

#[test]
fn exit_codes_are_those_of_k6() {
    for (text, code, expected) in [
        ("export default () => {}", 0, ""),
        ("export default () => { throw new Error('x') }", 0, ""),
        (
            "throw new Error('at init'); export default () => {}",
            107,
            "Error: at init",
        ),
        (
            "export function setup() { throw new Error('in setup') } export default () => {}",
            107,
            "in setup",
        ),
        (
            "export default () => {}; export function teardown() { null.x }",
            107,
            "TypeError",
        ),
        (
            "export const options = { setupTimeout: '30ms' }; export function setup() { for (;;); } export default () => {}",
            100,
            "setup() took longer",
        ),
        (
            "export const options = { teardownTimeout: 30 }; export async function teardown() { await new Promise((d) => setTimeout(d, 1e6)) } export default () => {}",
            101,
            "teardown() took longer",
        ),
        (
            "export const options = { vus: 'many' }; export default () => {}",
            104,
            "options.vus must be a whole number",
        ),
        (
            "export const options = { thresholds: { nothing: ['count<1'] } }; export default () => {}",
            104,
            "there is no metric `nothing`",
        ),
        ("export const x = 1", 104, "exports no function `default`"),
        (
            "import exec from 'k6/execution'; export default () => { try { exec.test.abort('enough') } finally { for (;;) {} } }",
            108,
            "test aborted: enough",
        ),
        (
            "import exec from 'k6/execution'; exec.test.abort('early'); export default () => {}",
            108,
            "test aborted: early",
        ),
        (
            "import exec from 'k6/execution'; if (__VU === 1) exec.test.abort('late'); export default () => {}",
            108,
            "test aborted: late",
        ),
        (
            "import exec from 'k6/execution'; export default () => { exec.test.fail('bad') }",
            110,
            "test failed: bad",
        ),
        (
            "import http from 'k6/http'; http.get('http://127.0.0.1/'); export default () => {}",
            107,
            "cannot be used in the init context",
        ),
        (
            "export default () => { open('x') }",
            0,
            "open() can only be used in the init context",
        ),
        (
            "import { Counter } from 'k6/metrics'; export default () => { new Counter('late') }",
            0,
            "metrics can only be used in the init context",
        ),
        (
            "import { Counter } from 'k6/metrics'; new Counter('vus'); export default () => {}",
            107,
            "already exists as a gauge",
        ),
    ] {
        let ran = run_script(text, "");
        assert_eq!(ran.code, code, "{text}: {ran:#?}");
        let output = format!("{}\n{}", ran.log.join("\n"), ran.message);
        assert!(output.contains(expected), "no {expected} in {output}");
    }
}

#[test]
fn an_endless_iteration_is_stopped_by_the_graceful_stop() {
    for body in [
        "for (;;);",
        "sleep(1000)",
        "await new Promise(() => setInterval(() => 0, 1))",
    ] {
        let ran = run_script(
            &format!(
                "import {{ sleep }} from 'k6';
                 export const options = {{ scenarios: {{ s: {{ executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '100ms' }} }} }};
                 export default async function () {{ {body} }}"
            ),
            "",
        );
        assert_eq!(ran.code, 0, "{body}: {ran:#?}");
        assert!(!ran.has_metric("iterations"), "{body}: {ran:#?}");
    }
}

#[test]
fn a_signal_ends_the_run_with_a_summary() {
    let looks = Cell::new(0);
    let ran = run_with(
        "import { sleep } from 'k6'; export default () => sleep(0.01); export function teardown() { console.log('torn down') }",
        "",
        Overrides {
            vus: Some(2),
            duration: Some(Duration::from_hours(1)),
            ..Overrides::default()
        },
        &|| {
            looks.set(looks.get() + 1);
            looks.get() > 5
        },
    );
    assert_eq!(ran.code, 105, "{ran:#?}");
    assert!(ran.stdout.contains("iteration_duration"), "{}", ran.stdout);
    assert_eq!(ran.log, ["Info: torn down"]);
}

#[test]
fn a_signal_ends_setup() {
    let looks = Cell::new(0);
    let ran = run_with(
        "import { sleep } from 'k6'; export function setup() { sleep(600) } export default () => {}",
        "",
        Overrides::default(),
        &|| {
            looks.set(looks.get() + 1);
            looks.get() > 5
        },
    );
    assert_eq!(ran.code, 105, "{ran:#?}");
}

#[test]
fn summaries_go_where_the_script_wants_them() {
    let ran = run_script(
        "import { textSummary } from 'https://jslib.k6.io/k6-summary/0.0.1/index.js';
         import { check } from 'k6';
         export const options = { summaryTrendStats: ['count', 'p(99.9)'], thresholds: { iterations: ['count>5'] } };
         export default () => check(1, { ok: () => true });
         export function setup() { return { s: 1 } }
         export function handleSummary(data) {
           const d = data.metrics.iteration_duration;
           return { stdout: [d.type, d.contains, Object.keys(d.values), data.metrics.iterations.thresholds['count>5'].ok, data.root_group.checks[0].passes,
                             data.state.testRunDurationMs > 0, data.setup_data.s, data.options.summaryTrendStats].join(' '),
                    stderr: 'e', 'a/b.txt': textSummary(data, { indent: '> ', enableColors: false }), bytes: new Uint8Array([1, 2]).buffer };
         }",
        "",
    );
    assert_eq!(ran.code, 99);
    assert_eq!(
        ran.message,
        "thresholds on metrics 'iterations' have been crossed"
    );
    assert_eq!(
        ran.stdout,
        "trend time count,p(99.9) false 1 true 1 count,p(99.9)"
    );
    assert_eq!(ran.outputs[1], Output::Stderr(b"e".to_vec()));
    let Output::File(path, text) = &ran.outputs[2] else {
        panic!("{:#?}", ran.outputs)
    };
    assert_eq!(path.to_str(), Some("a/b.txt"));
    let text = String::from_utf8_lossy(text);
    assert!(
        text.starts_with(">     ✓ ok\n\n>     checks...............: 100.00% ✓ 1"),
        "{text}"
    );
    assert!(
        text.contains(">   ✗ iterations...........: 1       "),
        "{text}"
    );
    assert_eq!(ran.outputs[3], Output::File("bytes".into(), vec![1, 2]));
    let broken = run_script(
        "export default () => {}; export function handleSummary() { throw new Error('summary') }",
        "",
    );
    assert_eq!(broken.code, 0);
    assert!(broken.stdout.contains("TOTAL RESULTS"), "{broken:#?}");
}

#[test]
fn a_script_that_writes_three_summaries_runs_as_it_is() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http'; import { check } from 'k6';
         import { htmlReport } from 'https://raw.githubusercontent.com/benc-uk/k6-reporter/main/dist/bundle.js';
         import { textSummary } from 'https://jslib.k6.io/k6-summary/0.0.1/index.js';
         const paths = JSON.parse(open('data.json'));
         export const options = { iterations: 2 };
         export default function () {
           const responses = http.batch(paths.map(({ n }) => ['GET', `URL/${n}?<b>`, null, { tags: { n } }]));
           for (const r of responses) check(r, { 'is <ok>': (r) => r.status === 200 });
         }
         export function handleSummary(data) {
           return { 'summary.html': htmlReport(data, { title: 'a & b' }), 'summary.json': JSON.stringify(data), stdout: textSummary(data, { indent: ' ', enableColors: true }) };
         }",
        &server.url(),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("\u{1b}[32m     ✓ is <ok>\u{1b}[0m"),
        "{}",
        ran.stdout
    );
    let Output::File(_, html) = &ran.outputs[0] else {
        panic!("{:#?}", ran.outputs)
    };
    let html = String::from_utf8_lossy(html);
    for expected in [
        "<h1>a &amp; b</h1>",
        "is &lt;ok&gt;</td><td>6</td><td>0</td>",
        "<b>6</b>requests",
        "http_req_duration",
    ] {
        assert!(html.contains(expected), "no {expected} in {html}");
    }
    assert!(matches!(&ran.outputs[1], Output::File(path, _) if path.ends_with("summary.json")));
}

#[test]
fn arrivals_that_find_no_user_are_dropped() {
    let ran = run_script(
        "import { sleep } from 'k6';
         export const options = { scenarios: { open: { executor: 'constant-arrival-rate', rate: 50, duration: '1s', preAllocatedVUs: 1, maxVUs: 2, gracefulStop: '0s' } } };
         export default () => sleep(100)",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let dropped = ran.metric("dropped_iterations", "count");
    assert!((47.0..=49.0).contains(&dropped), "{dropped}");
}

#[test]
fn scenarios_run_side_by_side_with_functions_of_their_own() {
    let ran = run_script(
        "import { Counter } from 'k6/metrics';
         const count = new Counter('calls');
         export const options = { thresholds: { 'calls{scenario:a}': ['count==6'], 'calls{scenario:b}': ['count==5'] }, scenarios: {
           a: { executor: 'per-vu-iterations', vus: 3, iterations: 2, exec: 'a' },
           b: { executor: 'shared-iterations', vus: 2, iterations: 5, exec: 'b', startTime: '50ms' } } };
         export function a() { count.add(1) }
         export async function b() { await null; count.add(1) }",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.metric("calls", "count"), 11.0);
}

#[test]
fn reports_of_thresholds_have_the_form_of_the_version() {
    let report = |version: &str| {
        let text = "import { jUnit } from 'https://jslib.k6.io/k6-summary/VERSION/index.js';
         export const options = { iterations: 2, thresholds: { iterations: ['count>1', 'count > 9'] } };
         export default () => {};
         export const handleSummary = (data) => ({ stdout: jUnit(data, { name: 'a<b', classname: \"c'd\" }).replace(/\\d+\\.\\d+|rate value: \\d+/g, 'N') });";
        run_script(&text.replace("VERSION", version), "").stdout
    };
    let counts = "tests=\"2\" failures=\"1\"";
    let old = |failure: &str| {
        format!(
            "<?xml version=\"N\"?>\n<testsuites {counts}>\n<testsuite name=\"a&lt;b\" {counts}><testcase name=\"iterations - count&gt;1\" />\n<testcase name=\"iterations - count &gt; 9\"><failure message=\"{failure}></testcase>\n</testsuite >\n</testsuites >"
        )
    };
    assert_eq!(report("0.0.1"), old("failed\" /"));
    assert_eq!(report("0.0.2"), old("failed\" /"));
    assert_eq!(report("0.0.3"), old("failed, count: 2\"/"));
    let last = report("0.1.0");
    for expected in [
        format!(
            "\n    <testsuites {counts}>\n      <testsuite name=\"a&lt;b\" {counts}>\n        <testcase name=\"iterations - count&gt;1\" classname=\"c&#39;d\" />\n<testcase "
        ),
        "<failure message=\"counter threshold failed: count value: 2, ".to_owned(),
    ] {
        assert!(last.contains(&expected), "no {expected} in {last}");
    }
}

#[test]
fn what_async_functions_throw_has_a_code_of_its_own() {
    for (text, code, expected) in [
        (
            "export async function setup() { throw new Error('x') } export default () => {}",
            255,
            "Uncaught (in promise) Error: x",
        ),
        (
            "export function setup() { Promise.reject(new TypeError('x')); return 1 } export default () => {}",
            255,
            "Uncaught (in promise) TypeError: x",
        ),
        (
            "export default () => {}; export async function teardown() { await null; throw new Error('x') }",
            255,
            "Uncaught (in promise) Error: x",
        ),
        (
            "Promise.reject(new Error('x')); export default () => {}",
            255,
            "Uncaught (in promise) Error: x",
        ),
        (
            "if (__VU === 1) Promise.reject(new Error('x')); export default () => {}",
            255,
            "Uncaught (in promise) Error: x",
        ),
        (
            "export default async () => { throw new Error('x') }",
            0,
            "Uncaught (in promise) Error: x",
        ),
        (
            "await null; throw new Error('x'); export default () => {}",
            107,
            "Error: x",
        ),
        (
            "export default async () => { setTimeout(() => { throw new Error('x') }, 1); await null }",
            0,
            "Error: x",
        ),
        (
            "import exec from 'k6/execution'; export async function setup() { exec.test.abort('x') } export default () => {}",
            108,
            "test aborted: x",
        ),
        (
            "import exec from 'k6/execution'; export default () => {}; export function teardown() { exec.test.abort('x') }",
            108,
            "test aborted: x",
        ),
    ] {
        let ran = run_script(text, "");
        assert_eq!(ran.code, code, "{text}: {ran:#?}");
        let first = ran.log.iter().find_map(|line| line.strip_prefix("Error: "));
        let first = first.unwrap_or(&ran.message);
        assert!(first.starts_with(expected), "{text}: {ran:#?}");
        let is_loaded = text.starts_with("export") || text.starts_with("import");
        assert_eq!(ran.stdout.contains("TOTAL RESULTS"), is_loaded, "{text}");
    }
    // Without a summary of the script there is none at all.
    let ran = run_script(
        "export default () => {}; export async function handleSummary() { throw new Error('x') }",
        "",
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.log.len()),
        (0, "", 1),
        "{ran:#?}"
    );
}

#[test]
fn iterations_that_are_left_when_time_is_up_are_dropped() {
    let ran = run_script(
        "import { sleep } from 'k6'; import exec from 'k6/execution';
         const iterations = { vus: 2, maxDuration: '1s' };
         export const options = { scenarios: {
           a: { ...iterations, executor: 'per-vu-iterations', iterations: 5, gracefulStop: '0s' },
           b: { ...iterations, executor: 'shared-iterations', iterations: 5, gracefulStop: '0s' },
           c: { ...iterations, executor: 'per-vu-iterations', iterations: 3, gracefulStop: '30s' },
           d: { ...iterations, executor: 'shared-iterations', iterations: 6, gracefulStop: '30s' },
           e: { ...iterations, executor: 'shared-iterations', iterations: 2, gracefulStop: '0s' },
         }, thresholds: Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [`dropped_iterations{scenario:${name}}`, []])) };
         export default () => sleep(exec.scenario.name < 'c' ? 100 : 1.5)",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let dropped = ["a", "b", "c", "d"].map(|name| {
        let name = format!("dropped_iterations{{scenario:{name}}}");
        ran.metric(&name, "count")
    });
    assert_eq!(dropped, [8.0, 3.0, 4.0, 4.0]);
    assert_eq!(ran.metric("dropped_iterations", "count"), 19.0);
    assert_eq!(ran.metric("iterations", "count"), 4.0);
    // One that the script ends leaves nothing behind that should have been done.
    let ran = run_script(
        "import exec from 'k6/execution';
         const iterations = { vus: 2, iterations: 5, maxDuration: '1s' };
         export const options = { scenarios: { a: { ...iterations, executor: 'per-vu-iterations' }, b: { ...iterations, executor: 'shared-iterations' } } };
         export default () => exec.test.abort('x')",
        "",
    );
    assert!(!ran.has_metric("dropped_iterations"), "{ran:#?}");
}

#[test]
fn groups_that_the_script_ends_are_measured() {
    let ran = run_script(
        "import { group } from 'k6'; import exec from 'k6/execution';
         export const options = { thresholds: { 'group_duration{group:::x}': ['max>0'], 'group_duration{group:::x::y}': ['max>0'] } };
         export default () => group('x', () => group('y', () => exec.test.abort('enough')));
         export const handleSummary = ({ metrics }) => ({ stdout: JSON.stringify(metrics.group_duration.values.max > 0) })",
        "",
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (108, "true"), "{ran:#?}");
    for name in ["group_duration{group:::x}", "group_duration{group:::x::y}"] {
        assert!(ran.metric(name, "max") > 0.0, "{name}: {ran:#?}");
    }
    for (body, has_group) in [
        ("throw new Error('x')", true),
        ("for (;;);", false),
        ("sleep(100)", false),
    ] {
        let ran = run_script(
            &format!(
                "import {{ group, sleep }} from 'k6';
                 export const options = {{ scenarios: {{ s: {{ executor: 'shared-iterations', vus: 1, iterations: 1, maxDuration: '1s', gracefulStop: '0s' }} }} }};
                 export default () => group('x', () => {{ {body} }})"
            ),
            "",
        );
        assert_eq!(ran.has_metric("group_duration"), has_group, "{body}");
    }
}

#[test]
fn the_summary_has_data_of_setup_if_there_is_some() {
    let show = "export const handleSummary = (data) => ({ stdout: JSON.stringify([data]).includes('setup_data') + ' ' + JSON.stringify(data.setup_data) });";
    for (body, shown, exported) in [
        ("", "false undefined", None),
        ("export function setup() {}", "false undefined", None),
        (
            "export function setup() { return null }",
            "true null",
            Some("null"),
        ),
        (
            "export function setup() { return { a: 1 } }",
            "true {\"a\":1}",
            Some("{\"a\":1}"),
        ),
        (
            "export function setup() { throw 1 }",
            "false undefined",
            None,
        ),
    ] {
        let ran = run_script(&format!("export default () => {{}}; {body}\n{show}"), "");
        assert_eq!(ran.stdout, shown, "{body}");
        let data = ran.export.get("setup_data").map(ToString::to_string);
        assert_eq!(data.as_deref(), exported, "{body}");
    }
}

#[test]
fn module_code_runs_once_for_each_virtual_user_of_k6() {
    for (body, users) in [
        ("", "0 0 1"),
        (
            "export function setup() {} export function teardown() {}",
            "0 0 0 0 1",
        ),
        ("export function handleSummary() { return {} }", "0 0 1"),
    ] {
        let ran = run_script(
            &format!("console.log(__VU); export default () => {{}}; {body}"),
            "",
        );
        let mut lines: Vec<_> = ran.console.iter().map(String::as_str).collect();
        lines.sort_unstable();
        let lines = lines.join(" ").replace("Info: ", "");
        assert_eq!(lines, users, "{body}");
    }
}

#[test]
fn virtual_users_exist_before_setup() {
    let text = "import exec from 'k6/execution';
        console.log('init', __VU);
        export const options = { vus: 3, iterations: 3 };
        export function setup() { console.log('setup', exec.instance.vusInitialized); return { token: 't' }; }
        export default function (data) { if (data.token !== 't') throw new Error('no data'); }";
    let ran = run_script(text, "");
    let lines: Vec<_> = ran.log.iter().map(String::as_str).collect();
    let at = |line: &str| lines.iter().position(|it| *it == line);
    let setup = at("Info: setup 3").unwrap_or_else(|| panic!("{ran:#?}"));
    for user in 1..=3 {
        let init = at(&format!("Info: init {user}")).unwrap();
        assert!(init < setup, "{ran:#?}");
    }
    assert_eq!(ran.code, 0, "{ran:#?}");
    // Without its virtual users a run has neither `setup()` nor `teardown()`.
    let text = "if (__VU === 2) throw new Error('second');
        export const options = { vus: 2, iterations: 2 };
        export function setup() { console.log('setup'); }
        export default function () { console.log('iteration'); }
        export function teardown() { console.log('teardown'); }";
    let ran = run_script(text, "");
    assert_eq!(ran.code, 107, "{ran:#?}");
    assert!(ran.console.is_empty(), "{ran:#?}");
}

#[test]
fn the_time_of_a_run_includes_setup_and_teardown() {
    let text = "import { sleep } from 'k6'; import exec from 'k6/execution';
        export const options = { thresholds: { iterations: ['rate<0.9'] } };
        export function setup() { sleep(1.2); }
        export default function () { console.log(exec.instance.currentTestRunDuration >= 1200); }
        export function teardown() { sleep(0.2); }
        export const handleSummary = (data) => ({ stdout: String(data.state.testRunDurationMs >= 1400 && data.metrics.vus.values.value === 0) });";
    let ran = run_script(text, "");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "true"),
        "one iteration takes more than a second: {ran:#?}"
    );
    assert_eq!(ran.console, ["Info: true"]);
}

#[test]
fn checks_are_listed_in_the_order_in_which_they_occur() {
    let ran = run_script(
        "import { check, group } from 'k6';
         export function setup() { check(1, { 'in setup': () => true }); }
         export default function () {
           group('outer', () => { check(1, { again: () => true }); group('inner', () => check(1, { nested: () => true })); });
           check(1, { root: () => true, again: () => true });
         }",
        "",
    );
    let lines = ran.stdout.lines().filter_map(|line| line.split_once("✓ "));
    let names: Vec<_> = lines.map(|(_, name)| name).collect();
    assert_eq!(names, ["in setup", "again", "nested", "root"], "{ran:#?}");
}

#[test]
fn the_exported_summary_has_what_the_script_has_changed() {
    let ran = run_script(
        "export default function () {}
         export function handleSummary(data) { delete data.metrics.iterations; data.metrics.data_sent.values.count = 77; return {}; }",
        "",
    );
    assert!(!ran.has_metric("iterations"), "{ran:#?}");
    assert_eq!(ran.metric("data_sent", "count"), 77.0);
}

#[test]
fn an_interrupted_iteration_counts_what_it_has_sent() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http'; import { sleep } from 'k6';
         export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '1s', gracefulStop: '0s' } } };
         export default function () { http.get('URL/'); sleep(60); }",
        &server.url(),
    );
    assert!(!ran.has_metric("iterations"), "{ran:#?}");
    assert!(ran.metric("data_sent", "count") > 10.0, "{ran:#?}");
    assert!(ran.metric("data_received", "count") > 10.0, "{ran:#?}");
}
