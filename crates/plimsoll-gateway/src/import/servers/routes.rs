//! The routes of servers: for which hosts and listeners each of them is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::listeners::Listener;
use super::{Server, is_host, is_plain_redirect};
use crate::import::client_certificates::ClientCertificates;
use crate::import::nginx::Directive;
use crate::import::route::Route;
use crate::import::scope::Scope;
use crate::import::toml::Keys;
use crate::import::upstreams::Upstreams;
use crate::import::variants::{host_of, hosts_except, is_guard, is_of_listener};
use crate::import::{Notes, access, locations, responses};

/// The routes so far, and what they are written by.
pub(super) struct Written<'a> {
    pub(super) listeners: &'a BTreeMap<String, Listener>,
    pub(super) servers: &'a [Server<'a>],
    /// Listeners that routes name.
    pub(super) named: Vec<String>,
    pub(super) routes: Vec<Route>,
}

impl Written<'_> {
    /// Writes routes for a host on these listeners alone, unless they are all that there are.
    fn push(&mut self, host: Option<&str>, on: &[String], routes: &[Route]) {
        let mut serving = self.listeners.iter().filter(|(_, it)| !it.is_redirect());
        let is_everywhere = serving.all(|(address, _)| on.contains(address));
        if on.is_empty() {
            return;
        }
        let mut conditions = String::new();
        if !is_everywhere {
            self.named.extend(on.iter().cloned());
            let on: Vec<_> = on.iter().map(|it| toml_string(it)).collect();
            writeln!(conditions, "listen = [{}]", on.join(", ")).ok();
        }
        if let Some(host) = host {
            writeln!(conditions, "host = {}", toml_string(host)).ok();
        }
        for route in routes {
            let mut route = route.clone();
            if route.name.is_none() {
                route.text.insert_str(0, &conditions);
            } else if self.routes.iter().any(|it| it.name == route.name) {
                // There is one for all hosts and listeners.
                continue;
            }
            self.routes.push(route);
        }
    }
}

pub(super) fn write_routes(
    server: &Server<'_>,
    outer: &[Directive],
    upstreams: &mut Upstreams,
    written: &mut Written<'_>,
    notes: &mut Notes,
) {
    for directive in server.directive.all("if").filter(|it| is_of_listener(it)) {
        if !is_translated(directive) && !is_guard(directive) {
            notes.left_out_of_nginx(directive);
        }
        for other in directive.block.iter().filter(|it| it.name != "return") {
            notes.left_out_of_nginx(other);
        }
    }
    let scope = Scope::new(outer).within(&server.directive.block);
    let mut routes = if is_closed(server, written.listeners, notes) {
        let mut keys = Keys::default();
        keys.text("prefix", "/");
        access::forbid(&mut keys);
        vec![Route::new(&keys, server.directive)]
    } else {
        locations::routes(server.directive, &scope, upstreams, notes)
    };
    let certified = if server.requires_by_routes(written.listeners) {
        "client_certificate = { status = 400 }\n"
    } else {
        ""
    };
    let returns = |returned: &Directive, notes: &mut Notes| {
        let mut keys = Keys::default();
        keys.text("prefix", "/");
        responses::returned(returned, None, &scope, &mut keys, notes);
        let mut route = Route::new(&keys, returned);
        route.text.push_str(certified);
        route
    };
    for route in &mut routes {
        route.text.push_str(certified);
    }
    let mut hosts: Vec<(Option<&str>, Option<&Directive>)> = Vec::new();
    for (host, returned) in &server.returning {
        hosts.push((Some(host), Some(returned)));
    }
    let is_returning = |name: &str| server.returning.iter().any(|(host, _)| *host == name);
    let names = server.names.iter().map(String::as_str);
    let names = names.filter(|it| !is_returning(it));
    let others = match &server.excepting {
        None => {
            hosts.extend(names.map(|it| (Some(it), None)));
            None
        }
        Some((admitted, returned)) => {
            hosts.extend(admitted.iter().map(|it| (Some(*it), None)));
            let rest = names.filter(|it| !admitted.contains(it));
            hosts.extend(rest.map(|it| (Some(it), Some(*returned))));
            Some(*returned)
        }
    };
    hosts.push((None, others));
    let mut redirect = Keys::default();
    redirect.text("prefix", "/");
    redirect.set(
        "redirect",
        "{ to = \"https://{host}{path}{query}\", status = 301 }",
    );
    let redirect = [Route::new(&redirect, server.directive)];
    let mut is_reached = false;
    for (host, returned) in hosts {
        let on = server.listeners_of(host, written.servers, written.listeners);
        if on.is_empty() {
            if let Some(host) = host {
                notes.add(
                    server.directive,
                    format!("`{host}` is left out: an earlier server has the name"),
                );
            }
            continue;
        }
        is_reached = true;
        let on = match host {
            None => close_others(server, on, written, notes),
            Some(_) => on,
        };
        let of_host = match returned {
            Some(returned) => &[returns(returned, notes)],
            None => routes.as_slice(),
        };
        let (redirecting, serving): (Vec<_>, Vec<_>) = on
            .into_iter()
            .partition(|it| server.redirecting.contains(it));
        written.push(host, &serving, of_host);
        // Where another server shares the listener, which so has no redirect of its own.
        let is_shared = |it: &String| {
            written
                .listeners
                .get(it)
                .is_some_and(|it| !it.is_redirect())
        };
        let shared: Vec<_> = redirecting.into_iter().filter(is_shared).collect();
        let on_plain = if server.is_https_redirect {
            of_host
        } else {
            &redirect
        };
        written.push(host, &shared, on_plain);
    }
    if !is_reached {
        notes.add(
            server.directive,
            "left out: no request is for it, since another server is the default of its listeners",
        );
    }
}

/// Closes the default of those listeners that have a server for names without a counterpart, which keeps somebody out: its
/// hosts would get what the default has. Returns the other listeners.
fn close_others(
    server: &Server<'_>,
    on: Vec<String>,
    written: &mut Written<'_>,
    notes: &mut Notes,
) -> Vec<String> {
    let servers = written.servers;
    let closing = |address: &String| {
        let listener = written.listeners.get(address)?;
        let mut others = listener
            .servers
            .iter()
            .filter_map(|(it, _)| servers.get(*it));
        others.find(|it| it.number != server.number && it.is_closing_others)
    };
    let (closed, open): (Vec<_>, Vec<_>) = on
        .into_iter()
        .partition(|it| !server.redirecting.contains(it) && closing(it).is_some());
    if let Some(other) = closed.first().and_then(closing) {
        let names = other
            .directive
            .last("server_name")
            .unwrap_or(other.directive);
        notes.add(
            names,
            "hosts that no server names get a 403, also those of the default server: this one keeps clients out, and some of its names cannot be translated",
        );
        let route = Route::closing("prefix = \"/\"", server.directive);
        written.push(None, &closed, &[route]);
    }
    open
}

/// Whether something keeps clients out of the whole server that cannot be translated.
fn is_closed(
    server: &Server<'_>,
    listeners: &BTreeMap<String, Listener>,
    notes: &mut Notes,
) -> bool {
    let mut conditions = server.directive.all("if").filter(|it| is_of_listener(it));
    let guard = conditions.find(|it| !is_translated(it) && is_guard(it));
    if let Some(guard) = guard {
        notes.add(
            guard,
            "the server responds with 403: its condition keeps clients out and cannot be translated",
        );
        return true;
    }
    let Some(wanted) = server.client_certificates.as_ref() else {
        return false;
    };
    let has_plain = server.serving_plain(listeners);
    let is_kept = server.listeners.iter().all(|address| {
        let listener = listeners.get(address).filter(|it| it.is_tls);
        listener.is_none_or(|it| {
            let asked = ClientCertificates::of_listener(&it.client_certificates);
            asked.is_some_and(|asked| {
                let is_required = asked.required || !wanted.required || !has_plain;
                asked.ca == wanted.ca && is_required
            })
        })
    });
    if is_kept {
        return false;
    }
    let reason = "servers of one listener want different certificates of clients, and it asks all of them for the same";
    let verify = server.directive.last("ssl_verify_client");
    let at = verify.unwrap_or(server.directive);
    if wanted.required {
        notes.add(at, format!("the server responds with 403: {reason}"));
    } else {
        notes.add(at, format!("left out: {reason}"));
    }
    wanted.required
}

impl Server<'_> {
    /// Whether it serves more than redirects without TLS too.
    fn serving_plain(&self, listeners: &BTreeMap<String, Listener>) -> bool {
        let mut serving = self.listeners.iter();
        serving.any(|it| {
            let is_plain = listeners.get(it).is_some_and(|it| !it.is_tls);
            is_plain && !self.redirecting.contains(it)
        })
    }

    /// Whether its routes require certificates, since its listeners ask for them and let clients without any in.
    fn requires_by_routes(&self, listeners: &BTreeMap<String, Listener>) -> bool {
        let is_required = self.client_certificates.as_ref();
        is_required.is_some_and(|it| it.required)
            && self.listeners.iter().any(|address| {
                let listener = listeners.get(address).filter(|it| it.is_tls);
                let asked = listener
                    .and_then(|it| ClientCertificates::of_listener(&it.client_certificates));
                asked.is_some_and(|it| !it.required)
            })
    }
}

/// Whether an `if` of the server chooses a host or leads to `https`, which has a counterpart.
fn is_translated(condition: &Directive) -> bool {
    let is_of_host = host_of(condition).is_some_and(is_host) || hosts_except(condition).is_some();
    condition.last("return").is_some() && (is_of_host || is_plain_redirect(condition))
}
