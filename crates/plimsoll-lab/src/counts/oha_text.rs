//! The text summary of oha.

use super::{CountError, Format, Tally, field, leading_number, time::microseconds};

pub(super) const FORMAT: Format = Format {
    name: "oha",
    recognises: |output| {
        field(output, "Success rate:").is_some() && output.contains("Response time histogram:")
    },
    parse,
};

/// oha's name for a request that the end of the run cut off.
pub(super) const CUT_OFF: &str = "aborted due to deadline";

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let ok = section(output, "Status code distribution:")
        .try_fold(0_u64, |sum, (_, line)| {
            Some(sum.saturating_add(leading_number(line)?))
        })
        .ok_or_else(|| malformed("the status code distribution"))?;
    let failed = section(output, "Error distribution:")
        .filter(|(_, error)| !error.contains(CUT_OFF))
        .try_fold(0_u64, |sum, (count, _)| {
            Some(sum.saturating_add(count.parse().ok()?))
        })
        .ok_or_else(|| malformed("the error distribution"))?;
    let seconds = field(output, "Total:")
        .and_then(microseconds)
        .map(|total| total / 1e6)
        .filter(|&seconds| seconds > 0.0);
    let percentile = |label| field(output, label).and_then(microseconds);
    Ok(Tally {
        source: FORMAT.name,
        ok,
        failed,
        error_statuses: section(output, "Status code distribution:")
            .filter(|(status, _)| status.parse().is_ok_and(|status: u16| status >= 400))
            .filter_map(|(_, line)| leading_number::<u64>(line))
            .fold(0, u64::saturating_add),
        // Its own "Requests/sec" counts those that the deadline cut off.
        requests_per_second: seconds.map(|seconds| ok as f64 / seconds),
        mean_us: None,
        p50_us: percentile("50.00% in"),
        p90_us: percentile("90.00% in"),
        p95_us: percentile("95.00% in"),
        p99_us: percentile("99.00% in"),
        p99_9_us: percentile("99.90% in"),
    })
}

/// The lines `[key] text` below `heading`, as (key, text).
fn section<'a>(output: &'a str, heading: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    output
        .lines()
        .skip_while(move |line| line.trim() != heading)
        .skip(1)
        .map_while(|line| line.trim().strip_prefix('[')?.split_once("] "))
}
