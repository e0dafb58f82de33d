//! The request: what it says and who it claims to come from.

use std::error::Error;
use std::path::PathBuf;

use plimsoll_client::{ConnectPlan, Endpoint, Request, RequestForm, basic_authorization};
use plimsoll_model::{Protocol, Secret};

use super::Problems;

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Request method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,

    /// Header field, repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// Body
    #[arg(
        short = 'd',
        long = "data",
        value_name = "TEXT",
        conflicts_with = "data_file"
    )]
    data: Option<String>,

    /// Body from a file
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<PathBuf>,

    /// Content type of the body
    #[arg(short = 'T', long, value_name = "TYPE")]
    content_type: Option<String>,

    /// Basic authentication
    #[arg(short = 'a', long, value_name = "USER:PASSWORD")]
    basic_auth: Option<String>,

    /// Host header, in place of that of the URL
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

/// What all requests of a command have in common.
#[derive(Debug)]
pub(crate) struct RequestParts {
    method: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    has_own_authorization: bool,
}

impl RequestArgs {
    /// Everything but the URL.
    ///
    /// - `closes`: whether the connection is to be closed after each response.
    pub(crate) fn parts(&self, closes: bool, problems: &mut Problems) -> RequestParts {
        let headers = self.headers(closes, problems);
        let body = match (&self.data, &self.data_file) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(path)) => problems.file("-D", path),
            (None, None) => None,
        };
        let default_method = if body.is_some() { "POST" } else { "GET" };
        RequestParts {
            method: self
                .method
                .clone()
                .unwrap_or_else(|| default_method.to_owned()),
            headers,
            body,
            has_own_authorization: self.basic_auth.is_some(),
        }
    }

    fn headers(&self, closes: bool, problems: &mut Problems) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for text in &self.headers {
            match text.split_once(':') {
                Some((name, value)) => {
                    headers.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                None => problems.add("-H", format!("`{text}` is not of the form `Name: value`")),
            }
        }
        let mut add = |name: &str, value: Option<String>| {
            let is_given = headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name));
            if let Some(value) = value.filter(|_| !is_given) {
                headers.push((name.to_owned(), value));
            }
        };
        let has_body = self.data.is_some() || self.data_file.is_some();
        let content_type = self
            .content_type
            .clone()
            .or_else(|| has_body.then(|| "application/x-www-form-urlencoded".to_owned()));
        add("host", self.host.clone());
        add("user-agent", Some(USER_AGENT.to_owned()));
        add("accept", Some("*/*".to_owned()));
        add("content-type", content_type);
        add("connection", closes.then(|| "close".to_owned()));
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

impl RequestParts {
    /// The request for `url` as it goes over connections of `connect`, by `protocol`.
    pub(crate) fn encode(
        &self,
        url: &Endpoint,
        connect: &ConnectPlan,
        protocol: Protocol,
    ) -> Result<Request, Box<dyn Error>> {
        let mut headers = self.headers.clone();
        if let Some((user, password)) = url.credentials()
            && !self.has_own_authorization
        {
            let value = basic_authorization(user, password);
            headers.push(("authorization".to_owned(), value.expose().to_owned()));
        }
        let scheme = url.scheme().name();
        let (method, body) = (&self.method, self.body.as_deref());
        let target = match connect.request_form(url) {
            RequestForm::Origin if protocol != Protocol::Http1 => {
                let path = url.path_and_query();
                let authority = url.authority();
                let encode = match protocol {
                    Protocol::Http3 => Request::encode_http3,
                    Protocol::Http1 | Protocol::Http2 => Request::encode_http2,
                };
                return Ok(encode(method, scheme, authority, path, &headers, body)?);
            }
            RequestForm::Absolute { .. } if protocol != Protocol::Http1 => {
                return Err(
                    "--http2 on an http:// URL does not go through an HTTP proxy; \
                            use a SOCKS proxy, or none with `-x ''`"
                        .into(),
                );
            }
            RequestForm::Origin => url.path_and_query().to_owned(),
            RequestForm::Absolute {
                proxy_authorization,
            } => {
                if let Some(value) = proxy_authorization {
                    let value = value.expose().to_owned();
                    headers.push(("proxy-authorization".to_owned(), value));
                }
                format!("{scheme}://{}{}", url.authority(), url.path_and_query())
            }
        };
        let request = Request::encode(method, &target, url.authority(), &headers, body)?;
        Ok(request)
    }
}
