use std::time::Duration;

use plimsoll_model::{Histogram, Protocol};

use super::*;
use crate::fixture;
use crate::text::WIDTH;

fn plain(run: &RunSummary) -> String {
    summary(run, Detail::Brief, Style::Plain)
}

fn full(run: &RunSummary) -> String {
    summary(run, Detail::Full, Style::Plain)
}

#[test]
fn closed() {
    insta::assert_snapshot!(plain(&fixture::closed()));
}

#[test]
fn open() {
    insta::assert_snapshot!(plain(&fixture::open()));
}

#[test]
fn failing() {
    insta::assert_snapshot!(plain(&fixture::failing()));
}

#[test]
fn called() {
    insta::assert_snapshot!(plain(&fixture::called()));
}

#[test]
fn streams() {
    insta::assert_snapshot!(plain(&fixture::streams()));
}

#[test]
fn saturated() {
    insta::assert_snapshot!(plain(&fixture::saturated()));
}

#[test]
fn empty() {
    insta::assert_snapshot!(plain(&fixture::empty()));
}

#[test]
fn interrupted() {
    insta::assert_snapshot!(plain(&fixture::interrupted()));
}

#[test]
fn tiers() {
    insta::assert_snapshot!(plain(&fixture::tiers()));
}

#[test]
fn details() {
    insta::assert_snapshot!(full(&fixture::failing()));
}

#[test]
fn details_of_an_open_loop() {
    insta::assert_snapshot!(full(&fixture::open()));
}

#[test]
fn several_requests() {
    let run = RunSummary {
        requests: fixture::requests(),
        ..fixture::closed()
    };
    insta::assert_snapshot!(plain(&run));
}

#[test]
fn the_brief_summary_is_short_and_ends_with_the_verdict() {
    for (name, run) in fixture::all() {
        let text = plain(&run);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 20, "{name}:\n{text}");
        let verdict = lines.iter().position(|line| line.starts_with("result "));
        let after = &lines[verdict.expect(name) + 1..];
        assert!(
            after.iter().all(|line| line.starts_with("           ")),
            "{name}:\n{text}"
        );
    }
}

#[test]
fn agents_stand_side_by_side() {
    let text = plain(&fixture::fleet());
    let table: Vec<_> = text.lines().take(5).map(str::trim_end).collect();
    let verdict = text.trim_end().lines().last();
    assert_eq!(
        verdict,
        Some("result     incomplete: figures of 1 of 3 agents are missing")
    );
    assert_eq!(
        table,
        [
            "agents",
            "                      rate/s  errors     p99  busiest     late",
            "  web1                 2,498      20  913 µs     61 %  40.0 µs",
            "  web2-with-a-long-…   2,498      20  913 µs     99 %  40.0 µs       limit",
            "  web3                  0.00       -       -        -        -  incomplete",
        ]
    );
}

#[test]
fn no_line_is_too_wide() {
    let mut runs = fixture::all();
    for (_, run) in &mut runs {
        run.load.url = format!("http://127.0.0.1/{}", "very-long/".repeat(40));
        run.conditions.cpu_model = Some("a processor with a name ".repeat(8));
        run.unmet.insert("condition ".repeat(30), 4_000_000_000);
        if let Some(target) = &mut run.target {
            target.name = "spawned something".repeat(8);
        }
    }
    for (name, run) in runs {
        for text in [plain(&run), full(&run)] {
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{name}: {line}");
                assert_eq!(line, line.trim_end(), "{name}");
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_escapes() {
    for (name, run) in fixture::all() {
        let coloured = summary(&run, Detail::Full, Style::Ansi);
        assert!(coloured.contains("\x1b[1m"), "{name}");
        let mut bare = String::new();
        let mut parts = coloured.split('\x1b');
        bare.push_str(parts.next().unwrap());
        for part in parts {
            bare.push_str(part.split_once('m').unwrap().1);
        }
        assert_eq!(bare, full(&run), "{name}");
    }
}

#[test]
fn what_was_given_up_is_seen_in_percentiles_and_verdict() {
    let mut run = fixture::censored();
    let text = plain(&run);
    assert!(
        text.contains("p99 ≥ 5.0") && text.contains("max ≥ "),
        "{text}"
    );
    assert!(
        text.contains("breached, counting those that were given up"),
        "{text}"
    );
    assert!(text.contains("failed: 1 of 1 threshold not met"), "{text}");
    run.thresholds.clear();
    assert!(plain(&run).contains("no threshold set"), "{}", plain(&run));
    assert!(full(&run).contains("≥ 5.0"));
}

#[test]
fn arrivals_that_were_missed_are_a_share_of_those_intended_and_no_ok() {
    let mut run = fixture::open();
    run.counts = plimsoll_model::Counts {
        started: 3,
        ok: 3,
        missed: 297,
        ..plimsoll_model::Counts::default()
    };
    run.thresholds.clear();
    let text = plain(&run);
    assert!(text.contains("297 missed (99.0 %)"), "{text}");
    assert!(
        text.contains("297 of 300 intended requests (99.0 %) were missed"),
        "{text}"
    );
}

#[test]
fn latency_of_ok_and_of_errors_has_rows_of_its_own_where_there_are_both() {
    let mut run = fixture::closed();
    assert!(!plain(&run).contains("of errors"));
    let mut errors = Histogram::new();
    for _ in 0..100 {
        let rejected = Duration::from_micros(90);
        errors.record(rejected);
        run.latency.from_started.record(rejected);
    }
    run.latency.of_errors = Some(errors);
    let text = plain(&run);
    let row = |label: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(label))
    };
    assert!(
        row("of errors").is_some_and(|row| row.contains("p50 90.0 µs")),
        "{text}"
    );
    assert!(
        row("of ok").is_some_and(|row| row.contains("p50 1.18 ms")),
        "{text}"
    );
}

#[test]
fn requests_that_the_server_dropped_fail_a_run_with_thresholds_from_one_percent_on() {
    let mut run = fixture::closed();
    assert!(
        !run.thresholds.is_empty(),
        "the fixture has thresholds that are met"
    );
    let one_percent = run.counts.started / 100;
    run.counts.reconnects = one_percent;
    assert!(plain(&run).contains("result     ok"));
    run.counts.reconnects = one_percent + 1;
    let text = plain(&run);
    assert!(
        text.contains("requests were dropped by the server"),
        "{text}"
    );
    assert!(!text.contains("result     ok"), "{text}");
    // Without thresholds nothing fails, and the verdict names them.
    run.thresholds.clear();
    let text = plain(&run);
    assert!(
        text.contains("dropped by the server and sent again"),
        "{text}"
    );
    assert!(!text.contains("failed:"), "{text}");
}

#[test]
fn percentiles_of_few_samples_say_so() {
    let mut run = fixture::closed();
    assert!(!plain(&run).contains("samples only"));
    let mut few = Histogram::new();
    (0..99).for_each(|_| few.record(Duration::from_millis(2)));
    run.latency.from_started = few.clone().into();
    assert!(plain(&run).contains("of 99 samples only"));
    few.record(Duration::from_millis(2));
    run.latency.from_started = few.into();
    assert!(!plain(&run).contains("samples only"));
}

#[test]
fn bytes_of_encrypted_runs_are_marked_where_tls_is_not_in_them() {
    let mut run = fixture::closed();
    run.load.url = "https://example.com/".to_owned();
    assert!(plain(&run).contains("without TLS"));
    run.load.protocol = Protocol::Http3;
    assert!(!plain(&run).contains("without TLS"));
    run.load.url = "http://example.com/".to_owned();
    run.load.protocol = Protocol::Http1;
    assert!(!plain(&run).contains("without TLS"));
}

#[test]
fn a_cost_that_varies_shows_how_far_it_may_be_off() {
    let mut run = fixture::closed();
    assert!(!plain(&run).contains('±'));
    let target = run.target.as_mut().unwrap();
    // Counted in steps of 10 ms, every other stretch has none.
    for (number, sample) in target.samples.iter_mut().enumerate() {
        let steps = number as u64 / 2;
        sample.cpu.user = Duration::from_millis(steps * 10);
        sample.cpu.system = Duration::ZERO;
    }
    let error = run.cpu_error_us().unwrap();
    let text = plain(&run);
    assert!(text.contains(" ± "), "{error} {text}");
    run.target.as_mut().unwrap().samples.truncate(3);
    assert_eq!(run.cpu_error_us(), None);
}

#[test]
fn the_cost_of_each_server_shows_how_far_it_may_be_off() {
    let mut run = fixture::tiers();
    let row = |run: &RunSummary, name: &str| {
        let text = plain(run);
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("  {name} ")));
        row.unwrap().to_owned()
    };
    assert!(
        row(&run, "db").contains(" 27.7 µs ± 1.33 µs*"),
        "{}",
        row(&run, "db")
    );
    // The samples of the other one spread by nothing.
    assert!(
        row(&run, "web").contains(" 9.83 µs  "),
        "{}",
        row(&run, "web")
    );
    run.observed[1].cost.as_mut().unwrap().samples.truncate(3);
    assert!(row(&run, "db").contains(" 27.7 µs*"), "{}", row(&run, "db"));
}

#[test]
fn names_of_servers_are_shortened_where_the_figures_need_the_room() {
    let mut run = fixture::tiers();
    let longest = "server-with-a-name";
    for server in &mut run.observed {
        server.name = longest.to_owned();
    }
    let db = run.observed[1].cost.clone().unwrap();
    let web = run.observed[0].cost.as_mut().unwrap();
    web.samples = db.samples;
    let text = plain(&run);
    let rows: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("  server-"))
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    for row in rows {
        assert!(row.contains('…') && row.contains(" ± "), "{row}");
        assert!(row.chars().count() <= WIDTH, "{row}");
    }
}
