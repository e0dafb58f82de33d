//! Messages of WebSockets, events of streams and calls of gRPC.

use std::collections::BTreeMap;

use plimsoll_model::{EventFigures, GrpcFigures, GrpcStatusCount};
use serde::{Deserialize, Serialize};

use super::{FailureDocument, TimesDocument, rounded};

/// Messages of WebSockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesDocument {
    /// Handed to the transport as a whole.
    pub sent: u64,
    /// Complete; unrequested ones are among them.
    pub received: u64,
}

/// Content of complete responses, before and after their content codings were undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedDocument {
    /// Bytes of content as it was sent.
    pub encoded_bytes: u64,
    /// Bytes of content after decoding; the same where it was not encoded.
    pub decoded_bytes: u64,
}

/// Server-sent events of the measured window, after their streams had been opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsDocument {
    /// Streams opened.
    pub opened: u64,
    /// Those that their servers ended in an orderly way.
    pub ended: u64,
    /// Those that broke.
    pub broken: u64,
    /// Those that were left because the run was over.
    pub left: u64,
    /// Why they broke, by kind and phase, most frequent first.
    pub failures: Vec<FailureDocument>,
    /// Complete events.
    pub received: u64,
    /// The same per second of the window.
    pub received_per_second: f64,
    /// From one event of a stream to the next, and from its opening to the first.
    pub gaps: TimesDocument,
}

impl EventsDocument {
    pub(super) fn from_figures(events: &EventFigures, per_second: f64) -> Self {
        Self {
            opened: events.opened,
            ended: events.ended,
            broken: events.broken,
            left: events.left,
            failures: events
                .failures
                .iter()
                .map(FailureDocument::from_failure)
                .collect(),
            received: events.received,
            received_per_second: rounded(per_second),
            gaps: TimesDocument::from_times(&events.gaps),
        }
    }
}

/// Outcomes of gRPC calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrpcDocument {
    /// Calls by the name of their status.
    pub statuses: BTreeMap<String, u64>,
    /// The server's first message for each status that is not `OK`, where it sent one.
    pub messages: BTreeMap<String, String>,
    /// Messages of all complete responses.
    pub messages_received: u64,
    /// Messages of the responses that completed within the window, per second of it.
    #[serde(default)]
    pub messages_per_second: f64,
}

impl GrpcDocument {
    pub(super) fn from_figures(grpc: &GrpcFigures, per_second: f64) -> Self {
        let name = |counted: &GrpcStatusCount| counted.status.name().to_owned();
        let statuses = grpc.statuses.iter();
        let with_messages = statuses.clone().filter_map(|counted| {
            let example = counted.example.clone()?;
            Some((name(counted), example))
        });
        Self {
            messages: with_messages.collect(),
            statuses: statuses
                .map(|counted| (name(counted), counted.count))
                .collect(),
            messages_received: grpc.messages_received,
            messages_per_second: rounded(per_second),
        }
    }
}
