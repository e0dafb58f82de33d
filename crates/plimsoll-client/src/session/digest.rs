//! Digest authentication (RFC 7616): what a server demanded, answered with each request.

use http_auth::digest::Qop;
use http_auth::{DigestClient, PasswordParams, parse_challenges};
use plimsoll_model::Secret;

/// The user and password of digest authentication.
#[derive(Debug, Clone)]
pub struct DigestLogin {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// A user's last challenge by one server, and how often its nonce was used.
#[derive(Default)]
pub struct DigestAnswers {
    client: Option<DigestClient>,
}

impl std::fmt::Debug for DigestAnswers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DigestAnswers")
            .field(
                "nonce_count",
                &self.client.as_ref().map(DigestClient::nonce_count),
            )
            .finish_non_exhaustive()
    }
}

impl DigestAnswers {
    /// Takes the `WWW-Authenticate` fields of a response with status 401; returns whether the same request
    /// may be answered otherwise with an authorization of now.
    ///
    /// Of several challenges the first that is understood counts (section 3.7): MD5, SHA-256 and
    /// SHA-512-256 are, with `qop=auth` or with none, as RFC 2069 had it.
    ///
    /// - `was_answered`: whether the request had an authorization. Then only a nonce that was too old
    ///   is a reason to try again; anything else means that the password is wrong.
    pub fn challenge<'a>(
        &mut self,
        fields: impl Iterator<Item = &'a [u8]>,
        was_answered: bool,
    ) -> bool {
        let mut texts = fields.filter_map(|field| std::str::from_utf8(field).ok());
        let new = texts.find_map(|text| {
            let challenges = parse_challenges(text).ok()?;
            challenges.iter().find_map(|challenge| {
                let client = DigestClient::try_from(challenge).ok()?;
                (client.qop() & Qop::Auth).then_some(client)
            })
        });
        let Some(new) = new else {
            return false;
        };
        let is_stale = new.stale();
        self.client = Some(new);
        !was_answered || is_stale
    }

    /// The value of `Authorization` for the next request, once there was a challenge.
    ///
    /// - `target`: what stands in the request line, or `:path`.
    pub fn authorization(
        &mut self,
        login: &DigestLogin,
        method: &str,
        target: &str,
    ) -> Option<Secret> {
        let answer = self.client.as_mut()?.respond(&PasswordParams {
            username: &login.user,
            password: login.password.expose(),
            uri: target,
            method,
            body: None,
        });
        answer.ok().map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> DigestLogin {
        DigestLogin {
            user: "Mufasa".to_owned(),
            password: Secret::new("Circle of Life"),
        }
    }

    fn parameter<'a>(answer: &'a str, name: &str) -> &'a str {
        let mut parts = answer.trim_start_matches("Digest ").split(", ");
        let value = parts.find_map(|part| part.strip_prefix(&format!("{name}=")));
        value.unwrap_or_default().trim_matches('"')
    }

    /// The challenges of RFC 7616, section 3.9.1: the first is taken.
    #[test]
    fn the_first_challenge_that_is_understood_counts() {
        let fields: [&[u8]; 3] = [
            b"Digest realm=\"x\", qop=\"auth-int\", algorithm=MD5, nonce=\"n\"",
            b"Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
              nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe\"",
            b"Digest realm=\"http-auth@example.org\", algorithm=MD5, nonce=\"7ypf\"",
        ];
        let mut answers = DigestAnswers::default();
        assert!(answers.authorization(&login(), "GET", "/").is_none());
        assert!(answers.challenge(fields.into_iter(), false));
        for count in ["00000001", "00000002"] {
            let answer = answers
                .authorization(&login(), "GET", "/dir/index.html")
                .unwrap();
            let answer = answer.expose();
            assert_eq!(parameter(answer, "algorithm"), "SHA-256");
            assert_eq!(parameter(answer, "qop"), "auth");
            assert_eq!(parameter(answer, "nc"), count);
            assert_eq!(parameter(answer, "opaque"), "FQhe");
            assert_eq!(parameter(answer, "uri"), "/dir/index.html");
            assert_eq!(parameter(answer, "response").len(), 64);
        }
    }

    #[test]
    fn a_refused_answer_is_tried_again_only_if_its_nonce_was_old() {
        let challenge = |text: &'static str| std::iter::once(text.as_bytes());
        let mut answers = DigestAnswers::default();
        let plain = "Digest realm=\"r\", nonce=\"1\", qop=\"auth\"";
        assert!(answers.challenge(challenge(plain), false));
        assert!(!answers.challenge(challenge(plain), true));
        let stale = "Basic realm=\"r\", Digest realm=\"r\", nonce=\"2\", qop=\"auth\", stale=TRUE";
        assert!(answers.challenge(challenge(stale), true));
        let answer = answers.authorization(&login(), "GET", "/").unwrap();
        assert_eq!(parameter(answer.expose(), "nonce"), "2");
        assert_eq!(parameter(answer.expose(), "nc"), "00000001");
    }

    #[test]
    fn other_schemes_and_nonsense_are_no_challenge() {
        let mut answers = DigestAnswers::default();
        for text in [
            "",
            "Basic realm=\"r\"",
            "Digest",
            "Digest nonce=\"1\"",
            "Digest realm=\"r\", nonce=\"1\", algorithm=ROT13",
            "\u{1}",
        ] {
            assert!(
                !answers.challenge(std::iter::once(text.as_bytes()), false),
                "{text}"
            );
        }
    }
}
