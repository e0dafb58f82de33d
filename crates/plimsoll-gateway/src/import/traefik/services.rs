//! Services as upstreams and keys of `proxy`.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;
use url::Url;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::super::weights::split;
use super::model::{Model, Untranslated};
use super::values::{duration, list};

/// Services of services.
const DEEPEST: usize = 3;

/// The upstreams so far.
#[derive(Default)]
pub(super) struct Services {
    pub(super) upstreams: Vec<UpstreamText>,
    /// Names of upstreams by those of services, and what routers add to them.
    known: BTreeMap<(String, String), String>,
}

/// Servers with what their upstream has.
struct Pool {
    /// URLs with their weights.
    servers: Vec<(String, i64)>,
    upstream: Keys,
    /// Keys of `proxy`.
    proxy: Keys,
}

impl Pool {
    /// Whether something holds for the URLs of all servers.
    fn all(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.servers.iter().all(|(url, _)| holds(url))
    }
}

impl Services {
    /// The keys of `proxy` for a service.
    ///
    /// - `added`: what middlewares of the router add to the upstream.
    pub(super) fn proxy(
        &mut self,
        name: &str,
        added: &Keys,
        model: &Model,
        notes: &mut Notes,
    ) -> Result<Keys, Untranslated> {
        self.keys(name, added, model, notes, 0)
    }

    fn keys(
        &mut self,
        name: &str,
        added: &Keys,
        model: &Model,
        notes: &mut Notes,
        depth: usize,
    ) -> Result<Keys, Untranslated> {
        if name.ends_with("@internal") {
            return Err(Untranslated::Internal(name.to_owned()));
        }
        let found = model.find("services", name).filter(|_| depth < DEEPEST);
        let (own, node) = found.ok_or_else(|| Untranslated::NoService(name.to_owned()))?;
        let place = model.place(node, &format!("services.{own}"));
        let has = |kind: &str| node.get(kind).is_there();
        if has("weighted") {
            return self.weighted(own, node.get("weighted"), added, model, notes, depth);
        }
        if has("mirroring") {
            let mirroring = node.get("mirroring");
            let main = mirroring.text_at("service").unwrap_or_default();
            let mut proxy = self.keys(main, added, model, notes, depth + 1)?;
            let mirrors = mirroring.get("mirrors").items();
            if let Some(mirror) = mirrors.first() {
                let to = mirror.text_at("name").unwrap_or_default();
                let to = self.keys(to, &Keys::default(), model, notes, depth + 1)?;
                let to = to.get("to").unwrap_or_default();
                let share = mirror.number_at("percent").unwrap_or(0).clamp(0, 100);
                proxy.set("mirror", format!("{{ to = {to}, share = {share} }}"));
            }
            if mirrors.len() > 1 {
                notes.add(&place, "all but the first of its mirrors are left out");
            }
            return Ok(proxy);
        }
        let pool = if has("failover") {
            let failover = node.get("failover");
            let main = pool_of(
                failover.text_at("service").unwrap_or_default(),
                model,
                notes,
            );
            let other = pool_of(
                failover.text_at("fallback").unwrap_or_default(),
                model,
                notes,
            );
            let (Some(mut main), Some(other)) = (main, other) else {
                return Err(Untranslated::Nested(own.to_owned()));
            };
            let others = other.servers.into_iter().map(|(url, _)| (url, -1));
            main.servers.extend(others);
            main
        } else {
            pool(node.get("loadBalancer"), &place, model, notes)?
        };
        if pool.servers.is_empty() {
            return Err(Untranslated::NoServer(own.to_owned()));
        }
        Ok(self.made(own, &pool, added, &place))
    }

    /// The keys of `proxy` for servers, which are made an upstream if they need one.
    fn made(&mut self, name: &str, pool: &Pool, added: &Keys, place: &Directive) -> Keys {
        let mut proxy = Keys::default();
        let mut upstream = added.clone();
        upstream.inherit(&pool.upstream);
        match pool.servers.as_slice() {
            [(url, 1)] if upstream.is_empty() => proxy.text("to", url),
            servers => {
                let key = (name.to_owned(), upstream.inline());
                let known = self.known.get(&key).cloned();
                let name = known.unwrap_or_else(|| {
                    let same = self.known.keys().filter(|(known, _)| *known == key.0);
                    let name = match same.count() {
                        0 => key.0.clone(),
                        others => format!("{}-{}", key.0, others + 1),
                    };
                    self.known.insert(key, name.clone());
                    self.upstreams
                        .push(written(&name, servers, &upstream, place));
                    name
                });
                proxy.text("to", &name);
            }
        }
        proxy.inherit(&pool.proxy);
        proxy
    }

    fn weighted(
        &mut self,
        name: &str,
        weighted: &Node,
        added: &Keys,
        model: &Model,
        notes: &mut Notes,
        depth: usize,
    ) -> Result<Keys, Untranslated> {
        let place = model.place(weighted, &format!("services.{name}"));
        let mut parts = Vec::new();
        for service in weighted.get("services").items() {
            let weight = service.number_at("weight").unwrap_or(1);
            let name = service.text_at("name").unwrap_or_default();
            parts.push((self.keys(name, added, model, notes, depth + 1)?, weight));
        }
        let to_of = |it: &Keys| {
            let to = it.get("to").unwrap_or_default();
            serde_json::from_str::<String>(to).unwrap_or_default()
        };
        let weights = parts.iter().map(|(it, weight)| (to_of(it), *weight));
        let weights: Vec<_> = weights.collect();
        let split = split(&weights).ok_or_else(|| Untranslated::NoServer(name.to_owned()))?;
        let (mut proxy, _) = parts.swap_remove(split.most);
        if !split.is_exact {
            notes.add(&place, "weights are percentages without fractions");
        }
        let differs = |(part, _): &(Keys, i64)| {
            let mut pairs = part.pairs();
            pairs.any(|(key, value)| key != "to" && proxy.get(key) != Some(value))
        };
        if parts.iter().any(differs) {
            notes.add(
                &place,
                "options of its services that differ are those of the one with the most weight",
            );
        }
        if !split.others.is_empty() {
            proxy.set("split", split.others.inline());
        }
        if let Some(cookie) = sticky(weighted, name) {
            proxy.text("split_cookie", &cookie);
        }
        Ok(proxy)
    }
}

/// The name of the cookie of `sticky`.
fn sticky(node: &Node, service: &str) -> Option<String> {
    let sticky = node.get("sticky");
    let cookie = sticky.get("cookie");
    if !cookie.is_there() && !sticky.is_true("cookie") {
        return None;
    }
    let name = cookie.text_at("name").filter(|it| !it.is_empty());
    Some(name.map_or_else(|| format!("lb-{service}"), str::to_owned))
}

fn pool_of(name: &str, model: &Model, notes: &mut Notes) -> Option<Pool> {
    let (own, node) = model.find("services", name)?;
    let place = model.place(node, &format!("services.{own}"));
    pool(node.get("loadBalancer"), &place, model, notes).ok()
}

/// The servers of a load balancer and its options.
fn pool(
    balancer: &Node,
    place: &Directive,
    model: &Model,
    notes: &mut Notes,
) -> Result<Pool, Untranslated> {
    let mut pool = Pool {
        servers: Vec::new(),
        upstream: Keys::default(),
        proxy: Keys::default(),
    };
    let mut has_clear_http2 = false;
    for server in balancer.get("servers").items() {
        let text = server.text_at("url").unwrap_or_default();
        let (url, is_clear_http2) = server_url(text)?;
        if server.is_true("preservePath") {
            let path = Url::parse(text).map(|it| it.path().to_owned());
            if let Some(path) = path.ok().filter(|it| it != "/") {
                pool.proxy.text("path", &path);
            }
        }
        has_clear_http2 |= is_clear_http2;
        let weight = server.number_at("weight").unwrap_or(1).max(0);
        match pool.servers.iter_mut().find(|(known, _)| *known == url) {
            Some((_, known)) => *known += weight,
            None => pool.servers.push((url, weight)),
        }
    }
    if has_clear_http2 {
        pool.upstream.text("protocol", "http2");
    }
    for (key, option) in balancer.entries() {
        match key.to_ascii_lowercase().as_str() {
            "passhostheader" if option.text() == Some("false") => {
                pool.proxy.text("host", "server");
            }
            "servers" | "responseforwarding" | "server" | "passhostheader" => {}
            "sticky" => {
                let service = place.name.strip_prefix("services.").unwrap_or_default();
                if let Some(cookie) = sticky(balancer, service) {
                    pool.upstream.text("sticky", &cookie);
                }
                for key in ["maxAge", "domain", "path", "sameSite"] {
                    if option.get("cookie").get(key).is_there() {
                        notes.add(place, format!("`sticky.cookie.{key}` is left out"));
                    }
                }
            }
            "healthcheck" => health(option, &mut pool, place, notes),
            "serverstransport" => transport(option, &mut pool.upstream, place, model, notes),
            "strategy" => match option.text().unwrap_or_default() {
                "wrr" => {}
                "p2c" => pool.upstream.text("balance", "p2c"),
                "leasttime" => pool.upstream.text("balance", "peak_ewma"),
                "hrw" => {
                    pool.upstream.text("balance", "ring_hash");
                    pool.upstream.text("by", "source");
                }
                other => notes.add(place, format!("`strategy: {other}` is left out")),
            },
            _ => notes.add(place, format!("`{key}` is left out")),
        }
    }
    Ok(pool)
}

/// The URL of a server without its path, and whether it is by HTTP/2 without TLS.
fn server_url(text: &str) -> Result<(String, bool), Untranslated> {
    let wrong = || Untranslated::Server(text.to_owned());
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (scheme, is_clear_http2) = match scheme {
        "http" => ("http", false),
        "https" => ("https", false),
        "h2c" => ("http", true),
        _ => return Err(wrong()),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains(['{', '$', '@', ' ', '"']) {
        return Err(wrong());
    }
    let url = format!("{scheme}://{authority}");
    Url::parse(&url).map_err(|_| wrong())?;
    Ok((url, is_clear_http2))
}

fn health(node: &Node, pool: &mut Pool, place: &Directive, notes: &mut Notes) {
    let mut health = Keys::default();
    for (key, option) in node.entries() {
        let text = option.text().unwrap_or_default();
        match key.to_ascii_lowercase().as_str() {
            "path" => health.text("path", text),
            "mode" if text == "grpc" => health.text("kind", "grpc"),
            "mode" if text == "http" => {}
            "interval" | "timeout" => match duration(text) {
                Some(time) => health.set(&key.to_ascii_lowercase(), time),
                None => notes.add(place, format!("`healthCheck.{key}` is left out")),
            },
            "status" if text.parse::<u16>().is_ok_and(|it| it > 0) => health.set("status", text),
            // Those of requests.
            "port" if pool.all(|url| url.ends_with(&format!(":{text}"))) => {}
            "scheme" if pool.all(|url| url.starts_with(&format!("{text}://"))) => {}
            "method" if text == "GET" => {}
            "method" => health.text("method", &text.to_ascii_uppercase()),
            "hostname" => health.text("host", text),
            "headers" => {
                let mut headers = Keys::default();
                for (name, value) in option.entries() {
                    headers.text(name, value.text().unwrap_or_default());
                }
                if !headers.is_empty() {
                    health.set("headers", headers.inline());
                }
            }
            "followredirects" | "status" | "unhealthyinterval" => {}
            _ => notes.add(place, format!("`healthCheck.{key}` is left out")),
        }
    }
    if health.get("kind").is_some() {
        for key in ["path", "method", "host", "headers", "status"] {
            health.remove(key);
        }
    }
    if !health.is_empty() {
        pool.upstream.set("health", health.inline());
    }
}

fn transport(
    option: &Node,
    upstream: &mut Keys,
    place: &Directive,
    model: &Model,
    notes: &mut Notes,
) {
    let name = option.text().unwrap_or_default();
    let Some((own, node)) = model.find("serversTransports", name) else {
        notes.add(
            place,
            format!("`serversTransport` is left out: `{name}` is not in this file"),
        );
        return;
    };
    let place = model.place(node, &format!("serversTransports.{own}"));
    let mut tls = Keys::default();
    for (key, option) in node.entries() {
        match key.to_ascii_lowercase().as_str() {
            "insecureskipverify" if option.text() == Some("true") => tls.set("insecure", "true"),
            "servername" => tls.text("server_name", option.text().unwrap_or_default()),
            "rootcas" => match list(option).as_slice() {
                [only] => tls.text("ca", only),
                _ => notes.add(&place, "`rootCAs` is left out: `ca` is one file"),
            },
            "certificates" => match option.items() {
                [only] => {
                    tls.text("cert", only.text_at("certFile").unwrap_or_default());
                    tls.text("key", only.text_at("keyFile").unwrap_or_default());
                }
                _ => notes.add(&place, "`certificates` is left out: there is one of them"),
            },
            "disablehttp2" if option.text() == Some("true") => upstream.text("protocol", "http1"),
            "maxidleconnsperhost" => {
                if let Some(kept) = option.text().and_then(|it| it.parse::<u32>().ok()) {
                    upstream.set("keep", kept.min(65_536).to_string());
                }
            }
            "forwardingtimeouts" => {
                for (key, option) in option.entries() {
                    let ours = match key.to_ascii_lowercase().as_str() {
                        "dialtimeout" => "connect_timeout",
                        "responseheadertimeout" => "response_timeout",
                        "idleconntimeout" => "keep_for",
                        _ => {
                            notes.add(&place, format!("`{key}` is left out"));
                            continue;
                        }
                    };
                    // Zero is no limit, which there is none of here.
                    let text = option.text().filter(|it| !it.starts_with('0'));
                    match text.and_then(duration) {
                        Some(time) => upstream.set(ours, time),
                        None => notes.add(&place, format!("`{key}` is left out")),
                    }
                }
            }
            "disablehttp2" | "insecureskipverify" => {}
            _ => notes.add(&place, format!("`{key}` is left out")),
        }
    }
    if tls.get("insecure").is_some() {
        tls.remove("ca");
    }
    if !tls.is_empty() {
        upstream.set("tls", tls.inline());
    }
}

/// An upstream; servers with a negative weight stand in for the others.
fn written(
    name: &str,
    servers: &[(String, i64)],
    upstream: &Keys,
    place: &Directive,
) -> UpstreamText {
    let servers = servers.iter().map(|(url, weight)| {
        let url = toml_string(url);
        match weight {
            1 => url,
            ..=-1 => format!("{{ url = {url}, backup = true }}"),
            weight => format!("{{ url = {url}, weight = {} }}", (*weight).min(1000)),
        }
    });
    let mut keys = Keys::default();
    let servers: Vec<_> = servers.collect();
    keys.set("servers", format!("[{}]", servers.join(", ")));
    keys.inherit(upstream);
    let mut text = String::new();
    keys.lines(&mut text);
    UpstreamText {
        name: name.to_owned(),
        keys: text,
        file: Rc::clone(&place.file),
        line: place.line,
    }
}
