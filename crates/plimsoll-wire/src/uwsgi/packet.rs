//! The packet of a request: a header of four bytes, and names and values behind their lengths.

const HEADER_BYTES: usize = 4;

/// Bytes that the variables of a packet may have: its header has two bytes for their number.
pub const MOST_PACKET_BYTES: usize = u16::MAX as usize;

/// Appends the packet of a request to a buffer.
#[derive(Debug)]
pub struct UwsgiPacket<'a> {
    out: &'a mut Vec<u8>,
    /// Where it begins.
    start: usize,
    modifiers: [u8; 2],
    /// Bytes of the variables, also of those that have no room.
    bytes: usize,
}

/// Why variables are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the parameters of the request have {bytes} bytes, and uwsgi carries at most {MOST_PACKET_BYTES}: the fields or the path are too long"
)]
pub struct UwsgiPacketError {
    /// Bytes of the variables with their lengths.
    pub bytes: usize,
}

impl<'a> UwsgiPacket<'a> {
    /// Begins a packet.
    ///
    /// - `modifiers`: the first says for which plugin of the server it is, 0 for WSGI; what the second means depends on it.
    pub fn begin(out: &'a mut Vec<u8>, modifiers: [u8; 2]) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        Self {
            out,
            start,
            modifiers,
            bytes: 0,
        }
    }

    /// Appends a variable.
    pub fn variable(&mut self, name: &[u8], value: &[u8]) {
        for text in [name, value] {
            self.bytes = self.bytes.saturating_add(2).saturating_add(text.len());
            // One without room makes the whole packet fail.
            if let Ok(length) = u16::try_from(text.len())
                && self.bytes <= MOST_PACKET_BYTES
            {
                self.out.extend_from_slice(&length.to_le_bytes());
                self.out.extend_from_slice(text);
            }
        }
    }

    /// Ends the packet. Content follows. Fails if the variables are too long for one; the buffer is as it was then.
    pub fn finish(self) -> Result<(), UwsgiPacketError> {
        let Ok(length) = u16::try_from(self.bytes) else {
            self.out.truncate(self.start);
            return Err(UwsgiPacketError { bytes: self.bytes });
        };
        let [low, high] = length.to_le_bytes();
        let [first, second] = self.modifiers;
        self.out[self.start..self.start + HEADER_BYTES]
            .copy_from_slice(&[first, low, high, second]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Variables = Vec<(Vec<u8>, Vec<u8>)>;

    fn packet(
        modifiers: [u8; 2],
        variables: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<Vec<u8>, UwsgiPacketError> {
        let mut out = b"before".to_vec();
        let mut packet = UwsgiPacket::begin(&mut out, modifiers);
        for (name, value) in variables {
            packet.variable(name, value);
        }
        let finished = packet.finish();
        assert!(out.starts_with(b"before"));
        finished.map(|()| out.split_off(6))
    }

    /// Reads a packet as the protocol describes it; what is behind it remains.
    fn read(packet: &[u8]) -> Option<([u8; 2], Variables, &[u8])> {
        let (header, rest) = packet.split_first_chunk::<4>()?;
        let size = u16::from_le_bytes([header[1], header[2]]);
        let (mut variables, behind) = rest.split_at_checked(size.into())?;
        let mut text = || {
            let (length, rest) = variables.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            variables = rest;
            Some(text.to_vec())
        };
        let mut read = Vec::new();
        while let Some(name) = text() {
            read.push((name, text()?));
        }
        variables
            .is_empty()
            .then_some(([header[0], header[3]], read, behind))
    }

    #[test]
    fn a_packet_has_the_bytes_of_the_document() {
        let variables = [
            (b"QUERY_STRING".to_vec(), b"a=1".to_vec()),
            (b"A".to_vec(), Vec::new()),
        ];
        assert_eq!(
            packet([5, 7], &variables).unwrap(),
            b"\x05\x18\x00\x07\x0c\x00QUERY_STRING\x03\x00a=1\x01\x00A\x00\x00"
        );
        assert_eq!(packet([0, 0], &[]).unwrap(), [0; 4]);
    }

    #[test]
    fn what_is_too_long_for_a_packet_is_an_error() {
        let value = |length| [(b"A".to_vec(), vec![b'x'; length])];
        let most = MOST_PACKET_BYTES - 5;
        let whole = packet([0, 0], &value(most)).unwrap();
        assert_eq!(whole.len(), MOST_PACKET_BYTES + 4);
        for beyond in [most + 1, MOST_PACKET_BYTES + 1, 3 * MOST_PACKET_BYTES] {
            let error = packet([0, 0], &value(beyond)).unwrap_err();
            assert_eq!(error.bytes, beyond + 5);
        }
        let many = vec![(b"NAME".to_vec(), vec![b'x'; 1000]); 66];
        assert_eq!(
            packet([0, 0], &many).unwrap_err().to_string(),
            "the parameters of the request have 66528 bytes, and uwsgi carries at most 65535: the fields or the path are too long"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            modifiers in any::<[u8; 2]>(),
            variables in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..20), prop::collection::vec(any::<u8>(), 0..400)),
                0..300,
            ),
            content in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
            match packet(modifiers, &variables) {
                Ok(mut packet) => {
                    packet.extend_from_slice(&content);
                    prop_assert_eq!(read(&packet), Some((modifiers, variables, content.as_slice())));
                }
                Err(error) => {
                    prop_assert!(bytes > MOST_PACKET_BYTES);
                    prop_assert_eq!(error.bytes, bytes);
                }
            }
        }
    }
}
