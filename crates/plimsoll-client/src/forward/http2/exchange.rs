//! One exchange on a shared connection: what it sends, and what came for it.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use http::StatusCode;
use http_body::{Body, Frame};
use plimsoll_model::{Failure, FailureKind, Phase, Phases, Protocol, Retry, Side};
use plimsoll_wire::h1::{BodyLength, put_field};
use plimsoll_wire::h2::{ErrorCode, FieldWriter, StreamedRequest};

use super::{Http2Connection, Reservation, register};
use crate::forward::head::Head;
use crate::forward::pool::Destination;
use crate::forward::response_head::ResponseHead;
use crate::forward::upgraded::Upgraded;
use crate::forward::upload::{BodyPart, Upload};
use crate::{Completed, Incomplete};

/// One request and its response.
pub(in crate::forward) struct Http2Exchange<B> {
    stream: StreamHandle,
    upload: Upload<B>,
    /// Content that no window allowed yet.
    chunk: Bytes,
    sending: Sending,
    request: StreamedRequest,
    is_reused: bool,
    /// Bytes of content that were returned.
    taken: u64,
    /// The final status.
    status: Option<StatusCode>,
    failed: Option<Incomplete>,
    begun: Instant,
}

/// Whether there is more of a request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    UnderWay,
    Done,
    /// The response came while the body waited for `100 Continue`: it is not sent.
    Withheld,
}

/// Releases the stream of an exchange when it is dropped.
struct StreamHandle {
    connection: Rc<Http2Connection>,
    destination: Rc<Destination>,
    token: u32,
    code: Cell<ErrorCode>,
    is_released: bool,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        if !self.is_released {
            self.connection.release(self.token, self.code.get());
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Http2Exchange<B> {
    pub(in crate::forward) fn begin(
        reservation: Reservation,
        head: &Head<'_>,
        body: B,
        begun: Instant,
    ) -> Result<Self, Failure> {
        check(head)?;
        let is_tunnel = head.is_connect() || head.upgrade.is_some();
        let waits = head.expects_continue.then(|| begun.into());
        let upload = Upload::new(body, head, true, is_tunnel, waits);
        let connection = Rc::clone(&reservation.connection);
        let destination = Rc::clone(&reservation.destination);
        drop(reservation);
        let state = &mut *connection.state.borrow_mut();
        if head.upgrade.is_some() && !state.http.allows_connect_protocol() {
            return Err(Failure::new(Phase::Send, FailureKind::UpgradeRefused)
                .because("the server does not allow extended CONNECT (RFC 8441)"));
        }
        let is_whole = !is_tunnel && upload.is_done();
        let request = StreamedRequest {
            is_head: head.method == "HEAD",
            is_tunnel,
            is_whole,
        };
        let length = upload.length();
        let token = state.slots.enter();
        let opened = state.http.begin_streamed(request, token, begun, |writer| {
            write_head(writer, head, &destination, length);
        });
        if let Err(error) = opened {
            state.slots.free.push(token);
            return Err(Failure::new(Phase::Send, FailureKind::Closed)
                .because(error.to_string())
                .retry(Retry::Safe));
        }
        let is_reused = connection.is_used.replace(true);
        connection.left.set(connection.left.get().saturating_sub(1));
        if connection.left.get() == 0 {
            connection.is_closing.set(true);
            state.http.close();
        }
        connection.wake_driver();
        Ok(Self {
            stream: StreamHandle {
                connection: Rc::clone(&connection),
                destination,
                token,
                code: Cell::new(ErrorCode::CANCEL),
                is_released: false,
            },
            upload,
            chunk: Bytes::new(),
            sending: if is_whole || is_tunnel {
                Sending::Done
            } else {
                Sending::UnderWay
            },
            request,
            is_reused,
            taken: 0,
            status: None,
            failed: None,
            begun,
        })
    }

    pub(in crate::forward) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        loop {
            self.poll_send(context)?;
            let mut state = self.stream.connection.state.borrow_mut();
            let slot = state.slots.slot(self.stream.token);
            if let Some(head) = slot.interim.pop_front() {
                if head.status == StatusCode::CONTINUE && self.upload.is_waiting() {
                    self.upload.proceed();
                    slot.interim.push_front(head);
                    continue;
                }
                return Poll::Ready(Ok(head));
            }
            if let Some(head) = slot.head.take() {
                self.status = Some(head.status);
                if self.upload.is_waiting() {
                    self.sending = Sending::Withheld;
                }
                return Poll::Ready(Ok(head));
            }
            if let Some(Err(incomplete)) = &slot.outcome {
                let incomplete = incomplete.clone();
                drop(state);
                return Poll::Ready(Err(self.failed_with(incomplete)));
            }
            register(&mut slot.reader, context);
            return Poll::Pending;
        }
    }

    pub(in crate::forward) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        if let Err(incomplete) = self.poll_send(context) {
            return Poll::Ready(Some(Err(incomplete)));
        }
        if let Some(content) = self.stream.connection.take_content(self.stream.token) {
            self.taken += content.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(content))));
        }
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = state.slots.slot(self.stream.token);
        match &slot.outcome {
            Some(Ok(_)) => {
                let trailers = slot.trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Some(Err(incomplete)) => {
                let incomplete = incomplete.clone();
                drop(state);
                Poll::Ready(Some(Err(self.failed_with(incomplete))))
            }
            None => {
                register(&mut slot.reader, context);
                Poll::Pending
            }
        }
    }

    pub(in crate::forward) fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Incomplete>> {
        self.poll_send(context)?;
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        if self.sending != Sending::UnderWay || slot.outcome.is_some() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Unknown: one read of the connection's task carries many responses.
    #[expect(
        clippy::unused_self,
        reason = "the same method as of the other versions"
    )]
    pub(in crate::forward) fn first_byte_at(&self) -> Option<Instant> {
        None
    }

    pub(in crate::forward) fn completed(&self) -> Option<Completed> {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        slot.outcome.as_ref()?.as_ref().ok().copied()
    }

    pub(in crate::forward) fn is_received(&self) -> bool {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        matches!(slot.outcome, Some(Ok(_))) && slot.content.is_empty() && slot.trailers.is_none()
    }

    pub(in crate::forward) fn content_left(&self) -> Option<u64> {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        match slot.outcome {
            Some(Ok(_)) => Some(slot.content.len() as u64),
            _ if self.request.is_head => Some(0),
            _ => slot.content_length?.checked_sub(self.taken),
        }
    }

    pub(in crate::forward) fn into_untouched_body(self) -> Option<B> {
        self.upload.into_untouched()
    }

    pub(in crate::forward) fn reset(self, code: u32) {
        self.stream.code.set(ErrorCode(code));
    }

    pub(in crate::forward) fn upgrade(mut self) -> Option<Upgraded> {
        if !self.request.is_tunnel || !self.status?.is_success() {
            return None;
        }
        self.stream.is_released = true;
        Some(Upgraded::http2(
            Rc::clone(&self.stream.connection),
            Rc::clone(&self.stream.destination),
            self.stream.token,
        ))
    }

    /// Sends what is ready of the body and what the windows allow. Fails if the body does.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Result<(), Incomplete> {
        if let Some(incomplete) = &self.failed {
            return Err(incomplete.clone());
        }
        let (connection, token) = (&self.stream.connection, self.stream.token);
        while self.sending == Sending::UnderWay {
            if self.chunk.is_empty() {
                match self.upload.poll_piece(context) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Ok(BodyPart::Data(data))) => self.chunk = data,
                    Poll::Ready(Ok(BodyPart::End)) => {}
                    Poll::Ready(Ok(BodyPart::Trailers(trailers))) => {
                        let state = &mut *connection.state.borrow_mut();
                        state.http.send_trailers(token, |writer| {
                            for (name, value) in &trailers {
                                let name = name.as_str().as_bytes();
                                writer.field(name, value.as_bytes().trim_ascii());
                            }
                        });
                        connection.wake_driver();
                        self.sending = Sending::Done;
                        return Ok(());
                    }
                    Poll::Ready(Err(failure)) => {
                        connection
                            .state
                            .borrow_mut()
                            .http
                            .reset(token, ErrorCode::CANCEL);
                        connection.wake_driver();
                        let incomplete = Incomplete {
                            failure,
                            phases: Phases::default(),
                            bytes_sent: 0,
                            bytes_received: 0,
                            done: self.begun,
                        };
                        return Err(self.failed_with(incomplete));
                    }
                }
            }
            let is_last = self.upload.is_done();
            match connection.poll_send(token, &self.chunk, is_last, context) {
                Poll::Ready(Ok(count)) => {
                    self.chunk.advance(count);
                    if is_last && self.chunk.is_empty() {
                        self.sending = Sending::Done;
                    }
                }
                // The response says why.
                Poll::Ready(Err(_)) | Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    fn failed_with(&mut self, incomplete: Incomplete) -> Incomplete {
        let incomplete = Incomplete {
            failure: crate::forward::resolved(incomplete.failure, self.is_reused),
            ..incomplete
        };
        self.failed = Some(incomplete.clone());
        incomplete
    }
}

/// Fields that HTTP/2 carries but that could not be written down elsewhere are refused.
fn check(head: &Head<'_>) -> Result<(), Failure> {
    let mut line = Vec::new();
    let mut result = Ok(());
    let has_control = |text: &str| text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
    let target = head.authority.unwrap_or_default();
    if has_control(head.target) || has_control(target) || has_control(head.method) {
        result = Err("the request line contains a blank or a control character".to_owned());
    }
    head.each_field(Protocol::Http2, true, &mut |name, value| {
        line.clear();
        if result.is_ok()
            && let Err(error) = put_field(&mut line, name, value)
        {
            result = Err(error.to_string());
        }
    });
    result.map_err(|cause| {
        Failure::new(Phase::Send, FailureKind::Protocol)
            .on(Side::Ours)
            .because(cause)
    })
}

fn write_head(
    writer: &mut FieldWriter<'_>,
    head: &Head<'_>,
    destination: &Destination,
    length: BodyLength,
) {
    let endpoint = destination.endpoint();
    let authority = head.authority.unwrap_or(endpoint.authority());
    match head.upgrade {
        _ if head.is_connect() => {
            writer.field(b":method", b"CONNECT");
            writer.field(b":authority", head.target.as_bytes());
        }
        upgrade => {
            let method = if upgrade.is_some() {
                "CONNECT"
            } else {
                head.method
            };
            writer.field(b":method", method.as_bytes());
            writer.field(b":scheme", endpoint.scheme().name().as_bytes());
            writer.field(b":path", head.target.as_bytes());
            writer.field(b":authority", authority.as_bytes());
            if let Some(protocol) = upgrade {
                writer.field(b":protocol", protocol.as_bytes());
            }
        }
    }
    let has_trailers = length != BodyLength::None;
    head.each_field(Protocol::Http2, has_trailers, &mut |name, value| {
        writer.field(name, value.trim_ascii());
    });
    if let BodyLength::Known(length) = length {
        writer.field(b"content-length", length.to_string().as_bytes());
    }
    if head.expects_continue && length != BodyLength::None {
        writer.field(b"expect", b"100-continue");
    }
}
