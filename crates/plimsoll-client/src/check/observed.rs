//! Values that conditions are about.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_model::{Exchange, GrpcStatus, Phases};
use serde_json::Value;

/// Facts about an exchange besides head and content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// The status.
    pub status: u16,
    /// Duration of the exchange, from its actual start.
    pub time: Duration,
    /// The phases that happened.
    pub phases: Phases,
    /// The peer's address.
    pub peer: Option<IpAddr>,
    /// Whole days until the peer's certificate expires; negative once it has.
    pub certificate_days: Option<i64>,
    /// Status of the gRPC call, if it was one.
    pub grpc_status: Option<GrpcStatus>,
}

impl Facts {
    /// Those of an exchange; `None` if it failed.
    pub fn from_exchange(exchange: &Exchange, certificate_days: Option<i64>) -> Option<Self> {
        Some(Self {
            status: *exchange.outcome.as_ref().ok()?,
            time: exchange.latency_from_started(),
            phases: exchange.phases,
            peer: exchange.peer.map(|peer| peer.ip()),
            certificate_days,
            grpc_status: None,
        })
    }
}

/// One response as conditions see it; allocates only where a condition asks for JSON.
#[derive(Debug)]
pub struct Observed<'a> {
    pub(super) facts: Facts,
    pub(super) size: u64,
    pub(super) headers: &'a [(String, Vec<u8>)],
    pub(super) body: &'a [u8],
    /// Whether the body is the whole content.
    is_whole: bool,
    /// Parsed when the first condition asks for it.
    json: OnceCell<Option<Value>>,
}

impl<'a> Observed<'a> {
    /// - `headers`: fields with names in lower case.
    /// - `body`: the content, as far as it was kept.
    /// - `size`: bytes of the whole content.
    pub fn new(facts: Facts, headers: &'a [(String, Vec<u8>)], body: &'a [u8], size: u64) -> Self {
        Self {
            facts,
            size,
            headers,
            body,
            is_whole: size <= body.len() as u64,
            json: OnceCell::new(),
        }
    }

    /// With a body that was changed for people, which has no hash of its own.
    #[must_use]
    pub fn altered(mut self) -> Self {
        self.is_whole = false;
        self
    }

    /// SHA-256 of the content; `None` if it was cut.
    pub(super) fn sha256(&self) -> Option<[u8; 32]> {
        if !self.is_whole {
            return None;
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, self.body);
        digest.as_ref().try_into().ok()
    }

    /// The first field of that lower-case name.
    pub(super) fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_slice())
    }

    /// The content as JSON, if it is that.
    pub(super) fn json(&self) -> Option<&Value> {
        self.json
            .get_or_init(|| serde_json::from_slice(self.body).ok())
            .as_ref()
    }
}
