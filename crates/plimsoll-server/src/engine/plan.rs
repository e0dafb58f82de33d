//! The plan of an engine: listeners, their addresses and what they serve.

use std::fmt;
use std::sync::Arc;

use ipnet::IpNet;
use plimsoll_wire::RetryKey;
use plimsoll_wire::tls::OnDemandCertificates;

use crate::action::MakeAction;
use crate::engine::address::Address;
use crate::engine::inherited::Inherited;
use crate::engine::listener::Transport;
use crate::layer4::{MakeDatagramHandler, MakeStreamHandler, QuicPlan, raw_config};
use crate::limits::Limits;
use crate::quic::{NoTls13, server_config};

/// The plan of an engine.
#[derive(Debug, Clone)]
pub struct EnginePlan {
    /// Workers, each a thread with its own runtime; at least one.
    pub threads: usize,
    /// Binds each worker to one core.
    pub pin: bool,
    /// Address and purpose of a listener.
    pub listeners: Vec<ListenerPlan>,
    /// Limits for clients.
    pub limits: Limits,
    /// Sockets that the program was started with.
    pub inherited: Arc<Inherited>,
}

impl EnginePlan {
    /// One worker that is bound to no core, with the limits that hold by default.
    pub fn new(listeners: Vec<ListenerPlan>) -> Self {
        Self {
            threads: 1,
            pin: false,
            listeners,
            limits: Limits::default(),
            inherited: Arc::default(),
        }
    }
}

/// One listener.
#[derive(Clone)]
pub struct ListenerPlan {
    /// Address.
    pub address: Address,
    /// Permissions of a socket in the file system, such as `0o660`.
    pub mode: Option<u32>,
    /// Another process may listen there too and share the connections, as during a restart. A socket in the file
    /// system takes the place of that of the other process.
    pub shares_port: bool,
    /// Networks of proxies whose connections begin with a PROXY header; others are served as themselves.
    pub proxied_by: Vec<IpNet>,
    /// It stays open during a drain, so that the state of the drain can be read.
    pub is_last: bool,
    /// Certificates that are ordered when a client first requests them: its handshake waits for them, within the time
    /// that handshakes have.
    pub on_demand: Option<OnDemandCertificates>,
    /// The service at that address.
    pub serves: Serves,
}

impl ListenerPlan {
    /// A listener that clients reach directly at its port.
    pub fn new(address: impl Into<Address>, serves: Serves) -> Self {
        Self {
            address: address.into(),
            mode: None,
            shares_port: false,
            proxied_by: Vec::new(),
            is_last: false,
            on_demand: None,
            serves,
        }
    }
}

/// The kinds of services.
#[derive(Clone)]
pub enum Serves {
    /// HTTP/1 and, if wanted, HTTP/2: over TLS by ALPN, in the clear by prior knowledge.
    Http {
        /// Answers the requests.
        action: Arc<MakeAction>,
        /// Encrypts, if present; its ALPN protocols are set by the listener.
        tls: Option<Arc<rustls::ServerConfig>>,
        /// Speaks HTTP/2 too.
        http2: bool,
        /// Speaks HTTP/3 too, at the UDP port of the same number; only with `tls`.
        http3: Option<Http3Plan>,
    },
    /// Whole connections.
    Stream {
        /// Serves them.
        handler: Arc<MakeStreamHandler>,
        /// Ends TLS first, if present.
        tls: Option<Arc<rustls::ServerConfig>>,
    },
    /// Datagrams.
    Datagram(Arc<MakeDatagramHandler>),
    /// Connections of QUIC, of another protocol than HTTP/3.
    Quic(QuicPlan),
}

/// Settings of HTTP/3 beside HTTP/1 and HTTP/2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Http3Plan {
    /// The UDP port that is advertised to clients, where it is not that of the socket.
    pub advertised: Option<u16>,
    /// The key that it shares with a gateway that sends clients Retry packets.
    pub retry_key: Option<RetryKey>,
}

impl Serves {
    /// Whole connections, without TLS.
    pub fn stream(handler: Arc<MakeStreamHandler>) -> Self {
        Self::Stream { handler, tls: None }
    }

    /// HTTP/1 and HTTP/2 in the clear.
    pub fn clear(action: Arc<MakeAction>) -> Self {
        Self::Http {
            action,
            tls: None,
            http2: true,
            http3: None,
        }
    }

    /// Transport settings of QUIC with `limits`, if the listener has QUIC.
    pub(super) fn quic(&self, limits: &Limits) -> Result<Option<quinn::ServerConfig>, NoTls13> {
        match self {
            Self::Http {
                tls: Some(tls),
                http3: Some(http3),
                ..
            } => server_config(tls, limits, http3.retry_key.as_ref()).map(Some),
            Self::Quic(plan) => raw_config(plan).map(Some),
            Self::Http { .. } | Self::Stream { .. } | Self::Datagram(_) => Ok(None),
        }
    }

    /// The scheme of the address for clients: `http`, `https`, `tcp` or `udp`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Http { tls: None, .. } => "http",
            Self::Http { tls: Some(_), .. } => "https",
            Self::Stream { .. } => "tcp",
            Self::Datagram(_) | Self::Quic(_) => "udp",
        }
    }

    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Http { .. } | Self::Stream { .. } => Transport::Tcp,
            Self::Datagram(_) => Transport::Udp,
            Self::Quic(_) => Transport::Quic,
        }
    }
}

impl fmt::Debug for ListenerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.serves, self.address)
    }
}

impl fmt::Debug for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl EnginePlan {
    /// The keys by which a reload recognises the listeners, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        fn place(listener: &ListenerPlan) -> (Transport, &Address) {
            (listener.serves.transport(), &listener.address)
        }
        self.listeners
            .iter()
            .enumerate()
            .map(move |(at, listener)| {
                let earlier = self.listeners.iter().take(at);
                let nth = earlier.filter(|it| place(it) == place(listener)).count();
                let (transport, address) = place(listener);
                (transport, address.clone(), nth)
            })
    }
}

/// Where a plan listens, and the number of the listener there (each port 0 is another one): what a reload
/// recognises a listener by.
pub(crate) type Key = (Transport, Address, usize);
