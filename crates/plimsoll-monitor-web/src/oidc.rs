//! `OpenID` Connect: who a user is, by the word of the provider of the configuration.
//!
//! The flow is that of `plimsoll_client::oidc`. This module knows no sessions and no members; `admin` has those.

use plimsoll_client::jwt::JwtClaims;
use plimsoll_client::oidc::{OidcClient, OidcProvider};
pub(crate) use plimsoll_client::oidc::{OidcError, OidcFlow};
use plimsoll_monitor::config::OidcPlan;
use plimsoll_monitor::time::Timestamp;

/// The provider as it was last read; one for all requests.
#[derive(Debug, Default)]
pub(crate) struct Providers(OidcProvider);

/// The user of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Never given to another user by the same provider.
    pub(crate) subject: String,
    /// An address that the provider has verified.
    pub(crate) email: Option<String>,
}

impl Providers {
    /// URL of the provider's sign-in page.
    pub(crate) async fn authorization(
        &self,
        plan: &OidcPlan,
        flow: &OidcFlow,
        now: Timestamp,
    ) -> Result<String, OidcError> {
        self.0
            .authorization(&client(plan), flow, seconds(now))
            .await
    }

    /// The user that a code is of.
    ///
    /// - `issuer`: the parameter `iss` of the response, where the provider sends it (RFC 9207).
    pub(crate) async fn user(
        &self,
        plan: &OidcPlan,
        flow: &OidcFlow,
        response: (&str, Option<&str>),
        now: Timestamp,
    ) -> Result<Claims, OidcError> {
        let (client, now) = (client(plan), seconds(now));
        let user = self.0.user(&client, flow, response, now).await?;
        let mut email = verified_email(&user.claims);
        // Claims of the scope `email` may be at this endpoint only (OpenID Connect Core 1.0, section 5.4).
        if email.is_none() {
            let more = self.0.userinfo(&client, &user, now).await?;
            email = more.as_ref().and_then(verified_email);
        }
        Ok(Claims {
            subject: user.claims.text("sub").unwrap_or_default().to_owned(),
            email,
        })
    }
}

fn client(plan: &OidcPlan) -> OidcClient {
    OidcClient {
        issuer: plan.issuer.clone(),
        client_id: plan.client_id.clone(),
        client_secret: plan.client_secret.clone(),
        redirect_uri: plan.redirect_uri(),
        scopes: plan.scopes.clone(),
        trust: plan.trust.clone(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of dates")]
fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1_000.0
}

/// The address of a user, if the provider says that it has verified it; some write that as a text.
fn verified_email(claims: &JwtClaims) -> Option<String> {
    let is_verified = claims.is_any_of("email_verified", &["true".to_owned()]);
    let email = claims.text("email").filter(|it| it.contains('@'));
    email.filter(|_| is_verified).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn addresses_count_only_if_the_provider_has_verified_them() {
        for (verified, counts) in [
            (json!(true), true),
            (json!("true"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!(1), false),
            (Value::Null, false),
        ] {
            let claims = json!({ "email": "ann@example.org", "email_verified": verified });
            let claims = JwtClaims::parse(claims.to_string().as_bytes()).unwrap();
            assert_eq!(verified_email(&claims).is_some(), counts, "{verified}");
        }
    }
}
