//! `jwt = …` in a `[[route]]` or a `[[listen]]`.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use plimsoll_client::jwt::{JwtAlgorithm, JwtKeySet, JwtRules, RequiredClaim};
use plimsoll_client::oidc::is_protected;
use plimsoll_server::RequestGuard;
use plimsoll_server::config::{GuardContext, GuardKind, Table, Value, as_text};
use plimsoll_wire::tls::{TlsSettings, Trust};
use url::Url;

use crate::jwt::{
    Challenge, GuardFigures, IssuerPlan, JwtGuard, JwtPlan, KeyOrigin, KeyPlan, KeySource,
    TokenPlace, TokenPlaces, read_file,
};

/// The guard `jwt`.
pub(super) const KIND: GuardKind = GuardKind {
    key: "jwt",
    compile,
};

/// Defaults of `leeway`, `refresh`, `refetch` and `cache`.
const LEEWAY: Duration = Duration::from_mins(1);
const REFRESH: Duration = Duration::from_mins(10);
const REFETCH: Duration = Duration::from_secs(30);
const CACHED: usize = 1024;

/// The most that clocks may differ: beyond it, expiry would mean little.
const MOST_LEEWAY: Duration = Duration::from_mins(10);

/// A table, or one for each issuer. What is not of an issuer stands in the first of them.
fn compile(value: Value<'_>, context: &GuardContext<'_>) -> Option<Arc<dyn RequestGuard>> {
    if value.is_table() {
        return guard(value.table()?, Vec::new(), context);
    }
    if value.to_toml().as_array().is_none_or(Vec::is_empty) {
        return value.wrong("must be a table, or an array of tables");
    }
    let mut tables = value.elements().into_iter();
    let first = tables.next()?;
    // Every mistake is to be found.
    let others: Vec<_> = tables
        .map(|value| {
            let mut table = value.table()?;
            let issuer = issuer(&mut table, context);
            table.finish();
            issuer
        })
        .collect();
    guard(first.table()?, others, context)
}

/// - `others`: further issuers; nothing for one with a mistake.
fn guard(
    mut table: Table<'_>,
    others: Vec<Option<IssuerPlan>>,
    context: &GuardContext<'_>,
) -> Option<Arc<dyn RequestGuard>> {
    let first = issuer(&mut table, context);
    let from = match table.take_value("from") {
        None => Some(vec![TokenPlace::Authorization]),
        Some(value) => places(value),
    };
    let pass_on = table.boolean("pass_on").unwrap_or(true);
    let optional = table.boolean("optional").unwrap_or(false);
    let realm = table.text("realm").unwrap_or_else(|| "plimsoll".to_owned());
    let cached = table.count("cache", 0..=1_000_000).unwrap_or(CACHED);
    let issuers = std::iter::once(first).chain(others);
    let issuers = issuers.collect::<Option<Vec<_>>>();
    if let Some(issuers) = &issuers {
        let names: Vec<_> = issuers.iter().flat_map(|it| &it.rules.issuers).collect();
        let twice = names.iter().enumerate().find(|(at, name)| {
            let before = names.get(..*at).unwrap_or_default();
            before.contains(name)
        });
        if let Some((_, name)) = twice {
            table.wrong(
                format!("`{name}` is an issuer in more than one table"),
                None,
            );
        }
    }
    table.finish();
    let figures = context.counters.figures::<GuardFigures>();
    let issuers = issuers?;
    for issuer in &issuers {
        figures.add_keys(&issuer.keys);
    }
    Some(Arc::new(JwtGuard(Arc::new(JwtPlan {
        issuers,
        from: TokenPlaces(from?),
        is_passed_on: pass_on,
        is_optional: optional,
        challenge: Challenge::new(&realm),
        cached,
        counts: figures.counts(KIND.key, context.name),
    }))))
}

/// The keys of a table that are of its issuer.
fn issuer(table: &mut Table<'_>, context: &GuardContext<'_>) -> Option<IssuerPlan> {
    let issuers = issuers(table);
    let audiences = audiences(table);
    let algorithms = algorithms(table);
    let required = match table.table("claims") {
        None => Some(Vec::new()),
        Some(table) => claims(table),
    };
    let leeway = table.duration("leeway").unwrap_or(LEEWAY);
    if leeway > MOST_LEEWAY {
        table.wrong("`leeway` is 10 minutes at most", None);
    }
    let of_type = table.text("type");
    let keys = keys(table, context, issuers.as_deref());
    Some(IssuerPlan {
        of_type,
        keys: keys?,
        rules: JwtRules {
            issuers: issuers?,
            audiences: audiences?,
            leeway,
            algorithms: algorithms?,
            required: required?,
        },
    })
}

/// One name or several, at least one of them.
fn names(value: Value<'_>) -> Option<Vec<String>> {
    some(value, |text| text.is_empty().then(|| "is empty".to_owned()))
}

/// One text or several, at least one of them.
pub(super) fn some(
    value: Value<'_>,
    mistake: impl Fn(&str) -> Option<String>,
) -> Option<Vec<String>> {
    if value.to_toml().as_array().is_some_and(Vec::is_empty) {
        return value.wrong("is an empty list");
    }
    value.texts_with(mistake)
}

fn issuers(table: &mut Table<'_>) -> Option<Vec<String>> {
    let Some(value) = table.take_value("issuer") else {
        let hint =
            "the claim `iss` of accepted tokens, such as issuer = \"https://id.example.org\"";
        table.missing("issuer", hint);
        return None;
    };
    names(value)
}

fn audiences(table: &mut Table<'_>) -> Option<Vec<String>> {
    let Some(value) = table.take_value("audience") else {
        let hint = "the claim `aud` of accepted tokens, such as audience = \"api\"; false accepts those for other services too";
        table.missing("audience", hint);
        return None;
    };
    if value.is_false() {
        return Some(Vec::new());
    }
    names(value)
}

fn algorithms(table: &mut Table<'_>) -> Option<Vec<JwtAlgorithm>> {
    let Some(value) = table.take_value("algorithms") else {
        return Some(JwtAlgorithm::ALL.to_vec());
    };
    let names = some(value, |name| {
        let known = JwtAlgorithm::ALL.map(JwtAlgorithm::name).join(", ");
        let is_known = JwtAlgorithm::from_name(name).is_some();
        (!is_known).then(|| format!("`{name}` is not accepted; there are {known}"))
    })?;
    let algorithms = names
        .iter()
        .filter_map(|name| JwtAlgorithm::from_name(name));
    Some(algorithms.collect())
}

/// Required claims with their values, or `true` for any.
pub(super) fn claims(mut table: Table<'_>) -> Option<Vec<RequiredClaim>> {
    let claims = table.rest().into_iter().map(|(name, value)| {
        let values = if value.is_true() {
            Vec::new()
        } else {
            names(value)?
        };
        Some(RequiredClaim { name, values })
    });
    // Every mistake is to be found.
    claims.collect::<Vec<_>>().into_iter().collect()
}

/// Where a token is looked for, in this order.
fn places(value: Value<'_>) -> Option<Vec<TokenPlace>> {
    let texts = some(value, |text| match place_of(text) {
        Some(_) => None,
        None => Some(format!(
            "`{text}` is not known; there are header, header:NAME, cookie:NAME and query:NAME"
        )),
    })?;
    Some(texts.iter().filter_map(|text| place_of(text)).collect())
}

fn place_of(text: &str) -> Option<TokenPlace> {
    if text == "header" {
        return Some(TokenPlace::Authorization);
    }
    let (kind, name) = text.split_once(':')?;
    let name = Some(name).filter(|it| !it.is_empty())?;
    match kind {
        "header" => match HeaderName::from_bytes(name.as_bytes()).ok()? {
            http::header::AUTHORIZATION => Some(TokenPlace::Authorization),
            name => Some(TokenPlace::Field(name)),
        },
        "cookie" => Some(TokenPlace::Cookie(name.to_owned())),
        "query" => Some(TokenPlace::Query(name.to_owned())),
        _ => None,
    }
}

/// The source of the keys that was there before, if the settings are the same.
///
/// - `issuers`: those of tokens; the only one is where keys are fetched if nothing else is given.
fn keys(
    table: &mut Table<'_>,
    context: &GuardContext<'_>,
    issuers: Option<&[String]>,
) -> Option<Arc<KeySource>> {
    let value = table.take_value("jwks");
    let ca = table.take_value("ca");
    let refresh = table.duration("refresh").unwrap_or(REFRESH);
    let refetch = table.duration("refetch").unwrap_or(REFETCH);
    if refresh < Duration::from_secs(1) {
        table.wrong("`refresh` is 1s or more", None);
    }
    let trust = trust(table, ca, context);
    let (origin, fixed) = match value {
        Some(value) => origin(&value, context)?,
        None => (discovered(table, issuers?)?, None),
    };
    let trust = trust?;
    // Keys of the configuration are others once it has others.
    let identity = format!("{origin:?} {trust:?} {refresh:?} {refetch:?} {fixed:?}");
    let plan = KeyPlan {
        origin,
        trust,
        refresh,
        refetch,
        notices: context.notices.clone(),
    };
    let states = context.states;
    Some(states.state(&identity, || KeySource::new(plan, fixed)))
}

/// Whose certificates are believed: those of a file, or the public ones. Both are read now, since the server may give up
/// the right to read them later.
pub(super) fn trust(
    table: &mut Table<'_>,
    ca: Option<Value<'_>>,
    context: &GuardContext<'_>,
) -> Option<Trust> {
    let trust = match &ca {
        None => Trust::PublicRoots,
        Some(value) => Trust::Only(context.paths.read(value)?),
    };
    let settings = TlsSettings {
        trust: trust.clone(),
        ..TlsSettings::default()
    };
    match (settings.compile(), ca) {
        (Ok(_), _) => Some(trust),
        (Err(error), Some(value)) => value.wrong(error),
        (Err(error), None) => {
            table.wrong(error, None);
            None
        }
    }
}

fn discovered(table: &mut Table<'_>, issuers: &[String]) -> Option<KeyOrigin> {
    let url = match issuers {
        [issuer] => Url::parse(issuer).ok().filter(is_protected),
        _ => None,
    };
    if url.is_none() {
        let hint = "jwks = \"https://…\", a file, or { keys = […] }";
        table.missing("jwks", hint);
        return None;
    }
    let issuer = issuers.first()?;
    Some(KeyOrigin::Issuer(issuer.trim_end_matches('/').to_owned()))
}

/// A URL, a file, or a table with the keys.
fn origin(value: &Value<'_>, context: &GuardContext<'_>) -> Option<(KeyOrigin, Option<JwtKeySet>)> {
    if value.is_table() {
        let text = serde_json::to_string(&value.to_toml()).unwrap_or_default();
        let keys = value.check(JwtKeySet::parse(text.as_bytes()))?;
        return Some((KeyOrigin::Fixed, Some(keys)));
    }
    let text = as_text(value)?;
    if text.contains("://") {
        let url = value.check(Url::parse(text))?;
        if !is_protected(&url) {
            return value.wrong("must begin with `https://`; `http://` only on localhost");
        }
        return Some((KeyOrigin::Url(url), None));
    }
    let path = context.paths.read(value)?;
    let keys = value.check(read_file(&path))?;
    Some((KeyOrigin::File(path), Some(keys)))
}
