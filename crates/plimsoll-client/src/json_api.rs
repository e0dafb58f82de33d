//! Requests to an API in JSON that lists something and reports changes: of a container engine, Kubernetes, Consul.

pub mod containers;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_wire::tls::Trust;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connect::endpoint::Endpoint;
use crate::fetch::{FetchError, FetchLimits, Fetched, FetchedLines, Fetcher, FetcherError};

/// A page of a list is shorter.
const MOST_BYTES: u64 = 16 << 20;

/// Where an API is, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAccess {
    /// A URL without a path, or with the one that all others are below.
    pub base: String,
    /// The Unix socket of this machine, if it is behind one.
    pub socket: Option<PathBuf>,
    /// What its certificate is believed by.
    pub trust: Trust,
    /// A file with the token, which is read for each request: it may be renewed.
    pub token: Option<PathBuf>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// It does not answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It cannot be reached as configured.
    #[error("{}", plimsoll_model::with_causes(.0))]
    Fetcher(#[from] FetcherError),
    /// The token for it cannot be read.
    #[error("the token in `{}` cannot be read: {cause}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It refuses.
    #[error("{path} answers with status {status}{}", .message.as_deref().map(|it| format!(": {it}")).unwrap_or_default())]
    Status {
        /// Of the request, without its query.
        path: String,
        /// Of the answer.
        status: u16,
        /// As the API words it.
        message: Option<String>,
    },
    /// The answer is not one of such an API.
    #[error("the answer is not one of {api}: {reason}")]
    Answer {
        /// Which.
        api: &'static str,
        /// Why.
        reason: String,
    },
}

/// An API.
#[derive(Debug)]
pub struct Api {
    access: ApiAccess,
    /// For messages.
    name: &'static str,
    /// The field that has the token, and what stands before it there.
    authorization: (&'static str, &'static str),
    fetcher: Fetcher,
}

impl Api {
    /// - `name`: of the API, for messages.
    /// - `authorization`: the field that has the token, and what stands before it there.
    /// - `timeout`: of an answer.
    pub fn new(
        access: &ApiAccess,
        name: &'static str,
        authorization: (&'static str, &'static str),
        timeout: Duration,
    ) -> Result<Self, ApiError> {
        let limits = FetchLimits {
            timeout,
            bytes: MOST_BYTES,
            redirects: 0,
        };
        Ok(Self {
            fetcher: Fetcher::believing(access.trust.clone(), limits)?,
            access: access.clone(),
            name,
            authorization,
        })
    }

    /// The document at a path, and the head of the answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Fetched), ApiError> {
        let (endpoint, fields) = self.request(path)?;
        let sending = self.fetcher.send_to("GET", &endpoint, fields, Bytes::new());
        let answer = sending.await?;
        if answer.status != 200 {
            return Err(refusal(path, &answer));
        }
        let document = self.read(&answer.content)?;
        Ok((document, answer))
    }

    /// The lines of an answer that does not end; what it is in their place is the answer itself.
    pub async fn lines(&self, path: &str) -> Result<FetchedLines, Refused> {
        let (endpoint, fields) = self.request(path)?;
        let opened = self.fetcher.lines(&endpoint, fields).await;
        match opened.map_err(ApiError::from)? {
            Ok(lines) => Ok(lines),
            Err(answer) => Err(Refused {
                status: Some(answer.status),
                error: refusal(path, &answer),
            }),
        }
    }

    /// A document of this API.
    pub fn read<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, ApiError> {
        serde_json::from_slice(text).map_err(|error| ApiError::Answer {
            api: self.name,
            reason: error.to_string(),
        })
    }

    fn request(&self, path: &str) -> Result<(Endpoint, Vec<(String, String)>), ApiError> {
        let url = format!("{}{path}", self.access.base.trim_end_matches('/'));
        let endpoint = Endpoint::parse(&url).map_err(|error| ApiError::Answer {
            api: self.name,
            reason: error.to_string(),
        })?;
        let endpoint = match &self.access.socket {
            Some(socket) => endpoint.at_socket(socket.clone()),
            None => endpoint,
        };
        let mut fields = vec![("accept".to_owned(), "application/json".to_owned())];
        if let Some(path) = &self.access.token {
            let token = fs::read_to_string(path).map_err(|cause| ApiError::Token {
                path: path.clone(),
                cause,
            })?;
            let (name, before) = self.authorization;
            fields.push((name.to_owned(), format!("{before}{}", token.trim())));
        }
        Ok((endpoint, fields))
    }
}

/// A text as a part of a path or a query.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Why there are no lines.
#[derive(Debug)]
pub struct Refused {
    /// Of the answer, if there is one.
    pub status: Option<u16>,
    /// As an error.
    pub error: ApiError,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self {
            status: None,
            error,
        }
    }
}

fn refusal(path: &str, answer: &Fetched) -> ApiError {
    /// Longer messages are pages.
    const LONGEST: usize = 300;

    let document: Value = serde_json::from_slice(&answer.content).unwrap_or_default();
    let message = document["message"].as_str().map(str::to_owned);
    let message = message.or_else(|| String::from_utf8(answer.content.clone()).ok());
    let message = message.map(|text| text.trim().to_owned());
    ApiError::Status {
        path: path.split('?').next().unwrap_or(path).to_owned(),
        status: answer.status,
        message: message.filter(|text| !text.is_empty() && text.len() <= LONGEST),
    }
}
