//! The request: what it says and who it claims to come from.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use plimsoll_client::{
    Compressor, ConnectPlan, ContentCoding, DigestLogin, Endpoint, Request, RequestForm,
    basic_authorization,
};
use plimsoll_formats::{FileRequest, MultipartForm, Template};
use plimsoll_model::{Protocol, Secret};

use super::Problems;
use super::body::BodyArgs;
use super::habits::Habits;
use crate::problem::Problem;

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Request method [default: GET, or POST with a body]
    #[arg(short, long, visible_short_alias = 'X', value_name = "METHOD",
          value_parser = super::habits::method)]
    method: Option<String>,

    /// Request header, repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    #[command(flatten)]
    body: BodyArgs,

    /// Content type of the body
    #[arg(short = 'T', long, value_name = "TYPE")]
    content_type: Option<String>,

    /// Compress the request body and set `content-encoding`
    #[arg(long, value_enum, value_name = "CODING")]
    compress_body: Option<Coding>,

    /// Form field as in curl, repeatable: `name=value`, `name=@file;type=…`, `name=<file`
    #[arg(
        short = 'F',
        long = "form",
        value_name = "NAME=VALUE",
        conflicts_with_all = ["data", "data_file", "content_type"]
    )]
    form: Vec<String>,

    /// Basic authentication
    #[arg(
        short = 'a',
        long,
        visible_short_alias = 'u',
        value_name = "USER:PASSWORD"
    )]
    basic_auth: Option<String>,

    /// Bearer token (RFC 6750)
    #[arg(long, value_name = "TOKEN", conflicts_with = "basic_auth")]
    bearer: Option<String>,

    /// Digest authentication (RFC 7616)
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with_all = ["basic_auth", "bearer"])]
    digest: Option<String>,

    /// Host header instead of the URL's host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// The `user-agent` field [default: plimsoll with its version]
    #[arg(short = 'A', long, value_name = "NAME")]
    user_agent: Option<String>,

    /// Follow redirects, and judge the last response
    ///
    /// Credentials and cookies are sent to the origin of the URL only. Times and bytes are those of all requests, which
    /// together are one exchange.
    #[arg(short = 'L', long)]
    location: bool,

    #[command(flatten)]
    habits: Habits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Coding {
    /// RFC 1952
    Gzip,
    /// The zlib format (RFC 1950)
    Deflate,
}

impl From<Coding> for ContentCoding {
    fn from(coding: Coding) -> Self {
        match coding {
            Coding::Gzip => Self::Gzip,
            Coding::Deflate => Self::Deflate,
        }
    }
}

/// Parts that all requests of a command have in common.
#[derive(Debug, Clone)]
pub(crate) struct RequestParts {
    method: Option<String>,
    /// Fields that flags give.
    headers: Vec<(String, Template)>,
    /// Fields that are sent where nothing else gives them.
    defaults: Vec<(String, String)>,
    body: Option<Template>,
    /// The server asks who is there, so nothing else says it.
    is_digest: bool,
    coding: Option<ContentCoding>,
}

/// A request without its URL.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Option<Template>,
    /// The coding by which the body is still to be compressed, once its places are filled.
    pub(crate) coding: Option<ContentCoding>,
}

impl RequestArgs {
    /// Everything but the URL.
    ///
    /// - `closes`: whether the connection is to be closed after each response.
    pub(crate) fn parts(&self, closes: bool, problems: &mut Problems) -> RequestParts {
        self.habits.check(problems);
        let mut headers = self.headers(closes, problems);
        let body = if self.form.is_empty() {
            self.body.read(problems)
        } else {
            let (content_type, body) = self.form(problems);
            headers.push(("content-type".to_owned(), content_type));
            Some(body)
        };
        let mut defaults = vec![
            ("user-agent".to_owned(), USER_AGENT.to_owned()),
            ("accept".to_owned(), "*/*".to_owned()),
        ];
        if body.is_some() {
            let content_type = "application/x-www-form-urlencoded".to_owned();
            defaults.push(("content-type".to_owned(), content_type));
        }
        RequestParts {
            method: self.method.clone(),
            headers: headers
                .into_iter()
                .map(|(name, value)| (name, Template::literal(value)))
                .collect(),
            defaults,
            body: body.map(Template::literal),
            is_digest: self.digest.is_some(),
            coding: self.compress_body.map(ContentCoding::from),
        }
    }

    /// Whether redirects are followed.
    pub(crate) fn follows_redirects(&self) -> bool {
        self.location
    }

    /// The credentials for digest authentication.
    pub(crate) fn digest(&self, problems: &mut Problems) -> Option<Arc<DigestLogin>> {
        let text = self.digest.as_ref()?;
        let pair = text.split_once(':').ok_or("write it as `user:password`");
        let (user, password) = problems.value("--digest", pair)?;
        Some(Arc::new(DigestLogin {
            user: user.to_owned(),
            password: Secret::new(password),
        }))
    }

    /// Notes flags for a body where there is none.
    pub(crate) fn check_body(&self, problems: &mut Problems) {
        let has_body = self.body.is_given() || !self.form.is_empty();
        if self.compress_body.is_some() && !has_body {
            problems.add(
                "--compress-body",
                "there is no body; give one by -d, -D or -F",
            );
        }
    }

    /// A warning if the body looks like a duration that was meant for another flag.
    ///
    /// - `has_shape`: whether connections or threads were given as well.
    pub(crate) fn doubt_body(&self, has_shape: bool) -> Option<Problem> {
        super::habits::duration_as_body(self.body.text(), has_shape)
    }

    /// Whether the server may demand credentials, and get them on the same connection.
    pub(crate) fn has_digest(&self) -> bool {
        self.digest.is_some()
    }

    /// Content type and body.
    fn form(&self, problems: &mut Problems) -> (String, Vec<u8>) {
        let mut form = MultipartForm::default();
        let mut read = |path: &str| Ok(Problems::read(Path::new(path))?);
        for field in &self.form {
            problems.value("-F", form.add(field, &mut read));
        }
        form.encode()
    }

    /// Everything but the URL of a handshake, and the message to send after it.
    ///
    /// - `fields`: those that make it one.
    pub(crate) fn upgrade(
        &self,
        fields: impl IntoIterator<Item = (&'static str, String)>,
        problems: &mut Problems,
    ) -> (RequestParts, Option<Vec<u8>>) {
        for (flag, given) in [
            ("-m", self.method.is_some()),
            ("-T", self.content_type.is_some()),
            ("-F", !self.form.is_empty()),
            ("--compress-body", self.compress_body.is_some()),
        ] {
            if given {
                problems.add(flag, "has no meaning for a WebSocket");
            }
        }
        let bare = Self {
            body: BodyArgs::default(),
            form: Vec::new(),
            compress_body: None,
            ..self.clone()
        };
        let mut parts = bare.parts(false, problems);
        for (name, value) in fields {
            if parts
                .headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
            {
                problems.add("-H", format!("`{name}` is set by the handshake itself"));
            }
            parts
                .headers
                .push((name.to_owned(), Template::literal(value)));
        }
        let message = self.body.read(problems);
        (parts, message)
    }

    fn headers(&self, closes: bool, problems: &mut Problems) -> Vec<(String, String)> {
        let mut headers = problems.header_fields("-H", &self.headers);
        let is_given = |name: &str, headers: &[(String, String)]| {
            let mut headers = headers.iter();
            headers.any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        if self.digest.is_some() && is_given("authorization", &headers) {
            problems.add("--digest", "does not go with a header `authorization`");
        }
        if self.compress_body.is_some() && is_given("content-encoding", &headers) {
            problems.add(
                "--compress-body",
                "does not go with a header `content-encoding`",
            );
        }
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|_| !is_given(name, &headers)) {
                headers.push((name.to_owned(), value));
            }
        };
        add("host", self.host.clone());
        add("user-agent", self.user_agent.clone());
        add("content-type", self.content_type.clone());
        add("connection", closes.then(|| "close".to_owned()));
        add(
            "authorization",
            self.bearer.as_ref().map(|token| format!("Bearer {token}")),
        );
        if let Some(text) = &self.basic_auth {
            match text.split_once(':') {
                Some((user, password)) => {
                    let value = basic_authorization(user, &Secret::new(password));
                    headers.push(("authorization".to_owned(), value.expose().to_owned()));
                }
                None => problems.add("-a", "write it as `user:password`"),
            }
        }
        headers
    }
}

/// How requests reach their server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) connect: &'a ConnectPlan,
    pub(crate) protocol: Protocol,
}

/// The parts of a request on its way, beside the path.
#[derive(Debug)]
pub(crate) struct OnTheWay {
    /// Scheme and authority, where the request line has them before the path.
    pub(crate) form: String,
    pub(crate) headers: Vec<(String, Template)>,
}

impl RequestParts {
    /// A request with a body that is this program's own matter.
    pub(crate) fn post(headers: impl Iterator<Item = (String, String)>, body: Vec<u8>) -> Self {
        let headers = headers.map(|(name, value)| (name, Template::literal(value)));
        Self {
            method: Some("POST".to_owned()),
            headers: headers.collect(),
            defaults: vec![("user-agent".to_owned(), USER_AGENT.to_owned())],
            body: Some(Template::literal(body)),
            coding: None,
            is_digest: false,
        }
    }

    /// Makes them those of a stream of events.
    pub(crate) fn set_accept(&mut self, media_type: &str) {
        for (name, value) in &mut self.defaults {
            if name == "accept" {
                media_type.clone_into(value);
            }
        }
    }

    /// Adds `accept-encoding`, unless a flag gives it.
    pub(crate) fn accept_encodings(&mut self, codings: &str) {
        let field = ("accept-encoding".to_owned(), codings.to_owned());
        self.defaults.push(field);
    }

    /// The body that flags give.
    pub(crate) fn body(&self) -> Option<&Template> {
        self.body.as_ref()
    }

    /// Makes them those of a call of gRPC.
    ///
    /// - `body`: its messages, framed.
    pub(crate) fn set_call(&mut self, body: Vec<u8>) {
        let defaults = [
            ("user-agent", USER_AGENT),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        self.method = Some("POST".to_owned());
        self.defaults = defaults
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        self.body = Some(Template::literal(body));
    }

    /// The request for `url` as it goes `way`.
    pub(crate) fn encode(&self, url: &Endpoint, way: Way<'_>) -> Result<Request, Box<dyn Error>> {
        self.content(url, None).encode(url, way)
    }

    /// Makes templates of the texts that flags give.
    ///
    /// - `fill`: is given the flag and its text.
    pub(crate) fn fill(&mut self, fill: &mut dyn FnMut(&str, &str) -> Option<Template>) {
        let headers = self.headers.iter_mut().map(|(_, value)| ("-H", value));
        for (flag, template) in headers.chain(self.body.as_mut().map(|body| ("-d", body))) {
            let text = template.as_text().map(std::str::from_utf8);
            if let Some(Ok(text)) = text
                && let Some(filled) = fill(flag, text)
            {
                *template = filled;
            }
        }
    }

    /// The request for `url`: from flags, then from a file, then from defaults.
    pub(crate) fn content(&self, url: &Endpoint, file: Option<&FileRequest>) -> RequestContent {
        let mut headers = self.headers.clone();
        let of_url = url.credentials().map(|(user, password)| {
            let value = basic_authorization(user, password);
            (
                "authorization".to_owned(),
                Template::literal(value.expose()),
            )
        });
        let from_file = file.map(|file| file.headers.clone()).unwrap_or_default();
        let defaults = self.defaults.iter();
        let defaults =
            defaults.map(|(name, value)| (name.clone(), Template::literal(value.as_str())));
        // A later source adds only fields of names that no earlier one has.
        for source in [from_file, of_url.into_iter().collect(), defaults.collect()] {
            let given: Vec<String> = headers.iter().map(|(name, _)| name.clone()).collect();
            headers.extend(source.into_iter().filter(|(name, _)| {
                let is_given = given.iter().any(|given| given.eq_ignore_ascii_case(name));
                let is_replaced = self.is_digest && name.eq_ignore_ascii_case("authorization");
                !is_given && !is_replaced
            }));
        }
        let from_file = file.and_then(|file| file.body.as_ref());
        let body = self.body.as_ref().or(from_file).cloned();
        let default_method = if body.is_some() { "POST" } else { "GET" };
        let method = self.method.as_deref();
        let method = method.or_else(|| file.and_then(|file| file.method.as_deref()));
        let mut content = RequestContent {
            method: method.unwrap_or(default_method).to_owned(),
            headers,
            body,
            coding: None,
        };
        if let Some(coding) = self.coding {
            content.compress(coding);
        }
        content
    }
}

impl RequestContent {
    /// Has the body compressed, unless there is none or its file says that it already is.
    fn compress(&mut self, coding: ContentCoding) {
        let mut names = self.headers.iter().map(|(name, _)| name);
        if names.any(|name| name.eq_ignore_ascii_case("content-encoding")) {
            return;
        }
        let Some(body) = &mut self.body else {
            return;
        };
        if let Some(text) = body.as_text() {
            let mut compressed = Vec::new();
            Compressor::new(coding).write(text, &mut compressed);
            *body = Template::literal(compressed);
        } else {
            self.coding = Some(coding);
        }
        let value = Template::literal(coding.name());
        self.headers.push(("content-encoding".to_owned(), value));
    }

    /// The request, which must have no place for a value.
    pub(crate) fn encode(&self, url: &Endpoint, way: Way<'_>) -> Result<Request, Box<dyn Error>> {
        let OnTheWay { form, headers } = self.on_the_way(url, way)?;
        let text = |template: &Template| {
            let text = template.as_text().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        let body = self.body.as_ref().and_then(Template::as_text);
        let (method, authority) = (&self.method, url.authority());
        let target = format!("{form}{}", url.path_and_query());
        let scheme = url.scheme().name();
        Ok(match way.protocol {
            Protocol::Http1 | Protocol::WebSocket => {
                Request::encode(method, &target, authority, &headers, body)?
            }
            Protocol::Http2 => {
                Request::encode_http2(method, scheme, authority, &target, &headers, body)?
            }
            Protocol::Http3 => {
                Request::encode_http3(method, scheme, authority, &target, &headers, body)?
            }
        })
    }

    /// The parts that the request carries on its `way`.
    pub(crate) fn on_the_way(&self, url: &Endpoint, way: Way<'_>) -> Result<OnTheWay, String> {
        let mut headers = self.headers.clone();
        let form = match way.connect.request_form(url) {
            RequestForm::Origin => String::new(),
            RequestForm::Absolute { .. } if way.protocol != Protocol::Http1 => {
                return Err(
                    "--http2 on an http:// URL does not go through an HTTP proxy; \
                     use a SOCKS proxy, or none with `-x ''`"
                        .to_owned(),
                );
            }
            RequestForm::Absolute {
                proxy_authorization,
            } => {
                if let Some(value) = proxy_authorization {
                    let value = Template::literal(value.expose());
                    headers.push(("proxy-authorization".to_owned(), value));
                }
                format!("{}://{}", url.scheme().name(), url.authority())
            }
        };
        Ok(OnTheWay { form, headers })
    }
}
