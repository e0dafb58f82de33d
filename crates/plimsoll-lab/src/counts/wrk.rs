//! The summary of wrk 4.
//!
//! `N requests in T` counts complete responses. Latencies need `--latency`; without it the summary
//! has a mean and a maximum, from which no percentile is made.

use super::{CountError, Format, Tally, field, leading_number, time::microseconds};

pub(super) const FORMAT: Format = Format {
    name: "wrk",
    recognises: |output| output.contains(" requests in ") && output.contains("Thread Stats"),
    parse,
};

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let ok = output
        .lines()
        .find(|line| line.contains(" requests in "))
        .and_then(|line| leading_number(line.trim()))
        .ok_or_else(|| malformed("the number of requests"))?;
    let failed = field(output, "Socket errors:").map_or(Some(0), socket_errors);
    Ok(Tally {
        source: FORMAT.name,
        ok,
        failed: failed.ok_or_else(|| malformed("the number of socket errors"))?,
        error_statuses: field(output, "Non-2xx or 3xx responses:")
            .and_then(leading_number)
            .unwrap_or(0),
        requests_per_second: field(output, "Requests/sec:").and_then(leading_number),
        mean_us: None,
        p50_us: field(output, "50%").and_then(microseconds),
        p90_us: field(output, "90%").and_then(microseconds),
        // It prints neither this nor one beyond the 99th.
        p95_us: None,
        p99_us: field(output, "99%").and_then(microseconds),
        p99_9_us: None,
    })
}

/// The sum of `connect 0, read 0, write 0, timeout 12`.
fn socket_errors(counts: &str) -> Option<u64> {
    counts
        .split(',')
        .map(|part| part.split_whitespace().last()?.parse::<u64>().ok())
        .sum()
}
