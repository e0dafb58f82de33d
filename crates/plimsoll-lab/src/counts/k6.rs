//! The end-of-test summary of k6, versions 1 and 2.
//!
//! k6 counts a status from 400 on among its failed requests and does not distinguish it from a broken
//! connection, so all of them count as failed here. The 99th percentile is there only if
//! `--summary-trend-stats` names it.

use super::{CountError, Format, Tally, field, leading_number, time::microseconds};

pub(super) const FORMAT: Format = Format {
    name: "k6",
    recognises: |output| field(output, "http_reqs..").is_some(),
    parse,
};

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let requests =
        metric(output, "http_reqs").ok_or_else(|| malformed("the number of requests"))?;
    let total: u64 = leading_number(requests).ok_or_else(|| malformed("the number of requests"))?;
    let failed = metric(output, "http_req_failed").map_or(Some(0), failed_requests);
    let failed = failed.ok_or_else(|| malformed("the number of failed requests"))?;
    let rate: Option<f64> = requests
        .split_whitespace()
        .nth(1)
        .and_then(|rate| rate.strip_suffix("/s"))
        .and_then(|rate| rate.parse().ok());
    let ok = total.saturating_sub(failed);
    let duration = metric(output, "http_req_duration").unwrap_or_default();
    let statistic = |name| {
        duration
            .split_whitespace()
            .find_map(|part| part.strip_prefix(name))
            .and_then(microseconds)
    };
    Ok(Tally {
        source: FORMAT.name,
        ok,
        failed,
        error_statuses: 0,
        requests_per_second: rate
            .filter(|_| total > 0)
            .map(|rate| rate * (ok as f64 / total as f64)),
        mean_us: statistic("avg="),
        p50_us: statistic("med="),
        p90_us: statistic("p(90)="),
        p95_us: statistic("p(95)="),
        p99_us: statistic("p(99)="),
        p99_9_us: statistic("p(99.9)="),
    })
}

/// The text behind `name......:`.
fn metric<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    output.lines().find_map(|line| {
        let dots = line.trim().strip_prefix(name)?;
        Some(dots.trim_start_matches('.').strip_prefix(':')?.trim())
    })
}

/// The first number of `12 out of 16451`, after the percentage.
fn failed_requests(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" out of ")?;
    before.split_whitespace().last()?.parse().ok()
}
