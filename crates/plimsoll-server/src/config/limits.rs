//! `[limits]`.

use crate::config::document::Table;
use crate::limits::Limits;
use plimsoll_wire::h1::RequestLimits;

/// Most that any count may be set to.
const MOST: usize = 10_000_000;

/// Most that a head may be given.
const MOST_HEAD: usize = 1 << 20;

/// Defaults where there is no table; nothing is taken from a value that is wrong.
pub(super) fn compile(table: Option<Table<'_>>) -> Limits {
    let mut limits = Limits::default();
    let Some(mut table) = table else {
        return limits;
    };
    let mut count = |key, most, into: &mut usize| {
        if let Some(count) = table.count(key, 1..=most) {
            *into = count;
        }
    };
    count("connections", MOST, &mut limits.connections);
    count(
        "connections_per_address",
        MOST,
        &mut limits.connections_per_address,
    );
    count(
        "headers",
        RequestLimits::MOST_HEADERS,
        &mut limits.request.headers,
    );
    let floods = &mut limits.http2.floods;
    for (key, into) in [
        ("http2_pings", &mut floods.pings),
        ("http2_settings", &mut floods.settings),
        ("http2_empty_data", &mut floods.empty_data),
        ("http2_window_updates", &mut floods.window_updates),
        ("http2_priorities", &mut floods.priorities),
        ("http2_resets", &mut floods.resets),
        ("http2_continuations", &mut floods.continuations),
    ] {
        let mut frames = *into as usize;
        count(key, MOST, &mut frames);
        *into = u32::try_from(frames).unwrap_or(u32::MAX);
    }
    count(
        "http2_provoked_resets",
        MOST,
        &mut limits.http2.provoked_resets,
    );
    let http3 = &mut limits.http3;
    for (key, into) in [
        ("http3_resets", &mut http3.resets),
        ("http3_empty_frames", &mut http3.empty_frames),
        ("http3_unvalidated", &mut http3.unvalidated),
    ] {
        let mut frames = *into as usize;
        count(key, MOST, &mut frames);
        *into = u32::try_from(frames).unwrap_or(u32::MAX);
    }
    let mut streams = http3.streams as usize;
    count("http3_streams", 100_000, &mut streams);
    http3.streams = u32::try_from(streams).unwrap_or(u32::MAX);
    let mut streams = limits.http2.streams as usize;
    count("http2_streams", 100_000, &mut streams);
    limits.http2.streams = u32::try_from(streams).unwrap_or(u32::MAX);
    if let Some(size) = table.bytes("head") {
        match usize::try_from(size) {
            Ok(size @ 256..=MOST_HEAD) => limits.request.head_bytes = size,
            _ => table.wrong("`head` must be from 256B to 1MiB", None),
        }
    }
    if let Some(size) = table.bytes("target") {
        match usize::try_from(size) {
            Ok(size @ 256..=MOST_HEAD) => limits.request.target_bytes = size,
            _ => table.wrong("`target` must be from 256B to 1MiB", None),
        }
    }
    if let Some(size) = table.bytes("body") {
        limits.request.body_bytes = size;
    }
    if let Some(size) = table.bytes("discard") {
        limits.discard_bytes = size;
    }
    for (key, into) in [
        ("body_rate", &mut limits.body_rate),
        ("read_rate", &mut limits.read_rate),
    ] {
        if let Some(rate) = table.bytes(key) {
            *into = rate;
        }
    }
    let mut duration = |key, into: &mut std::time::Duration| {
        if let Some(duration) = table.duration(key) {
            *into = duration;
        }
    };
    duration("header_timeout", &mut limits.header_timeout);
    duration("body_timeout", &mut limits.body_timeout);
    duration("idle_timeout", &mut limits.idle_timeout);
    duration("write_timeout", &mut limits.write_timeout);
    duration("handshake_timeout", &mut limits.handshake_timeout);
    table.finish();
    limits
}
