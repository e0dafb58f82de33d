//! Why requests fail, as numbers and texts that scripts know.

use plimsoll_model::{Failure, FailureKind, Phase};

/// The code and the text of `Response.error_code` and `Response.error`.
pub(crate) fn of_failure(failure: &Failure) -> (u16, String) {
    let cause = || failure.to_string();
    match (failure.phase, failure.kind) {
        (Phase::Dns, FailureKind::NameNotFound) => (1101, "lookup: no such host".to_owned()),
        (Phase::Dns, FailureKind::Refused) => (1110, "ip is blacklisted".to_owned()),
        (Phase::Dns, _) => (1100, cause()),
        (Phase::Connect, FailureKind::Timeout) => (1211, "dial: i/o timeout".to_owned()),
        (Phase::Connect, FailureKind::Refused) => (1212, "dial: connection refused".to_owned()),
        (Phase::Connect, FailureKind::Reset) => (1220, cause()),
        (Phase::Connect, _) => (1210, cause()),
        (Phase::Tls, FailureKind::CertificateUntrusted | FailureKind::CertificateSelfSigned) => {
            (1310, "x509: unknown authority".to_owned())
        }
        (Phase::Tls, FailureKind::CertificateHostname) => {
            (1311, "x509: certificate doesn't match hostname".to_owned())
        }
        (Phase::Tls, FailureKind::Protocol) => (1301, cause()),
        (Phase::Tls, _) => (1300, cause()),
        (_, FailureKind::Reset) => (1220, cause()),
        (_, FailureKind::Timeout) => (1050, "request timeout".to_owned()),
        (_, FailureKind::Decode) => (1701, cause()),
        _ => (1000, cause()),
    }
}

/// That of a request that took too long.
pub(crate) fn timeout() -> (u16, String) {
    (1050, "request timeout".to_owned())
}

/// That of a response that cannot be decompressed.
pub(crate) fn decode(error: &impl std::fmt::Display) -> (u16, String) {
    (1701, error.to_string())
}

/// That of an invalid URL.
pub(crate) fn invalid_url(address: &str, error: &impl std::fmt::Display) -> (u16, String) {
    (1020, format!("invalid URL: {error}: {address}"))
}

/// That of a status: 1000 more for 400 and above.
pub(crate) fn of_status(status: u16) -> u16 {
    if status >= 400 { 1000 + status } else { 0 }
}
