//! Errors of QUIC and HTTP/3 in the vocabulary of failures.

use h3::error::{Code, ConnectionError, StreamError};
use plimsoll_model::{Failure, FailureKind, Phase, Retry};
use plimsoll_wire::tls;

/// The failure that an error of one stream means.
///
/// - `reason`: why the connection is over, if it is; it says more than the stream does.
pub(super) fn stream_failure(
    phase: Phase,
    error: StreamError,
    reason: Option<quinn::ConnectionError>,
) -> Failure {
    match error {
        StreamError::RemoteTerminate { code, .. } => {
            let failure = Failure::new(phase, FailureKind::Reset)
                .because(format!("the server reset the stream: {code}"));
            if code == Code::H3_REQUEST_REJECTED {
                failure.retry(Retry::Safe)
            } else {
                failure.retry(Retry::Never)
            }
        }
        StreamError::RemoteClosing { .. } => Failure::new(phase, FailureKind::Closed)
            .because("the server accepts no more requests on this connection")
            .retry(Retry::Safe),
        StreamError::StreamError { code, reason, .. } => {
            Failure::new(phase, FailureKind::Protocol).because(format!("{reason} ({code})"))
        }
        StreamError::HeaderTooBig {
            actual_size,
            max_size,
            ..
        } => Failure::new(phase, FailureKind::TooLarge).because(format!(
            "header fields of {actual_size} bytes, of which {max_size} are allowed"
        )),
        StreamError::ConnectionError { 0: error, .. } => match (error, reason) {
            (ConnectionError::Local { error, .. }, _) => local(phase, &error),
            (_, Some(reason)) => connection_failure(phase, &reason),
            (error, None) => Failure::new(phase, FailureKind::Closed).because(error.to_string()),
        },
        other => match reason {
            Some(reason) => connection_failure(phase, &reason),
            None => Failure::new(phase, FailureKind::Protocol).because(other.to_string()),
        },
    }
}

/// The failure that the end of a connection means to what was under way during `phase`.
pub(super) fn connection_failure(phase: Phase, error: &quinn::ConnectionError) -> Failure {
    use quinn::ConnectionError as Error;

    let (kind, cause) = match error {
        Error::VersionMismatch => (
            FailureKind::Protocol,
            "the server speaks no version of QUIC that we do".to_owned(),
        ),
        Error::TransportError(error) => match alert(error.code) {
            Some(alert) => return tls::failure_of_alert(phase, alert, &error.reason),
            None => (FailureKind::Protocol, error.to_string()),
        },
        Error::ConnectionClosed(close) => match alert(close.error_code) {
            Some(NO_APPLICATION_PROTOCOL) => (
                FailureKind::Protocol,
                "the server does not offer HTTP/3 by ALPN".to_owned(),
            ),
            _ => (FailureKind::Closed, format!("the server gave up: {close}")),
        },
        Error::ApplicationClosed(close) => {
            let code = Code::from(close.error_code.into_inner());
            (
                FailureKind::Closed,
                format!("the server closed the connection: {code}"),
            )
        }
        Error::Reset => (
            FailureKind::Reset,
            "the server has forgotten the connection".to_owned(),
        ),
        Error::TimedOut => (
            FailureKind::Timeout,
            "nothing was heard on the connection for too long".to_owned(),
        ),
        Error::LocallyClosed => (FailureKind::Closed, "closed by us".to_owned()),
        Error::CidsExhausted => (FailureKind::ResourceLimit, error.to_string()),
    };
    let failure = Failure::new(phase, kind).because(cause);
    // Only who closes without an error may be taken to have left what it has not answered.
    match error {
        Error::ApplicationClosed(close) if is_no_error(close) => failure,
        _ if failure.retry == Retry::IfReused => failure.retry(Retry::Never),
        _ => failure,
    }
}

fn is_no_error(close: &quinn::ApplicationClose) -> bool {
    close.error_code.into_inner() == Code::H3_NO_ERROR.value()
}

/// `no_application_protocol` (RFC 7301, section 3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The TLS alert in an error code of QUIC (RFC 9001, section 4.8).
fn alert(code: quinn::TransportErrorCode) -> Option<u8> {
    match u64::from(code) {
        code @ 0x100..0x200 => u8::try_from(code - 0x100).ok(),
        _ => None,
    }
}

fn local(phase: Phase, error: &h3::error::LocalError) -> Failure {
    let cause = match error {
        h3::error::LocalError::Application { code, reason, .. } => format!("{reason} ({code})"),
        other => format!("{other:?}"),
    };
    Failure::new(phase, FailureKind::Protocol).because(cause)
}
