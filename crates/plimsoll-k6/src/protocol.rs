//! The protocols of scripts: HTTP, gRPC, WebSockets, server-sent events.

pub(crate) mod http;

pub(crate) mod pools;

pub(crate) mod grpc;

pub(crate) mod socket;

pub(crate) mod event_stream;
