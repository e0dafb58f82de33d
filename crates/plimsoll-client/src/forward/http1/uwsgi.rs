//! An exchange by uwsgi: its request is a packet with the content behind it, its response one of HTTP/1 until the connection ends.

use std::borrow::Cow;

use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_wire::h1::BodyLength;
use plimsoll_wire::uwsgi::{UwsgiPacket, as_http1};

use super::cgi::{content_length, each_parameter};
use crate::forward::head::Head;
use crate::forward::pool::Destination;

/// Appends the packet of a request. Fails, and appends nothing, if the length of the content is not known, or if there are too many
/// parameters for a packet.
pub(super) fn encode(
    out: &mut Vec<u8>,
    destination: &Destination,
    head: &Head<'_>,
    length: BodyLength,
) -> Result<(), Failure> {
    let length = content_length(length, "uwsgi")?;
    let mut packet = UwsgiPacket::begin(out, head.modifiers);
    each_parameter(destination, head, &length, &mut |name, value| {
        packet.variable(name, value);
    });
    packet.finish().map_err(|error| {
        let failure = Failure::new(Phase::Send, FailureKind::TooLarge);
        failure.on(Side::Ours).because(error.to_string())
    })
}

/// The beginning of a response, until it is known which kind of head it has.
#[derive(Debug, Default)]
pub(super) struct ResponseStart {
    bytes: Vec<u8>,
    is_over: bool,
}

impl ResponseStart {
    /// What was read as bytes of HTTP/1; `None` while more is needed.
    pub(super) fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Failure> {
        if self.is_over {
            return Ok(Some(Cow::Borrowed(bytes)));
        }
        self.bytes.extend_from_slice(bytes);
        let start = as_http1(&self.bytes).map_err(|error| {
            let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
            failure.because(error.to_string())
        })?;
        let Some(start) = start else {
            return Ok(None);
        };
        let start = start.into_owned();
        self.is_over = true;
        self.bytes = Vec::new();
        Ok(Some(Cow::Owned(start)))
    }
}
