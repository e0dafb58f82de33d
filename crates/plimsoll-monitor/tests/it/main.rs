//! Configurations and probes over real sockets and files.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod configuration;

mod mail_probes;

mod probes;

mod service_probes;
