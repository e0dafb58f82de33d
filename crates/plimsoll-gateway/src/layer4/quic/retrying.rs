//! Clients that are sent back to prove their address before a flow begins.
//!
//! The token of a client is bound to its address, which the server does not see: the server reads another one, bound to
//! the socket of the flow. So the token in the client's first packets is exchanged, until the server has answered.

use std::collections::HashMap;
use std::net::SocketAddr;

use plimsoll_model::Clock as _;
use plimsoll_server::Datagram;
use plimsoll_wire::{
    EcnCodepoint, InitialPacket, LongHeader, LongKind, RetryKey, RetryToken, SystemClock,
    retry_packet, with_token,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::super::figures::Dropped;
use super::super::flows::Index;

/// Limit on datagrams of a client that wait for the socket of its flow, which opens within the same event.
const MOST_WAITING: usize = 4;

/// Bytes of the connection ID that a client goes on with.
const ID: usize = 8;

/// What a client without a flow gets.
pub(super) enum Admitted {
    /// A flow; the connection ID of the packet that was answered by Retry, if one was.
    Flow(Option<Vec<u8>>),
    /// A Retry packet.
    Retry(Vec<u8>),
}

/// Whether a client may begin a connection.
pub(super) fn admit(
    key: &RetryKey,
    header: &LongHeader<'_>,
    datagram: &Datagram<'_>,
) -> Result<Admitted, Dropped> {
    if header.kind != LongKind::Initial {
        // A version that the gateway cannot parse: the server negotiates another one.
        return Ok(Admitted::Flow(None));
    }
    let packet = InitialPacket::parse(datagram.bytes).ok_or(Dropped::Malformed)?;
    let now = SystemClock.wall();
    match key.read(packet.token()) {
        Some(token) if token.is_of(datagram.peer, now) => Ok(Admitted::Flow(Some(token.original))),
        Some(_) => Err(Dropped::RetryToken),
        // No token, or one of an earlier connection, which only the server can read.
        None => {
            let random: [u8; ID + 16] = random().ok_or(Dropped::Retry)?;
            let (ours, random) = random.split_first_chunk::<ID>().ok_or(Dropped::Retry)?;
            let token = RetryToken {
                address: datagram.peer,
                original: header.destination.to_vec(),
                issued: now,
            };
            let (random, first) = (random.try_into().unwrap_or_default(), ours[0]);
            let token = key.for_client(&token, random);
            let ids = (header.destination, header.source, &ours[..]);
            let packet = retry_packet(header.version, ids, &token, first);
            packet.map(Admitted::Retry).ok_or(Dropped::Malformed)
        }
    }
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

/// Flows whose server has not answered yet.
#[derive(Debug, Default)]
pub(super) struct Exchanges(HashMap<Index, Exchange>);

#[derive(Debug)]
struct Exchange {
    original: Vec<u8>,
    /// The token for the server, once the socket is open.
    token: Option<Vec<u8>>,
    waiting: Vec<(Option<EcnCodepoint>, Vec<u8>)>,
}

/// What becomes of a datagram.
pub(super) enum Exchanged {
    /// It is forwarded as it is.
    Same,
    /// It is forwarded with another token.
    Other(Vec<u8>),
    /// It waits for the socket, or cannot be decrypted.
    Nothing,
}

impl Exchanges {
    pub(super) fn begin(&mut self, index: Index, original: Vec<u8>) {
        let exchange = Exchange {
            original,
            token: None,
            waiting: Vec::new(),
        };
        self.0.insert(index, exchange);
    }

    pub(super) fn end(&mut self, index: Index) {
        if !self.0.is_empty() {
            self.0.remove(&index);
        }
    }

    /// The datagrams that waited for the socket of a flow, which has this address.
    pub(super) fn opened(
        &mut self,
        index: Index,
        local: SocketAddr,
        key: &RetryKey,
    ) -> Vec<(Option<EcnCodepoint>, Vec<u8>)> {
        let (Some(exchange), Some(random)) = (self.0.get_mut(&index), random()) else {
            return Vec::new();
        };
        let token = RetryToken {
            address: local,
            original: exchange.original.clone(),
            issued: SystemClock.wall(),
        };
        let token = key.for_server(&token, random);
        let waiting = std::mem::take(&mut exchange.waiting).into_iter();
        let exchanged = waiting.filter_map(|(ecn, bytes)| Some((ecn, with_token(&bytes, &token)?)));
        let exchanged = exchanged.collect();
        exchange.token = Some(token);
        exchanged
    }

    pub(super) fn exchange(&mut self, index: Index, datagram: &Datagram<'_>) -> Exchanged {
        if self.0.is_empty() {
            return Exchanged::Same;
        }
        let Some(exchange) = self.0.get_mut(&index) else {
            return Exchanged::Same;
        };
        let Some(token) = &exchange.token else {
            if exchange.waiting.len() < MOST_WAITING {
                let waiting = (datagram.ecn, datagram.bytes.to_vec());
                exchange.waiting.push(waiting);
            }
            return Exchanged::Nothing;
        };
        with_token(datagram.bytes, token).map_or(Exchanged::Nothing, Exchanged::Other)
    }
}
