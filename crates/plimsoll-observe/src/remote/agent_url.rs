//! The URL of an agent with the target as its query.

use std::net::IpAddr;

use url::{Host, Url};

use crate::target_name::{TargetKind, TargetName, TargetNameError};

/// A URL that names no target of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteUrlError {
    /// It is no URL.
    #[error("`{text}` is no URL: {reason}; write for example {EXAMPLE}")]
    Url {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
    /// Its scheme is not HTTP.
    #[error(
        "an agent is reached by https:// or, on this machine, by http://; write for example {EXAMPLE}"
    )]
    Scheme,
    /// It has credentials; an agent wants a token.
    #[error("a URL of an agent has no user: name the file of its token by --observe-token-file")]
    User,
    /// It has no target, or several.
    #[error(
        "name one target as the query of the URL: ?pid=, ?unit=, ?cgroup=, ?container= or ?pod=, such as {EXAMPLE}"
    )]
    Query,
    /// The target has no valid value.
    #[error(transparent)]
    Target(#[from] TargetNameError),
    /// The token would be sent in the clear.
    #[error("the token is not sent to {0} in the clear: use https://")]
    Clear(String),
}

const EXAMPLE: &str = "https://db1:7070/?unit=postgresql";

/// Where an agent is, and what is sampled there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentUrl {
    sample: Url,
    agent: String,
    target: TargetName,
}

impl AgentUrl {
    pub(super) fn parse(text: &str) -> Result<Self, RemoteUrlError> {
        let url = Url::parse(text).map_err(|error| RemoteUrlError::Url {
            text: text.to_owned(),
            reason: error.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(RemoteUrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RemoteUrlError::User);
        }
        let pairs: Vec<_> = url.query_pairs().collect();
        let [(kind, value)] = pairs.as_slice() else {
            return Err(RemoteUrlError::Query);
        };
        let kind = TargetKind::named(kind).ok_or(RemoteUrlError::Query)?;
        let target = TargetName::new(kind, value)?;
        let mut sample = url.clone();
        sample.set_fragment(None);
        sample
            .path_segments_mut()
            .map_err(|()| RemoteUrlError::Scheme)?
            .pop_if_empty()
            .extend(["v1", "sample"]);
        Ok(Self {
            agent: url.origin().ascii_serialization(),
            sample,
            target,
        })
    }

    /// The URL of a sample.
    pub(super) fn sample(&self) -> &Url {
        &self.sample
    }

    /// Scheme, host and port.
    pub(super) fn agent(&self) -> &str {
        &self.agent
    }

    pub(super) fn target(&self) -> &TargetName {
        &self.target
    }

    /// Whether requests are encrypted, or stay on this machine.
    pub(super) fn keeps_secrets(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        self.sample.scheme() == "https"
            || match self.sample.host() {
                Some(Host::Ipv4(address)) => is_loopback(address.into()),
                Some(Host::Ipv6(address)) => is_loopback(address.into()),
                Some(Host::Domain(name)) => name == "localhost",
                None => false,
            }
    }
}
