//! Makes the requests of scripts over the connections of their virtual user.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http_body_util::Full;
use plimsoll_client::forward::{Destination, Head, Lease, Pool, Speaks, may_retry};
use plimsoll_client::{
    DecodeLimits, Decoder, Endpoint, Redirects, basic_authorization, is_idempotent,
};
use plimsoll_load::scenario::{ExchangeUnderWay, RecordedRequest};
use plimsoll_model::{Clock as _, Exchange, Failure, FailureKind, Phase, Phases, Protocol};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;
use tokio::sync::Semaphore;
use tokio::time::sleep_until;
use url::Url;

use super::authentication::Authentication;
use super::error_code;
use super::request::{BodyForm, HttpRequest, Login, UrlError};
use super::response::{HttpResponse, Timings, canonical, shown};
use crate::options::HttpDebug;
use crate::user::{Hop, UserState};

/// Bytes of a decoded response: k6 has no limit, but a compressed bomb must not end the generator.
const MOST_BYTES: u64 = 256 << 20;

/// The connections of a virtual user.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: RefCell<Pool>,
    speaks: Speaks,
}

impl Connections {
    /// - `pool`: that of the worker, whose connector, buffer and clock it uses.
    /// - `speaks`: the version of HTTP of its connections.
    pub(crate) fn new(pool: &Pool, speaks: Speaks) -> Self {
        Self {
            pool: RefCell::new(pool.sibling()),
            speaks,
        }
    }

    /// The destination of requests to an endpoint; fails if the version of HTTP needs TLS and the endpoint has none.
    pub(crate) fn destination(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Rc<Destination>, (u16, String)> {
        if self.speaks == Speaks::Http3 && !endpoint.is_tls() {
            let message = format!("HTTP/3 (--http3) needs an https:// URL, not {endpoint}");
            return Err((1000, message));
        }
        Ok(self.pool.borrow().destination(endpoint))
    }

    /// Closes all of them.
    pub(crate) fn close(&self) {
        let fresh = self.pool.borrow().sibling();
        self.pool.replace(fresh);
    }
}

/// Several requests at a time: at most `batch` of them, and `batch_per_host` to one host.
pub(crate) async fn perform_batch(
    user: &Rc<UserState>,
    requests: Vec<HttpRequest>,
) -> Vec<HttpResponse> {
    let options = &user.shared.options;
    let limit = |number: usize| match number {
        0 => Semaphore::MAX_PERMITS,
        number => number,
    };
    let all = Semaphore::new(limit(options.batch));
    let mut hosts: HashMap<String, Semaphore> = HashMap::new();
    for request in &requests {
        let host = host_of(request);
        hosts
            .entry(host)
            .or_insert_with(|| Semaphore::new(limit(options.batch_per_host)));
    }
    let (all, hosts) = (&all, &hosts);
    let mut running: FuturesUnordered<_> = requests
        .into_iter()
        .enumerate()
        .map(|(position, request)| async move {
            // Semaphores that are never closed always give a permit.
            let _host = hosts[&host_of(&request)].acquire().await;
            let _all = all.acquire().await;
            (position, perform(user, request).await)
        })
        .collect();
    let mut responses = Vec::new();
    while let Some(response) = running.next().await {
        responses.push(response);
    }
    responses.sort_by_key(|(position, _)| *position);
    responses
        .into_iter()
        .map(|(_, response)| response)
        .collect()
}

fn host_of(request: &HttpRequest) -> String {
    let host = request.url.as_ref().ok().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

/// Makes a request and follows its redirects. Every exchange is measured.
pub(crate) async fn perform(user: &Rc<UserState>, request: HttpRequest) -> HttpResponse {
    let timeout = request.timeout;
    let mut performing = Performing {
        user,
        current: Current::default(),
        request,
    };
    let url = match performing.request.url.clone() {
        Ok(url) => url,
        Err(error) => {
            let address = performing.request.address.clone();
            let error = match error {
                // Nothing was sent, so nothing is measured.
                UrlError::Invalid(message) => error_code::invalid_url(&address, &message),
                // k6 finds that when it sends, so it is a request.
                UrlError::Scheme(scheme) => {
                    let error = (1000, format!("unsupported protocol scheme {scheme:?}"));
                    performing.measure_unsent(&address, &error);
                    error
                }
            };
            let response = performing.into_response(address, Err(error));
            user.request_failed(&response);
            return response;
        }
    };
    performing.current.url = Some(url.clone());
    performing.current.method = performing.request.method.clone();
    let outcome = tokio::time::timeout(timeout, performing.follow(url)).await;
    let outcome = outcome.unwrap_or_else(|_| Err(error_code::timeout()));
    if let Err(error) = &outcome {
        performing.measure(0, Some(error));
    }
    let url = performing
        .current
        .url
        .as_ref()
        .map(shown)
        .unwrap_or_default();
    let response = performing.into_response(url, outcome);
    if response.status == 0 || !response.error.is_empty() && response.error_code < 1400 {
        user.request_failed(&response);
    }
    response
}

struct Performing<'u> {
    user: &'u Rc<UserState>,
    request: HttpRequest,
    current: Current,
}

/// The exchange under way, as far as it is known.
#[derive(Default)]
struct Current {
    url: Option<Url>,
    method: String,
    fields: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
    began: Option<Instant>,
    timings: Timings,
    peer: Option<std::net::SocketAddr>,
    protocol: &'static str,
    tls_version: String,
    tls_cipher: String,
    sent: u64,
    received: u64,
    is_challenge: bool,
    /// The record of the exchange, if there is one.
    under_way: Option<ExchangeUnderWay>,
    phases: Phases,
    failure: Option<Failure>,
}

/// A response that was read.
struct Received {
    status: u16,
    reason: String,
    fields: Vec<(String, String)>,
    content: Bytes,
    /// Why the content is not decoded.
    error: Option<(u16, String)>,
}

impl Performing<'_> {
    async fn follow(&mut self, mut url: Url) -> Result<Received, (u16, String)> {
        let mut redirects = Redirects::new(self.request.redirects);
        let mut method = self.request.method.clone();
        let mut content = self.request.content.clone();
        let mut fields = self.request.fields.clone();
        let mut keeps_cookies = true;
        let mut authentication = Authentication::new(self.request.login);
        loop {
            let received = self
                .exchange(&method, &url, &fields, &content, keeps_cookies)
                .await?;
            self.current.is_challenge = authentication.is_challenge(received.status);
            self.measure(received.status, received.error.as_ref());
            let now = SystemClock.wall();
            for (_, value) in received
                .fields
                .iter()
                .filter(|(name, _)| name == "Set-Cookie")
            {
                let mut jars = self.user.jars.borrow_mut();
                jars.take(self.request.jar, &url, value.as_bytes(), now);
            }
            let (status, received_fields) = (received.status, &received.fields);
            if let Some(answer) = authentication.answer(status, received_fields, &method, &url) {
                fields.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
                fields.push(("Authorization".to_owned(), answer));
                continue;
            }
            let location = received.fields.iter().find(|(name, _)| name == "Location");
            let location = location.map(|(_, value)| value.as_bytes());
            let redirect = match redirects.follow(&method, &url, received.status, location) {
                Ok(Some(redirect)) => redirect,
                // Beyond the limit, the redirect itself is the response.
                Ok(None) | Err(plimsoll_client::RedirectError::TooMany(_)) => return Ok(received),
                Err(error) => return Err((1000, error.to_string())),
            };
            fields.retain(|(name, _)| redirect.keeps_field_as_go(name));
            if !redirect.keeps_body {
                content = Bytes::new();
            }
            keeps_cookies = !redirect.is_cross_origin;
            method = redirect.method;
            url = redirect.url;
        }
    }

    async fn exchange(
        &mut self,
        method: &str,
        url: &Url,
        given: &[(String, String)],
        content: &Bytes,
        keeps_cookies: bool,
    ) -> Result<Received, (u16, String)> {
        if let Some(turn) = self.user.shared.request_rate.turn(SystemClock.now()) {
            sleep_until(turn.into()).await;
        }
        let Header {
            fields,
            mut authority,
            cookies,
        } = fields(self.user, &self.request, url, given, keeps_cookies);
        let now = SystemClock.now();
        let exchanges = self.user.worker.exchanges.as_ref();
        self.current = Current {
            url: Some(url.clone()),
            method: method.to_owned(),
            fields,
            cookies,
            began: Some(now),
            under_way: exchanges.map(|exchanges| exchanges.begin(now)),
            ..Current::default()
        };
        let endpoint = Endpoint::try_from(url)
            .map_err(|error| error_code::invalid_url(url.as_str(), &error))?;
        let endpoint = placed(self.user, url, endpoint, &mut authority)?;
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
            self.debug_request(&endpoint, authority.as_deref(), content);
            let mut head = Head::new(method, endpoint.path_and_query(), &self.current.fields);
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
        let mut fields = Vec::new();
        let mut coding = String::new();
        for (name, value) in head.fields.iter() {
            let name = canonical(&String::from_utf8_lossy(name));
            let value = String::from_utf8_lossy(value).into_owned();
            if name == "Content-Encoding" {
                coding.clone_from(&value);
            }
            fields.push((name, value));
        }
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
        let reason = head.status.canonical_reason().unwrap_or_default();
        Ok(Received {
            status: head.status.as_u16(),
            reason: format!("{} {reason}", head.status.as_u16())
                .trim_end()
                .to_owned(),
            fields,
            content: Bytes::from(content),
            error,
        })
    }

    /// Logs a request that is sent, by the option `httpDebug`.
    fn debug_request(&self, endpoint: &Endpoint, authority: Option<&str>, content: &Bytes) {
        let Some(debug) = self.user.shared.options.network.http_debug else {
            return;
        };
        let start = format!(
            "Request:\n{} {} {}\nHost: {}\n",
            self.current.method,
            endpoint.path_and_query(),
            self.current.protocol,
            authority.unwrap_or(endpoint.authority()),
        );
        self.debug(start, &self.current.fields, content, debug);
    }

    fn debug_response(&self, received: &Received) {
        let Some(debug) = self.user.shared.options.network.http_debug else {
            return;
        };
        let start = format!("Response:\n{} {}\n", self.current.protocol, received.reason);
        self.debug(start, &received.fields, &received.content, debug);
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
        (self.user.shared.log)(Level::Info, &text, "");
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

    /// Adds the samples of a request that no connection is opened for.
    fn measure_unsent(&self, address: &str, error: &(u16, String)) {
        self.user.measure_exchange(&Hop {
            request: &self.request,
            url: address,
            method: &self.request.method,
            status: 0,
            timings: Timings::default(),
            protocol: "",
            tls_version: "",
            peer: None,
            error: Some(&error.1),
            error_code: error.0,
            sent: 0,
            received: 0,
            is_challenge: false,
        });
    }

    /// Adds the samples of the exchange.
    fn measure(&mut self, status: u16, error: Option<&(u16, String)>) {
        let Some(url) = &self.current.url else { return };
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
        let shown = shown(url);
        if let Some(under_way) = self.current.under_way.take() {
            let exchange = self.exchanged(status, error);
            let is_expected = self.request.is_expected(status).unwrap_or(status < 400);
            let request = RecordedRequest {
                method: &self.current.method,
                name: self.request.name.as_deref().unwrap_or(&shown),
                is_expected: is_expected || self.current.is_challenge,
            };
            under_way.finish(&exchange, &request);
        }
        self.user.measure_exchange(&Hop {
            request: &self.request,
            url: &shown,
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

    fn into_response(self, url: String, outcome: Result<Received, (u16, String)>) -> HttpResponse {
        let current = self.current;
        let full_url = current
            .url
            .as_ref()
            .map_or_else(|| url.clone(), Url::to_string);
        let mut response = HttpResponse {
            url,
            full_url,
            status: 0,
            reason: String::new(),
            protocol: current.protocol,
            fields: Vec::new(),
            content: Bytes::new(),
            timings: current.timings,
            peer: current.peer,
            tls_version: current.tls_version,
            tls_cipher: current.tls_cipher,
            error: String::new(),
            error_code: 0,
            sent_fields: current.fields,
            sent_cookies: current.cookies,
            request: self.request,
        };
        match outcome {
            Ok(received) => {
                response.status = received.status;
                response.reason = received.reason;
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

/// The endpoint with the address that the options give its host.
pub(crate) fn placed(
    user: &UserState,
    url: &Url,
    endpoint: Endpoint,
    authority: &mut Option<String>,
) -> Result<Endpoint, (u16, String)> {
    let network = &user.shared.options.network;
    let host = url.host_str().unwrap_or_default();
    if network.blocking(host).is_some() {
        return Err((1111, "hostname is blocked".to_owned()));
    }
    let port = url.port_or_known_default().unwrap_or_default();
    let Some(entry) = network.host(host, port) else {
        return Ok(endpoint);
    };
    let Some(to_port) = entry.to_port else {
        return Ok(endpoint.at(entry.address));
    };
    // The request names the port of its URL all the same.
    authority.get_or_insert_with(|| endpoint.authority().to_owned());
    let mut moved = url.clone();
    // A URL with a host can have a port.
    moved.set_port(Some(to_port)).ok();
    let moved = Endpoint::try_from(&moved)
        .map_err(|error| error_code::invalid_url(url.as_str(), &error))?;
    Ok(moved.at(entry.address))
}

/// The header of a request.
struct Header {
    fields: Vec<(String, String)>,
    /// Only if the script sets it.
    authority: Option<String>,
    cookies: Vec<(String, String)>,
}

/// The fields of a request that is sent once, and its authority where the script sets it.
pub(crate) fn fields_of(
    user: &UserState,
    request: &HttpRequest,
    url: &Url,
) -> (Vec<(String, String)>, Option<String>) {
    let made = fields(user, request, url, &request.fields, true);
    (made.fields, made.authority)
}

/// The header of a request.
fn fields(
    user: &UserState,
    request: &HttpRequest,
    url: &Url,
    given: &[(String, String)],
    keeps_cookies: bool,
) -> Header {
    let mut fields = Vec::with_capacity(given.len() + 2);
    let mut authority = None;
    let mut cookie = None;
    for (name, value) in given {
        if name.eq_ignore_ascii_case("host") {
            authority = Some(value.clone());
        } else if name.eq_ignore_ascii_case("cookie") {
            cookie = Some(value.clone());
        } else {
            fields.push((canonical(name), value.clone()));
        }
    }
    let has =
        |fields: &[(String, String)], wanted: &str| fields.iter().any(|(name, _)| name == wanted);
    if !has(&fields, "User-Agent") {
        let agent = user.shared.options.user_agent.clone();
        fields.push(("User-Agent".to_owned(), agent));
    }
    let is_basic = !url.username().is_empty() && request.login == Login::Basic;
    if is_basic && !has(&fields, "Authorization") {
        let endpoint = Endpoint::try_from(url).ok();
        let credentials = endpoint.as_ref().and_then(Endpoint::credentials);
        if let Some((name, password)) = credentials {
            let value = basic_authorization(name, password).expose().to_owned();
            fields.push(("Authorization".to_owned(), value));
        }
    }
    let now = SystemClock.wall();
    let mut cookies = user.jars.borrow().cookies(request.jar, url, now);
    if keeps_cookies {
        for (name, value, replaces) in &request.cookies {
            if *replaces {
                cookies.retain(|(other, _)| other != name);
            }
            cookies.push((name.clone(), value.clone()));
        }
    }
    let mut line = cookie.unwrap_or_default();
    for (name, value) in &cookies {
        if !line.is_empty() {
            line.push_str("; ");
        }
        line.push_str(name);
        line.push('=');
        line.push_str(value);
    }
    if !line.is_empty() {
        fields.push(("Cookie".to_owned(), line));
    }
    Header {
        fields,
        authority,
        cookies,
    }
}
