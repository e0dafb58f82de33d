//! Connections: the versions of HTTP over a stream of bytes, each within its limits.

pub(crate) mod http1;

pub(crate) mod http2;

pub(crate) mod http3;

pub(crate) mod head;

pub(crate) mod pace;

pub(crate) mod activity;

pub(crate) mod service;
