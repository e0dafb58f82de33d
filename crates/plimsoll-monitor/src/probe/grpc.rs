//! gRPC: the health service (grpc.health.v1, `doc/health-checking.md` of grpc), or a method of another one.

mod call;

use std::sync::Arc;
use std::time::Instant;

use plimsoll_client::grpc::{GrpcReply, call, frame};
use plimsoll_client::{Endpoint, Http2, Request, Stream, require_http2};
use plimsoll_formats::grpc::{Descriptors, Method, Reflection};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::h2;

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::http::HttpProbeError;
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

pub use crate::probe::grpc::call::{GrpcCall, GrpcCallError};

const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Bytes of an answer: gRPC libraries accept 4 MiB unless they are configured otherwise.
const MOST_READ: usize = 4 * 1024 * 1024;

/// The status of methods that are not there.
const UNIMPLEMENTED: u8 = 12;

/// Bytes of JSON that are kept for conditions.
const MOST_KEPT: usize = 64 * 1024;

/// Calls a server.
#[derive(Debug)]
pub struct GrpcProbe {
    endpoint: Endpoint,
    fields: Vec<(String, String)>,
    method: Called,
    reach: Reach,
}

/// What is called.
#[derive(Debug)]
enum Called {
    /// The health service about one service, or the server as a whole.
    Health {
        service: String,
        /// Whether another status than SERVING is a failure; otherwise conditions decide.
        requires_serving: bool,
    },
    Other(GrpcCall),
}

/// One connection, and what is needed for calls on it.
struct Session<'a> {
    probe: &'a GrpcProbe,
    http: Http2<Stream>,
    context: &'a ProbeContext,
    deadline: Instant,
}

impl Session<'_> {
    async fn call(&mut self, method: &str, message: &[u8]) -> Result<GrpcReply, Failure> {
        let request = self.probe.encode(method, message);
        let request = request.map_err(|error| {
            Failure::new(Phase::Send, FailureKind::Protocol).because(error.to_string())
        })?;
        let request = request.http2().expect("it was encoded for HTTP/2");
        let ProbeContext { buffer, clock, .. } = self.context;
        call(
            &mut self.http,
            request,
            MOST_READ,
            self.deadline,
            buffer,
            clock,
        )
        .await
    }

    /// The server's description of a service, by reflection.
    async fn describe(&mut self, called: &GrpcCall) -> Result<Descriptors, Failure> {
        let wrong =
            |cause: String| Failure::new(Phase::Receive, FailureKind::Protocol).because(cause);
        let mut last = String::new();
        for service in Reflection::SERVICES {
            let path = format!("/{service}/{}", Reflection::METHOD);
            let mut reflection = called.reflection();
            let mut is_there = true;
            while let Some(request) = reflection.next_request() {
                let reply = self.call(&path, &request).await?;
                let Some(message) = reply.messages.first() else {
                    if reply.status.code() != UNIMPLEMENTED {
                        let (service, status) = (called.name.service(), reply.status);
                        let cause = format!("the server does not describe {service}: {status}");
                        return Err(wrong(cause));
                    }
                    last = reply.status.to_string();
                    is_there = false;
                    break;
                };
                let answered = reflection.answer(message);
                answered.map_err(|error| wrong(error.to_string()))?;
            }
            if is_there {
                return reflection
                    .finish()
                    .map_err(|error| wrong(error.to_string()));
            }
        }
        Err(wrong(format!(
            "the server does not describe its methods ({last}); give `proto` or `proto_file`"
        )))
    }
}

impl GrpcProbe {
    /// - `url`: `grpc://` or `grpcs://`, or `http://` or `https://`.
    /// - `service`: empty for the server as a whole.
    pub fn new(
        url: &str,
        service: &str,
        fields: &[(String, String)],
        requires_serving: bool,
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        let method = Called::Health {
            service: service.to_owned(),
            requires_serving,
        };
        Self::to_method(url, method, fields, reach)
    }

    /// Calls a method, whose answer as JSON is the body.
    pub fn calling(
        url: &str,
        call: GrpcCall,
        fields: &[(String, String)],
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        Self::to_method(url, Called::Other(call), fields, reach)
    }

    fn to_method(
        url: &str,
        method: Called,
        fields: &[(String, String)],
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        let http = match (url.strip_prefix("grpc://"), url.strip_prefix("grpcs://")) {
            (Some(rest), _) => format!("http://{rest}"),
            (None, Some(rest)) => format!("https://{rest}"),
            (None, None) => url.to_owned(),
        };
        let mut all = fields.to_vec();
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
            all.push((name.to_owned(), value.to_owned()));
        }
        let probe = Self {
            endpoint: Endpoint::parse(&http)?,
            fields: all,
            method,
            reach,
        };
        // Fields that cannot be sent are found at once.
        probe.encode(HEALTH, &[])?;
        Ok(probe)
    }

    fn encode(&self, method: &str, message: &[u8]) -> Result<Request, h2::HeadError> {
        let scheme = if self.endpoint.is_tls() {
            "https"
        } else {
            "http"
        };
        let authority = self.endpoint.authority();
        let body = frame(&[message]).expect("a message is shorter than 4 GiB");
        Request::encode_http2("POST", scheme, authority, method, &self.fields, Some(&body))
    }

    async fn look(
        &self,
        context: &ProbeContext,
        reading: &mut Reading,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let Some(connection) = self.reach.connect(&self.endpoint, context, reading).await else {
            return Ok(());
        };
        if let Some(session) = connection.stream.tls_session() {
            reading.certificate = session.certificate;
        }
        require_http2(&connection, &self.endpoint)?;
        let http = Http2::new(
            connection.stream,
            h2::Settings::default(),
            context.clock.now(),
        );
        let mut session = Session {
            probe: self,
            http,
            context,
            deadline,
        };
        match &self.method {
            Called::Health {
                service,
                requires_serving,
            } => check_health(&mut session, service, *requires_serving, reading).await,
            Called::Other(call) => {
                let outcome = check_call(&mut session, call, reading).await;
                if outcome.is_err() || reading.unmet.is_some() {
                    call.forget();
                }
                outcome
            }
        }
    }
}

async fn check_health(
    session: &mut Session<'_>,
    service: &str,
    requires_serving: bool,
    reading: &mut Reading,
) -> Result<(), Failure> {
    let reply = measured(session, HEALTH, &health_request(service), reading).await?;
    if !reply.status.is_ok() {
        let text = reply.message.unwrap_or_default();
        let cause = format!("the call ended with {} {text}", reply.status);
        return Err(Failure::new(Phase::Receive, FailureKind::Protocol).because(cause.trim_end()));
    }
    let status = reply
        .messages
        .first()
        .map_or("UNKNOWN", |message| health_status(message));
    reading.body = format!("{{\"status\":\"{status}\"}}").into_bytes();
    reading.size = reading.body.len() as u64;
    if requires_serving && status != "SERVING" {
        let cause = format!("the service is {status}");
        return Err(Failure::new(Phase::Receive, FailureKind::Refused).because(cause));
    }
    Ok(())
}

async fn check_call(
    session: &mut Session<'_>,
    call: &GrpcCall,
    reading: &mut Reading,
) -> Result<(), Failure> {
    let wrong = |cause: String| Failure::new(Phase::Receive, FailureKind::Protocol).because(cause);
    let method: Arc<Method> = if let Some(method) = call.known() {
        method
    } else {
        let described = session.describe(call).await?;
        let found = call.find(&described);
        call.learn(found.map_err(|error| wrong(error.to_string()))?)
    };
    let message = call.message(&method);
    let message = message.map_err(|error| wrong(error.to_string()))?;
    let reply = measured(session, &format!("/{}", call.name), &message, reading).await?;
    if !reply.status.is_ok() && !call.leaves_status {
        let text = reply.message.unwrap_or_default();
        let why = format!("the call ended with {} {text}", reply.status);
        reading.unmet = Some(why.trim_end().to_owned());
        return Ok(());
    }
    if let Some(message) = reply.messages.first() {
        let json = method.answer_to_whole_json(message);
        let json = json.map_err(|error| wrong(error.to_string()))?;
        reading.size = message.len() as u64;
        if json.len() > MOST_KEPT {
            let cause = format!("the answer has more than {MOST_KEPT} bytes of JSON");
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
        }
        reading.body = json.into_bytes();
    }
    Ok(())
}

/// Calls a method, and notes its time and its status.
async fn measured(
    session: &mut Session<'_>,
    method: &str,
    message: &[u8],
    reading: &mut Reading,
) -> Result<GrpcReply, Failure> {
    let clock = &session.context.clock;
    let begun = clock.now();
    let reply = session.call(method, message).await?;
    let waited = clock.now().saturating_duration_since(begun);
    reading.phases.set(Phase::Wait, waited);
    reading.code = Some(200);
    reading.grpc_status = Some(reply.status);
    Ok(reply)
}

impl Probe for GrpcProbe {
    fn kind(&self) -> &'static str {
        "grpc"
    }

    fn target(&self) -> String {
        let url = self.endpoint.to_string().replacen("http", "grpc", 1);
        match &self.method {
            Called::Health { service, .. } if service.is_empty() => url,
            Called::Health { service, .. } => format!("{url} {service}"),
            Called::Other(call) => format!("{url} {}", call.name),
        }
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.endpoint.authority_with_port().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(
            self.reach.timeout,
            context,
            async |reading, deadline| {
                if let Err(failure) = self.look(context, reading, deadline).await {
                    reading.failure = Some(failure);
                }
            },
        ))
    }
}

/// `HealthCheckRequest { service = 1 }`.
fn health_request(service: &str) -> Vec<u8> {
    if service.is_empty() {
        return Vec::new();
    }
    let mut message = vec![0x0a];
    let mut length = service.len();
    while length >= 0x80 {
        message.extend(u8::try_from(length & 0x7f).map(|low| low | 0x80));
        length >>= 7;
    }
    message.extend(u8::try_from(length));
    message.extend(service.as_bytes());
    message
}

/// `HealthCheckResponse { status = 1 }`.
fn health_status(message: &[u8]) -> &'static str {
    match message {
        [0x08, 1, ..] => "SERVING",
        [0x08, 2, ..] => "NOT_SERVING",
        [0x08, 3, ..] => "SERVICE_UNKNOWN",
        _ => "UNKNOWN",
    }
}
