//! The way to the centre.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetched, Fetcher, FetcherError};
use plimsoll_model::Secret;
use plimsoll_wire::tls::Trust;
use serde::Deserialize;
use url::Url;

use crate::config::MonitorPlan;
use crate::engine::report::Report;
use crate::schedule::GateLimits;

/// For one exchange.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(20),
    bytes: 64 * 1024 * 1024,
    redirects: 0,
};

/// Characters of an answer that an error shows.
const MOST_SHOWN: usize = 200;

/// The outcome of an exchange, later.
pub type LinkFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply, CentreError>> + 'a>>;

/// The way to the centre.
pub trait Link {
    /// Fetches what is to be checked.
    ///
    /// - `known`: the entity tag of what the agent has.
    fn fetch(&self, known: Option<String>) -> LinkFuture<'_>;

    /// Sends a report.
    fn send(&self, report: Report) -> LinkFuture<'_>;

    /// Notes that no check of a monitor was started, since its host cannot be reached. A centre that is elsewhere is not sent that.
    fn hold_back(&self, _key: &str) {}
}

/// The response of the centre.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Another configuration than the known one.
    Work(String),
    /// Other monitors, with the limits of their checks.
    Monitors(Vec<Arc<MonitorPlan>>, GateLimits),
    /// The known configuration, or a report that was taken.
    Fine,
    /// A report that was taken, and the keys of monitors that are to be checked at once.
    Check(Vec<String>),
}

impl Reply {
    /// Reads the response to a report.
    pub fn to_report(content: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Taken {
            #[serde(default)]
            check_now: Vec<String>,
        }

        // Earlier versions of the centre have no such member.
        let taken: Taken = serde_json::from_slice(content).unwrap_or_default();
        if taken.check_now.is_empty() {
            Self::Fine
        } else {
            Self::Check(taken.check_now)
        }
    }
}

/// Why an exchange came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CentreError {
    /// The token cannot be read.
    #[error("cannot read the token: {0}; the last configuration stays")]
    Token(String),
    /// The centre cannot be reached, or answers with an error.
    #[error("the centre is away: {0}; checks go on, and results wait")]
    Away(String),
    /// The centre does not accept the token.
    #[error("the centre refuses the token ({0}); checks end until it accepts one")]
    Refused(String),
    /// The store that this process shares with the one that has the lease does not take results.
    #[error("results for the process that has the lease wait: {0}")]
    Store(String),
}

/// A centre over HTTP.
#[derive(Debug)]
pub struct Centre {
    url: Url,
    token: TokenSource,
    fetcher: Fetcher,
}

/// Source of the token.
#[derive(Debug, Clone)]
pub(crate) enum TokenSource {
    Given(Secret),
    /// Read again for each exchange, so that another one takes effect at once.
    File(PathBuf),
}

impl Centre {
    /// A centre whose token is known.
    ///
    /// - `url`: of the centre, perhaps with a path below which it is mounted.
    pub fn new(url: Url, token: Secret, trust: Trust) -> Result<Self, FetcherError> {
        Self::with(url, TokenSource::Given(token), trust)
    }

    /// A centre whose token is in a file, which is read for each exchange.
    pub fn with_token_file(url: Url, file: PathBuf, trust: Trust) -> Result<Self, FetcherError> {
        Self::with(url, TokenSource::File(file), trust)
    }

    fn with(mut url: Url, token: TokenSource, trust: Trust) -> Result<Self, FetcherError> {
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(Self {
            url,
            token,
            fetcher: Fetcher::believing(trust, LIMITS)?,
        })
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        mut fields: Vec<(String, String)>,
        content: Option<&[u8]>,
    ) -> Result<Fetched, CentreError> {
        let token = match &self.token {
            TokenSource::Given(token) => token.clone(),
            TokenSource::File(path) => {
                let text = std::fs::read_to_string(path);
                let text = text
                    .map_err(|error| CentreError::Token(format!("{}: {error}", path.display())))?;
                Secret::new(text.trim())
            }
        };
        let url = self.url.join(path);
        let url = url.map_err(|error| CentreError::Away(error.to_string()))?;
        fields.push((
            "authorization".to_owned(),
            format!("Bearer {}", token.expose()),
        ));
        let sent = self.fetcher.send(method, &url, fields, content).await;
        let answer = sent.map_err(|error| CentreError::Away(error.to_string()))?;
        match answer.status {
            200..=299 | 304 => Ok(answer),
            401 | 403 => Err(CentreError::Refused(answer.status.to_string())),
            status => {
                let content = String::from_utf8_lossy(&answer.content);
                let shown: String = content.trim().chars().take(MOST_SHOWN).collect();
                Err(CentreError::Away(format!("status {status} {shown}")))
            }
        }
    }
}

impl Link for Centre {
    fn fetch(&self, known: Option<String>) -> LinkFuture<'_> {
        Box::pin(async move {
            let known = known.map(|tag| ("if-none-match".to_owned(), tag));
            let fields = known.into_iter().collect();
            let answer = self.call("GET", "api/v1/agent/work", fields, None).await?;
            if answer.status == 304 {
                return Ok(Reply::Fine);
            }
            let text = String::from_utf8(answer.content);
            let text = text.map_err(|_| CentreError::Away("the answer is not text".to_owned()))?;
            Ok(Reply::Work(text))
        })
    }

    fn send(&self, report: Report) -> LinkFuture<'_> {
        Box::pin(async move {
            let report = serde_json::to_string(&report).unwrap_or_default();
            let fields = vec![("content-type".to_owned(), "application/json".to_owned())];
            let content = Some(report.as_bytes());
            let path = "api/v1/agent/results";
            let answer = self.call("POST", path, fields, content).await?;
            Ok(Reply::to_report(&answer.content))
        })
    }
}
