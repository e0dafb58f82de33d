//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod watch;

pub mod files;

mod clock;

mod socket;

mod proxy_protocol;

mod quic;

pub mod tls;

pub mod http;

pub mod h1;

pub mod h2;

pub mod h3;

pub mod ws;

pub mod inflate;

pub mod sse;

pub mod fastcgi;

pub mod uwsgi;

pub mod process;

pub mod free_port;

mod background;

mod local;

pub mod network;

pub use crate::background::{Background, BackgroundTask};
pub use crate::clock::SystemClock;
pub use crate::clock::alarm::Alarm;
pub use crate::clock::timer_slack;
pub use crate::local::block_on_local;
pub use crate::process::memory::return_free_memory;
pub use crate::process::{cores, cpu_time, descriptors};
pub use crate::proxy_protocol::{ProxiedEnds, ProxyHeader, ProxyHeaderError, ProxyProtocol};
pub use crate::quic::header::{LongHeader, LongKind, QuicHeader, QuicHeaderError};
pub use crate::quic::retry::{InitialPacket, retry_packet, with_token};
pub use crate::quic::token::{RetryKey, RetryToken};
pub use crate::socket::datagram::{DatagramBuffer, DatagramPath, DatagramSocket, EcnCodepoint};
pub use crate::socket::handover::{receive_with_descriptors, send_with_descriptors};
pub use crate::socket::pacing::keep_from_pacing;
pub use crate::socket::raw_io::{
    poll_recv, poll_recv_spare, poll_send, poll_send_file, poll_send_more,
};
pub use crate::socket::relay::{RelayBuffer, RelayEnd, Relayed};
pub use crate::socket::splice::SplicePipe;
pub use crate::socket::steer::{NUMBERED_ID_BYTES, SOCKET_NUMBER_BYTES, steer_by_connection_id};
pub use crate::socket::upstream_sockets::{UpstreamSocket, UpstreamSockets};
pub use crate::socket::{Keepalive, SocketOptions, connect_tcp};
pub use crate::watch::folder_watch::{FolderNews, FolderWatch};
pub use crate::watch::watched_files::WatchedFiles;
