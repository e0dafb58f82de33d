//! A provider over HTTP: its metadata and keys, which are kept for a while, and the exchange of a code for a token.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::basic_authorization;
use plimsoll_client::fetch::{Ask, FetchLimits, Fetcher};
use plimsoll_model::Secret;
use plimsoll_monitor::config::{OidcPlan, is_protected};
use plimsoll_monitor::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use url::Url;

use crate::oidc::token::{self, Claims, Expected, KeySet, Profile, TokenError};

/// Of each response of a provider.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(10),
    bytes: 512 * 1024,
    redirects: 3,
};

/// How long metadata and keys are kept.
const KEEP: Duration = Duration::from_hours(1);

/// How long keys are kept at least, so that tokens with unknown keys do not make requests without end.
const LEAST: Duration = Duration::from_secs(30);

/// Why a sign-in by the provider failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("cannot reach the provider: {0}")]
    Unreachable(String),
    #[error("{0} of the provider: {1}")]
    Refused(&'static str, String),
    #[error("the provider says that it is `{0}`, and `issuer` has another name")]
    OtherIssuer(String),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// `OpenID` Connect Discovery 1.0, section 3.
#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Protected,
    token_endpoint: Protected,
    jwks_uri: Protected,
    userinfo_endpoint: Option<Protected>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// A URL that secrets may be sent to.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct Protected(Url);

impl TryFrom<String> for Protected {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = Url::parse(&text).map_err(|error| format!("`{text}` is not a URL: {error}"))?;
        if is_protected(&url) {
            Ok(Self(url))
        } else {
            Err(format!("`{text}` is not protected by TLS"))
        }
    }
}

/// RFC 6749, section 5.1.
#[derive(Debug, Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// RFC 6749, section 5.2.
#[derive(Debug, Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

#[derive(Debug, Clone)]
struct Known {
    /// The issuer of the plan that it was read for.
    issuer: String,
    at: Timestamp,
    metadata: Arc<Metadata>,
    keys: Arc<KeySet>,
}

/// The provider as it was last read; one for all requests.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    known: Mutex<Option<Known>>,
}

/// The secrets of one sign-in, which the browser keeps.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// Of PKCE: 43 characters or more.
    pub(crate) verifier: String,
    /// The hash of it, in base64url.
    pub(crate) challenge: String,
}

impl Providers {
    /// URL of the provider's sign-in page.
    pub(crate) async fn authorization(
        &self,
        plan: &OidcPlan,
        flow: &Flow,
        now: Timestamp,
    ) -> Result<String, ProviderError> {
        let fetcher = fetcher(plan)?;
        let known = self.known(plan, &fetcher, now, KEEP).await?;
        let mut url = known.metadata.authorization_endpoint.0.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &plan.client_id)
            .append_pair("redirect_uri", &plan.redirect_uri())
            .append_pair("scope", &plan.scopes.join(" "))
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge", &flow.challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// The user that a code is of.
    ///
    /// - `issuer`: the parameter `iss` of the response, where the provider sends it (RFC 9207).
    pub(crate) async fn user(
        &self,
        plan: &OidcPlan,
        flow: &Flow,
        (code, issuer): (&str, Option<&str>),
        now: Timestamp,
    ) -> Result<Claims, ProviderError> {
        let fetcher = fetcher(plan)?;
        let known = self.known(plan, &fetcher, now, KEEP).await?;
        let metadata = &*known.metadata;
        if issuer.is_some_and(|issuer| issuer != metadata.issuer) {
            return Err(TokenError::Issuer.into());
        }
        let tokens = redeem(plan, metadata, &fetcher, code, &flow.verifier).await?;
        let expected = Expected {
            issuer: &metadata.issuer,
            client_id: &plan.client_id,
            nonce: &flow.nonce,
        };
        let verified = match token::verify(&tokens.id_token, &known.keys, expected, now) {
            // Providers replace their keys.
            Err(TokenError::UnknownKey) => {
                let fresh = self.known(plan, &fetcher, now, LEAST).await?;
                token::verify(&tokens.id_token, &fresh.keys, expected, now)
            }
            other => other,
        };
        let mut claims = verified?;
        // Claims of the scope `email` may be at this endpoint only (OpenID Connect Core 1.0, section 5.4).
        if claims.email.is_none()
            && let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, tokens.access_token)
        {
            claims.email = profile(&url.0, &token, &claims.subject, &fetcher).await?;
        }
        Ok(claims)
    }

    /// Metadata and keys that are no older than `oldest`. One request reads them; others wait for it.
    async fn known(
        &self,
        plan: &OidcPlan,
        fetcher: &Fetcher,
        now: Timestamp,
        oldest: Duration,
    ) -> Result<Known, ProviderError> {
        let mut known = self.known.lock().await;
        if let Some(known) = &*known
            && known.issuer == plan.issuer
            && known.at <= now
            && now.since(known.at) < oldest
        {
            return Ok(known.clone());
        }
        let metadata = discover(plan, fetcher).await?;
        let content = get(fetcher, &metadata.jwks_uri.0, "the keys").await?;
        let keys = KeySet::parse(&content);
        let keys = keys.ok_or(ProviderError::Refused(
            "the keys",
            "no JSON Web Key Set".into(),
        ))?;
        let read = Known {
            issuer: plan.issuer.clone(),
            at: now,
            metadata: Arc::new(metadata),
            keys: Arc::new(keys),
        };
        *known = Some(read.clone());
        Ok(read)
    }
}

fn fetcher(plan: &OidcPlan) -> Result<Fetcher, ProviderError> {
    Fetcher::believing(plan.trust.clone(), LIMITS)
        .map_err(|error| ProviderError::Unreachable(error.to_string()))
}

async fn discover(plan: &OidcPlan, fetcher: &Fetcher) -> Result<Metadata, ProviderError> {
    const WHAT: &str = "the metadata";

    let url = format!("{}/.well-known/openid-configuration", plan.issuer);
    let url = Url::parse(&url).map_err(|error| ProviderError::Unreachable(error.to_string()))?;
    let metadata: Metadata = parsed(&get(fetcher, &url, WHAT).await?, WHAT)?;
    if metadata.issuer.trim_end_matches('/') != plan.issuer {
        return Err(ProviderError::OtherIssuer(metadata.issuer));
    }
    Ok(metadata)
}

async fn get(fetcher: &Fetcher, url: &Url, what: &'static str) -> Result<Vec<u8>, ProviderError> {
    let response = fetcher.get(url, Ask::default()).await;
    let response = response.map_err(|error| ProviderError::Unreachable(error.to_string()))?;
    if response.status == 200 {
        Ok(response.content)
    } else {
        Err(ProviderError::Refused(
            what,
            format!("status {} of {url}", response.status),
        ))
    }
}

fn parsed<T: DeserializeOwned>(content: &[u8], what: &'static str) -> Result<T, ProviderError> {
    serde_json::from_slice(content).map_err(|error| ProviderError::Refused(what, error.to_string()))
}

/// Exchanges a code (RFC 6749, section 4.1.3).
async fn redeem(
    plan: &OidcPlan,
    metadata: &Metadata,
    fetcher: &Fetcher,
    code: &str,
    verifier: &str,
) -> Result<Tokens, ProviderError> {
    const WHAT: &str = "the token endpoint";

    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", code)
        .append_pair("redirect_uri", &plan.redirect_uri())
        .append_pair("code_verifier", verifier);
    let mut fields = vec![
        (
            "content-type".to_owned(),
            "application/x-www-form-urlencoded".to_owned(),
        ),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    let methods = &metadata.token_endpoint_auth_methods_supported;
    let supports = |method: &str| methods.iter().any(|one| one == method);
    match &plan.client_secret {
        None => {
            form.append_pair("client_id", &plan.client_id);
        }
        Some(secret) if supports("client_secret_post") && !supports("client_secret_basic") => {
            form.append_pair("client_id", &plan.client_id)
                .append_pair("client_secret", secret.expose());
        }
        // Both parts are encoded as in forms (RFC 6749, section 2.3.1).
        Some(secret) => {
            let encoded = |text: &str| {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
            };
            let password = Secret::new(encoded(secret.expose()));
            let value = basic_authorization(&encoded(&plan.client_id), &password);
            fields.push(("authorization".to_owned(), value.expose().to_owned()));
        }
    }
    let content = form.finish();
    let url = &metadata.token_endpoint.0;
    let sent = fetcher.send("POST", url, fields, Some(content.as_bytes()));
    let response = sent
        .await
        .map_err(|error| ProviderError::Unreachable(error.to_string()))?;
    if response.status == 200 {
        return parsed(&response.content, WHAT);
    }
    let refusal: Refusal = serde_json::from_slice(&response.content).unwrap_or_default();
    let why = match (refusal.error.as_str(), refusal.error_description.as_str()) {
        ("", _) => format!("status {}", response.status),
        (error, "") => error.to_owned(),
        (error, description) => format!("{error} ({description})"),
    };
    Err(ProviderError::Refused(
        WHAT,
        why.chars().take(300).collect(),
    ))
}

/// The verified address of a user (`OpenID` Connect Core 1.0, section 5.3).
async fn profile(
    url: &Url,
    token: &str,
    subject: &str,
    fetcher: &Fetcher,
) -> Result<Option<String>, ProviderError> {
    const WHAT: &str = "the userinfo endpoint";

    #[derive(Deserialize)]
    struct Owner {
        sub: String,
    }

    let fields = vec![("authorization".to_owned(), format!("Bearer {token}"))];
    let response = fetcher.send("GET", url, fields, None).await;
    let response = response.map_err(|error| ProviderError::Unreachable(error.to_string()))?;
    if response.status != 200 {
        return Err(ProviderError::Refused(
            WHAT,
            format!("status {}", response.status),
        ));
    }
    let owner: Owner = parsed(&response.content, WHAT)?;
    let profile: Profile = parsed(&response.content, WHAT)?;
    // The response of another user is not to be used (section 5.3.2).
    Ok(profile.verified().filter(|_| owner.sub == subject))
}
