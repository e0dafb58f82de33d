//! Answers to the challenges that a server sends to one request of a script.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_client::forward::Fields;
use plimsoll_client::{DigestAnswers, DigestLogin, Endpoint, basic_authorization};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::ntlm::NtlmLogin;
use super::request::{Login, Target};

/// The state of authentication over the exchanges of one request.
#[derive(Debug)]
pub(super) struct Authentication {
    login: Login,
    digest: DigestAnswers,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No challenge was answered.
    First,
    /// The negotiate message of NTLM was sent, by this scheme.
    Negotiated(&'static str),
    Answered,
}

impl Authentication {
    pub(super) fn new(login: Login) -> Self {
        Self {
            login,
            digest: DigestAnswers::default(),
            step: Step::First,
        }
    }

    /// True if a response of that status is a step of authentication instead of a failure: the first 401, as in k6.
    pub(super) fn is_challenge(&self, status: u16) -> bool {
        self.login != Login::Basic && status == 401 && self.step == Step::First
    }

    /// The field `Authorization` to send the request again with; `None` if the response is final.
    ///
    /// - `fields`: of the response.
    pub(super) fn answer(
        &mut self,
        status: u16,
        fields: &Fields,
        method: &str,
        target: &Target,
    ) -> Option<String> {
        if status != 401 {
            return None;
        }
        let challenges = fields.iter();
        let challenges =
            challenges.filter(|(name, _)| name.eq_ignore_ascii_case(b"www-authenticate"));
        let challenges = challenges.map(|(_, value)| String::from_utf8_lossy(value));
        let challenges: Vec<_> = challenges.collect();
        let challenges: Vec<&str> = challenges.iter().map(AsRef::as_ref).collect();
        let endpoint = Endpoint::try_from(&target.url).ok()?;
        match self.login {
            Login::Basic => None,
            Login::Digest => self.digest(&challenges, method, &endpoint, target),
            Login::Ntlm => self.ntlm(&challenges, &endpoint),
        }
    }

    fn digest(
        &mut self,
        challenges: &[&str],
        method: &str,
        endpoint: &Endpoint,
        target: &Target,
    ) -> Option<String> {
        let challenges = challenges.iter().map(|value| value.as_bytes());
        let is_answered = self.step == Step::Answered;
        if !self.digest.challenge(challenges, is_answered) {
            return None;
        }
        self.step = Step::Answered;
        let (user, password) = endpoint.credentials()?;
        let login = DigestLogin {
            user: user.to_owned(),
            password: password.clone(),
        };
        let target = target.address.target();
        let answer = self.digest.authorization(&login, method, &target)?;
        Some(answer.expose().to_owned())
    }

    /// The order of go-ntlmssp, which k6 uses: no credentials, then the negotiate message, then the answer to the challenge; basic
    /// authentication where the server does not offer NTLM.
    fn ntlm(&mut self, challenges: &[&str], endpoint: &Endpoint) -> Option<String> {
        let (user, password) = endpoint.credentials()?;
        match self.step {
            Step::Answered => None,
            Step::First => {
                let scheme = SCHEMES.into_iter().find(|scheme| {
                    let mut challenges = challenges.iter();
                    challenges.any(|it| data(it, scheme).is_some())
                });
                let Some(scheme) = scheme else {
                    self.step = Step::Answered;
                    return Some(basic_authorization(user, password).expose().to_owned());
                };
                self.step = Step::Negotiated(scheme);
                Some(field(scheme, &NtlmLogin::negotiate()))
            }
            Step::Negotiated(scheme) => {
                self.step = Step::Answered;
                let challenge = challenges.iter().find_map(|it| data(it, scheme))?;
                let challenge = STANDARD.decode(challenge).ok()?;
                let login = NtlmLogin::new(user, password.expose());
                let nonce = crate::crypto::random().ok()?;
                let answer = login.authenticate(&challenge, SystemClock.wall(), nonce);
                Some(field(scheme, &answer.ok()?))
            }
        }
    }
}

/// In the order of preference.
const SCHEMES: [&str; 2] = ["NTLM", "Negotiate"];

/// What a challenge has behind its scheme.
fn data<'c>(challenge: &'c str, scheme: &str) -> Option<&'c str> {
    let (name, data) = challenge.split_once(' ').unwrap_or((challenge, ""));
    name.eq_ignore_ascii_case(scheme).then_some(data.trim())
}

fn field(scheme: &str, message: &[u8]) -> String {
    format!("{scheme} {}", STANDARD.encode(message))
}
