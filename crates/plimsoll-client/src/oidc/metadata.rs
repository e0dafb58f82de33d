//! What a provider says about itself (`OpenID` Connect Discovery 1.0, section 3).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::{Host, Url};

use super::OidcError;
use crate::fetch::{Ask, Fetcher};

/// Metadata of a provider. An issuer that only signs tokens, such as a Kubernetes cluster, has no endpoints for users.
#[derive(Debug, Clone, Deserialize)]
pub struct ProviderMetadata {
    /// The name that its tokens have.
    pub issuer: String,
    /// Where its public keys are.
    pub jwks_uri: ProtectedUrl,
    pub(super) authorization_endpoint: Option<ProtectedUrl>,
    pub(super) token_endpoint: Option<ProtectedUrl>,
    pub(super) userinfo_endpoint: Option<ProtectedUrl>,
    /// Where browsers end their session at the provider (`OpenID` Connect RP-Initiated Logout 1.0).
    pub end_session_endpoint: Option<ProtectedUrl>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
}

/// A URL that secrets may be sent to, and keys be taken from.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct ProtectedUrl(pub(super) Url);

impl ProtectedUrl {
    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

/// A text that is not the URL of something protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectedUrlError {
    /// It is no URL.
    #[error("`{text}` is not a URL: {cause}")]
    Url {
        /// The text.
        text: String,
        /// Why not.
        cause: url::ParseError,
    },
    /// Others could read what is sent to it.
    #[error("`{0}` is not protected by TLS")]
    NotProtected(String),
}

impl TryFrom<String> for ProtectedUrl {
    type Error = ProtectedUrlError;

    fn try_from(text: String) -> Result<Self, ProtectedUrlError> {
        let url = match Url::parse(&text) {
            Ok(url) => url,
            Err(cause) => return Err(ProtectedUrlError::Url { text, cause }),
        };
        if is_protected(&url) {
            Ok(Self(url))
        } else {
            Err(ProtectedUrlError::NotProtected(text))
        }
    }
}

/// Whether tokens and secrets may be sent to a URL, and keys taken from it: by TLS, or within this machine.
pub fn is_protected(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

/// Reads the metadata of an issuer, which has to be the one of that name.
///
/// - `issuer`: its URL, without a slash at its end.
pub async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<ProviderMetadata, OidcError> {
    const WHAT: &str = "the metadata";

    let url = format!("{issuer}/.well-known/openid-configuration");
    let url = Url::parse(&url).map_err(|error| OidcError::Unreachable(error.to_string()))?;
    let metadata: ProviderMetadata = parsed(&get(fetcher, &url, WHAT).await?, WHAT)?;
    if metadata.issuer.trim_end_matches('/') != issuer {
        return Err(OidcError::OtherIssuer(metadata.issuer));
    }
    Ok(metadata)
}

pub(super) async fn get(
    fetcher: &Fetcher,
    url: &Url,
    what: &'static str,
) -> Result<Vec<u8>, OidcError> {
    let response = fetcher.get(url, Ask::default()).await;
    let response = response.map_err(|error| OidcError::Unreachable(error.to_string()))?;
    if response.status == 200 {
        Ok(response.content)
    } else {
        let status = format!("status {} of {url}", response.status);
        Err(OidcError::Refused(what, status))
    }
}

pub(super) fn parsed<T: DeserializeOwned>(
    content: &[u8],
    what: &'static str,
) -> Result<T, OidcError> {
    serde_json::from_slice(content).map_err(|error| OidcError::Refused(what, error.to_string()))
}
