//! UDP: a datagram, and the answer to it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Side};
use tokio::net::UdpSocket;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::tcp::MOST_READ;
use crate::probe::{Probe, ProbeFuture};

/// Sends a datagram.
#[derive(Debug)]
pub struct UdpProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// The datagram to send; then a response is awaited. Without it, the check only finds whether a route exists.
    pub send: Option<Vec<u8>>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for UdpProbe {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            let peer = match resolve(&self.target, &self.reach, context, reading).await {
                Ok(peer) => peer,
                Err(failure) => {
                    reading.failure = Some(failure);
                    return;
                }
            };
            reading.peer = Some(peer.ip());
            let begun = context.clock.now();
            match exchange(peer, self.send.as_deref()).await {
                Ok(body) => {
                    let waited = context.clock.now().saturating_duration_since(begun);
                    reading.phases.set(Phase::Wait, waited);
                    reading.connected = true;
                    reading.size = body.len() as u64;
                    reading.body = body;
                }
                Err(error) => reading.failure = Some(Failure::from_io(Phase::Wait, &error)),
            }
        }))
    }
}

/// Sends a datagram, and receives the answer to it.
pub(super) async fn exchange(peer: SocketAddr, send: Option<&[u8]>) -> std::io::Result<Vec<u8>> {
    let socket = bound_for(peer).await?;
    socket.connect(peer).await?;
    let Some(send) = send else {
        return Ok(Vec::new());
    };
    socket.send(send).await?;
    let mut buffer = vec![0; MOST_READ];
    let length = socket.recv(&mut buffer).await?;
    buffer.truncate(length);
    Ok(buffer)
}

/// A socket of the family of `peer`.
pub(super) async fn bound_for(peer: SocketAddr) -> std::io::Result<UdpSocket> {
    match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await,
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await,
    }
}

/// The first allowed address of a target, with the phase that finding it took.
pub(super) async fn resolve(
    target: &TcpTarget,
    reach: &Reach,
    context: &ProbeContext,
    reading: &mut Reading,
) -> Result<SocketAddr, Failure> {
    let begun = context.clock.now();
    let endpoint = target.endpoint();
    let resolver = reach.resolver();
    let found = resolver.resolve(&endpoint.host(), endpoint.port()).await?;
    if found.looked_up {
        let took = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Dns, took);
    }
    let mut addresses = found.addresses.into_iter();
    let allowed = |ip| {
        let address = SocketAddr::new(ip, endpoint.port());
        reach.allows(address).then_some(address)
    };
    addresses.find_map(allowed).ok_or_else(|| {
        let cause = format!("{} has no allowed address", endpoint.host());
        Failure::new(Phase::Dns, FailureKind::Refused)
            .on(Side::Config)
            .because(cause)
    })
}
