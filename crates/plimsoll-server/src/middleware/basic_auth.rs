//! Passwords by the `Basic` scheme (RFC 7617), kept as hashes.
//!
//! Checking a hash is slow by intent, so it runs on a blocking thread, a few at a time, and a password
//! that was right is remembered by a keyed digest. A name that is not known takes as long as one that is.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

use crate::action::{Action, Answer, Outcome};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::middleware::password_hash::PasswordHash;

/// The accepted users.
pub struct BasicAuth {
    challenge: HeaderValue,
    users: HashMap<String, PasswordHash>,
    /// Checked for names that are not known.
    decoy: Option<PasswordHash>,
    key: hmac::Key,
    /// Digests of names with their passwords that were right.
    right: Mutex<HashSet<[u8; 32]>>,
    checks: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Checks under way at a time, and those that may wait for one.
const CHECKS: usize = 2;
const MOST_WAITING: usize = 64;

/// Passwords that are remembered.
const MOST_RIGHT: usize = 4096;

impl std::fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BasicAuth")
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

impl BasicAuth {
    /// - `realm`: what the password is for, as clients see it; quotes and backslashes are left out.
    /// - `users`: names with the hashes of their passwords.
    ///
    /// Fails only if the system has no randomness.
    pub fn new(
        realm: &str,
        users: HashMap<String, PasswordHash>,
    ) -> Result<Self, ring::error::Unspecified> {
        let realm: String = realm
            .chars()
            .filter(|it| matches!(it, ' '..='~') && !matches!(it, '"' | '\\'))
            .collect();
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Ok(Self {
            challenge: HeaderValue::try_from(challenge)
                .expect("only printable characters are left in it"),
            decoy: users.values().next().cloned(),
            users,
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?,
            right: Mutex::default(),
            checks: Arc::new(Semaphore::new(CHECKS)),
            waiting: AtomicUsize::new(0),
        })
    }

    fn digest(&self, name: &str, password: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        // A name has no colon.
        context.update(name.as_bytes());
        context.update(b":");
        context.update(password);
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }

    fn is_known(&self, digest: &[u8; 32]) -> bool {
        let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.contains(digest)
    }

    fn remember(&self, digest: [u8; 32]) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.len() >= MOST_RIGHT {
            right.clear();
        }
        right.insert(digest);
    }

    /// Whether a value of `authorization` was right lately, so that checking it costs nothing.
    pub fn remembers(&self, authorization: &[u8]) -> bool {
        credentials(authorization)
            .is_some_and(|(name, password)| self.is_known(&self.digest(&name, &password)))
    }

    /// Whether a value of `authorization` has a name with its password; `None` if too many checks wait.
    ///
    /// Must be called within a runtime of tokio.
    pub async fn admits(&self, authorization: &[u8]) -> Option<bool> {
        let Some((name, password)) = credentials(authorization) else {
            return Some(false);
        };
        let digest = self.digest(&name, &password);
        if self.is_known(&digest) {
            return Some(true);
        }
        let is_right = self.check(&name, password).await?;
        if is_right {
            self.remember(digest);
        }
        Some(is_right)
    }

    /// Whether the password is that of the name; nothing if too many checks wait.
    async fn check(&self, name: &str, password: Vec<u8>) -> Option<bool> {
        let waiting = WaiterGuard::new(&self.waiting)?;
        let permit = Arc::clone(&self.checks).acquire_owned().await.ok()?;
        drop(waiting);
        let known = self.users.get(name);
        let is_user = known.is_some();
        let hash = known.or(self.decoy.as_ref())?.clone();
        // A client that leaves meanwhile does not make room before the check is over.
        let check = tokio::task::spawn_blocking(move || {
            let is_right = hash.is_of(&password);
            drop(permit);
            is_right
        });
        let checked = check.await;
        Some(is_user && checked.unwrap_or(false))
    }

    fn challenge(&self) -> Response {
        Response::text(StatusCode::UNAUTHORIZED, "a password is needed\n")
            .with_field(WWW_AUTHENTICATE, self.challenge.clone())
    }
}

/// A place among those that wait.
struct WaiterGuard<'a>(&'a AtomicUsize);

impl<'a> WaiterGuard<'a> {
    fn new(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING).then_some(place)
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Name and password in a value of `authorization` (RFC 7617).
fn credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = value.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let mut decoded = BASE64_STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let password = decoded.split_off(colon + 1);
    decoded.pop();
    Some((String::from_utf8(decoded).ok()?, password))
}

/// Lets another action answer those who know a password.
pub(super) struct Guarded {
    auth: Arc<BasicAuth>,
    inner: Rc<dyn Action>,
}

impl Guarded {
    pub(super) fn new(auth: Arc<BasicAuth>, inner: Rc<dyn Action>) -> Self {
        Self { auth, inner }
    }
}

impl Action for Guarded {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let given = request.header("authorization").and_then(credentials);
        let Some((name, password)) = given else {
            return Answer::now(self.auth.challenge());
        };
        let digest = self.auth.digest(&name, &password);
        if self.auth.is_known(&digest) {
            request.sent_by(Rc::from(name));
            return self.inner.handle(request);
        }
        let (auth, inner) = (Arc::clone(&self.auth), Rc::clone(&self.inner));
        let kept = request.into_owned();
        Answer::Later(Box::pin(async move {
            match auth.check(&name, password).await {
                Some(true) => auth.remember(digest),
                Some(false) => return Outcome::Respond(auth.challenge()),
                None => {
                    let status = StatusCode::SERVICE_UNAVAILABLE;
                    let response =
                        Response::text(status, "too many passwords wait to be checked\n")
                            .with_field(RETRY_AFTER, HeaderValue::from_static("1"));
                    return Outcome::Respond(response);
                }
            }
            let request = kept.request();
            request.sent_by(Rc::from(name));
            let answer = inner.handle(&request);
            match answer {
                Answer::Now(outcome) => outcome,
                Answer::Later(later) => later.await,
            }
        }))
    }
}
