//! Responses of many messages: server-sent events, WebSocket conversations, gRPC calls.

pub mod events;

pub mod websocket;

pub mod grpc;
