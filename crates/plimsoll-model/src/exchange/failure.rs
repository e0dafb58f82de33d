//! Why an exchange did not complete: one vocabulary for every part of plimsoll.

use std::fmt;

use crate::Phase;

/// An exchange for which no complete response came.
///
/// A response with a status of 400 or above is a response, not a failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} during {phase}{}", Cause(cause))]
pub struct Failure {
    /// The phase that was under way.
    pub phase: Phase,
    /// The kind of failure.
    pub kind: FailureKind,
    /// Which side is at fault, as far as it is known.
    pub side: Side,
    /// Whether the same request may be sent again.
    pub retry: Retry,
    /// The underlying message, where there is one; lowercase, without a full stop.
    pub cause: Option<String>,
}

impl Failure {
    /// A failure with the side and the retry safety that its kind and phase usually imply.
    pub fn new(phase: Phase, kind: FailureKind) -> Self {
        Self {
            phase,
            kind,
            side: kind.usual_side(),
            retry: usual_retry(phase, kind),
            cause: None,
        }
    }

    /// The same failure with its underlying message.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The same failure, blamed on `side`.
    #[must_use]
    pub fn on(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// The same failure with another retry safety.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The failure that an I/O error means when it comes up during `phase`.
    pub fn from_io(phase: Phase, error: &std::io::Error) -> Self {
        let failure = Self::new(phase, FailureKind::from_io(error)).because(error.to_string());
        match error.kind() {
            std::io::ErrorKind::HostUnreachable
            | std::io::ErrorKind::NetworkUnreachable
            | std::io::ErrorKind::NetworkDown => failure.on(Side::Network),
            _ => failure,
        }
    }
}

struct Cause<'a>(&'a Option<String>);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The peer, or the network on its behalf, declined the connection.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// A limit on time passed.
    Timeout,
    /// The peer closed the connection in an orderly way, too early.
    Closed,
    /// The peer's bytes are not the protocol.
    Protocol,
    /// The certificate is not valid at this time.
    CertificateExpired,
    /// The certificate's issuer is not trusted.
    CertificateUntrusted,
    /// The certificate is for another name.
    CertificateHostname,
    /// The certificate is its own issuer.
    CertificateSelfSigned,
    /// The certificate is unusable for another reason.
    CertificateOther,
    /// The host name has no address.
    NameNotFound,
    /// A head, a header count or a body exceeded its limit.
    TooLarge,
    /// A body could not be decoded.
    Decode,
    /// The run ended while the exchange was under way.
    Aborted,
    /// This machine ran out of something: descriptors, ports, memory.
    ResourceLimit,
    /// The peer did not agree to speak another protocol on the connection.
    UpgradeRefused,
    /// The response lacks a value that later requests need.
    MissingValue,
}

impl FailureKind {
    /// Every kind, in order.
    pub const ALL: [Self; 17] = [
        Self::Refused,
        Self::Reset,
        Self::Timeout,
        Self::Closed,
        Self::Protocol,
        Self::CertificateExpired,
        Self::CertificateUntrusted,
        Self::CertificateHostname,
        Self::CertificateSelfSigned,
        Self::CertificateOther,
        Self::NameNotFound,
        Self::TooLarge,
        Self::Decode,
        Self::Aborted,
        Self::ResourceLimit,
        Self::UpgradeRefused,
        Self::MissingValue,
    ];

    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateUntrusted => "certificate-untrusted",
            Self::CertificateHostname => "certificate-hostname",
            Self::CertificateSelfSigned => "certificate-selfsigned",
            Self::CertificateOther => "certificate-other",
            Self::NameNotFound => "name-not-found",
            Self::TooLarge => "too-large",
            Self::Decode => "decode",
            Self::Aborted => "aborted",
            Self::ResourceLimit => "resource-limit",
            Self::UpgradeRefused => "upgrade-refused",
            Self::MissingValue => "missing-value",
        }
    }

    /// The kind that an I/O error means.
    ///
    /// Source: errno(3); `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM` and `EADDRNOTAVAIL` are limits of
    /// this machine.
    pub fn from_io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;

        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const ENOBUFS: i32 = if cfg!(target_os = "linux") { 105 } else { 55 };

        if let Some(ENFILE | EMFILE | ENOBUFS) = error.raw_os_error() {
            return Self::ResourceLimit;
        }
        match error.kind() {
            ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::NotFound
            | ErrorKind::PermissionDenied => Self::Refused,
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
                Self::Reset
            }
            ErrorKind::TimedOut => Self::Timeout,
            ErrorKind::UnexpectedEof | ErrorKind::NotConnected => Self::Closed,
            ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse | ErrorKind::OutOfMemory => {
                Self::ResourceLimit
            }
            _ => Self::Protocol,
        }
    }

    const fn usual_side(self) -> Side {
        match self {
            Self::Aborted | Self::ResourceLimit => Side::Ours,
            Self::NameNotFound | Self::Timeout => Side::Network,
            Self::TooLarge => Side::Config,
            Self::Refused
            | Self::Reset
            | Self::Closed
            | Self::Protocol
            | Self::CertificateExpired
            | Self::CertificateUntrusted
            | Self::CertificateHostname
            | Self::CertificateSelfSigned
            | Self::CertificateOther
            | Self::Decode
            | Self::UpgradeRefused
            | Self::MissingValue => Side::Theirs,
        }
    }
}

/// Before the request was handed over nothing can have happened twice; a connection that the peer
/// closed while idle may be replaced if it had been used before (RFC 9112, section 9.3.1).
const fn usual_retry(phase: Phase, kind: FailureKind) -> Retry {
    match (phase, kind) {
        (_, FailureKind::Aborted) => Retry::Never,
        (Phase::Blocked | Phase::Dns | Phase::Connect | Phase::Tls, _) => Retry::Safe,
        (Phase::Send | Phase::Wait, FailureKind::Reset | FailureKind::Closed) => Retry::IfReused,
        _ => Retry::Never,
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The side at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// This machine or this program.
    Ours,
    /// The peer.
    Theirs,
    /// Something between the two.
    Network,
    /// The user's configuration.
    Config,
}

impl Side {
    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
            Self::Network => "network",
            Self::Config => "config",
        }
    }
}

/// Whether the same request may be sent again without the risk of doing it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// The peer may have acted on it.
    Never,
    /// The peer cannot have seen it.
    Safe,
    /// Safe on a connection that had already carried an exchange: it was closed while idle.
    IfReused,
}

impl Retry {
    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Safe => "safe",
            Self::IfReused => "if-reused",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn io_errors_map_to_kinds() {
        let kind = |errno| FailureKind::from_io(&io::Error::from_raw_os_error(errno));
        let no_buffers = if cfg!(target_os = "linux") { 105 } else { 55 };
        for errno in [23, 24, no_buffers] {
            assert_eq!(kind(errno), FailureKind::ResourceLimit, "{errno}");
        }
        assert_eq!(
            FailureKind::from_io(&io::ErrorKind::ConnectionRefused.into()),
            FailureKind::Refused
        );
        assert_eq!(
            FailureKind::from_io(&io::ErrorKind::AddrNotAvailable.into()),
            FailureKind::ResourceLimit
        );
        assert_eq!(
            Failure::from_io(Phase::Connect, &io::ErrorKind::NetworkUnreachable.into()).side,
            Side::Network
        );
    }

    #[test]
    fn retry_is_safe_only_before_the_request_left() {
        let retry = |phase, kind| Failure::new(phase, kind).retry;
        assert_eq!(retry(Phase::Connect, FailureKind::Timeout), Retry::Safe);
        assert_eq!(retry(Phase::Wait, FailureKind::Closed), Retry::IfReused);
        assert_eq!(retry(Phase::Receive, FailureKind::Closed), Retry::Never);
        assert_eq!(retry(Phase::Wait, FailureKind::Timeout), Retry::Never);
    }

    #[test]
    fn display_names_kind_phase_and_cause() {
        let failure = Failure::new(Phase::Connect, FailureKind::Refused).because("no listener");
        assert_eq!(failure.to_string(), "refused during connect: no listener");
    }
}
