//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod alarm;

mod clock;

mod pacing;

mod socket;

mod raw_io;

mod steer;

mod datagram;

mod proxy_protocol;

pub mod tls;

mod decimal;

pub mod http;

pub mod h1;

pub mod h2;

pub mod ws;

pub mod sse;

pub mod cores;

pub mod cpu_time;

pub mod descriptors;

pub mod process;

pub mod timer_slack;

mod watched_files;

pub mod network;

pub use crate::alarm::Alarm;
pub use crate::clock::SystemClock;
pub use crate::datagram::{DatagramPath, DatagramSocket, EcnCodepoint};
pub use crate::pacing::keep_from_pacing;
pub use crate::proxy_protocol::{ProxiedEnds, ProxyHeader, ProxyHeaderError, ProxyProtocol};
pub use crate::raw_io::{poll_recv, poll_recv_spare, poll_send, poll_send_file, poll_send_more};
pub use crate::socket::{Keepalive, SocketOptions, connect_tcp};
pub use crate::steer::{SOCKET_NUMBER_BYTES, steer_by_connection_id};
pub use crate::watched_files::WatchedFiles;
