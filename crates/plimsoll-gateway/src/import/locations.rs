//! `location` blocks as routes, in nginx's order of precedence.
//!
//! nginx takes the exact location, then the longest prefix if it has `^~`, then the first regular expression in the file,
//! then the longest prefix. In plimsoll prefixes come before regular expressions. So where a server has both, or a
//! prefix that may end within a segment, its prefixes without `^~` become regular expressions, the longest first.

use super::Notes;
use super::access;
use super::nginx::Directive;
use super::proxy::{prefix_expression, proxy};
use super::redirects::{is_redirecting, redirect_target, redirecting};
use super::toml::{Keys, quoted};
use super::upstreams::{Upstreams, duration};
use super::variants::{Variant, variants};

/// The directives of a location and of the blocks around it.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a>(Vec<&'a [Directive]>);

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &'a [Directive]) -> Self {
        Self(vec![outer])
    }

    pub(super) fn within(&self, block: &'a [Directive]) -> Self {
        let mut levels = self.0.clone();
        levels.push(block);
        Self(levels)
    }

    /// The directive of that name that holds: the last one of the innermost block that has one.
    pub(super) fn last(&self, name: &str) -> Option<&'a Directive> {
        let mut levels = self.0.iter().rev();
        levels.find_map(|level| level.iter().rev().find(|it| it.name == name))
    }

    /// All of that name in the innermost block that has any: outer ones are not inherited then.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// All with one of these names, in the same way.
    pub(super) fn all_of(&self, names: &[&str]) -> Vec<&'a Directive> {
        let of_level = |level: &&'a [Directive]| -> Vec<&'a Directive> {
            let found = level.iter().filter(|it| names.contains(&it.name.as_str()));
            found.collect()
        };
        let mut levels = self.0.iter().rev().map(of_level);
        levels.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The directives of the server.
    pub(super) fn server(&self) -> &'a [Directive] {
        self.0.get(1).copied().unwrap_or_default()
    }

    /// The directive of that name in the innermost block alone.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.0.last()?.iter().rev().find(|it| it.name == name)
    }
}

/// Directives that are read here, at any level.
const READ: [&str; 52] = [
    "expires",
    "location",
    "proxy_pass",
    "grpc_pass",
    "return",
    "rewrite",
    "try_files",
    "root",
    "alias",
    "index",
    "proxy_set_header",
    "grpc_set_header",
    "proxy_hide_header",
    "add_header",
    "client_max_body_size",
    "proxy_connect_timeout",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "grpc_read_timeout",
    "send_timeout",
    "keepalive_timeout",
    "proxy_next_upstream",
    "proxy_next_upstream_tries",
    "proxy_ssl_verify",
    "proxy_ssl_trusted_certificate",
    "proxy_http_version",
    "proxy_buffering",
    "proxy_request_buffering",
    "proxy_redirect",
    "proxy_pass_request_headers",
    "proxy_ssl_server_name",
    "proxy_ssl_name",
    "grpc_ssl_name",
    "proxy_cache_bypass",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "auth_request_set",
    "allow",
    "deny",
    "satisfy",
    "internal",
    "limit_except",
    "set",
    "if",
    "set_real_ip_from",
    "real_ip_header",
    "real_ip_recursive",
    "proxy_pass_header",
    "proxy_pass_request_body",
    "gzip",
    "reset_timedout_connection",
];

/// Beginnings of names that only tune what plimsoll decides by itself: buffers, caches of sessions, compression.
const TUNING: [&str; 8] = [
    "gzip_",
    "ssl_session_",
    "proxy_buffer",
    "proxy_busy_buffers",
    "proxy_temp_",
    "client_body_",
    "client_header_buffer",
    "large_client_header",
];

pub(super) fn is_read(name: &str) -> bool {
    READ.contains(&name) || TUNING.iter().any(|it| name.starts_with(it))
}

/// Key under which the rules of `proxy_redirect` wait for those of other fields; no route has it.
pub(super) const REWRITES: &str = "rewrites of fields";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    /// `^~`
    FirstPrefix,
    Prefix,
    Regex,
    /// `~*`
    RegexAnyCase,
}

struct Location<'a> {
    kind: Kind,
    pattern: &'a str,
    directive: &'a Directive,
    /// The locations around it, whose directives it inherits.
    outer: Vec<&'a Directive>,
}

/// Path condition of a route.
pub(super) enum Condition<'a> {
    Exact(&'a str),
    Prefix(&'a str),
    Regex(String),
}

/// The routes of a server, each without its host.
pub(super) fn routes(
    server: &Directive,
    scope: &Scope<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Vec<String> {
    let mut locations = Vec::new();
    // A `return` of the server comes before any location.
    if server.last("return").is_none() {
        collect(server, &[], &mut locations, notes);
    }
    let is_regex = |it: &Location<'_>| matches!(it.kind, Kind::Regex | Kind::RegexAnyCase);
    let is_within_segment =
        |it: &Location<'_>| it.kind == Kind::Prefix && !it.pattern.ends_with('/');
    // A `rewrite` that redirects is an expression, and comes before what else its location does.
    let has_redirects = is_redirecting(&server.block)
        || locations
            .iter()
            .any(|it| is_redirecting(&it.directive.block));
    let by_regex = has_redirects
        || locations
            .iter()
            .any(|it| is_regex(it) || is_within_segment(it));
    let has_regex = has_redirects || locations.iter().any(is_regex);
    // Nothing of an expression can come first below such a prefix.
    let stays_prefix = |location: &Location<'_>| {
        let mut others = locations.iter();
        location.pattern.ends_with('/')
            && location.pattern != "/"
            && !has_regex
            && !others.any(|it| is_within_segment(it) && it.pattern.starts_with(location.pattern))
    };
    let mut routes = slash_redirects(&locations);
    routes.extend(redirecting(&Condition::Prefix("/"), &server.block, notes));
    let mut write = |condition: &Condition<'_>, location: &Location<'_>, notes: &mut Notes| {
        let mut scope = scope.clone();
        for outer in &location.outer {
            scope = scope.within(&outer.block);
        }
        routes.extend(redirecting(condition, &location.directive.block, notes));
        for variant in variants(&server.block, &location.directive.block, notes) {
            let context = Context {
                server,
                location,
                scope: &scope.within(&variant.block),
                variant: &variant,
            };
            routes.push(route(condition, &context, upstreams, notes));
        }
    };
    for location in locations.iter().filter(|it| it.kind == Kind::Exact) {
        let condition = if has_redirects {
            Condition::Regex(exact_expression(location.pattern))
        } else {
            Condition::Exact(location.pattern)
        };
        write(&condition, location, notes);
    }
    for location in locations.iter().filter(|it| it.kind == Kind::FirstPrefix) {
        let is_shadowing = locations.iter().any(|it| {
            it.kind == Kind::Prefix
                && it.pattern != location.pattern
                && it.pattern.starts_with(location.pattern)
        });
        if is_shadowing && by_regex {
            notes.add(
                location.directive,
                format!(
                    "longer prefixes than `{}` come after it here",
                    location.pattern
                ),
            );
        }
        if !location.pattern.ends_with('/') && !has_redirects {
            notes.add(
                location.directive,
                format!("`{}` covers whole segments here", location.pattern),
            );
        }
        let condition = if has_redirects {
            Condition::Regex(prefix_expression(location.pattern))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, notes);
    }
    for location in locations.iter().filter(|it| is_regex(it)) {
        match whole_path(location) {
            Ok(regex) => write(&Condition::Regex(regex), location, notes),
            Err(reason) => notes.add(location.directive, format!("left out: {reason}")),
        }
    }
    let mut prefixes: Vec<_> = locations
        .iter()
        .filter(|it| it.kind == Kind::Prefix)
        .collect();
    prefixes.sort_by_key(|it| std::cmp::Reverse(it.pattern.len()));
    for location in &prefixes {
        let is_alias = location.directive.last("alias").is_some();
        if by_regex && is_alias && !stays_prefix(location) {
            notes.add(
                location.directive,
                "comes before regular expressions here: files of an `alias` are found below a prefix",
            );
        }
        let condition = if by_regex && !is_alias && !stays_prefix(location) {
            Condition::Regex(prefix_expression(location.pattern))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, notes);
    }
    if !prefixes.iter().any(|it| it.pattern == "/") {
        for variant in variants(&server.block, &[], notes) {
            let route = server_route(server, scope, &variant, by_regex, upstreams, notes);
            routes.push(route);
        }
    }
    routes
}

/// Redirects to the slash that the path of a forwarding location ends with.
fn slash_redirects(locations: &[Location<'_>]) -> Vec<String> {
    let forwards = |it: &&Location<'_>| {
        let names = ["proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass"];
        let is_prefix = matches!(it.kind, Kind::Prefix | Kind::FirstPrefix);
        is_prefix && names.iter().any(|name| it.directive.last(name).is_some())
    };
    let paths = locations.iter().filter(forwards).filter_map(|it| {
        let path = it.pattern.strip_suffix('/').filter(|it| !it.is_empty())?;
        let has_own = locations.iter().any(|other| {
            other.pattern == path && !matches!(other.kind, Kind::Regex | Kind::RegexAnyCase)
        });
        (!has_own).then_some(path)
    });
    let routes = paths.map(|path| {
        format!(
            "path = {}\nredirect = {{ to = \"{{path}}/{{query}}\", status = 301 }}\n",
            quoted(path)
        )
    });
    routes.collect()
}

/// The locations of a block and those within them.
fn collect<'a>(
    block: &'a Directive,
    outer: &[&'a Directive],
    locations: &mut Vec<Location<'a>>,
    notes: &mut Notes,
) {
    for directive in block.all("location") {
        let (kind, pattern) = match directive.arguments.as_slice() {
            [pattern] if pattern.starts_with('@') => continue,
            [pattern] => (Kind::Prefix, pattern),
            [modifier, pattern] => match modifier.as_str() {
                "=" => (Kind::Exact, pattern),
                "^~" => (Kind::FirstPrefix, pattern),
                "~" => (Kind::Regex, pattern),
                "~*" => (Kind::RegexAnyCase, pattern),
                _ => {
                    notes.add(
                        directive,
                        format!("left out: `{modifier}` is no modifier of a location"),
                    );
                    continue;
                }
            },
            _ => {
                notes.add(directive, "left out: it has no path");
                continue;
            }
        };
        if directive.all("location").next().is_some() {
            notes.add(directive, "locations within it stand beside it here");
            let mut within = outer.to_vec();
            within.push(directive);
            collect(directive, &within, locations, notes);
        }
        locations.push(Location {
            kind,
            pattern,
            directive,
            outer: outer.to_vec(),
        });
    }
}

/// The expression of a location, which may match anywhere, as one for the whole path.
fn whole_path(location: &Location<'_>) -> Result<String, String> {
    let text = location.pattern;
    let (before, text) = match text.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (".*", text),
    };
    let (text, after) = match text.strip_suffix('$').filter(|it| !it.ends_with('\\')) {
        Some(rest) => (rest, ""),
        None => (text, ".*"),
    };
    let case = if location.kind == Kind::RegexAnyCase {
        "i"
    } else {
        "-i"
    };
    let whole = format!("{before}(?{case}:{text}){after}");
    match regex::Regex::new(&whole) {
        Ok(_) => Ok(whole),
        Err(_) => Err(format!(
            "`{}` is not a regular expression here (no look-around, no back-references)",
            location.pattern
        )),
    }
}

struct Context<'a> {
    server: &'a Directive,
    location: &'a Location<'a>,
    /// Its innermost block is that of the variant.
    scope: &'a Scope<'a>,
    variant: &'a Variant,
}

/// One route without its host.
fn route(
    condition: &Condition<'_>,
    context: &Context<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> String {
    let mut keys = Keys::default();
    match condition {
        Condition::Exact(path) => keys.text("path", path),
        Condition::Prefix(prefix) => keys.text("prefix", prefix),
        Condition::Regex(regex) => keys.text("regex", regex),
    }
    keys.inherit(&context.variant.conditions);
    for directive in &context.location.directive.block {
        if !is_read(&directive.name) {
            notes.left_out(directive);
        }
    }
    action(condition, context, &mut keys, upstreams, notes);
    middleware(context.scope, &mut keys, notes);
    let mut text = String::new();
    keys.lines(&mut text);
    text
}

fn action(
    condition: &Condition<'_>,
    context: &Context<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let scope = context.scope;
    if context.variant.is_forbidden {
        access::forbid(keys);
        return;
    }
    if let Some(directive) = scope.own("return") {
        let groups = match condition {
            Condition::Regex(regex) => Some(regex.as_str()),
            Condition::Exact(_) | Condition::Prefix(_) => None,
        };
        returned(directive, groups, keys, notes);
        return;
    }
    if access::close(scope, keys, notes) {
        return;
    }
    if let Some(directive) = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass")) {
        proxy(directive, condition, scope, keys, upstreams, notes);
        return;
    }
    if tried(condition, context.server, scope, keys, upstreams, notes) {
        return;
    }
    let others = ["fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"];
    if let Some(directive) = others.iter().find_map(|name| scope.own(name)) {
        notes.add(directive, "responds with 501: only HTTP is forwarded to");
        keys.set("respond", "{ status = 501, body = \"not translated\\n\" }");
        return;
    }
    files(condition, scope, keys, notes);
}

/// Forwards by the named location that `try_files` ends with; false if there is none.
fn tried(
    condition: &Condition<'_>,
    server: &Directive,
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = scope.last("try_files") else {
        return false;
    };
    let target = directive.arguments.last().map_or("", String::as_str);
    let mut named = server.all("location");
    let Some(named) = named.find(|it| it.argument(0) == target) else {
        return false;
    };
    let scope = scope.within(&named.block);
    let Some(pass) = scope.own("proxy_pass") else {
        return false;
    };
    notes.add(
        directive,
        format!("every request goes to `{target}`: files before it are not looked for"),
    );
    proxy(pass, condition, &scope, keys, upstreams, notes);
    true
}

/// The route for requests without a location: the files of the server, or a 404.
fn server_route(
    server: &Directive,
    scope: &Scope<'_>,
    variant: &Variant,
    by_regex: bool,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> String {
    let mut keys = Keys::default();
    let condition = if by_regex {
        keys.text("regex", "/.*");
        Condition::Regex("/.*".to_owned())
    } else {
        keys.text("prefix", "/");
        Condition::Prefix("/")
    };
    keys.inherit(&variant.conditions);
    let scope = &scope.within(&variant.block);
    match scope.own("return").or_else(|| server.last("return")) {
        Some(directive) => returned(directive, None, &mut keys, notes),
        None if access::close(scope, &mut keys, notes) => {}
        None if tried(&condition, server, scope, &mut keys, upstreams, notes) => {}
        None => files(&condition, scope, &mut keys, notes),
    }
    middleware(scope, &mut keys, notes);
    let mut text = String::new();
    keys.lines(&mut text);
    text
}

fn files(condition: &Condition<'_>, scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    if let Some(directive) = access::requested(scope) {
        notes.add(
            directive,
            "responds with 403: a service authorizes requests that are forwarded, not files",
        );
        access::forbid(keys);
        return;
    }
    if let Some(directive) = scope.own("alias") {
        if directive.argument(0).contains('$') {
            notes.add(
                directive,
                "responds with 404: a folder cannot depend on the request",
            );
            keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
            return;
        }
        keys.set(
            "files",
            format!("{{ root = {} }}", quoted(directive.argument(0))),
        );
        return;
    }
    let Some(root) = scope.last("root") else {
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return;
    };
    let folder = root.argument(0).trim_end_matches('/');
    if folder.contains('$') {
        notes.add(
            root,
            "responds with 404: a folder cannot depend on the request",
        );
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return;
    }
    // The path below the prefix is what files are looked up by.
    let below = match condition {
        Condition::Prefix(prefix) => prefix.trim_end_matches('/'),
        Condition::Exact(_) | Condition::Regex(_) => "",
    };
    keys.set(
        "files",
        format!("{{ root = {} }}", quoted(&format!("{folder}{below}"))),
    );
}

/// A path as an expression.
fn exact_expression(path: &str) -> String {
    format!("(?-i:{})", regex::escape(path))
}

/// `return CODE [TEXT]`, `return CODE URL` or `return URL`.
///
/// - `groups`: the expression of the location, whose groups the URL may contain.
pub(super) fn returned(
    directive: &Directive,
    groups: Option<&str>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let (status, text) = match directive.arguments.as_slice() {
        [only] if only.parse::<u16>().is_err() => (302, only.as_str()),
        [status] => (status.parse().unwrap_or(200), ""),
        [status, text, ..] => (status.parse().unwrap_or(200), text.as_str()),
        [] => (200, ""),
    };
    if [301, 302, 303, 307, 308].contains(&status) {
        if let Some(target) = redirect_target(text, groups) {
            let target = quoted(&target);
            keys.set(
                "redirect",
                format!("{{ to = {target}, status = {status} }}"),
            );
        } else {
            notes.add(
                directive,
                format!("responds with 500: `{text}` has a variable without a counterpart"),
            );
            keys.set("respond", "{ status = 500 }");
        }
        return;
    }
    // 444 closes the connection; a client learns as little from a 400.
    let status = if (200..=599).contains(&status) && status != 444 {
        status
    } else {
        400
    };
    if text.contains('$') {
        notes.add(
            directive,
            "the text is sent as it stands, with its variables",
        );
    }
    keys.set(
        "respond",
        format!("{{ status = {status}, body = {} }}", quoted(text)),
    );
}

fn lifetime_of(scope: &Scope<'_>) -> Option<String> {
    lifetime(scope.last("expires")?.argument(0))
}

/// `expires` as a directive of `Cache-Control`.
fn lifetime(text: &str) -> Option<String> {
    match text {
        "off" => None,
        "epoch" => Some("no-cache".to_owned()),
        "max" => Some("max-age=315360000".to_owned()),
        text if text.starts_with('-') => Some("no-cache".to_owned()),
        text => {
            let time = duration(text)?;
            let seconds = plimsoll_model::parse_duration(&time).ok()?.as_secs();
            Some(format!("max-age={seconds}"))
        }
    }
}

/// Layers of the route.
fn middleware(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    let mut added = Keys::default();
    for directive in scope.all("add_header") {
        let (name, value) = (directive.argument(0), directive.argument(1));
        if value.contains('$') {
            notes.add(
                directive,
                format!("`{name}` is left out: `{value}` has a variable"),
            );
        } else {
            added.text(name, value);
        }
    }
    if let Some(value) = lifetime_of(scope) {
        // nginx sends both fields, which means the same as one.
        let value = match added.get("Cache-Control") {
            None => value,
            Some(known) => format!("{value}, {}", known.trim_matches('"')),
        };
        added.text("Cache-Control", &value);
    }
    let hidden = scope.all("proxy_hide_header");
    let hidden: Vec<_> = hidden.iter().map(|it| quoted(it.argument(0))).collect();
    // `proxy_redirect` has come before.
    let mut rules = Keys::default();
    if let Some(rewrite) = keys.get(REWRITES).map(str::to_owned) {
        keys.remove(REWRITES);
        rules.set("rewrite", rewrite);
    }
    if !hidden.is_empty() {
        rules.set("remove", format!("[{}]", hidden.join(", ")));
    }
    if !added.is_empty() {
        rules.set("set", added.inline());
    }
    // nginx adds fields to errors by `always` alone, and never by `expires`.
    let is_always = scope
        .all("add_header")
        .iter()
        .all(|it| it.argument(2) == "always");
    let stays_off_errors = !is_always || lifetime_of(scope).is_some();
    if !added.is_empty() && stays_off_errors {
        rules.set("errors", "false");
    }
    if !rules.is_empty() {
        keys.set("response_headers", rules.inline());
    }
    let realm = scope
        .last("auth_basic")
        .filter(|it| it.argument(0) != "off");
    if let (Some(realm), Some(file)) = (realm, scope.last("auth_basic_user_file")) {
        let mut auth = Keys::default();
        auth.text("realm", realm.argument(0));
        auth.text("file", file.argument(0));
        keys.set("basic_auth", auth.inline());
        notes.add(
            file,
            "passwords have to be hashed with bcrypt: `htpasswd -B`",
        );
    }
    if scope.last("gzip").is_some_and(|it| it.argument(0) == "on") {
        keys.set("compress", "true");
    }
}
