//! `oidc = …` in a `[[route]]` or a `[[listen]]`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plimsoll_client::jwt::RequiredClaim;
use plimsoll_client::oidc::{OidcClient, OidcProvider, is_protected};
use plimsoll_model::Secret;
use plimsoll_server::RequestGuard;
use plimsoll_server::config::{GuardContext, GuardKind, Table, Value, as_text};
use url::Url;

use super::jwt::{claims, some, trust};
use crate::jwt::GuardFigures;
use crate::oidc::{OidcGuard, OidcPlan, Seals};

/// The guard `oidc`.
pub(super) const KIND: GuardKind = GuardKind {
    key: "oidc",
    compile,
};

/// Defaults of `lifetime`, `cookie`, `scopes` and `keep`.
const LIFETIME: Duration = Duration::from_hours(8);
const COOKIE: &str = "__Host-plimsoll-session";
const SCOPES: [&str; 3] = ["openid", "email", "profile"];
const KEEP: [&str; 6] = [
    "sub",
    "email",
    "email_verified",
    "name",
    "preferred_username",
    "groups",
];

/// Longer than browsers keep cookies.
const MOST_LIFETIME: Duration = Duration::from_hours(400 * 24);

/// Characters of a secret that cookies are sealed by.
const LEAST_SECRET: usize = 32;

fn compile(value: Value<'_>, context: &GuardContext<'_>) -> Option<Arc<dyn RequestGuard>> {
    let mut table = value.table()?;
    let issuer = needed(
        &mut table,
        "issuer",
        "such as issuer = \"https://id.example.org\"",
    );
    let issuer = issuer.and_then(|value| base(&value));
    let client_id = needed(
        &mut table,
        "client_id",
        "the name of this site at the provider",
    );
    let client_id = client_id.and_then(|it| as_text(&it).map(str::to_owned));
    let client_secret = secrets(&mut table, context, ("client_secret", "client_secret_file"));
    let url = needed(
        &mut table,
        "url",
        "the URL of this site, such as url = \"https://wiki.example.org\"",
    );
    let url = url.and_then(|value| site(&value));
    let prefix = context.prefix.trim_end_matches('/');
    let mut path = |key: &'static str, usual: &str| match table.take_value(key) {
        None => Some(format!("{prefix}{usual}")),
        Some(value) => below(&value, prefix),
    };
    let callback = path("callback", "/oidc/callback");
    let logout = path("logout", "/oidc/logout");
    let scopes = match table.take_value("scopes") {
        None => Some(SCOPES.map(str::to_owned).to_vec()),
        Some(value) => scopes(value),
    };
    let seal_secrets = secrets(&mut table, context, ("secret", "secret_file"));
    let cookie = match table.take_value("cookie") {
        None => Some(COOKIE.to_owned()),
        Some(value) => cookie(&value),
    };
    let lifetime = table.duration("lifetime").unwrap_or(LIFETIME);
    if lifetime > MOST_LIFETIME || lifetime < Duration::from_secs(1) {
        table.wrong("`lifetime` is from 1s to 400 days", None);
    }
    let required = match table.table("claims") {
        None => Some(Vec::new()),
        Some(table) => claims(table),
    };
    let keep = match table.take_value("keep") {
        None => Some(KEEP.map(str::to_owned).to_vec()),
        Some(value) => some(value, |text| text.is_empty().then(|| "is empty".to_owned())),
    };
    let has_userinfo = table.boolean("userinfo").unwrap_or(false);
    let ca = table.take_value("ca");
    let trust = trust(&mut table, ca, context);
    for secret in seal_secrets.iter().flatten() {
        if secret.len() < LEAST_SECRET {
            let hint = "`openssl rand -base64 32` makes one".to_owned();
            table.wrong("a `secret` has 32 characters or more", Some(hint));
        }
    }
    table.finish();
    let (client_secret, seal_secrets, required) = (client_secret?, seal_secrets?, required?);
    let client = OidcClient {
        issuer: issuer?,
        client_id: client_id?,
        client_secret: client_secret.into_iter().next().map(Secret::new),
        redirect_uri: format!("{}{}", url.as_ref()?, callback.as_ref()?),
        scopes: scopes?,
        trust: trust?,
    };
    let cookie = cookie?;
    let plan = OidcPlan {
        provider: provider(context, &client),
        seals: seals(context, &client, &cookie, &seal_secrets)?,
        client,
        url: url?,
        callback: callback?,
        logout: logout?,
        cookie,
        lifetime,
        kept: kept(keep?, &required),
        required,
        has_userinfo,
        counts: context
            .counters
            .figures::<GuardFigures>()
            .counts(KIND.key, context.name),
        notices: context.notices.clone(),
        has_failed: AtomicBool::new(false),
    };
    Some(Arc::new(OidcGuard(Arc::new(plan))))
}

fn needed<'t>(table: &mut Table<'t>, key: &'static str, hint: &str) -> Option<Value<'t>> {
    let value = table.take_value(key);
    if value.is_none() {
        table.missing(key, hint);
    }
    value
}

/// A URL without query that secrets may be sent to, without a slash at its end.
fn base(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    match Url::parse(text) {
        Ok(url) if url.query().is_none() && url.fragment().is_none() && is_protected(&url) => {
            Some(text.trim_end_matches('/').to_owned())
        }
        _ => value.wrong("must be a URL that begins with `https://`; `http://` only on localhost"),
    }
}

/// The same with scheme and host alone.
fn site(value: &Value<'_>) -> Option<String> {
    let text = base(value)?;
    let url = Url::parse(&text).ok()?;
    if url.path() != "/" || !url.username().is_empty() || url.password().is_some() {
        return value.wrong("is scheme and host alone; `callback` has the path");
    }
    Some(text)
}

/// A path that requests of the route may have.
fn below(value: &Value<'_>, prefix: &str) -> Option<String> {
    let text = as_text(value)?;
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/-._~".contains(&it);
    if !text.starts_with('/') || !text.bytes().all(is_plain) {
        return value.wrong("begins with a slash, and has no query and no escapes");
    }
    let rest = text.strip_prefix(prefix);
    if !rest.is_some_and(|rest| rest.starts_with('/')) {
        return value.wrong(format!("is not below the route, whose prefix is {prefix}/"));
    }
    Some(text.to_owned())
}

fn scopes(value: Value<'_>) -> Option<Vec<String>> {
    let mut scopes = some(value, |text| {
        let is_scope = !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic());
        (!is_scope).then(|| format!("`{text}` is not a scope"))
    })?;
    if !scopes.iter().any(|it| it == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    Some(scopes)
}

fn cookie(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let name = text.strip_prefix("__Host-");
    let is_name = name.is_some_and(|it| {
        let is_token = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
        !it.is_empty() && it.bytes().all(is_token)
    });
    if is_name {
        return Some(text.to_owned());
    }
    value.wrong("is a name that begins with `__Host-`, by which browsers take it from this host and over TLS alone")
}

/// One text or several, or the lines of a file; empty if neither is given.
fn secrets(
    table: &mut Table<'_>,
    context: &GuardContext<'_>,
    (key, file): (&'static str, &'static str),
) -> Option<Vec<String>> {
    let (given, file) = (table.take_value(key), table.take_value(file));
    if given.is_some() && file.is_some() {
        let message = format!("both `{key}` and a file of it are given");
        table.wrong(message, None);
        return None;
    }
    if let Some(value) = given {
        return some(value, |text| text.is_empty().then(|| "is empty".to_owned()));
    }
    let Some(value) = file else {
        return Some(Vec::new());
    };
    let path = context.paths.read(&value)?;
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("cannot read {}: {error}", path.display()));
    let text = value.check(text)?;
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    if lines.is_empty() {
        return value.wrong(format!("{} is empty", path.display()));
    }
    Some(lines)
}

/// The provider as it was read before, if there was one.
fn provider(context: &GuardContext<'_>, client: &OidcClient) -> Arc<OidcProvider> {
    let identity = format!("{} {:?}", client.issuer, client.trust);
    context.states.state(&identity, OidcProvider::default)
}

/// The keys of cookies that were there before, if they are the same: without secrets they are made once.
fn seals(
    context: &GuardContext<'_>,
    client: &OidcClient,
    cookie: &str,
    secrets: &[String],
) -> Option<Arc<Seals>> {
    let of_client = format!("{} {} {cookie}", client.issuer, client.client_id);
    let identity = format!("{of_client} {secrets:?}");
    let secrets: Vec<_> = secrets.iter().map(|it| it.as_bytes().to_vec()).collect();
    let made = context
        .states
        .try_state(&identity, || Seals::new(&secrets, &of_client));
    made.ok()
}

/// The claims that a session keeps: those of the configuration, and those that are required.
fn kept(mut keep: Vec<String>, required: &[RequiredClaim]) -> Vec<String> {
    let names = required.iter().map(|it| it.name.clone());
    keep.extend(names.chain(["sub".to_owned()]));
    keep
}
