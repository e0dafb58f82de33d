//! Loads of unusual form, and requests from files.

use crate::gauntlet::server::behaviour::{Behaviour, PLAIN};
use crate::gauntlet::setup::{Begins, KNOWN, Known, Setup, Timed, http1, millis};

const SLOW: Behaviour = Behaviour {
    delay: |_| millis(40),
    ..PLAIN
};

/// The first arrival is not at the start.
const BEFORE: Known = Known {
    begins: Begins::Before,
    ..KNOWN
};

const fn intended(intended: u64) -> Known {
    Known {
        intended: Some(intended),
        ..KNOWN
    }
}

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "poisson",
        "random arrivals",
        SLOW,
        "-c 64 -q 100 -z 2s --arrivals poisson",
        BEFORE,
    ),
    http1(
        "burst",
        "ten arrivals at a time",
        SLOW,
        "-c 64 -q 100 -z 2s --burst 10",
        intended(200),
    ),
    http1(
        "jitter",
        "arrivals up to 500 ms late",
        SLOW,
        "-c 128 -q 200 -z 2s --jitter 500ms",
        Known {
            intended: Some(400),
            ..BEFORE
        },
    ),
    http1(
        "ramp",
        "from 0 to 200 arrivals/s",
        SLOW,
        "-c 64 --stages 2s:200/s",
        Known {
            intended: Some(200),
            ..BEFORE
        },
    ),
    http1(
        "steps",
        "stages of connections: 2, 8, 4",
        SLOW,
        "--stages 500ms:2,500ms:8,500ms:4",
        KNOWN,
    ),
    http1(
        "ramp-up",
        "connections are opened one after another",
        SLOW,
        "-c 8 -z 2s --ramp-up 1s",
        KNOWN,
    ),
    http1(
        "warm-up",
        "a warm-up of half a second is left out",
        SLOW,
        "-c 16 -q 100 -z 2s --warm-up 500ms",
        intended(200),
    ),
    http1(
        "warm-up-closed",
        "the same in a closed loop",
        SLOW,
        "-c 4 -z 1s --warm-up 700ms",
        KNOWN,
    ),
    http1(
        "by-number",
        "300 requests, however long they take",
        SLOW,
        "-c 8 -n 300",
        intended(300),
    ),
    http1(
        "by-number-open",
        "100 requests on a schedule",
        SLOW,
        "-c 16 -q 100 -n 100",
        Known {
            timed: Timed::FromArrival(100.0),
            ..intended(100)
        },
    ),
    http1(
        "think",
        "users pause for 60 ms",
        SLOW,
        "-c 4 -z 2s --think 60ms",
        Known {
            rate: Some(40.0),
            ..KNOWN
        },
    ),
    http1(
        "two-workers",
        "two threads share a schedule",
        SLOW,
        "-c 32 -q 100 -z 2s -t 2",
        intended(200),
    ),
    http1(
        "max-in-flight",
        "two requests at a time of 16 connections",
        SLOW,
        "-c 16 -q 100 -z 2s --max-in-flight 2",
        Known {
            timed: Timed::FromArrival(100.0),
            ..intended(200)
        },
    ),
    http1(
        "many-urls",
        "three targets in turns",
        SLOW,
        "-c 4 -z 1s --urls {folder}/urls",
        KNOWN,
    ),
    http1(
        "feeder",
        "30 rows, each used once, by one of three targets",
        SLOW,
        "-c 4 -z 10s --urls {folder}/places --feeder {folder}/rows.csv --feeder-order sequential",
        Known {
            rows: Some(30),
            ..KNOWN
        },
    ),
];
