//! A network namespace for this process alone: loopback only, with settings of its own.
//!
//! Linux only, by `network_namespaces(7)`; elsewhere it is refused by name.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as platform;

use std::io;

/// Why there is no network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The system does not let this process have one.
    #[error(
        "this process may not have a network namespace of its own: run it as root, or where unprivileged user \
         namespaces are allowed"
    )]
    NotPermitted(#[source] io::Error),
    /// Something on the way to it failed.
    #[error("cannot {step}")]
    Failed {
        /// The step that failed.
        step: String,
        /// The error of the system.
        source: io::Error,
    },
    /// This platform has none.
    #[error("network namespaces are there on Linux only")]
    Unsupported,
}

/// Moves the calling thread, and all threads and processes that it starts from now on, into a new
/// network namespace whose only interface is the loopback, and brings that up.
///
/// Call it before there are other threads. Without privileges a user namespace is made too.
///
/// - `settings`: names below `/proc/sys/net/`, such as `core/somaxconn`, and their values.
pub fn enter_own(settings: &[(&str, &str)]) -> Result<(), NetworkError> {
    platform::enter_own(settings)
}

/// The ports that the system gives to outgoing connections: how many there are to each peer.
pub fn ephemeral_ports() -> usize {
    platform::ephemeral_ports()
}
