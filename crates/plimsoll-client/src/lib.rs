//! The measuring client: resolve, connect, exchange with phase timings, judge.
//!
//! # The way of a forwarded request
//!
//! 1. `Pool::destination` finds where requests go; `Destination::acquire` takes an idle HTTP/1 connection that is
//!    young enough and quiet, or a free stream, or opens a connection (`Connector::connect`), or waits within the
//!    caps, in the order of the callers (`client/src/forward/pool.rs`).
//! 2. `Lease::begin` checks the head and stages it. A forwarded head has two sources (`forward/head.rs`): received
//!    fields, without those of their connection, and the sender's own, which nothing received removes or doubles. It
//!    is staged over HTTP/1 in the connection's buffer (`wire/src/h1/request.rs`), over HTTP/2 compressed field by
//!    field (`wire/src/h2/streamed.rs`).
//! 3. Each poll of the `Exchange` pulls the request body (`forward/upload.rs`) and sends what can be sent: over
//!    HTTP/1 by itself in one write with the head (`forward/http1.rs`), over HTTP/2 as far as the windows allow,
//!    written by the task of the connection (`forward/http2.rs`, `http2.rs`).
//! 4. `poll_head` returns interim heads, then the final one. HTTP/1 reads once into the worker's buffer and decodes
//!    in place (`wire/src/h1/response.rs`); over HTTP/2 the connection's task sorts what came by stream.
//! 5. `poll_frame` returns content and trailers. HTTP/1 reads only when it is polled; over HTTP/2 taking content
//!    returns credit (`wire/src/h2/flow.rs`), so a reader that stops holds one window at most.
//! 6. At its end a clean HTTP/1 connection goes back to the pool, any other is closed; a stream is released, and
//!    reset if the exchange is dropped before. Behind 101, or 2xx to CONNECT, `Exchange::upgrade` hands out the byte
//!    stream (`forward/upgraded.rs`).

mod connect;

mod request;

mod content_coding;

mod timing;

mod redirect;

mod http1;

mod http2;

mod http3;

pub mod forward;

mod session;

mod websocket;

pub mod fetch;

pub mod json_api;

pub mod jwt;

pub mod oidc;

pub mod chaos;

pub mod check;

pub mod grpc;

pub use crate::connect::address_filter::AddressFilter;
pub use crate::connect::confinement::confine_process;
pub use crate::connect::credentials::basic_authorization;
pub use crate::connect::endpoint::{Endpoint, EndpointError, Pin, Scheme};
pub use crate::connect::no_proxy::{NoProxy, NoProxyError};
pub use crate::connect::plan::{
    ConnectOptions, ConnectPlan, ConnectPlanError, ProxyHeader, RequestForm,
};
pub use crate::connect::proxy::{Proxy, ProxyError, ProxyRules, ProxyScheme, ProxyVariableError};
pub use crate::connect::resolve::{
    AddressFamily, Resolved, Resolver, ServiceRecord, ServiceRecords,
};
pub use crate::connect::resolve_override::{OverrideError, Overrides, ResolveOverride};
pub use crate::connect::stream::Stream;
pub use crate::connect::{ConnectFailure, Connection, Connector};
pub use crate::content_coding::decode::{DecodeError, DecodeLimits, Decoder};
pub use crate::content_coding::{Compressor, ContentCoding, encoded};
pub use crate::http1::{BegunExchange, Completed, Http1, Incomplete, Opening, ReadBuffer};
pub use crate::http2::{Driven, Http2, ResponseParts, Responses, require_http2};
pub use crate::http3::{
    Http3, Http3Connection, Http3Parts, Http3Request, QuicConfig, QuicError, QuicOptions,
};
pub use crate::redirect::{Redirect, RedirectError, Redirects};
pub use crate::request::{RedirectedError, Request, is_idempotent};
pub use crate::session::{
    CookieJar, CookiePlace, DigestAnswers, DigestLogin, Learning, Session, SessionPlan,
};
pub use crate::websocket::{RoundTrip, StreamUpgrade, Upgrade, WebSocket};
