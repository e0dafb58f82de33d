//! Takes the listening sockets of a running server over, and hands them on to the one that comes next.
//!
//! Both meet at a socket in the file system. The new process has checked its configuration before it connects; it gets
//! every listening socket, starts its workers, and only then reports that it is ready. Until then the old one serves as
//! before; without the report it goes on. After it the old one drains.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use plimsoll_server::{Engine, HandedOver, RelayLinks, Transport, UnixFile, bind_unix_socket};
use plimsoll_wire::{receive_with_descriptors, send_with_descriptors};
use serde_json::{Value, json};

/// How long the other process may take for its next message: the new one starts its workers meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first line of the new process; the version of what follows.
const REQUEST: &[u8] = b"plimsoll takeover 2";

/// The running server, which still serves.
#[derive(Debug)]
pub(super) struct Predecessor(UnixStream);

impl Predecessor {
    /// Connects to the server at `path`; there need not be one.
    pub(super) fn connect(path: &Path) -> io::Result<Option<Self>> {
        match UnixStream::connect(path) {
            Ok(stream) => {
                bounded(&stream)?;
                Ok(Some(Self(stream)))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Its listening sockets.
    pub(super) fn sockets(&self) -> io::Result<Vec<HandedOver>> {
        send_with_descriptors(&self.0, REQUEST, &[])?;
        let answer = receive_with_descriptors(&self.0)?;
        let (text, descriptors) = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut descriptors = descriptors.into_iter();
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "unexpected answer");
        let document: Value = serde_json::from_slice(&text).map_err(|_| invalid())?;
        let listeners = document["listeners"].as_array().ok_or_else(invalid)?;
        let listeners = listeners.iter().map(|listener| {
            let text = |key: &str| listener[key].as_str();
            let number = |key: &str| {
                let number = listener[key].as_u64();
                number.and_then(|number| usize::try_from(number).ok())
            };
            let transport = match text("transport")? {
                "tcp" => Transport::Tcp,
                "udp" => Transport::Udp,
                "quic" => Transport::Quic,
                _ => return None,
            };
            let sockets: Vec<_> = descriptors.by_ref().take(number("sockets")?).collect();
            let handed_over = HandedOver {
                transport,
                address: text("address")?.parse().ok()?,
                nth: number("nth")?,
                bound: text("bound")?.parse().ok()?,
                first: number("first")?,
                active: number("active")?,
                sockets,
                workers: number("workers")?,
            };
            (!handed_over.sockets.is_empty()).then_some(handed_over)
        });
        listeners.collect::<Option<_>>().ok_or_else(invalid)
    }

    /// Reports that this process serves; the other one drains then.
    ///
    /// - `links`: by which it gets datagrams of its sessions.
    pub(super) fn end(self, links: Vec<RelayLinks>) -> io::Result<()> {
        let mut descriptors = Vec::new();
        let links = links.into_iter().map(|it| {
            let count = it.links.len();
            descriptors.extend(it.links);
            json!({ "address": it.address.to_string(), "nth": it.nth, "links": count })
        });
        let document = json!({ "ready": links.collect::<Vec<_>>() });
        send_with_descriptors(&self.0, document.to_string().as_bytes(), &descriptors)
    }
}

/// Where the next process takes over from this one; its file goes with the value.
#[derive(Debug)]
pub(super) struct Successors {
    listener: UnixListener,
    _file: UnixFile,
}

impl Successors {
    /// Listens at `path`, in the place of a process that did before. No other user can connect.
    pub(super) fn listen(path: &Path) -> io::Result<Self> {
        let (listener, file) = bind_unix_socket(path, Some(0o600), true)?;
        Ok(Self {
            listener,
            _file: file,
        })
    }

    /// The socket to wait at.
    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

/// Hands the sockets of `engine` over; false if the other process did not come to serve.
pub(super) fn hand_over(stream: &UnixStream, engine: &Engine) -> io::Result<bool> {
    stream.set_nonblocking(false)?;
    bounded(stream)?;
    let request = receive_with_descriptors(stream)?;
    if request.is_none_or(|(text, _)| text != REQUEST) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the other process is of another version",
        ));
    }
    let mut descriptors = Vec::new();
    let listeners = engine.hand_over()?.into_iter().map(|listener| {
        let count = listener.sockets.len();
        descriptors.extend(listener.sockets);
        json!({
            "transport": match listener.transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
                Transport::Quic => "quic",
            },
            "address": listener.address.to_string(),
            "nth": listener.nth,
            "bound": listener.bound.to_string(),
            "first": listener.first,
            "active": listener.active,
            "sockets": count,
            "workers": listener.workers,
        })
    });
    let document = json!({ "listeners": listeners.collect::<Vec<_>>() });
    send_with_descriptors(stream, document.to_string().as_bytes(), &descriptors)?;
    let Some((text, descriptors)) = receive_with_descriptors(stream)? else {
        return Ok(false);
    };
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "unexpected report");
    let document: Value = serde_json::from_slice(&text).map_err(|_| invalid())?;
    let ready = document["ready"].as_array().ok_or_else(invalid)?;
    let mut descriptors = descriptors.into_iter();
    let links = ready.iter().map(|it| {
        let number = |key: &str| {
            let number = it[key].as_u64();
            number.and_then(|number| usize::try_from(number).ok())
        };
        Some(RelayLinks {
            address: it["address"].as_str()?.parse().ok()?,
            nth: number("nth")?,
            links: descriptors.by_ref().take(number("links")?).collect(),
        })
    });
    engine.follow(links.collect::<Option<_>>().ok_or_else(invalid)?);
    Ok(true)
}

fn bounded(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}
