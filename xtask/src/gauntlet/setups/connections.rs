//! Connections that are closed, refused, slow to open or rare.

use crate::gauntlet::server::Served;
use crate::gauntlet::server::behaviour::{Behaviour, End, PLAIN, Reply};
use crate::gauntlet::setup::{
    Begins, Bytes, Cut, KNOWN, Known, Load, SETUP, Setup, Timed, http1, millis,
};

const SLOW: Behaviour = Behaviour {
    delay: |_| millis(40),
    ..PLAIN
};

const CLOSING: Behaviour = Behaviour {
    reply: |_| {
        Reply::new(200, "content-length: 5\r\nconnection: close\r\n", b"hello")
            .ending(End::WholeThenClose)
    },
    ..SLOW
};

/// Closes every tenth connection that it answers on.
const LIMITED: Behaviour = Behaviour {
    reply: |turn| {
        if turn.is_every(10) {
            (CLOSING.reply)(turn)
        } else {
            Reply::ok()
        }
    },
    ..SLOW
};

const CLOSES_SILENTLY: Behaviour = Behaviour {
    close_after: Some(10),
    ..SLOW
};

const OVER_TLS: Known = Known {
    bytes: Bytes::Unknown,
    timed: Timed::Unknown,
    ..KNOWN
};

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "connection-close",
        "`Connection: close` on each response",
        CLOSING,
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "keep-alive-limit",
        "`Connection: close` on every tenth response",
        LIMITED,
        "-c 4 -z 2s",
        KNOWN,
    ),
    http1(
        "silent-limit",
        "connections are closed after ten responses without a word",
        CLOSES_SILENTLY,
        "-c 4 -z 2s",
        Known {
            cut: Cut::Repeated,
            bytes: Bytes::Unknown,
            ..KNOWN
        },
    ),
    http1(
        "no-keep-alive",
        "the generator opens a connection for each request",
        SLOW,
        "-c 4 -z 1s --disable-keepalive",
        KNOWN,
    ),
    Setup {
        name: "one-address-refuses",
        about: "a name with two addresses, of which the first refuses connections",
        served: Served::OneOfTwoAddresses(SLOW),
        load: Load::Flags(
            "-c 4 -z 1s --disable-keepalive --resolve two.test:{port}:127.0.0.9 --resolve two.test:{port}:127.0.0.1 http://two.test:{port}/",
        ),
        known: Known {
            bytes: Bytes::Unknown,
            ..KNOWN
        },
        ..SETUP
    },
    Setup {
        name: "two-addresses",
        about: "a name with two addresses that both answer",
        served: Served::TwoAddresses(SLOW),
        load: Load::Flags(
            "-c 4 -z 1s --disable-keepalive --resolve two.test:{port}:127.0.0.9 --resolve two.test:{port}:127.0.0.1 http://two.test:{port}/",
        ),
        known: Known {
            bytes: Bytes::Unknown,
            ..KNOWN
        },
        ..SETUP
    },
    Setup {
        name: "tls",
        about: "over TLS, with one handshake for each connection",
        served: Served::Tls(SLOW, millis(0)),
        load: Load::Flags("-k -c 4 -z 1s"),
        known: Known {
            bytes: Bytes::Wire,
            ..OVER_TLS
        },
        ..SETUP
    },
    Setup {
        name: "tls-each",
        about: "a TLS handshake for each request: bytes on the wire",
        served: Served::Tls(SLOW, millis(0)),
        load: Load::Flags("-k -c 2 -z 2s --disable-keepalive"),
        known: Known {
            bytes: Bytes::Wire,
            ..OVER_TLS
        },
        ..SETUP
    },
    Setup {
        name: "tls-slow-handshake",
        about: "the server holds its part of the TLS handshake back for 400 ms",
        served: Served::Tls(SLOW, millis(400)),
        // Not 1 s: 0.4 s and fifteen times 40 ms are one.
        load: Load::Flags("-k -c 4 -z 1020ms"),
        known: Known {
            begins: Begins::Before,
            ..OVER_TLS
        },
        ..SETUP
    },
];
