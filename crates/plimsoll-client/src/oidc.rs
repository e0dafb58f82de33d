//! `OpenID` Connect: who a user is, by the word of a provider such as Keycloak, Entra ID or Google.
//!
//! The authorisation code flow of `OpenID` Connect Core 1.0 with PKCE (RFC 7636): the browser brings a code, which this
//! process exchanges for an ID token. This module knows no sessions; those who sign users in have them.

mod id_token;

mod metadata;

mod provider;

pub use crate::oidc::id_token::IdTokenError;
pub use crate::oidc::metadata::{
    ProtectedUrl, ProtectedUrlError, ProviderMetadata, discover, is_protected,
};
pub use crate::oidc::provider::{OidcClient, OidcError, OidcFlow, OidcProvider, OidcUser};
