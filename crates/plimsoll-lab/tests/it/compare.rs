//! Whole comparisons: structure, counts and order; never a timing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_lab::TextFormat;
use plimsoll_lab::compare::{
    CompareError, CompareOptions, ComparePlan, Comparison, Drive, Event, Gate, GateVerdict, Metric,
    Operand, Server, Template, TrialError, Turn, compare, to_json, to_text, turns,
};
use plimsoll_lab::statistics::Bootstrap;
use plimsoll_load::Interrupt;
use plimsoll_testkit::{Authority, Origin, Script};
use plimsoll_wire::tls::Trust;

/// One of this crate's examples, which cargo builds along with the tests.
pub(crate) fn example(name: &str) -> String {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(path.exists(), "{} is not built", path.display());
    path.to_str().unwrap().to_owned()
}

fn template<const N: usize>(words: [&str; N]) -> Template {
    Template::new(words.map(str::to_owned).to_vec()).unwrap()
}

fn operand(label: &str, command: Template) -> Operand {
    Operand {
        label: label.to_owned(),
        command,
        prepare: None,
        url: None,
        observed: None,
    }
}

#[test]
fn each_trial_is_prepared_and_a_failure_ends_the_comparison() {
    let scratch = Scratch::new("prepare");
    let log = scratch.file("log");
    let append = format!("echo $0 >> {log}");
    let mut options = two_clients(None);
    for (number, operand) in options.operands.iter_mut().enumerate() {
        operand.prepare = Some(template(["sh", "-c", &append, ["one", "two"][number]]));
    }
    run(options.clone()).unwrap();
    let prepared = std::fs::read_to_string(&log).unwrap();
    // Three trials and a warm-up of each.
    for name in ["one", "two"] {
        assert_eq!(prepared.lines().filter(|line| *line == name).count(), 4);
    }
    options.operands[1].prepare = Some(template(["sh", "-c", "echo no cache >&2; exit 3"]));
    let message = chain(&run(options).unwrap_err());
    assert!(
        message.contains("--prepare") && message.contains("no cache"),
        "{message}"
    );
}

pub(crate) fn options(operands: Vec<Operand>) -> CompareOptions {
    CompareOptions {
        operands,
        trials: 3,
        seconds: 1,
        connections: 1,
        rate: None,
        pin: vec![],
        server: None,
        drive: None,
        observed: None,
        url: None,
        port: None,
        count_from: None,
        metric: Metric::CpuUsPerRequest,
        gate: None,
        self_test: false,
        answers_may_differ: false,
        trust: Trust::default(),
        bootstrap: Bootstrap::default(),
        version: "0.0.0".to_owned(),
        command: vec!["plimsoll".to_owned(), "compare".to_owned()],
    }
}

fn server() -> Server {
    Server {
        command: template([&example("small_server"), "{port}"]),
        pin: vec![],
        ready: "http://127.0.0.1:{port}/".to_owned(),
    }
}

fn run(options: CompareOptions) -> Result<Comparison, CompareError> {
    let plan = ComparePlan::new(options).unwrap();
    compare(&plan, &Interrupt::default(), &mut |_| {})
}

/// The error and its causes, one line each.
fn chain(error: &dyn std::error::Error) -> String {
    let mut lines = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        lines = format!("{lines}\n{cause}");
        source = cause.source();
    }
    lines
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A comparison of two commands against one server; both make the numbers of requests given.
pub(crate) fn two_clients(log: Option<&str>) -> CompareOptions {
    let load = example("small_load");
    let command = |number, name| match log {
        Some(log) => template([&load, "{url}", number, log, name]),
        None => template([&load, "{url}", number]),
    };
    CompareOptions {
        server: Some(server()),
        ..options(vec![
            operand("ours", command("300", "A")),
            operand("peer", command("400", "B")),
        ])
    }
}

/// One server by itself, driven with so many requests.
pub(crate) fn a_server(requests: &str) -> CompareOptions {
    CompareOptions {
        trials: 1,
        drive: Some(Drive {
            url: "http://127.0.0.1:{port}/".to_owned(),
            command: template([&example("small_load"), "{url}", requests]),
            pin: vec![],
        }),
        ..options(vec![operand(
            "one",
            template([&example("small_server"), "{port}"]),
        )])
    }
}

#[test]
fn two_commands_run_in_turns_and_are_counted() {
    let scratch = Scratch::new("turns");
    let log = scratch.file("log");
    let plan = ComparePlan::new(two_clients(Some(&log))).unwrap();
    let mut seen: Vec<Turn> = Vec::new();
    let comparison = compare(&plan, &Interrupt::default(), &mut |event| {
        if let Event::TrialBegins { turn, .. } = event {
            seen.push(*turn);
        }
    })
    .unwrap();

    let ran: String = std::fs::read_to_string(&log).unwrap().split('\n').collect();
    assert_eq!(ran, "ABABBAAB");
    assert_eq!(seen, turns(2, 3));
    assert_eq!(comparison.order, seen);
    for (operand, expected) in comparison.operands.iter().zip([300, 400]) {
        let rounds: Vec<_> = operand
            .trials
            .iter()
            .map(|trial| trial.turn.round)
            .collect();
        assert_eq!(rounds, [Some(0), Some(1), Some(2)]);
        for trial in &operand.trials {
            assert_eq!((trial.ok, trial.failed), (expected, 0));
            assert_eq!(trial.source, "plimsoll load --json");
            assert!(trial.cpu.total().as_micros() > 0);
            assert!(trial.other_end_cpu.is_some());
            assert_eq!(trial.p50_us, None);
        }
    }
    let [pair] = comparison.pairs.as_slice() else {
        panic!("one pair: {:?}", comparison.pairs);
    };
    assert_eq!(pair.peer, 1);
    assert_eq!(pair.verdict.metric, Metric::CpuUsPerRequest);
    let interval = pair.verdict.estimate.interval;
    assert!(interval.low <= pair.verdict.estimate.ratio);
    assert!(pair.verdict.estimate.ratio <= interval.high);
}

#[test]
fn text_fits_the_terminal_and_names_every_operand() {
    let comparison = run(two_clients(None)).unwrap();
    let text = to_text(&comparison, TextFormat::default());
    let shown = |columns| {
        let format = TextFormat {
            columns,
            ..TextFormat::default()
        };
        to_text(&comparison, format)
    };
    for columns in [60, 80, 120] {
        let text = shown(columns);
        for line in text.lines() {
            // A path is not broken.
            let is_path = line.contains("/small_load");
            let fits = line.chars().count() <= columns;
            assert!(fits || is_path, "too wide for {columns}: {line}");
        }
    }
    let trials = |columns| shown(columns).matches("[trials]").count();
    // Memory is a column too unless a load ends before it is sampled.
    assert!([3, 4].contains(&trials(120)), "{}", shown(120));
    assert!(trials(60) < trials(120));
    for expected in [
        "2 commands, 3 trials of 1 s each",
        "A ours",
        "B peer",
        "> CPU µs/req",
        "server µs/req",
        "A / B: ratio [75 % interval]",
        "with 3 trials no interval covers",
        "75.0 %",
    ] {
        assert!(text.contains(expected), "no `{expected}` in\n{text}");
    }
}

#[test]
fn operands_that_are_servers_are_started_for_each_trial() {
    let served = [&example("small_server"), "{port}"];
    let comparison = run(CompareOptions {
        trials: 2,
        drive: Some(Drive {
            url: "http://127.0.0.1:{port}/".to_owned(),
            command: template([&example("small_load"), "{url}", "500"]),
            pin: vec![],
        }),
        metric: Metric::OtherEndCpuUsPerRequest,
        ..options(vec![
            operand("one", template(served)),
            operand("two", template(served)),
            operand("three", template(served)),
        ])
    })
    .unwrap();
    assert!(comparison.operands_are_servers);
    assert_eq!(comparison.pairs.len(), 2);
    for operand in &comparison.operands {
        assert_eq!(operand.trials.len(), 2);
        for trial in &operand.trials {
            assert_eq!(trial.ok, 500);
            assert!(trial.peak_rss_bytes.unwrap() > 100_000);
        }
    }
    assert!(to_json(&comparison).contains("\"operands_are\": \"servers\""));
}

#[test]
fn a_gate_that_cannot_tell_says_so_or_goes_on_until_it_can() {
    // No machine is so noisy, but three trials are too few for any interval.
    let gated = |until_sure| CompareOptions {
        gate: Some(Gate {
            allowed: 1e6,
            until_sure,
        }),
        self_test: until_sure.is_some(),
        ..two_clients(None)
    };
    let comparison = run(gated(None)).unwrap();
    let cannot_tell = GateVerdict::CannotTell { trials: Some(6) };
    assert_eq!(comparison.pairs[0].gate, Some(cannot_tell));
    assert!(comparison.self_test.is_none());
    let text = to_text(&comparison, TextFormat::default());
    assert!(text.contains("A / B: cannot tell, between "), "{text}");

    let comparison = run(gated(Some(64))).unwrap();
    assert_eq!(comparison.trials, 6);
    assert_eq!(comparison.operands[1].trials.len(), 6);
    // Three trials are too few to call an operand different from itself too.
    assert!(!comparison.self_test.unwrap().differs());
    assert_eq!(comparison.pairs[0].gate, Some(GateVerdict::Held));
}

#[test]
fn servers_that_answer_differently_are_compared_on_request_only() {
    let server = example("small_server");
    let compared = |answers_may_differ| {
        run(CompareOptions {
            trials: 1,
            answers_may_differ,
            drive: Some(Drive {
                url: "http://127.0.0.1:{port}/".to_owned(),
                command: template([&example("small_load"), "{url}", "100"]),
                pin: vec![],
            }),
            metric: Metric::OtherEndCpuUsPerRequest,
            ..options(vec![
                operand("one", template([&server, "{port}"])),
                operand("two", template([&server, "{port}", "sorry"])),
            ])
        })
    };
    assert_eq!(
        compared(false).unwrap_err().to_string(),
        "one answers with 2 bytes, and two answers with 5 bytes: what a request costs cannot be compared"
    );
    assert_eq!(compared(true).unwrap().pairs.len(), 1);
}

#[test]
fn answers_over_tls_are_compared_where_certificates_are_trusted() {
    let authority = Authority::new();
    let leaf = authority.issue(&["127.0.0.1"]);
    let serving = |content: &str| {
        let length = content.len();
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}");
        let origin = Origin::builder().tls(leaf.server_config());
        origin
            .script(move |_| Script::serve(response.clone()))
            .start()
    };
    let (one, two) = (serving("hello"), serving("sorry"));
    let compared = |trust| {
        let mut options = CompareOptions {
            trust,
            ..two_clients(None)
        };
        for (operand, origin) in options.operands.iter_mut().zip([&one, &two]) {
            operand.url = Some(origin.url("/"));
        }
        run(options)
    };
    let error = compared(Trust::Anyone).unwrap_err().to_string();
    assert!(error.contains("other content from byte 0 on"), "{error}");
    let comparison = compared(Trust::PublicRoots).unwrap();
    let warnings = comparison.conditions.warnings.join("\n");
    assert!(
        warnings.contains("a certificate is not trusted"),
        "{warnings}"
    );
}

#[test]
fn a_server_that_ends_during_its_trial_is_an_error() {
    let scratch = Scratch::new("gone");
    let pid = scratch.file("pid");
    let script = format!("echo $$ > {pid}; exec {} $0", example("small_server"));
    let served = ["sh", "-c", &script, "{port}"];
    let kills = format!(
        "{} $0 10; kill $(cat {pid}); while kill -0 $(cat {pid}); do \
         grep -q '^State:.Z' /proc/$(cat {pid})/status && break; done",
        example("small_load")
    );
    let error = run(CompareOptions {
        drive: Some(Drive {
            url: "http://127.0.0.1:{port}/".to_owned(),
            command: template(["sh", "-c", &kills, "{url}"]),
            pin: vec![],
        }),
        ..options(vec![
            operand("one", template(served)),
            operand("two", template(served)),
        ])
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("ended during the trial"),
        "{error}"
    );
}

#[test]
fn a_counting_page_is_requested_if_the_tool_says_nothing() {
    let page = counting_page();
    let comparison = run(CompareOptions {
        trials: 1,
        url: Some(page.clone()),
        count_from: Some(page.clone()),
        ..options(vec![
            operand("ours", template(["sh", "-c", &asking(&page, 20)])),
            operand("peer", template(["sh", "-c", &asking(&page, 30)])),
        ])
    })
    .unwrap();
    for (operand, expected) in comparison.operands.iter().zip([20, 30]) {
        assert_eq!(operand.trials[0].source, "server");
        assert_eq!(operand.trials[0].ok, expected);
    }
}

/// A command that makes `number` requests and prints nothing that could be read as a count.
fn asking(url: &str, number: u32) -> String {
    format!(
        "{} {url} {number} >/dev/null; echo done",
        example("small_load")
    )
}

/// A server of this process whose every answer is a `stub_status` page that counts itself.
fn counting_page() -> String {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (before, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            if stream.read(&mut head).is_ok_and(|length| length > 0) {
                let count = before + 1;
                let page = format!(
                    "HTTP/1.0 200 OK\r\n\r\nActive connections: 1 \n\
                     server accepts handled requests\n {count} {count} {count} \n"
                );
                stream.write_all(page.as_bytes()).ok();
            }
        }
    });
    url
}

#[test]
fn unknown_output_is_an_error_that_names_the_known_ones() {
    let error = run(options(vec![
        operand("ours", template(["echo", "hello"])),
        operand("peer", template(["echo", "hello"])),
    ]))
    .unwrap_err();
    let message = chain(&error);
    assert!(message.contains("trial 1 of 8, ours"), "{message}");
    assert!(
        message.contains("cannot count the requests of `echo hello`"),
        "{message}"
    );
    assert!(message.contains("h2load"), "{message}");
}

#[test]
fn a_failing_command_shows_the_end_of_its_stderr() {
    let fails = ["sh", "-c", "echo bind: in use >&2; exit 7"];
    let error = run(options(vec![
        operand("ours", template(fails)),
        operand("peer", template(fails)),
    ]))
    .unwrap_err();
    let message = chain(&error);
    assert!(message.contains("exit status: 7"), "{message}");
    assert!(message.ends_with("\nbind: in use"), "{message}");
}

#[test]
fn a_figure_that_no_tool_reports_is_named() {
    let error = run(CompareOptions {
        metric: Metric::P99Us,
        ..two_clients(None)
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ours reports no p99_us; choose another with --metric"
    );
}

#[test]
fn a_server_that_ends_early_is_an_error() {
    let with_server = |command| CompareOptions {
        server: Some(Server {
            command,
            ..server()
        }),
        ..two_clients(None)
    };
    let error = run(with_server(template(["sh", "-c", "echo no config >&2"]))).unwrap_err();
    let message = chain(&error);
    assert!(message.contains("must stay in the foreground"), "{message}");
    assert!(message.ends_with("no config"), "{message}");

    let error = run(with_server(template(["no-such-server-4711"]))).unwrap_err();
    assert_eq!(error.to_string(), "program `no-such-server-4711` not found");
}

#[test]
fn an_answering_stranger_is_not_taken_for_the_server() {
    let error = run(CompareOptions {
        server: Some(Server {
            ready: counting_page(),
            ..server()
        }),
        ..two_clients(None)
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("is another one running?"),
        "{error}"
    );
}

#[test]
fn an_interrupt_leaves_no_process_behind() {
    let scratch = Scratch::new("interrupt");
    let pids = scratch.file("pids");
    let lingers = format!("echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait");
    let command = template(["sh", "-c", &lingers]);
    let plan = ComparePlan::new(CompareOptions {
        server: Some(server()),
        ..options(vec![
            operand("ours", command.clone()),
            operand("peer", command),
        ])
    })
    .unwrap();

    let interrupt = Arc::new(Interrupt::default());
    let raise = Arc::clone(&interrupt);
    let watched = PathBuf::from(&pids);
    let raiser = std::thread::spawn(move || {
        while pids_in(&watched).len() < 2 {
            std::thread::yield_now();
        }
        raise.ask();
    });
    let events = Arc::new(Mutex::new(0));
    let error = compare(&plan, &interrupt, &mut |_| *events.lock().unwrap() += 1).unwrap_err();
    raiser.join().unwrap();
    assert!(matches!(error, CompareError::Interrupted), "{error:?}");
    // The server was ready, and the first trial began; it did not end.
    assert_eq!(*events.lock().unwrap(), 2);
    for pid in pids_in(Path::new(&pids)) {
        while is_alive(pid) {
            std::thread::yield_now();
        }
    }
}

fn pids_in(file: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    complete.lines().map(|line| line.parse().unwrap()).collect()
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
}

#[test]
fn a_trial_error_says_which_command() {
    let load = example("small_load");
    let error = run(CompareOptions {
        url: Some("http://127.0.0.1:1/".to_owned()),
        ..options(vec![
            operand("ours", template([&load, "{url}", "0"])),
            operand("peer", template([&load, "{url}", "0"])),
        ])
    })
    .unwrap_err();
    assert!(matches!(
        error,
        CompareError::Trial {
            cause: TrialError::NothingDone { .. },
            ..
        }
    ));
}

#[test]
fn programs_that_are_missing_are_reported_before_the_first_trial() {
    let load = example("small_load");
    let mut has_begun = false;
    let plan = ComparePlan::new(CompareOptions {
        url: Some("http://127.0.0.1:1/".to_owned()),
        ..options(vec![
            operand("ours", template([&load, "{url}", "0"])),
            operand("peer", template(["no-such-program-4711", "{url}"])),
            operand("other", template(["./neither-this", "{url}"])),
        ])
    })
    .unwrap();
    let error = compare(&plan, &Interrupt::default(), &mut |_| has_begun = true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "programs `no-such-program-4711`, `./neither-this` not found"
    );
    assert!(!has_begun);
}
