//! Latencies in the HdrHistogram V2 log format, which `HistogramLogAnalyzer` and hdr-plot read.

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use plimsoll_model::{Histogram, Phase, RunSummary};

/// The tag of the latencies from the actual start, beside those from the intended start.
pub(crate) const FROM_STARTED: &str = "from-started";

/// The tag of the times for which aborted and missed exchanges were waited for, beside the latencies.
pub(crate) const CENSORED: &str = "censored";

/// The same beside the latencies from the actual start.
pub(crate) const CENSORED_FROM_STARTED: &str = "censored-from-started";

/// The tag of the latencies of responses with a status of 400 or above, which are among all latencies.
pub(crate) const OF_ERRORS: &str = "of-errors";

/// The tag of the latencies of exchanges that timed out, which are among all latencies too.
pub(crate) const OF_TIMEOUTS: &str = "of-timeouts";

/// One interval for the whole window; values are nanoseconds, the maximum column milliseconds.
///
/// The interval without a tag holds the latencies from the intended start, or in a closed loop from
/// the actual one. In an open loop those from the actual start have the tag `from-started`. Of exchanges
/// that were aborted or missed `censored` and `censored-from-started` hold how long each was waited for. Latencies of
/// error statuses have the tag `of-errors`, those of timeouts `of-timeouts`, if there are any. The phases that happened have their names as tags.
pub fn latency_log(run: &RunSummary) -> Vec<u8> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&format!("plimsoll {}", run.conditions.plimsoll))
        .add_comment(&format!("{} {}", run.load.method, run.load.url))
        .add_comment("values are nanoseconds; Interval_Max is in milliseconds")
        .with_start_time(run.conditions.started)
        .with_base_time(run.conditions.started)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut log, &mut serializer)
        .expect(IN_MEMORY);
    let mut write = |tag: Option<&str>, histogram: &Histogram| {
        writer
            .write_histogram(
                histogram.as_hdr(),
                run.load.warm_up,
                run.window,
                tag.and_then(Tag::new),
            )
            .expect(IN_MEMORY);
    };
    for (tag, histogram) in intervals(run) {
        write(tag, histogram);
    }
    log
}

/// The intervals of the log of `run`, each with its tag.
pub(crate) fn intervals(
    run: &RunSummary,
) -> impl Iterator<Item = (Option<&'static str>, &Histogram)> {
    let is_open = run.latency.from_intended.is_some();
    let started = &run.latency.from_started;
    let censored = run.latency.honest().censored();
    let censored = censored.map(|times| (Some(CENSORED), times));
    let censored_started = started.censored().filter(|_| is_open);
    let censored_started = censored_started.map(|times| (Some(CENSORED_FROM_STARTED), times));
    let started = is_open.then_some((Some(FROM_STARTED), started.observed()));
    let latency = &run.latency;
    let parts = [
        (OF_ERRORS, &latency.of_errors),
        (OF_TIMEOUTS, &latency.of_timeouts),
    ];
    let parts = parts.into_iter().filter_map(|(tag, part)| {
        let part = part.as_ref().filter(|part| !part.is_empty())?;
        Some((Some(tag), part))
    });
    let phases = Phase::ALL
        .into_iter()
        .map(|phase| (Some(phase.name()), &run.phases[phase.index()]));
    std::iter::once((None, run.latency.honest().observed()))
        .chain(started)
        .chain(censored)
        .chain(censored_started)
        .chain(parts)
        .chain(phases.filter(|(_, histogram)| !histogram.is_empty()))
}

const IN_MEMORY: &str = "writing to memory does not fail, and every histogram can be encoded";

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::fixture;

    /// Every interval of a log by its tag.
    fn intervals(log: &[u8]) -> Vec<(Option<String>, hdrhistogram::Histogram<u64>)> {
        IntervalLogIterator::new(log)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => {
                    let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                    let histogram = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
                    Some((interval.tag().map(|tag| tag.as_str().to_owned()), histogram))
                }
                LogEntry::StartTime(_) | LogEntry::BaseTime(_) => None,
            })
            .collect()
    }

    #[test]
    fn what_is_written_can_be_read_without_loss() {
        let run = fixture::open();
        let read = intervals(&latency_log(&run));
        let find = |tag: Option<&str>| {
            let found = read.iter().find(|(found, _)| found.as_deref() == tag);
            &found.unwrap().1
        };
        assert_eq!(find(None), run.latency.honest().observed().as_hdr());
        assert_eq!(
            find(Some("from-started")),
            run.latency.from_started.observed().as_hdr()
        );
        let wait = &run.phases[Phase::Wait.index()];
        assert_eq!(find(Some("wait")), wait.as_hdr());
        let absent = |wanted: &str| read.iter().all(|(tag, _)| tag.as_deref() != Some(wanted));
        assert!(absent("tls") && absent("of-errors") && absent("of-timeouts"));

        let mixed = fixture::mixed();
        let read = intervals(&latency_log(&mixed));
        let latency = mixed.latency;
        for (wanted, part) in [
            ("of-errors", latency.of_errors),
            ("of-timeouts", latency.of_timeouts),
        ] {
            let mut read = read.iter();
            let found = read.find(|(tag, _)| tag.as_deref() == Some(wanted));
            assert_eq!(&found.unwrap().1, part.unwrap().as_hdr(), "{wanted}");
        }
    }

    #[test]
    fn the_header_names_the_run_and_the_unit() {
        let log = String::from_utf8(latency_log(&fixture::closed())).unwrap();
        assert!(log.starts_with(
            "#plimsoll 0.1.0\n#GET http://127.0.0.1:8080/\n\
             #values are nanoseconds; Interval_Max is in milliseconds\n"
        ));
        assert!(log.contains("#[StartTime: 1800000000"));
        assert_eq!(intervals(log.as_bytes()).len(), 1 + 4);
    }

    #[test]
    fn an_empty_run_is_an_empty_histogram() {
        let read = intervals(&latency_log(&fixture::empty()));
        assert_eq!(read.len(), 1);
        assert!(read[0].1.is_empty());
    }
}
