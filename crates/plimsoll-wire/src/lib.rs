//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod alarm;

mod clock;

mod pacing;

mod socket;

mod raw_io;

mod splice;

mod steer;

mod datagram;

mod upstream_sockets;

mod proxy_protocol;

mod quic_header;

pub mod tls;

mod decimal;

pub mod http;

pub mod h1;

pub mod h2;

pub mod h3;

pub mod ws;

pub mod sse;

pub mod cores;

pub mod cpu_time;

pub mod descriptors;

mod handover;

mod relay;

mod memory;

pub mod process;

pub mod timer_slack;

mod background;

mod watched_files;

mod folder_watch;

pub mod network;

pub use crate::alarm::Alarm;
pub use crate::background::{Background, BackgroundTask};
pub use crate::clock::SystemClock;
pub use crate::datagram::{DatagramBuffer, DatagramPath, DatagramSocket, EcnCodepoint};
pub use crate::folder_watch::{FolderNews, FolderWatch};
pub use crate::handover::{receive_with_descriptors, send_with_descriptors};
pub use crate::memory::return_free_memory;
pub use crate::pacing::keep_from_pacing;
pub use crate::proxy_protocol::{ProxiedEnds, ProxyHeader, ProxyHeaderError, ProxyProtocol};
pub use crate::quic_header::{LongHeader, LongKind, QuicHeader, QuicHeaderError};
pub use crate::raw_io::{poll_recv, poll_recv_spare, poll_send, poll_send_file, poll_send_more};
pub use crate::relay::{RelayBuffer, RelayEnd, Relayed};
pub use crate::socket::{Keepalive, SocketOptions, connect_tcp};
pub use crate::splice::SplicePipe;
pub use crate::steer::{NUMBERED_ID_BYTES, SOCKET_NUMBER_BYTES, steer_by_connection_id};
pub use crate::upstream_sockets::{UpstreamSocket, UpstreamSockets};
pub use crate::watched_files::WatchedFiles;
