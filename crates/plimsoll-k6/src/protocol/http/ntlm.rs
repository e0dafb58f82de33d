//! NTLM authentication (MS-NLMP), as `auth: "ntlm"` uses it: NTLM version 2, without signing.
//!
//! It authenticates a connection of HTTP/1.1: a negotiate message, the server's challenge, and the answer to it are exchanged
//! over the same one.

use std::time::SystemTime;

use md4::{Digest as _, Md4};

use crate::crypto::hmac_md5;

/// The user that a URL names.
#[derive(Debug, Clone)]
pub(crate) struct NtlmLogin {
    user: String,
    domain: String,
    password: String,
    /// Whether the server's own domain is used where the user names none. `user@domain` names one.
    takes_domain: bool,
}

/// Why a challenge cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the NTLM challenge of the server is invalid")]
pub(crate) struct InvalidChallenge;

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// Unicode, a target name in the challenge, NTLM, extended session security, target information, keys of 128 and 56 bits, and
/// signing always (section 2.2.2.5).
const FLAGS: u32 = 0x1 | 0x4 | 0x200 | 0x8000 | 0x8_0000 | 0x80_0000 | 0x2000_0000 | 0x8000_0000;

/// Flags of a challenge: Unicode, and target information.
const UNICODE: u32 = 0x1;
const TARGET_INFO: u32 = 0x80_0000;

/// The id of the server's time among the target information (section 2.2.2.1).
const TIMESTAMP: u16 = 7;

/// Between 1601 and 1970, in units of 100 ns.
const EPOCH: u64 = 116_444_736_000_000_000;

impl NtlmLogin {
    /// - `user`: `DOMAIN\user`, `user@domain` or the name alone.
    pub(crate) fn new(user: &str, password: &str) -> Self {
        let (domain, name) = match user.split_once('\\') {
            Some((domain, name)) => (domain, name),
            None => ("", user),
        };
        Self {
            user: name.to_owned(),
            domain: domain.to_owned(),
            password: password.to_owned(),
            takes_domain: domain.is_empty() && !user.contains('@'),
        }
    }

    /// The first message (section 2.2.1.1), without domain and workstation.
    pub(crate) fn negotiate() -> Vec<u8> {
        let mut message = SIGNATURE.to_vec();
        message.extend_from_slice(&1_u32.to_le_bytes());
        message.extend_from_slice(&FLAGS.to_le_bytes());
        message.extend_from_slice(&[0; 16]);
        message
    }

    /// The answer to a challenge (section 2.2.1.3).
    ///
    /// - `nonce`: random.
    pub(crate) fn authenticate(
        &self,
        challenge: &[u8],
        now: SystemTime,
        nonce: [u8; 8],
    ) -> Result<Vec<u8>, InvalidChallenge> {
        let challenge = Challenge::parse(challenge)?;
        let domain = if self.takes_domain {
            challenge.target.clone()
        } else {
            self.domain.clone()
        };
        let key = self.key(&domain);
        let time = challenge.time.unwrap_or_else(|| {
            let since = now.duration_since(SystemTime::UNIX_EPOCH);
            let units = since.unwrap_or_default().as_nanos() / 100;
            (EPOCH + u64::try_from(units).unwrap_or_default()).to_le_bytes()
        });
        // Servers that send their time expect no response of LM (section 3.1.5.1.2).
        let lm = if challenge.time.is_some() {
            vec![0; 24]
        } else {
            lm_response(&key, challenge.nonce, nonce)
        };
        let nt = nt_response(&key, challenge.nonce, nonce, time, &challenge.information);
        let (domain, user) = (wide(&domain), wide(&self.user));
        let parts = [lm, nt, domain, user, Vec::new(), Vec::new()];
        let mut message = SIGNATURE.to_vec();
        message.extend_from_slice(&3_u32.to_le_bytes());
        let mut offset = message.len() + parts.len() * 8 + 4;
        for part in &parts {
            let length = u16::try_from(part.len()).map_err(|_| InvalidChallenge)?;
            message.extend_from_slice(&length.to_le_bytes());
            message.extend_from_slice(&length.to_le_bytes());
            let at = u32::try_from(offset).map_err(|_| InvalidChallenge)?;
            message.extend_from_slice(&at.to_le_bytes());
            offset += part.len();
        }
        message.extend_from_slice(&(FLAGS & challenge.flags).to_le_bytes());
        message.extend(parts.concat());
        Ok(message)
    }

    /// The function `NTOWFv2` (section 3.3.2).
    fn key(&self, domain: &str) -> Vec<u8> {
        let hashed = Md4::digest(wide(&self.password));
        let name = wide(&(self.user.to_uppercase() + domain));
        hmac_md5(&hashed, &name)
    }
}

fn lm_response(key: &[u8], server: [u8; 8], nonce: [u8; 8]) -> Vec<u8> {
    let mut made = hmac_md5(key, &[server, nonce].concat());
    made.extend_from_slice(&nonce);
    made
}

fn nt_response(
    key: &[u8],
    server: [u8; 8],
    nonce: [u8; 8],
    time: [u8; 8],
    information: &[u8],
) -> Vec<u8> {
    let mut content = vec![1, 1, 0, 0, 0, 0, 0, 0];
    content.extend_from_slice(&time);
    content.extend_from_slice(&nonce);
    content.extend_from_slice(&[0; 4]);
    content.extend_from_slice(information);
    content.extend_from_slice(&[0; 4]);
    let mut made = hmac_md5(key, &[server.as_slice(), &content].concat());
    made.extend(content);
    made
}

/// The second message (section 2.2.1.2).
struct Challenge {
    flags: u32,
    nonce: [u8; 8],
    target: String,
    information: Vec<u8>,
    time: Option<[u8; 8]>,
}

impl Challenge {
    fn parse(message: &[u8]) -> Result<Self, InvalidChallenge> {
        let is_challenge =
            message.starts_with(SIGNATURE) && u32::from_le_bytes(array(message, 8)?) == 2;
        if !is_challenge {
            return Err(InvalidChallenge);
        }
        let flags = u32::from_le_bytes(array(message, 20)?);
        let target = part(message, 12)?;
        let target = if flags & UNICODE == 0 {
            String::from_utf8_lossy(target).into_owned()
        } else {
            let units = target.as_chunks::<2>().0.iter();
            let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
            String::from_utf16_lossy(&units)
        };
        let information = if flags & TARGET_INFO == 0 {
            &[]
        } else {
            part(message, 40)?
        };
        Ok(Self {
            flags,
            nonce: array(message, 24)?,
            target,
            information: information.to_vec(),
            time: time(information),
        })
    }
}

/// The server's time, if it is among its target information: pairs of an id, a length and a value.
fn time(mut information: &[u8]) -> Option<[u8; 8]> {
    loop {
        let id = u16::from_le_bytes(array(information, 0).ok()?);
        let length = usize::from(u16::from_le_bytes(array(information, 2).ok()?));
        let value = information.get(4..4 + length)?;
        match id {
            0 => return None,
            TIMESTAMP => return array(value, 0).ok(),
            _ => information = &information[4 + length..],
        }
    }
}

fn array<const N: usize>(message: &[u8], at: usize) -> Result<[u8; N], InvalidChallenge> {
    let bytes = message.get(at..at + N).ok_or(InvalidChallenge)?;
    bytes.try_into().map_err(|_| InvalidChallenge)
}

/// The bytes that a length and an offset at `at` describe.
fn part(message: &[u8], at: usize) -> Result<&[u8], InvalidChallenge> {
    let length = usize::from(u16::from_le_bytes(array(message, at)?));
    let start = u32::from_le_bytes(array(message, at + 4)?) as usize;
    let end = start.checked_add(length).ok_or(InvalidChallenge)?;
    message.get(start..end).ok_or(InvalidChallenge)
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;

    /// Section 4.2.4.
    const SERVER: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    const NONCE: [u8; 8] = [0xaa; 8];

    fn information() -> Vec<u8> {
        let mut pairs = Vec::new();
        for (id, value) in [(2_u16, "Domain"), (1, "Server")] {
            let value = wide(value);
            pairs.extend_from_slice(&id.to_le_bytes());
            pairs.extend_from_slice(&u16::try_from(value.len()).unwrap().to_le_bytes());
            pairs.extend(value);
        }
        pairs.extend_from_slice(&[0; 4]);
        pairs
    }

    fn challenge(information: &[u8]) -> Vec<u8> {
        let target = wide("Server");
        let length = u16::try_from(target.len()).unwrap().to_le_bytes();
        let of_information = u16::try_from(information.len()).unwrap().to_le_bytes();
        let flags = (FLAGS | UNICODE).to_le_bytes();
        let mut message = SIGNATURE.to_vec();
        message.extend_from_slice(&2_u32.to_le_bytes());
        message.extend([length, length].concat());
        message.extend_from_slice(&48_u32.to_le_bytes());
        message.extend_from_slice(&flags);
        message.extend_from_slice(&SERVER);
        message.extend_from_slice(&[0; 8]);
        message.extend([of_information, of_information].concat());
        message.extend_from_slice(&u32::try_from(48 + target.len()).unwrap().to_le_bytes());
        message.extend(target);
        message.extend_from_slice(information);
        message
    }

    #[test]
    fn responses_are_those_of_the_specification() {
        let key = NtlmLogin::new("User", "Password").key("Domain");
        assert_eq!(hex(&key), "0c868a403bfd7a93a3001ef22ef02e3f");
        assert_eq!(
            hex(&lm_response(&key, SERVER, NONCE)),
            "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"
        );
        let made = nt_response(&key, SERVER, NONCE, [0; 8], &information());
        assert_eq!(hex(&made[..16]), "68cd0ab851e51c96aabc927bebef6a1c");
    }

    #[test]
    fn an_answer_has_the_responses_and_the_names() {
        let login = NtlmLogin::new("Domain\\User", "Password");
        let since = SystemTime::UNIX_EPOCH;
        let message = login.authenticate(&challenge(&information()), since, NONCE);
        let message = message.unwrap();
        assert_eq!(message[8], 3);
        let lm = part(&message, 12).unwrap();
        assert_eq!(hex(lm), "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa");
        assert_eq!(part(&message, 28).unwrap(), wide("Domain"));
        assert_eq!(part(&message, 36).unwrap(), wide("User"));
        // The time of the server takes the place of the own one, and of the response of LM.
        let mut with_time = 7_u16.to_le_bytes().to_vec();
        with_time.extend_from_slice(&8_u16.to_le_bytes());
        with_time.extend_from_slice(&[5; 8]);
        with_time.extend(information());
        let message = login.authenticate(&challenge(&with_time), since, NONCE);
        let message = message.unwrap();
        assert_eq!(part(&message, 12).unwrap(), [0; 24]);
        assert_eq!(part(&message, 20).unwrap()[24..32], [5; 8]);
    }

    #[test]
    fn a_user_without_a_domain_is_one_of_the_server() {
        for (user, domain) in [("User", "Server"), ("user@example.com", ""), ("D\\u", "D")] {
            let login = NtlmLogin::new(user, "Password");
            let message = login.authenticate(&challenge(&[]), SystemTime::UNIX_EPOCH, NONCE);
            assert_eq!(part(&message.unwrap(), 28).unwrap(), wide(domain), "{user}");
        }
    }

    #[test]
    fn challenges_that_are_cut_off_are_rejected() {
        let whole = challenge(&information());
        let login = NtlmLogin::new("User", "Password");
        for length in 0..whole.len() {
            let cut = login.authenticate(&whole[..length], SystemTime::UNIX_EPOCH, NONCE);
            assert_eq!(cut, Err(InvalidChallenge), "{length} bytes");
        }
    }
}
