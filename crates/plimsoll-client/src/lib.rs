//! The measuring client: resolve, connect, exchange with phase timings, judge.

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

pub mod chaos;

pub mod check;

pub mod grpc;

pub use crate::connect::address_filter::AddressFilter;
pub use crate::connect::credentials::basic_authorization;
pub use crate::connect::endpoint::{Endpoint, EndpointError, Pin, Scheme};
pub use crate::connect::no_proxy::{NoProxy, NoProxyError};
pub use crate::connect::plan::{
    ConnectOptions, ConnectPlan, ConnectPlanError, ProxyHeader, RequestForm,
};
pub use crate::connect::proxy::{Proxy, ProxyError, ProxyRules, ProxyScheme, ProxyVariableError};
pub use crate::connect::resolve::{AddressFamily, Resolved, Resolver};
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
