//! Server-sent events of scripts: streams that are read while their script waits for the next event.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use plimsoll_client::forward::{Exchange, Head, Lease};
use plimsoll_model::{Clock as _, Phase, masked_urls};
use plimsoll_wire::SystemClock;
use plimsoll_wire::sse::{Decoder, Event, EventSink, Limits, is_event_stream};
use tokio::time::sleep_until;

use crate::protocol::http::{
    HttpRequest, Timings, as_shown, endpoint_of, error_code, fields_of, protocol_name,
};
use crate::user::{Hop, UserState};

/// The streams of a virtual user, by the numbers that its script knows.
#[derive(Default)]
pub(crate) struct EventStreams {
    open: RefCell<HashMap<u32, Rc<EventStream>>>,
    last: Cell<u32>,
}

impl EventStreams {
    fn add(&self, stream: EventStream) -> u32 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.open.borrow_mut().insert(id, Rc::new(stream));
        id
    }

    /// Closes a stream, and its connection with it.
    pub(crate) fn close(&self, id: u32) {
        self.open.borrow_mut().remove(&id);
    }

    /// Closes all, as an iteration that is interrupted leaves them.
    pub(crate) fn clear(&self) {
        self.open.borrow_mut().clear();
    }
}

/// The response to the request for a stream.
#[derive(Debug)]
pub(crate) struct OpenedStream {
    /// Of the stream; absent if the server sends none.
    pub(crate) id: Option<u32>,
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    /// Why there is no stream; empty if there is one.
    pub(crate) error: String,
}

/// The next event of a stream, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamEvent {
    Event {
        id: String,
        name: String,
        data: String,
    },
    /// It broke off; nothing follows.
    Failed(String),
    /// The server ended it, or the script closed it.
    Ended,
}

struct EventStream {
    state: RefCell<StreamState>,
    tags: Vec<(String, String)>,
}

struct StreamState {
    /// Taken while the next frame is awaited; absent behind the end.
    exchange: Option<Exchange<Full<Bytes>>>,
    decoder: Decoder,
    events: Events,
}

/// Complete events that the script has not read.
#[derive(Default)]
struct Events(VecDeque<StreamEvent>);

impl EventSink for Events {
    fn event(&mut self, event: Event<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push_back(StreamEvent::Event {
            id: text(event.last_event_id),
            name: text(event.kind),
            data: text(event.data),
        });
    }
}

/// Requests a stream; the samples of the request are added once the head of the response is there.
pub(crate) async fn open(user: &Rc<UserState>, request: HttpRequest) -> OpenedStream {
    let began = SystemClock.now();
    let mut opening = Opening {
        user,
        request: &request,
        timings: Timings::default(),
        protocol: "",
        tls_version: String::new(),
        peer: None,
    };
    let result = tokio::time::timeout(request.timeout, opening.begin()).await;
    let result = result.unwrap_or_else(|_| Err(error_code::timeout()));
    let waited = SystemClock.now().saturating_duration_since(began);
    opening.timings.waiting = waited.saturating_sub(opening.timings.blocked);
    let status = result.as_ref().map_or(0, |begun| begun.status);
    opening.measure(status, result.as_ref().err());
    let failed = |status, fields, error: String| OpenedStream {
        id: None,
        status,
        fields,
        error,
    };
    let stream = match result {
        Ok(stream) => stream,
        Err((_, error)) => {
            if !request.throws {
                let text = format!("Request Failed: {:?}: {error}", request.written);
                user.warn(&masked_urls(&text));
            }
            return failed(0, Vec::new(), error);
        }
    };
    let field = |name: &str| {
        let mut fields = stream.fields.iter();
        fields.find_map(|(other, value)| (other == name).then_some(value.as_str()))
    };
    let kind = field("Content-Type").unwrap_or_default();
    if stream.status != 200 || !is_event_stream(kind.as_bytes()) {
        let error = match stream.status {
            200 => format!("the response is not a stream of events: its content type is {kind:?}"),
            status => format!("the response is not a stream of events: its status is {status}"),
        };
        return failed(stream.status, stream.fields, error);
    }
    let id = user.event_streams.add(EventStream {
        state: RefCell::new(StreamState {
            exchange: Some(stream.exchange),
            decoder: Decoder::new(Limits::default()),
            events: Events::default(),
        }),
        tags: request.tags.clone(),
    });
    OpenedStream {
        id: Some(id),
        status: stream.status,
        fields: stream.fields,
        error: String::new(),
    }
}

struct Begun {
    exchange: Exchange<Full<Bytes>>,
    status: u16,
    fields: Vec<(String, String)>,
}

/// A stream that is being requested, as far as it is known.
struct Opening<'a> {
    user: &'a Rc<UserState>,
    request: &'a HttpRequest,
    timings: Timings,
    protocol: &'static str,
    tls_version: String,
    peer: Option<std::net::IpAddr>,
}

impl Opening<'_> {
    async fn begin(&mut self) -> Result<Begun, (u16, String)> {
        let (user, request) = (self.user, self.request);
        if let Some(turn) = user.shared.request_rate.turn(SystemClock.now()) {
            sleep_until(turn.into()).await;
        }
        let target = user.targets.target(&request.address)?;
        let (fields, mut authority) = fields_of(user, request, &target);
        let endpoint = endpoint_of(user, &target, &mut authority)?;
        let path_and_query = target.address.target();
        let destination = user.connections.destination(&endpoint)?;
        let wanted = SystemClock.now();
        let lease = destination.acquire().await;
        self.timings.blocked = SystemClock.now().saturating_duration_since(wanted);
        let lease = lease.map_err(|error| error_code::of_failure(&error.failure))?;
        self.leased(&lease);
        let mut head = Head::new(&request.method, &path_and_query, &fields);
        head.authority = authority.as_deref();
        let exchange = lease.begin(&head, Full::new(request.content.clone()));
        let mut exchange = exchange.map_err(|failure| error_code::of_failure(&failure))?;
        let head = exchange.final_head().await;
        let head = head.map_err(|incomplete| error_code::of_failure(&incomplete.failure))?;
        Ok(Begun {
            exchange,
            status: head.status.as_u16(),
            fields: as_shown(&head.fields),
        })
    }

    fn leased(&mut self, lease: &Lease) {
        let of = |phase| lease.phases().get(phase).unwrap_or_default();
        self.timings.connecting = of(Phase::Connect);
        self.timings.tls_handshaking = of(Phase::Tls);
        self.protocol = protocol_name(lease.protocol());
        self.peer = lease.peer().map(|peer| peer.ip());
        if let Some(session) = lease.tls_session() {
            self.tls_version = session.version.to_lowercase().replace("tls ", "tls");
        }
    }

    fn measure(&self, status: u16, error: Option<&(u16, String)>) {
        let code = error.map_or_else(|| error_code::of_status(status), |(code, _)| *code);
        self.user.measure_exchange(&Hop {
            request: self.request,
            address: &self.request.address,
            method: &self.request.method,
            status,
            timings: self.timings,
            protocol: self.protocol,
            tls_version: &self.tls_version,
            peer: self.peer,
            error: error.map(|(_, text)| text.as_str()),
            error_code: code,
            sent: 0,
            received: 0,
            is_challenge: false,
        });
    }
}

/// The next event of a stream, or its end.
pub(crate) async fn next(user: &Rc<UserState>, id: u32) -> StreamEvent {
    let stream = user.event_streams.open.borrow().get(&id).cloned();
    let Some(stream) = stream else {
        return StreamEvent::Ended;
    };
    let event = read(user, &stream).await;
    match &event {
        StreamEvent::Event { .. } => {
            user.add_with(user.shared.built_in.sse_event, 1.0, &stream.tags);
        }
        StreamEvent::Failed(_) | StreamEvent::Ended => user.event_streams.close(id),
    }
    event
}

async fn read(user: &UserState, stream: &EventStream) -> StreamEvent {
    loop {
        let mut exchange = {
            let mut state = stream.state.borrow_mut();
            if let Some(event) = state.events.0.pop_front() {
                return event;
            }
            match state.exchange.take() {
                Some(exchange) => exchange,
                None => return StreamEvent::Ended,
            }
        };
        let frame = exchange.frame().await;
        let mut state = stream.state.borrow_mut();
        let state = &mut *state;
        match frame {
            None => {}
            Some(Err(incomplete)) => {
                let error = error_code::of_failure(&incomplete.failure).1;
                state.events.0.push_back(StreamEvent::Failed(error));
            }
            Some(Ok(frame)) => {
                state.exchange = Some(exchange);
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                user.count_bytes(0, data.len() as u64);
                if let Err(error) = state.decoder.decode(&data, &mut state.events) {
                    let failed = StreamEvent::Failed(error.to_string());
                    state.events.0.push_back(failed);
                    state.exchange = None;
                }
            }
        }
    }
}
