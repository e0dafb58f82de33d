//! The JSON summary of oha (`--output-format json`; `--json` before version 1.9).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CountError, Format, Tally, oha_text::CUT_OFF};

pub(super) const FORMAT: Format = Format {
    name: "oha JSON",
    recognises: |output| {
        output.trim_start().starts_with('{') && output.contains("\"statusCodeDistribution\"")
    },
    parse,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    summary: Summary,
    #[serde(default)]
    latency_percentiles: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Summary {
    /// Length of the run in seconds.
    total: Option<f64>,
    /// Mean latency in seconds.
    average: Option<f64>,
}

fn parse(output: &str) -> Result<Tally, CountError> {
    let document: Document =
        serde_json::from_str(output.trim()).map_err(|_| CountError::Malformed {
            format: FORMAT.name,
            missing: "the summary or the status code distribution",
        })?;
    let ok = sum(document.status_code_distribution.values());
    let failed = sum(document
        .error_distribution
        .iter()
        .filter(|(error, _)| !error.contains(CUT_OFF))
        .map(|(_, count)| count));
    let microseconds = |name| {
        let seconds: Option<f64> = document.latency_percentiles.get(name).copied().flatten();
        seconds.map(|seconds| seconds * 1e6)
    };
    Ok(Tally {
        source: FORMAT.name,
        ok,
        failed,
        error_statuses: sum(document
            .status_code_distribution
            .iter()
            .filter(|(status, _)| status.parse().is_ok_and(|status: u16| status >= 400))
            .map(|(_, count)| count)),
        requests_per_second: document
            .summary
            .total
            .filter(|&seconds| seconds > 0.0)
            .map(|seconds| ok as f64 / seconds),
        mean_us: document.summary.average.map(|seconds| seconds * 1e6),
        p50_us: microseconds("p50"),
        p90_us: microseconds("p90"),
        p95_us: microseconds("p95"),
        p99_us: microseconds("p99"),
        p99_9_us: microseconds("p99.9"),
    })
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, &count| sum.saturating_add(count))
}
