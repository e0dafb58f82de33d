//! Integers with a prefix of less than a byte (RFC 7541, section 5.1).

use crate::h2::hpack::HpackError;

/// Appends `value`.
///
/// - `pattern`: the bits above the prefix.
/// - `prefix`: bits of the first byte that belong to the integer, 1–8.
pub(crate) fn put(output: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let most = (1 << prefix) - 1;
    if value < most {
        output.push(pattern | value.to_le_bytes()[0]);
        return;
    }
    output.push(pattern | most.to_le_bytes()[0]);
    let mut left = value - most;
    while left >= 0x80 {
        output.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    output.push(left.to_le_bytes()[0]);
}

/// Takes an integer off the front of `input`; nothing above 2^28 is one that a header block needs.
///
/// `let else` rather than `ok_or`: going through a result stalls on its layout, measurably.
#[inline]
pub(crate) fn read_integer(input: &mut &[u8], prefix: u32) -> Result<u32, HpackError> {
    let Some((first, rest)) = input.split_first() else {
        return Err(HpackError::Truncated);
    };
    *input = rest;
    let most = (1_u32 << prefix) - 1;
    let value = u32::from(*first) & most;
    if value < most {
        return Ok(value);
    }
    // Most integers that do not fit in their prefix, such as an index above 15, end right here.
    if let Some((byte @ ..0x80, rest)) = rest.split_first() {
        *input = rest;
        return Ok(value + u32::from(*byte));
    }
    take_rest(input, value)
}

fn take_rest(input: &mut &[u8], mut value: u32) -> Result<u32, HpackError> {
    // At most four bytes of 7 bits: fillers of zero would otherwise go on for ever.
    for shift in [0, 7, 14, 21] {
        let Some((byte, rest)) = input.split_first() else {
            return Err(HpackError::Truncated);
        };
        *input = rest;
        value += u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(HpackError::Integer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_of_appendix_c_1() {
        for (value, prefix, bytes) in [
            (10, 5, &[10][..]),
            (1337, 5, &[31, 154, 10]),
            (42, 8, &[42]),
            (31, 5, &[31, 0]),
        ] {
            let mut output = Vec::new();
            put(&mut output, 0, prefix, value);
            assert_eq!(output, bytes);
            let mut input = bytes;
            assert_eq!(
                read_integer(&mut input, prefix).map(|v| v as usize),
                Ok(value)
            );
            assert!(input.is_empty());
        }
    }

    #[test]
    fn what_is_cut_or_endless_is_refused() {
        assert_eq!(read_integer(&mut &[][..], 5), Err(HpackError::Truncated));
        assert_eq!(
            read_integer(&mut &[31, 0x80][..], 5),
            Err(HpackError::Truncated)
        );
        let endless = [31, 0x80, 0x80, 0x80, 0x80, 0x80, 0];
        assert_eq!(read_integer(&mut &endless[..], 5), Err(HpackError::Integer));
        let huge = [31, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(read_integer(&mut &huge[..], 5), Err(HpackError::Integer));
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(value in 0_usize..(1 << 28), prefix in 1_u32..=8) {
            let mut output = Vec::new();
            put(&mut output, 0, prefix, value);
            prop_assert_eq!(read_integer(&mut &output[..], prefix), Ok(u32::try_from(value).unwrap()));
        }
    }
}
