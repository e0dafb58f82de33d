//! Middlewares: what requests pass before the service of a router.

use std::fmt::Write as _;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::{toml_key, toml_string};

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Passed, Response};
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::errors::ErrorPages;
use super::fields;
use super::model::{Model, Untranslated};
use super::paths::Changes;
use super::values::{duration, list, size};

/// Chains within chains.
const DEEPEST: usize = 10;

/// Middlewares of a router, with those of chains.
const MOST: usize = 200;

/// What the middlewares of a router come to.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) passed: Passed,
    /// Keys of `proxy`.
    pub(super) proxy: Keys,
    pub(super) paths: Changes,
    /// Keys of the upstream.
    pub(super) upstream: Keys,
    /// Redirects of requests for which a place has a value, with what is passed before.
    pub(super) redirects: Vec<(String, Response, Passed)>,
    /// What responds in place of the service.
    pub(super) response: Option<Response>,
    /// What takes the place of errors.
    pub(super) errors: Vec<ErrorPages>,
    /// Middlewares so far.
    count: usize,
}

/// Where middlewares are.
pub(super) struct Surroundings<'s> {
    pub(super) model: &'s Model,
    /// The listener has TLS.
    pub(super) is_tls: bool,
    pub(super) maps: &'s mut ValueMaps,
    pub(super) notes: &'s mut Notes,
}

impl Chain {
    /// Adds middlewares by their names, in the order in which requests pass them.
    ///
    /// - `router`: for notes.
    pub(super) fn add_all(
        &mut self,
        names: &[String],
        router: &Directive,
        depth: usize,
        around: &mut Surroundings<'_>,
    ) {
        for name in names {
            self.count += 1;
            if self.response.is_some() {
                return;
            }
            if self.count > MOST {
                let message = format!("responds with 501: it has more than {MOST} middlewares");
                around.notes.add(router, message);
                self.passed.is_closed = true;
                return;
            }
            let found = around.model.find("middlewares", name);
            let Some((own, node)) = found.filter(|_| depth < DEEPEST) else {
                let message =
                    format!("responds with 501: the middleware `{name}` is not in this file");
                around.notes.add(router, message);
                self.passed.is_closed = true;
                continue;
            };
            let mut kinds = node.entries().iter();
            let Some((kind, options)) = kinds.next() else {
                let message = format!("responds with 501: the middleware `{name}` is empty");
                around.notes.add(router, message);
                self.passed.is_closed = true;
                continue;
            };
            let place = around
                .model
                .place(options, &format!("middlewares.{own}.{kind}"));
            let kind = kind.to_ascii_lowercase();
            if kind == "chain" {
                let names = list(options.get("middlewares"));
                self.add_all(&names, &place, depth + 1, around);
            } else if let Err(reason) = self.add(&kind, options, &place, around) {
                around
                    .notes
                    .add(&place, format!("its routers respond with 501: {reason}"));
                self.passed.is_closed = true;
            }
        }
    }

    /// Fails if requests cannot be let through without it.
    fn add(
        &mut self,
        kind: &str,
        options: &Node,
        place: &Directive,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Untranslated> {
        match kind {
            "stripprefix" => {
                let prefixes = list(options.get("prefixes"));
                if let [only] = prefixes.as_slice() {
                    self.passed.request.set.text("X-Forwarded-Prefix", only);
                }
                done(self.paths.strip(&prefixes))
            }
            "stripprefixregex" => done(self.paths.strip_by(&list(options.get("regex")))),
            "addprefix" => done(
                self.paths
                    .add(options.text_at("prefix").unwrap_or_default()),
            ),
            "replacepath" => done(
                self.paths
                    .replace(options.text_at("path").unwrap_or_default()),
            ),
            "replacepathregex" => {
                let expression = options.text_at("regex").unwrap_or_default();
                let replacement = options.text_at("replacement").unwrap_or_default();
                done(self.paths.replace_by(expression, replacement))
            }
            "redirectscheme" => {
                self.redirect_scheme(options, around.is_tls);
                Ok(())
            }
            "redirectregex" => self.redirect_regex(options, around.maps),
            "headers" => fields::headers(options, place, self, around),
            "basicauth" => self.basic_auth(options, place, around),
            "forwardauth" => self.forward_auth(options, place, around),
            "ipallowlist" | "ipwhitelist" => self.addresses(options, place, around),
            "ratelimit" => {
                let limit = rate_limit(options)?;
                if options.get("redis").is_there() {
                    around
                        .notes
                        .add(place, "`redis` is left out: each process counts for itself");
                }
                if let Some(limit) = limit {
                    self.limit("rate_limit", &limit);
                }
                Ok(())
            }
            "inflightreq" => {
                let mut limit = Keys::default();
                let amount = options.number_at("amount").filter(|it| *it > 0);
                limit.set(
                    "requests",
                    amount.ok_or(Untranslated::Value("amount"))?.to_string(),
                );
                limit.set("status", "429");
                let key = criterion(options.get("sourceCriterion"), "{host}")?;
                limit.text("key", &key);
                self.limit("in_flight_limit", &limit);
                Ok(())
            }
            "compress" => {
                self.passed
                    .keys
                    .set("compress", compress(options, place, around.notes));
                Ok(())
            }
            "buffering" => {
                self.buffering(options, place, around.notes);
                Ok(())
            }
            "retry" => {
                let attempts = options.number_at("attempts").unwrap_or(1);
                let retries = (attempts - 1).clamp(0, 10);
                self.upstream
                    .set("retry", format!("{{ retries = {retries} }}"));
                Ok(())
            }
            // Servers say what their content is.
            "contenttype" => Ok(()),
            "errors" => {
                let name = place.name.split('.').nth(1).unwrap_or_default();
                match ErrorPages::read(name, options, place) {
                    Ok(pages) => self.errors.push(pages),
                    Err(reason) => around.notes.add(
                        place,
                        format!("left out: {reason}: see `on_status` and `intercept_errors`"),
                    ),
                }
                Ok(())
            }
            "circuitbreaker" | "grpcweb" => {
                let instead = match kind {
                    "circuitbreaker" => "left out: see `breaker` and `eject` of upstreams",
                    _ => "left out: there is no counterpart",
                };
                around.notes.add(place, instead);
                Ok(())
            }
            "passtlsclientcert" => {
                let names = [
                    "X-Forwarded-Tls-Client-Cert",
                    "X-Forwarded-Tls-Client-Cert-Info",
                ];
                self.passed.request.removed.extend(names.map(str::to_owned));
                around.notes.add(place, "left out: write `headers` with `{tls.client.pem}` into `proxy`; clients cannot send the fields");
                Ok(())
            }
            other => Err(Untranslated::Middleware(other.to_owned())),
        }
    }

    fn redirect_scheme(&mut self, options: &Node, is_tls: bool) {
        let scheme = options.text_at("scheme").unwrap_or("https");
        let port = options.text_at("port").unwrap_or_default();
        let is_same = (scheme == "https") == is_tls;
        if is_same || !matches!(scheme, "http" | "https") {
            return;
        }
        let usual = if scheme == "https" { "443" } else { "80" };
        let authority = match port {
            "" => "{host}".to_owned(),
            port if port == usual => "{host}".to_owned(),
            port => format!("{{host}}:{port}"),
        };
        let status = if options.is_true("permanent") {
            308
        } else {
            307
        };
        let to = toml_string(&format!("{scheme}://{authority}{{target}}"));
        let mut keys = Keys::default();
        keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
        self.response = Some(Response::Other(keys));
    }

    fn redirect_regex(&mut self, options: &Node, maps: &mut ValueMaps) -> Result<(), Untranslated> {
        let expression = options.text_at("regex").unwrap_or_default();
        let replacement = options.text_at("replacement").unwrap_or_default();
        let parsed = regex::Regex::new(expression);
        let parsed = parsed.map_err(|_| Untranslated::Expression(expression.to_owned()))?;
        // What is before and behind the match stays.
        let (before, shift) = if expression.starts_with('^') {
            ("", 0)
        } else {
            ("^(.*?)", 1)
        };
        let rest = parsed.captures_len() + shift;
        let whole = format!("{before}(?:{expression})(.*)$");
        let target = with_groups(replacement, &parsed, shift)?;
        let begin = if shift == 1 { "{1}" } else { "" };
        let value = format!("{begin}{target}{{{rest}}}");
        let place = maps.value("{scheme}://{authority}{target}", &whole, &value);
        let status = if options.is_true("permanent") {
            308
        } else {
            307
        };
        let mut keys = Keys::default();
        let to = toml_string(&format!("{{{place}}}"));
        keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
        self.redirects
            .push((place, Response::Other(keys), self.passed.clone()));
        Ok(())
    }

    fn basic_auth(
        &mut self,
        options: &Node,
        place: &Directive,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Untranslated> {
        let mut users = Vec::new();
        for user in list(options.get("users")) {
            match user.split_once(':') {
                Some((name, hash)) if hash.starts_with(['$', '{']) && !hash.starts_with("${") => {
                    users.push(format!("{} = {}", toml_key(name), toml_string(hash)));
                }
                _ => {
                    let name = user.split(':').next().unwrap_or_default();
                    let message = format!("`{name}` cannot sign in: it has no hash such as $2y$…");
                    around.notes.add(place, message);
                }
            }
        }
        let mut keys = Keys::default();
        if let Some(realm) = options.text_at("realm").filter(|it| !it.is_empty()) {
            keys.text("realm", realm);
        }
        let file = options.text_at("usersFile").filter(|it| !it.is_empty());
        if let Some(file) = file {
            keys.text("file", file);
        }
        if users.is_empty() && file.is_none() {
            return Err(Untranslated::Value("users"));
        }
        if !users.is_empty() {
            keys.set("users", format!("{{ {} }}", users.join(", ")));
        }
        if options.is_true("removeHeader") {
            self.passed.request.removed.push("Authorization".to_owned());
        }
        if let Some(name) = options.text_at("headerField").filter(|it| !it.is_empty()) {
            self.passed.request.set.text(name, "{user}");
        }
        self.guard("basic_auth", &keys.inline())
    }

    fn forward_auth(
        &mut self,
        options: &Node,
        place: &Directive,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Untranslated> {
        let address = options.text_at("address").unwrap_or_default();
        let mut auth = Keys::default();
        let url = url::Url::parse(address);
        if !url.is_ok_and(|it| matches!(it.scheme(), "http" | "https")) {
            return Err(Untranslated::Server(address.to_owned()));
        }
        auth.text("to", address);
        for (key, option) in options.entries() {
            match key.to_ascii_lowercase().as_str() {
                "address" => {}
                "trustforwardheader" if option.text() != Some("true") => {}
                "trustforwardheader" => around.notes.add(
                    place,
                    "`trustForwardHeader` is left out: see `trust` of `proxy` and `trusted_proxies` of listeners",
                ),
                "authresponseheaders" => {
                    let names = list(option);
                    let names: Vec<_> = names.iter().map(|it| toml_string(it)).collect();
                    auth.set("copy", format!("[{}]", names.join(", ")));
                }
                "authrequestheaders" => around.notes.add(
                    place,
                    "`authRequestHeaders` is left out: the service gets all fields of requests",
                ),
                _ if option.text() == Some("false") || !option.is_there() => {}
                _ => return Err(Untranslated::Option(key.clone())),
            }
        }
        let auth = auth.inline();
        match &self.passed.auth {
            Some(known) if *known != auth => Err(Untranslated::Second("auth")),
            _ => {
                self.passed.auth = Some(auth);
                Ok(())
            }
        }
    }

    fn addresses(
        &mut self,
        options: &Node,
        place: &Directive,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Untranslated> {
        let strategy = options.get("ipStrategy");
        if let Some((key, _)) = strategy.entries().first() {
            return Err(Untranslated::Option(format!("ipStrategy.{key}")));
        }
        let networks = list(options.get("sourceRange"));
        if networks.is_empty() {
            return Err(Untranslated::Value("sourceRange"));
        }
        for network in &networks {
            let is_network = network.parse::<ipnet::IpNet>().is_ok()
                || network.parse::<std::net::IpAddr>().is_ok();
            if !is_network {
                return Err(Untranslated::Network(network.clone()));
            }
        }
        if options.get("rejectStatusCode").is_there() {
            around
                .notes
                .add(place, "`rejectStatusCode` is left out: others get a 403");
        }
        let networks: Vec<_> = networks.iter().map(|it| toml_string(it)).collect();
        self.guard(
            "addresses",
            &format!("{{ allow = [{}] }}", networks.join(", ")),
        )
    }

    /// Sets a key that keeps clients out, of which a route has one.
    fn guard(&mut self, key: &'static str, value: &str) -> Result<(), Untranslated> {
        match self.passed.keys.get(key) {
            Some(known) if known != value => Err(Untranslated::Second(key)),
            _ => {
                self.passed.keys.set(key, value);
                Ok(())
            }
        }
    }

    /// Adds a limit beside those that are there.
    fn limit(&mut self, key: &str, limit: &Keys) {
        let limit = limit.inline();
        let value = match self.passed.keys.get(key) {
            None => limit,
            Some(known) => match known.strip_suffix(']') {
                Some(several) => format!("{several}, {limit}]"),
                None => format!("[{known}, {limit}]"),
            },
        };
        self.passed.keys.set(key, value);
    }

    fn buffering(&mut self, options: &Node, place: &Directive, notes: &mut Notes) {
        for (key, option) in options.entries() {
            let bytes = option.text().and_then(size);
            match key.to_ascii_lowercase().as_str() {
                "maxrequestbodybytes" => self.passed.max_request = bytes,
                "maxresponsebodybytes" => {
                    if let Some(bytes) = bytes {
                        self.proxy.set("max_response", bytes);
                    }
                }
                // Content is passed on as it comes.
                "memrequestbodybytes" | "memresponsebodybytes" => {}
                _ => notes.add(place, format!("`{key}` is left out")),
            }
        }
    }
}

fn done(is_done: bool) -> Result<(), Untranslated> {
    if is_done {
        Ok(())
    } else {
        Err(Untranslated::Paths)
    }
}

fn rate_limit(options: &Node) -> Result<Option<Keys>, Untranslated> {
    let average = options.number_at("average").unwrap_or(0);
    if average <= 0 {
        // Without an average there is no limit.
        return Ok(None);
    }
    let mut limit = Keys::default();
    limit.set("requests", average.to_string());
    let period = options.text_at("period").unwrap_or("1s");
    limit.set(
        "per",
        duration(period).ok_or(Untranslated::Value("period"))?,
    );
    let burst = options.number_at("burst").unwrap_or(1).max(1);
    limit.set("burst", burst.to_string());
    let key = criterion(options.get("sourceCriterion"), "address")?;
    if key != "address" {
        limit.text("key", &key);
    }
    Ok(Some(limit))
}

/// What limits distinguish clients by.
fn criterion(node: &Node, usual: &str) -> Result<String, Untranslated> {
    if let Some(name) = node
        .text_at("requestHeaderName")
        .filter(|it| !it.is_empty())
    {
        return Ok(format!("header:{name}"));
    }
    if node.is_true("requestHost") {
        return Ok("{host}".to_owned());
    }
    match node.get("ipStrategy").entries().first() {
        Some((key, _)) => Err(Untranslated::Option(format!("ipStrategy.{key}"))),
        None if node.get("ipStrategy").is_there() => Ok("address".to_owned()),
        None => Ok(usual.to_owned()),
    }
}

fn compress(options: &Node, place: &Directive, notes: &mut Notes) -> String {
    let mut keys = Keys::default();
    for (key, option) in options.entries() {
        let texts = || {
            let texts = list(option);
            let texts: Vec<_> = texts.iter().map(|it| toml_string(it)).collect();
            format!("[{}]", texts.join(", "))
        };
        match key.to_ascii_lowercase().as_str() {
            "includedcontenttypes" => keys.set("types", texts()),
            "encodings" => keys.set("codings", texts()),
            "minresponsebodybytes" => {
                if let Some(bytes) = option.text().and_then(size) {
                    keys.set("least", bytes);
                }
            }
            _ => notes.add(place, format!("`{key}` is left out")),
        }
    }
    if keys.is_empty() {
        "true".to_owned()
    } else {
        keys.inline()
    }
}

/// A replacement with `$1`, `${1}` and `${name}` as one with places.
///
/// - `shift`: so many groups stand before.
fn with_groups(
    text: &str,
    expression: &regex::Regex,
    shift: usize,
) -> Result<String, Untranslated> {
    let unclear = || Untranslated::Expression(text.to_owned());
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        if let Some(behind) = after.strip_prefix('$') {
            made.push('$');
            rest = behind;
            continue;
        }
        let (name, behind) = if let Some(inner) = after.strip_prefix('{') {
            inner.split_once('}').ok_or_else(unclear)?
        } else {
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let end = after.find(|it| !is_name(it)).unwrap_or(after.len());
            after.split_at(end)
        };
        let by_name = || expression.capture_names().position(|it| it == Some(name));
        let number = name.parse::<usize>().ok().or_else(by_name);
        let number = number.ok_or_else(unclear)?;
        if number == 0 {
            return Err(unclear());
        }
        // A group that is not there is nothing.
        if number < expression.captures_len() {
            write!(made, "{{{}}}", number + shift).ok();
        }
        rest = behind;
    }
    made.push_str(rest);
    Ok(made)
}
