//! The hashes `$1$` and `$apr1$`, which nginx, Apache and `openssl passwd` know: MD5 a thousand times, as FreeBSD's `crypt`
//! and Apache's `apr_md5_encode` do it.

use md5::{Digest as _, Md5};

use super::is_same;

/// Rounds of both.
const ROUNDS: usize = 1000;

/// Digits of the encoding, the least significant first.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The hash of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Md5Hash {
    magic: &'static str,
    /// At most eight characters.
    salt: String,
    /// The digest as it is written.
    encoded: String,
}

impl Md5Hash {
    /// `$apr1$SALT$DIGEST` or `$1$SALT$DIGEST`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let magic = ["$apr1$", "$1$"]
            .into_iter()
            .find(|it| text.starts_with(it))?;
        let (salt, encoded) = text.strip_prefix(magic)?.split_once('$')?;
        let is_written = |it: &str| it.bytes().all(|byte| DIGITS.contains(&byte));
        let is_whole = encoded.len() == 22 && is_written(encoded) && salt.len() <= 8;
        is_whole.then(|| Self {
            magic,
            salt: salt.to_owned(),
            encoded: encoded.to_owned(),
        })
    }

    /// Whether it is the hash of this password.
    pub(super) fn is_of(&self, password: &[u8]) -> bool {
        let own = encoded(&digest(
            password,
            self.salt.as_bytes(),
            self.magic.as_bytes(),
        ));
        is_same(own.as_bytes(), self.encoded.as_bytes())
    }
}

fn digest(password: &[u8], salt: &[u8], magic: &[u8]) -> [u8; 16] {
    let hash = |parts: &[&[u8]]| -> [u8; 16] {
        let mut context = Md5::new();
        for part in parts {
            context.update(part);
        }
        context.finalize().into()
    };
    let inner = hash(&[password, salt, password]);
    let mut context = Md5::new();
    for part in [password, magic, salt] {
        context.update(part);
    }
    for block in password.chunks(inner.len()) {
        context.update(inner.get(..block.len()).unwrap_or_default());
    }
    // A NUL or the first character of the password for each bit of its length.
    let mut bits = password.len();
    while bits > 0 {
        context.update(if bits & 1 == 1 {
            &[0][..]
        } else {
            password.get(..1).unwrap_or_default()
        });
        bits >>= 1;
    }
    let mut last: [u8; 16] = context.finalize().into();
    for round in 0..ROUNDS {
        let (first, second) = if round % 2 == 1 {
            (password, last.as_slice())
        } else {
            (last.as_slice(), password)
        };
        let salt = if round % 3 == 0 { &[][..] } else { salt };
        let between = if round % 7 == 0 { &[][..] } else { password };
        last = hash(&[first, salt, between, second]);
    }
    last
}

/// Six bits a digit, of three bytes at a time in the order of `crypt`.
fn encoded(digest: &[u8; 16]) -> String {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut text = String::with_capacity(22);
    let mut push = |value: u32, digits: u32| {
        for digit in 0..digits {
            let digit = (value >> (6 * digit)) & 0x3f;
            text.push(char::from(DIGITS[digit as usize]));
        }
    };
    for group in ORDER {
        let value = group
            .iter()
            .fold(0, |value, at| value << 8 | u32::from(digest[*at]));
        push(value, 4);
    }
    push(u32::from(digest[11]), 2);
    text
}
