//! Calls with one message on either side.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::Full;
use plimsoll_client::forward::Head;
use plimsoll_client::grpc::{frame, messages, read_status_message};
use plimsoll_formats::grpc::MethodName;
use plimsoll_model::{Clock as _, GrpcStatus};
use plimsoll_wire::SystemClock;

use super::error::GrpcError;
use super::{Connection, GrpcClient, failed};
use crate::options::duration::millis;
use crate::protocol::http::name_of;
use crate::user::{AwaitedResponse, UserState};

/// A call as a script describes it.
#[derive(Debug)]
pub(crate) struct GrpcRequest {
    pub(crate) method: MethodName,
    /// The message, as JSON.
    pub(crate) message: String,
    pub(crate) metadata: Vec<(String, String)>,
    /// Those of the virtual user at the time, then those of the call.
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) discards_message: bool,
}

/// The response as scripts see it.
#[derive(Debug)]
pub(crate) struct GrpcResponse {
    pub(crate) status: GrpcStatus,
    /// As JSON; absent if the call failed.
    pub(crate) message: Option<String>,
    /// With their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Why the call failed; empty if it did not.
    pub(crate) error: String,
}

/// The end of a call.
pub(super) struct Outcome {
    pub(super) status: GrpcStatus,
    /// The server's message beside the status, or ours.
    pub(super) message: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) trailers: Vec<(String, String)>,
    pub(super) messages: Vec<Vec<u8>>,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Code 4, where a deadline has passed.
const DEADLINE_EXCEEDED: u64 = 4;

/// Code 8, where a message is too long.
const RESOURCE_EXHAUSTED: u64 = 8;

/// Code 13, where a response is not one of gRPC.
const INTERNAL: u64 = 13;

/// Code 14, where there is no connection.
const UNAVAILABLE: u64 = 14;

impl Outcome {
    pub(super) fn failed(code: u64, message: String) -> Self {
        Self {
            status: GrpcStatus::from_code(code),
            message,
            headers: Vec::new(),
            trailers: Vec::new(),
            messages: Vec::new(),
            sent: 0,
            received: 0,
        }
    }
}

/// Makes a call and adds its samples. Fails, which a script sees as an exception, if it cannot be made.
pub(crate) async fn invoke(
    user: &Rc<UserState>,
    client: &GrpcClient,
    request: GrpcRequest,
) -> Result<GrpcResponse, GrpcError> {
    let connection = client.connection()?;
    let method = client
        .described
        .method(&connection, &request.method)
        .await?;
    if method.is_client_streaming() || method.is_server_streaming() {
        return Err(GrpcError::HasStream(request.method));
    }
    let encoded = method.messages(request.message.as_bytes());
    let encoded = encoded.map_err(GrpcError::Request)?;
    let message = encoded.into_iter().next().unwrap_or_default();
    let began = SystemClock.now();
    let path = format!("/{}", request.method);
    let awaited = AwaitedResponse::new(user);
    let calling = exchange(
        &connection,
        &path,
        &message,
        &request.metadata,
        request.timeout,
    );
    let mut outcome = calling
        .await
        .unwrap_or_else(|error| Outcome::failed(UNAVAILABLE, error.to_string()));
    awaited.end();
    let took = SystemClock.now().saturating_duration_since(began);
    let mut json = None;
    if outcome.status.is_ok() {
        match outcome.messages.as_slice() {
            [_] if request.discards_message => {}
            [message] => match method.answer_to_whole_json(message) {
                Ok(text) => json = Some(text),
                Err(error) => {
                    outcome.status = GrpcStatus::from_code(INTERNAL);
                    outcome.message = error.to_string();
                }
            },
            several => {
                outcome.status = GrpcStatus::from_code(INTERNAL);
                outcome.message =
                    format!("the response has {} messages instead of one", several.len());
            }
        }
    }
    let tags = tags(
        user,
        &connection,
        &request.method,
        &request.tags,
        Some(outcome.status),
    );
    user.add_with(user.shared.built_in.grpc_req_duration, millis(took), &tags);
    user.count_bytes(outcome.sent, outcome.received);
    Ok(GrpcResponse {
        status: outcome.status,
        message: json,
        headers: outcome.headers,
        trailers: outcome.trailers,
        error: if outcome.status.is_ok() {
            String::new()
        } else {
            outcome.message
        },
    })
}

/// The tags of a call's samples, as k6 sets them.
pub(super) fn tags(
    user: &UserState,
    connection: &Connection,
    method: &MethodName,
    given: &[(String, String)],
    status: Option<GrpcStatus>,
) -> Vec<(String, String)> {
    let on = user.shared.system_tags;
    let mut tags = given.to_vec();
    let has_name = name_of(given).is_some();
    let path = format!("/{method}");
    let url = format!("{}{path}", connection.address);
    let mut tag = |is_on: bool, name: &str, value: &str| {
        if is_on {
            tags.push((name.to_owned(), value.to_owned()));
        }
    };
    tag(on.url, "url", &url);
    tag(on.name && !has_name, "name", &path);
    tag(on.service, "service", method.service());
    tag(on.method, "method", method.method());
    if let Some(status) = status {
        tag(on.status, "status", &status.code().to_string());
    }
    tags
}

/// The fields of a call (gRPC over HTTP2, section "Requests").
pub(super) fn fields(
    metadata: &[(String, String)],
    timeout: Option<Duration>,
) -> Vec<(String, String)> {
    let mut fields = vec![
        ("content-type".to_owned(), "application/grpc".to_owned()),
        ("te".to_owned(), "trailers".to_owned()),
    ];
    if let Some(timeout) = timeout {
        // Eight digits at most.
        let value = match timeout.as_millis() {
            millis @ 0..=99_999_999 => format!("{millis}m"),
            _ => format!("{}S", timeout.as_secs().min(99_999_999)),
        };
        fields.push(("grpc-timeout".to_owned(), value));
    }
    fields.extend(
        metadata
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone())),
    );
    let has_agent = fields.iter().any(|(name, _)| name == "user-agent");
    if !has_agent {
        fields.push((
            "user-agent".to_owned(),
            concat!("plimsoll/", env!("CARGO_PKG_VERSION")).to_owned(),
        ));
    }
    fields
}

/// Sends one message and reads the response. Fails if there is no connection.
pub(super) async fn exchange(
    connection: &Rc<Connection>,
    path: &str,
    message: &[u8],
    metadata: &[(String, String)],
    timeout: Duration,
) -> Result<Outcome, GrpcError> {
    if message.len() > connection.most_sent {
        let text = format!(
            "trying to send message larger than max ({} vs. {})",
            message.len(),
            connection.most_sent
        );
        return Ok(Outcome::failed(RESOURCE_EXHAUSTED, text));
    }
    let calling = exchange_at_once(connection, path, message, metadata, timeout);
    match tokio::time::timeout(timeout, calling).await {
        Ok(result) => result,
        Err(_) => Ok(Outcome::failed(
            DEADLINE_EXCEEDED,
            "context deadline exceeded".to_owned(),
        )),
    }
}

async fn exchange_at_once(
    connection: &Rc<Connection>,
    path: &str,
    message: &[u8],
    metadata: &[(String, String)],
    timeout: Duration,
) -> Result<Outcome, GrpcError> {
    let framed = frame(&[message])?;
    let fields = fields(metadata, Some(timeout));
    let lease = connection.lease().await?;
    let mut head = Head::new("POST", path, &fields);
    head.authority = connection.authority.as_deref();
    let mut exchange = lease
        .begin(&head, Full::new(Bytes::from(framed)))
        .map_err(|failure| failed(&failure))?;
    let answer = exchange.final_head().await;
    let answer = answer.map_err(|incomplete| failed(&incomplete.failure))?;
    let mut reading = Reading::new(answer.status.as_u16(), answer.fields.iter());
    while let Some(part) = exchange.frame().await {
        let part = part.map_err(|incomplete| failed(&incomplete.failure))?;
        match part.into_data() {
            Ok(data) => {
                reading.content.extend_from_slice(&data);
                // Five bytes precede the message.
                if reading.content.len() > connection.most_received.saturating_add(5) {
                    let text = format!(
                        "received message larger than max ({} vs. {})",
                        reading.content.len() - 5,
                        connection.most_received
                    );
                    return Ok(Outcome::failed(RESOURCE_EXHAUSTED, text));
                }
            }
            Err(part) => {
                if let Ok(trailers) = part.into_trailers() {
                    reading.trailers(&trailers);
                }
            }
        }
    }
    let completed = exchange.completed();
    let mut outcome = reading.finish();
    if let Some(completed) = completed {
        outcome.sent = completed.bytes_sent;
        outcome.received = completed.bytes_received;
    }
    Ok(outcome)
}

/// A response, as it is read.
pub(super) struct Reading {
    http_status: u16,
    status: Option<u64>,
    message: String,
    headers: Vec<(String, String)>,
    trailers: Vec<(String, String)>,
    pub(super) content: Vec<u8>,
}

impl Reading {
    pub(super) fn new<'a>(
        http_status: u16,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Self {
        let mut reading = Self {
            http_status,
            status: None,
            message: String::new(),
            headers: Vec::new(),
            trailers: Vec::new(),
            content: Vec::new(),
        };
        let headers = reading.read_fields(fields);
        // A response that is only a status has it in its head; k6 shows it among the trailers.
        if reading.status.is_some() {
            reading.trailers.clone_from(&headers);
        }
        reading.headers = headers;
        reading
    }

    fn read_fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Vec<(String, String)> {
        let mut taken = Vec::new();
        for (name, value) in fields {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            match name.as_str() {
                "grpc-status" => {
                    let code = std::str::from_utf8(value).ok();
                    let code = code.and_then(|text| text.trim().parse().ok());
                    // A status that is not a number is unknown.
                    self.status = Some(code.unwrap_or(u64::MAX));
                }
                "grpc-message" => {
                    self.message = read_status_message(value);
                }
                _ => taken.push((name, String::from_utf8_lossy(value).into_owned())),
            }
        }
        taken
    }

    pub(super) fn trailers(&mut self, fields: &HeaderMap) {
        let fields = fields.iter();
        let bytes = fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        self.trailers = self.read_fields(bytes);
    }

    /// Status and message, once the response has ended.
    pub(super) fn status(&self) -> (GrpcStatus, String) {
        match self.status {
            Some(code) => (GrpcStatus::from_code(code), self.message.clone()),
            None if self.http_status == 200 => {
                let text = "server closed the stream without sending trailers".to_owned();
                (GrpcStatus::from_code(INTERNAL), text)
            }
            None => {
                let text = format!(
                    "unexpected HTTP status code received from server: {}",
                    self.http_status
                );
                (GrpcStatus::from_http(self.http_status), text)
            }
        }
    }

    fn finish(self) -> Outcome {
        let (mut status, mut message) = self.status();
        let mut found = Vec::new();
        match messages(&self.content) {
            Ok(messages) => found = messages.into_iter().map(<[u8]>::to_vec).collect(),
            Err(error) if status.is_ok() => {
                status = GrpcStatus::from_code(INTERNAL);
                message = error.to_string();
            }
            Err(_) => {}
        }
        Outcome {
            status,
            message,
            headers: self.headers,
            trailers: self.trailers,
            messages: found,
            sent: 0,
            received: 0,
        }
    }
}
