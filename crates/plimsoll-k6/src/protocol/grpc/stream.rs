//! Calls with a stream of messages on one side or both.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use plimsoll_client::forward::{Exchange, Head};
use plimsoll_client::grpc::{frame, take_message};
use plimsoll_formats::grpc::Method;
use plimsoll_model::{Clock as _, GrpcStatus};
use plimsoll_wire::SystemClock;
use tokio::time::Instant;

use super::call::{GrpcRequest, Reading, fields, tags};
use super::error::GrpcError;
use super::{Connection, GrpcClient, failed};
use crate::protocol::http::error_code;
use crate::user::UserState;

/// Bytes that a script may have written and the server has not read; k6 queues without a limit.
const MOST_UNSENT: usize = 64 << 20;

/// An event on a stream.
#[derive(Debug)]
pub(crate) enum GrpcEvent {
    /// A message, as JSON.
    Data(String),
    /// The stream ended with another status than OK; [`GrpcEvent::End`] follows.
    Error(GrpcStatus, String),
    End,
}

/// A `grpc.Stream`.
pub(crate) struct GrpcStream {
    client: Rc<GrpcClient>,
    request: GrpcRequest,
    outbox: Rc<RefCell<Outbox>>,
    /// Taken while its next event is awaited.
    state: Cell<State>,
}

#[derive(Default)]
enum State {
    /// The call has not begun.
    #[default]
    New,
    Open(Box<Open>),
    /// The error was reported, and the end was not.
    Failed,
    Over,
}

struct Open {
    exchange: Exchange<Writing>,
    reading: Option<Reading>,
    method: Method,
    connection: Rc<Connection>,
    deadline: Option<Instant>,
    tags: Vec<(String, String)>,
}

/// Messages that the script wrote.
#[derive(Default)]
struct Outbox {
    /// As JSON until the method is known.
    waiting: VecDeque<String>,
    framed: VecDeque<Bytes>,
    bytes: usize,
    has_ended: bool,
    waker: Option<Waker>,
    method: Option<Method>,
}

impl Outbox {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn encode(&mut self, method: &Method, json: &str) -> Result<(), GrpcError> {
        let encoded = method.messages(json.as_bytes());
        let framed = frame(&encoded.map_err(GrpcError::Message)?)?;
        self.bytes += framed.len();
        self.framed.push_back(Bytes::from(framed));
        Ok(())
    }
}

/// The request body of a stream.
struct Writing(Rc<RefCell<Outbox>>);

impl http_body::Body for Writing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let mut outbox = self.0.borrow_mut();
        if let Some(piece) = outbox.framed.pop_front() {
            outbox.bytes -= piece.len();
            return Poll::Ready(Some(Ok(http_body::Frame::data(piece))));
        }
        if outbox.has_ended {
            return Poll::Ready(None);
        }
        outbox.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl GrpcStream {
    /// Fails, which the script sees as an exception, without a connection or such a method.
    ///
    /// - `request`: its message is not used.
    pub(crate) fn new(client: Rc<GrpcClient>, request: GrpcRequest) -> Result<Self, GrpcError> {
        let connection = client.connection()?;
        client.described.check(&connection, &request.method)?;
        Ok(Self {
            client,
            request,
            outbox: Rc::default(),
            state: Cell::default(),
        })
    }

    /// Adds a message, as JSON. Fails, which the script sees as an exception, if it is not one of the method, after the
    /// end, or if the server takes nothing.
    pub(crate) fn write(&self, user: &UserState, json: &str) -> Result<(), GrpcError> {
        let mut outbox = self.outbox.borrow_mut();
        if outbox.has_ended {
            return Err(GrpcError::StreamEnded);
        }
        if outbox.bytes > MOST_UNSENT {
            return Err(GrpcError::Unread);
        }
        match outbox.method.clone() {
            Some(method) => outbox.encode(&method, json)?,
            None => outbox.waiting.push_back(json.to_owned()),
        }
        outbox.wake();
        drop(outbox);
        if let Ok(connection) = self.client.connection() {
            let tags = tags(
                user,
                &connection,
                &self.request.method,
                &self.request.tags,
                None,
            );
            user.add_with(user.shared.built_in.grpc_streams_msgs_sent, 1.0, &tags);
        }
        Ok(())
    }

    /// No more messages follow.
    pub(crate) fn end(&self) {
        let mut outbox = self.outbox.borrow_mut();
        outbox.has_ended = true;
        outbox.wake();
    }

    async fn open(&self, user: &Rc<UserState>) -> Result<Open, GrpcError> {
        let connection = self.client.connection()?;
        let request = &self.request;
        let method = self
            .client
            .described
            .method(&connection, &request.method)
            .await?;
        {
            let mut outbox = self.outbox.borrow_mut();
            while let Some(json) = outbox.waiting.pop_front() {
                outbox.encode(&method, &json)?;
            }
            outbox.method = Some(method.clone());
        }
        // A stream without a timeout lasts until it ends.
        let timeout = (!request.timeout.is_zero()).then_some(request.timeout);
        let fields = fields(&request.metadata, timeout);
        let lease = connection.lease().await?;
        let path = format!("/{}", request.method);
        let mut head = Head::new("POST", &path, &fields);
        head.authority = connection.authority.as_deref();
        let exchange = lease.begin(&head, Writing(Rc::clone(&self.outbox)));
        let exchange = exchange.map_err(|failure| failed(&failure))?;
        let tags = tags(user, &connection, &request.method, &request.tags, None);
        user.add_with(user.shared.built_in.grpc_streams, 1.0, &tags);
        Ok(Open {
            exchange,
            reading: None,
            method,
            connection,
            deadline: timeout.map(|timeout| (SystemClock.now() + timeout).into()),
            tags,
        })
    }
}

impl Open {
    /// The next message; `None` at the end with the status OK.
    async fn next_message(&mut self) -> Result<Option<Vec<u8>>, (GrpcStatus, String)> {
        let internal = |message| (GrpcStatus::from_code(13), message);
        let unavailable = |failure| {
            let message = error_code::of_failure(&failure).1;
            (GrpcStatus::from_code(14), message)
        };
        let reading = if let Some(reading) = &mut self.reading {
            reading
        } else {
            let head = self.exchange.final_head().await;
            let head = head.map_err(|incomplete| unavailable(incomplete.failure))?;
            let reading = Reading::new(head.status.as_u16(), head.fields.iter());
            self.reading.insert(reading)
        };
        loop {
            let taken = take_message(&mut reading.content);
            if let Some(message) = taken.map_err(|error| internal(error.to_string()))? {
                return Ok(Some(message));
            }
            // Five bytes precede the message.
            let most = self.connection.most_received;
            if reading.content.len() > most.saturating_add(5) {
                let length = reading.content.len() - 5;
                let text = format!("received message larger than max ({length} vs. {most})");
                return Err((GrpcStatus::from_code(8), text));
            }
            let Some(part) = self.exchange.frame().await else {
                let (status, message) = reading.status();
                if status.is_ok() {
                    return Ok(None);
                }
                return Err((status, message));
            };
            let part = part.map_err(|incomplete| unavailable(incomplete.failure))?;
            match part.into_data() {
                Ok(data) => reading.content.extend_from_slice(&data),
                Err(part) => {
                    if let Ok(trailers) = part.into_trailers() {
                        reading.trailers(&trailers);
                    }
                }
            }
        }
    }
}

/// The next event of a stream, over which messages are sent meanwhile.
pub(crate) async fn next(user: &Rc<UserState>, number: u32) -> GrpcEvent {
    let Some(stream) = user.grpc.stream(number) else {
        return GrpcEvent::End;
    };
    let mut open = match stream.state.take() {
        State::New => match stream.open(user).await {
            Ok(open) => Box::new(open),
            Err(error) => {
                stream.state.set(State::Failed);
                return GrpcEvent::Error(GrpcStatus::from_code(14), error.to_string());
            }
        },
        State::Open(open) => open,
        State::Failed | State::Over => {
            stream.state.set(State::Over);
            user.grpc.drop_stream(number);
            return GrpcEvent::End;
        }
    };
    let deadline = open.deadline;
    let reading = open.next_message();
    let result = match deadline {
        None => reading.await,
        Some(deadline) => match tokio::time::timeout_at(deadline, reading).await {
            Ok(result) => result,
            Err(_) => Err((
                GrpcStatus::from_code(4),
                "context deadline exceeded".to_owned(),
            )),
        },
    };
    match result {
        Ok(Some(message)) => match open.method.answer_to_whole_json(&message) {
            Ok(json) => {
                let metric = user.shared.built_in.grpc_streams_msgs_received;
                user.add_with(metric, 1.0, &open.tags);
                stream.state.set(State::Open(open));
                GrpcEvent::Data(json)
            }
            Err(error) => {
                stream.state.set(State::Failed);
                GrpcEvent::Error(GrpcStatus::from_code(13), error.to_string())
            }
        },
        Ok(None) => {
            if let Some(completed) = open.exchange.completed() {
                user.count_bytes(completed.bytes_sent, completed.bytes_received);
            }
            stream.state.set(State::Over);
            user.grpc.drop_stream(number);
            GrpcEvent::End
        }
        Err((status, message)) => {
            stream.state.set(State::Failed);
            GrpcEvent::Error(status, message)
        }
    }
}
