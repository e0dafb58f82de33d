//! Scripts over loopback, against a server of these tests.

#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "these are tests, and the figures that they compare are whole numbers"
)]

mod fixture;

mod control;

mod events;

mod server;

mod html;

mod http;

mod modules;

mod common_js;

mod names;

mod network;

mod outputs;

mod protocols;

mod runs;

mod compressed_sockets;

mod sockets;

mod thresholds;

mod web_crypto;
