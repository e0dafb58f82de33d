//! Passwords by the `Basic` scheme (RFC 7617), kept as hashes.
//!
//! Checking a hash is slow by intent, so it runs on a blocking thread, a few at a time, and a password
//! that was right is remembered by a keyed digest. A name that is not known takes as long as one that is.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use plimsoll_wire::WatchedFiles;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

use crate::action::{Action, Answer, Outcome};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::middleware::password_file::PasswordFile;
use crate::middleware::password_hash::PasswordHash;
use crate::worker::context::WorkerContext;

/// The accepted users.
pub struct BasicAuth {
    challenge: HeaderValue,
    users: Mutex<Users>,
    /// Where they are from beside the configuration, if they are.
    file: Option<PasswordFile>,
    key: hmac::Key,
    checks: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Names with the hashes of their passwords, which a file may replace.
#[derive(Default)]
struct Users {
    hashes: HashMap<String, PasswordHash>,
    /// The same hashes in an order: names that are not known are checked against one of these.
    decoys: Vec<PasswordHash>,
    /// Digests of names with their passwords that were right.
    right: HashSet<[u8; 32]>,
    /// Grows when the users are replaced.
    generation: u64,
}

/// Checks under way at a time, and those that may wait for one.
const CHECKS: usize = 2;
const MOST_WAITING: usize = 64;

/// Passwords that are remembered.
const MOST_RIGHT: usize = 4096;

/// How often a file is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl std::fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BasicAuth")
            .field("users", &self.users().hashes.len())
            .finish_non_exhaustive()
    }
}

impl Users {
    fn new(hashes: HashMap<String, PasswordHash>, generation: u64) -> Self {
        let mut sorted: Vec<_> = hashes.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let decoys = sorted.into_iter().map(|(_, hash)| hash.clone());
        Self {
            decoys: decoys.collect(),
            hashes,
            right: HashSet::new(),
            generation,
        }
    }

    /// The hash that a password is checked against, and whether it is that of the name. The same name has the same decoy:
    /// it takes as long as one of the users, of which there may be several kinds of hashes.
    ///
    /// - `digest`: of the name, with a key.
    fn hash(&self, name: &str, digest: &[u8; 32]) -> Option<(&PasswordHash, bool)> {
        if let Some(hash) = self.hashes.get(name) {
            return Some((hash, true));
        }
        let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let number = usize::try_from(u32::from_le_bytes(*first)).unwrap_or_default();
        let decoy = number.checked_rem(self.decoys.len())?;
        Some((self.decoys.get(decoy)?, false))
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
        Self::of_file(realm, users, None)
    }

    /// The same with the users of a file, which is read again when it changes.
    ///
    /// - `users`: all of them, those of the file included.
    pub(crate) fn of_file(
        realm: &str,
        users: HashMap<String, PasswordHash>,
        file: Option<PasswordFile>,
    ) -> Result<Self, ring::error::Unspecified> {
        let realm: String = realm
            .chars()
            .filter(|it| matches!(it, ' '..='~') && !matches!(it, '"' | '\\'))
            .collect();
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Ok(Self {
            challenge: HeaderValue::try_from(challenge)
                .expect("only printable characters are left in it"),
            users: Mutex::new(Users::new(users, 0)),
            file,
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?,
            checks: Arc::new(Semaphore::new(CHECKS)),
            waiting: AtomicUsize::new(0),
        })
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.users().right.contains(digest)
    }

    /// Remembers a password that is right by the users of that generation.
    fn remember(&self, digest: [u8; 32], generation: u64) {
        let mut users = self.users();
        if users.generation != generation {
            return;
        }
        if users.right.len() >= MOST_RIGHT {
            users.right.clear();
        }
        users.right.insert(digest);
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
        self.check(&name, password, digest).await
    }

    /// Whether the password is that of the name, which is remembered; nothing if too many checks wait.
    async fn check(&self, name: &str, password: Vec<u8>, digest: [u8; 32]) -> Option<bool> {
        let waiting = WaiterGuard::new(&self.waiting)?;
        let permit = Arc::clone(&self.checks).acquire_owned().await.ok()?;
        drop(waiting);
        let of_name = self.digest(name, b"");
        let (hash, is_user, generation) = {
            let users = self.users();
            match users.hash(name, &of_name) {
                Some((hash, is_user)) => (hash.clone(), is_user, users.generation),
                None => return Some(false),
            }
        };
        // A client that leaves meanwhile does not make room before the check is over.
        let check = tokio::task::spawn_blocking(move || {
            let is_right = hash.is_of(&password);
            drop(permit);
            is_right
        });
        let is_right = check.await.unwrap_or(false) && is_user;
        if is_right {
            self.remember(digest, generation);
        }
        Some(is_right)
    }

    /// Reads the file again when it changes, for as long as the configuration is served. One worker does.
    pub(crate) fn follow(self: &Arc<Self>, worker: &WorkerContext) {
        let Some(file) = self.file.clone().filter(|_| worker.worker() == 0) else {
            return;
        };
        let auth = Arc::clone(self);
        worker.spawn(async move {
            let mut watched = WatchedFiles::new(vec![file.path.clone()]);
            // It may have changed since the configuration was compiled.
            let mut is_due = true;
            loop {
                if is_due || watched.has_changed() {
                    let reading = file.clone();
                    let read = tokio::task::spawn_blocking(move || reading.read());
                    match read.await {
                        Ok(Ok(read)) => {
                            if auth.replace(read.users) {
                                file.report_left_out(&read.left_out);
                            }
                        }
                        Ok(Err(problems)) => file.report(&problems),
                        Err(_) => {}
                    }
                }
                is_due = false;
                tokio::time::sleep(LOOK).await;
            }
        });
    }

    /// Replaces the users, if they are others; whether they are. What was remembered of them is forgotten.
    fn replace(&self, hashes: HashMap<String, PasswordHash>) -> bool {
        let mut users = self.users();
        let are_others = users.hashes != hashes;
        if are_others {
            let generation = users.generation + 1;
            *users = Users::new(hashes, generation);
        }
        are_others
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
        let mut given = request.values("authorization");
        // Of two fields a server behind this one could take the other.
        let given = given.next().filter(|_| given.next().is_none());
        let Some((name, password)) = given.and_then(credentials) else {
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
            match auth.check(&name, password, digest).await {
                Some(true) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_known_are_checked_against_the_hash_of_a_user_always_the_same() {
        let hash = |text: &str| PasswordHash::parse(text).unwrap();
        let users = [
            ("ann", "{PLAIN}a"),
            ("bob", "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"),
        ];
        let users = users.map(|(name, text)| (name.to_owned(), hash(text)));
        let auth = BasicAuth::new("r", users.into_iter().collect()).unwrap();
        let users = auth.users();
        let chosen = |name: &str| {
            let digest = auth.digest(name, b"");
            let (hash, is_user) = users.hash(name, &digest).unwrap();
            (hash.clone(), is_user)
        };
        assert_eq!(chosen("ann"), (hash("{PLAIN}a"), true));
        let names: Vec<_> = (0..64).map(|number| format!("x{number}")).collect();
        let mut plain = 0;
        for name in &names {
            let (decoy, is_user) = chosen(name);
            assert!(!is_user);
            assert_eq!(decoy, chosen(name).0);
            plain += usize::from(decoy == hash("{PLAIN}a"));
        }
        assert!((8..56).contains(&plain), "both kinds are used: {plain}");
        assert!(Users::default().hash("x", &[0; 32]).is_none());
    }
}
