//! Basic credentials (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_model::Secret;

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
