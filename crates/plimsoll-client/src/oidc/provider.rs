//! A provider over HTTP: its metadata and keys, which are kept for a while, and the exchange of a code for a token.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Secret;
use plimsoll_wire::tls::Trust;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::id_token::{self, Expected, IdTokenError};
use super::metadata::{ProviderMetadata, discover, get, parsed};
use crate::connect::credentials::basic_authorization;
use crate::fetch::{FetchLimits, Fetcher};
use crate::jwt::{JwtClaims, JwtKeySet};

/// Of each response of a provider.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(10),
    bytes: 512 * 1024,
    redirects: 3,
};

/// How long metadata and keys are kept, in seconds.
const KEEP: f64 = 3600.0;

/// How long keys are kept at least, so that tokens with unknown keys do not make requests without end.
const LEAST: f64 = 30.0;

/// How soon a provider that could not be read is tried again, in seconds: those who wait do not wait one after the other.
const AGAIN: f64 = 2.0;

/// Why a sign-in by the provider failed.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// It does not respond.
    #[error("cannot reach the provider: {0}")]
    Unreachable(String),
    /// It responds with an error, or with something else than the part that is named.
    #[error("{0} of the provider: {1}")]
    Refused(&'static str, String),
    /// Its metadata has another name.
    #[error("the provider says that it is `{0}`, and `issuer` has another name")]
    OtherIssuer(String),
    /// It has no endpoint for users.
    #[error("the provider has no `{0}`")]
    NoEndpoint(&'static str),
    /// Its ID token is not accepted.
    #[error(transparent)]
    Token(#[from] IdTokenError),
}

/// A client of a provider, as it is registered there.
#[derive(Debug, Clone)]
pub struct OidcClient {
    /// The provider, without a slash at its end.
    pub issuer: String,
    /// The name of the client.
    pub client_id: String,
    /// Absent for a public client, which has PKCE alone.
    pub client_secret: Option<Secret>,
    /// Where browsers come back to.
    pub redirect_uri: String,
    /// Requested scopes, `openid` among them.
    pub scopes: Vec<String>,
    /// Whose certificates the provider may have.
    pub trust: Trust,
}

/// The secrets of one sign-in, which the browser keeps.
#[derive(Debug, Clone)]
pub struct OidcFlow {
    /// What the response has to repeat.
    pub state: String,
    /// What the ID token has to repeat.
    pub nonce: String,
    /// Of PKCE: 43 characters or more.
    pub verifier: String,
    /// The hash of it, in base64url.
    pub challenge: String,
}

/// A user who has signed in.
#[derive(Debug, Clone)]
pub struct OidcUser {
    /// The claims of the ID token.
    pub claims: JwtClaims,
    /// For further claims at the endpoint `userinfo`.
    access_token: Option<String>,
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
    /// The issuer that it was read for.
    issuer: String,
    /// In seconds since 1970.
    at: f64,
    metadata: Arc<ProviderMetadata>,
    keys: Arc<JwtKeySet>,
}

/// A provider as it was last read; one for all requests.
#[derive(Debug, Default)]
pub struct OidcProvider {
    known: Mutex<Reads>,
}

/// What was read of a provider.
#[derive(Debug, Default)]
struct Reads {
    known: Option<Known>,
    /// When reading failed last, and why.
    failed: Option<(f64, String)>,
}

impl OidcProvider {
    /// URL of the provider's sign-in page.
    ///
    /// - `now`: in seconds since 1970, as in all of these.
    pub async fn authorization(
        &self,
        client: &OidcClient,
        flow: &OidcFlow,
        now: f64,
    ) -> Result<String, OidcError> {
        let metadata = self.metadata(client, now).await?;
        let endpoint = metadata.authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or(OidcError::NoEndpoint("authorization_endpoint"))?;
        let mut url = endpoint.0.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("scope", &client.scopes.join(" "))
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge", &flow.challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// The metadata of the provider.
    pub async fn metadata(
        &self,
        client: &OidcClient,
        now: f64,
    ) -> Result<Arc<ProviderMetadata>, OidcError> {
        let fetcher = fetcher(client)?;
        let known = self.known(client, &fetcher, now, KEEP).await?;
        Ok(known.metadata)
    }

    /// The user that a code is of.
    ///
    /// - `issuer`: the parameter `iss` of the response, where the provider sends it (RFC 9207).
    pub async fn user(
        &self,
        client: &OidcClient,
        flow: &OidcFlow,
        (code, issuer): (&str, Option<&str>),
        now: f64,
    ) -> Result<OidcUser, OidcError> {
        let fetcher = fetcher(client)?;
        let known = self.known(client, &fetcher, now, KEEP).await?;
        let metadata = &*known.metadata;
        if issuer.is_some_and(|issuer| issuer != metadata.issuer) {
            return Err(IdTokenError::Issuer.into());
        }
        let tokens = redeem(client, metadata, &fetcher, code, &flow.verifier).await?;
        let expected = Expected {
            issuer: &metadata.issuer,
            client_id: &client.client_id,
            nonce: &flow.nonce,
        };
        let verified = match id_token::verify(&tokens.id_token, &known.keys, expected, now) {
            // Providers replace their keys.
            Err(IdTokenError::UnknownKey) => {
                let fresh = self.known(client, &fetcher, now, LEAST).await?;
                id_token::verify(&tokens.id_token, &fresh.keys, expected, now)
            }
            other => other,
        };
        Ok(OidcUser {
            claims: verified?,
            access_token: tokens.access_token,
        })
    }

    /// Further claims about a user, where the provider has them (`OpenID` Connect Core 1.0, section 5.3).
    pub async fn userinfo(
        &self,
        client: &OidcClient,
        user: &OidcUser,
        now: f64,
    ) -> Result<Option<JwtClaims>, OidcError> {
        const WHAT: &str = "the userinfo endpoint";

        let metadata = self.metadata(client, now).await?;
        let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &user.access_token) else {
            return Ok(None);
        };
        let fields = vec![("authorization".to_owned(), format!("Bearer {token}"))];
        let response = fetcher(client)?.send("GET", &url.0, fields, None).await;
        let response = response.map_err(|error| OidcError::Unreachable(error.to_string()))?;
        if response.status != 200 {
            let status = format!("status {}", response.status);
            return Err(OidcError::Refused(WHAT, status));
        }
        let claims = JwtClaims::parse(&response.content);
        let claims = claims.filter(|it| it.text("sub").is_some());
        let claims = claims.ok_or_else(|| OidcError::Refused(WHAT, "no claims".to_owned()))?;
        // The response of another user is not to be used (section 5.3.2).
        let is_same = claims.text("sub") == user.claims.text("sub");
        Ok(is_same.then_some(claims))
    }

    /// Metadata and keys that are no older than `oldest`. One request reads them; others wait for it.
    async fn known(
        &self,
        client: &OidcClient,
        fetcher: &Fetcher,
        now: f64,
        oldest: f64,
    ) -> Result<Known, OidcError> {
        let mut reads = self.known.lock().await;
        if let Some(known) = &reads.known
            && known.issuer == client.issuer
            && known.at <= now
            && now - known.at < oldest
        {
            return Ok(known.clone());
        }
        // While the provider is away, what was read last is as good as any; a key that was not there then is not.
        let stale = reads.known.clone();
        let stale = stale.filter(|it| it.issuer == client.issuer && oldest >= KEEP);
        if let Some((at, why)) = &reads.failed
            && *at <= now
            && now - at < AGAIN
        {
            return stale.ok_or_else(|| OidcError::Unreachable(why.clone()));
        }
        match Self::read(client, fetcher, now).await {
            Ok(known) => {
                reads.known = Some(known.clone());
                reads.failed = None;
                Ok(known)
            }
            Err(error) => {
                let why = match &error {
                    OidcError::Unreachable(why) => why.clone(),
                    error => error.to_string(),
                };
                reads.failed = Some((now, why));
                stale.ok_or(error)
            }
        }
    }

    async fn read(client: &OidcClient, fetcher: &Fetcher, now: f64) -> Result<Known, OidcError> {
        let metadata = discover(fetcher, &client.issuer).await?;
        let content = get(fetcher, metadata.jwks_uri.as_url(), "the keys").await?;
        let keys = JwtKeySet::parse(&content);
        let keys = keys.map_err(|error| OidcError::Refused("the keys", error.to_string()))?;
        Ok(Known {
            issuer: client.issuer.clone(),
            at: now,
            metadata: Arc::new(metadata),
            keys: Arc::new(keys),
        })
    }
}

fn fetcher(client: &OidcClient) -> Result<Fetcher, OidcError> {
    Fetcher::believing(client.trust.clone(), LIMITS)
        .map_err(|error| OidcError::Unreachable(error.to_string()))
}

/// Exchanges a code (RFC 6749, section 4.1.3).
async fn redeem(
    client: &OidcClient,
    metadata: &ProviderMetadata,
    fetcher: &Fetcher,
    code: &str,
    verifier: &str,
) -> Result<Tokens, OidcError> {
    const WHAT: &str = "the token endpoint";

    let endpoint = metadata.token_endpoint.as_ref();
    let endpoint = endpoint.ok_or(OidcError::NoEndpoint("token_endpoint"))?;
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", code)
        .append_pair("redirect_uri", &client.redirect_uri)
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
    match &client.client_secret {
        None => {
            form.append_pair("client_id", &client.client_id);
        }
        Some(secret) if supports("client_secret_post") && !supports("client_secret_basic") => {
            form.append_pair("client_id", &client.client_id)
                .append_pair("client_secret", secret.expose());
        }
        // Both parts are encoded as in forms (RFC 6749, section 2.3.1).
        Some(secret) => {
            let encoded = |text: &str| {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
            };
            let password = Secret::new(encoded(secret.expose()));
            let value = basic_authorization(&encoded(&client.client_id), &password);
            fields.push(("authorization".to_owned(), value.expose().to_owned()));
        }
    }
    let content = form.finish();
    let sent = fetcher.send("POST", &endpoint.0, fields, Some(content.as_bytes()));
    let response = sent
        .await
        .map_err(|error| OidcError::Unreachable(error.to_string()))?;
    if response.status == 200 {
        return parsed(&response.content, WHAT);
    }
    let refusal: Refusal = serde_json::from_slice(&response.content).unwrap_or_default();
    let why = match (refusal.error.as_str(), refusal.error_description.as_str()) {
        ("", _) => format!("status {}", response.status),
        (error, "") => error.to_owned(),
        (error, description) => format!("{error} ({description})"),
    };
    let why = why.chars().take(300).collect();
    Err(OidcError::Refused(WHAT, why))
}
