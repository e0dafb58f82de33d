//! Mocks: finding the rule of a request among many, and whole answers over loopback.
//!
//! `routing` looks one request up: that of the first rule, of the last one, and one that only the fallback answers.
//! `response_latency` asks a server of this process, one request at a time; the difference between `file_rule_warm`
//! and `text_rule` is what it costs that an answer lies in a file.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot be set up has nothing to say"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_mock::condition::Condition;
use plimsoll_mock::condition::text::{TextOperator, TextTest};
use plimsoll_mock::reply::Reply;
use plimsoll_mock::rules::Strategy;
use plimsoll_mock::{KeptRequest, Mock, Rule, RuleSet, SharedMock, config};
use plimsoll_model::Clock as _;
use plimsoll_server::{Action, Counters, Engine, EnginePlan, ListenerPlan, Serves, WorkerContext};
use plimsoll_wire::SystemClock;

const SIZES: [usize; 4] = [1, 10, 100, 10_000];

const MIXED: [TextOperator; 3] = [
    TextOperator::Equal,
    TextOperator::StartsWith,
    TextOperator::Contains,
];

fn rule(operator: TextOperator, value: String) -> Rule {
    let path = Condition::Path(TextTest::new(operator, value).unwrap());
    Rule::new(vec![path], Reply::default())
}

/// Rules for `/api/resource/0` and so on, and one that answers everything else.
fn rules(count: usize, operators: &[TextOperator]) -> RuleSet {
    let specific = (0..count).map(|number| {
        let operator = operators[number % operators.len()];
        let path = match operator {
            TextOperator::Equal => format!("/api/resource/{number}"),
            TextOperator::Contains => format!("/resource/{number}/"),
            _ => format!("/api/resource/{number}/"),
        };
        rule(operator, path)
    });
    let fallback = rule(TextOperator::WildCard, "/api/*".to_owned());
    let rules = specific.chain([fallback]).collect();
    RuleSet::new(
        PathBuf::from("rules.toml"),
        Some("/api".to_owned()),
        Strategy::FirstMatch,
        rules,
    )
}

fn routing(criterion: &mut Criterion) {
    for (kind, operators) in [("exact", &MIXED[..1]), ("mixed", &MIXED[..])] {
        let mut group = criterion.benchmark_group(format!("routing/find_matched/{kind}"));
        group.throughput(Throughput::Elements(1));
        for count in SIZES {
            let set = rules(count, operators);
            let path = |number: usize| {
                let is_exact = operators[number % operators.len()] == TextOperator::Equal;
                let end = if is_exact { "" } else { "/x" };
                format!("/api/resource/{number}{end}")
            };
            for (case, path, expected) in [
                ("first_rule_hit", path(0), 0),
                ("last_rule_hit", path(count - 1), count - 1),
                (
                    "miss_all_specific_rules",
                    "/api/unknown/1".to_owned(),
                    count,
                ),
            ] {
                let request = KeptRequest::made("GET", &path);
                let view = request.view();
                assert_eq!(set.find(&view), Some(expected), "{kind} {count} {case}");
                group.bench_with_input(BenchmarkId::new(case, count), &view, |bencher, view| {
                    bencher.iter(|| set.find(view));
                });
            }
        }
        group.finish();
    }
}

const RULES: &str = r#"
[[rules]]
when.request.url_path = "/text"
respond.text = "hello world"

[[rules]]
when.request.url_path = "/status"
respond.status = 418

[[rules]]
when.request.url_path = "/file"
respond.file_path = "files/hello.json"

[[rules]]
when.request.url_path = "/script"
respond.javascript = { text = "export default (request) => ({ path: request.path })" }
"#;

/// A server of a root file with a folder, in this process.
fn serve(folder: &tempfile::TempDir) -> Engine {
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("files")).unwrap();
    fs::write(path("files/hello.json"), "{\"hello\":\"world\"}").unwrap();
    fs::write(path("rules.toml"), RULES).unwrap();
    let root = "[service]\nrule_sets = [\"rules.toml\"]\nfallback_respond_dir = \"files\"\n";
    fs::write(path("apimock.toml"), root).unwrap();
    let shared = SharedMock::fixed(config::load(&path("apimock.toml")).unwrap());
    let action =
        move |_: &WorkerContext| Rc::new(Mock::new(Arc::clone(&shared), "/")) as Rc<dyn Action>;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = ListenerPlan::new(address, Serves::clear(Arc::new(action)));
    let plan = EnginePlan {
        threads: 2,
        ..EnginePlan::new(vec![listener])
    };
    Engine::start(&plan, Arc::<Counters>::default()).unwrap()
}

fn response_latency(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let engine = serve(&folder);
    let mut group = criterion.benchmark_group("response_latency");
    group.throughput(Throughput::Elements(1));
    let mut means = Vec::new();
    for (case, path, status) in [
        ("text_rule", "/text", "200"),
        ("status_rule", "/status", "418"),
        ("file_rule_warm", "/file", "200"),
        ("dyn_route_fallback", "/hello", "200"),
        ("not_found", "/missing", "404"),
        ("javascript_rule", "/script", "200"),
    ] {
        let mut stream = TcpStream::connect(engine.addresses()[0]).unwrap();
        stream.set_nodelay(true).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut buffer = vec![0; 64 * 1024];
        let mut ask = || {
            stream.write_all(request.as_bytes()).unwrap();
            // Every answer here is short enough to come at once.
            let length = stream.read(&mut buffer).unwrap();
            let line = format!("HTTP/1.1 {status} ");
            assert!(buffer[..length].starts_with(line.as_bytes()), "{case}");
        };
        ask();
        let mut spent = (Duration::ZERO, 0);
        group.bench_function(case, |bencher| {
            bencher.iter_custom(|times| {
                let begin = SystemClock.now();
                for _ in 0..times {
                    ask();
                }
                let took = SystemClock.now().duration_since(begin);
                spent = (spent.0 + took, spent.1 + times);
                took
            });
        });
        means.push((case, spent.0.as_secs_f64() * 1e6 / spent.1.max(1) as f64));
    }
    group.finish();
    report_cost_of_files(&means);
}

/// What it costs that an answer lies in a file.
#[expect(
    clippy::print_stdout,
    reason = "a benchmark talks to the person at the terminal"
)]
fn report_cost_of_files(means: &[(&str, f64)]) {
    let mean = |wanted: &str| means.iter().find(|(case, _)| *case == wanted);
    let (Some((_, file)), Some((_, text))) = (mean("file_rule_warm"), mean("text_rule")) else {
        // One of them was left out.
        return;
    };
    println!(
        "file I/O: {:+.1} µs per answer (file_rule_warm {file:.1} µs, text_rule {text:.1} µs)\n",
        file - text
    );
}

criterion_group! {
    name = mock;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = routing, response_latency
}
criterion_main!(mock);
