//! Servers that break off.

use crate::gauntlet::server::behaviour::{Behaviour, End, HEAD, PLAIN, Pace, Reply, Turn};
use crate::gauntlet::setup::{Bytes, Cut, KNOWN, Known, Setup, Timed, http1, millis};

/// Every fifth response ends in this way.
const fn breaking(reply: fn(&Turn) -> Reply) -> Behaviour {
    Behaviour {
        delay: |_| millis(30),
        reply,
        ..PLAIN
    }
}

/// Requests that may not be sent again.
const POSTS: &str = "-m POST -d x -c 16 -q 50 -z 2s";

const BROKEN: Known = Known {
    intended: Some(100),
    bytes: Bytes::Unknown,
    ..KNOWN
};

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "reset-before-head",
        "every fifth connection is reset before the response",
        breaking(|turn| cut(turn, Reply::ok(), End::Reset(0))),
        POSTS,
        BROKEN,
    ),
    http1(
        "reset-in-head",
        "every fifth response is reset within its head",
        breaking(|turn| cut(turn, Reply::ok(), End::Reset(20))),
        POSTS,
        BROKEN,
    ),
    http1(
        "reset-in-body",
        "every fifth response is reset within its content",
        breaking(|turn| cut(turn, Reply::ok(), End::Reset(HEAD + 2))),
        POSTS,
        BROKEN,
    ),
    http1(
        "closed-before-head",
        "every fifth connection is closed before the response",
        breaking(|turn| cut(turn, Reply::ok(), End::Close(0))),
        POSTS,
        BROKEN,
    ),
    http1(
        "truncated",
        "every fifth response ends before its announced length",
        breaking(|turn| cut(turn, Reply::sized(2000), End::Close(1000))),
        POSTS,
        BROKEN,
    ),
    http1(
        "truncated-chunked",
        "every fifth response ends within a chunk",
        breaking(|turn| {
            let chunked = Reply::new(
                200,
                "transfer-encoding: chunked\r\n",
                b"5\r\nhello\r\n0\r\n\r\n",
            );
            let within = chunked.bytes.len() - 9;
            cut(turn, chunked, End::Close(within))
        }),
        POSTS,
        BROKEN,
    ),
    http1(
        "dropped-gets",
        "every fifth GET is read and dropped with its connection: sent again",
        breaking(|turn| cut(turn, Reply::ok(), End::Close(0))),
        "-c 1 -z 2s",
        Known {
            intended: None,
            cut: Cut::Repeated,
            timed: Timed::Unknown,
            cautions: &["were sent again"],
            ..BROKEN
        },
    ),
    http1(
        "dropped-gets-judged",
        "the same with a threshold",
        breaking(|turn| cut(turn, Reply::ok(), End::Close(0))),
        "-c 1 -z 1s --threshold http_req_failed:rate<1%",
        Known {
            exit: 1,
            intended: None,
            cut: Cut::Repeated,
            timed: Timed::Unknown,
            cautions: &["were sent again"],
            ..BROKEN
        },
    ),
    http1(
        "dribble",
        "every byte of a response by itself, 1 ms apart",
        Behaviour {
            reply: |_| {
                Reply::ok().paced(Pace::Dribble {
                    from: 0,
                    pause: millis(1),
                })
            },
            ..PLAIN
        },
        "-c 4 -z 2s",
        KNOWN,
    ),
    http1(
        "dribbled-body",
        "the content byte by byte, 20 ms apart",
        Behaviour {
            reply: |_| {
                Reply::ok().paced(Pace::Dribble {
                    from: HEAD,
                    pause: millis(20),
                })
            },
            ..PLAIN
        },
        "-c 32 -q 50 -z 2s",
        Known {
            intended: Some(100),
            timed: Timed::FromArrival(50.0),
            ..KNOWN
        },
    ),
    http1(
        "head-then-body",
        "the content comes 42 ms after the head, as with Nagle's algorithm",
        Behaviour {
            reply: |_| {
                Reply::ok().paced(Pace::Parts {
                    at: HEAD,
                    pause: millis(42),
                })
            },
            ..PLAIN
        },
        "-c 4 -z 2s",
        Known {
            cautions: &["the content came about 40 ms after the head"],
            ..KNOWN
        },
    ),
    http1(
        "errors-by-share",
        "every tenth response is a 503",
        breaking(|turn| Reply::status(if turn.is_every(10) { 503 } else { 200 })),
        "-c 16 -q 100 -z 2s",
        Known {
            intended: Some(200),
            timed: Timed::FromArrival(100.0),
            ..KNOWN
        },
    ),
    http1(
        "not-found-by-share",
        "every fourth response is a 404",
        breaking(|turn| Reply::status(if turn.is_every(4) { 404 } else { 200 })),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "only-errors",
        "every response is a 500",
        breaking(|_| Reply::status(500)),
        "-c 4 -z 1s",
        Known { exit: 1, ..KNOWN },
    ),
];

/// Every fifth reply ends in this way.
fn cut(turn: &Turn, reply: Reply, end: End) -> Reply {
    if turn.is_every(5) {
        reply.ending(end)
    } else {
        reply
    }
}
