use plimsoll_model::{
    Bounded, Counts, CpuTime, Failure, FailureCount, FailureKind, Histogram, Memory, Phase, Tick,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn view(seconds: u64) -> View {
    let mut view = View {
        title: "GET http://127.0.0.1:8080/, closed loop, 64 connections".to_owned(),
        duration: Some(Duration::from_secs(90)),
        ..View::default()
    };
    let mut latency = Histogram::new();
    for second in 1..=seconds {
        for micros in 1..200 {
            latency.record(Duration::from_micros(micros * second));
        }
        let counts = Counts {
            started: second * 1_000,
            ok: second * 990,
            failed: second * 10,
            ..Counts::default()
        };
        let tick = Tick {
            at: Duration::from_secs(second),
            length: Duration::from_secs(1),
            warm_up: second < 3,
            grace: false,
            ok: 500 + second * 13 % 400,
            failed: 10,
            other_errors: 0,
            events: 0,
            bytes_received: 1,
            in_flight: 64,
            p50: None,
            p90: None,
            p99: Some(Bounded::exact(Duration::from_micros(
                900 + second * 37 % 300,
            ))),
            p99_9: None,
            max: None,
            spread: Vec::new(),
            phases: [Duration::ZERO; Phase::ALL.len()],
        };
        let failures = [FailureCount {
            phase: Phase::Connect,
            kind: FailureKind::Refused,
            count: second * 10,
            example: Failure::new(Phase::Connect, FailureKind::Refused),
        }];
        view.update(&Standing {
            tick: &tick,
            counts,
            statuses: vec![(200, second * 980), (503, second * 10)],
            failures: &failures,
            latency: &latency,
            target: Some(ResourceSample {
                at: tick.at,
                cpu: CpuTime {
                    user: Duration::from_millis(100 * second),
                    system: Duration::from_millis(50 * second),
                },
                memory: Memory {
                    anonymous_bytes: 5_000_000,
                    file_bytes: 9_000_000,
                },
                threads: 2,
                completed: second * 1_000,
                ..ResourceSample::default()
            }),
        });
    }
    view
}

fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn on_a_terminal_of_the_usual_size() {
    insta::assert_snapshot!(drawn(&view(50), 80, 24));
}

fn agents(count: u32) -> Vec<AgentStanding> {
    let agent = |number: u32| AgentStanding {
        name: format!("web{number}"),
        workers: 4,
        per_second: (number != 2).then(|| 9_000.0 + f64::from(number)),
        errors: if number == 2 { 12 } else { 0 },
        p99: Some(Bounded::exact(Duration::from_micros(
            800 + 10 * u64::from(number),
        ))),
        lag_p99: Some(Duration::from_millis(if number == 1 { 14 } else { 0 })),
        busiest_worker_percent: Some(if number == 3 { 99.4 } else { 61.0 }),
        is_over: number == 2,
        is_lost: number == 2,
    };
    (0..count).map(agent).collect()
}

#[test]
fn agents_of_a_fleet_stand_side_by_side() {
    let mut view = view(50);
    view.update_agents(&agents(4));
    insta::assert_snapshot!(drawn(&view, 80, 32));
}

#[test]
fn of_many_agents_those_with_a_problem_are_shown() {
    let mut view = view(50);
    view.update_agents(&agents(40));
    let text = drawn(&view, 80, 24);
    for part in [
        "agents, 4 of 40",
        "web2 ",
        "lost",
        "web1 ",
        "starts late",
        "web3 ",
        "limit",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // The plots have no room for them on a low terminal.
    assert!(!drawn(&view, 80, 16).contains("web1 "));
    for (width, height) in [(44, 20), (60, 30), (300, 90)] {
        drawn(&view, width, height);
    }
}

#[test]
fn what_has_happened_beside_the_figures_stands_below_them() {
    let mut view = view(50);
    view.note = Some("the broker is away; the run waits for it for up to 30s".to_owned());
    let text = drawn(&view, 80, 24);
    assert!(text.contains("the broker is away"), "{text}");
    // How to stop is known to whom has stopped it, how not to wait is not.
    view.is_stopping = true;
    let text = drawn(&view, 80, 24);
    assert!(text.contains("q again does not wait"), "{text}");
}

#[test]
fn before_the_first_second() {
    insta::assert_snapshot!(drawn(&view(0), 60, 18));
}

#[test]
fn on_a_small_terminal_the_plots_give_way() {
    insta::assert_snapshot!(drawn(&view(50), 60, 12));
}

#[test]
fn on_a_tiny_terminal_there_are_figures_alone() {
    let drawn = drawn(&view(50), 30, 8);
    for text in ["requests/s", "errors", "(1.00 %)", "p99"] {
        assert!(drawn.contains(text), "{drawn}");
    }
    assert!(!drawn.contains('│'), "{drawn}");
}

#[test]
fn a_short_run_fills_the_width_and_the_scale_is_named() {
    let mut view = view(2);
    view.duration = Some(Duration::from_secs(4));
    let drawn = drawn(&view, 80, 24);
    // Half of the run, half of the width: 39 columns less the border and the scale.
    let widest = drawn
        .lines()
        .map(|line| {
            line.chars()
                .take(40)
                .filter(|c| ('▁'..='█').contains(c))
                .count()
        })
        .max();
    assert!(widest >= Some(12), "{drawn}");
    assert!(drawn.contains(" 0"), "{drawn}");
}

#[test]
fn without_a_server_there_is_no_box_for_one() {
    let mut view = view(5);
    view.target = None;
    let drawn = drawn(&view, 80, 24);
    assert!(
        !drawn.contains("server") && drawn.contains("in flight"),
        "{drawn}"
    );
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let mut view = view(3);
    view.requests = Some(100);
    view.duration = None;
    for (width, height) in [(1, 1), (2, 3), (10, 4), (20, 100), (300, 2), (400, 90)] {
        assert!(!drawn(&view, width, height).is_empty());
    }
    for _ in 0..PAST * 2 {
        push(&mut view.per_second, u64::MAX);
    }
    assert_eq!(view.per_second.len(), PAST);
    drawn(&view, 200, 50);
}

#[test]
fn keys_that_stop() {
    for keys in [&b"q"[..], b"\x1b", b"\x03", b"xq"] {
        assert!(asks_to_stop(keys), "{keys:?}");
    }
    for keys in [&b""[..], b"x", b"\x1b[A", b"\x1bOq"] {
        assert!(!asks_to_stop(keys), "{keys:?}");
    }
}
