//! Responses in place of those that cannot be forwarded (RFC 9110, section 15.6).

use http::StatusCode;
use http::header::{ALLOW, HeaderValue};
use plimsoll_client::forward::NotForwarded;
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_server::Response;

/// Whether a status says that the server could not do its work, rather than that the request was wrong.
pub(super) fn is_failing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The response to a request that failed. It does not name the server: that is for the log.
pub(super) fn response(failure: &Failure) -> Response {
    match (failure.side, failure.kind) {
        (Side::Ours, FailureKind::ResourceLimit) => overloaded(),
        (Side::Ours, _) => bad_request(),
        (_, FailureKind::Timeout) => Response::text(
            StatusCode::GATEWAY_TIMEOUT,
            "the upstream server did not respond in time\n",
        ),
        (_, FailureKind::TooLarge) => response_too_large(),
        _ if failure.phase < Phase::Send => Response::text(
            StatusCode::BAD_GATEWAY,
            "the upstream server cannot be reached\n",
        ),
        _ => bad_gateway(),
    }
}

pub(super) fn bad_gateway() -> Response {
    Response::text(
        StatusCode::BAD_GATEWAY,
        "the upstream server did not send a valid response\n",
    )
}

/// The response of this gateway itself where a path names no script of an application.
pub(super) fn no_script() -> Response {
    Response::text(StatusCode::NOT_FOUND, "not found\n")
}

pub(super) fn bad_request() -> Response {
    Response::text(StatusCode::BAD_REQUEST, "the request cannot be forwarded\n")
}

/// The response of this gateway itself to a request that no server gets.
pub(super) fn not_forwarded(reason: NotForwarded) -> Response {
    let allowed = HeaderValue::from_static(NotForwarded::ALLOWED);
    let response = match reason {
        NotForwarded::Echoed => Response::text(
            StatusCode::METHOD_NOT_ALLOWED,
            "requests of this method are not forwarded\n",
        ),
        NotForwarded::LastHop => Response::new(StatusCode::NO_CONTENT),
    };
    response.with_field(ALLOW, allowed)
}

/// For CONNECT, plain or for a protocol that is not forwarded.
pub(super) fn no_tunnel() -> Response {
    Response::text(
        StatusCode::NOT_IMPLEMENTED,
        "no tunnel leads through this route\n",
    )
}

pub(super) fn too_large() -> Response {
    Response::text(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request is longer than its limit\n",
    )
}

pub(super) fn response_too_large() -> Response {
    Response::text(
        StatusCode::BAD_GATEWAY,
        "the response of the upstream server is longer than its limit\n",
    )
}

/// For a request that names no upstream.
pub(super) fn no_upstream() -> Response {
    Response::text(
        StatusCode::BAD_GATEWAY,
        "there is no upstream for this request\n",
    )
}

pub(super) fn no_server() -> Response {
    Response::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "no upstream server is available\n",
    )
}

pub(super) fn broken() -> Response {
    Response::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "the upstream servers failed too often\n",
    )
}

pub(super) fn overloaded() -> Response {
    Response::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many requests wait for the upstream servers\n",
    )
}
