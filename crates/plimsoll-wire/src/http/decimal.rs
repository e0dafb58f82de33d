//! Numbers of header fields, as RFC 9110 writes them (`1*DIGIT`).

/// Digits only: no sign, no space, no overflow.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        if !byte.is_ascii_digit() {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })
}

/// The digits of a number. Formatting takes 250 instructions, of 5,600 for a whole request.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    digits: [u8; MOST_DIGITS],
    /// Where they begin.
    at: usize,
}

/// As many as the largest number has.
const MOST_DIGITS: usize = 20;

impl Decimal {
    /// The digits of `number`.
    pub fn new(number: u64) -> Self {
        let mut digits = [0; MOST_DIGITS];
        let (mut at, mut left) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
            if left == 0 {
                break;
            }
        }
        Self { digits, at }
    }

    /// At least one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let numbers = powers.flat_map(|it| [it - 1, it, it + 1]);
        for number in numbers.chain([u64::MAX]) {
            let digits = Decimal::new(number);
            assert_eq!(digits.as_bytes(), number.to_string().as_bytes());
            assert_eq!(decimal(digits.as_bytes()), Some(number));
        }
    }
}
