//! Servers of HTTP/2.

use crate::gauntlet::server::behaviour::{Http2Behaviour, Http2Reply, PLAIN_HTTP2};
use crate::gauntlet::setup::{KNOWN, Known, Setup, Timed, http2, millis};

const SLOW: Http2Behaviour = Http2Behaviour {
    delay: |_| millis(40),
    ..PLAIN_HTTP2
};

pub(super) const SETUPS: &[Setup] = &[
    http2(
        "h2",
        "eight streams on each connection",
        SLOW,
        "--http2 -c 2 -p 8 -z 2s",
        KNOWN,
    ),
    http2(
        "h2-open",
        "the same on a schedule",
        SLOW,
        "--http2 -c 2 -p 8 -q 100 -z 2s",
        Known {
            intended: Some(200),
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
    http2(
        "h2-one-stream",
        "one stream at a time where eight are wanted",
        Http2Behaviour {
            max_streams: Some(1),
            ..SLOW
        },
        "--http2 -c 2 -p 8 -z 2s",
        Known {
            cautions: &["allows 1 streams at a time"],
            rate: Some(50.0),
            ..KNOWN
        },
    ),
    http2(
        "h2-one-stream-open",
        "the same on a schedule beyond what it can carry",
        Http2Behaviour {
            max_streams: Some(1),
            ..SLOW
        },
        "--http2 -c 2 -p 8 -q 100 -z 2s",
        Known {
            intended: Some(200),
            cautions: &["allows 1 streams at a time"],
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
    http2(
        "h2-goaway",
        "GOAWAY after twenty requests of each connection",
        Http2Behaviour {
            goaway_after: Some(20),
            ..SLOW
        },
        "--http2 -c 2 -p 4 -z 2s",
        KNOWN,
    ),
    http2(
        "h2-refused",
        "every tenth stream is refused",
        Http2Behaviour {
            reply: |turn| {
                if turn.is_every(10) {
                    Http2Reply::Refused
                } else {
                    Http2Reply::Whole
                }
            },
            ..SLOW
        },
        "--http2 -c 2 -p 8 -q 100 -z 2s",
        Known {
            intended: Some(200),
            ..KNOWN
        },
    ),
    http2(
        "h2-reset-in-body",
        "every tenth stream is reset within its content",
        Http2Behaviour {
            reply: |turn| {
                if turn.is_every(10) {
                    Http2Reply::ResetInBody
                } else {
                    Http2Reply::Whole
                }
            },
            ..SLOW
        },
        "--http2 -c 2 -p 8 -q 100 -z 2s",
        Known {
            intended: Some(200),
            ..KNOWN
        },
    ),
    http2(
        "h2-tenth-never",
        "every tenth stream is never answered",
        Http2Behaviour {
            reply: |turn| {
                if turn.is_every(10) {
                    Http2Reply::Never
                } else {
                    Http2Reply::Whole
                }
            },
            ..SLOW
        },
        "--http2 -c 2 -p 32 -q 100 -z 2s --grace 500ms",
        Known {
            intended: Some(200),
            grace: millis(500),
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
];
