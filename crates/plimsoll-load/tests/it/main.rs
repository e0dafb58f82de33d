//! Whole runs against origins on the loopback.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod fixture;

mod closed;

mod open;

mod observed;

mod parts;

mod scenarios;

mod counts;

mod faults;

mod hostile;

mod back_off;

mod http2;

mod grpc;
mod http3;

mod window;

mod websocket;

mod events;

mod harness;

mod workloads;

mod throughput;
