//! An answer to a challenge, for as long as it is needed.

use instant_acme::{ChallengeType, KeyAuthorization};
use plimsoll_server::{AnsweringHttpChallenge, ChallengeKind, Challenges};
use plimsoll_wire::tls::{AnsweringChallenge, TlsChallengeError};

/// Answers until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "it is kept to be dropped")]
pub(super) enum Proof {
    Http(AnsweringHttpChallenge),
    TlsAlpn(AnsweringChallenge),
}

impl Proof {
    pub(super) fn new(
        kind: ChallengeKind,
        challenges: &Challenges,
        name: &str,
        token: &str,
        key: &KeyAuthorization,
    ) -> Result<Self, TlsChallengeError> {
        match kind {
            ChallengeKind::Http => Ok(Self::Http(challenges.http.answer(token, key.as_str()))),
            ChallengeKind::TlsAlpn => {
                let mut digest = [0; 32];
                let made = key.digest();
                for (byte, made) in digest.iter_mut().zip(made.as_ref()) {
                    *byte = *made;
                }
                challenges.tls.answer(name, &digest).map(Self::TlsAlpn)
            }
        }
    }
}

pub(super) fn kind(kind: ChallengeKind) -> ChallengeType {
    match kind {
        ChallengeKind::Http => ChallengeType::Http01,
        ChallengeKind::TlsAlpn => ChallengeType::TlsAlpn01,
    }
}
