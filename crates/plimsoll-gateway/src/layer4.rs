//! Forwarding without understanding: the bytes of TCP connections, and datagrams.
//!
//! Each kind is a handler of the serving engine's seams: [`tcp`] takes connections and may route them by what a TLS client
//! says first, [`udp`] takes datagrams, and
//! [`quic`] those of connections that end at the servers; [`relayed_quic`] ends connections here and begins others; [`tunnels`]
//! takes the streams of CONNECT requests. Servers, balancers and health are those of [`crate::upstream`].

mod attempts;

mod figures;

mod flows;

mod forwarding;

mod quic;

mod relay;

mod relayed_quic;

mod routes;

mod servers;

mod tcp;

mod tunnels;

mod udp;

pub(crate) use self::figures::Layer4Figures;
pub(crate) use self::flows::FlowLimits;
pub(crate) use self::forwarding::DatagramPlan;
pub(crate) use self::quic::{QuicHandler, ServerIds};
pub(crate) use self::relayed_quic::{RelayedQuicHandler, RelayedQuicPlan};
pub(crate) use self::routes::{TcpRoute, TcpRoutes};
pub(crate) use self::tcp::{TcpHandler, TcpPlan};
pub(crate) use self::tunnels::{TunnelTarget, Tunnels, TunnelsPlan};
pub(crate) use self::udp::UdpHandler;
