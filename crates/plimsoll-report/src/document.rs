//! The summary as programs read it: `schemas/load-summary.v1.json`.
//!
//! Units are in the names; durations are microseconds with up to three decimals. Within a version
//! fields are added and never change their meaning. What could not be observed is `null`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{GeneratorShare, Phase, RunSummary, Times};
use serde::{Deserialize, Serialize};

use crate::series::course;

pub(crate) mod check_document;

pub(crate) mod chaos_document;

pub(crate) mod loadtest_document;

pub(crate) mod loadtest_part;

mod agents;
mod conditions;
mod cost;
mod counts;
mod load;
mod observed;
mod plan_document;
mod requests;
mod streams;
mod tick;
mod times;

pub use self::agents::FleetAgentDocument;
pub use self::conditions::ConditionsDocument;
pub use self::cost::{CostDocument, GeneratorDocument, SaturationDocument, TargetDocument};
pub use self::counts::{CountsDocument, FailureDocument, ThresholdDocument};
pub use self::load::LoadDocument;
pub use self::observed::{GapDocument, ObservedDocument, ObservedTickDocument};
pub use self::plan_document::PlanDocument;
pub use self::requests::RequestDocument;
pub use self::streams::{DecodedDocument, EventsDocument, GrpcDocument, MessagesDocument};
pub(crate) use self::tick::censored;
pub use self::tick::{SpreadDocument, TickDocument};
pub use self::times::{GeneratorShareDocument, LatencyDocument, PhaseDocument, TimesDocument};

/// One run of `plimsoll load`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryDocument {
    /// Always [`SummaryDocument::SCHEMA`].
    pub schema: String,
    /// The configured load.
    pub load: LoadDocument,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// Length of the measured window.
    pub window_us: f64,
    /// Responses completed within the window, per second of it.
    pub requests_per_second: f64,
    /// Bytes received by the exchanges that completed within the window, per second of it.
    pub received_bytes_per_second: f64,
    /// Counts of exchanges by outcome.
    pub counts: CountsDocument,
    /// Bytes of the exchanges that ended, those of the grace period included, handed to the transport.
    pub sent_bytes: u64,
    /// The same, taken from the transport.
    pub received_bytes: u64,
    /// Whether all bytes are those before encryption by TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes_exclude_tls: bool,
    /// Bytes sent by the exchanges that completed within the window.
    #[serde(default)]
    pub sent_bytes_in_window: u64,
    /// Bytes received by the exchanges that completed within the window.
    #[serde(default)]
    pub received_bytes_in_window: u64,
    /// Connections opened, those of the warm-up included.
    pub connections_opened: u64,
    /// Messages of WebSockets in the measured window, where there were any connections of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesDocument>,
    /// Content of the measured window before and after decoding, where `--compressed` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<DecodedDocument>,
    /// Figures of event streams, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsDocument>,
    /// Durations of exchanges.
    pub latency: LatencyDocument,
    /// The phases that happened, in order.
    pub phases: Vec<PhaseDocument>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// gRPC figures; null unless the run was of gRPC.
    #[serde(default)]
    pub grpc: Option<GrpcDocument>,
    /// Failures by kind and phase, most frequent first.
    pub failures: Vec<FailureDocument>,
    /// Unmet `--expect` conditions by their text.
    pub unmet: BTreeMap<String, u64>,
    /// Figures by request, the worst first; empty if there is only one.
    #[serde(default)]
    pub requests: Vec<RequestDocument>,
    /// Outcomes of the thresholds, in the order in which they were given.
    #[serde(default)]
    pub thresholds: Vec<ThresholdDocument>,
    /// Cost of the target, if its processes could be observed.
    pub target: Option<TargetDocument>,
    /// Servers that were observed by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedDocument>,
    /// The agents that made the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<FleetAgentDocument>,
    /// The generator's own state.
    pub generator: GeneratorDocument,
    /// Under which conditions this was measured.
    pub conditions: ConditionsDocument,
    /// One entry a second, warm-up included.
    pub ticks: Vec<TickDocument>,
}

impl SummaryDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.load.summary/1";

    /// The document of `run`.
    pub fn from_summary(run: &RunSummary) -> Self {
        let by_status = run.latency.by_status();
        let share = GeneratorShare::from_run(run);
        let times = |times: &Times| TimesDocument::with_share(times.view(), share.as_ref());
        Self {
            schema: Self::SCHEMA.to_owned(),
            load: LoadDocument::from_shape(&run.load),
            interrupted: run.interrupted,
            window_us: microseconds(run.window),
            requests_per_second: rounded(run.requests_per_second()),
            received_bytes_per_second: rounded(run.bytes_received_per_second()),
            counts: CountsDocument::from_counts(&run.counts, run.error_statuses()),
            sent_bytes: run.bytes_sent,
            received_bytes: run.bytes_received,
            bytes_exclude_tls: run.load.bytes_exclude_tls(),
            sent_bytes_in_window: run.bytes_in_window.sent,
            received_bytes_in_window: run.bytes_in_window.received,
            connections_opened: run.connections_opened,
            messages: run.messages.map(|messages| MessagesDocument {
                sent: messages.sent,
                received: messages.received,
            }),
            decoded: run.decoded.map(|decoded| DecodedDocument {
                encoded_bytes: decoded.encoded,
                decoded_bytes: decoded.decoded,
            }),
            events: run.events.as_ref().map(|events| {
                EventsDocument::from_figures(events, run.events_per_second().unwrap_or_default())
            }),
            latency: LatencyDocument {
                from_started: times(&run.latency.from_started),
                from_intended: run.latency.from_intended.as_ref().map(times),
                of_ok: by_status
                    .as_ref()
                    .map(|kinds| TimesDocument::from_times(&kinds.ok)),
                of_errors: by_status
                    .as_ref()
                    .map(|kinds| TimesDocument::from_times(kinds.errors)),
            },
            phases: Phase::ALL
                .into_iter()
                .map(|phase| (phase, run.phase(phase)))
                .filter(|(_, times)| !times.observed().is_empty())
                .map(|(phase, times)| PhaseDocument {
                    phase: phase.name().to_owned(),
                    times: TimesDocument::from_times(times),
                })
                .collect(),
            statuses: run.statuses.clone(),
            grpc: run.grpc.as_ref().map(|grpc| {
                GrpcDocument::from_figures(grpc, run.grpc_messages_per_second().unwrap_or_default())
            }),
            failures: run
                .failures
                .iter()
                .map(FailureDocument::from_failure)
                .collect(),
            unmet: run.unmet.clone(),
            requests: run
                .requests
                .iter()
                .map(RequestDocument::from_figures)
                .collect(),
            thresholds: run
                .thresholds
                .iter()
                .map(ThresholdDocument::from_judged)
                .collect(),
            target: run
                .target
                .as_ref()
                .map(|target| TargetDocument::from_server_cost(target, run)),
            observed: run
                .observed
                .iter()
                .map(|server| ObservedDocument::from_observed(server, run))
                .collect(),
            agents: run
                .agents
                .iter()
                .map(|agent| FleetAgentDocument::from_figures(agent, run.window))
                .collect(),
            generator: GeneratorDocument::from_generator(&run.generator),
            conditions: ConditionsDocument::from_conditions(&run.conditions),
            ticks: course(run)
                .map(|(tick, before, after)| {
                    TickDocument::from_tick(tick, before, after, &run.moments)
                })
                .collect(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A document as indented JSON with a line feed at its end.
///
/// Its maps must have keys that are text or numbers, as those of all documents have.
pub fn to_json(document: &impl Serialize) -> String {
    let mut json = serde_json::to_string_pretty(document)
        .expect("every key is text or a number, so a document is always JSON");
    json.push('\n');
    json
}

/// Exact to the nanosecond.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// To three decimals: the rest is noise.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
