//! `limit_req` and its zones.

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::{Keys, quoted};

/// The layer `rate_limit` of a route that forwards or sends files; nginx does not limit what it returns by itself.
pub(super) fn rate_limit(scope: &Scope<'_>, route: &mut Keys, notes: &mut Notes) {
    if route.get("proxy").is_none() && route.get("files").is_none() {
        return;
    }
    let limits = scope.all("limit_req");
    let Some((first, others)) = limits.split_first() else {
        return;
    };
    for other in others {
        notes.add(other, "left out: a route has one limit");
    }
    match limit(first, scope) {
        Ok(limit) => {
            route.set("rate_limit", limit.inline());
            let is_delayed = !first.arguments.iter().any(|it| it == "nodelay");
            if is_delayed && parameter(first, "burst=").is_some() {
                notes.add(
                    first,
                    "requests within the burst are sent at once, not delayed",
                );
            }
        }
        Err(reason) => notes.add(first, format!("left out: {reason}")),
    }
}

fn limit(directive: &Directive, scope: &Scope<'_>) -> Result<Keys, String> {
    let name = parameter(directive, "zone=").unwrap_or_default();
    let zones = scope.outermost().all("limit_req_zone");
    let zone = zones
        .into_iter()
        .find(|zone| parameter(zone, "zone=").and_then(|it| it.split(':').next()) == Some(name))
        .ok_or_else(|| format!("there is no zone `{name}`"))?;
    let key = match zone.argument(0) {
        "$binary_remote_addr" | "$remote_addr" => None,
        key if !key.contains('$') || key == "$server_name" => Some("all".to_owned()),
        key => match key.strip_prefix("$http_") {
            Some(field) if !field.contains('$') => {
                Some(format!("header:{}", field.replace('_', "-")))
            }
            _ => return Err(format!("requests are not told apart by `{key}`")),
        },
    };
    let rate = parameter(zone, "rate=").unwrap_or_default();
    let per = match rate.rsplit_once("r/") {
        Some((_, "s")) => "1s",
        Some((_, "m")) => "1m",
        _ => return Err(format!("`{rate}` is not a rate")),
    };
    let requests = rate.split('r').next().and_then(|it| it.parse::<u32>().ok());
    let requests = requests
        .filter(|it| *it > 0)
        .ok_or_else(|| format!("`{rate}` is not a rate"))?;
    let burst = parameter(directive, "burst=").map_or(Some(0), |it| it.parse::<u32>().ok());
    let burst = burst.ok_or("its burst is not a number")?;
    let mut limit = Keys::default();
    limit.set("requests", requests.to_string());
    limit.set("per", quoted(per));
    // nginx counts those beyond the one that the rate itself lets through.
    limit.set("burst", burst.saturating_add(1).to_string());
    if let Some(key) = key {
        limit.text("key", &key);
    }
    Ok(limit)
}

fn parameter<'a>(directive: &'a Directive, prefix: &str) -> Option<&'a str> {
    let mut parameters = directive.arguments.iter();
    parameters.find_map(|it| it.strip_prefix(prefix))
}
