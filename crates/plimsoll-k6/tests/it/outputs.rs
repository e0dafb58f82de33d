//! Samples written one by one, and scripts run once.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_client::{AddressFilter, ProxyRules};
use plimsoll_k6::{
    CsvTime, Invocation, SampleFile, SampleFormat, SampleOutput, Script, ScriptText, SummaryMode,
    run, run_once,
};
use serde_json::Value;

use crate::server::Server;

/// Keeps what is written.
#[derive(Debug, Clone, Default)]
struct SampleBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SampleBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SampleFile for SampleBuffer {}

impl SampleBuffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn script(text: &str) -> Script {
    let text = ScriptText::Given {
        text: text.to_owned(),
        directory: std::env::temp_dir(),
    };
    Script::load(&text).unwrap()
}

/// The samples of a run: lines of JSON, and the table.
fn written(text: &str) -> (Vec<Value>, String) {
    let (lines, table) = (SampleBuffer::default(), SampleBuffer::default());
    let output = |name: &str, format, kept: &SampleBuffer| {
        let kept = kept.clone();
        SampleOutput {
            name: name.to_owned(),
            format,
            open: Box::new(move || Ok(Box::new(kept.clone()))),
        }
    };
    let outcome = run(&Invocation {
        summary_mode: SummaryMode::Disabled,
        samples: vec![
            output("lines", SampleFormat::Json, &lines),
            output("table", SampleFormat::Csv(CsvTime::Seconds), &table),
        ],
        ..Invocation::new(script(text), Arc::new(|_, _, _| {}), &|| false)
    });
    assert_eq!(outcome.exit.number(), 0, "{}", outcome.message);
    let lines = lines.text();
    let lines = lines.lines();
    let lines = lines.map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), table.text())
}

#[test]
fn every_sample_is_written_with_its_tags() {
    let server = Server::start();
    let text = format!(
        "import http from 'k6/http'; import {{ Counter }} from 'k6/metrics';
         const mine = new Counter('mine');
         export const options = {{ iterations: 2, tags: {{ run: 'r' }}, thresholds: {{ 'mine{{a:b}}': ['count<1'], mine: ['count>1', {{ threshold: 'count<9', abortOnFail: true, delayAbortEval: 2500 }}] }} }};
         export function setup() {{ http.get('{0}/setup'); }}
         export default function () {{ mine.add(2, {{ a: 'b,c' }}); http.get('{0}/'); }}",
        server.url()
    );
    let (lines, table) = written(&text);
    let of = |kind: &str, metric: &str| {
        let found = lines
            .iter()
            .filter(|line| line["type"] == kind && line["metric"] == metric);
        found.cloned().collect::<Vec<_>>()
    };
    let described = of("Metric", "mine");
    assert_eq!(described.len(), 1);
    assert_eq!(described[0]["data"]["submetrics"][0]["tags"]["a"], "b");
    assert_eq!(
        described[0]["data"]["thresholds"],
        serde_json::json!(["count>1", { "threshold": "count<9", "abortOnFail": true, "delayAbortEval": "2.5s" }])
    );
    let points = of("Point", "mine");
    assert_eq!(points.len(), 2);
    let tags = &points[0]["data"]["tags"];
    assert_eq!(
        (&tags["a"], &tags["run"], &tags["scenario"], &tags["group"]),
        (&"b,c".into(), &"r".into(), &"default".into(), &"".into())
    );
    assert_eq!(points[0]["data"]["value"], 2);
    assert!(points[0]["data"]["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(of("Point", "http_reqs").len(), 3, "that of setup() counts");
    assert_eq!(of("Point", "iterations").len(), 2);
    let head = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata";
    assert_eq!(table.lines().next(), Some(head));
    let mine = table
        .lines()
        .find(|line| line.starts_with("mine,"))
        .unwrap();
    assert!(
        mine.ends_with(",2.000000,,,,,,,,,default,,,,,,\"a=b,c&run=r\","),
        "{mine}"
    );
}

#[test]
fn users_and_iterations_are_metadata_and_addresses_are_tags() {
    let server = Server::start();
    let text = format!(
        "import http from 'k6/http'; import exec from 'k6/execution';
         export const options = {{ iterations: 2, systemTags: ['vu', 'iter', 'ip', 'status'] }};
         export default function () {{
           exec.vu.metrics.metadata.trace = 't' + __ITER;
           http.get('{}/'); delete exec.vu.metrics.metadata.trace;
         }}",
        server.url()
    );
    let (lines, table) = written(&text);
    let mut points = lines
        .iter()
        .filter(|line| line["type"] == "Point" && line["metric"] == "http_reqs");
    let data = &points.nth(1).unwrap()["data"];
    assert_eq!(
        data["metadata"],
        serde_json::json!({ "iter": "1", "trace": "t1", "vu": "1" })
    );
    assert_eq!(
        data["tags"],
        serde_json::json!({ "ip": "127.0.0.1", "status": "200" })
    );
    let head = "metric_name,timestamp,metric_value,ip,status,extra_tags,metadata";
    assert_eq!(table.lines().next(), Some(head));
    let mut rows = table.lines().filter(|line| line.starts_with("http_reqs,"));
    let row = rows.next().unwrap();
    assert!(
        row.ends_with("127.0.0.1,200,,iter=0&trace=t0&vu=1"),
        "{row}"
    );
    let mut rows = table.lines().filter(|line| line.starts_with("iterations,"));
    let row = rows.next().unwrap();
    assert!(row.ends_with(",,,,iter=0&vu=1"), "{row}");
}

#[test]
fn a_script_that_runs_once_passes_or_says_why_not() {
    let server = Server::start();
    let check = |body: &str, expected: &[&str], checks: (u64, u64)| {
        let text = format!(
            "import http from 'k6/http'; import {{ check, sleep }} from 'k6';
             export const options = {{ vus: 5, duration: '1h', thresholds: {{ checks: ['rate>0.4'] }} }};
             export default function () {{ const r = http.get('{}/json'); {body} }}",
            server.url()
        );
        let verdict = run_once(
            script(&text),
            Vec::new(),
            (ProxyRules::none(), None),
            Duration::from_secs(5),
        );
        assert_eq!(verdict.checks, checks, "{verdict:?}");
        assert_eq!(verdict.failures.len(), expected.len(), "{verdict:?}");
        for (failure, expected) in verdict.failures.iter().zip(expected) {
            assert!(failure.contains(expected), "{verdict:?}");
        }
        assert_eq!(verdict.is_passed(), expected.is_empty());
    };
    check("check(r, { ok: (r) => r.status === 200 })", &[], (1, 1));
    check(
        "check(r, { ok: true, bad: false })",
        &["check `bad` failed"],
        (1, 2),
    );
    check(
        "check(r, { bad: false })",
        &["check `bad` failed", "thresholds on metrics 'checks'"],
        (0, 1),
    );
    check("throw new Error('broken')", &["Error: broken"], (0, 0));
    let before = server.requests().len();
    let text = "import { sleep } from 'k6'; export default () => { for (;;) sleep(0.01) }";
    let verdict = run_once(
        script(text),
        Vec::new(),
        (ProxyRules::none(), None),
        Duration::from_millis(300),
    );
    assert_eq!(verdict.failures, ["took longer than 300ms"]);
    assert_eq!(server.requests().len(), before);
    // An address that may not be connected to.
    let text = format!(
        "import http from 'k6/http'; export default () => {{ http.get('{}/json', {{ throw: true }}) }}",
        server.url()
    );
    let verdict = run_once(
        script(&text),
        Vec::new(),
        (ProxyRules::none(), Some(AddressFilter::public())),
        Duration::from_secs(5),
    );
    assert!(!verdict.is_passed(), "{verdict:?}");
    assert_eq!(server.requests().len(), before);
}

#[test]
fn outputs_are_opened_once_the_script_is_valid() {
    let ran = |text: &str, is_writable: bool| {
        let opened = Arc::new(Mutex::new(0));
        let count = Arc::clone(&opened);
        let outcome = run(&Invocation {
            samples: vec![SampleOutput {
                name: "lines".to_owned(),
                format: SampleFormat::Json,
                open: Box::new(move || {
                    *count.lock().unwrap() += 1;
                    if is_writable {
                        return Ok(Box::new(io::sink()));
                    }
                    Err(io::ErrorKind::PermissionDenied.into())
                }),
            }],
            ..Invocation::new(script(text), Arc::new(|_, _, _| {}), &|| false)
        });
        let opened = *opened.lock().unwrap();
        (outcome.exit.number(), opened, outcome.message)
    };
    assert_eq!(ran("export default () => {}", true).0, 0);
    for (text, code) in [
        ("throw new Error('at once'); export default () => {}", 107),
        (
            "export const options = { vus: 'many' }; export default () => {}",
            104,
        ),
        ("export const other = 1;", 104),
    ] {
        let (exit, opened, _) = ran(text, true);
        assert_eq!((exit, opened), (code, 0), "{text}");
    }
    let (exit, opened, message) = ran("export default () => {}", false);
    assert_eq!((exit, opened), (104, 1));
    assert_eq!(message, "cannot write lines: permission denied");
}
