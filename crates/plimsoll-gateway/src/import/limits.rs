//! Limits of `http`, which become `[limits]` of all listeners.

use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::Notes;
use super::fates;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::{bytes, duration};

/// Content that a request may have unless the configuration says more; the default of plimsoll.
const USUAL_BODY: u64 = 64 << 20;

/// Bounds of `limits.head`.
const HEAD: std::ops::RangeInclusive<u64> = 256..=1 << 20;

/// Timeouts with their keys.
const TIMEOUTS: [(&str, &str); 4] = [
    ("client_header_timeout", "header_timeout"),
    ("client_body_timeout", "body_timeout"),
    ("send_timeout", "write_timeout"),
    ("keepalive_timeout", "idle_timeout"),
];

/// Writes `drain`, which is above all tables, by `worker_shutdown_timeout`.
pub(super) fn write_drain(directives: &[Directive], out: &mut String, notes: &mut Notes) {
    let Some(directive) = Scope::new(directives).last("worker_shutdown_timeout") else {
        return;
    };
    match duration(directive.argument(0)) {
        Some(time) => {
            writeln!(out, "drain = {}", toml_string(&time)).ok();
            notes.add(
                directive,
                "it is the time for connections at the end of the process, and a reload ends none; nginx would end those that were there before a reload after it",
            );
        }
        None => notes.add(directive, "left out: it is not a time"),
    }
}

/// Writes the table `[limits]`, if anything differs from the defaults.
pub(super) fn write(outer: &[Directive], out: &mut String, notes: &mut Notes) {
    let scope = Scope::new(outer);
    let mut keys = Keys::default();
    for (name, key) in TIMEOUTS {
        let Some(directive) = scope.last(name) else {
            continue;
        };
        let time = duration(directive.argument(0));
        match time.filter(|it| !it.starts_with('0')) {
            Some(time) => keys.text(key, &time),
            None => notes.add(directive, "left out: it is not a time above zero"),
        }
    }
    if let Some(directive) = scope.last("large_client_header_buffers") {
        let count = directive.argument(0).parse::<u64>().ok();
        let size = bytes(directive.argument(1));
        let head = count.zip(size).map(|(count, size)| {
            (
                count.saturating_mul(size).clamp(*HEAD.start(), *HEAD.end()),
                size,
            )
        });
        match head.filter(|(_, size)| *size > 0) {
            Some((head, target)) => {
                keys.set("head", toml_string(&format!("{head}B")));
                keys.set(
                    "target",
                    toml_string(&format!("{}B", target.clamp(*HEAD.start(), head))),
                );
            }
            None => notes.add(directive, "left out: it is not a number and a size"),
        }
    }
    if let Some(directive) = scope.last("http2_max_concurrent_streams") {
        match directive.argument(0).parse::<u32>() {
            Ok(streams @ 1..=100_000) => keys.set("http2_streams", streams.to_string()),
            _ => notes.add(directive, "left out: it is not a number up to 100000"),
        }
    }
    if let Some(body) = longest_body(outer) {
        keys.set("body", toml_string(&format!("{body}B")));
    }
    if !keys.is_empty() {
        out.push_str("\n[limits]\n");
        keys.lines(out);
    }
}

/// The longest content that any `client_max_body_size` lets in, if it is longer than usual. Routes have their own limits.
fn longest_body(block: &[Directive]) -> Option<u64> {
    let sizes = block.iter().filter_map(|directive| {
        if directive.name == "client_max_body_size" {
            return match bytes(directive.argument(0))? {
                0 => Some(i64::MAX.unsigned_abs()),
                size => Some(size),
            };
        }
        fates::within(directive)?;
        longest_body(&directive.block)
    });
    sizes.max().filter(|it| *it > USUAL_BODY)
}
