//! `OpenID` Connect: who a user is, by the word of a provider such as Keycloak, Entra ID or Google.
//!
//! The authorisation code flow of `OpenID` Connect Core 1.0 with PKCE (RFC 7636): the browser brings a code, which this
//! process exchanges for an ID token. This module knows no sessions and no members; `admin` has those.

mod provider;

mod token;

pub(crate) use crate::oidc::provider::{Flow, Providers};
pub(crate) use crate::oidc::token::Claims;
