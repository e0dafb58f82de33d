//! What a location does, as the action of a route.

use super::super::Notes;
use super::super::access;
use super::super::errors::{TRIED, name_of, successors};
use super::super::fastcgi::{Fallback, fastcgi};
use super::super::files::files;
use super::super::nginx::Directive;
use super::super::patterns::as_path;
use super::super::proxy::proxy;
use super::super::real_ip;
use super::super::redirects::leading_all;
use super::super::responses::{middleware, returned};
use super::super::route::{Condition, Route};
use super::super::scope::Scope;
use super::super::selection;
use super::super::toml::Keys;
use super::super::upstreams::Upstreams;
use super::super::uwsgi::uwsgi;
use super::super::variants::Variant;
use super::Location;

/// A location, of which one variant becomes a route.
pub(super) struct Context<'a> {
    pub(super) server: &'a Directive,
    pub(super) location: &'a Location<'a>,
    /// Its innermost block is that of the variant.
    pub(super) scope: &'a Scope<'a>,
    pub(super) variant: &'a Variant,
    pub(super) reached_by: Reached,
}

/// From where a route is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// By clients.
    Clients,
    /// From other routes, by its path or, with a name, by that.
    Routes,
}

/// One route without its host.
pub(super) fn route(
    condition: &Condition<'_>,
    context: &Context<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Route {
    let mut keys = Keys::default();
    match condition {
        Condition::Exact(path) => keys.text("path", &as_path(path)),
        Condition::Prefix(prefix) => keys.text("prefix", &as_path(prefix)),
        Condition::Regex(regex) => keys.text("regex", regex),
    }
    keys.inherit(&context.variant.conditions);
    action(condition, context, &mut keys, upstreams, notes);
    real_ip::report(context.scope, &keys, notes);
    middleware(context.scope, &mut keys, notes);
    successors(context.server, context.scope, &mut keys, notes);
    let directive = context.location.directive;
    match context.reached_by {
        Reached::Clients => Route::new(&keys, directive),
        Reached::Routes if directive.argument(0).starts_with('@') => {
            Route::named(&name_of(directive), &keys, directive)
        }
        Reached::Routes => Route::internal(&keys, directive),
    }
}

/// The route for requests without a location: the files of the server, or a 404.
pub(super) fn server_route(
    server: &Directive,
    scope: &Scope<'_>,
    variant: &Variant,
    by_regex: bool,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Route {
    let mut keys = Keys::default();
    let condition = if by_regex {
        keys.text("regex", "/.*");
        Condition::Regex("/.*".to_owned())
    } else {
        keys.text("prefix", "/");
        Condition::Prefix("/")
    };
    keys.inherit(&variant.conditions);
    // Locations do not inherit it.
    let tried = server.last("try_files").cloned();
    let block: Vec<_> = variant.block.iter().cloned().chain(tried).collect();
    let scope = &scope.within(&block);
    match scope.own("return").or_else(|| server.last("return")) {
        Some(directive) => returned(directive, None, scope, &mut keys, notes),
        None if access::close(scope, &mut keys, upstreams, notes) => {}
        None if self::tried(&condition, server, scope, &mut keys, upstreams, notes) => {}
        None => files(&condition, scope, &mut keys, notes),
    }
    real_ip::report(scope, &keys, notes);
    middleware(scope, &mut keys, notes);
    successors(server, scope, &mut keys, notes);
    Route::new(&keys, server)
}

fn action(
    condition: &Condition<'_>,
    context: &Context<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let scope = context.scope;
    if scope.own("internal").is_some() && context.reached_by == Reached::Clients {
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return;
    }
    if context.variant.is_forbidden {
        access::forbid(keys);
        return;
    }
    if let Some(directive) = scope.own("return") {
        let groups = match condition {
            Condition::Regex(regex) => Some(regex.as_str()),
            Condition::Exact(_) | Condition::Prefix(_) => None,
        };
        returned(directive, groups, scope, keys, notes);
        return;
    }
    if access::close(scope, keys, upstreams, notes) {
        return;
    }
    if let Some(directive) = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass")) {
        if is_closed_behind(context.server, scope, notes) {
            access::forbid(keys);
            return;
        }
        proxy(
            directive,
            context.server,
            condition,
            scope,
            keys,
            upstreams,
            notes,
        );
        return;
    }
    if let Some(directive) = scope.own("fastcgi_pass") {
        if is_closed_behind(context.server, scope, notes) {
            access::forbid(keys);
            return;
        }
        fastcgi(
            directive,
            context.server,
            scope,
            None,
            keys,
            upstreams,
            notes,
        );
        return;
    }
    if let Some(directive) = scope.own("uwsgi_pass") {
        if is_closed_behind(context.server, scope, notes) {
            access::forbid(keys);
            return;
        }
        uwsgi(directive, context.server, scope, keys, upstreams, notes);
        return;
    }
    // Of other locations it is a route of its own.
    if context.location.directive.argument(0).starts_with('@')
        && let Some(rewrite) = leading_all(scope.innermost())
    {
        keys.set("rewrite", rewrite);
        return;
    }
    if tried(condition, context.server, scope, keys, upstreams, notes) {
        return;
    }
    let others = ["scgi_pass", "memcached_pass"];
    if let Some(directive) = others.iter().find_map(|name| scope.own(name)) {
        notes.add(
            directive,
            "responds with 501: the gateway does not speak this protocol",
        );
        keys.set("respond", "{ status = 501, body = \"not translated\\n\" }");
        return;
    }
    files(condition, scope, keys, notes);
}

/// Whether `try_files` keeps clients out of some paths that the location itself forwards: of which files there are a route
/// knows nothing.
fn is_closed_behind(server: &Directive, scope: &Scope<'_>, notes: &mut Notes) -> bool {
    let Some(directive) = scope.own("try_files") else {
        return false;
    };
    let last = directive.arguments.last().map_or("", String::as_str);
    let is_closed = if last.starts_with('=') {
        access::is_refusal(last)
    } else if last.starts_with('@') {
        named(server, last).is_some_and(|it| keeps_out(it, scope))
    } else {
        !selection::is_as_closed_as(scope, last)
    };
    if is_closed {
        notes.add(
            directive,
            format!("responds with 403: `{last}` keeps clients out of what is no file, and files are not looked for before a request is forwarded"),
        );
    }
    is_closed
}

/// Whether a named location keeps clients out, or may lead them to where they are kept out.
fn keeps_out(named: &Directive, scope: &Scope<'_>) -> bool {
    access::is_closing(named) || leads_to_closed(named, scope)
}

/// Whether a named location may lead clients past a location that keeps them out.
pub(super) fn leads_to_closed(named: &Directive, scope: &Scope<'_>) -> bool {
    // Who is kept out there is asked by the route of the other path.
    if leading_all(&named.block).is_some() {
        return false;
    }
    let leads_on = |it: &Directive| {
        let is_rewrite = it.name == "rewrite" && it.argument(2) != "break";
        is_rewrite || it.name == "try_files"
    };
    let may_lead_on = |it: &Directive| leads_on(it) || it.block.iter().any(leads_on);
    named.block.iter().any(may_lead_on) && !selection::is_as_closed_as(scope, "$uri")
}

/// The named location of a server.
pub(in crate::import) fn named<'a>(server: &'a Directive, name: &str) -> Option<&'a Directive> {
    let mut locations = server.all("location");
    locations.find(|it| it.argument(0) == name)
}

/// Files, and where there are none the named location that `try_files` ends with; false if there is no such location.
fn tried(
    condition: &Condition<'_>,
    server: &Directive,
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = scope.own("try_files") else {
        return false;
    };
    let target = directive.arguments.last().map_or("", String::as_str);
    if let Some(fallback) = Fallback::find(&server.block, directive) {
        files(condition, scope, keys, notes);
        keys.text(TRIED, &fallback.name());
        return true;
    }
    let Some(named) = named(server, target) else {
        return false;
    };
    // Where no file has the name of what is requested, such as `/dev/null`, none is looked up by it.
    let tried = || directive.arguments.iter().rev().skip(1);
    let looks_up = tried().any(|it| it.contains("uri"));
    if looks_up {
        files(condition, scope, keys, notes);
        if keys.get("files").is_some() {
            keys.text(TRIED, &name_of(named));
            return true;
        }
        keys.remove("respond");
    }
    // Its own rules come after those of the location, and a route has one of each.
    if keeps_out(named, scope) {
        notes.add(
            named,
            "requests that `try_files` leads here get a 403: it keeps clients out beside the rules of their location",
        );
        access::forbid(keys);
        return true;
    }
    if let Some(rewrite) = leading_all(&named.block) {
        keys.set("rewrite", rewrite);
        return true;
    }
    // Content has been measured where the request came in.
    let block = named.block.iter();
    let block = block.filter(|it| it.name != "client_max_body_size");
    let block: Vec<_> = block.cloned().collect();
    let scope = scope.within(&block);
    let Some(pass) = scope.own("proxy_pass") else {
        return false;
    };
    if tried().any(|it| it != "/dev/null") {
        notes.add(
            directive,
            format!("every request goes to `{target}`: files before it are not looked for"),
        );
    }
    proxy(pass, server, condition, &scope, keys, upstreams, notes);
    true
}

/// Whether something of the server or its locations leads to a named location.
pub(super) fn is_led_to(block: &[Directive], name: &str) -> bool {
    let leads = |it: &Directive| {
        let names = ["try_files", "error_page"];
        names.contains(&it.name.as_str()) && it.arguments.last().is_some_and(|it| it == name)
    };
    block
        .iter()
        .any(|it| leads(it) || is_led_to(&it.block, name))
}
