//! `set`, `if` and `limit_except` of a location: each condition that a route can have becomes a route of its own.
//!
//! nginx runs these directives in their order: the first `return` ends the request, and the last `set` of a variable
//! holds. Of routes the first one that matches counts, so those with a `return` come first, in their order, and those
//! with a `set` follow in reverse.

use plimsoll_model::document::{toml_key, toml_string};
use plimsoll_server::Moment;

use super::Notes;
use super::maps;
use super::nginx::Directive;
use super::redirects::is_redirecting;
use super::scope::Scope;
use super::toml::Keys;
use super::variables::with_places;

/// One of the routes that a location becomes.
#[derive(Debug)]
pub(super) struct Variant {
    /// Conditions of its requests besides the path.
    pub(super) conditions: Keys,
    /// The directives of the location, with the values of its variables.
    pub(super) block: Vec<Directive>,
    /// Every request gets a 403.
    pub(super) is_forbidden: bool,
}

/// What sets fields of responses.
const FIELD: &str = "add_header";

/// Variables with their values; later ones replace earlier ones.
type Variables = Vec<(String, String)>;

/// The routes of a location, in their order; at least one.
///
/// - `server`: the directives of the server, which come before those of the location.
/// - `own`: those of the location; empty for the route of the server itself.
/// - `scope`: the server, with the maps around it.
pub(super) fn variants(
    server: &[Directive],
    own: &[Directive],
    scope: &Scope<'_>,
    notes: &mut Notes,
) -> Vec<Variant> {
    let mut variables = Variables::new();
    let mut returning = Vec::new();
    let mut setting = Vec::new();
    let mut unguarded = 0;
    let mut ending = None;
    let mut is_closed = false;
    let levels = [(server, true), (own, false)];
    let levels = levels
        .into_iter()
        .flat_map(|(block, is_server)| block.iter().map(move |directive| (directive, is_server)));
    for (directive, is_server) in levels {
        match directive.name.as_str() {
            "set" => set(directive, &mut variables, notes),
            // Those of the server choose it, or its listener.
            "if" if is_server && is_of_listener(directive) => {}
            "if" => match condition(directive, scope)
                .filter(|_| !is_guard_of_argument(directive) && !is_guard_by_rewrite(directive))
            {
                Some(Conditions::All(conditions)) => {
                    let before = returning.len();
                    conditional(directive, conditions, &mut returning, &mut setting, notes);
                    // Those before a guard are reached without it.
                    if ending.is_none() {
                        unguarded += returning.len() - before;
                    }
                }
                // What it returns is for all but the requests of the routes before.
                Some(Conditions::AllBut(conditions)) if ending.is_none() && is_guard(directive) => {
                    let returned = directive.last("return").cloned();
                    ending = returned.map(|returned| (conditions, returned));
                }
                _ if is_guard(directive) => {
                    is_closed = true;
                    notes.add(
                        directive,
                        format!(
                            "responds with 403 to every request: `{}` keeps some out and is no condition of a route",
                            shown(directive)
                        ),
                    );
                }
                _ => notes.add(
                    directive,
                    format!(
                        "left out: `{}` is no condition of a route",
                        shown(directive)
                    ),
                ),
            },
            _ => {}
        }
    }
    let methods = own.iter().rev().find(|it| is_limit(it));
    if let Some(methods) = methods.filter(|_| ending.is_some()) {
        is_closed = true;
        notes.add(
            methods,
            "responds with 403 to every request: an `if` is on the method too",
        );
    }
    if is_closed {
        let mut forbidden = variant(Keys::default(), own, &[]);
        forbidden.is_forbidden = true;
        return vec![forbidden];
    }
    let mut base = Keys::default();
    let forbidden = methods.map(|methods| limited(methods, own, &mut base, notes));
    let mut variants = Vec::new();
    let ending = ending.map(|(conditions, returned)| {
        base.inherit(&conditions);
        let block = [own, std::slice::from_ref(&returned)].concat();
        variant(Keys::default(), &block, &variables)
    });
    for (number, (mut conditions, block)) in returning.into_iter().enumerate() {
        if number >= unguarded {
            keep_places(&mut conditions, &base);
            conditions.inherit(&base);
        }
        variants.push(variant(
            conditions,
            &returning_block(own, &block),
            &variables,
        ));
    }
    for (mut conditions, own_variables) in setting.into_iter().rev() {
        // Of two conditions on the method the one that keeps out counts.
        if let Some(method) = base.get("method") {
            conditions.set("method", method);
        }
        keep_places(&mut conditions, &base);
        conditions.inherit(&base);
        let variables = [variables.as_slice(), &own_variables].concat();
        variants.push(variant(conditions, own, &variables));
    }
    variants.push(variant(base, own, &variables));
    variants.extend(forbidden);
    variants.extend(ending);
    variants
}

/// Takes over the conditions on places beside those that are there; a place that has two is refused when the file is loaded,
/// which closes the route.
fn keep_places(conditions: &mut Keys, base: &Keys) {
    let members = |keys: &Keys| {
        let table = keys.get("places")?;
        let within = table.strip_prefix('{')?.strip_suffix('}')?;
        Some(within.trim().to_owned())
    };
    if let (Some(own), Some(outer)) = (members(conditions), members(base)) {
        conditions.set("places", format!("{{ {own}, {outer} }}"));
    }
}

/// A server whose locations have the values of those of its variables that are the same for every request, wherever they are.
pub(super) fn with_constants(server: &Directive) -> Directive {
    let mut constants = Variables::new();
    for directive in server.all("set") {
        let value = with_values(directive.argument(1), &constants);
        if !value.contains('$') && count_of(&server.block, directive.argument(0)) == 1 {
            constants.push((directive.argument(0).to_owned(), value));
        }
    }
    let is_location = |it: &Directive| it.name == "location";
    let directives = server.block.iter().map(|it| {
        if is_location(it) {
            replaced(it, &constants)
        } else {
            it.clone()
        }
    });
    Directive {
        block: directives.collect(),
        ..server.clone()
    }
}

/// How often a variable is set, at any level.
fn count_of(block: &[Directive], variable: &str) -> usize {
    let counts = block.iter().map(|it| {
        let is_it = it.name == "set" && it.argument(0) == variable;
        usize::from(is_it) + count_of(&it.block, variable)
    });
    counts.sum()
}

fn variant(conditions: Keys, block: &[Directive], variables: &[(String, String)]) -> Variant {
    Variant {
        conditions,
        block: block.iter().map(|it| replaced(it, variables)).collect(),
        is_forbidden: false,
    }
}

/// Whether an `if` concerns the host or the scheme, by which the listener or the server is chosen.
pub(super) fn is_of_listener(directive: &Directive) -> bool {
    matches!(
        words(directive).first(),
        Some(&("$host" | "$http_host" | "$scheme"))
    )
}

/// The host that an `if` is for.
pub(super) fn host_of(directive: &Directive) -> Option<&str> {
    match words(directive).as_slice() {
        ["$host" | "$http_host", "=", name] => Some(name),
        _ => None,
    }
}

/// Whether an `if` is for requests without TLS.
pub(super) fn is_for_plain(directive: &Directive) -> bool {
    matches!(
        words(directive).as_slice(),
        ["$scheme", "=", "http"] | ["$scheme", "!=", "https"]
    )
}

fn set(directive: &Directive, variables: &mut Variables, notes: &mut Notes) {
    let value = with_values(directive.argument(1), variables);
    if value.contains('$') {
        notes.add(
            directive,
            format!("left out: `{value}` depends on the request"),
        );
    } else {
        variables.push((directive.argument(0).to_owned(), value));
    }
}

/// The directives of a location where an `if` in it returns: fields of the block are there in place of its own.
fn returning_block(own: &[Directive], block: &[Directive]) -> Vec<Directive> {
    let has_fields = block.iter().any(|it| it.name == FIELD);
    let kept = own.iter().filter(|it| !has_fields || it.name != FIELD);
    let of_block = block
        .iter()
        .filter(|it| it.name == FIELD || it.name == "return");
    kept.chain(of_block).cloned().collect()
}

/// Takes the block of an `if` into the list that it belongs to.
fn conditional(
    directive: &Directive,
    conditions: Keys,
    returning: &mut Vec<(Keys, Vec<Directive>)>,
    setting: &mut Vec<(Keys, Variables)>,
    notes: &mut Notes,
) {
    let mut variables = Variables::new();
    for inner in directive.all("set") {
        set(inner, &mut variables, notes);
    }
    if directive.last("return").is_some() {
        returning.push((conditions, directive.block.clone()));
    } else if !variables.is_empty() {
        setting.push((conditions, variables));
    }
}

/// Whether it is a `limit_except` that keeps anything from other methods.
pub(super) fn is_limit(directive: &Directive) -> bool {
    directive.name == "limit_except" && !directive.block.is_empty()
}

/// `limit_except` as a condition of the route, and the route for other methods.
fn limited(
    directive: &Directive,
    own: &[Directive],
    base: &mut Keys,
    notes: &mut Notes,
) -> Variant {
    let is_closed = matches!(directive.block.as_slice(), [only] if only.name == "deny" && only.argument(0) == "all");
    if !is_closed {
        notes.add(
            directive,
            "other methods get a 403: only `deny all` is translated",
        );
    }
    let is_method = |it: &&String| !it.is_empty() && it.bytes().all(|it| it.is_ascii_uppercase());
    let methods = directive.arguments.iter().filter(is_method);
    let methods: Vec<_> = methods.map(|it| toml_string(it)).collect();
    if !methods.is_empty() {
        base.set("method", format!("[{}]", methods.join(", ")));
    }
    let mut forbidden = variant(Keys::default(), own, &[]);
    forbidden.is_forbidden = true;
    forbidden
}

/// Which requests an `if` is for.
enum Conditions {
    /// Those that meet all of these.
    All(Keys),
    /// Those that do not meet these.
    AllBut(Keys),
}

/// Whether an `if` ends requests that its condition keeps out of what follows, and does not only send them elsewhere.
///
/// A test of files is none, as it is the same for all clients. Neither is a redirect by what the request is for.
pub(super) fn is_guard(directive: &Directive) -> bool {
    /// What requests are for, and what clients can do; not who they are.
    const OF_REQUEST: [&str; 16] = [
        "$scheme",
        "$https",
        "$host",
        "$http_host",
        "$server_name",
        "$server_port",
        "$request_uri",
        "$uri",
        "$document_uri",
        "$args",
        "$query_string",
        "$is_args",
        "$request_method",
        "$http_user_agent",
        "$http_x_forwarded_proto",
        "$http_accept_language",
    ];
    let status = match directive.last("return") {
        Some(returned) => returned.argument(0).parse::<u16>().unwrap_or(302),
        None if is_redirecting(&directive.block) => 302,
        None => return false,
    };
    let words = words(directive);
    let subject = words.first().copied().unwrap_or_default();
    let is_of_files = matches!(subject.trim_start_matches('!'), "-f" | "-d" | "-e" | "-x");
    let is_redirect = (300..400).contains(&status);
    let is_of_request = OF_REQUEST.contains(&subject) || subject.starts_with("$arg_");
    let is_elsewhere = is_redirect && is_of_request;
    !is_of_files && !is_elsewhere
}

/// Whether an `if` keeps requests out by sending them elsewhere with a `rewrite`, which no route of its own does.
fn is_guard_by_rewrite(directive: &Directive) -> bool {
    directive.last("return").is_none() && is_guard(directive)
}

/// Whether an `if` keeps out requests with an argument: nginx ignores the case of its name, and routes compare it.
fn is_guard_of_argument(directive: &Directive) -> bool {
    let words = words(directive);
    let name = words.first().and_then(|it| it.strip_prefix("$arg_"));
    let has_case = name.is_some_and(|it| it.contains(|it: char| it.is_ascii_alphabetic()));
    // What is gone is gone for all.
    let is_refusal =
        |it: &Directive| it.argument(0).starts_with(['4', '5']) && it.argument(0) != "410";
    has_case && directive.last("return").is_some_and(is_refusal)
}

/// The hosts for which an `if` does not return, if it is for all others.
pub(super) fn hosts_except(directive: &Directive) -> Option<Vec<&str>> {
    let is_name = |it: &&str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        !it.is_empty() && it.bytes().all(is_part)
    };
    match words(directive).as_slice() {
        ["$host" | "$http_host", "!=", name] => {
            Some(vec![*name]).filter(|it| it.iter().all(is_name))
        }
        _ => None,
    }
}

/// The condition of an `if` as keys of a route.
fn condition(directive: &Directive, scope: &Scope<'_>) -> Option<Conditions> {
    let words = words(directive);
    let (words, is_inverted) = match words.as_slice() {
        [subject @ "$request_method", "!=", value] => (vec![*subject, "=", value], true),
        [subject @ "$request_method", "!~" | "!~*", value] => (vec![*subject, "~", value], true),
        [subject, "!=", value] if place_name(subject, scope).is_some() => {
            (vec![*subject, "=", value], true)
        }
        _ => (words, false),
    };
    let keys = keys_of(&words).or_else(|| place_keys(&words, scope))?;
    Some(if is_inverted {
        Conditions::AllBut(keys)
    } else {
        Conditions::All(keys)
    })
}

fn keys_of(words: &[&str]) -> Option<Keys> {
    let is_method = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_uppercase());
    let is_name = |it: &str| {
        let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
        !it.is_empty() && it.bytes().all(is_part)
    };
    let mut keys = Keys::default();
    let mut table = |key: &str, name: &str, value: String| {
        let mut inner = Keys::default();
        inner.set(&name.replace('_', "-"), value);
        keys.set(key, inner.inline());
    };
    match words {
        ["$request_method", "=", method] if is_method(method) => keys.text("method", method),
        ["$request_method", "~", pattern] => {
            let methods = pattern.strip_prefix("^(")?.strip_suffix(")$")?.split('|');
            let methods: Vec<_> = methods.map(|it| it.trim_start_matches("?:")).collect();
            if !methods.iter().all(|it| is_method(it)) {
                return None;
            }
            let methods: Vec<_> = methods.iter().map(|it| toml_string(it)).collect();
            keys.set("method", format!("[{}]", methods.join(", ")));
        }
        [name, "=", value] if !value.is_empty() => {
            if let Some(field) = name.strip_prefix("$http_").filter(|it| is_name(it)) {
                table("header", field, toml_string(value));
            } else {
                let name = name.strip_prefix("$arg_").filter(|it| is_name(it))?;
                keys.set(
                    "query",
                    format!("{{ {} = {} }}", toml_key(name), toml_string(value)),
                );
            }
        }
        [name] => {
            if let Some(field) = name.strip_prefix("$http_").filter(|it| is_name(it)) {
                table("header", field, "true".to_owned());
            } else {
                let name = name.strip_prefix("$arg_").filter(|it| is_name(it))?;
                keys.set("query", format!("{{ {} = true }}", toml_key(name)));
            }
        }
        _ => return None,
    }
    Some(keys)
}

/// The condition on a variable that is a place, such as one of a map.
fn place_keys(words: &[&str], scope: &Scope<'_>) -> Option<Keys> {
    let (name, values) = match words {
        [variable] => (place_name(variable, scope)?, true_values(variable, scope)?),
        [variable, "=", value] if !value.contains('$') => (
            place_name(variable, scope)?,
            format!("[{}]", toml_string(value)),
        ),
        _ => return None,
    };
    let mut inner = Keys::default();
    inner.set(&name, values);
    let mut keys = Keys::default();
    keys.set("places", inner.inline());
    Some(keys)
}

/// The name of the place that a variable is by itself.
fn place_name(variable: &str, scope: &Scope<'_>) -> Option<String> {
    // In places the path is not decoded, and the host keeps its case: a condition on them could let in what nginx keeps out.
    if !variable.starts_with('$') || matches!(variable, "$uri" | "$document_uri" | "$host") {
        return None;
    }
    if let Some(map) = maps::defining(variable, scope) {
        let text = maps::translated(map, scope, Moment::Request, 1).ok()?;
        if !is_read_alike(&text.keys) {
            return None;
        }
    }
    let place = with_places(variable, scope, Moment::Request, None)?;
    let name = place.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}'])).then(|| name.to_owned())
}

/// Whether nginx reads what a map looks up in the same way: not the decoded path, names of arguments whatever their case, and
/// the host in lower case; nor other maps, which may have these.
fn is_read_alike(map: &str) -> bool {
    let is_host_by_case = map.contains("{host}") && map.contains("\nregex = ");
    let others = ["{path", "{query:", "{map:"];
    !is_host_by_case && !others.iter().any(|it| map.contains(it))
}

/// The values for which `if` takes a variable to be true: all but the empty one and `0`.
fn true_values(variable: &str, scope: &Scope<'_>) -> Option<String> {
    let Some(map) = maps::defining(variable, scope) else {
        return Some("true".to_owned());
    };
    let text = maps::translated(map, scope, Moment::Request, 1).ok()?;
    let mut values = text.values?;
    values.retain(|it| !it.is_empty() && it != "0");
    values.sort();
    values.dedup();
    let values: Vec<_> = values.iter().map(|it| toml_string(it)).collect();
    (!values.is_empty()).then(|| format!("[{}]", values.join(", ")))
}

/// The words between the parentheses.
fn words(directive: &Directive) -> Vec<&str> {
    let count = directive.arguments.len();
    let words = directive.arguments.iter().enumerate().map(|(at, word)| {
        let word = if at == 0 {
            word.strip_prefix('(').unwrap_or(word)
        } else {
            word
        };
        if at + 1 == count {
            word.strip_suffix(')').unwrap_or(word)
        } else {
            word
        }
    });
    // The parentheses may stand by themselves.
    let all: Vec<_> = words.collect();
    let first = usize::from(all.first().is_some_and(|it| it.is_empty()));
    let last =
        all.len() - usize::from(all.len() > first && all.last().is_some_and(|it| it.is_empty()));
    all.get(first..last).unwrap_or_default().to_vec()
}

fn shown(directive: &Directive) -> String {
    words(directive).join(" ")
}

/// A directive with the values of variables in their place.
fn replaced(directive: &Directive, variables: &[(String, String)]) -> Directive {
    let arguments = directive.arguments.iter();
    Directive {
        arguments: arguments.map(|it| with_values(it, variables)).collect(),
        block: directive
            .block
            .iter()
            .map(|it| replaced(it, variables))
            .collect(),
        ..directive.clone()
    }
}

fn with_values(text: &str, variables: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in variables.iter().rev() {
        let Some(bare) = name.strip_prefix('$') else {
            continue;
        };
        text = text.replace(&format!("${{{bare}}}"), value);
        let mut replaced = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(name.as_str()) {
            replaced.push_str(before);
            let goes_on = after.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
            replaced.push_str(if goes_on { name } else { value });
            rest = after;
        }
        replaced.push_str(rest);
        text = replaced;
    }
    text
}
