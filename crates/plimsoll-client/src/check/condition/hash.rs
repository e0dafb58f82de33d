//! Tests on the hash of the content.

use std::fmt::Write as _;

use super::ConditionError;

/// SHA-256, which has to be another one or the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashTest {
    is_equal: bool,
    expected: [u8; 32],
}

impl HashTest {
    pub(super) fn parse(
        subject: &str,
        operator: &str,
        value: &str,
    ) -> Result<Self, ConditionError> {
        let is_equal = match operator {
            "==" | "=" => true,
            "!=" => false,
            _ => {
                return Err(ConditionError::Operator {
                    subject: subject.to_owned(),
                    operator: operator.to_owned(),
                    known: "==, !=",
                });
            }
        };
        let expected = digest(value).ok_or_else(|| ConditionError::Hash(value.to_owned()))?;
        Ok(Self { is_equal, expected })
    }

    /// Whether the hash has to be the expected one.
    pub(super) const fn is_equal(self) -> bool {
        self.is_equal
    }

    /// The hash that the condition names.
    pub(super) const fn expected(self) -> [u8; 32] {
        self.expected
    }

    /// A missing hash differs from every hash.
    pub(super) fn holds(self, hash: Option<[u8; 32]>) -> bool {
        (hash == Some(self.expected)) == self.is_equal
    }
}

/// As `sha256sum` prints it.
pub(super) fn text(hash: [u8; 32]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

/// The hash of 64 hexadecimal digits in either case, perhaps in quotes.
fn digest(value: &str) -> Option<[u8; 32]> {
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let digits = quoted('\'').or_else(|| quoted('"')).unwrap_or(value);
    if digits.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let digit = |index: usize| char::from(*pair.get(index)?).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(digest)
}
