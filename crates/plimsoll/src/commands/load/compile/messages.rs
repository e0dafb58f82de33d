//! WebSockets and streams of events: what is sent, and what does not go with them.

use plimsoll_client::{ConnectPlan, RequestForm};
use plimsoll_load::{HttpPlan, WebSocketPlan};
use plimsoll_wire::ws::{self, MessageKind};

use super::Compiler;
use crate::commands::load::requests::Described;
use crate::problem::Problem;

/// The default length of a WebSocket message: a short event; the cost per message dominates, not per byte.
const DEFAULT_MESSAGE_BYTES: u64 = 16;

/// Every connection holds its message once more, masked.
const MOST_MESSAGE_BYTES: u64 = 64 << 20;

impl Compiler<'_> {
    /// The message that is sent, and what does not go with it.
    pub(super) fn websocket(&mut self, message: Option<Vec<u8>>, http: HttpPlan) -> WebSocketPlan {
        let args = self.args;
        for (flag, given) in [
            ("--grpc", args.grpc.grpc.is_some()),
            ("--sse", args.events.sse),
            ("--cookies", args.requests.cookies),
            ("--digest", args.request.has_digest()),
            ("--feeder", !args.requests.feeder.is_empty()),
            ("--disable-keepalive", args.requests.disable_keepalive),
            ("--expect", !args.judge.expect.is_empty()),
            ("--fail-status", args.judge.fail_status.is_some()),
        ] {
            if given {
                self.problem(flag, "does not go with the URL of a WebSocket");
            }
        }
        let size = args
            .websocket
            .message_size
            .map_or(DEFAULT_MESSAGE_BYTES, |size| size.0);
        let message = message.unwrap_or_else(|| {
            if size > MOST_MESSAGE_BYTES {
                self.problem("--message-size", "must be at most 64 MiB");
                return Vec::new();
            }
            (b'a'..=b'z')
                .cycle()
                .zip(0..size)
                .map(|(letter, _)| letter)
                .collect()
        });
        if message.len() as u64 > MOST_MESSAGE_BYTES {
            self.problem(
                "-D",
                "holds more than 64 MiB, which is too long for a message",
            );
        }
        let is_text = !args.websocket.binary && str::from_utf8(&message).is_ok();
        WebSocketPlan {
            http,
            kind: if is_text {
                MessageKind::Text
            } else {
                MessageKind::Binary
            },
            message: message.into(),
            limits: ws::Limits::default(),
        }
    }

    /// Reports what does not go with streams of events.
    pub(super) fn streams_of_events(&mut self) {
        let args = self.args;
        for (flag, given) in [
            ("--cookies", args.requests.cookies),
            ("--digest", args.request.has_digest()),
            ("--expect", !args.judge.expect.is_empty()),
        ] {
            if given {
                self.problem(flag, "does not go with --sse");
            }
        }
        if args.is_embedded() {
            self.problem("--sse", "needs a URL: the embedded origin has no streams");
        }
    }

    /// Reports what only goes with requests whose responses are read to their end.
    pub(super) fn only_requests(&mut self, is_websocket: bool) {
        let args = self.args;
        let other = if is_websocket {
            "the URL of a WebSocket"
        } else if args.grpc.grpc.is_some() {
            "--grpc"
        } else if args.events.sse {
            "--sse"
        } else {
            return;
        };
        for (flag, given) in [
            ("-L", args.request.follows_redirects()),
            ("--compressed", args.responses.compressed),
        ] {
            if given {
                self.problem(flag, format!("does not go with {other}"));
            }
        }
    }

    /// Reports what only goes with the URL of a WebSocket.
    pub(super) fn only_websockets(&mut self) {
        let args = &self.args.websocket;
        for (flag, given) in [
            ("--message-size", args.message_size.is_some()),
            ("--binary", args.binary),
        ] {
            if given {
                self.problem(flag, "needs a URL with ws:// or wss://");
            }
        }
    }

    /// An HTTP proxy passes a request on, but nothing that is not one.
    pub(super) fn way_of_websockets(&mut self, described: &Described, connect: &ConnectPlan) {
        let is_relayed = |url| matches!(connect.request_form(url), RequestForm::Absolute { .. });
        if described.endpoints().iter().any(is_relayed) {
            self.problems.push(
                Problem::with("-x", "a ws:// URL does not go through an HTTP proxy")
                    .hint("use a SOCKS proxy, or none with `-x ''`"),
            );
        }
    }
}
