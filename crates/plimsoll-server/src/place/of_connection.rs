//! Values of places by the connection alone.

use std::io::Write as _;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::of_request::{address, number, optional};
use super::{Place, Values};
use crate::message::connection::ConnectionInfo;

impl Values for ConnectionInfo {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        match place {
            Place::Client => address(self.peer, out),
            Place::Peer => {
                write!(out, "{}", self.peer).expect("a vector takes every byte");
                true
            }
            Place::ClientPort => number(self.peer.port(), out),
            Place::ServerAddress => address(self.local, out),
            Place::Port => number(self.local.port(), out),
            Place::Connection => number(self.id, out),
            Place::ServerName => {
                let name = self.tls.as_ref().and_then(|it| it.server_name.as_deref());
                optional(name.map(str::as_bytes), out)
            }
            Place::TlsVersion => {
                let version = self.tls.as_ref().and_then(|it| it.version);
                optional(version.and_then(version_name).map(str::as_bytes), out)
            }
            Place::ClientCertificate(part) => match &self.tls {
                None => false,
                Some(tls) => part.write(tls, out),
            },
            Place::Time(form) => {
                form.write(SystemClock.wall(), out);
                true
            }
            Place::Map(map) => {
                map.write(self, out);
                true
            }
            // Templates for connections have no other places.
            _ => false,
        }
    }
}

fn version_name(version: rustls::ProtocolVersion) -> Option<&'static str> {
    match version {
        rustls::ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
        rustls::ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
        _ => None,
    }
}
