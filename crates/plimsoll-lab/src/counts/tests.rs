#![expect(clippy::float_cmp, reason = "the expected values are exact")]

use proptest::prelude::*;

use super::*;

macro_rules! captured {
    ($name:literal) => {
        include_str!(concat!("../../tests/data/", $name))
    };
}

fn tally(output: &str) -> Tally {
    read(output).unwrap_or_else(|error| panic!("{error}\n{output}"))
}

#[test]
fn wrk() {
    let with_latency = tally(captured!("wrk-latency.txt"));
    assert_eq!(
        with_latency,
        Tally {
            source: "wrk",
            ok: 173_095,
            failed: 0,
            error_statuses: 0,
            requests_per_second: Some(157_367.82),
            mean_us: None,
            p50_us: Some(36.0),
            p90_us: Some(64.0),
            p95_us: None,
            p99_us: Some(137.0),
            p99_9_us: None,
        }
    );
    let plain = tally(captured!("wrk.txt"));
    assert_eq!(
        (plain.ok, plain.p50_us, plain.p99_us),
        (172_339, None, None)
    );
    let statuses = tally(captured!("wrk-bad.txt"));
    assert_eq!((statuses.ok, statuses.failed), (73_735, 0));
    assert!(statuses.error_statuses > 0, "{statuses:?}");
    let timeouts = tally(captured!("wrk-timeout.txt"));
    assert_eq!(timeouts.ok, 0);
}

#[test]
fn wrk_adds_its_socket_errors() {
    let output = captured!("wrk.txt").replace(
        "Requests/sec:",
        "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec:",
    );
    assert_eq!(tally(&output).failed, 10);
}

#[test]
fn h2load() {
    let fine = tally(captured!("h2load.txt"));
    assert_eq!((fine.source, fine.ok, fine.failed), ("h2load", 139_194, 0));
    assert_eq!(fine.requests_per_second, Some(139_194.0));
    assert_eq!(fine.p50_us, None);
    let statuses = tally(captured!("h2load-bad.txt"));
    assert_eq!((statuses.ok, statuses.failed), (1000, 0));
    assert_eq!(statuses.error_statuses, 1000);
    let refused = tally(captured!("h2load-refused.txt"));
    assert_eq!((refused.ok, refused.failed), (0, 10));
}

#[test]
fn oha_as_text() {
    let fine = tally(captured!("oha.txt"));
    assert_eq!((fine.source, fine.ok, fine.failed), ("oha", 87_030, 0));
    assert_eq!(fine.requests_per_second.unwrap().round(), 86_871.0);
    assert_eq!((fine.p50_us, fine.p99_us), (Some(73.4), Some(193.5)));
    assert_eq!((fine.p90_us, fine.p95_us), (Some(117.0), Some(131.6)));
    assert_eq!(fine.p99_9_us, Some(2146.0));
    let refused = tally(captured!("oha-refused.txt"));
    assert_eq!((refused.ok, refused.failed, refused.p50_us), (0, 4, None));
    assert_eq!(refused.p99_9_us, None);
}

#[test]
fn oha_as_json() {
    let fine = tally(captured!("oha.json"));
    assert_eq!((fine.source, fine.failed), ("oha JSON", 0));
    assert_eq!(fine.ok, 94_510);
    assert!((fine.p50_us.unwrap() - 77.172).abs() < 1e-9);
    assert!((fine.p99_us.unwrap() - 166.846).abs() < 1e-9);
    assert!((fine.p99_9_us.unwrap() - 1167.932).abs() < 1e-9);
    let statuses = tally(captured!("oha-bad.json"));
    assert_eq!((statuses.ok, statuses.failed), (100, 0));
    assert_eq!(statuses.error_statuses, 100);
    let refused = tally(captured!("oha-refused.json"));
    assert_eq!((refused.ok, refused.failed, refused.p50_us), (0, 10, None));
}

#[test]
fn k6() {
    let fine = tally(captured!("k6.txt"));
    assert_eq!(
        fine,
        Tally {
            source: "k6",
            ok: 17_132,
            failed: 0,
            error_statuses: 0,
            requests_per_second: Some(17_119.635_72),
            mean_us: Some(438.24),
            p50_us: Some(233.51),
            p90_us: Some(634.68),
            p95_us: Some(1480.0),
            p99_us: None,
            p99_9_us: None,
        }
    );
    let with_p99 = tally(captured!("k6-p99.txt"));
    assert_eq!(with_p99.p99_us, Some(4660.0));
    let renamed = captured!("k6-p99.txt").replace("p(99)=", "p(99.9)=");
    let with_p99_9 = tally(&renamed);
    assert_eq!(
        (with_p99_9.p99_us, with_p99_9.p99_9_us),
        (None, Some(4660.0))
    );
    let statuses = tally(captured!("k6-bad.txt"));
    assert_eq!((statuses.ok, statuses.failed), (0, 16_451));
    assert_eq!(statuses.requests_per_second, Some(0.0));
}

#[test]
fn ab() {
    let fine = tally(captured!("ab.txt"));
    assert_eq!((fine.source, fine.ok, fine.failed), ("ab", 50_000, 0));
    assert_eq!(fine.requests_per_second, Some(172_156.15));
    assert_eq!((fine.p50_us, fine.p99_us), (None, None));
    assert_eq!(tally(captured!("ab-bad.txt")).ok, 100);
    let some_lengths_differ = captured!("ab.txt").replace(
        "Failed requests:        0",
        "Failed requests:        9\n   (Connect: 1, Receive: 2, Length: 3, Exceptions: 3)",
    );
    let tally = tally(&some_lengths_differ);
    assert_eq!((tally.ok, tally.failed), (49_994, 6));
}

#[test]
fn our_own_summary_tolerates_absence() {
    let full = r#"{"schema": "plimsoll.load.summary/1",
        "counts": {"started": 15, "ok": 10, "failed": 2, "aborted": 3, "error_statuses": 4},
        "requests_per_second": 3.5,
        "latency": {"from_started": {"p50_us": 40.0, "p90_us": 70, "p95_us": 80, "p99_us": 90, "p99_9_us": 120.5}}}"#;
    assert_eq!(
        tally(full),
        Tally {
            source: "plimsoll load --json",
            ok: 10,
            failed: 5,
            error_statuses: 4,
            requests_per_second: Some(3.5),
            mean_us: None,
            p50_us: Some(40.0),
            p90_us: Some(70.0),
            p95_us: Some(80.0),
            p99_us: Some(90.0),
            p99_9_us: Some(120.5),
        }
    );
    let bounded = full.replace(
        r#""p99_9_us": 120.5"#,
        r#""p99_9_us": 120.5, "censored": ["p99_9_us"]"#,
    );
    assert_eq!(tally(&bounded).p99_us, Some(90.0));
    assert_eq!(tally(&bounded).p99_9_us, None, "a lower bound is no figure");
    let short = tally(r#"{"schema":"plimsoll.load.summary/1","counts":{"ok":7}}"#);
    assert_eq!((short.ok, short.failed, short.p50_us), (7, 0, None));
    let later = read(r#"{"schema":"plimsoll.load.summary/2","counts":{"ok":7}}"#).unwrap_err();
    assert!(later.to_string().contains("schema"), "{later}");
}

#[test]
fn stub_status_reads_the_third_number() {
    assert_eq!(
        stub_status::requests(captured!("stub_status.txt")),
        Some(791_143)
    );
    for page in ["", "404", "server accepts handled requests\n 1 2\n"] {
        assert_eq!(stub_status::requests(page), None, "{page}");
    }
    assert_eq!(stub_status::between(5, 16), 10);
    assert_eq!(stub_status::between(16, 5), 0);
}

#[test]
fn unknown_output_says_what_is_known() {
    let message = read("1000 transactions, 100 % availability\n")
        .unwrap_err()
        .to_string();
    for name in KNOWN {
        assert!(message.contains(name), "{message}");
    }
    assert!(message.contains("--count-from"), "{message}");
}

const CAPTURED: [&str; 10] = [
    captured!("wrk-latency.txt"),
    captured!("wrk-timeout.txt"),
    captured!("h2load.txt"),
    captured!("oha.txt"),
    captured!("oha.json"),
    captured!("k6.txt"),
    captured!("k6-p99.txt"),
    captured!("ab.txt"),
    captured!("stub_status.txt"),
    r#"{"schema":"plimsoll.load.summary/1","counts":{"ok":7}}"#,
];

proptest! {
    /// A tool that was killed, or that writes nonsense, must not take the comparison down.
    #[test]
    fn no_damage_panics(
        which in 0..CAPTURED.len(),
        at in any::<prop::sample::Index>(),
        length in 0_usize..40,
        replacement in "[ -~µ\n]{0,12}",
    ) {
        let output: Vec<char> = CAPTURED[which].chars().collect();
        let start = at.index(output.len());
        let end = (start + length).min(output.len());
        let damaged: String = output[..start]
            .iter()
            .copied()
            .chain(replacement.chars())
            .chain(output[end..].iter().copied())
            .collect();
        if let Ok(tally) = read(&damaged) {
            prop_assert!(KNOWN.contains(&tally.source));
        }
        stub_status::requests(&damaged);
        let cut: String = output[..start].iter().collect();
        read(&cut).ok();
    }
}
