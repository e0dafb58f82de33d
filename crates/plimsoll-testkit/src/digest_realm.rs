//! A server's side of digest authentication (RFC 7616) that lets nothing pass.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::logic::{Logic, Question, Reply};

/// Who may come in, and how often with one nonce.
#[derive(Debug)]
pub struct DigestRealm {
    /// `MD5` or `SHA-256`.
    pub algorithm: &'static str,
    /// The user's name.
    pub user: &'static str,
    /// The password.
    pub password: &'static str,
    /// Requests after which a nonce is too old.
    pub uses: u32,
}

/// The requests that a realm received.
#[derive(Debug, Default)]
pub struct DigestLog {
    /// Requests that were let in.
    pub welcome: u32,
    /// Requests without an authorization.
    pub unknown: u32,
    /// Requests with a nonce that was too old.
    pub stale: u32,
    /// Why any other request was refused.
    pub refused: Vec<String>,
    /// The uses of each nonce.
    nonces: HashMap<String, u32>,
}

impl DigestRealm {
    /// Answers every request according to the realm, and keeps a log.
    pub fn logic(self) -> (Logic, Arc<Mutex<DigestLog>>) {
        let log = Arc::new(Mutex::new(DigestLog::default()));
        let shared = Arc::clone(&log);
        let logic = Logic::new(move |question| {
            let mut log = shared.lock().expect("no holder panics");
            self.judge(question, &mut log)
        });
        (logic, log)
    }

    fn judge(&self, question: &Question, log: &mut DigestLog) -> Reply {
        let Some(authorization) = question.field("authorization") else {
            log.unknown += 1;
            return self.challenge(log, "");
        };
        match self.verify(question, authorization, log) {
            Ok(true) => {
                log.welcome += 1;
                Reply::new(200, &[])
            }
            Ok(false) => {
                log.stale += 1;
                self.challenge(log, ", stale=true")
            }
            Err(reason) => {
                log.refused.push(reason);
                self.challenge(log, "")
            }
        }
    }

    /// True if the nonce may still be used.
    fn verify(
        &self,
        question: &Question,
        authorization: &str,
        log: &mut DigestLog,
    ) -> Result<bool, String> {
        let parameters = authorization
            .strip_prefix("Digest ")
            .ok_or("another scheme")?;
        let parameters: HashMap<_, _> = parameters
            .split(", ")
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, value)| (name, value.trim_matches('"')))
            .collect();
        let value = |name: &str| {
            let value = parameters.get(name).copied();
            value.ok_or_else(|| format!("no {name} in {authorization}"))
        };
        let (nonce, count, uri) = (value("nonce")?, value("nc")?, value("uri")?);
        for (name, expected) in [
            ("username", self.user),
            ("realm", "the realm"),
            ("uri", &question.target),
            ("qop", "auth"),
            ("opaque", "the opaque"),
            ("algorithm", self.algorithm),
        ] {
            if value(name)? != expected {
                return Err(format!("{name} is not {expected} in {authorization}"));
            }
        }
        let first = self.hash(&format!("{}:the realm:{}", self.user, self.password));
        let second = self.hash(&format!("{}:{uri}", question.method));
        let expected = self.hash(&format!(
            "{first}:{nonce}:{count}:{}:auth:{second}",
            value("cnonce")?
        ));
        if value("response")? != expected {
            return Err(format!("wrong response in {authorization}"));
        }
        let used = log.nonces.get_mut(nonce).ok_or("a nonce of its own")?;
        *used += 1;
        if count != format!("{used:08x}") {
            return Err(format!("use {used} of the nonce, not {count}"));
        }
        Ok(*used <= self.uses)
    }

    fn challenge(&self, log: &mut DigestLog, stale: &str) -> Reply {
        let nonce = format!("nonce-{}", log.nonces.len());
        let challenge = format!(
            "Digest realm=\"the realm\", qop=\"auth, auth-int\", algorithm={}, \
             nonce=\"{nonce}\", opaque=\"the opaque\"{stale}",
            self.algorithm
        );
        log.nonces.insert(nonce, 0);
        Reply::new(401, &[("www-authenticate", &challenge)])
    }

    fn hash(&self, text: &str) -> String {
        let bytes = match self.algorithm {
            "MD5" => Md5::digest(text).to_vec(),
            _ => Sha256::digest(text).to_vec(),
        };
        let mut text = String::new();
        for byte in bytes {
            write!(text, "{byte:02x}").expect("a string takes what is written to it");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7616, section 3.9.1.
    #[test]
    fn hashes_are_those_of_the_rfc() {
        for (algorithm, expected) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let realm = DigestRealm {
                algorithm,
                user: "Mufasa",
                password: "Circle of Life",
                uses: 1,
            };
            let first = realm.hash("Mufasa:http-auth@example.org:Circle of Life");
            let second = realm.hash("GET:/dir/index.html");
            let response = realm.hash(&format!(
                "{first}:7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v:00000001:\
                 f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ:auth:{second}"
            ));
            assert_eq!(response, expected);
        }
    }
}
