//! Statuses of gRPC, and what a run found of them.

use std::fmt;

/// Status of a gRPC call.
///
/// Source: "Status codes and their use in gRPC", grpc.github.io.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrpcStatus(u8);

/// By code.
const NAMES: [&str; GrpcStatus::COUNT] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl GrpcStatus {
    /// Number of statuses; their codes are the numbers below this.
    pub const COUNT: usize = 17;

    /// The call did what it should.
    pub const OK: Self = Self(0);

    /// The method, or its service, is not there.
    pub const UNIMPLEMENTED: Self = Self(12);

    const UNKNOWN: Self = Self(2);

    /// The status with this code; a code that does not exist is `UNKNOWN`.
    pub fn from_code(code: u64) -> Self {
        match u8::try_from(code) {
            Ok(code) if usize::from(code) < Self::COUNT => Self(code),
            _ => Self::UNKNOWN,
        }
    }

    /// The status of a response without a gRPC status, derived from its HTTP status; never `OK`.
    ///
    /// Source: "HTTP to gRPC Status Code Mapping", doc/http-grpc-status-mapping.md of grpc.
    pub const fn from_http(status: u16) -> Self {
        match status {
            400 => Self(13),
            401 => Self(16),
            403 => Self(7),
            404 => Self::UNIMPLEMENTED,
            429 | 502..=504 => Self(14),
            _ => Self::UNKNOWN,
        }
    }

    /// Every status, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(Self::COUNT).map(Self)
    }

    /// The number on the wire.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    /// Whether the call did what it should.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for GrpcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Figures of a gRPC run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrpcFigures {
    /// Calls by status, those that happened, by code.
    pub statuses: Vec<GrpcStatusCount>,
    /// Messages of all complete responses.
    pub messages_received: u64,
    /// Messages of the responses that completed within the measured window, from which the rate is
    /// computed.
    pub messages_in_window: u64,
}

impl GrpcFigures {
    /// Calls whose status is not `OK`.
    pub fn errors(&self) -> u64 {
        let statuses = self.statuses.iter();
        let errors = statuses.filter(|counted| !counted.status.is_ok());
        errors.map(|counted| counted.count).sum()
    }
}

/// Calls of one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStatusCount {
    /// The status.
    pub status: GrpcStatus,
    /// Number of calls with it.
    pub count: u64,
    /// The server's first message, if it sent any.
    pub example: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_codes_and_names() {
        assert_eq!(GrpcStatus::from_code(14).to_string(), "UNAVAILABLE");
        assert_eq!(GrpcStatus::from_code(16).name(), "UNAUTHENTICATED");
        for code in [17, 256, u64::MAX] {
            assert_eq!(GrpcStatus::from_code(code), GrpcStatus::UNKNOWN);
        }
        let codes: Vec<_> = GrpcStatus::all().map(GrpcStatus::code).collect();
        assert_eq!(codes, (0..17).collect::<Vec<_>>());
    }

    #[test]
    fn no_status_of_http_is_ok() {
        assert!((100..1000).all(|status| !GrpcStatus::from_http(status).is_ok()));
        assert_eq!(GrpcStatus::from_http(503).name(), "UNAVAILABLE");
        assert_eq!(GrpcStatus::from_http(404), GrpcStatus::UNIMPLEMENTED);
    }
}
