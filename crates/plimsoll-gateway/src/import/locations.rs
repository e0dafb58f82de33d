//! `location` blocks as routes, in nginx's order of precedence.
//!
//! nginx takes the exact location, then the longest prefix if it has `^~`, then the first regular expression in the file,
//! then the longest prefix. In plimsoll prefixes come before regular expressions. So where a server has both, or a
//! prefix that may end within a segment, its prefixes without `^~` become regular expressions, the longest first.

use super::Notes;
use super::nginx::Directive;
use super::proxy::proxy;
use super::toml::{Keys, quoted};
use super::upstreams::{Upstreams, duration};

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
        let of_level = |level: &&'a [Directive]| -> Vec<&'a Directive> {
            level.iter().filter(|it| it.name == name).collect()
        };
        let mut levels = self.0.iter().rev().map(of_level);
        levels.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The directive of that name in the innermost block alone.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.0.last()?.iter().rev().find(|it| it.name == name)
    }
}

/// Directives that are read here, at any level.
const READ: [&str; 35] = [
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
    "proxy_cache_bypass",
    "auth_basic",
    "auth_basic_user_file",
    "gzip",
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

/// How a route says what paths it is for.
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
    collect(server, &[], &mut locations, notes);
    let is_regex = |it: &Location<'_>| matches!(it.kind, Kind::Regex | Kind::RegexAnyCase);
    let is_within_segment =
        |it: &Location<'_>| it.kind == Kind::Prefix && !it.pattern.ends_with('/');
    let by_regex = locations
        .iter()
        .any(|it| is_regex(it) || is_within_segment(it));
    let mut routes = Vec::new();
    let mut write = |condition: &Condition<'_>, location: &Location<'_>, notes: &mut Notes| {
        let mut scope = scope.clone();
        for outer in &location.outer {
            scope = scope.within(&outer.block);
        }
        let scope = scope.within(&location.directive.block);
        let context = Context {
            server,
            location,
            scope: &scope,
        };
        routes.push(route(condition, &context, upstreams, notes));
    };
    for location in locations.iter().filter(|it| it.kind == Kind::Exact) {
        write(&Condition::Exact(location.pattern), location, notes);
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
        if !location.pattern.ends_with('/') {
            notes.add(
                location.directive,
                format!("`{}` covers whole segments here", location.pattern),
            );
        }
        write(&Condition::Prefix(location.pattern), location, notes);
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
        let condition = if by_regex {
            Condition::Regex(format!("(?-i:{}.*)", regex::escape(location.pattern)))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, notes);
    }
    if !prefixes.iter().any(|it| it.pattern == "/") {
        routes.push(server_route(server, scope, by_regex, upstreams, notes));
    }
    routes
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
    scope: &'a Scope<'a>,
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
    for directive in &context.location.directive.block {
        let is_access = match directive.name.as_str() {
            "deny" => is_denied(context.scope),
            "allow" => directive.argument(0) == "all",
            _ => false,
        };
        if !is_read(&directive.name) && !is_access {
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
    if let Some(directive) = scope.own("return") {
        returned(directive, keys, notes);
        return;
    }
    if let Some(directive) = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass")) {
        proxy(directive, condition, scope, keys, upstreams, notes);
        return;
    }
    if is_denied(scope) {
        keys.set("respond", "{ status = 403, body = \"forbidden\\n\" }");
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

/// Whether every client is denied, and none allowed.
fn is_denied(scope: &Scope<'_>) -> bool {
    let of = |name: &str| scope.own(name).map(|it| it.argument(0));
    of("deny") == Some("all") && of("allow").is_none()
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
    match server.last("return") {
        Some(directive) => returned(directive, &mut keys, notes),
        None if tried(&condition, server, scope, &mut keys, upstreams, notes) => {}
        None => files(&condition, scope, &mut keys, notes),
    }
    middleware(scope, &mut keys, notes);
    let mut text = String::new();
    keys.lines(&mut text);
    text
}

fn files(condition: &Condition<'_>, scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    if let Some(directive) = scope.own("alias") {
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

/// `return CODE [TEXT]`, `return CODE URL` or `return URL`.
fn returned(directive: &Directive, keys: &mut Keys, notes: &mut Notes) {
    let (status, text) = match directive.arguments.as_slice() {
        [only] if only.parse::<u16>().is_err() => (302, only.as_str()),
        [status] => (status.parse().unwrap_or(200), ""),
        [status, text, ..] => (status.parse().unwrap_or(200), text.as_str()),
        [] => (200, ""),
    };
    if [301, 302, 303, 307, 308].contains(&status) {
        if let Some(target) = redirect_target(text) {
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

/// A URL with the variables that redirects know.
fn redirect_target(text: &str) -> Option<String> {
    let target = text
        .replace("$request_uri", "{path}{query}")
        .replace("$scheme", "{scheme}")
        .replace("$http_host", "{host}")
        .replace("$host", "{host}")
        .replace("$server_name", "{host}")
        .replace("$is_args$args", "{query}")
        .replace("$uri", "{path}");
    (!target.contains('$')).then_some(target)
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
    let mut rules = Keys::default();
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
