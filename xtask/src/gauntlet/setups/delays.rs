//! Servers that are slow, each in its own way.

use std::time::Duration;

use crate::gauntlet::server::behaviour::{Behaviour, PLAIN, Reply, Turn};
use crate::gauntlet::setup::{KNOWN, Known, Setup, Timed, http1, millis};

const FIXED: Behaviour = Behaviour {
    delay: |_| millis(50),
    ..PLAIN
};

/// Median 60 ms, σ 0.5 (Box and Muller, 1958).
const LOG_NORMAL: Behaviour = Behaviour {
    delay: |turn| {
        let other = Turn {
            number: turn.number + 1_000_000,
            ..turn.clone()
        };
        let (one, two) = (turn.random().max(1e-9), other.random());
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
        Duration::from_secs_f64(0.06 * (0.5 * normal).exp())
    },
    ..PLAIN
};

const BIMODAL: Behaviour = Behaviour {
    delay: |turn| millis(if turn.is_every(20) { 400 } else { 50 }),
    ..PLAIN
};

/// Nothing is answered from 0.6 s to 1.3 s.
const STALL: Behaviour = Behaviour {
    delay: |turn| {
        let stall = millis(600)..millis(1300);
        if stall.contains(&turn.since_first) {
            stall.end.saturating_sub(turn.since_first)
        } else {
            millis(40)
        }
    },
    ..PLAIN
};

/// 20 ms more every 100 ms.
const GROWING: Behaviour = Behaviour {
    delay: |turn| millis(20) + turn.since_first / 5,
    ..PLAIN
};

/// A token for each response, 100 a second.
const BUCKET: Behaviour = Behaviour {
    delay: |turn| millis(turn.number * 10).saturating_sub(turn.since_first),
    ..PLAIN
};

/// The same, with a 429 at once where there is no token; there are ten at first.
const REJECTING: Behaviour = Behaviour {
    delay: |turn| millis(if is_rejected(turn) { 0 } else { 60 }),
    reply: |turn| {
        if is_rejected(turn) {
            Reply::status(429)
        } else {
            Reply::ok()
        }
    },
    ..PLAIN
};

fn is_rejected(turn: &Turn) -> bool {
    turn.number > 10 && turn.number.is_multiple_of(2)
}

const SERIAL: Behaviour = Behaviour {
    is_serial: true,
    delay: |_| millis(20),
    ..PLAIN
};

const SLOW: Behaviour = Behaviour {
    delay: |_| millis(1000),
    ..PLAIN
};

/// Arrivals, evenly spaced.
const fn arrivals(rate: u32, intended: u64) -> Known {
    Known {
        intended: Some(intended),
        timed: Timed::FromArrival(rate as f64),
        ..KNOWN
    }
}

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "fixed",
        "each response takes 50 ms; closed loop",
        FIXED,
        "-c 4 -z 2s",
        Known {
            rate: Some(80.0),
            ..KNOWN
        },
    ),
    http1(
        "fixed-open",
        "the same on a schedule",
        FIXED,
        "-c 32 -q 100 -z 2s",
        arrivals(100, 200),
    ),
    http1(
        "log-normal",
        "latencies of a log-normal distribution",
        LOG_NORMAL,
        "-c 64 -q 100 -z 3s",
        arrivals(100, 300),
    ),
    http1(
        "log-normal-closed",
        "the same in a closed loop",
        LOG_NORMAL,
        "-c 8 -z 3s",
        KNOWN,
    ),
    http1(
        "bimodal",
        "every twentieth response takes 400 instead of 50 ms",
        BIMODAL,
        "-c 64 -q 100 -z 3s",
        arrivals(100, 300),
    ),
    http1(
        "bimodal-closed",
        "the same in a closed loop",
        BIMODAL,
        "-c 8 -z 3s",
        KNOWN,
    ),
    http1(
        "stall",
        "nothing is answered for 0.7 s",
        STALL,
        "-c 128 -q 100 -z 2s",
        arrivals(100, 200),
    ),
    http1(
        "stall-one-connection",
        "the same with too few connections: arrivals wait",
        STALL,
        "-c 6 -q 100 -z 2s",
        arrivals(100, 200),
    ),
    http1(
        "stall-closed",
        "the same in a closed loop, which hides it",
        STALL,
        "-c 4 -z 2s",
        KNOWN,
    ),
    http1(
        "growing",
        "responses take longer and longer",
        GROWING,
        "-c 128 -q 100 -z 2s",
        arrivals(100, 200),
    ),
    http1(
        "token-bucket",
        "100 tokens/s for 150 arrivals/s: a queue grows in the server",
        BUCKET,
        "-c 200 -q 150 -z 2s",
        arrivals(150, 300),
    ),
    http1(
        "token-bucket-429",
        "a 429 at once for half of the requests, 60 ms for the others",
        REJECTING,
        "-c 32 -q 100 -z 2s",
        Known {
            cautions: &["mixes responses with an error status"],
            ..arrivals(100, 200)
        },
    ),
    http1(
        "one-at-a-time",
        "one request at a time, 20 ms each",
        SERIAL,
        "-c 4 -z 2s",
        Known {
            rate: Some(50.0),
            ..KNOWN
        },
    ),
    http1(
        "one-at-a-time-open",
        "the same on a schedule at 80 % of its capacity",
        SERIAL,
        "-c 16 -q 40 -z 2s",
        arrivals(40, 80),
    ),
    http1(
        "one-too-few",
        "50 ms a response, 100 arrivals/s, four connections instead of five",
        FIXED,
        "-c 4 -q 100 -z 2s",
        arrivals(100, 200),
    ),
    http1(
        "one-too-few-drop",
        "the same with --on-full drop",
        FIXED,
        "-c 4 -q 100 -z 2s --on-full drop",
        Known {
            intended: Some(200),
            ..KNOWN
        },
    ),
    http1(
        "far-too-few",
        "1 s a response, 100 arrivals/s, one connection",
        SLOW,
        "-c 1 -q 100 -z 2s",
        Known {
            ..arrivals(100, 200)
        },
    ),
];
