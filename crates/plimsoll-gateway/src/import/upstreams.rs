//! `upstream` blocks.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::Endpoint;
use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;

use super::Notes;
use super::nginx::Directive;
use super::reasons;
use super::scope::Scope;
use super::toml::Keys;
use super::variables::with_places;

/// The upstreams of a file by name, and what locations add to them.
#[derive(Debug, Default)]
pub(super) struct Upstreams(BTreeMap<String, Upstream>);

/// One upstream as text.
pub(super) struct UpstreamText {
    pub(super) name: String,
    pub(super) keys: String,
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

#[derive(Debug)]
struct Upstream {
    file: Rc<str>,
    line: usize,
    /// As they stand in the file, with the scheme of the first `proxy_pass` that names the upstream.
    servers: Vec<Server>,
    keys: Keys,
    scheme: Option<&'static str>,
}

#[derive(Debug)]
struct Server {
    address: String,
    weight: u32,
    is_backup: bool,
    /// Failures after which it is left out, and for how long; nginx counts by default.
    max_fails: u32,
    fail_timeout: String,
}

/// The block that an upstream is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpstreamKind {
    /// Of `http`: requests.
    Http,
    /// Of `stream`: connections and datagrams.
    Stream,
}

/// Keys that locations give their upstream.
const OF_USES: [&str; 4] = ["connect_timeout", "retry", "protocol", "tls"];

/// Most that a server may weigh.
const MOST_WEIGHT: u32 = 1000;

/// Most that counts of connections may be.
const MOST_CONNECTIONS: u32 = 65_536;

impl Upstreams {
    pub(super) fn read(directives: &[Directive], kind: UpstreamKind, notes: &mut Notes) -> Self {
        let mut upstreams = Self::default();
        for block in directives.iter().filter(|it| it.name == "upstream") {
            let mut upstream = Upstream {
                file: Rc::clone(&block.file),
                line: block.line,
                servers: Vec::new(),
                keys: Keys::default(),
                scheme: None,
            };
            for directive in &block.block {
                match kind {
                    UpstreamKind::Http => read_http_directive(directive, &mut upstream, notes),
                    UpstreamKind::Stream => read_stream_directive(directive, &mut upstream, notes),
                }
            }
            upstream.settle(block, notes);
            if upstream.servers.is_empty() {
                notes.add(block, "left out: it has no servers that are known");
                continue;
            }
            upstreams.0.insert(block.argument(0).to_owned(), upstream);
        }
        upstreams
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// How many servers it has.
    pub(super) fn servers(&self, name: &str) -> usize {
        self.0.get(name).map_or(0, |it| it.servers.len())
    }

    /// An upstream of one server, for which something is said that a URL does not have.
    pub(super) fn single(&mut self, name: &str, address: &str, at: &Directive) {
        let upstream = Upstream {
            file: Rc::clone(&at.file),
            line: at.line,
            servers: vec![Server::new(address)],
            keys: Keys::default(),
            scheme: None,
        };
        self.0.entry(name.to_owned()).or_insert(upstream);
    }

    /// Takes over the settings for connections of a location or server that uses the upstream; the first one decides.
    pub(super) fn used(
        &mut self,
        name: &str,
        scheme: &'static str,
        keys: &Keys,
        at: &Directive,
        notes: &mut Notes,
    ) {
        let Some(upstream) = self.0.get_mut(name) else {
            return;
        };
        let is_first = upstream.scheme.is_none();
        let known = *upstream.scheme.get_or_insert(scheme);
        if known != scheme {
            notes.add(
                at,
                format!("`{name}` is used by {known}:// too, which its servers keep"),
            );
        }
        if is_first {
            upstream.keys.inherit(keys);
        } else if OF_USES
            .iter()
            .any(|key| keys.get(key) != upstream.keys.get(key))
        {
            notes.add(
                at,
                format!(
                    "`connect_timeout`, `retry`, `protocol` and `tls` of `{name}` are those of the first that uses it"
                ),
            );
        }
    }

    /// The keys of each upstream by its name.
    pub(super) fn written(&self) -> Vec<UpstreamText> {
        let written = self.0.iter().map(|(name, upstream)| {
            let scheme = upstream.scheme.unwrap_or("http");
            let servers = upstream.servers.iter().map(|it| it.written(scheme));
            let servers: Vec<_> = servers.collect();
            let mut text = format!("servers = [{}]\n", servers.join(", "));
            upstream.keys.lines(&mut text);
            UpstreamText {
                name: name.clone(),
                keys: text,
                file: Rc::clone(&upstream.file),
                line: upstream.line,
            }
        });
        written.collect()
    }
}

impl Upstream {
    /// What depends on all of the servers.
    fn settle(&mut self, block: &Directive, notes: &mut Notes) {
        // nginx takes the same address twice for two servers.
        let mut servers: Vec<Server> = Vec::new();
        for server in std::mem::take(&mut self.servers) {
            let same = |known: &&mut Server| known.identity() == server.identity();
            match servers.iter_mut().find(same) {
                Some(known) => {
                    known.weight = known.weight.saturating_add(server.weight).min(MOST_WEIGHT);
                    known.is_backup &= server.is_backup;
                }
                None => servers.push(server),
            }
        }
        if servers.iter().all(|it| it.is_backup) {
            for server in &mut servers {
                server.is_backup = false;
            }
        }
        if !servers.is_empty() && servers.iter().all(|it| it.weight == 0) {
            notes.add(block, "left out: all of its servers are down");
            servers.clear();
        }
        // Of a single server nginx counts no failures, and plimsoll would have none to turn to.
        let counted = servers.iter().filter(|it| it.max_fails > 0);
        let strictest = counted.min_by_key(|it| it.max_fails);
        if let Some(server) = strictest.filter(|_| servers.len() > 1) {
            let failures = server.max_fails.min(1000);
            let time = toml_string(&server.fail_timeout);
            let table = format!("{{ failures = {failures}, time = {time} }}");
            self.keys.set("eject", table);
            let is_other = |it: &Server| {
                it.max_fails != server.max_fails || it.fail_timeout != server.fail_timeout
            };
            if servers.iter().any(is_other) {
                notes.add(
                    block,
                    format!("failures are counted for all servers alike: after {failures} in a row one is left out for {time}"),
                );
            } else if failures > 1 {
                notes.add(
                    block,
                    format!(
                        "a server is left out after {failures} failures in a row; nginx would count those of {}",
                        server.fail_timeout
                    ),
                );
            }
        }
        self.servers = servers;
    }
}

impl Server {
    /// With nginx's defaults.
    fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            weight: 1,
            is_backup: false,
            max_fails: 1,
            fail_timeout: "10s".to_owned(),
        }
    }

    /// A URL, or a table with more than that.
    fn written(&self, scheme: &str) -> String {
        let url = if self.address.starts_with("unix:") {
            toml_string(&self.address)
        } else {
            toml_string(&format!("{scheme}://{}", self.address))
        };
        let mut table = Keys::default();
        if self.weight != 1 {
            table.set("weight", self.weight.to_string());
        }
        if self.is_backup {
            table.set("backup", "true");
        }
        if table.is_empty() {
            return url;
        }
        let mut whole = Keys::default();
        whole.set("url", url);
        whole.inherit(&table);
        whole.inline()
    }

    /// By which the gateway knows it: the port of `http` if there is none.
    fn identity(&self) -> &str {
        self.address.strip_suffix(":80").unwrap_or(&self.address)
    }
}

fn read_http_directive(directive: &Directive, upstream: &mut Upstream, notes: &mut Notes) {
    let keys = &mut upstream.keys;
    match directive.name.as_str() {
        "server" => read_server(directive, UpstreamKind::Http, upstream, notes),
        "least_conn" => keys.text("balance", "least_requests"),
        "random" if directive.arguments.is_empty() => keys.text("balance", "random"),
        "random" => {
            keys.text("balance", "p2c");
            if directive.argument(1).starts_with("least_time") {
                notes.add(
                    directive,
                    "of two servers the one with fewer requests is chosen; nginx would take the faster one",
                );
            }
        }
        "ip_hash" => {
            keys.text("balance", "ring_hash");
            keys.text("by", "source");
        }
        "hash" => match key_source(directive.argument(0)) {
            Some(source) => {
                keys.text("balance", "ring_hash");
                keys.text("by", &source);
            }
            None => notes.add(
                directive,
                format!(
                    "left out: requests cannot be distributed by `{}`",
                    directive.argument(0)
                ),
            ),
        },
        "keepalive" => count(directive, "keep", 0..=MOST_CONNECTIONS, keys, notes),
        "keepalive_requests" => {
            count(directive, "max_requests", 1..=1_000_000_000, keys, notes);
        }
        "keepalive_timeout" => time(directive, "keep_for", keys, notes),
        "keepalive_time" => time(directive, "lifetime", keys, notes),
        // State is shared by all workers as it is.
        "zone" => {}
        _ => notes.left_out_of_nginx(directive),
    }
}

/// One directive of an upstream of `stream`, where only the client's address can distinguish connections.
fn read_stream_directive(directive: &Directive, upstream: &mut Upstream, notes: &mut Notes) {
    let is_by_address = ["$remote_addr", "$binary_remote_addr"].contains(&directive.argument(0));
    match directive.name.as_str() {
        "server" => read_server(directive, UpstreamKind::Stream, upstream, notes),
        "hash" if is_by_address => upstream.keys.text("balance", "ring_hash"),
        "least_conn" | "random" | "zone" => read_http_directive(directive, upstream, notes),
        name => notes.add(directive, reasons::of_stream(name)),
    }
}

/// A number within bounds as a key.
fn count(
    directive: &Directive,
    key: &str,
    bounds: std::ops::RangeInclusive<u32>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let number = directive.argument(0).parse::<u32>().ok();
    match number.filter(|it| bounds.contains(it)) {
        Some(number) => keys.set(key, number.to_string()),
        None => notes.add(
            directive,
            format!(
                "left out: it is not a number from {} to {}",
                bounds.start(),
                bounds.end()
            ),
        ),
    }
}

fn time(directive: &Directive, key: &str, keys: &mut Keys, notes: &mut Notes) {
    match duration(directive.argument(0)) {
        Some(time) => keys.text(key, &time),
        None => notes.add(directive, "left out: it is not a time"),
    }
}

fn read_server(
    directive: &Directive,
    kind: UpstreamKind,
    upstream: &mut Upstream,
    notes: &mut Notes,
) {
    let mut server = Server::new(directive.argument(0));
    if !is_server(&server.address) {
        notes.add(
            directive,
            "left out: it is not a host with a port, nor a socket",
        );
        return;
    }
    for argument in directive.arguments.iter().skip(1) {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let number = value.parse::<u32>().ok();
        let span = duration(value);
        match (name, number, span) {
            ("weight", Some(weight), _) => server.weight = weight.clamp(1, MOST_WEIGHT),
            ("down", ..) => server.weight = 0,
            ("backup", ..) => server.is_backup = true,
            ("max_fails", Some(fails), _) => server.max_fails = fails,
            ("fail_timeout", _, Some(span)) => server.fail_timeout = span,
            ("resolve", ..) => upstream.keys.set("dns", "true"),
            ("slow_start", _, Some(span)) => upstream.keys.text("slow_start", &span),
            ("max_conns", Some(0), _) => {}
            ("max_conns", Some(_), _) if kind == UpstreamKind::Stream => notes.add(
                directive,
                "`max_conns` is left out: any number of connections goes to a server; nginx would turn to another one, or refuse those beyond",
            ),
            ("max_conns", Some(most), _) => {
                let most = most.min(MOST_CONNECTIONS);
                let known = upstream.keys.get("connections");
                let known = known.and_then(|it| it.parse::<u32>().ok());
                let least = known.map_or(most, |it| it.min(most));
                upstream.keys.set("connections", least.to_string());
                notes.add(
                    directive,
                    "`max_conns` becomes `connections`: for each server of the upstream and each worker, and requests beyond it wait",
                );
            }
            _ => notes.add(
                directive,
                format!("`{argument}` is left out: there is no counterpart"),
            ),
        }
    }
    upstream.servers.push(server);
}

/// Whether an address is one that a server may have.
pub(super) fn is_server(address: &str) -> bool {
    if let Some(path) = address.strip_prefix("unix:") {
        return path.starts_with('/') && !path.contains('$');
    }
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._:[]".contains(&it);
    address.bytes().all(is_plain)
        && Endpoint::parse(&format!("http://{address}"))
            .is_ok_and(|it| it.path_and_query() == "/" && it.credentials().is_none())
}

/// What requests are distributed by, for a text with variables; those of maps are not known to upstreams.
fn key_source(text: &str) -> Option<String> {
    match text {
        "$remote_addr" | "$binary_remote_addr" => Some("source".to_owned()),
        "$uri" | "$document_uri" | "$request_uri" => Some("path".to_owned()),
        _ => {
            with_places(text, &Scope::new(&[]), Moment::Request, None).filter(|it| it.contains('{'))
        }
    }
}

/// A time of nginx (`60`, `60s`, `1h30m`, `30d`, `500ms`) as plimsoll writes it.
pub(super) fn duration(text: &str) -> Option<String> {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |it| it.is_ascii_digit());
        let (unit, after) = split_while(after, |it| it.is_ascii_alphabetic());
        let number: u64 = digits.parse().ok()?;
        let (factor, unit) = match unit {
            "" | "s" => (1, "s"),
            "ms" | "m" | "h" => (1, unit),
            "d" => (24, "h"),
            "w" => (7 * 24, "h"),
            "M" => (30 * 24, "h"),
            "y" => (365 * 24, "h"),
            _ => return None,
        };
        parts.push(format!("{}{unit}", number.checked_mul(factor)?));
        rest = after.trim_start();
    }
    let mut times = parts
        .iter()
        .map(|part| plimsoll_model::parse_duration(part).ok());
    let sum = times.try_fold(Duration::ZERO, |sum, time| sum.checked_add(time?))?;
    match parts.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(format!("{}ms", sum.as_millis())),
    }
}

/// The beginning of a text of characters of a kind, and the rest.
fn split_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A size of nginx (`10m`, `512k`, `1g`) in bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit: u64 = match text.get(digits.len()..)? {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The same as plimsoll writes it; `None` for 0, which means no limit.
pub(super) fn size(text: &str) -> Option<String> {
    let bytes = bytes(text).filter(|it| *it > 0)?;
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.into_iter().find(|(unit, _)| bytes % unit == 0);
    let (unit, name) = whole.unwrap_or((1, "B"));
    Some(format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_nginx_reads_them() {
        for (text, expected) in [
            ("60", Some("60s")),
            ("500ms", Some("500ms")),
            ("10m", Some("10m")),
            ("30d", Some("720h")),
            ("1w", Some("168h")),
            ("1M", Some("720h")),
            ("1y", Some("8760h")),
            ("1h30m", Some("5400000ms")),
            ("1m 30s", Some("90000ms")),
            ("1x", None),
            ("m", None),
            ("99999999999999999999", None),
            ("999999999999999999y", None),
        ] {
            assert_eq!(duration(text).as_deref(), expected, "{text}");
        }
    }
}
