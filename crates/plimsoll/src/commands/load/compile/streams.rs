//! Requests side by side on a connection.

use plimsoll_load::Http2Plan;
use plimsoll_model::{ByteSize, Protocol};
use plimsoll_wire::h2;

use super::Compiler;
use crate::problem::Problem;

/// RFC 9113, section 6.9.1.
const MOST_WINDOW: u32 = (1 << 31) - 1;

/// The window that a connection begins with; it cannot be taken back (RFC 9113, section 6.9.2).
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

impl Compiler<'_> {
    /// Requests at a time on each connection; notes what does not go with several.
    pub(super) fn streams(&mut self, protocol: Protocol) -> u32 {
        let args = self.args;
        let streams = args.shape.streams.unwrap_or(1);
        let flag = match protocol {
            Protocol::Http1 | Protocol::WebSocket => {
                if args.shape.streams.is_some() {
                    self.problem(
                        "-p",
                        "needs --http2 or --http3: over HTTP/1.1 it is always 1",
                    );
                }
                for (flag, given) in [
                    ("--h2-window", args.http2.h2_window),
                    ("--h2-connection-window", args.http2.h2_connection_window),
                ] {
                    if given.is_some() {
                        self.problem(flag, "needs --http2");
                    }
                }
                return streams;
            }
            Protocol::Http2 if args.grpc.grpc.is_some() => "--grpc",
            Protocol::Http2 => "--http2",
            Protocol::Http3 => "--http3",
        };
        if args.requests.disable_keepalive {
            self.problem(
                "--disable-keepalive",
                format!(
                    "has no meaning with {flag}, whose connections carry requests side by side"
                ),
            );
        }
        if args.shape.max_in_flight.is_some() {
            self.problems.push(
                Problem::with("--max-in-flight", format!("does not go with {flag}"))
                    .hint("the connections (-c) times their streams (-p) are under way at most"),
            );
        }
        if args.grpc.grpc.is_some() && args.is_embedded() {
            self.problem("--grpc", "needs a URL: the embedded origin has no methods");
        }
        if protocol == Protocol::Http3 && args.is_embedded() {
            self.problem(
                flag,
                "needs a URL: the embedded origin speaks HTTP/1.1 and HTTP/2 only",
            );
        }
        streams
    }

    pub(super) fn http2(&mut self, streams: u32) -> Http2Plan {
        let args = self.args;
        let defaults = h2::Settings::default();
        let mut window = |flag: &str, given: Option<ByteSize>, least: u32, default: u32| {
            let Some(size) = given else { return default };
            match u32::try_from(size.0) {
                Ok(bytes) if (least..=MOST_WINDOW).contains(&bytes) => bytes,
                _ => {
                    self.problem(flag, format!("must be from {least} to {MOST_WINDOW} bytes"));
                    default
                }
            }
        };
        let given = &args.http2;
        Http2Plan {
            streams,
            stream_window: window("--h2-window", given.h2_window, 1, defaults.stream_window),
            connection_window: window(
                "--h2-connection-window",
                given.h2_connection_window,
                LEAST_CONNECTION_WINDOW,
                defaults.connection_window,
            ),
        }
    }
}
