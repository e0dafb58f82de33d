//! User and password: those of a URL, and how they are sent (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use plimsoll_model::Secret;
use url::Url;

/// User and password of `url`, decoded, if it has either.
pub(crate) fn of_url(url: &Url) -> Option<(String, Secret)> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let password = decode(url.password().unwrap_or_default());
    Some((decode(url.username()), Secret::new(password)))
}

/// Part of a URL without its percent-encoding.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The value of `Authorization` or `Proxy-Authorization` for `user` and `password`.
pub fn basic_authorization(user: &str, password: &Secret) -> Secret {
    let pair = format!("{user}:{}", password.expose());
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7617, section 2.
    #[test]
    fn as_in_the_rfc() {
        let value = basic_authorization("Aladdin", &Secret::new("open sesame"));
        assert_eq!(value.expose(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
