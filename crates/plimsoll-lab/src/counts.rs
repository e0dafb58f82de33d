//! Request counts of a trial, read from the output of its tool.
//!
//! One file per format. A format recognises its own output, so a user does not name the tool; output
//! that none recognises is an error that lists them, and then the server's count can be read instead
//! ([`stub_status`]).

mod ab;
mod h2load;
mod k6;
mod oha_json;
mod oha_text;
pub(crate) mod plimsoll;
mod wrk;

pub mod stub_status;

mod time;

/// The counts that a tool reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The format that was recognised: one of [`KNOWN`].
    pub source: &'static str,
    /// Complete responses, whatever their status (for k6: those it does not call failed).
    pub ok: u64,
    /// Requests without a complete response; those cut off by the end of the run are not failures.
    pub failed: u64,
    /// Of `ok`: responses with an error status, as far as the tool reports them apart.
    pub error_statuses: u64,
    /// Complete responses per second, if the tool reports them.
    pub requests_per_second: Option<f64>,
    /// Mean latency in microseconds.
    pub mean_us: Option<f64>,
    /// Median latency in microseconds.
    pub p50_us: Option<f64>,
    /// 90th percentile of the latency in microseconds.
    pub p90_us: Option<f64>,
    /// 95th percentile of the latency in microseconds.
    pub p95_us: Option<f64>,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile of the latency in microseconds.
    pub p99_9_us: Option<f64>,
}

/// Why a count cannot be taken from an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// It is none of the formats.
    #[error(
        "the output is none of the known formats ({}); name a page of the server that counts, \
         with --count-from",
        KNOWN.join(", ")
    )]
    Unknown,
    /// It looks like a format but lacks something.
    #[error("the output looks like {format}, but {missing} is missing or not a number")]
    Malformed {
        /// The format it looks like.
        format: &'static str,
        /// The missing text.
        missing: &'static str,
    },
}

/// The formats that [`read`] knows.
pub const KNOWN: [&str; 7] = [
    plimsoll::FORMAT.name,
    wrk::FORMAT.name,
    h2load::FORMAT.name,
    oha_text::FORMAT.name,
    oha_json::FORMAT.name,
    k6::FORMAT.name,
    ab::FORMAT.name,
];

const FORMATS: [Format; 7] = [
    plimsoll::FORMAT,
    wrk::FORMAT,
    h2load::FORMAT,
    oha_text::FORMAT,
    oha_json::FORMAT,
    k6::FORMAT,
    ab::FORMAT,
];

/// One tool's output.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    recognises: fn(&str) -> bool,
    parse: fn(&str) -> Result<Tally, CountError>,
}

/// Reads the tally from what a tool wrote to its standard output.
pub fn read(output: &str) -> Result<Tally, CountError> {
    let format = FORMATS
        .iter()
        .find(|format| (format.recognises)(output))
        .ok_or(CountError::Unknown)?;
    (format.parse)(output)
}

/// The rest of the first line that starts with `label`, blanks around both removed.
fn field<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    output
        .lines()
        .find_map(|line| line.trim().strip_prefix(label))
        .map(str::trim)
}

/// The number at the start of `text`, before a blank, a comma or a unit.
fn leading_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests;
