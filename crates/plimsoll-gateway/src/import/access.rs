//! Access rules: `allow`, `deny`, `auth_request` and `internal`.
//!
//! A rule that cannot be translated denies access.

use ipnet::IpNet;
use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;
use plimsoll_server::config::network;

use super::Notes;
use super::fates;
use super::nginx::Directive;
use super::proxy::{is_field, set_field};
use super::real_ip::{is_of_place, networks};
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::variables::with_places;
use super::variants::{is_guard, is_limit};

/// Clients that the address rules of a location let in.
#[derive(Debug)]
enum Clients {
    All,
    None,
    /// Those of the key `addresses`.
    At(Keys),
    /// Those that a route cannot distinguish.
    Unknown(&'static str),
}

/// The outcome of an `auth_request` whose location decides without a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    /// Everybody may pass.
    Open,
    /// All requests are rejected with this status.
    Refused(u16),
}

/// Closes a location that no client may use, or limits it to the clients at addresses or with the consent of a service that may; false
/// if it is open to some.
pub(super) fn close(
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &Upstreams,
    notes: &mut Notes,
) -> bool {
    // The list of fates has noted it.
    if scope.find(fates::is_withholding).is_some() {
        forbid(keys);
        return true;
    }
    let has_password = scope
        .last("auth_basic")
        .is_some_and(|it| it.argument(0) != "off");
    let passwords = scope.last("auth_basic_user_file");
    if let Some(passwords) = passwords.filter(|it| has_password && depends_on_request(it)) {
        notes.add(
            passwords,
            "responds with 403: a file of passwords cannot depend on the request",
        );
        forbid(keys);
        return true;
    }
    if is_open(scope) {
        return false;
    }
    let decided = requested(scope).and_then(|it| decided(scope, it));
    let is_asked = requested(scope).is_some() && decided.is_none();
    let clients = clients(scope);
    let rules = scope.all_of(&["allow", "deny"]);
    let last = rules.last();
    if is_any(scope) && (has_password || is_asked) {
        match clients {
            Clients::At(addresses) => {
                keys.set("addresses", addresses.inline());
                keys.text("satisfy", "any");
            }
            // The password or the service alone lets clients in.
            Clients::All | Clients::None if has_password && is_asked => {
                keys.text("satisfy", "any");
            }
            Clients::All | Clients::None => {}
            Clients::Unknown(why) => {
                let needed = if has_password {
                    "the password"
                } else {
                    "the consent of the service"
                };
                if has_password && is_asked {
                    keys.text("satisfy", "any");
                }
                if let Some(last) = last {
                    notes.add(last, format!("every client needs {needed}: {why}"));
                }
            }
        }
    } else {
        match clients {
            Clients::All => {}
            Clients::At(addresses) => {
                keys.set("addresses", addresses.inline());
                // No client may pass without the service.
                if is_any(scope) {
                    return false;
                }
            }
            Clients::None => {
                forbid(keys);
                return true;
            }
            Clients::Unknown(why) => {
                if let Some(last) = last {
                    notes.add(last, format!("responds with 403 to every client: {why}"));
                }
                forbid(keys);
                return true;
            }
        }
        if let Some(Decided::Refused(status)) = decided {
            keys.set(
                "respond",
                format!("{{ status = {status}, body = \"not authorized\\n\" }}"),
            );
            return true;
        }
    }
    !authorized(scope, keys, upstreams, notes)
}

/// Whether one of several rules is enough.
fn is_any(scope: &Scope<'_>) -> bool {
    scope.is("satisfy", "any")
}

/// Whether everybody may pass since one rule that everybody satisfies is enough.
pub(super) fn is_open(scope: &Scope<'_>) -> bool {
    let are_all_let_in = || {
        let has_rules = !scope.all_of(&["allow", "deny"]).is_empty();
        has_rules && matches!(clients(scope), Clients::All)
    };
    let is_decided = || requested(scope).and_then(|it| decided(scope, it)) == Some(Decided::Open);
    is_any(scope) && (are_all_let_in() || is_decided())
}

/// What the location of `auth_request` responds with by `return`, which is decided without a service.
fn decided(scope: &Scope<'_>, directive: &Directive) -> Option<Decided> {
    let location = location(scope, directive.argument(0))?;
    if location.last("if").is_some() {
        return None;
    }
    let returned = location.last("return")?;
    // A URL is a redirect.
    let status = returned.argument(0).parse().unwrap_or(302);
    Some(match status {
        200..=299 => Decided::Open,
        401 | 403 => Decided::Refused(status),
        _ => Decided::Refused(500),
    })
}

/// Whether a location keeps out some or all of its requests.
pub(super) fn is_closing(location: &Directive) -> bool {
    location.block.iter().any(closes)
}

/// Whether a directive keeps out some or all requests for where it stands.
pub(super) fn closes(directive: &Directive) -> bool {
    const NAMES: [&str; 4] = ["deny", "internal", "auth_basic", "auth_request"];
    let it = directive;
    let is_error = it.name == "return" && it.argument(0).starts_with(['4', '5']);
    let is_named = NAMES.contains(&it.name.as_str()) && it.argument(0) != "off";
    let is_withheld = it.name == "proxy_pass_request_headers" && it.argument(0) == "off";
    is_error
        || is_named
        || is_withheld
        || fates::is_withholding(it)
        || is_limit(it)
        || (it.name == "if" && is_guard(it))
        || (it.name == "try_files" && is_refusal(it.arguments.last().map_or("", String::as_str)))
}

/// Whether what `try_files` ends with keeps clients out of what is no file. That there is no such file, as `=404` says, keeps
/// no client out.
pub(super) fn is_refusal(last: &str) -> bool {
    matches!(last, "=401" | "=403" | "=444")
}

/// Why a listener for connections is not open to those who may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAddresses {
    /// Nobody may.
    #[error("no client is let in")]
    Closed,
    /// They cannot be determined.
    #[error("{0}")]
    Unknown(&'static str),
}

/// The key `addresses` of a listener for connections; `None` if all clients are allowed.
pub(super) fn of_connections(scope: &Scope<'_>) -> Result<Option<Keys>, NoAddresses> {
    match clients(scope) {
        Clients::All => Ok(None),
        Clients::At(addresses) => Ok(Some(addresses)),
        Clients::None => Err(NoAddresses::Closed),
        Clients::Unknown(reason) => Err(NoAddresses::Unknown(reason)),
    }
}

/// Whether the name of a directive's file has variables.
pub(super) fn depends_on_request(directive: &Directive) -> bool {
    directive.argument(0).contains('$')
}

/// Responds with a 403 to every request.
pub(super) fn forbid(keys: &mut Keys) {
    keys.set("respond", "{ status = 403, body = \"forbidden\\n\" }");
}

/// nginx takes the first rule that matches, and lets clients in that no rule matches; of a route's networks the smallest decides.
///
/// Both come to the same once a rule within the network of an earlier one, which never decides, is left out.
fn clients(scope: &Scope<'_>) -> Clients {
    let mut networks: Vec<(IpNet, bool)> = Vec::new();
    let mut admits_others = true;
    for rule in scope.all_of(&["allow", "deny"]) {
        let admits = rule.name == "allow";
        let text = rule.argument(0);
        if text == "all" {
            admits_others = admits;
            break;
        }
        // Clients of sockets in the file system have no addresses, and their listeners no rules.
        if text == "unix:" {
            continue;
        }
        let Some(network) = network(text) else {
            return Clients::Unknown("the rule names no network");
        };
        let network = network.trunc();
        if !networks
            .iter()
            .any(|(earlier, _)| earlier.contains(&network))
        {
            networks.push((network, admits));
        }
    }
    let of = |is_allowed: bool| {
        let networks = networks.iter().filter(move |(_, it)| *it == is_allowed);
        networks.map(|(network, _)| toml_string(&network.to_string()))
    };
    let (mut allow, deny): (Vec<_>, Vec<_>) = (of(true).collect(), of(false).collect());
    match (admits_others, allow.is_empty(), deny.is_empty()) {
        (true, _, true) => return Clients::All,
        (false, true, _) => return Clients::None,
        // Networks that are let in keep all others out.
        (true, false, false) => allow.extend(["0.0.0.0/0", "::/0"].map(toml_string)),
        (true, true, false) | (false, false, _) => {}
    }
    if is_of_place(scope) {
        return Clients::Unknown(
            "`set_real_ip_from` is translated for all servers alike, not for one",
        );
    }
    let mut keys = Keys::default();
    for (key, networks) in [("allow", allow), ("deny", deny)] {
        if !networks.is_empty() {
            keys.set(key, format!("[{}]", networks.join(", ")));
        }
    }
    Clients::At(keys)
}

/// The key `auth` of a location with `auth_request`; false if it cannot be translated, and then the route is closed.
pub(super) fn authorized(
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = requested(scope) else {
        return true;
    };
    if decided(scope, directive).is_some() {
        return true;
    }
    let path = directive.argument(0);
    let service = location(scope, path).map(|it| forwarding(scope, it));
    let pass = service.and_then(|it| it.last("proxy_pass"));
    let target = pass.and_then(|it| target(it.argument(0), path, upstreams));
    let Some(mut auth) = target else {
        notes.add(
            directive,
            format!("responds with 403: `{path}` does not forward to a server that is known before a request comes"),
        );
        keys.remove("satisfy");
        forbid(keys);
        return false;
    };
    // nginx takes statuses of a service, and nothing else.
    auth.set("relay", "false");
    let variables = copied(scope);
    let fields = variables.iter().filter(|(_, field)| field != "set-cookie");
    let fields: Vec<_> = fields.map(|(_, field)| toml_string(field)).collect();
    if !fields.is_empty() {
        auth.set("copy", format!("[{}]", fields.join(", ")));
    }
    let mut own = Keys::default();
    let within = service.map(|it| scope.of_server().within(&it.block));
    for field in within.iter().flat_map(|it| it.all("proxy_set_header")) {
        let name = field.argument(0);
        // The subrequest has no content, the host of the request, and fields that name the client.
        let is_own = [
            "upgrade",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host",
        ]
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it));
        if is_field(name, "") && !is_own {
            set_field(field, scope, &mut own, notes);
        }
    }
    if !own.is_empty() {
        auth.set("headers", own.inline());
    }
    let added = scope.all("add_header");
    let is_returned = |variable: &str, field: &str| {
        let mut added = added.iter();
        added.any(|it| it.argument(1) == variable && it.argument(0).eq_ignore_ascii_case(field))
    };
    let returned = variables
        .iter()
        .filter(|(variable, field)| field != "set-cookie" && is_returned(variable, field));
    let returned: Vec<_> = returned.map(|(_, field)| toml_string(field)).collect();
    if !returned.is_empty() {
        auth.set("to_client", format!("[{}]", returned.join(", ")));
    }
    let proxies = scope.all("set_real_ip_from");
    let header = scope.last("real_ip_header").map(|it| it.argument(0));
    let is_read = header.is_some_and(|it| it.eq_ignore_ascii_case("x-forwarded-for"));
    let proxies = networks(&proxies);
    if is_read && !proxies.is_empty() {
        auth.set("trust", format!("[{}]", proxies.join(", ")));
    }
    notes.add(
        directive,
        "the service gets the fields of the request, `x-forwarded-method` and `x-forwarded-uri`, and the client its cookies",
    );
    keys.set("auth", auth.inline());
    true
}

/// The location that forwards for another one: the named one that `try_files` leads every request to, or itself.
fn forwarding<'a>(scope: &Scope<'a>, location: &'a Directive) -> &'a Directive {
    let Some((named, tried)) = location
        .last("try_files")
        .and_then(|it| it.arguments.split_last())
    else {
        return location;
    };
    // No file has such a name.
    let is_always = tried.iter().all(|it| it == "/dev/null");
    let mut others = scope.server().iter();
    let named = others.find(|it| it.name == "location" && it.argument(0) == named);
    match named.filter(|it| is_always && it.argument(0).starts_with('@')) {
        Some(named) if !is_closing(named) && location.last("proxy_pass").is_none() => named,
        _ => location,
    }
}

/// `auth_request`, unless it is turned off.
pub(super) fn requested<'a>(scope: &Scope<'a>) -> Option<&'a Directive> {
    scope
        .last("auth_request")
        .filter(|it| it.argument(0) != "off")
}

/// Variables of `auth_request_set` with the fields of the service's response that they stand for.
pub(super) fn copied(scope: &Scope<'_>) -> Vec<(String, String)> {
    let set = scope.all("auth_request_set");
    set.into_iter().filter_map(said_by).collect()
}

fn said_by(directive: &Directive) -> Option<(String, String)> {
    if directive.name != "auth_request_set" {
        return None;
    }
    let variable = directive.argument(0);
    let field = directive.argument(1).strip_prefix("$upstream_http_")?;
    let is_name = variable.len() > 1 && variable.starts_with('$');
    is_name.then(|| (variable.to_owned(), field.replace('_', "-")))
}

/// A text with places, also for what a service has said by `auth_request_set`.
pub(super) fn filled(value: &str, scope: &Scope<'_>, moment: Moment) -> Option<String> {
    // A name is not the beginning of a longer one.
    let mut variables = said(scope);
    variables.sort_by_key(|(variable, _)| std::cmp::Reverse(variable.len()));
    let mut text = value.to_owned();
    for (at, (variable, _)) in variables.iter().enumerate() {
        let name = variable.trim_start_matches('$');
        text = text.replace(&format!("${{{name}}}"), &mark(at));
        let mut rest = std::mem::take(&mut text);
        while let Some(found) = rest.find(variable.as_str()) {
            let behind = rest.split_off(found + variable.len());
            rest.truncate(found);
            text.push_str(&rest);
            let goes_on = behind.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
            text.push_str(if goes_on { variable } else { "" });
            if !goes_on {
                text.push_str(&mark(at));
            }
            rest = behind;
        }
        text.push_str(&rest);
    }
    let mut places = with_places(&text, scope, moment, None)?;
    for (at, (_, field)) in variables.iter().enumerate() {
        places = places.replace(&mark(at), &format!("{{auth:{field}}}"));
    }
    Some(places)
}

/// What stands for a variable while others are translated: no text of a configuration has it.
fn mark(at: usize) -> String {
    format!("\u{e000}{at}\u{e001}")
}

/// Variables with the fields that they stand for here: those that are set here, and those of the server that stand for one field
/// alone, which a request keeps when it is led to another location.
fn said(scope: &Scope<'_>) -> Vec<(String, String)> {
    fn collect(block: &[Directive], found: &mut Vec<(String, String)>) {
        for directive in block {
            found.extend(said_by(directive));
            collect(&directive.block, found);
        }
    }
    let own = copied(scope);
    let mut all = Vec::new();
    collect(scope.server(), &mut all);
    let others = all.iter().filter(|(variable, field)| {
        let is_own = own.iter().any(|(known, _)| known == variable);
        let is_one = all
            .iter()
            .all(|(known, other)| known != variable || other == field);
        !is_own && is_one
    });
    let mut others: Vec<_> = others.cloned().collect();
    others.sort();
    others.dedup();
    own.into_iter().chain(others).collect()
}

/// The location of a path that is named as it is.
fn location<'a>(scope: &Scope<'a>, path: &str) -> Option<&'a Directive> {
    let mut locations = scope.server().iter().filter(|it| it.name == "location");
    locations.find(|it| it.arguments.last().is_some_and(|it| it == path))
}

/// Target of subrequests for `path`.
fn target(url: &str, path: &str, upstreams: &Upstreams) -> Option<Keys> {
    if url.contains('$') {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = match rest.find('/') {
        Some(at) => (rest.get(..at)?, rest.get(at..)?),
        None => (rest, path),
    };
    let mut keys = Keys::default();
    if upstreams.has(authority) {
        keys.text("to", authority);
        keys.text("path", path);
    } else {
        keys.text("to", &format!("{scheme}://{authority}{path}"));
    }
    Some(keys)
}
