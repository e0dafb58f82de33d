//! Test origins with faults, certificates and waiting helpers for plimsoll's tests.
//!
//! An [`Origin`] is a server on a port of its own, in a thread of its own, whose every step on a
//! connection is scripted; [`TestProxy`] stands between; a [`NameServer`] knows the
//! names of the test; an [`Authority`] issues certificates, good
//! and bad; [`services`] starts PostgreSQL and ClickHouse, [`NatsServer`] a broker, [`PhpApplication`] PHP behind FastCGI; [`IdentityProvider`] signs tokens; [`http`] is a client of bare bytes; [`VirtualClock`] and [`eventually`] replace sleeping. Everything binds to the loopback
//! and ends when it is dropped. [`UwsgiApplication`] is Python behind uwsgi.
//!
//! Written for tests: it panics where a test could only fail anyway.

mod allocations;

mod authorization;

mod background;

mod certificates;

mod clock;

mod digest_realm;

pub mod http;

mod identity_provider;

mod logic;

mod mail;

mod nats;

mod php;

mod uwsgi;

mod name_server;

mod origin;

mod proxy;

pub mod services;

mod seeds;

mod token_bucket;

mod unreachable;

use plimsoll_wire::free_port;

mod waiting;
pub use crate::allocations::{
    CountingAllocator, allocations_of_this_thread, peak_bytes_of, take_peak_of_this_thread,
};
pub use crate::authorization::{authorization_service, user_echo};
pub use crate::certificates::{Authority, Leaf, MaterialFiles};
pub use crate::clock::VirtualClock;
pub use crate::digest_realm::{DigestLog, DigestRealm};
pub use crate::free_port::{free_port, free_ports};
pub use crate::identity_provider::{IdentityProvider, ProviderState, RSA_TEST_KEY};
pub use crate::logic::{Logic, Question, Reply};
pub use crate::mail::{MailReceiver, StartTlsSession, login_server, mail_server, starttls_server};
pub use crate::name_server::{NameServer, NameServerBuilder, NamedService};
pub use crate::nats::NatsServer;
pub use crate::origin::http2_origin::{Http2Answer, Http2Origin, Http2OriginBuilder, frames};
pub use crate::origin::http3_origin::{Http3Answer, Http3Origin, Http3OriginBuilder};
pub use crate::origin::websocket_origin::{WebSocketAnswer, WebSocketHandshake, WebSocketOrigin};
pub use crate::origin::{HELLO, Origin, OriginBuilder, Script, Step};
pub use crate::php::PhpApplication;
pub use crate::proxy::{ProxyRequest, TestProxy, TestProxyBuilder};
pub use crate::seeds::{cases, seed};
pub use crate::token_bucket::{LeakyBucket, TokenBucket};
pub use crate::unreachable::{FullBacklog, ipv6_available, refused_address};
pub use crate::uwsgi::UwsgiApplication;
pub use crate::waiting::{eventually, eventually_or, until};
