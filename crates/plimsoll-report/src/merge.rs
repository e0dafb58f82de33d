//! One result out of those of several generators that loaded the same target at the same time.
//!
//! Counters are added and histograms merged, so counts and percentiles are exactly those of one
//! generator that had done it all. What cannot be had that way is left out: percentiles of single
//! seconds, thresholds, and how far the cost of a server may be off.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use plimsoll_model::{FailureKind, Histogram, LatencyByStatus, Phase, Times, TimesView};

use crate::document::{
    CostDocument, FailureDocument, LatencyDocument, PhaseDocument, SummaryDocument, TickDocument,
    TimesDocument,
};
use crate::hdr::{CENSORED, CENSORED_FROM_STARTED, FROM_STARTED, OF_ERRORS, OF_TIMEOUTS};
use crate::record::RunRecord;

/// Starts further apart than this are reported.
const TOGETHER: Duration = Duration::from_secs(1);

/// Why results cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("there is nothing to merge")]
    Nothing,
    /// They are not of the same load.
    #[error("the {what} of `{one}` and `{other}` differ: {first} and {second}")]
    Different {
        /// One run's name.
        one: String,
        /// The other's.
        other: String,
        /// The value that has to be the same.
        what: &'static str,
        /// That of the one.
        first: String,
        /// That of the other.
        second: String,
    },
}

/// The result of all generators together, called `name`.
///
/// Rates are added, each over its own window. What the target and each observed server cost is taken from the first
/// result that has it, and divided by the exchanges of all generators.
pub fn merged(name: &str, runs: &[RunRecord]) -> Result<RunRecord, MergeError> {
    let (first, rest) = runs.split_first().ok_or(MergeError::Nothing)?;
    for run in rest {
        same_load(first, run)?;
    }
    let mut intervals: BTreeMap<Option<String>, Histogram> = BTreeMap::new();
    for (tag, histogram) in runs.iter().flat_map(|run| &run.intervals) {
        intervals.entry(tag.clone()).or_default().merge(histogram);
    }
    let tagged = |tag: Option<&str>| {
        let found = intervals.get(&tag.map(str::to_owned));
        found.cloned().unwrap_or_default()
    };
    let latency = Times::from_parts(tagged(None), tagged(Some(CENSORED)));
    let mut summary = first.summary.clone();
    for run in rest {
        add(&mut summary, &run.summary);
    }
    times(&mut summary, &latency, &intervals);
    if rest.is_empty() {
        keep_share(&mut summary.latency, &first.summary.latency);
    }
    cost(&mut summary.generator.cost);
    if !rest.is_empty() {
        by_status(&mut summary, latency.observed(), &intervals, runs);
        servers(&mut summary);
    }
    summary.thresholds.clear();
    summary
        .failures
        .sort_by_key(|failure| std::cmp::Reverse(failure.count));
    let differences = apart(runs);
    summary.conditions.warnings.extend(differences);
    Ok(RunRecord {
        name: name.to_owned(),
        summary,
        latency,
        intervals: intervals.into_iter().collect(),
    })
}

/// Checks that both results are of the same URL and load.
///
/// The port of an embedded origin is another one in each run and does not count.
pub fn same_load(one: &RunRecord, other: &RunRecord) -> Result<(), MergeError> {
    let facts = |run: &RunRecord| {
        let load = &run.summary.load;
        let target = run.summary.target.as_ref();
        let is_embedded = target.is_some_and(|target| target.name == "embedded origin");
        let url = if is_embedded {
            "embedded origin".to_owned()
        } else {
            load.url.clone()
        };
        [
            ("URLs", url),
            ("methods", load.method.clone()),
            ("protocols", load.protocol.clone()),
            ("loops", load.model.clone()),
            ("streams", load.streams.to_string()),
            ("warm-ups", format!("{} µs", load.warm_up_us)),
        ]
    };
    for ((what, first), (_, second)) in facts(one).into_iter().zip(facts(other)) {
        if first != second {
            return Err(MergeError::Different {
                one: one.name.clone(),
                other: other.name.clone(),
                what,
                first,
                second,
            });
        }
    }
    Ok(())
}

/// Adds what can be added.
fn add(sum: &mut SummaryDocument, run: &SummaryDocument) {
    sum.load.connections += run.load.connections;
    sum.load.workers += run.load.workers;
    sum.load.rate_per_second = sum
        .load
        .rate_per_second
        .zip(run.load.rate_per_second)
        .map(|(sum, rate)| sum + rate);
    sum.load.requests = sum
        .load
        .requests
        .zip(run.load.requests)
        .map(|(sum, requests)| sum + requests);
    sum.interrupted |= run.interrupted;
    sum.window_us = sum.window_us.max(run.window_us);
    sum.requests_per_second += run.requests_per_second;
    sum.received_bytes_per_second += run.received_bytes_per_second;
    for request in &run.requests {
        match sum.requests.iter_mut().find(|it| it.name == request.name) {
            Some(known) => known.merge(request),
            None => sum.requests.push(request.clone()),
        }
    }
    let (counts, other) = (&mut sum.counts, &run.counts);
    counts.started += other.started;
    counts.ok += other.ok;
    counts.failed += other.failed;
    counts.aborted += other.aborted;
    counts.failed_status += other.failed_status;
    counts.error_statuses += other.error_statuses;
    counts.unmet += other.unmet;
    counts.dropped += other.dropped;
    counts.missed += other.missed;
    counts.errors += other.errors;
    counts.reconnects += other.reconnects;
    counts.redirects += other.redirects;
    counts.warm_up += other.warm_up;
    counts.completed_in_window += other.completed_in_window;
    sum.sent_bytes += run.sent_bytes;
    sum.received_bytes += run.received_bytes;
    sum.sent_bytes_in_window += run.sent_bytes_in_window;
    sum.received_bytes_in_window += run.received_bytes_in_window;
    sum.connections_opened += run.connections_opened;
    if let (Some(sum), Some(messages)) = (&mut sum.messages, &run.messages) {
        sum.sent += messages.sent;
        sum.received += messages.received;
    }
    if let (Some(sum), Some(decoded)) = (&mut sum.decoded, &run.decoded) {
        sum.encoded_bytes += decoded.encoded_bytes;
        sum.decoded_bytes += decoded.decoded_bytes;
    }
    for (status, count) in &run.statuses {
        *sum.statuses.entry(*status).or_default() += count;
    }
    for (condition, count) in &run.unmet {
        *sum.unmet.entry(condition.clone()).or_default() += count;
    }
    if let (Some(sum), Some(grpc)) = (&mut sum.grpc, &run.grpc) {
        for (status, count) in &grpc.statuses {
            *sum.statuses.entry(status.clone()).or_default() += count;
        }
        for (status, message) in &grpc.messages {
            let known = sum.messages.entry(status.clone());
            known.or_insert_with(|| message.clone());
        }
        sum.messages_received += grpc.messages_received;
        sum.messages_per_second += grpc.messages_per_second;
    }
    for failure in &run.failures {
        let alike = |known: &&mut FailureDocument| {
            known.phase == failure.phase && known.kind == failure.kind
        };
        match sum.failures.iter_mut().find(alike) {
            Some(known) => known.count += failure.count,
            None => sum.failures.push(failure.clone()),
        }
    }
    if sum.target.is_none() {
        sum.target.clone_from(&run.target);
    }
    for server in &run.observed {
        if sum.observed.iter().all(|known| known.name != server.name) {
            sum.observed.push(server.clone());
        }
    }
    let (generator, other) = (&mut sum.generator, &run.generator);
    generator.cost.cpu_user_us += other.cost.cpu_user_us;
    generator.cost.cpu_system_us += other.cost.cpu_system_us;
    generator.cost.window_us = generator.cost.window_us.max(other.cost.window_us);
    generator.cost.exchanges += other.cost.exchanges;
    generator.peak_memory_bytes = generator
        .peak_memory_bytes
        .zip(other.peak_memory_bytes)
        .map(|(sum, bytes)| sum + bytes);
    generator.busiest_worker_percent = generator
        .busiest_worker_percent
        .max(other.busiest_worker_percent);
    // Of the lateness there is no histogram: the worse one bounds it.
    generator.lag_p99_us = generator.lag_p99_us.max(other.lag_p99_us);
    generator.lag_max_us = generator.lag_max_us.max(other.lag_max_us);
    if generator.saturated.is_none() {
        generator.saturated.clone_from(&other.saturated);
    }
    for warning in &run.conditions.warnings {
        if !sum.conditions.warnings.contains(warning) {
            sum.conditions.warnings.push(warning.clone());
        }
    }
    ticks(&mut sum.ticks, &run.ticks);
}

/// Adds the seconds one by one; one that only one of them has stays as it is.
fn ticks(sum: &mut Vec<TickDocument>, run: &[TickDocument]) {
    let larger = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    for (position, tick) in run.iter().enumerate() {
        let Some(sum) = sum.get_mut(position) else {
            sum.push(tick.clone());
            continue;
        };
        sum.grace &= tick.grace;
        sum.ok += tick.ok;
        sum.failed += tick.failed;
        sum.other_errors += tick.other_errors;
        sum.received_bytes += tick.received_bytes;
        sum.in_flight += tick.in_flight;
        // Extremes of different moments cannot be added.
        (sum.in_flight_least, sum.in_flight_most) = (None, None);
        sum.max_us = larger(sum.max_us, tick.max_us);
        sum.censored.retain(|name| name == "max_us");
        if sum.censored.is_empty() && tick.censored.iter().any(|name| name == "max_us") {
            sum.censored.push("max_us".to_owned());
        }
        for percentile in [
            &mut sum.p50_us,
            &mut sum.p90_us,
            &mut sum.p99_us,
            &mut sum.p99_9_us,
        ] {
            *percentile = None;
        }
        sum.phases_us.clear();
        for bucket in &tick.spread {
            let alike = |known: &&mut crate::document::SpreadDocument| {
                known.up_to_us.total_cmp(&bucket.up_to_us).is_eq()
            };
            match sum.spread.iter_mut().find(alike) {
                Some(known) => known.count += bucket.count,
                None => sum.spread.push(*bucket),
            }
        }
        sum.spread
            .sort_by(|one, other| one.up_to_us.total_cmp(&other.up_to_us));
        if sum.target_cpu_percent.is_none() {
            sum.target_cpu_percent = tick.target_cpu_percent;
            sum.target_memory_bytes = tick.target_memory_bytes;
        }
    }
}

/// What the generator may have added is known of a run alone: waits of several fell on different requests.
fn keep_share(latency: &mut LatencyDocument, of_run: &LatencyDocument) {
    let of = |times: &TimesDocument| times.of_generator.clone();
    latency.from_started.of_generator = of(&of_run.from_started);
    if let (Some(times), Some(of_run)) = (&mut latency.from_intended, &of_run.from_intended) {
        times.of_generator = of(of_run);
    }
}

/// Latencies and phases, from the merged histograms.
fn times(
    summary: &mut SummaryDocument,
    latency: &Times,
    intervals: &BTreeMap<Option<String>, Histogram>,
) {
    let tagged = |tag: &str| intervals.get(&Some(tag.to_owned()));
    let honest = TimesDocument::from_times(latency.view());
    if let Some(started) = tagged(FROM_STARTED) {
        let censored = tagged(CENSORED_FROM_STARTED).cloned().unwrap_or_default();
        let started = Times::from_parts(started.clone(), censored);
        summary.latency.from_started = TimesDocument::from_times(started.view());
        summary.latency.from_intended = Some(honest);
    } else {
        summary.latency.from_started = honest;
        summary.latency.from_intended = None;
    }
    let aborted = summary.counts.aborted;
    summary.phases = Phase::ALL
        .into_iter()
        .filter_map(|phase| {
            let times = TimesView::from(tagged(phase.name())?);
            Some(PhaseDocument {
                phase: phase.name().to_owned(),
                times: TimesDocument::from_times(times.with_unknown(phase.given_up(aborted))),
            })
        })
        .collect();
}

/// Latencies of responses below 400 and of error statuses, and the caution for a mix of them in place of those of single
/// results.
///
/// - `all`, `intervals`: the merged histograms.
fn by_status(
    summary: &mut SummaryDocument,
    all: &Histogram,
    intervals: &BTreeMap<Option<String>, Histogram>,
    runs: &[RunRecord],
) {
    // Earlier versions did not write the latencies of error statuses and timeouts: without those of one run the others
    // are a part.
    let are_known = runs.iter().all(|run| {
        let has_errors = run.summary.statuses.range(400..).next().is_some();
        let mut failures = run.summary.failures.iter();
        let has_timeouts = failures.any(|failure| failure.kind == FailureKind::Timeout.name());
        (!has_errors || run.interval(OF_ERRORS).is_some())
            && (!has_timeouts || run.interval(OF_TIMEOUTS).is_some())
    });
    let tagged = |tag: &str| intervals.get(&Some(tag.to_owned()));
    let errors = tagged(OF_ERRORS).filter(|_| are_known);
    let both =
        errors.and_then(|errors| LatencyByStatus::from_errors(all, errors, tagged(OF_TIMEOUTS)));
    let latency = &mut summary.latency;
    latency.of_ok = both
        .as_ref()
        .map(|kinds| TimesDocument::from_times(&kinds.ok));
    latency.of_errors = both
        .as_ref()
        .map(|kinds| TimesDocument::from_times(kinds.errors));
    if are_known {
        let single: Vec<String> = runs
            .iter()
            .filter_map(|run| run.latency_by_status()?.caution())
            .collect();
        let warnings = &mut summary.conditions.warnings;
        warnings.retain(|warning| !single.contains(warning));
        warnings.extend(both.and_then(|kinds| kinds.caution()));
    }
}

/// Divides what servers cost by the exchanges of all generators. How that varied with them is not known.
fn servers(summary: &mut SummaryDocument) {
    let exchanges = summary.generator.cost.exchanges;
    if let Some(target) = &mut summary.target {
        target.cost.exchanges = exchanges;
        target.cpu_us_per_request_error = None;
        cost(&mut target.cost);
    }
    for server in &mut summary.observed {
        let Some(observed) = &mut server.cost else {
            continue;
        };
        observed.cpu_us_per_request_error = None;
        if server.whole {
            observed.cost.exchanges = exchanges;
            cost(&mut observed.cost);
        } else {
            // Only one generator counted its exchanges in the part that was observed.
            observed.cost.cpu_us_per_request = None;
        }
    }
}

/// Derives cost from the sums.
fn cost(cost: &mut CostDocument) {
    let spent = cost.cpu_user_us + cost.cpu_system_us;
    cost.cpu_us_per_request = (cost.exchanges > 0).then(|| spent / cost.exchanges as f64);
    cost.cpu_percent = (cost.window_us > 0.0).then(|| spent / cost.window_us * 100.0);
}

/// A warning if the runs did not go on at the same time.
fn apart(runs: &[RunRecord]) -> Option<String> {
    let started: Vec<SystemTime> = runs
        .iter()
        .filter_map(|run| humantime::parse_rfc3339(&run.summary.conditions.started).ok())
        .collect();
    let (first, last) = (started.iter().min()?, started.iter().max()?);
    let between = last.duration_since(*first).ok()?;
    (between > TOGETHER).then(|| {
        format!(
            "the generators started {:.1} s apart: their rates were not reached at the same time",
            between.as_secs_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::RunSummary;

    use super::*;
    use crate::{fixture, latency_log};

    fn record(name: &str, run: &RunSummary) -> RunRecord {
        let summary = SummaryDocument::from_summary(run).to_json();
        RunRecord::read(name, summary.as_bytes(), &latency_log(run)).unwrap()
    }

    /// A run and one twice as slow, of the same load.
    fn two() -> (RunSummary, RunSummary) {
        let one = fixture::open();
        let mut other = one.clone();
        let mut slower = Times::new();
        for bucket in one.latency.honest().observed().buckets() {
            slower.record_bucket(plimsoll_model::Bucket {
                up_to: bucket.up_to * 2,
                count: bucket.count,
            });
        }
        other.latency.from_intended = Some(slower);
        (one, other)
    }

    #[test]
    fn merged_results_are_those_of_one_generator() {
        let (one, other) = two();
        let records = [record("one", &one), record("other", &other)];
        let both = merged("both", &records).unwrap();

        let mut whole = one.latency.honest().clone();
        whole.merge(other.latency.honest());
        assert_eq!(both.latency.view().len(), whole.view().len());
        for quantile in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert_eq!(both.latency.quantile(quantile), whole.quantile(quantile));
        }
        let intended = both.summary.latency.from_intended.as_ref().unwrap();
        assert_eq!(intended, &TimesDocument::from_times(whole.view()));
        assert_eq!(both.summary.counts.started, one.counts.started * 2);
        assert_eq!(both.summary.counts.ok, one.counts.ok * 2);
        let rate = records[0].summary.requests_per_second * 2.0;
        assert!((both.summary.requests_per_second - rate).abs() < 1e-6);
        assert_eq!(
            both.summary.load.connections,
            records[0].summary.load.connections * 2
        );
        for (status, count) in &records[0].summary.statuses {
            assert_eq!(both.summary.statuses[status], count * 2);
        }
        let wait = |run: &RunRecord| {
            let phases = &run.summary.phases;
            phases
                .iter()
                .find(|phase| phase.phase == "wait")
                .unwrap()
                .times
                .count
        };
        assert_eq!(wait(&both), 2 * wait(&records[0]));
        let ok: u64 = both.summary.ticks.iter().map(|tick| tick.ok).sum();
        let of_one: u64 = records[0].summary.ticks.iter().map(|tick| tick.ok).sum();
        assert_eq!(ok, 2 * of_one);
    }

    /// `one`, and the same with `errors` rejections of 429 beside it, each after `micros`.
    fn with_rejections(one: &RunSummary, errors: u64, micros: u64) -> RunSummary {
        let mut run = one.clone();
        let mut rejected = Histogram::new();
        (0..errors).for_each(|_| rejected.record(Duration::from_micros(micros)));
        run.counts.started += errors;
        run.counts.ok += errors;
        run.statuses.insert(429, errors);
        let latency = &mut run.latency;
        latency.from_started.merge(&rejected.clone().into());
        let from_intended = latency.from_intended.as_mut();
        from_intended.unwrap().merge(&rejected.clone().into());
        latency.of_errors = Some(rejected);
        let caution = latency.by_status().and_then(|kinds| kinds.caution());
        run.conditions.warnings.extend(caution);
        run
    }

    #[test]
    fn latency_of_ok_and_of_errors_stays_apart() {
        let (one, other) = two();
        let (one, other) = (
            with_rejections(&one, 5_000, 90),
            with_rejections(&other, 3_000, 70),
        );
        let both = merged("both", &[record("one", &one), record("other", &other)]).unwrap();
        let mut whole = one.latency.clone();
        let theirs = other.latency.honest();
        whole.from_intended.as_mut().unwrap().merge(theirs);
        let errors = whole.of_errors.as_mut().unwrap();
        errors.merge(other.latency.of_errors.as_ref().unwrap());
        let expected = whole.by_status().unwrap();
        let found = &both.summary.latency;
        let times = |kind: &Histogram| Some(TimesDocument::from_times(kind));
        assert_eq!(found.of_ok, times(&expected.ok));
        assert_eq!(found.of_errors, times(expected.errors));
        assert_eq!(found.of_errors.as_ref().unwrap().count, 8_000);
    }

    #[test]
    fn timeouts_are_in_neither_part_of_merged_latencies() {
        let run = fixture::mixed();
        let records = [record("one", &run), record("other", &run)];
        let both = merged("both", &records).unwrap();
        let count = |times: &Option<TimesDocument>| times.as_ref().unwrap().count;
        let of_one = run.latency.by_status().unwrap();
        let found = &both.summary.latency;
        assert_eq!(count(&found.of_ok), 2 * of_one.ok.len());
        assert_eq!(count(&found.of_errors), 2 * of_one.errors.len());
        let max = |times: &Option<TimesDocument>| times.as_ref().unwrap().max_us.unwrap().low();
        assert!(max(&found.of_ok) < 1e6, "{found:?}");
        assert!(found.from_started.max_us.unwrap().low() > 1e6);
    }

    #[test]
    fn one_that_only_failed_and_one_that_did_not_are_apart_together() {
        let one = fixture::open();
        let mut rejected = one.clone();
        let errors: Histogram = {
            let mut errors = Histogram::new();
            (0..4_000).for_each(|_| errors.record(Duration::from_micros(40)));
            errors
        };
        rejected.statuses = BTreeMap::from([(503, 4_000)]);
        rejected.latency.from_intended = Some(errors.clone().into());
        rejected.latency.of_errors = Some(errors);
        assert!(rejected.latency.by_status().is_none());
        let records = [record("one", &one), record("other", &rejected)];
        let both = merged("both", &records).unwrap();
        let of_errors = both.summary.latency.of_errors.as_ref().unwrap();
        assert_eq!(of_errors.count, 4_000);
        let warnings = both.summary.conditions.warnings.join("\n");
        assert!(warnings.contains("latency mixes responses"), "{warnings}");
    }

    #[test]
    fn a_mix_of_ok_and_errors_is_reported_once_with_the_figures_of_all() {
        let (one, other) = two();
        let (one, other) = (
            with_rejections(&one, 5_000, 90),
            with_rejections(&other, 3_000, 70),
        );
        let records = [record("one", &one), record("other", &other)];
        let of_each = records
            .each_ref()
            .map(|run| run.latency_by_status().unwrap().caution().unwrap());
        let both = merged("both", &records).unwrap();
        let found: Vec<_> = both
            .summary
            .conditions
            .warnings
            .iter()
            .filter(|warning| warning.starts_with("latency mixes responses"))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!of_each.contains(found[0]), "{found:?}");
        let of_all = both.latency_by_status().unwrap().caution();
        assert_eq!(Some(found[0]), of_all.as_ref());
    }

    #[test]
    fn results_without_a_log_of_errors_keep_their_own_cautions_and_no_percentiles() {
        let (one, other) = two();
        let (one, other) = (
            with_rejections(&one, 5_000, 90),
            with_rejections(&other, 3_000, 70),
        );
        let mut records = [record("one", &one), record("other", &other)];
        records[1]
            .intervals
            .retain(|(tag, _)| tag.as_deref() != Some(OF_ERRORS));
        let both = merged("both", &records).unwrap();
        assert_eq!(both.summary.latency.of_ok, None);
        assert_eq!(both.summary.latency.of_errors, None);
        let mixes = both.summary.conditions.warnings.iter();
        let mixes = mixes.filter(|warning| warning.starts_with("latency mixes responses"));
        assert_eq!(mixes.count(), 2);

        // Timeouts of which the latency is not known would be among those of ok.
        let mut records = ["one", "other"].map(|name| record(name, &fixture::mixed()));
        records[0]
            .intervals
            .retain(|(tag, _)| tag.as_deref() != Some(OF_TIMEOUTS));
        let both = merged("both", &records).unwrap();
        assert_eq!(both.summary.latency.of_ok, None);
    }

    #[test]
    fn servers_cost_what_all_generators_made_them_spend() {
        let one = fixture::tiers();
        let mut other = one.clone();
        other.target = None;
        other.observed.clear();
        let records = [record("other", &other), record("one", &one)];
        let both = merged("both", &records).unwrap();
        let of_one = records[1].summary.target.as_ref().unwrap();
        let half = of_one.cost.cpu_us_per_request.unwrap() / 2.0;
        let web = both.summary.observed[0].cost.as_ref().unwrap();
        for server in [web, both.summary.target.as_ref().unwrap()] {
            let found = server.cost.cpu_us_per_request.unwrap();
            assert!((found - half).abs() < 1e-3, "{found} of {half}");
            assert_eq!(server.cpu_us_per_request_error, None);
        }
        let db = both.summary.observed[1].cost.as_ref().unwrap();
        assert_eq!(
            db.cost.cpu_us_per_request, None,
            "of a part of one generator"
        );
        assert_eq!(db.cpu_us_per_request_error, None);
    }

    #[test]
    fn one_alone_stays_what_it_is() {
        for (name, run) in fixture::all() {
            let record = record(name, &run);
            let alone = merged(name, std::slice::from_ref(&record)).unwrap();
            assert_eq!(alone.summary.counts, record.summary.counts, "{name}");
            assert_eq!(alone.summary.latency, record.summary.latency, "{name}");
            assert_eq!(alone.summary.phases, record.summary.phases, "{name}");
        }
    }

    #[test]
    fn order_does_not_matter() {
        let (one, other) = two();
        let (one, other) = (record("one", &one), record("other", &other));
        let there = merged("both", &[one.clone(), other.clone()]).unwrap();
        let back = merged("both", &[other, one]).unwrap();
        assert_eq!(there.summary.counts, back.summary.counts);
        assert_eq!(there.summary.latency, back.summary.latency);
        assert_eq!(there.summary.phases, back.summary.phases);
    }

    #[test]
    fn what_does_not_belong_together_is_reported() {
        let (one, mut other) = two();
        other.conditions.started += Duration::from_secs(30);
        let late = merged("both", &[record("one", &one), record("other", &other)]).unwrap();
        let warnings = late.summary.conditions.warnings.join("\n");
        assert!(warnings.contains("started 30.0 s apart"), "{warnings}");
        let error = merged(
            "both",
            &[record("one", &one), record("other", &fixture::closed())],
        )
        .unwrap_err();
        assert!(error.to_string().contains("the URLs of"), "{error}");
        assert_eq!(merged("none", &[]).unwrap_err(), MergeError::Nothing);
    }
}
