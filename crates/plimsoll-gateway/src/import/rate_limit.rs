//! `limit_req`, `limit_conn` and their zones, and `limit_rate`.

use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::size;
use super::variables::with_places;

/// Why a limit is not carried over.
#[derive(Debug, thiserror::Error)]
enum LimitProblem {
    #[error("there is no zone `{0}`")]
    NoZone(String),
    #[error("`{0}` has no counterpart as a key")]
    Key(String),
    #[error("`{0}` is not a number above 0")]
    Requests(String),
    #[error("`{0}` is not a rate")]
    Rate(String),
    #[error("its {0} is not a number")]
    NotNumber(&'static str),
}

/// The layers `rate_limit`, `in_flight_limit` and `bandwidth` of a route that forwards or sends files; nginx does not limit
/// what it returns by itself.
pub(super) fn limits(scope: &Scope<'_>, route: &mut Keys, notes: &mut Notes) {
    if route.get("proxy").is_none() && route.get("files").is_none() {
        return;
    }
    let rates = all(scope, "limit_req", notes, |it| rate(it, scope));
    let in_flight = all(scope, "limit_conn", notes, |it| in_flight(it, scope));
    for (key, limits) in [("rate_limit", rates), ("in_flight_limit", in_flight)] {
        match limits.as_slice() {
            [] => {}
            [one] => route.set(key, one.as_str()),
            several => route.set(key, format!("[{}]", several.join(", "))),
        }
    }
    bandwidth(scope, route, notes);
}

/// The limits of all directives of that name, which hold together.
fn all(
    scope: &Scope<'_>,
    name: &str,
    notes: &mut Notes,
    limit: impl Fn(&Directive) -> Result<Keys, LimitProblem>,
) -> Vec<String> {
    let dry_run = scope.last(&format!("{name}_dry_run"));
    if let Some(dry_run) = dry_run.filter(|it| it.argument(0) == "on") {
        notes.add(dry_run, "nothing is limited, and nothing is counted");
        return Vec::new();
    }
    let status = scope.last(&format!("{name}_status"));
    let status = status.and_then(|it| it.argument(0).parse::<u16>().ok());
    let status = status.filter(|it| (400..600).contains(it)).unwrap_or(503);
    let mut limits = Vec::new();
    for directive in scope.all(name) {
        match limit(directive) {
            Ok(mut limit) => {
                let zone = zone_name(directive);
                if limited(scope.outermost().innermost(), name, zone, false, false) > 1 {
                    notes.add(
                        directive,
                        format!("each location counts by itself; nginx would count all of the zone `{zone}` together"),
                    );
                }
                limit.set("status", status.to_string());
                limits.push(limit.inline());
            }
            Err(reason) => notes.add(directive, format!("left out: {reason}")),
        }
    }
    limits
}

/// The zone that a `limit_req` or `limit_conn` counts in.
fn zone_name(directive: &Directive) -> &str {
    directive
        .parameter("zone=")
        .unwrap_or_else(|| directive.argument(0))
}

/// How many places that respond within a block a limit by that zone holds at; what a place returns by itself is not limited.
///
/// - `name`: `limit_req` or `limit_conn`.
/// - `inherited`: it holds around the block.
/// - `is_place`: the block itself responds.
fn limited(block: &[Directive], name: &str, zone: &str, inherited: bool, is_place: bool) -> usize {
    let mut own = block.iter().filter(|it| it.name == name).peekable();
    let holds = match own.peek() {
        Some(_) => own.any(|it| zone_name(it) == zone),
        None => inherited,
    };
    let within = block.iter().filter_map(|it| {
        let is_place = match it.name.as_str() {
            "location" => it.last("return").is_none(),
            "server" => it.last("location").is_none(),
            _ => return None,
        };
        Some(limited(&it.block, name, zone, holds, is_place))
    });
    within.sum::<usize>() + usize::from(holds && is_place)
}

/// `limit_rate` with `limit_rate_after`.
fn bandwidth(scope: &Scope<'_>, route: &mut Keys, notes: &mut Notes) {
    let Some(directive) = scope.last("limit_rate").filter(|it| it.argument(0) != "0") else {
        return;
    };
    let after = scope
        .last("limit_rate_after")
        .filter(|it| it.argument(0) != "0");
    let bytes = |it: &Directive| size(it.argument(0));
    let (Some(rate), after) = (bytes(directive), after.map(bytes)) else {
        notes.add(directive, "left out: the rate cannot depend on the request");
        return;
    };
    let mut bandwidth = Keys::default();
    bandwidth.text("rate", &rate);
    if let Some(after) = after.flatten() {
        bandwidth.text("after", &after);
    }
    route.set("bandwidth", bandwidth.inline());
}

/// What distinguishes the clients of a zone; `None` for their addresses.
fn zone_key(zone: &Directive, scope: &Scope<'_>) -> Result<Option<String>, LimitProblem> {
    match zone.argument(0) {
        "$binary_remote_addr" | "$remote_addr" => Ok(None),
        key if !key.contains('$') || key == "$server_name" => Ok(Some("all".to_owned())),
        key => {
            let places = with_places(key, scope, Moment::Request, None);
            places
                .map(Some)
                .ok_or_else(|| LimitProblem::Key(key.to_owned()))
        }
    }
}

/// A limit of requests in flight.
fn in_flight(directive: &Directive, scope: &Scope<'_>) -> Result<Keys, LimitProblem> {
    let name = directive.argument(0);
    let zone = scope
        .zone("limit_conn_zone", "zone=", name)
        .ok_or_else(|| LimitProblem::NoZone(name.to_owned()))?;
    let requests: u32 = directive.argument(1).parse().unwrap_or_default();
    if requests == 0 {
        return Err(LimitProblem::Requests(directive.argument(1).to_owned()));
    }
    let mut limit = Keys::default();
    limit.set("requests", requests.to_string());
    if let Some(key) = zone_key(zone, scope)? {
        limit.text("key", &key);
    }
    Ok(limit)
}

/// A limit of the rate of requests.
fn rate(directive: &Directive, scope: &Scope<'_>) -> Result<Keys, LimitProblem> {
    let name = directive.parameter("zone=").unwrap_or_default();
    let zone = scope
        .zone("limit_req_zone", "zone=", name)
        .ok_or_else(|| LimitProblem::NoZone(name.to_owned()))?;
    let key = zone_key(zone, scope)?;
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
    let (requests, per) = parsed.ok_or_else(|| LimitProblem::Rate(rate.to_owned()))?;
    let burst = directive
        .parameter("burst=")
        .map_or(Some(0), |it| it.parse::<u32>().ok());
    let burst = burst.ok_or(LimitProblem::NotNumber("burst"))?;
    let mut limit = Keys::default();
    limit.set("requests", requests.to_string());
    limit.set("per", toml_string(per));
    // nginx counts those beyond the one that the rate itself lets through.
    limit.set("burst", burst.saturating_add(1).to_string());
    let is_at_once = directive.arguments.iter().any(|it| it == "nodelay");
    if burst > 0 && !is_at_once {
        let undelayed = directive.parameter("delay=").unwrap_or("0");
        let undelayed = undelayed
            .parse::<u32>()
            .ok()
            .ok_or(LimitProblem::NotNumber("delay"))?;
        limit.set("at_once", undelayed.saturating_add(1).to_string());
    }
    if let Some(key) = key {
        limit.text("key", &key);
    }
    Ok(limit)
}
