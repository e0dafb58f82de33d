//! HTTP and HTTPS, with redirects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_client::{
    DecodeError, DecodeLimits, Decoder, Endpoint, EndpointError, Http1, Http2, Incomplete,
    RedirectedError, Redirects, Request, RequestForm, Scheme, basic_authorization, require_http2,
};
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret, Side};
use plimsoll_wire::h1::{HeadError, Limits};
use plimsoll_wire::h2;
use url::Url;

use crate::probe::capture::Capture;
use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

/// Bytes of content that are read, and kept for conditions, before and after decoding.
const MOST_READ: u64 = 16 * 1024 * 1024;
const MOST_KEPT: usize = 1024 * 1024;
const MOST_DECODED: u64 = 8 * 1024 * 1024;

/// A request and how its response is read.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// URL; credentials in it are sent as basic authorisation.
    pub url: String,
    /// The method.
    pub method: String,
    /// Fields in order; those that a request needs are added unless they are given.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub body: Option<Vec<u8>>,
    /// User and password.
    pub basic_auth: Option<(String, Secret)>,
    /// Redirects that are followed.
    pub redirects: u32,
    /// Whether the content is kept for conditions.
    pub keeps_body: bool,
    /// Whether HTTP/2 is spoken; without TLS by prior knowledge.
    pub http2: bool,
    /// The `User-Agent`.
    pub agent: String,
}

/// Checks a URL.
#[derive(Debug)]
pub struct HttpProbe {
    options: HttpOptions,
    url: Url,
    endpoint: Endpoint,
    request: Request,
    reach: Reach,
}

/// Why a request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpProbeError {
    /// The URL is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] url::ParseError),
    /// A field or the method is not allowed.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The same for HTTP/2.
    #[error(transparent)]
    Http2(#[from] h2::HeadError),
    /// HTTP/2 without TLS has no form for proxies.
    #[error(
        "HTTP/2 on an http:// URL does not go through an HTTP proxy; use a SOCKS proxy, or none"
    )]
    Http2ByProxy,
}

impl From<RedirectedError> for HttpProbeError {
    fn from(error: RedirectedError) -> Self {
        match error {
            RedirectedError::Http1(error) => Self::Head(error),
            RedirectedError::Http2(error) => Self::Http2(error),
        }
    }
}

impl HttpProbe {
    /// Fails if no request can be made of the options.
    pub fn new(options: HttpOptions, reach: Reach) -> Result<Self, HttpProbeError> {
        let endpoint = Endpoint::parse(&options.url)?;
        // As the endpoint understood it: the scheme may be left out.
        let url = Url::parse(&endpoint.to_string())?;
        let request = encode(&options, &endpoint, reach.request_form(&endpoint))?;
        Ok(Self {
            options,
            url,
            endpoint,
            request,
            reach,
        })
    }

    /// The same request to the server at a Unix socket.
    pub(super) fn at_socket(self, socket: PathBuf) -> Self {
        Self {
            endpoint: Endpoint::unix_socket(socket),
            ..self
        }
    }

    async fn follow(&self, context: &ProbeContext, reading: &mut Reading, deadline: Instant) {
        let mut redirects = Redirects::new(self.options.redirects);
        let (mut endpoint, mut request) = (self.endpoint.clone(), self.request.clone());
        let mut url = self.url.clone();
        loop {
            let Some(capture) = self
                .exchange(&endpoint, &request, context, reading, deadline)
                .await
            else {
                return;
            };
            let location = capture.field("location");
            let next = if self.options.redirects == 0 {
                Ok(None)
            } else {
                redirects.follow(request.method(), &url, reading.code.unwrap_or(0), location)
            };
            let redirect = match next {
                Ok(None) => {
                    self.finish(capture, reading);
                    return;
                }
                Ok(Some(redirect)) => redirect,
                Err(error) => {
                    reading.failure = Some(wrong(Phase::Receive, FailureKind::Protocol, &error));
                    return;
                }
            };
            let next = Endpoint::try_from(&redirect.url).map_err(HttpProbeError::from);
            let next = next.and_then(|endpoint| {
                let form = self.reach.request_form(&endpoint);
                let request = request.redirected(&redirect, &endpoint, form)?;
                Ok((endpoint, request))
            });
            match next {
                Ok(next) => (endpoint, request) = next,
                Err(error) => {
                    reading.failure = Some(wrong(Phase::Receive, FailureKind::Protocol, &error));
                    return;
                }
            }
            url = redirect.url;
        }
    }

    /// One exchange on a fresh connection.
    async fn exchange(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        context: &ProbeContext,
        reading: &mut Reading,
        deadline: Instant,
    ) -> Option<Capture> {
        let connection = self.reach.connect(endpoint, context, reading).await?;
        if let Some(session) = connection.stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let limits = Limits {
            body_bytes: MOST_READ,
            ..Limits::default()
        };
        let mut capture = Capture::new(if self.options.keeps_body {
            MOST_KEPT
        } else {
            0
        });
        let (clock, buffer) = (&context.clock, &context.buffer);
        let now = clock.now();
        let completed = if let Some(encoded) = request.http2() {
            if let Err(failure) = require_http2(&connection, endpoint) {
                reading.failure = Some(failure);
                return None;
            }
            let mut settings = h2::Settings {
                streams: 1,
                ..h2::Settings::default()
            };
            settings.limits.body_bytes = MOST_READ;
            let mut http = Http2::new(connection.stream, settings, now);
            Box::pin(http.exchange(encoded, now, deadline, buffer, &mut capture, clock)).await
        } else {
            let mut http = Http1::new(connection.stream, limits, now);
            http.exchange(request, now, deadline, buffer, &mut capture, clock)
                .await
        };
        match completed {
            Ok(completed) => {
                reading.phases.add(&completed.phases);
                reading.code = Some(completed.status);
                Some(capture)
            }
            Err(Incomplete {
                failure, phases, ..
            }) => {
                reading.phases.add(&phases);
                reading.failure = Some(failure);
                None
            }
        }
    }

    /// Decodes the content for conditions.
    fn finish(&self, mut capture: Capture, reading: &mut Reading) {
        reading.size = capture.size;
        let coding = capture.field("content-encoding").unwrap_or_default();
        let coding = String::from_utf8_lossy(coding).into_owned();
        if self.options.keeps_body && !coding.is_empty() && !capture.body.is_empty() {
            match decoded(&coding, &capture.body) {
                Ok(body) => capture.body = body,
                Err(error) => {
                    reading.failure = Some(wrong(Phase::Receive, FailureKind::Decode, &error));
                }
            }
        }
        reading.fields = capture.fields;
        reading.body = capture.body;
    }
}

impl Probe for HttpProbe {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn target(&self) -> String {
        self.endpoint.to_string()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.endpoint.authority_with_port().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(
            self.reach.timeout,
            context,
            async |reading, deadline| {
                self.follow(context, reading, deadline).await;
            },
        ))
    }
}

fn wrong(phase: Phase, kind: FailureKind, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(phase, kind)
        .on(Side::Theirs)
        .because(error.to_string())
}

fn decoded(coding: &str, content: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let limits = DecodeLimits {
        bytes: MOST_DECODED,
        ..DecodeLimits::default()
    };
    let Some(mut decoder) = Decoder::new(coding, limits)? else {
        return Ok(content.to_vec());
    };
    let mut out = Vec::new();
    decoder.decode(content, &mut out)?;
    decoder.finish(&mut out)?;
    Ok(out)
}

/// The first request.
fn encode(
    options: &HttpOptions,
    endpoint: &Endpoint,
    form: RequestForm,
) -> Result<Request, HttpProbeError> {
    let mut fields: Vec<(String, String)> = options
        .fields
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect();
    let mut default = |name: &str, value: &str| {
        if !fields.iter().any(|(given, _)| given == name) {
            fields.push((name.to_owned(), value.to_owned()));
        }
    };
    default("user-agent", &options.agent);
    default("accept", "*/*");
    if options.keeps_body {
        default("accept-encoding", Decoder::ACCEPTED);
    }
    let given = options.basic_auth.as_ref();
    let given = given.map(|(user, password)| (user.as_str(), password));
    if let Some((user, password)) = given.or_else(|| endpoint.credentials()) {
        default(
            "authorization",
            basic_authorization(user, password).expose(),
        );
    }
    let (method, body) = (&options.method, options.body.as_deref());
    let (authority, path) = (endpoint.authority(), endpoint.path_and_query());
    if options.http2 {
        if form != RequestForm::Origin {
            return Err(HttpProbeError::Http2ByProxy);
        }
        let scheme = match endpoint.scheme() {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        return Ok(Request::encode_http2(
            method, scheme, authority, path, &fields, body,
        )?);
    }
    match form {
        RequestForm::Origin => Ok(Request::encode(method, path, authority, &fields, body)?),
        RequestForm::Absolute {
            proxy_authorization,
        } => {
            let login = proxy_authorization.iter();
            fields.extend(login.map(|login| {
                let value = login.expose().to_owned();
                ("proxy-authorization".to_owned(), value)
            }));
            let target = endpoint.to_string();
            Ok(Request::encode(method, &target, authority, &fields, body)?)
        }
    }
}
