//! Connections that a proxy passes on: their real ends, by the header that they begin with.

use plimsoll_wire::{ProxiedEnds, ProxyHeader};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::counters::Cut;
use crate::worker::ConnectionGuard;

/// Bytes that are looked at at a time.
const LOOK: usize = 256;

/// Reads the header of `stream` and nothing behind it; both ends of the client's connection, where it names them.
pub(crate) async fn ends(
    stream: &mut TcpStream,
    place: &ConnectionGuard,
) -> Result<Option<ProxiedEnds>, Cut> {
    let timeout = place.worker.limits().header_timeout;
    tokio::time::timeout(timeout, header(stream))
        .await
        .unwrap_or(Err(Cut::HeaderTimeout))
}

async fn header(stream: &mut TcpStream) -> Result<Option<ProxiedEnds>, Cut> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; LOOK];
    loop {
        // Bytes behind the header are left for the next reader, such as TLS.
        let looked = stream.peek(&mut buffer).await;
        let Ok(length @ 1..) = looked else {
            return Err(Cut::ProxyHeader);
        };
        let before = seen.len();
        seen.extend_from_slice(&buffer[..length]);
        let found = ProxyHeader::parse(&seen).map_err(|_| Cut::ProxyHeader)?;
        let taken = found.map_or(length, |found| found.length - before);
        let read = stream.read_exact(&mut buffer[..taken]).await;
        read.map_err(|_| Cut::ProxyHeader)?;
        if let Some(found) = found {
            return Ok(found.ends);
        }
    }
}
