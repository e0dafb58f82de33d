//! Access rules: `allow`, `deny`, `auth_request` and `internal`.
//!
//! A rule that cannot be translated denies access.

use ipnet::IpNet;
use plimsoll_model::document::toml_string;
use plimsoll_server::config::network;

use super::Notes;
use super::fates;
use super::nginx::Directive;
use super::proxy::{is_field, set_field};
use super::real_ip::is_of_place;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::variants::is_guard;

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

/// Closes a location that no client may use, or limits it to the addresses that may; false if it is open to some.
pub(super) fn close(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) -> bool {
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
    let clients = clients(scope);
    let rules = scope.all_of(&["allow", "deny"]);
    let (Some(last), false) = (rules.last(), matches!(clients, Clients::All)) else {
        return false;
    };
    let any = scope
        .last("satisfy")
        .is_some_and(|it| it.argument(0) == "any");
    if any && has_password {
        match clients {
            Clients::At(addresses) => {
                keys.set("addresses", addresses.inline());
                keys.text("satisfy", "any");
            }
            // The password alone lets clients in.
            Clients::All | Clients::None => {}
            Clients::Unknown(why) => {
                notes.add(last, format!("every client needs the password: {why}"));
            }
        }
        return false;
    }
    match clients {
        Clients::All => false,
        Clients::At(addresses) => {
            keys.set("addresses", addresses.inline());
            false
        }
        Clients::None => {
            forbid(keys);
            true
        }
        Clients::Unknown(why) => {
            notes.add(last, format!("responds with 403 to every client: {why}"));
            forbid(keys);
            true
        }
    }
}

/// Whether a location keeps out some or all of its requests.
pub(super) fn is_closing(location: &Directive) -> bool {
    location.block.iter().any(closes)
}

/// Whether a directive keeps out some or all requests for where it stands.
pub(super) fn closes(directive: &Directive) -> bool {
    const NAMES: [&str; 5] = [
        "deny",
        "internal",
        "auth_basic",
        "auth_request",
        "limit_except",
    ];
    let it = directive;
    let is_error = it.name == "return" && it.argument(0).starts_with(['4', '5']);
    let is_named = NAMES.contains(&it.name.as_str()) && it.argument(0) != "off";
    let is_withheld = it.name.starts_with("proxy_pass_request_") && it.argument(0) == "off";
    is_error
        || is_named
        || is_withheld
        || fates::is_withholding(it)
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

/// The key `auth` of a location with `auth_request`; false if it cannot be translated.
pub(super) fn authorized(
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = requested(scope) else {
        return true;
    };
    let path = directive.argument(0);
    let pass = location(scope, path).and_then(|it| it.last("proxy_pass"));
    let target = pass.and_then(|it| target(it.argument(0), path, upstreams));
    let Some(mut auth) = target else {
        notes.add(
            directive,
            format!("responds with 403: `{path}` does not forward to a server that is known before a request comes"),
        );
        return false;
    };
    let variables = copied(scope);
    let fields = variables.iter().filter(|(_, field)| field != "set-cookie");
    let fields: Vec<_> = fields.map(|(_, field)| toml_string(field)).collect();
    if !fields.is_empty() {
        auth.set("copy", format!("[{}]", fields.join(", ")));
    }
    let mut own = Keys::default();
    for field in location(scope, path)
        .into_iter()
        .flat_map(|it| it.all("proxy_set_header"))
    {
        // The subrequest has no content, and the host of the request.
        if is_field(field.argument(0), "") {
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
    notes.add(
        directive,
        "the service gets the fields of the request, `x-forwarded-method` and `x-forwarded-uri`, and the client its cookies",
    );
    keys.set("auth", auth.inline());
    true
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
    let copied = set.iter().filter_map(|it| {
        let field = it.argument(1).strip_prefix("$upstream_http_")?;
        Some((it.argument(0).to_owned(), field.replace('_', "-")))
    });
    copied.collect()
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
