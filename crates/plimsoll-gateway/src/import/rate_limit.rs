//! `limit_req` and its zones.

use plimsoll_server::Moment;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::{Keys, quoted};
use super::variables::with_places;

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
            let status = scope.last("limit_req_status");
            if let Some(status) = status.filter(|it| it.argument(0) != "429") {
                notes.add(status, "left out: what is beyond the limit gets a 429");
            }
            let is_delayed = !first.arguments.iter().any(|it| it == "nodelay");
            if is_delayed && first.parameter("burst=").is_some() {
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
    let name = directive.parameter("zone=").unwrap_or_default();
    let zone = scope
        .zone("limit_req_zone", "zone=", name)
        .ok_or_else(|| format!("there is no zone `{name}`"))?;
    let key = match zone.argument(0) {
        "$binary_remote_addr" | "$remote_addr" => None,
        key if !key.contains('$') || key == "$server_name" => Some("all".to_owned()),
        key => {
            let key = with_places(key, scope, Moment::Request, None);
            let reason = || format!("`{}` has no counterpart as a key", zone.argument(0));
            Some(key.ok_or_else(reason)?)
        }
    };
    let rate = zone.parameter("rate=").unwrap_or_default();
    let parsed = rate.split_once("r/").and_then(|(number, unit)| {
        let requests: u32 = number.parse().ok().filter(|it| *it > 0)?;
        let per = match unit {
            "s" => "1s",
            "m" => "1m",
            _ => return None,
        };
        Some((requests, per))
    });
    let (requests, per) = parsed.ok_or_else(|| format!("`{rate}` is not a rate"))?;
    let burst = directive
        .parameter("burst=")
        .map_or(Some(0), |it| it.parse::<u32>().ok());
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
