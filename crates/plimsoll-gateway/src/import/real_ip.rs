//! `set_real_ip_from` and `real_ip_header`: whom the proxies in front name as the client.
//!
//! Those of `http` become keys of every listener. A server or location with its own shares its listener with others, so they are
//! not translated there.

use plimsoll_model::document::toml_string;
use plimsoll_server::config::network;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;

/// The proxies of all servers.
pub(super) struct RealIp {
    networks: String,
    /// In lower case; `proxy_protocol` if it is no field.
    header: String,
    /// Addresses of trusted proxies in the field are skipped.
    recursive: bool,
}

impl RealIp {
    pub(super) fn from_directives(outer: &[Directive], notes: &mut Notes) -> Option<Self> {
        let scope = Scope::new(outer);
        let given = scope.all("set_real_ip_from");
        for directive in &given {
            if network(directive.argument(0)).is_none() {
                notes.add(directive, "left out: it is not a network");
            }
        }
        let networks = networks(&given);
        let header = scope.last("real_ip_header").map(|it| it.argument(0));
        let header = header.unwrap_or("X-Real-IP").to_ascii_lowercase();
        let recursive = scope.last("real_ip_recursive");
        (!networks.is_empty()).then(|| Self {
            networks: format!("[{}]", networks.join(", ")),
            header,
            recursive: recursive.is_some_and(|it| it.argument(0) == "on"),
        })
    }

    /// The networks whose connections begin with a PROXY header.
    pub(super) fn proxied_by(&self) -> Option<&str> {
        (self.header == PROXY_PROTOCOL).then_some(self.networks.as_str())
    }

    /// The value of `trusted_proxies`.
    pub(super) fn trusted_proxies(&self) -> Option<String> {
        if self.header == PROXY_PROTOCOL {
            return None;
        }
        let mut keys = Keys::default();
        keys.set("networks", self.networks.clone());
        match (self.header.as_str(), self.recursive) {
            (FORWARDED_FOR, true) => return Some(self.networks.clone()),
            // A client within the networks must not name another one.
            (FORWARDED_FOR, false) => keys.set("recursive", "false"),
            // Other fields have one address.
            (header, _) => keys.text("header", header),
        }
        Some(keys.inline())
    }
}

/// Those of the directives that are networks, as values of TOML.
pub(super) fn networks(given: &[&Directive]) -> Vec<String> {
    let given = given.iter().map(|it| it.argument(0));
    given
        .filter(|it| network(it).is_some())
        .map(toml_string)
        .collect()
}

/// Whether the client at a place is not whom a listener knows as such.
pub(super) fn is_of_place(scope: &Scope<'_>) -> bool {
    named(scope).is_some_and(|here| Some(here) != named(&scope.outermost()))
}

/// Notes settings of client addresses of a location that its route does not have.
pub(super) fn report(scope: &Scope<'_>, route: &Keys, notes: &mut Notes) {
    if !is_of_place(scope) {
        return;
    }
    let given = scope.all("set_real_ip_from");
    for other in given.iter().filter(|it| network(it.argument(0)).is_none()) {
        notes.add(
            other,
            "left out: it is not a network; nginx would believe whom it names too",
        );
    }
    // Forwarded locations have `trust`, and closed ones need no address of the client.
    let is_closed = route
        .get("respond")
        .is_some_and(|it| it.starts_with("{ status = 403"));
    let is_told = is_closed || route.get("proxy").is_some();
    if let Some(first) = given.first().filter(|_| !is_told) {
        notes.add(
            first,
            "left out: the client is whom the listener knows; nginx would take another address from the field here",
        );
    }
}

/// Networks of proxies, and the field in which they name clients.
fn named<'a>(scope: &Scope<'a>) -> Option<(Vec<&'a str>, Option<&'a str>)> {
    let header = scope.last("real_ip_header").map(|it| it.argument(0));
    let networks = scope.all("set_real_ip_from").into_iter();
    let networks: Vec<_> = networks.map(|it| it.argument(0)).collect();
    let is_any = header != Some(PROXY_PROTOCOL) && !networks.is_empty();
    is_any.then_some((networks, header))
}

const PROXY_PROTOCOL: &str = "proxy_protocol";

const FORWARDED_FOR: &str = "x-forwarded-for";
