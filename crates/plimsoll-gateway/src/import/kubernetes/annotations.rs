//! Annotations of ingress-nginx as what requests pass, and as keys of proxies and upstreams.

use std::net::IpAddr;

use ipnet::IpNet;
use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;
use plimsoll_model::parse_byte_size;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::Passed;
use super::super::toml::Keys;

const OWN: &str = "nginx.ingress.kubernetes.io/";

/// The cookie of `affinity` unless another one is named.
const COOKIE: &str = "INGRESSCOOKIE";

/// Parts of the names of annotations, of any controller, that may keep clients out.
const GUARDS: [&str; 15] = [
    "acl",
    "allow",
    "auth",
    "block",
    "deny",
    "filter",
    "ip-range",
    "jwt",
    "limit",
    "middleware",
    "modsecurity",
    "plugin",
    "satisfy",
    "snippet",
    "waf",
];

/// What annotations say, for all rules of an Ingress.
#[derive(Debug)]
pub(super) struct Annotations {
    pub(super) passed: Passed,
    /// Keys of `proxy`.
    pub(super) proxy: Keys,
    /// Keys of upstreams.
    pub(super) upstream: Keys,
    /// Of servers that do not speak plain HTTP.
    pub(super) scheme: Option<&'static str>,
    /// What responds in place of servers.
    pub(super) redirect: Option<Keys>,
    /// What paths become.
    pub(super) rewrite: Option<String>,
    /// Paths are expressions.
    pub(super) uses_expressions: bool,
    pub(super) redirects: TlsRedirect,
    pub(super) is_canary: bool,
}

/// When requests without TLS are sent to the same URL with TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsRedirect {
    Never,
    /// If the host has TLS.
    WithTls,
    Always,
}

impl Annotations {
    pub(super) fn read(node: &Node, ingress: &Directive, notes: &mut Notes) -> Self {
        let mut made = Self {
            passed: Passed::default(),
            proxy: Keys::default(),
            upstream: Keys::default(),
            scheme: None,
            redirect: None,
            rewrite: None,
            uses_expressions: false,
            redirects: TlsRedirect::WithTls,
            is_canary: false,
        };
        let own = |name: &str| node.get(&format!("{OWN}{name}")).text();
        let mut reader = Reader {
            node,
            ingress,
            notes,
        };
        for (key, value) in node.entries() {
            let text = value.text().unwrap_or_default().trim();
            let place = Directive::place(&ingress.file, value.line, key);
            match key.strip_prefix(OWN) {
                Some(name) => made.add(name, text, &place, &mut reader),
                None => made.add_other(key, &place, reader.notes),
            }
        }
        let status = own("permanent-redirect-code").unwrap_or("301");
        if let Some(to) = own("permanent-redirect") {
            made.redirect = redirect(to, status);
        } else if let Some(to) = own("temporal-redirect") {
            made.redirect = redirect(to, own("temporal-redirect-code").unwrap_or("302"));
        }
        made
    }

    fn add(&mut self, name: &str, text: &str, place: &Directive, reader: &mut Reader<'_>) {
        let is_on = text == "true";
        match name {
            "ssl-redirect" if text == "false" && self.redirects == TlsRedirect::WithTls => {
                self.redirects = TlsRedirect::Never;
            }
            "force-ssl-redirect" if is_on => self.redirects = TlsRedirect::Always,
            "use-regex" => self.uses_expressions |= is_on,
            "rewrite-target" => {
                self.uses_expressions = true;
                self.rewrite = Some(text.to_owned());
            }
            "permanent-redirect" | "temporal-redirect" if text.contains('$') => {
                reader.close(self, place, "variables have no counterpart here");
            }
            "proxy-body-size" => match size(text) {
                Some(size) => self.passed.max_request = size,
                None => reader.leave(place),
            },
            "proxy-connect-timeout" => self.timeout("connect_timeout", text, place, reader),
            "proxy-read-timeout" => self.timeout("response_timeout", text, place, reader),
            "backend-protocol" => self.protocol(text, place, reader),
            "affinity" if text == "cookie" => {
                let name = reader.own("session-cookie-name").unwrap_or(COOKIE);
                self.upstream.text("sticky", name);
            }
            "whitelist-source-range" | "allowlist-source-range" => {
                self.addresses("allow", text, place, reader);
            }
            "denylist-source-range" => self.addresses("deny", text, place, reader),
            "auth-url" => {
                let is_plain = !text.contains('$')
                    && url::Url::parse(text)
                        .is_ok_and(|it| matches!(it.scheme(), "http" | "https"));
                if is_plain {
                    let mut auth = Keys::default();
                    auth.text("to", text);
                    if let Some(names) = reader.own("auth-response-headers") {
                        let names = names.split(',').map(str::trim).filter(|it| !it.is_empty());
                        let names: Vec<_> = names.map(toml_string).collect();
                        auth.set("copy", format!("[{}]", names.join(", ")));
                    }
                    self.passed.auth = Some(auth.inline());
                } else {
                    reader.close(self, place, "it is no URL without variables");
                }
            }
            "auth-response-headers" if reader.own("auth-url").is_some() => {}
            // Read with others, or the case without them.
            "permanent-redirect"
            | "permanent-redirect-code"
            | "temporal-redirect"
            | "temporal-redirect-code"
            | "session-cookie-name"
            | "ssl-redirect"
            | "force-ssl-redirect"
            | "proxy-ssl-verify"
            | "proxy-send-timeout"
            | "proxy-http-version"
            | "service-upstream" => {}
            "auth-signin" if reader.own("auth-url").is_some() => reader.notes.add(
                place,
                "left out: clients get the response of the service that authorizes them",
            ),
            "auth-type" => reader.close(
                self,
                place,
                "users are in a secret; write `basic_auth = { file = … }`",
            ),
            "auth-secret" | "auth-realm" | "auth-secret-type"
                if reader.own("auth-type").is_some() => {}
            "auth-tls-secret" => reader.close(
                self,
                place,
                "write `client_certificates` into `tls` of the listener",
            ),
            "canary" => self.is_canary |= is_on,
            _ if name.starts_with("canary-") => {}
            _ => self.add_other(&format!("{OWN}{name}"), place, reader.notes),
        }
    }

    /// An annotation without a counterpart.
    fn add_other(&mut self, key: &str, place: &Directive, notes: &mut Notes) {
        let (owner, name) = key.split_once('/').unwrap_or(("", key));
        let is_of_controller = owner.contains("ingress")
            || [
                "haproxy.org",
                "konghq.com",
                "traefik.io",
                "traefik",
                "getambassador.io",
            ]
            .iter()
            .any(|it| owner.contains(it));
        let text = name.to_ascii_lowercase();
        // Those of other sites are let in by browsers, not by servers.
        let is_guard = !text.starts_with("cors-") && GUARDS.iter().any(|it| text.contains(it));
        if is_of_controller && is_guard {
            notes.add(
                place,
                format!(
                    "`{name}` responds with 501: it may keep clients out, and has no counterpart"
                ),
            );
            self.passed.is_closed = true;
        } else if is_of_controller && name != "ingress.class" {
            notes.add(place, "left out: there is no counterpart");
        }
    }

    fn timeout(&mut self, key: &str, text: &str, place: &Directive, reader: &mut Reader<'_>) {
        let seconds = text.trim_end_matches('s').parse::<u32>();
        match seconds.ok().filter(|it| *it > 0) {
            Some(seconds) => self.upstream.text(key, &format!("{seconds}s")),
            None => reader.leave(place),
        }
    }

    fn protocol(&mut self, text: &str, place: &Directive, reader: &mut Reader<'_>) {
        match text.to_ascii_uppercase().as_str() {
            "HTTP" | "AUTO_HTTP" => {}
            "HTTPS" | "GRPCS" => {
                self.scheme = Some("https");
                // As ingress-nginx unless `proxy-ssl-verify` is on.
                if reader.own("proxy-ssl-verify") != Some("on") {
                    self.upstream.set("tls", "{ insecure = true }");
                }
            }
            "GRPC" => self.upstream.text("protocol", "http2"),
            _ => reader.close(self, place, "no server speaks that protocol here"),
        }
    }

    fn addresses(&mut self, key: &str, text: &str, place: &Directive, reader: &mut Reader<'_>) {
        let networks = text.split([',', ' ']).map(str::trim);
        let networks: Vec<&str> = networks.filter(|it| !it.is_empty()).collect();
        let is_network = |it: &&str| it.parse::<IpNet>().is_ok() || it.parse::<IpAddr>().is_ok();
        if networks.is_empty() || !networks.iter().all(is_network) {
            return reader.close(self, place, "it has something that is no network");
        }
        let networks: Vec<_> = networks.into_iter().map(toml_string).collect();
        let list = format!("{key} = [{}]", networks.join(", "));
        let list = match self.passed.keys.get("addresses") {
            None => format!("{{ {list} }}"),
            Some(_) => return reader.close(self, place, "a route has one list of networks"),
        };
        self.passed.keys.set("addresses", list);
    }
}

/// Where annotations are read from.
struct Reader<'r> {
    node: &'r Node,
    ingress: &'r Directive,
    notes: &'r mut Notes,
}

impl<'r> Reader<'r> {
    /// The text of another annotation of ingress-nginx.
    fn own(&self, name: &str) -> Option<&'r str> {
        self.node.get(&format!("{OWN}{name}")).text()
    }

    fn leave(&mut self, place: &Directive) {
        self.notes
            .add(place, "left out: its value has no counterpart");
    }

    fn close(&mut self, annotations: &mut Annotations, place: &Directive, reason: &str) {
        let message = format!("`{}` responds with 501: {reason}", self.ingress.name);
        self.notes.add(place, message);
        annotations.passed.is_closed = true;
    }
}

fn redirect(to: &str, status: &str) -> Option<Keys> {
    let status = status
        .parse::<u16>()
        .ok()
        .filter(|it| (300..400).contains(it));
    if to.contains('$') {
        return None;
    }
    let mut keys = Keys::default();
    let to = toml_string(to);
    let status = status.unwrap_or(302);
    keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
    Some(keys)
}

/// `8m` of nginx; the inner `None` is no limit.
#[expect(
    clippy::option_option,
    reason = "there are sizes, no limit, and what is neither"
)]
fn size(text: &str) -> Option<Option<String>> {
    let text = text.to_ascii_lowercase();
    let (digits, unit) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(digits) => (digits, text.get(digits.len()..)?),
        None => (text.as_str(), ""),
    };
    let number: u64 = digits.parse().ok()?;
    if number == 0 {
        return Some(None);
    }
    let unit = match unit {
        "k" => "KiB",
        "m" => "MiB",
        "g" => "GiB",
        _ => "B",
    };
    let size = format!("{number}{unit}");
    parse_byte_size(&size).ok()?;
    Some(Some(toml_string(&size)))
}
