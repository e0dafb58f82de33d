//! `upstream` blocks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::Notes;
use super::nginx::Directive;
use super::toml::{Keys, key_text, quoted};

/// The upstreams of a file by name, and what locations add to them.
#[derive(Debug, Default)]
pub(super) struct Upstreams(BTreeMap<String, Upstream>);

#[derive(Debug, Default)]
struct Upstream {
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
}

impl Upstreams {
    pub(super) fn read(directives: &[Directive], notes: &mut Notes) -> Self {
        let mut upstreams = Self::default();
        for block in directives.iter().filter(|it| it.name == "upstream") {
            let upstream = upstreams.0.entry(block.argument(0).to_owned()).or_default();
            for directive in &block.block {
                read_one(directive, upstream, notes);
            }
        }
        upstreams
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Takes over what a location that uses the upstream says of its connections; the first location decides.
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
        let known = *upstream.scheme.get_or_insert(scheme);
        if known != scheme {
            notes.add(
                at,
                format!("`{name}` is used by {known}:// too, which its servers keep"),
            );
        }
        let before = upstream.keys.clone();
        upstream.keys.inherit(keys);
        if keys.differs_from(&upstream.keys) && !before.is_empty() {
            notes.add(
                at,
                format!(
                    "`connect_timeout`, `retry` and `tls` of `{name}` are those of the location that uses it first"
                ),
            );
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        for (name, upstream) in &self.0 {
            if upstream.servers.is_empty() {
                continue;
            }
            writeln!(out, "\n[upstream.{}]", key_text(name)).ok();
            let scheme = upstream.scheme.unwrap_or("http");
            let servers = upstream.servers.iter().map(|server| {
                let url = if server.address.starts_with("unix:") {
                    quoted(&server.address)
                } else {
                    quoted(&format!("{scheme}://{}", server.address))
                };
                let mut keys = Keys::default();
                if server.weight != 1 {
                    keys.set("weight", server.weight.to_string());
                }
                if server.is_backup {
                    keys.set("backup", "true");
                }
                if keys.is_empty() {
                    return url;
                }
                let mut table = Keys::default();
                table.set("url", url);
                table.inherit(&keys);
                table.inline()
            });
            let servers: Vec<_> = servers.collect();
            writeln!(out, "servers = [{}]", servers.join(", ")).ok();
            upstream.keys.lines(out);
        }
    }
}

fn read_one(directive: &Directive, upstream: &mut Upstream, notes: &mut Notes) {
    let keys = &mut upstream.keys;
    match directive.name.as_str() {
        "server" => read_server(directive, upstream, notes),
        "least_conn" => keys.text("balance", "least_requests"),
        "random" => keys.text(
            "balance",
            if directive.arguments.is_empty() {
                "random"
            } else {
                "p2c"
            },
        ),
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
        "keepalive" => {
            if let Ok(count) = directive.argument(0).parse::<u32>() {
                keys.set("keep", count.to_string());
            }
        }
        "keepalive_timeout" => {
            if let Some(time) = duration(directive.argument(0)) {
                keys.text("keep_for", &time);
            }
        }
        // State is shared by all workers as it is.
        "zone" | "keepalive_requests" | "keepalive_time" => {}
        _ => notes.left_out(directive),
    }
}

fn read_server(directive: &Directive, upstream: &mut Upstream, notes: &mut Notes) {
    let address = directive.argument(0).to_owned();
    let (mut weight, mut is_backup) = (1, false);
    for argument in directive.arguments.iter().skip(1) {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        match name {
            "weight" => weight = value.parse().unwrap_or(1),
            "down" => weight = 0,
            "backup" => is_backup = true,
            "max_fails" | "fail_timeout" => {
                if name == "max_fails" && value == "0" {
                    continue;
                }
                if upstream.keys.get("eject").is_none() {
                    upstream.keys.set("eject", "true");
                }
            }
            "resolve" => upstream.keys.set("dns", "true"),
            _ => notes.add(
                directive,
                format!("`{argument}` is left out: there is no counterpart"),
            ),
        }
    }
    upstream.servers.push(Server {
        address,
        weight,
        is_backup,
    });
}

/// What requests are told apart by, for a variable.
pub(super) fn key_source(variable: &str) -> Option<String> {
    match variable {
        "$remote_addr" | "$binary_remote_addr" => Some("source".to_owned()),
        "$uri" | "$document_uri" | "$request_uri" => Some("path".to_owned()),
        _ => {
            let header = variable.strip_prefix("$http_");
            let cookie = variable.strip_prefix("$cookie_");
            header
                .map(|name| format!("header:{}", name.replace('_', "-")))
                .or_else(|| cookie.map(|name| format!("cookie:{name}")))
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
    if let [only] = parts.as_slice() {
        return Some(only.clone());
    }
    let parts = parts
        .iter()
        .map(|part| plimsoll_model::parse_duration(part));
    let sum = parts.sum::<Result<Duration, _>>().ok()?;
    Some(format!("{}ms", sum.as_millis()))
}

/// The beginning of a text of characters of a kind, and the rest.
fn split_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A size of nginx (`10m`, `512k`, `1g`) as plimsoll writes it; `None` for 0, which means no limit.
pub(super) fn size(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok().filter(|it| *it > 0)?;
    match text.get(digits.len()..)? {
        "" => Some(format!("{number}B")),
        "k" => Some(format!("{number}KiB")),
        "m" => Some(format!("{number}MiB")),
        "g" => Some(format!("{number}GiB")),
        _ => None,
    }
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
