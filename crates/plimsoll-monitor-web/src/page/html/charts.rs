//! Charts of response times: their percentiles, and the phases of checks on top of one another.

use std::time::Duration;

use askama::Template;
use jiff::Zoned;
use jiff::tz::TimeZone;
use plimsoll_model::Phase;
use plimsoll_monitor::config::Language;
use plimsoll_monitor::store::Rollup;
use plimsoll_report::page::short_time;
use plimsoll_report::plot::{Axis, Line, Plot, Stack};

use crate::language::Texts as _;
use crate::page::html::rendered;

/// Charts of fewer points show dots instead of lines.
const FEW_POINTS: usize = 4;

/// Percentiles of response times as a plot; empty without any.
///
/// - `title`: the first and the last time of the buckets and their zone follow it.
/// - `length`: of the time that the buckets are of.
pub(crate) fn chart(
    t: Language,
    title: &str,
    zone: &TimeZone,
    length: Duration,
    buckets: &[Rollup],
) -> String {
    let line = |name: &str, q: f64| {
        let points = buckets.iter().enumerate();
        Line {
            label: name.to_owned(),
            points: points
                .map(|(at, bucket)| {
                    let micros = bucket.took.quantile(q);
                    (at as f64, micros.map(|micros| micros as f64))
                })
                .collect(),
            // A line needs two points beside each other.
            is_dots: buckets.len() < FEW_POINTS,
        }
    };
    let plot = Plot {
        title: dated(t, title, zone, buckets),
        x: names(zone, length, buckets),
        across: "",
        y: Axis::Linear(short_time),
        lines: vec![line("p50", 0.5), line("p95", 0.95), line("p99", 0.99)],
        shaded: outages(buckets),
        bands: Vec::new(),
    };
    if plot.is_empty() {
        String::new()
    } else {
        plot.html()
    }
}

/// Stretches of buckets in which at least half of the results were down.
fn outages(buckets: &[Rollup]) -> Vec<(f64, f64)> {
    let last = buckets.len().saturating_sub(1) as f64;
    let is_down = |bucket: &Rollup| {
        let [up, degraded, down, _] = bucket.counts;
        down > 0 && down >= up + degraded
    };
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (at, _) in buckets.iter().enumerate().filter(|(_, one)| is_down(one)) {
        let (from, to) = ((at as f64 - 0.5).max(0.0), (at as f64 + 0.5).min(last));
        match all.last_mut() {
            Some((_, end)) if *end >= from => *end = to,
            _ => all.push((from, to)),
        }
    }
    all
}

/// The title with the first and the last time of the buckets and their zone.
fn dated(t: Language, title: &str, zone: &TimeZone, buckets: &[Rollup]) -> String {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return title.to_owned();
    };
    let (first, last) = (begin(first, zone), begin(last, zone));
    let until = if first.date() == last.date() {
        last.strftime("%H:%M").to_string()
    } else {
        moment(t, &last)
    };
    let zone = last.strftime("%Z");
    format!("{title}, {} – {until} {zone}", moment(t, &first))
}

/// When a bucket begins.
fn begin(bucket: &Rollup, zone: &TimeZone) -> Zoned {
    bucket.start.to_jiff().to_zoned(zone.clone())
}

/// A date with its time.
fn moment(t: Language, at: &Zoned) -> String {
    format!("{} {}", t.date(at.date()), at.strftime("%H:%M"))
}

/// The axis of the buckets: times of a day, or days.
fn names(zone: &TimeZone, length: Duration, buckets: &[Rollup]) -> Axis {
    let pattern = if length <= Duration::from_hours(24) {
        "%H:%M"
    } else {
        "%m-%d"
    };
    let label = |bucket| begin(bucket, zone).strftime(pattern).to_string();
    Axis::Names(buckets.iter().map(label).collect())
}

/// What is drawn, from the bottom to the top. Sending is not stored: it is part of what the stored phases leave of a check.
const PARTS: [Phase; 6] = [
    Phase::Dns,
    Phase::Connect,
    Phase::Tls,
    Phase::Send,
    Phase::Wait,
    Phase::Receive,
];

/// The mean times of the [`PARTS`] in a bucket, in microseconds.
fn parts(bucket: &Rollup) -> Option<[f64; PARTS.len()]> {
    let whole = bucket.took.mean()?;
    let stored = bucket.mean_phases()?;
    let sum: f64 = stored.iter().map(|(_, mean)| mean).sum();
    Some(PARTS.map(|part| {
        let mut stored = stored.iter();
        match stored.find(|(phase, _)| *phase == part) {
            Some((_, mean)) => *mean,
            None => (whole - sum).max(0.0),
        }
    }))
}

const fn name(part: Phase) -> &'static str {
    match part {
        Phase::Dns => "took_dns",
        Phase::Connect => "took_connect",
        Phase::Tls => "took_tls",
        Phase::Blocked | Phase::Send => "took_rest",
        Phase::Wait => "took_wait",
        Phase::Receive => "took_receive",
    }
}

#[derive(Template)]
#[template(path = "phases.html")]
struct PhasesFigure {
    t: Language,
    title: String,
    plot: String,
    heads: Vec<&'static str>,
    /// The times of buckets with the values of `heads`.
    rows: Vec<(String, Vec<String>)>,
}

/// The phases of checks as a stacked plot, with a table of its values; empty unless checks have several phases.
///
/// - `length`: of the time that the buckets are of.
pub(crate) fn phases(t: Language, zone: &TimeZone, length: Duration, buckets: &[Rollup]) -> String {
    let means: Vec<_> = buckets.iter().map(parts).collect();
    let is_measured = |position: &usize| {
        let mut known = means.iter().flatten();
        known.any(|mean| mean[*position] > 0.0)
    };
    let shown: Vec<usize> = (0..PARTS.len()).filter(is_measured).collect();
    let is_stored = |position: &&usize| PARTS[**position] != Phase::Send;
    if shown.iter().filter(is_stored).count() < 2 {
        return String::new();
    }
    let line = |position: &usize| {
        let part = PARTS[*position];
        let points = means.iter().enumerate();
        let line = Line {
            label: t.text(name(part)).to_owned(),
            points: points
                .map(|(at, mean)| (at as f64, mean.map(|mean| mean[*position])))
                .collect(),
            is_dots: false,
        };
        (part.index(), line)
    };
    let title = dated(t, t.text("phases"), zone, buckets);
    let plot = Stack {
        title: title.clone(),
        x: names(zone, length, buckets),
        across: "",
        y: Axis::Linear(short_time),
        lines: shown.iter().map(line).collect(),
        shaded: outages(buckets),
    };
    let known = buckets.iter().zip(&means);
    let rows = known.filter_map(|(bucket, mean)| {
        let mean = (*mean)?;
        let values = shown.iter().map(|position| mean[*position]);
        let values = values.chain([mean.iter().sum()]).map(|mean| time(t, mean));
        Some((moment(t, &begin(bucket, zone)), values.collect()))
    });
    let heads = shown.iter().map(|position| name(PARTS[*position]));
    rendered(&PhasesFigure {
        plot: plot.html(),
        heads: heads.chain(["took_whole"]).map(|key| t.text(key)).collect(),
        rows: rows.collect(),
        title,
        t,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "means of microseconds are not negative, and far below the largest number"
)]
fn time(t: Language, micros: f64) -> String {
    t.latency(micros.round() as u64)
}

#[cfg(test)]
mod tests {
    use plimsoll_monitor::detect::status::Status;
    use plimsoll_monitor::store::{MonitorId, ResultRow};
    use plimsoll_monitor::time::Timestamp;

    use super::*;

    const QUARTER: i64 = 15 * 60_000;

    fn row(status: Status, took_us: u64, phases_us: [Option<u64>; 5]) -> ResultRow {
        ResultRow {
            monitor: MonitorId(1),
            region: 0,
            at: Timestamp(0),
            status,
            took_us,
            phases_us,
            code: None,
            certificate_days: None,
            detail: None,
        }
    }

    fn bucket(number: i64, rows: &[ResultRow]) -> Rollup {
        let start = Timestamp::parse("2026-03-29T00:00:00Z").unwrap();
        let mut bucket = Rollup::at(Timestamp(start.0 + number * QUARTER));
        for row in rows {
            bucket.add(row);
        }
        bucket
    }

    /// The first check opens a connection over TLS, the second one finds it open; a failed one counts nowhere.
    fn buckets() -> Vec<Rollup> {
        let fresh = [
            Some(2_000),
            Some(4_000),
            Some(10_000),
            Some(20_000),
            Some(3_000),
        ];
        let kept = [None, None, None, Some(20_000), Some(1_000)];
        let failed = [Some(900_000), None, None, None, None];
        vec![
            bucket(
                0,
                &[
                    row(Status::Up, 40_000, fresh),
                    row(Status::Degraded, 22_000, kept),
                    row(Status::Down, 900_000, failed),
                ],
            ),
            bucket(3, &[row(Status::Down, 900_000, failed)]),
            bucket(4, &[row(Status::Up, 41_000, fresh)]),
        ]
    }

    fn drawn(t: Language, buckets: &[Rollup]) -> String {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        phases(t, &zone, Duration::from_hours(24), buckets)
    }

    #[test]
    fn phases_lie_on_one_another_up_to_the_mean_of_whole_checks() {
        let shown = drawn(Language::English, &buckets());
        let title = "Mean time of a check by phase, 29 March 2026 01:00 – 03:00 CEST";
        assert!(
            shown.contains(&format!("<figcaption>{title}<span class=\"legend\">")),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("role=\"img\" aria-label=\"{title}\"")),
            "{shown}"
        );
        assert_eq!(shown.matches("class=\"area ").count(), 6, "{shown}");
        // Checks that failed are no part of it: there is a gap.
        assert!(!shown.contains("900"), "{shown}");
        let heads = [
            "DNS",
            "connect",
            "TLS",
            "send and other",
            "wait",
            "receive",
            "in all",
        ];
        let row = |cells: &[&str]| {
            let values = heads.iter().zip(&cells[1..]);
            let values =
                values.map(|(head, value)| format!("<td data-head=\"{head}\">{value}</td>"));
            let values = values.collect::<String>();
            format!("<tr><th scope=\"row\">{}</th>{values}</tr>", cells[0])
        };
        for head in heads {
            let cell = format!("<th scope=\"col\">{head}</th>");
            assert!(shown.contains(&cell), "{head}: {shown}");
        }
        for cells in [
            [
                "29 March 2026 01:00",
                "1.0\u{a0}ms",
                "2.0\u{a0}ms",
                "5.0\u{a0}ms",
                "1.0\u{a0}ms",
                "20\u{a0}ms",
                "2.0\u{a0}ms",
                "31\u{a0}ms",
            ],
            [
                "29 March 2026 03:00",
                "2.0\u{a0}ms",
                "4.0\u{a0}ms",
                "10\u{a0}ms",
                "2.0\u{a0}ms",
                "20\u{a0}ms",
                "3.0\u{a0}ms",
                "41\u{a0}ms",
            ],
        ] {
            assert!(shown.contains(&row(&cells)), "{cells:?}: {shown}");
        }
        assert_eq!(shown.matches("scope=\"row\"").count(), 2, "{shown}");
    }

    #[test]
    fn outages_are_shaded_from_their_first_bucket_to_their_last() {
        let up = || row(Status::Up, 40_000, [None; 5]);
        let down = || row(Status::Down, 900_000, [None; 5]);
        let buckets = [
            bucket(0, &[down()]),
            bucket(1, &[up(), up(), down()]),
            bucket(2, &[up(), down()]),
            bucket(3, &[down()]),
            bucket(4, &[up()]),
            bucket(5, &[up(), down(), down()]),
        ];
        assert_eq!(outages(&buckets), [(0.0, 0.5), (1.5, 3.5), (4.5, 5.0)]);
        assert!(outages(&[]).is_empty());
        let zone = TimeZone::UTC;
        let day = Duration::from_hours(24);
        let shown = chart(Language::English, "Times", &zone, day, &buckets);
        assert_eq!(shown.matches("class=\"shade\"").count(), 3, "{shown}");
    }

    #[test]
    fn the_figure_is_in_the_language_of_the_reader() {
        let shown = drawn(Language::German, &buckets());
        assert!(shown.contains("<th scope=\"col\">Warten</th>"), "{shown}");
        assert!(shown.contains("29. März 2026 03:00"), "{shown}");
        assert!(
            shown.contains("<td data-head=\"DNS\">2,0\u{a0}ms</td>"),
            "{shown}"
        );
    }

    #[test]
    fn one_phase_makes_no_stack() {
        let only_wait = [None, None, None, Some(20_000), None];
        let buckets = [bucket(0, &[row(Status::Up, 21_000, only_wait)])];
        assert_eq!(drawn(Language::English, &buckets), "");
        assert_eq!(drawn(Language::English, &[]), "");
        // What failed has phases, and no mean.
        let failed = [Some(1_000), Some(1_000), None, None, None];
        let buckets = [bucket(0, &[row(Status::Down, 21_000, failed)])];
        assert_eq!(drawn(Language::English, &buckets), "");
    }
}
