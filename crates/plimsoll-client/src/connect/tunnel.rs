//! Handshakes with proxies, after which the stream leads to the target.

use plimsoll_model::{Failure, FailureKind, Phase, Side};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_socks::tcp::{Socks4Stream, Socks5Stream};
use tokio_socks::{Error as SocksError, TargetAddr};

use crate::connect::endpoint::Endpoint;
use crate::connect::proxy::Proxy;
use crate::connect::stream::Stream;

/// The longest head of an answer to `CONNECT` that is read.
const HEAD_LIMIT: usize = 16 * 1024;

/// The most fields in it.
const FIELD_LIMIT: usize = 64;

/// Asks an HTTP proxy for a tunnel to `endpoint` (RFC 9110, section 9.3.6).
pub(crate) async fn http(
    mut stream: Stream,
    proxy: &Proxy,
    endpoint: &Endpoint,
) -> Result<Stream, Failure> {
    let failed =
        |error: &std::io::Error| blame(proxy, plimsoll_wire::tls::failure(Phase::Connect, error));
    stream
        .write_all(connect_head(proxy, endpoint).as_bytes())
        .await
        .map_err(|error| failed(&error))?;
    stream.flush().await.map_err(|error| failed(&error))?;

    let mut head = Vec::with_capacity(512);
    loop {
        match stream.read_buf(&mut head).await {
            Err(error) => return Err(failed(&error)),
            Ok(0) => {
                return Err(refusal(
                    proxy,
                    FailureKind::Closed,
                    "closed the connection before it answered CONNECT",
                ));
            }
            Ok(_) => {}
        }
        loop {
            match parse_answer(&head) {
                Ok(None) if head.len() >= HEAD_LIMIT => {
                    return Err(refusal(
                        proxy,
                        FailureKind::TooLarge,
                        &format!("answered CONNECT with a head above {HEAD_LIMIT} bytes"),
                    ));
                }
                Ok(None) => break,
                Ok(Some(Answer { status, length, .. })) if (100..200).contains(&status) => {
                    head.drain(..length);
                }
                Ok(Some(Answer { status, length, .. })) if (200..300).contains(&status) => {
                    if length < head.len() {
                        return Err(refusal(
                            proxy,
                            FailureKind::Protocol,
                            "sent bytes through the tunnel before the target was spoken to",
                        ));
                    }
                    return Ok(stream);
                }
                Ok(Some(answer)) => return Err(declined(proxy, &answer)),
                Err(reason) => {
                    return Err(refusal(
                        proxy,
                        FailureKind::Protocol,
                        &format!("answered CONNECT with something else than HTTP/1: {reason}"),
                    ));
                }
            }
        }
    }
}

/// Asks a SOCKS 5 proxy for a connection to `target` (RFC 1928, RFC 1929).
pub(crate) async fn socks5(
    stream: Stream,
    proxy: &Proxy,
    target: TargetAddr<'_>,
) -> Result<Stream, Failure> {
    match proxy.credentials() {
        None => Socks5Stream::connect_with_socket(stream, target).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(stream, target, user, password.expose())
                .await
        }
    }
    .map(Socks5Stream::into_inner)
    .map_err(|error| socks_failure(proxy, &error))
}

/// Asks a SOCKS 4 or, for a name, a SOCKS 4a proxy for a connection to `target`.
pub(crate) async fn socks4(
    stream: Stream,
    proxy: &Proxy,
    target: TargetAddr<'_>,
) -> Result<Stream, Failure> {
    match proxy.credentials() {
        None => Socks4Stream::connect_with_socket(stream, target).await,
        Some((user, _)) => Socks4Stream::connect_with_userid_and_socket(stream, target, user).await,
    }
    .map(Socks4Stream::into_inner)
    .map_err(|error| socks_failure(proxy, &error))
}

/// The failure with the proxy's name put before its cause.
pub(crate) fn blame(proxy: &Proxy, failure: Failure) -> Failure {
    let cause = match &failure.cause {
        Some(cause) => format!("proxy {proxy}: {cause}"),
        None => format!("proxy {proxy}"),
    };
    failure.because(cause)
}

fn connect_head(proxy: &Proxy, endpoint: &Endpoint) -> String {
    let target = endpoint.authority_with_port();
    let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = proxy.authorization() {
        head.push_str("Proxy-Authorization: ");
        head.push_str(authorization.expose());
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    reason: String,
    /// Of the head, with its empty line.
    length: usize,
}

/// Nothing while the head is not complete.
fn parse_answer(bytes: &[u8]) -> Result<Option<Answer>, httparse::Error> {
    let mut fields = [httparse::EMPTY_HEADER; FIELD_LIMIT];
    let mut response = httparse::Response::new(&mut fields);
    Ok(match response.parse(bytes)? {
        httparse::Status::Partial => None,
        httparse::Status::Complete(length) => Some(Answer {
            status: response.code.unwrap_or_default(),
            reason: response.reason.unwrap_or_default().to_owned(),
            length,
        }),
    })
}

fn declined(proxy: &Proxy, answer: &Answer) -> Failure {
    let Answer { status, reason, .. } = answer;
    let message = format!("answered CONNECT with {status} {reason}");
    let message = message.trim_end();
    match status {
        407 if proxy.credentials().is_none() => refusal(
            proxy,
            FailureKind::Refused,
            &format!("{message}; give a user and password in the proxy's URL"),
        )
        .on(Side::Config),
        407 => refusal(
            proxy,
            FailureKind::Refused,
            &format!("{message}; it does not accept this user and password"),
        )
        .on(Side::Config),
        504 => refusal(proxy, FailureKind::Timeout, message),
        _ => refusal(proxy, FailureKind::Refused, message).on(Side::Network),
    }
}

fn refusal(proxy: &Proxy, kind: FailureKind, what: &str) -> Failure {
    Failure::new(Phase::Connect, kind).because(format!("proxy {proxy} {what}"))
}

fn socks_failure(proxy: &Proxy, error: &SocksError) -> Failure {
    let failure =
        |kind| Failure::new(Phase::Connect, kind).because(error.to_string().to_lowercase());
    let failure = match error {
        SocksError::Io(error) => Failure::from_io(Phase::Connect, error),
        SocksError::AuthorizationRequired
        | SocksError::NoAcceptableAuthMethods
        | SocksError::PasswordAuthFailure(_)
        | SocksError::InvalidAuthValues(_)
        | SocksError::IdentdAuthFailure
        | SocksError::InvalidUserIdAuthFailure
        | SocksError::InvalidTargetAddress(_) => failure(FailureKind::Refused).on(Side::Config),
        SocksError::ProxyServerUnreachable
        | SocksError::GeneralSocksServerFailure
        | SocksError::ConnectionNotAllowedByRuleset
        | SocksError::NetworkUnreachable
        | SocksError::HostUnreachable
        | SocksError::ConnectionRefused => failure(FailureKind::Refused).on(Side::Network),
        SocksError::TtlExpired => failure(FailureKind::Timeout),
        _ => failure(FailureKind::Protocol),
    };
    blame(proxy, failure)
}

#[cfg(test)]
mod tests;
