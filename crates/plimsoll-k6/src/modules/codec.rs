//! k6/encoding and k6/crypto.

use base64::Engine as _;
use base64::alphabet::{self, Alphabet};
use base64::engine::general_purpose::{
    GeneralPurpose, NO_PAD, PAD, STANDARD, URL_SAFE, URL_SAFE_NO_PAD,
};
use plimsoll_script::js::{
    self, Array, ArrayBuffer, Ctx, Exception, FromJs as _, IntoJs as _, Value,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::Adder;
use super::http::bytes;
use crate::crypto::{hash, hex, hmac};
use crate::go_error::throw_error;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("b64encode", |_, ctx, arguments| {
        let encoding = Encoding::new(&arguments.text(1)?);
        Ok(encoding.engine().encode(bytes(ctx, &arguments.value(0))?))
    })?;
    adder.add("b64decode", |_, ctx, arguments| {
        let encoding = Encoding::new(&arguments.text(1)?);
        let decoded = encoding
            .decode(&arguments.text(0)?)
            .map_err(|at| throw_error(ctx, &format!("illegal base64 data at input byte {at}")))?;
        if arguments.value(2).as_bool().unwrap_or(false) {
            return (&*String::from_utf8_lossy(&decoded)).into_js(ctx);
        }
        buffer(ctx, decoded)
    })?;
    adder.add("encodeText", |_, ctx, arguments| {
        buffer(ctx, arguments.text(0)?.into_bytes())
    })?;
    adder.add("decodeText", |_, ctx, arguments| {
        let bytes = bytes(ctx, &arguments.value(0))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })?;
    adder.add("hexEncode", |_, ctx, arguments| {
        Ok(hex(&bytes(ctx, &arguments.value(0))?))
    })?;
    adder.add("randomBytes", |_, ctx, arguments| {
        let count = arguments.number(0);
        if !(1.0..=65_536.0).contains(&count) {
            let message = "randomBytes() takes a number from 1 to 65536";
            return Err(throw_error(ctx, message));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 1 and 65536"
        )]
        let mut random = vec![0; count as usize];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| Exception::throw_internal(ctx, "the system has no randomness"))?;
        buffer(ctx, random)
    })?;
    adder.add("digest", |_, ctx, arguments| {
        let name = arguments.text(0)?;
        let parts = Array::from_js(ctx, arguments.value(2))?;
        let mut content = Vec::new();
        for part in parts.iter::<Value<'_>>() {
            content.extend_from_slice(&bytes(ctx, &part?)?);
        }
        let key = arguments.value(1);
        let digest = if key.is_undefined() {
            hash(&name, &[&content])
        } else {
            hmac(&name, &bytes(ctx, &key)?, &content)
        };
        let digest = digest.ok_or_else(|| {
            let known =
                "md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256 and ripemd160";
            throw_error(ctx, &format!("no hash `{name}`; known are {known}"))
        })?;
        match arguments.text(3)?.as_str() {
            "hex" => hex(&digest).into_js(ctx),
            "base64" => STANDARD.encode(digest).into_js(ctx),
            "base64url" => URL_SAFE.encode(digest).into_js(ctx),
            "base64rawurl" => URL_SAFE_NO_PAD.encode(digest).into_js(ctx),
            "binary" => buffer(ctx, digest),
            other => Err(throw_error(
                ctx,
                &format!(
                    "no output `{other}`; known are hex, base64, base64url, base64rawurl and binary"
                ),
            )),
        }
    })
}

/// An encoding of base64 by the names of k6.
#[derive(Debug, Clone, Copy)]
struct Encoding {
    alphabet: &'static Alphabet,
    has_padding: bool,
}

impl Encoding {
    /// - `name`: any other than those of k6 names the standard encoding, as in k6.
    fn new(name: &str) -> Self {
        let (alphabet, has_padding) = match name {
            "rawstd" => (&alphabet::STANDARD, false),
            "url" => (&alphabet::URL_SAFE, true),
            "rawurl" => (&alphabet::URL_SAFE, false),
            _ => (&alphabet::STANDARD, true),
        };
        Self {
            alphabet,
            has_padding,
        }
    }

    fn engine(self) -> GeneralPurpose {
        let config = if self.has_padding { PAD } else { NO_PAD };
        GeneralPurpose::new(self.alphabet, config.with_decode_allow_trailing_bits(true))
    }

    /// Decodes what k6 decodes: line ends do not count, and neither do bits behind the last byte.
    ///
    /// Fails with the position of the first byte that is wrong, as Go counts it.
    fn decode(self, text: &str) -> Result<Vec<u8>, usize> {
        if let Some(at) = self.wrong_at(text.as_bytes()) {
            return Err(at);
        }
        let digits = text.bytes().filter(|byte| !is_line_end(*byte));
        let decoded = self.engine().decode(digits.collect::<Vec<_>>());
        decoded.map_err(|_| text.len())
    }

    /// The position of the first byte that is wrong: the one itself, or where the digits begin that miss others behind them.
    fn wrong_at(self, text: &[u8]) -> Option<usize> {
        let digits = self.alphabet.as_str().as_bytes();
        let mut rest = (0..text.len()).filter(|at| !is_line_end(text[*at]));
        loop {
            for position in 0..4 {
                let Some(at) = rest.next() else {
                    let is_complete = position == 0 || (position > 1 && !self.has_padding);
                    return (!is_complete).then(|| text.len() - position);
                };
                if digits.contains(&text[at]) {
                    continue;
                }
                if text[at] != b'=' || !self.has_padding || position < 2 {
                    return Some(at);
                }
                if position == 2 {
                    match rest.next() {
                        None => return Some(text.len()),
                        Some(other) if text[other] != b'=' => return Some(other - 1),
                        Some(_) => {}
                    }
                }
                return rest.next();
            }
        }
    }
}

/// Those within an encoded text do not count.
fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn buffer<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> js::Result<Value<'js>> {
    ArrayBuffer::new(ctx.clone(), bytes).map(ArrayBuffer::into_value)
}
