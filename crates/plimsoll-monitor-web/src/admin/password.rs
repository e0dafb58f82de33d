//! Passwords as Argon2id hashes (RFC 9106), checked off the worker, a few at a time.
//!
//! Each computation needs 19 MiB, which anyone can ask for by a sign-in. So there are two buffers, which are used again and
//! again, and a bounded number of attempts waits for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use plimsoll_model::Secret;
use ring::rand::{self, SystemRandom};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::random;

/// KiB, passes and lanes: the least that OWASP's password storage guide recommends.
const MEMORY: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Characters of a password.
pub(crate) const LEAST: usize = 10;
pub(crate) const MOST: usize = 200;

/// Computations under way at a time, each with a buffer of its own.
const BUFFERS: usize = 2;

/// Computations that wait for a buffer; one takes some 30 ms.
const MOST_WAITING: usize = 64;

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum HashFailure {
    /// The system refuses what a hash needs.
    #[error("the system has no random numbers or memory for a password hash")]
    System,
    /// Too many passwords wait.
    #[error("too many passwords wait to be checked; try again in a moment")]
    Busy,
}

/// A hash as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.
pub(crate) fn hash(password: &str) -> Result<String, HashFailure> {
    hash_in(&mut Buffer::default(), password)
}

/// The memory of a computation, which keeps its size.
#[derive(Default)]
struct Buffer(Vec<Block>);

fn hash_in(buffer: &mut Buffer, password: &str) -> Result<String, HashFailure> {
    let salt: [u8; 16] = rand::generate(&SystemRandom::new())
        .map_err(|_| HashFailure::System)?
        .expose();
    let costs = (MEMORY, PASSES, LANES);
    let tag = derive(buffer, password, &salt, costs).ok_or(HashFailure::System)?;
    let encoded = |bytes: &[u8]| BASE64_STANDARD_NO_PAD.encode(bytes);
    Ok(format!(
        "$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}${}${}",
        encoded(&salt),
        encoded(&tag)
    ))
}

fn derive(
    buffer: &mut Buffer,
    password: &str,
    salt: &[u8],
    (memory, passes, lanes): Costs,
) -> Option<[u8; 32]> {
    let parameters = Params::new(memory, passes, lanes, Some(32)).ok()?;
    let blocks = parameters.block_count();
    if buffer.0.len() < blocks {
        let missing = blocks - buffer.0.len();
        buffer.0.try_reserve_exact(missing).ok()?;
        buffer.0.resize(blocks, Block::new());
    }
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    let mut tag = [0; 32];
    let memory = buffer.0.get_mut(..blocks)?;
    argon
        .hash_password_into_with_memory(password.as_bytes(), salt, &mut tag, memory)
        .ok()?;
    Some(tag)
}

/// Whether a hash is of a password; false for what is no hash of ours.
fn is_of(buffer: &mut Buffer, hash: &str, password: &str) -> bool {
    let Some((costs, salt, expected)) = parse(hash) else {
        return false;
    };
    let Some(tag) = derive(buffer, password, &salt, costs) else {
        return false;
    };
    // In constant time.
    let difference = tag
        .iter()
        .zip(&expected)
        .fold(0, |all, (a, b)| all | (a ^ b));
    expected.len() == tag.len() && difference == 0
}

/// Memory in KiB, passes and lanes.
type Costs = (u32, u32, u32);

/// The costs, the salt and the tag. No hash of ours needs more memory than a buffer has.
fn parse(hash: &str) -> Option<(Costs, Vec<u8>, Vec<u8>)> {
    let rest = hash.strip_prefix("$argon2id$v=19$")?;
    let mut parts = rest.split('$');
    let (costs, salt, tag) = (parts.next()?, parts.next()?, parts.next()?);
    let mut numbers = costs
        .split(',')
        .zip(["m=", "t=", "p="])
        .map(|(cost, name)| cost.strip_prefix(name)?.parse().ok());
    let costs: Costs = (numbers.next()??, numbers.next()??, numbers.next()??);
    if costs.0 > MEMORY {
        return None;
    }
    let decoded = |text: &str| BASE64_STANDARD_NO_PAD.decode(text).ok();
    Some((costs, decoded(salt)?, decoded(tag)?))
}

/// Computes hashes in its buffers; clones are the same.
#[derive(Clone)]
struct Hasher(Arc<Buffers>);

struct Buffers {
    /// Those that are not in use.
    idle: Mutex<Vec<Buffer>>,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// How many buffers were ever made.
    made: AtomicUsize,
}

impl Hasher {
    fn new() -> Self {
        Self(Arc::new(Buffers {
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(BUFFERS)),
            waiting: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        }))
    }

    /// That of the process.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Hasher> = OnceLock::new();

        SHARED.get_or_init(Self::new)
    }

    /// Waits for its turn; fails if too many wait.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, HashFailure> {
        let waiting = Waiting::new(&self.0.waiting)?;
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        drop(waiting);
        permit.map_err(|_| HashFailure::Busy)
    }

    /// Runs a computation off the worker, in a buffer of its own.
    ///
    /// A client that leaves meanwhile does not make room before the computation is over.
    async fn run<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&mut Buffer) -> T + Send + 'static,
    ) -> Result<T, HashFailure> {
        let permit = self.turn().await?;
        let buffers = Arc::clone(&self.0);
        let computed = tokio::task::spawn_blocking(move || {
            let idle = || buffers.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let known = idle().pop();
            let mut buffer = known.unwrap_or_else(|| {
                buffers.made.fetch_add(1, Ordering::Relaxed);
                Buffer::default()
            });
            let computed = compute(&mut buffer);
            idle().push(buffer);
            drop(permit);
            computed
        });
        computed.await.map_err(|_| HashFailure::System)
    }
}

/// A place among those that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Result<Self, HashFailure> {
        let place = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
            Ok(place)
        } else {
            Err(HashFailure::Busy)
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Checks a password; an account that there is not takes as long as one that there is. Fails if too many wait.
pub(crate) async fn check(hash: Option<&Secret>, password: String) -> Result<bool, HashFailure> {
    check_in(Hasher::shared(), hash, password).await
}

async fn check_in(
    hasher: &Hasher,
    hash: Option<&Secret>,
    password: String,
) -> Result<bool, HashFailure> {
    static DECOY: OnceLock<String> = OnceLock::new();

    let known = hash.map(|hash| hash.expose().to_owned());
    let checking = hasher.run(move |buffer| {
        if let Some(known) = known {
            return is_of(buffer, &known, &password);
        }
        let decoy = DECOY.get_or_init(|| hash_in(buffer, "decoy").unwrap_or_default());
        is_of(buffer, decoy, &password);
        false
    });
    checking.await
}

/// A hash, made off the worker.
pub(crate) async fn hashed(password: String) -> Result<String, HashFailure> {
    let hasher = Hasher::shared();
    hasher.run(move |buffer| hash_in(buffer, &password)).await?
}

/// The error in a new password, if there is one.
pub(crate) fn problem(password: &str) -> Option<String> {
    let length = password.chars().count();
    (!(LEAST..=MOST).contains(&length))
        .then(|| format!("The password must have {LEAST} to {MOST} characters."))
}

/// A password of 100 random bits, in groups that can be read out.
pub(crate) fn generate() -> Result<String, HashFailure> {
    random::code(20, 5).ok_or(HashFailure::System)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_of(hash: &str, password: &str) -> bool {
        super::is_of(&mut Buffer::default(), hash, password)
    }

    #[test]
    fn a_hash_is_of_its_password_only() {
        let made = hash("correct horse").unwrap();
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(is_of(&made, "correct horse"));
        assert!(!is_of(&made, "correct horsf") && !is_of(&made, ""));
        assert_ne!(made, hash("correct horse").unwrap(), "salted");
        for broken in [
            "",
            "$argon2id$",
            "$2y$10$x",
            "$argon2id$v=19$m=1,t=0,p=9$AA$AA",
            "$argon2id$v=19$m=4000000,t=1,p=1$AAAAAAAAAAA$AAAA",
        ] {
            assert!(!is_of(broken, "x"), "{broken}");
        }
    }

    #[test]
    fn a_buffer_that_was_used_gives_the_same_hash() {
        let made = hash("one").unwrap();
        let mut buffer = Buffer::default();
        for password in ["other", "one", "", "one"] {
            let is_right = super::is_of(&mut buffer, &made, password);
            assert_eq!(is_right, password == "one", "{password}");
        }
    }

    /// RFC 9106's parameters with another implementation's output are in the crate's own tests; here the string is read
    /// as PHC has it.
    #[test]
    fn a_generated_password_is_long_enough() {
        let one = generate().unwrap();
        assert_eq!(one.len(), 23);
        assert!(problem(&one).is_none());
        assert_ne!(one, generate().unwrap());
        assert!(problem("short").is_some());
    }

    /// A runtime with more blocking threads than buffers, as a server has it.
    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(16)
            .build()
            .unwrap()
    }

    #[test]
    fn many_attempts_share_two_buffers() {
        // Of the least cost that there is: what is counted is memory, not time.
        let cheap = "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAA";
        let (hasher, secret) = (Hasher::new(), Secret::new(cheap));
        runtime().block_on(async {
            for _ in 0..30 {
                let all = (0..10).map(|_| check_in(&hasher, Some(&secret), "x".to_owned()));
                for checked in futures_util::future::join_all(all).await {
                    assert!(!checked.unwrap());
                }
            }
        });
        assert!(hasher.0.made.load(Ordering::Relaxed) <= BUFFERS);
        assert_eq!(hasher.0.permits.available_permits(), BUFFERS);
        assert_eq!(hasher.0.waiting.load(Ordering::Relaxed), 0);
        let idle = hasher.0.idle.lock().unwrap();
        let sizes: Vec<_> = idle.iter().map(|buffer| buffer.0.len()).collect();
        assert!(sizes.iter().all(|blocks| *blocks == 8), "{sizes:?}");
    }

    #[test]
    fn the_queue_is_bounded_and_who_leaves_makes_room() {
        let hasher = Hasher::new();
        runtime().block_on(async {
            let under_way = [hasher.turn().await.unwrap(), hasher.turn().await.unwrap()];
            let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| Box::pin(hasher.turn())).collect();
            for one in &mut waiting {
                assert!(one.now_or_never().is_none());
            }
            let refused = hasher.turn().await.unwrap_err();
            assert!(matches!(refused, HashFailure::Busy), "{refused}");
            waiting.pop();
            let mut again = Box::pin(hasher.turn());
            assert!((&mut again).now_or_never().is_none());
            drop(under_way);
            for one in waiting.into_iter().chain([again]) {
                drop(one.await.unwrap());
            }
        });
        assert_eq!(hasher.0.permits.available_permits(), BUFFERS);
    }
}
