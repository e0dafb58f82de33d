//! gRPC: the health service (grpc.health.v1, `doc/health-checking.md` of grpc).

use std::sync::Arc;

use plimsoll_client::grpc::{call, frame};
use plimsoll_client::{Endpoint, Http2, Request, require_http2};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::h2;

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::http::HttpProbeError;
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

const METHOD: &str = "/grpc.health.v1.Health/Check";

/// An answer has two bytes.
const MOST_READ: usize = 64 * 1024;

/// Asks the health service.
#[derive(Debug)]
pub struct GrpcProbe {
    endpoint: Endpoint,
    service: String,
    request: Request,
    /// Whether another status than SERVING is a failure; otherwise conditions decide.
    requires_serving: bool,
    reach: Reach,
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
        let http = match (url.strip_prefix("grpc://"), url.strip_prefix("grpcs://")) {
            (Some(rest), _) => format!("http://{rest}"),
            (None, Some(rest)) => format!("https://{rest}"),
            (None, None) => url.to_owned(),
        };
        let endpoint = Endpoint::parse(&http)?;
        let body = frame(&[health_request(service)]).expect("a name is shorter than 4 GiB");
        let mut all = fields.to_vec();
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
            all.push((name.to_owned(), value.to_owned()));
        }
        let scheme = if endpoint.is_tls() { "https" } else { "http" };
        let authority = endpoint.authority();
        let request = Request::encode_http2("POST", scheme, authority, METHOD, &all, Some(&body))?;
        Ok(Self {
            endpoint,
            service: service.to_owned(),
            request,
            requires_serving,
            reach,
        })
    }

    async fn ask(
        &self,
        context: &ProbeContext,
        reading: &mut Reading,
        deadline: std::time::Instant,
    ) -> Result<(), Failure> {
        let Some(connection) = self.reach.connect(&self.endpoint, context, reading).await else {
            return Ok(());
        };
        if let Some(session) = connection.stream.tls_session() {
            reading.certificate = session.certificate;
        }
        require_http2(&connection, &self.endpoint)?;
        let (buffer, clock) = (&context.buffer, &context.clock);
        let begun = clock.now();
        let mut http = Http2::new(connection.stream, h2::Settings::default(), begun);
        let request = self.request.http2().expect("it was encoded for HTTP/2");
        let reply = call(&mut http, request, MOST_READ, deadline, buffer, clock).await?;
        let waited = clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.code = Some(200);
        reading.grpc_status = Some(reply.status);
        if !reply.status.is_ok() {
            let text = reply.message.unwrap_or_default();
            let cause = format!("the call ended with {} {text}", reply.status);
            return Err(
                Failure::new(Phase::Receive, FailureKind::Protocol).because(cause.trim_end())
            );
        }
        let status = reply
            .messages
            .first()
            .map_or("UNKNOWN", |message| health_status(message));
        reading.body = format!("{{\"status\":\"{status}\"}}").into_bytes();
        reading.size = reading.body.len() as u64;
        if self.requires_serving && status != "SERVING" {
            let cause = format!("the service is {status}");
            return Err(Failure::new(Phase::Receive, FailureKind::Refused).because(cause));
        }
        Ok(())
    }
}

impl Probe for GrpcProbe {
    fn kind(&self) -> &'static str {
        "grpc"
    }

    fn target(&self) -> String {
        let url = self.endpoint.to_string().replacen("http", "grpc", 1);
        if self.service.is_empty() {
            url
        } else {
            format!("{url} {}", self.service)
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
                if let Err(failure) = self.ask(context, reading, deadline).await {
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
