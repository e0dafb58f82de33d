//! Makes the requests of scripts over the connections of their virtual user.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use plimsoll_client::forward::{Fields, Head, Lease, may_retry};
use plimsoll_client::{DecodeLimits, Decoder, Endpoint, is_idempotent};
use plimsoll_load::scenario::{ExchangeUnderWay, RecordedRequest};
use plimsoll_model::{Clock as _, Exchange, Failure, FailureKind, Phase, Phases, Protocol};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;
use tokio::time::sleep_until;

use super::address::Address;
use super::authentication::Authentication;
use super::connections::endpoint_of;
use super::error_code;
use super::header::{Header, as_shown, fields};
use super::redirect::{Redirects, referer};
use super::request::{BodyForm, HttpRequest, Target};
use super::response::{HttpResponse, Timings, status_text};
use crate::line_source::LineSource;
use crate::options::HttpDebug;
use crate::user::{AwaitedResponse, Hop, UserState};

/// Bytes of a decoded response: k6 has no limit, but a compressed bomb must not end the generator.
const MOST_BYTES: u64 = 256 << 20;

/// Makes a request and follows its redirects. Every exchange is measured.
pub(crate) async fn perform(user: &Rc<UserState>, request: HttpRequest) -> HttpResponse {
    let timeout = request.timeout;
    let mut performing = Performing {
        user,
        current: Current::default(),
        first: None,
        request,
    };
    let outcome = tokio::time::timeout(timeout, performing.follow()).await;
    let outcome = outcome.unwrap_or_else(|_| Err(error_code::timeout()));
    if let Err(error) = &outcome {
        performing.measure(0, Some(error));
    }
    let response = performing.into_response(outcome);
    if response.status == 0 || !response.error.is_empty() && response.error_code < 1400 {
        user.request_failed(&response);
    }
    response
}

struct Performing<'u> {
    user: &'u Rc<UserState>,
    request: HttpRequest,
    current: Current<'u>,
    /// What the first request was sent with, which scripts see behind redirects too.
    first: Option<Sent>,
}

/// The header of a request that was sent.
#[derive(Debug, Default, Clone)]
struct Sent {
    fields: Rc<Vec<(String, String)>>,
    /// Where the script sets it.
    host: Option<String>,
    cookies: Vec<(String, String)>,
}

/// The exchange under way, as far as it is known.
#[derive(Default)]
struct Current<'u> {
    address: Rc<Address>,
    /// Whether a redirect has led there.
    is_redirected: bool,
    method: String,
    fields: Rc<Vec<(String, String)>>,
    began: Option<Instant>,
    timings: Timings,
    peer: Option<std::net::SocketAddr>,
    protocol: &'static str,
    tls_version: String,
    tls_cipher: String,
    sent: u64,
    received: u64,
    is_challenge: bool,
    awaited: Option<AwaitedResponse<'u>>,
    /// The record of the exchange, if there is one.
    under_way: Option<ExchangeUnderWay>,
    phases: Phases,
    failure: Option<Failure>,
}

/// A response that was read.
struct Received {
    status: u16,
    fields: Fields,
    content: Bytes,
    /// Why the content is not decoded.
    error: Option<(u16, String)>,
}

impl Performing<'_> {
    async fn follow(&mut self) -> Result<Received, (u16, String)> {
        let mut redirects = Redirects::new(self.request.redirects, self.request.address.clone());
        let mut method = self.request.method.clone();
        let mut content = self.request.content.clone();
        let mut fields = self.request.fields.clone();
        let mut authentication = Authentication::new(self.request.login);
        self.current.address = self.request.address.clone();
        self.current.method.clone_from(&method);
        let mut target = self.user.targets.target(&self.request.address)?;
        loop {
            let received = self
                .exchange(&method, &target, &fields, &content, &redirects)
                .await?;
            self.current.is_challenge = authentication.is_challenge(received.status);
            let now = SystemClock.wall();
            let cookies = received.fields.iter();
            for (_, value) in cookies.filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
                let mut jars = self.user.jars.borrow_mut();
                jars.store_cookie(self.request.jar, &target.url, value, now);
            }
            let status = received.status;
            if let Some(answer) = authentication.answer(status, &received.fields, &method, &target)
            {
                self.measure(received.status, received.error.as_ref());
                fields.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
                fields.push(("Authorization".to_owned(), answer));
                continue;
            }
            let location = received.fields.field("location");
            let location = location.map(String::from_utf8_lossy);
            // A location that is no URL makes a failure of the response.
            let followed = redirects.follow(&method, &target.address, status, location.as_deref());
            let redirect = followed.map_err(|error| (1000, error.to_string()))?;
            self.measure(received.status, received.error.as_ref());
            let Some(redirect) = redirect else {
                // Beyond the limit, the redirect itself is the response.
                return Ok(received);
            };
            fields.retain(|(name, _)| redirects.keeps_field(name, &redirect));
            if !redirect.keeps_body {
                content = Bytes::new();
            }
            if let Some(referer) = referer(&target.address, &redirect.address)
                && !fields
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case("referer"))
            {
                fields.push(("Referer".to_owned(), referer));
            }
            method = redirect.method;
            let address = Rc::new(redirect.address);
            self.current = Current {
                address: Rc::clone(&address),
                is_redirected: true,
                method: method.clone(),
                ..Current::default()
            };
            target = Rc::new(Target::new(address)?);
        }
    }

    async fn exchange(
        &mut self,
        method: &str,
        target: &Target,
        given: &[(String, String)],
        content: &Bytes,
        redirects: &Redirects,
    ) -> Result<Received, (u16, String)> {
        if let Some(turn) = self.user.shared.request_rate.turn(SystemClock.now()) {
            sleep_until(turn.into()).await;
        }
        let keeps_cookies = !redirects.has_left_domain();
        let Header {
            fields,
            mut authority,
            cookies,
        } = fields(self.user, &self.request, target, given, keeps_cookies);
        let fields = Rc::new(fields);
        self.first.get_or_insert_with(|| Sent {
            fields: Rc::clone(&fields),
            host: authority.clone(),
            cookies,
        });
        let now = SystemClock.now();
        let exchanges = self.user.worker.exchanges.as_ref();
        self.current = Current {
            address: target.address.clone(),
            is_redirected: self.current.is_redirected,
            method: method.to_owned(),
            fields,
            began: Some(now),
            awaited: Some(AwaitedResponse::new(self.user)),
            under_way: exchanges.map(|exchanges| exchanges.begin(now)),
            ..Current::default()
        };
        let endpoint = endpoint_of(self.user, target, &mut authority)?;
        let path_and_query = target.address.target();
        let destination = self.user.connections.destination(&endpoint)?;
        let may_reuse = self.user.shared.options.reuses_connections;
        let mut is_fresh = !may_reuse || !is_idempotent(method);
        let result = loop {
            let wanted = SystemClock.now();
            let lease = if is_fresh && !may_reuse {
                destination.acquire_unused().await
            } else {
                destination.acquire().await
            };
            let blocked = SystemClock.now().saturating_duration_since(wanted);
            let lease = match lease {
                Ok(lease) => lease,
                Err(error) => {
                    self.connected(&error.phases, blocked);
                    break Err(error.failure);
                }
            };
            self.leased(&lease, blocked);
            self.debug_request(&endpoint, &path_and_query, authority.as_deref(), content);
            let mut head = Head::new(method, &path_and_query, &*self.current.fields);
            head.authority = authority.as_deref();
            let exchange = match lease.begin(&head, Full::new(content.clone())) {
                Ok(exchange) => exchange,
                Err(failure) => break Err(failure),
            };
            match self.read(exchange).await {
                Err((failure, is_answered)) if !is_answered && may_retry(&failure, !is_fresh) => {
                    is_fresh = true;
                }
                Err((failure, _)) => break Err(failure),
                Ok(received) => {
                    self.debug_response(&received);
                    break Ok(received);
                }
            }
        };
        result.map_err(|failure| {
            let error = error_code::of_failure(&failure);
            self.current.failure = Some(failure);
            error
        })
    }

    async fn read(
        &mut self,
        mut exchange: plimsoll_client::forward::Exchange<Full<Bytes>>,
    ) -> Result<Received, (Failure, bool)> {
        let head = match exchange.final_head().await {
            Ok(head) => head,
            Err(incomplete) => {
                self.phases(&incomplete.phases);
                self.current.sent += incomplete.bytes_sent;
                self.current.received += incomplete.bytes_received;
                return Err((incomplete.failure, false));
            }
        };
        let codings = head.fields.iter();
        let codings = codings.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"));
        let coding = codings
            .last()
            .map(|(_, value)| String::from_utf8_lossy(value));
        let coding = coding.unwrap_or_default();
        let limits = DecodeLimits {
            bytes: MOST_BYTES,
            ratio: u64::MAX,
        };
        let keeps = self.request.body_form != BodyForm::None;
        let (mut decoder, mut error) = match Decoder::new(&coding, limits) {
            Ok(decoder) if keeps => (decoder, None),
            Ok(_) => (None, None),
            Err(error) => (None, Some(error_code::decode(&error))),
        };
        let mut content = Vec::new();
        while let Some(frame) = exchange.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(incomplete) => {
                    self.phases(&incomplete.phases);
                    self.current.sent += incomplete.bytes_sent;
                    self.current.received += incomplete.bytes_received;
                    return Err((incomplete.failure, true));
                }
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if !keeps || error.is_some() {
                continue;
            }
            match &mut decoder {
                Some(decoder) => {
                    if let Err(failed) = decoder.decode(&data, &mut content) {
                        error = Some(error_code::decode(&failed));
                    }
                }
                None => content.extend_from_slice(&data),
            }
            if content.len() as u64 > MOST_BYTES {
                error = Some((
                    1000,
                    format!("the response is longer than {MOST_BYTES} bytes"),
                ));
            }
        }
        if let (Some(decoder), None) = (decoder, &error)
            && let Err(failed) = decoder.finish(&mut content)
        {
            error = Some(error_code::decode(&failed));
        }
        if let Some(completed) = exchange.completed() {
            self.phases(&completed.phases);
            self.current.sent += completed.bytes_sent;
            self.current.received += completed.bytes_received;
        }
        Ok(Received {
            status: head.status.as_u16(),
            fields: head.fields,
            content: Bytes::from(content),
            error,
        })
    }

    /// Logs a request that is sent, by the option `httpDebug`.
    fn debug_request(
        &self,
        endpoint: &Endpoint,
        path_and_query: &str,
        authority: Option<&str>,
        content: &Bytes,
    ) {
        let Some(debug) = self.user.shared.options.network.http_debug else {
            return;
        };
        let start = format!(
            "Request:\n{} {} {}\nHost: {}\n",
            self.current.method,
            path_and_query,
            self.current.protocol,
            authority.unwrap_or(endpoint.authority()),
        );
        self.debug(start, &self.current.fields, content, debug);
    }

    fn debug_response(&self, received: &Received) {
        let Some(debug) = self.user.shared.options.network.http_debug else {
            return;
        };
        let status = status_text(received.status);
        let start = format!("Response:\n{} {status}\n", self.current.protocol);
        self.debug(start, &as_shown(&received.fields), &received.content, debug);
    }

    fn debug(
        &self,
        mut text: String,
        fields: &[(String, String)],
        content: &[u8],
        debug: HttpDebug,
    ) {
        for (name, value) in fields {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        }
        text.push('\n');
        if debug == HttpDebug::Full {
            text.push_str(&String::from_utf8_lossy(content));
            text.push('\n');
        }
        (self.user.shared.log)(Level::Info, &text, LineSource::Run);
    }

    fn leased(&mut self, lease: &Lease, blocked: Duration) {
        let phases = *lease.phases();
        self.connected(&phases, blocked);
        if let (Some(exchanges), Some(_)) =
            (&self.user.worker.exchanges, phases.get(Phase::Connect))
        {
            exchanges.connection_opened();
        }
        self.current.peer = lease.peer();
        self.current.protocol = protocol_name(lease.protocol());
        if let Some(session) = lease.tls_session() {
            self.current.tls_version = session.version.to_lowercase().replace("tls ", "tls");
            self.current.tls_cipher = session.cipher.unwrap_or_default().replace("TLS13_", "TLS_");
        }
    }

    fn connected(&mut self, phases: &Phases, blocked: Duration) {
        self.current.phases.add(phases);
        let of = |phase| phases.get(phase).unwrap_or_default();
        self.current.timings.blocked += blocked;
        self.current.timings.connecting = of(Phase::Connect);
        self.current.timings.tls_handshaking = of(Phase::Tls);
    }

    fn phases(&mut self, phases: &Phases) {
        self.current.phases.add(phases);
        let of = |phase| phases.get(phase).unwrap_or_default();
        self.current.timings.sending = of(Phase::Send);
        self.current.timings.waiting = of(Phase::Wait);
        self.current.timings.receiving = of(Phase::Receive);
    }

    /// Adds the samples of the exchange.
    fn measure(&mut self, status: u16, error: Option<&(u16, String)>) {
        let code = error.map_or_else(|| error_code::of_status(status), |(code, _)| *code);
        if status == 0 && self.current.timings.duration().is_zero() {
            // The time that a failure took counts as waiting.
            let passed = self.current.began.map(|began| {
                let now = SystemClock.now();
                now.saturating_duration_since(began)
            });
            let passed = passed.unwrap_or_default();
            self.current.timings.waiting = passed.saturating_sub(self.current.timings.blocked);
        }
        if let Some(awaited) = self.current.awaited.take() {
            awaited.end();
        }
        if let Some(under_way) = self.current.under_way.take() {
            let exchange = self.exchanged(status, error);
            let is_expected = self.request.is_expected(status).unwrap_or(status < 400);
            let shown = self.current.address.masked();
            let request = RecordedRequest {
                method: &self.current.method,
                name: self.request.name().unwrap_or(&shown),
                is_expected: is_expected || self.current.is_challenge,
            };
            under_way.finish(&exchange, &request);
        }
        self.user.measure_exchange(&Hop {
            request: &self.request,
            address: &self.current.address,
            method: &self.current.method,
            status,
            timings: self.current.timings,
            protocol: self.current.protocol,
            tls_version: &self.current.tls_version,
            peer: self.current.peer.map(|peer| peer.ip()),
            error: error.map(|(_, text)| text.as_str()),
            error_code: code,
            sent: self.current.sent,
            received: self.current.received,
            is_challenge: self.current.is_challenge,
        });
    }

    /// The exchange as result files count it.
    fn exchanged(&mut self, status: u16, error: Option<&(u16, String)>) -> Exchange {
        let now = SystemClock.now();
        let started = self.current.began.unwrap_or(now);
        let late = self.user.lateness.get();
        let outcome = match (self.current.failure.take(), error) {
            (Some(failure), _) => Err(failure),
            (None, None) => Ok(status),
            (None, Some((code, text))) => {
                let (phase, kind) = match code {
                    1050 => (Phase::Wait, FailureKind::Timeout),
                    1701 => (Phase::Receive, FailureKind::Decode),
                    1110 | 1111 => (Phase::Dns, FailureKind::Refused),
                    _ => (Phase::Receive, FailureKind::ResourceLimit),
                };
                Err(Failure::new(phase, kind).because(text.clone()))
            }
        };
        Exchange {
            intended: started.checked_sub(late).unwrap_or(started),
            started,
            done: now,
            phases: self.current.phases,
            bytes_sent: self.current.sent,
            bytes_received: self.current.received,
            peer: self.current.peer,
            protocol: match self.current.protocol {
                "HTTP/2.0" => Protocol::Http2,
                "HTTP/3.0" => Protocol::Http3,
                _ => Protocol::Http1,
            },
            outcome,
        }
    }

    fn into_response(self, outcome: Result<Received, (u16, String)>) -> HttpResponse {
        let current = self.current;
        let sent = self.first.unwrap_or_default();
        let mut response = HttpResponse {
            has_url_as_written: outcome.is_err() && !current.is_redirected,
            address: current.address,
            status: 0,
            protocol: current.protocol,
            fields: Fields::default(),
            content: Bytes::new(),
            timings: current.timings,
            peer: current.peer,
            tls_version: current.tls_version,
            tls_cipher: current.tls_cipher,
            error: String::new(),
            error_code: 0,
            sent_fields: sent.fields,
            sent_host: sent.host,
            sent_cookies: sent.cookies,
            request: self.request,
        };
        match outcome {
            Ok(received) => {
                response.status = received.status;
                response.fields = received.fields;
                response.content = received.content;
                response.error_code = error_code::of_status(received.status);
                if let Some((code, text)) = received.error {
                    response.error_code = code;
                    response.error = text;
                }
            }
            Err((code, text)) => {
                response.error_code = code;
                response.error = text;
            }
        }
        response
    }
}

/// The value of `Response.proto` and of the tag `proto`.
pub(crate) fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http1 | Protocol::WebSocket => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2.0",
        Protocol::Http3 => "HTTP/3.0",
    }
}
