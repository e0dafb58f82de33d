//! The course of a run as a table: one row a second.

use std::time::Duration;

use plimsoll_model::{Bounded, Cost, ObservationGap, ResourceSample, RunSummary, Tick};
use serde::Serialize;

use crate::document::{censored, microseconds, rounded};

/// One row for each tick, with the state of the target at its end where that was observed.
///
/// The names of the columns carry the units. `cpu_percent` is that of the target over the tick, 100
/// being one core.
pub fn series_csv(run: &RunSummary) -> String {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer.write_record(COLUMNS).expect(IN_MEMORY);
    for (tick, before, after) in course(run) {
        writer.serialize(row(tick, before, after)).expect(IN_MEMORY);
    }
    let bytes = writer.into_inner().expect(IN_MEMORY);
    String::from_utf8(bytes).expect("numbers are text")
}

/// Each tick with the state of the target at its start and at its end.
pub(crate) fn course(
    run: &RunSummary,
) -> impl Iterator<Item = (&Tick, Option<&ResourceSample>, Option<&ResourceSample>)> {
    let samples = run
        .target
        .as_ref()
        .map_or(&[][..], |target| &target.samples);
    let mut observed = run.observed.iter();
    let observed = observed.find(|server| {
        let target = run.target.as_ref();
        target.is_some_and(|target| target.name == server.target)
    });
    let gaps = observed.map_or(&[][..], |server| &server.gaps);
    course_of(&run.ticks, samples, gaps)
}

/// Each tick with the state of a server at its start and at its end; without one where a gap is longer than the tick.
pub(crate) fn course_of<'a>(
    ticks: &'a [Tick],
    samples: &'a [ResourceSample],
    gaps: &'a [ObservationGap],
) -> impl Iterator<
    Item = (
        &'a Tick,
        Option<&'a ResourceSample>,
        Option<&'a ResourceSample>,
    ),
> {
    let mut before = samples.first();
    ticks.iter().map(move |tick| {
        // The sample that belongs to the end of a tick may be a few milliseconds late.
        let taken = samples.partition_point(|sample| sample.at <= tick.at + LATE);
        let began = tick.at.saturating_sub(tick.length);
        let is_unseen = |gap: &ObservationGap| gap.from <= began + LATE && gap.to >= tick.at;
        let after = samples
            .get(..taken)
            .and_then(<[ResourceSample]>::last)
            .filter(|_| !gaps.iter().any(is_unseen));
        let state = (tick, before, after);
        before = after.or(before);
        state
    })
}

/// A sample that is later than the end of its second by this still counts for it: a fifth of the time between two samples.
const LATE: Duration = Duration::from_millis(20);

const IN_MEMORY: &str = "writing to memory does not fail, and every row has the same columns";

const COLUMNS: [&str; 20] = [
    "at_us",
    "length_us",
    "warm_up",
    "ok",
    "failed",
    "other_errors",
    "received_bytes",
    "in_flight",
    "p50_us",
    "p99_us",
    "max_us",
    "target_cpu_percent",
    "target_memory_bytes",
    "target_anonymous_bytes",
    "target_file_bytes",
    "target_fds",
    "target_threads",
    "target_processes",
    "grace",
    "censored",
];

/// In the order of [`COLUMNS`].
#[derive(Serialize)]
struct Row {
    at_us: f64,
    length_us: f64,
    warm_up: bool,
    ok: u64,
    failed: u64,
    other_errors: u64,
    received_bytes: u64,
    in_flight: u64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    max_us: Option<f64>,
    cpu_percent: Option<f64>,
    memory_bytes: Option<u64>,
    anonymous_bytes: Option<u64>,
    file_bytes: Option<u64>,
    fds: Option<u64>,
    threads: Option<u64>,
    processes: Option<u64>,
    grace: bool,
    /// Names of those of the latencies that are lower bounds, with spaces between them.
    censored: String,
}

fn row(tick: &Tick, before: Option<&ResourceSample>, after: Option<&ResourceSample>) -> Row {
    let low = |time: Option<Bounded<Duration>>| time.map(|time| microseconds(time.low()));
    Row {
        at_us: microseconds(tick.at),
        length_us: microseconds(tick.length),
        warm_up: tick.warm_up,
        ok: tick.ok,
        failed: tick.failed,
        other_errors: tick.other_errors,
        received_bytes: tick.bytes_received,
        in_flight: tick.in_flight,
        p50_us: low(tick.p50),
        p99_us: low(tick.p99),
        max_us: low(tick.max),
        cpu_percent: before
            .zip(after)
            .and_then(|(before, after)| Cost::between(before, after).cpu_percent())
            .map(rounded),
        memory_bytes: after.map(|sample| sample.memory.total_bytes()),
        anonymous_bytes: after.map(|sample| sample.memory.anonymous_bytes),
        file_bytes: after.map(|sample| sample.memory.file_bytes),
        // Every server holds some; none means that they could not be counted.
        fds: after.map(|sample| sample.fds).filter(|fds| *fds > 0),
        threads: after.map(|sample| sample.threads),
        processes: after.map(|sample| sample.processes),
        grace: tick.grace,
        censored: censored(tick)
            .filter(|name| COLUMNS.contains(name))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_row_holds_a_second_and_the_state_of_the_target() {
        insta::assert_snapshot!(series_csv(&fixture::closed()));
    }

    #[test]
    fn without_a_target_its_columns_are_empty() {
        let csv = series_csv(&fixture::failing());
        for line in csv.lines().skip(1) {
            assert!(line.ends_with(",,,,,,,,false,"), "{line}");
            assert_eq!(line.split(',').count(), COLUMNS.len());
        }
        assert_eq!(csv.lines().count(), 1 + fixture::failing().ticks.len());
    }

    #[test]
    fn a_second_within_a_gap_has_no_state() {
        let run = fixture::closed();
        let samples = &run.target.as_ref().unwrap().samples;
        let gap = ObservationGap {
            from: Duration::from_millis(1_001),
            to: Duration::from_millis(2_500),
            reason: "away".to_owned(),
        };
        let kept: Vec<_> = samples
            .iter()
            .filter(|sample| sample.at <= gap.from || sample.at >= gap.to)
            .copied()
            .collect();
        let states = course_of(&run.ticks, &kept, std::slice::from_ref(&gap));
        let states: Vec<_> = states
            .map(|(_, before, after)| (before.is_some(), after.map(|it| it.at.as_millis())))
            .collect();
        // The third second begins within the gap: its cost is that of both.
        assert_eq!(
            states,
            [(true, Some(1_001)), (true, None), (true, Some(3_001))]
        );
    }

    #[test]
    fn an_empty_run_is_a_header() {
        assert_eq!(series_csv(&fixture::empty()).lines().count(), 1);
    }
}
