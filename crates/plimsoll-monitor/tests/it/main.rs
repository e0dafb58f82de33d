//! Configurations and probes over real sockets and files.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod configuration;

mod database_probes;

mod kafka_probes;
mod mail_probes;

mod probes;
mod proxied_probes;

mod service_probes;
