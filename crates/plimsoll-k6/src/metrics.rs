//! The metrics that every run has, and how trends are summed up.

pub(crate) mod thresholds;

pub(crate) mod checks;

pub(crate) mod servers;

use plimsoll_load::scenario::metric::Trend;
use plimsoll_load::scenario::{Contains, MetricError, MetricId, MetricKind, Registry, Sink, Sinks};

macro_rules! built_in {
    ($($field:ident $kind:ident $contains:ident;)*) => {
        /// The ids of the metrics of k6.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct BuiltIn {
            $(pub(crate) $field: MetricId,)*
        }

        impl BuiltIn {
            /// Registers them.
            pub(crate) fn register(registry: &Registry) -> Result<Self, MetricError> {
                Ok(Self {
                    $($field: registry.register(stringify!($field), MetricKind::$kind, Contains::$contains)?,)*
                })
            }
        }
    };
}

built_in! {
    vus Gauge Default;
    vus_max Gauge Default;
    iterations Counter Default;
    iteration_duration Trend Time;
    dropped_iterations Counter Default;
    checks Rate Default;
    group_duration Trend Time;
    data_sent Counter Data;
    data_received Counter Data;
    http_reqs Counter Default;
    http_req_failed Rate Default;
    http_req_duration Trend Time;
    http_req_blocked Trend Time;
    http_req_connecting Trend Time;
    http_req_tls_handshaking Trend Time;
    http_req_sending Trend Time;
    http_req_waiting Trend Time;
    http_req_receiving Trend Time;
    ws_sessions Counter Default;
    ws_msgs_sent Counter Default;
    ws_msgs_received Counter Default;
    ws_ping Trend Time;
    ws_session_duration Trend Time;
    ws_connecting Trend Time;
    sse_event Counter Default;
    grpc_req_duration Trend Time;
    grpc_streams Counter Default;
    grpc_streams_msgs_sent Counter Default;
    grpc_streams_msgs_received Counter Default;
}

/// What a counter of whole things has come to.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it counts things"
)]
pub(crate) fn counted(sinks: &Sinks, counter: MetricId) -> u64 {
    match sinks.series(sinks.registry().metric(counter).series) {
        Some(Sink::Counter(sum)) => *sum as u64,
        _ => 0,
    }
}

/// A figure of a trend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TrendStat {
    Avg,
    Min,
    Med,
    Max,
    Count,
    /// From 0 to 100.
    Percentile(f64),
}

impl TrendStat {
    /// `None` if there is no such figure.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "avg" => Self::Avg,
            "min" => Self::Min,
            "med" => Self::Med,
            "max" => Self::Max,
            "count" => Self::Count,
            _ => {
                let number = text.strip_prefix("p(")?.strip_suffix(')')?;
                let number: f64 = number.trim().parse().ok()?;
                Self::Percentile(Some(number).filter(|it| (0.0..=100.0).contains(it))?)
            }
        })
    }

    pub(crate) fn value_in(self, trend: &Trend) -> f64 {
        match self {
            Self::Avg => trend.mean(),
            Self::Min => trend.min(),
            Self::Med => trend.quantile(0.5),
            Self::Max => trend.max(),
            Self::Count => trend.count() as f64,
            Self::Percentile(percent) => trend.quantile(percent / 100.0),
        }
    }
}
