//! `[oidc]`: the provider, and who may sign in by it.

use std::path::Path;
use std::sync::Arc;

use plimsoll_client::oidc::is_protected;
use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_wire::tls::Trust;
use url::Url;

use crate::notify::Settings;
use crate::store::Role;

/// Sign-in by `OpenID` Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcPlan {
    /// The provider, without a slash at its end.
    pub issuer: String,
    /// The name on the button.
    pub name: String,
    /// By which the provider knows this monitor.
    pub client_id: String,
    /// Absent for a public client, which has PKCE alone.
    pub client_secret: Option<Secret>,
    /// Public URL of the monitor, without a slash at its end.
    pub url: String,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Domains of e-mail addresses that may sign in; empty for all.
    pub domains: Vec<String>,
    /// The role of users that are no members yet; without it they are refused.
    pub new_members: Option<Role>,
    /// Whose certificates the provider may have.
    pub trust: Trust,
}

impl OidcPlan {
    /// Redirect URI that is registered at the provider.
    pub fn redirect_uri(&self) -> String {
        format!("{}/admin/oidc/callback", self.url)
    }

    /// Whether a verified address is in one of the domains.
    pub fn admits(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.domains.is_empty()
            || self
                .domains
                .iter()
                .any(|one| one == "*" || one.eq_ignore_ascii_case(domain))
    }
}

pub(super) fn compile<'t>(
    table: Table<'t>,
    directory: &Path,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<Arc<OidcPlan>> {
    let mut settings = Settings::new(table, environment);
    let issuer = base(&mut settings, "issuer");
    let client_id = settings.text("client_id");
    let client_secret = settings.optional_secret("client_secret");
    let url = base(&mut settings, "url");
    let table = &mut settings.table;
    let name = table.text("name");
    let mut texts = |key| {
        let values = table
            .take_value(key)
            .map(Value::elements)
            .unwrap_or_default();
        let texts = values
            .iter()
            .filter_map(|value| as_text(value).map(str::to_owned));
        texts.collect::<Vec<_>>()
    };
    let (mut scopes, domains) = (texts("scopes"), texts("domains"));
    if scopes.is_empty() {
        scopes = ["email", "profile"].map(str::to_owned).into();
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    let new_members = table.take_value("new_members").and_then(|value| {
        let text = as_text(&value)?;
        match Role::named(text) {
            Some(Role::Owner) | None => value.wrong(format!(
                "`{text}` is not \"viewer\", \"editor\" or \"admin\""
            )),
            Some(_) if domains.is_empty() => value.wrong_with(
                "would make every user of the provider a member",
                Some(
                    "add `domains = [\"example.org\"]`, or `domains = [\"*\"]` to admit all"
                        .to_owned(),
                ),
            ),
            Some(role) => Some(role),
        }
    });
    let trust = match table.take_value("ca") {
        None => Trust::PublicRoots,
        Some(value) => {
            let path = directory.join(as_text(&value)?);
            if let Err(error) = std::fs::metadata(&path) {
                return value.wrong(format!("cannot read {}: {error}", path.display()));
            }
            Trust::Only(path)
        }
    };
    settings.table.finish();
    let issuer = issuer?;
    let host = Url::parse(&issuer).ok()?.host_str()?.to_owned();
    Some(Arc::new(OidcPlan {
        name: name.unwrap_or(host),
        issuer,
        client_id: client_id?,
        client_secret,
        url: url?,
        scopes,
        domains,
        new_members,
        trust,
    }))
}

/// A URL without a query, that other paths are appended to.
fn base(settings: &mut Settings<'_>, key: &'static str) -> Option<String> {
    let value = settings.table.take_value(key);
    if value.is_none() {
        settings.table.missing(key, "it is needed here");
    }
    let value = value?;
    let text = as_text(&value)?;
    match Url::parse(text) {
        Ok(url) if url.query().is_none() && url.fragment().is_none() && is_protected(&url) => {
            Some(text.trim_end_matches('/').to_owned())
        }
        _ => value.wrong("must be a URL that begins with `https://`; `http://` only on localhost"),
    }
}
