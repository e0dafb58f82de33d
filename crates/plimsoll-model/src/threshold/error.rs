//! Errors in written thresholds.

use crate::UnitError;
use crate::threshold::metric::Metric;

/// An error in a threshold, with the valid alternatives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// There is no metric with an aggregation.
    #[error(
        "expected METRIC:AGGREGATION OPERATOR LIMIT, such as `http_req_duration:p(99)<300ms`, or in short `p99<300ms` or `errors<1%`"
    )]
    Form,
    /// There is no such metric.
    #[error("unknown metric `{name}`; {}known are {}", meant(name), Metric::names().collect::<Vec<_>>().join(", "))]
    Metric {
        /// The name as written.
        name: String,
    },
    /// The metric has no such aggregation.
    #[error("`{metric}` has no `{aggregation}`; it has {known}")]
    Aggregation {
        /// The metric.
        metric: &'static str,
        /// The aggregation as written.
        aggregation: String,
        /// The aggregations of the metric.
        known: &'static str,
    },
    /// What stands in braces is not the name of an observed server, or the metric is not of a server.
    #[error(
        "only metrics of servers have a tag, and it is the name of an observed one; write for example \
         `server_cpu_per_request{{name:db}}:value<2ms`"
    )]
    Tag,
    /// A percentile is not between 0 and 100.
    #[error("`{0}` is no percentile; write `p(N)` with N from 0 to 100")]
    Percentile(String),
    /// There is no operator, or an unknown one.
    #[error("expected one of <, <=, >, >=, ==, != between the aggregation and the limit")]
    Operator,
    /// There is no limit.
    #[error("the limit is missing; write for example `{example}`")]
    NoLimit {
        /// A limit of the right kind.
        example: &'static str,
    },
    /// The limit is not a number of its kind.
    #[error("`{text}` is no limit for this; write for example `{example}`")]
    Number {
        /// The text as written.
        text: String,
        /// A limit of the right kind.
        example: &'static str,
    },
    /// The limit or a time is not of its unit.
    #[error(transparent)]
    Limit(#[from] UnitError),
    /// A word that means nothing behind the limit.
    #[error(
        "did not expect `{0}`; behind the limit may stand `over TIME`, `abort`, `abort after TIME`"
    )]
    Word(String),
    /// A time is missing.
    #[error("a time is missing behind `{after}`; write for example `{after} 10s`")]
    Time {
        /// The word before it.
        after: &'static str,
    },
    /// The stretch is too short or too long.
    #[error("a threshold can be held over one second to one hour")]
    Stretch,
}

/// The known name that is most like `name`, as the start of a sentence.
fn meant(name: &str) -> String {
    const ALIKE: f64 = 0.8;

    let closest = Metric::names()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > ALIKE);
    closest.map_or(String::new(), |(_, known)| {
        format!("did you mean `{known}`? ")
    })
}
