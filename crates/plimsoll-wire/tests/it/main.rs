//! TLS settings read from files, and the HTTP/2 codec against another implementation.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod h2_peer;
mod tls_settings;
