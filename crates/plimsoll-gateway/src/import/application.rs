//! What `fastcgi_pass` and `uwsgi_pass` have in common: servers, time limits and parameters.

use plimsoll_server::Moment;

use super::Notes;
use super::access;
use super::errors::has_successors;
use super::nginx::Directive;
use super::proxy::NO_CONTENT;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::{Upstreams, duration, is_server, size};

/// A location that leads to an application.
pub(super) struct Application<'a> {
    /// The beginning of its directives, and the name of the protocol and its table.
    pub(super) protocol: &'static str,
    /// `fastcgi_pass` or `uwsgi_pass`.
    pub(super) directive: &'a Directive,
    /// What it leads to.
    pub(super) target: &'a str,
    pub(super) server: &'a Directive,
    pub(super) scope: &'a Scope<'a>,
}

/// Parameters with the values that mean what the gateway sends by itself.
pub(super) type Usual = &'static [(&'static str, &'static [&'static str])];

/// Those that applications of either protocol have.
const USUAL: Usual = &[
    ("QUERY_STRING", &["$query_string", "$args"]),
    ("REQUEST_METHOD", &["$request_method"]),
    ("CONTENT_TYPE", &["$content_type"]),
    ("CONTENT_LENGTH", &["$content_length"]),
    ("REQUEST_URI", &["$request_uri"]),
    ("SERVER_PROTOCOL", &["$server_protocol"]),
    ("REQUEST_SCHEME", &["$scheme"]),
    ("HTTPS", &["$https"]),
    ("REMOTE_ADDR", &["$remote_addr"]),
    ("REMOTE_PORT", &["$remote_port"]),
    ("SERVER_ADDR", &["$server_addr"]),
    ("SERVER_PORT", &["$server_port"]),
    ("SERVER_NAME", &["$server_name", "$host"]),
    // No client sets it here.
    ("HTTP_PROXY", &[""]),
];

impl Application<'_> {
    /// Whether its servers are known; otherwise the route responds with 502.
    pub(super) fn is_known(
        &self,
        upstreams: &Upstreams,
        route: &mut Keys,
        notes: &mut Notes,
    ) -> bool {
        let target = self.target;
        let is_known = !target.contains('$') && (upstreams.has(target) || is_server(target));
        if !is_known {
            notes.add(
                self.directive,
                format!(
                    "responds with 502: `{target}` is not a server that is known before a request comes"
                ),
            );
            route.set("respond", "{ status = 502, body = \"not translated\\n\" }");
        }
        is_known
    }

    /// The table `parameters`: all but the usual ones.
    ///
    /// - `own`: usual ones of the protocol.
    /// - `is_read`: takes those that mean something else.
    pub(super) fn parameters(
        &self,
        own: Usual,
        notes: &mut Notes,
        mut is_read: impl FnMut(&Directive, &mut Notes) -> bool,
    ) -> Keys {
        let mut parameters = Keys::default();
        for given in self.scope.all(&self.name("param")) {
            let (name, value) = (given.argument(0), given.argument(1));
            // Applications ask for the name, as WordPress does before it has addresses without `index.php`.
            let value = value.strip_suffix("/$nginx_version").unwrap_or(value);
            let usual = own.iter().chain(USUAL).find(|(known, _)| *known == name);
            if is_read(given, notes) || usual.is_some_and(|(_, values)| values.contains(&value)) {
                continue;
            }
            if !name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
            {
                notes.add(
                    given,
                    format!("left out: `{name}` is no name of a parameter, which has letters, digits and `_`"),
                );
                continue;
            }
            match access::filled(value, self.scope, Moment::Request) {
                Some(text) => parameters.text(name, &text),
                None => notes.add(
                    given,
                    format!("left out: `{value}` has no counterpart, so `{name}` is not sent"),
                ),
            }
        }
        parameters
    }

    /// Makes it the action `proxy` of a route.
    ///
    /// - `table`: that of the protocol; left out if it is empty.
    pub(super) fn forward(
        &self,
        table: &Keys,
        route: &mut Keys,
        upstreams: &mut Upstreams,
        notes: &mut Notes,
    ) {
        let Self {
            protocol,
            directive,
            target,
            server,
            scope,
        } = *self;
        let withheld = scope.last(&self.name("pass_request_headers"));
        if let Some(withheld) = withheld.filter(|it| it.argument(0) == "off") {
            notes.add(
                withheld,
                "responds with 501: what the application is not to see cannot be withheld from it",
            );
            route.set("respond", "{ status = 501, body = \"not translated\\n\" }");
            return;
        }
        let mut keys = Keys::default();
        let mut connection = Keys::default();
        connection.text("protocol", protocol);
        let time = |what: &str| {
            let given = scope.last(&self.name(what));
            given.and_then(|it| duration(it.argument(0)))
        };
        if let Some(time) = time("connect_timeout") {
            connection.text("connect_timeout", &time);
        }
        if upstreams.has(target) {
            keys.text("to", target);
            upstreams.used(target, "http", &connection, directive, notes);
        } else {
            let is_socket = target.starts_with("unix:");
            let url = format!("http://{target}");
            keys.text("to", if is_socket { target } else { &url });
            keys.inherit(&connection);
        }
        if let Some(time) = time("read_timeout") {
            keys.text("response_timeout", &time);
            keys.text("idle_timeout", &time);
        }
        if !table.is_empty() {
            keys.set(protocol, table.inline());
        }
        if scope.is(&self.name("intercept_errors"), "on") && has_successors(server, scope) {
            keys.set("intercept_errors", "true");
        }
        let limit = scope.last("client_max_body_size");
        let limit = limit.map_or(Some("1MiB".to_owned()), |it| size(it.argument(0)));
        let withheld = scope.last(&self.name("pass_request_body"));
        let withheld = withheld.filter(|it| it.argument(0) == "off");
        if let Some(withheld) = withheld {
            notes.add(withheld, NO_CONTENT);
        }
        let limit = withheld.map(|_| "0B".to_owned()).or(limit);
        if let Some(limit) = limit {
            keys.text("max_request", &limit);
        }
        route.set("proxy", keys.inline());
    }

    /// The name of one of its directives.
    fn name(&self, what: &str) -> String {
        format!("{}_{what}", self.protocol)
    }
}
