//! The summary of ab, the Apache HTTP server's benchmarking tool.
//!
//! "Failed requests" contains answers whose length differs from the first one's; those are complete.
//! Percentiles are whole milliseconds; 0 means "below one" and is left out.

use super::{CountError, Format, Tally, field, leading_number};

pub(super) const FORMAT: Format = Format {
    name: "ab",
    recognises: |output| output.contains("This is ApacheBench"),
    parse,
};

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let complete: u64 = field(output, "Complete requests:")
        .and_then(leading_number)
        .ok_or_else(|| malformed("the number of complete requests"))?;
    // `(Connect: 0, Receive: 0, Length: 5, Exceptions: 0)`, printed only if there are any.
    let failed = field(output, "(Connect:").map_or(0, |kinds| {
        kinds
            .trim_end_matches(')')
            .split(',')
            .enumerate()
            .filter_map(|(index, part)| match part.trim().split_once(':') {
                None if index == 0 => part.trim().parse::<u64>().ok(),
                Some(("Length", _)) | None => None,
                Some((_, count)) => count.trim().parse().ok(),
            })
            .fold(0, u64::saturating_add)
    });
    let percentile = |label| {
        field(output, label)
            .and_then(leading_number::<f64>)
            .filter(|&milliseconds| milliseconds > 0.0)
            .map(|milliseconds| milliseconds * 1e3)
    };
    Ok(Tally {
        source: FORMAT.name,
        ok: complete.saturating_sub(failed),
        failed,
        error_statuses: field(output, "Non-2xx responses:")
            .and_then(leading_number)
            .unwrap_or(0),
        requests_per_second: field(output, "Requests per second:").and_then(leading_number),
        mean_us: None,
        p50_us: percentile("50%"),
        p90_us: percentile("90%"),
        p95_us: percentile("95%"),
        p99_us: percentile("99%"),
        // It prints none beyond.
        p99_9_us: None,
    })
}
