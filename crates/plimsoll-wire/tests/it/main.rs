//! TLS settings read from files, without a connection.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod tls_settings;
