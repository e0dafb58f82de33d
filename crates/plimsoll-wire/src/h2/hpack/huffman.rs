//! The static Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive and follow the order of the symbols, so
//! the lengths alone say everything and all tables are computed from them when this is compiled.
//! Decoding looks the next 8 bits up, which covers every letter, digit and most punctuation; longer
//! codes are found by comparing with the last code of each length.

/// A string that is not Huffman coded as RFC 7541 wants it: the end symbol inside, or padding that is
/// longer than 7 bits or not all ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The symbol that marks the end; it may only occur as padding, in part.
const END: usize = 256;
const SHORTEST: u32 = 5;
const LONGEST: u32 = 30;

/// The length in bits of the code of each byte, and of the end symbol.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes, right-aligned.
static CODES: [u32; 257] = canonical().codes;
/// For the next 8 bits: the symbol and the length of its code, 0 if the code is longer.
static SHORT: [(u8, u8); 256] = short();
/// The symbols in the order of their codes.
static SYMBOLS: [u16; 257] = canonical().symbols;
/// By length: the first code, the number of codes, and the first one's position in `SYMBOLS`.
static LONG: [Span; LONGEST as usize + 1] = canonical().spans;

#[derive(Clone, Copy)]
struct Span {
    first: u32,
    count: u32,
    position: u32,
}

struct Canonical {
    codes: [u32; 257],
    symbols: [u16; 257],
    spans: [Span; LONGEST as usize + 1],
}

const fn canonical() -> Canonical {
    let mut built = Canonical {
        codes: [0; 257],
        symbols: [0; 257],
        spans: [Span {
            first: 0,
            count: 0,
            position: 0,
        }; LONGEST as usize + 1],
    };
    let mut code = 0;
    let mut position = 0;
    let mut length = SHORTEST;
    while length <= LONGEST {
        let span = &mut built.spans[length as usize];
        span.first = code;
        span.position = position;
        let mut symbol: u16 = 0;
        while symbol < 257 {
            if LENGTHS[symbol as usize] as u32 == length {
                built.codes[symbol as usize] = code;
                built.symbols[position as usize] = symbol;
                code += 1;
                position += 1;
            }
            symbol += 1;
        }
        span.count = position - span.position;
        code <<= 1;
        length += 1;
    }
    built
}

#[expect(clippy::cast_possible_truncation, reason = "a byte's symbol is a byte")]
const fn short() -> [(u8, u8); 256] {
    let codes = canonical().codes;
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < END {
        let length = LENGTHS[symbol];
        if length <= 8 {
            let spare = 8 - length as u32;
            let mut low = 0;
            while low < 1 << spare {
                table[((codes[symbol] << spare) | low) as usize] = (symbol as u8, length);
                low += 1;
            }
        }
        symbol += 1;
    }
    table
}

/// Appends the bytes that `input` codes to `output`: at most 8/5 of its length.
pub(crate) fn decode(input: &[u8], output: &mut Vec<u8>) -> Result<(), Malformed> {
    output.reserve(input.len() * 8 / 5 + 1);
    // The bits at hand, left-aligned; what is below the `held` upper ones is garbage or zero.
    let mut window: u64 = 0;
    let mut held: u32 = 0;
    let mut rest = input;
    loop {
        if let Some(word) = rest.first_chunk::<8>() {
            window |= u64::from_be_bytes(*word) >> held;
            rest = &rest[((63 - held) >> 3) as usize..];
            // 56 to 63 bits: the part of a byte above that is loaded again, to the same place.
            held |= 0x38;
        } else {
            while held <= 56 {
                let Some((byte, after)) = rest.split_first() else {
                    break;
                };
                window |= u64::from(*byte) << (56 - held);
                held += 8;
                rest = after;
            }
        }
        if held < LONGEST {
            return decode_tail(window, held, output);
        }
        while held >= LONGEST {
            let (symbol, length) = next(window)?;
            output.push(symbol);
            window <<= length;
            held -= length;
        }
    }
}

/// The last bits: codes, then up to 7 ones.
fn decode_tail(mut window: u64, mut held: u32, output: &mut Vec<u8>) -> Result<(), Malformed> {
    // Ones below what is held, so that padding looks like the beginning of the end symbol.
    window |= u64::MAX >> held;
    while held > 0 {
        if held < 8 && window == u64::MAX {
            return Ok(());
        }
        let (symbol, length) = next(window)?;
        if length > held {
            return Err(Malformed);
        }
        output.push(symbol);
        window = (window << length) | ((1 << length) - 1);
        held -= length;
    }
    Ok(())
}

/// The symbol at the top of `window`, and the length of its code.
#[inline]
fn next(window: u64) -> Result<(u8, u32), Malformed> {
    let (symbol, length) = SHORT[(window >> 56) as usize];
    if length != 0 {
        return Ok((symbol, u32::from(length)));
    }
    next_long(window)
}

#[cold]
fn next_long(window: u64) -> Result<(u8, u32), Malformed> {
    for length in 9..=LONGEST {
        let span = LONG[length as usize];
        let past_first = (window >> (64 - length)) - u64::from(span.first);
        if past_first < u64::from(span.count) {
            let position = u64::from(span.position) + past_first;
            let symbol = SYMBOLS[usize::try_from(position).map_err(|_| Malformed)?];
            return Ok((u8::try_from(symbol).map_err(|_| Malformed)?, length));
        }
    }
    Err(Malformed)
}

/// Bytes that [`encode`] appends for `text`.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text`, coded and padded with ones.
pub(crate) fn encode(text: &[u8], output: &mut Vec<u8>) {
    let mut window: u64 = 0;
    let mut held: u32 = 0;
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        held += length;
        window |= u64::from(CODES[usize::from(*byte)]) << (64 - held);
        while held >= 8 {
            output.push(window.to_be_bytes()[0]);
            window <<= 8;
            held -= 8;
        }
    }
    if held > 0 {
        output.push((window | (u64::MAX >> held)).to_be_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut output = Vec::new();
        decode(input, &mut output).map(|()| output)
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        for (symbol, code) in [
            (usize::from(b'0'), 0x0),
            (usize::from(b'a'), 0x3),
            (usize::from(b' '), 0x14),
            (usize::from(b'X'), 0xfc),
            (usize::from(b'!'), 0x3f8),
            (0, 0x1ff8),
            (1, 0x007f_ffd8),
            (22, 0x3fff_fffe),
            (249, 0x0fff_fffe),
            (255, 0x03ff_ffee),
            (END, 0x3fff_ffff),
        ] {
            assert_eq!(CODES[symbol], code, "symbol {symbol}");
        }
    }

    #[test]
    fn strings_of_appendix_c() {
        for (text, coded) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-key", "25a849e95ba97d7f"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            (
                "Mon, 21 Oct 2013 20:13:21 GMT",
                "d07abe941054d444a8200595040b8166e082a62d1bff",
            ),
            (
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            ),
        ] {
            let coded = crate::h2::hpack::tests::unhex(coded);
            assert_eq!(decoded(&coded).as_deref(), Ok(text.as_bytes()));
            let mut output = Vec::new();
            encode(text.as_bytes(), &mut output);
            assert_eq!(output, coded, "{text}");
        }
    }

    #[test]
    fn padding_is_ones_and_short() {
        // "0" is 00000.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        for bad in [
            &[0b0000_0000][..],
            &[0b0000_0110],
            &[0b0000_0111, 0xff],
            &[0xff],
            &[0xff, 0xff, 0xff, 0xff],
            &[0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(decoded(bad), Err(Malformed), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn encoding_is_undone(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut output = Vec::new();
            encode(&text, &mut output);
            prop_assert_eq!(output.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&output), Ok(text));
        }

        #[test]
        fn what_decodes_is_the_only_coding(input in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(text) = decoded(&input) {
                let mut output = Vec::new();
                encode(&text, &mut output);
                prop_assert_eq!(output, input);
            }
        }
    }
}
