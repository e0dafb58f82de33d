//! The summary of h2load.
//!
//! Its "failed" contains statuses from 400 on, which are complete responses; what is errored or timed
//! out is not. It prints no percentiles.

use super::{CountError, Format, Tally, field};

pub(super) const FORMAT: Format = Format {
    name: "h2load",
    recognises: |output| {
        field(output, "requests:").is_some_and(|line| line.contains("succeeded"))
            && output.contains("finished in ")
    },
    parse,
};

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let requests = field(output, "requests:").ok_or_else(|| malformed("the line of requests"))?;
    let count = |name| {
        requests
            .split(',')
            .find_map(|part| part.trim().strip_suffix(name)?.trim().parse::<u64>().ok())
    };
    let succeeded = count("succeeded").ok_or_else(|| malformed("the number that succeeded"))?;
    let failed = count("failed").ok_or_else(|| malformed("the number that failed"))?;
    let incomplete = count("errored")
        .ok_or_else(|| malformed("the number that errored"))?
        .saturating_add(count("timeout").unwrap_or(0));
    let rate = field(output, "finished in ")
        .and_then(|line| {
            line.split(',')
                .find_map(|part| part.trim().strip_suffix("req/s"))
        })
        .and_then(|rate| rate.trim().parse().ok());
    Ok(Tally {
        source: FORMAT.name,
        ok: succeeded.saturating_add(failed.saturating_sub(incomplete)),
        failed: incomplete,
        error_statuses: failed.saturating_sub(incomplete),
        requests_per_second: rate,
        mean_us: None,
        p50_us: None,
        p90_us: None,
        p95_us: None,
        p99_us: None,
        p99_9_us: None,
    })
}
