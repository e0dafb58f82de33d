//! The SETTINGS that a peer begins its control stream with (RFC 9114, section 7.2.4).

use super::{CONTROL, integer};

/// The type of the frame.
const SETTINGS: u64 = 0x4;

/// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220, section 3).
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Bytes that the frame may have to be looked at: a dozen settings exist, of at most 16 bytes each.
const MOST: usize = 4 * 1024;

/// Settings of a peer, as far as they are needed here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// Extended CONNECT is understood (RFC 9220).
    pub extended_connect: bool,
}

/// Finds SETTINGS in a stream in one direction, however its bytes are cut.
#[derive(Debug, Default)]
pub struct SettingsReader {
    bytes: Vec<u8>,
    is_over: bool,
}

impl SettingsReader {
    /// Takes bytes of the stream; returns the settings once, as soon as all of them came.
    ///
    /// Nothing for streams other than the control stream. Malformed settings count as nothing announced: the decoder of
    /// the stream reports them.
    pub fn read_bytes(&mut self, bytes: &[u8]) -> Option<PeerSettings> {
        if self.is_over {
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        let found = found(&self.bytes);
        if found == SettingsStep::Partial {
            return None;
        }
        self.is_over = true;
        self.bytes = Vec::new();
        match found {
            SettingsStep::Settings(settings) => Some(settings),
            SettingsStep::Partial | SettingsStep::Other => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum SettingsStep {
    Partial,
    Settings(PeerSettings),
    Other,
}

fn found(bytes: &[u8]) -> SettingsStep {
    let Some((stream, rest)) = integer(bytes) else {
        return SettingsStep::Partial;
    };
    if stream != CONTROL {
        return SettingsStep::Other;
    }
    let Some((kind, rest)) = integer(rest) else {
        return SettingsStep::Partial;
    };
    if kind != SETTINGS {
        return SettingsStep::Other;
    }
    let Some((length, rest)) = integer(rest) else {
        return SettingsStep::Partial;
    };
    let Some(length) = usize::try_from(length).ok().filter(|it| *it <= MOST) else {
        return SettingsStep::Other;
    };
    let Some(mut content) = rest.get(..length) else {
        return SettingsStep::Partial;
    };
    let mut settings = PeerSettings::default();
    while let Some((id, rest)) = integer(content)
        && let Some((value, rest)) = integer(rest)
    {
        content = rest;
        if id == ENABLE_CONNECT_PROTOCOL {
            settings.extended_connect = value == 1;
        }
    }
    SettingsStep::Settings(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_however_they_are_cut() {
        // Control stream, SETTINGS of 5 octets: 0x6 = 16383, 0x8 = 1; then a frame that follows.
        let bytes = [0, 4, 5, 6, 0x7f, 0xff, 8, 1, 0x21, 0];
        for cut in 0..8 {
            let mut reader = SettingsReader::default();
            assert_eq!(reader.read_bytes(&bytes[..cut]), None, "{cut}");
            let found = reader.read_bytes(&bytes[cut..]).unwrap();
            assert!(found.extended_connect, "{cut}");
            assert_eq!(reader.read_bytes(&bytes), None, "only once");
        }
    }

    #[test]
    fn what_is_not_announced_is_off_and_other_streams_have_none() {
        let mut reader = SettingsReader::default();
        let found = reader.read_bytes(&[0, 4, 2, 8, 0]);
        assert_eq!(found, Some(PeerSettings::default()));
        let mut encoder = SettingsReader::default();
        assert_eq!(encoder.read_bytes(&[2, 4, 2, 8, 1]), None);
        let mut endless = SettingsReader::default();
        assert_eq!(endless.read_bytes(&[0, 4, 0xbf, 0xff, 0xff, 0xff]), None);
        assert!(endless.bytes.is_empty());
    }
}
