//! Servers that answer late or never.

use crate::gauntlet::server::behaviour::{Accept, Behaviour, PLAIN, Reply};
use crate::gauntlet::setup::{
    Begins, Bytes, KNOWN, Known, Setup, Timed, Unanswered, http1, millis,
};

/// Every tenth request is never answered.
const TENTH_NEVER: Behaviour = Behaviour {
    delay: |_| millis(40),
    reply: |turn| {
        if turn.is_every(10) {
            Reply::never()
        } else {
            Reply::ok()
        }
    },
    ..PLAIN
};

const NEVER: Behaviour = Behaviour {
    reply: |_| Reply::never(),
    ..PLAIN
};

/// The first forty requests take 30 ms, all others 3 s.
const LATE: Behaviour = Behaviour {
    delay: |turn| millis(if turn.number < 40 { 30 } else { 3000 }),
    ..PLAIN
};

const OUTLASTING: Behaviour = Behaviour {
    delay: |_| millis(1500),
    ..PLAIN
};

const ACCEPTS_LATE: Behaviour = Behaviour {
    accept: Accept::Late(millis(1000)),
    delay: |_| millis(40),
    ..PLAIN
};

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "tenth-never",
        "every tenth request is never answered, on a schedule",
        TENTH_NEVER,
        "-c 64 -q 100 -z 2s --grace 1s",
        Known {
            intended: Some(200),
            grace: millis(1000),
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
    http1(
        "tenth-never-closed",
        "the same in a closed loop",
        TENTH_NEVER,
        "-c 32 -z 1s --grace 500ms",
        Known {
            grace: millis(500),
            ..KNOWN
        },
    ),
    http1(
        "tenth-never-judged",
        "the same with a threshold on the 99th percentile",
        TENTH_NEVER,
        "-c 64 -q 100 -z 1s --grace 500ms --threshold latency:p(99)<10s",
        Known {
            exit: 1,
            intended: Some(100),
            grace: millis(500),
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
    http1(
        "tenth-times-out",
        "the same with a timeout of 300 ms",
        TENTH_NEVER,
        "-c 64 -q 100 -z 2s --timeout 300ms",
        Known {
            intended: Some(200),
            timed: Timed::FromArrival(100.0),
            unanswered: Unanswered::TimedOut(millis(300)),
            ..KNOWN
        },
    ),
    http1(
        "never",
        "no request is answered",
        NEVER,
        "-c 8 -z 1s --grace 300ms",
        Known {
            exit: 1,
            grace: millis(300),
            ..KNOWN
        },
    ),
    http1(
        "after-grace",
        "from the fortieth on responses come after --grace",
        LATE,
        "-c 64 -q 50 -z 2s --grace 400ms",
        Known {
            intended: Some(100),
            grace: millis(400),
            timed: Timed::FromArrival(50.0),
            bytes: Bytes::Unknown,
            ..KNOWN
        },
    ),
    http1(
        "within-grace",
        "1.5 s a response in a window of 1 s: all arrive behind it",
        OUTLASTING,
        "-c 10 -z 1s",
        KNOWN,
    ),
    http1(
        "late-accept",
        "connections wait for 1 s until they are accepted",
        ACCEPTS_LATE,
        "-c 4 -z 2s",
        Known {
            begins: Begins::Before,
            timed: Timed::FromAccept,
            ..KNOWN
        },
    ),
    http1(
        "late-accept-open",
        "the same on a schedule",
        ACCEPTS_LATE,
        "-c 128 -q 50 -z 2s",
        Known {
            intended: Some(100),
            begins: Begins::Before,
            timed: Timed::Unknown,
            ..KNOWN
        },
    ),
];
