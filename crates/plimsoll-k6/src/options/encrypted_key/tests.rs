//! The keys are one key of a test, encrypted by OpenSSL with the password `secret`.

use super::*;

const PLAIN: &str = include_str!("keys/plain.pem");

/// The bytes that make up the key: 32 of them, in every form that a decrypted key has.
fn secret_of(pem: &str) -> Vec<u8> {
    let section = pem::parse(pem).unwrap();
    let content = section.contents();
    // An octet string of 32 bytes, in both formats the only one.
    let at = content.windows(2).position(|it| it == [4, 32]).unwrap();
    content[at + 2..at + 34].to_vec()
}

fn check(key: &str) {
    let made = decrypted(key.to_owned(), Some("secret")).unwrap();
    assert_eq!(secret_of(&made), secret_of(PLAIN), "{key}");
    let wrong = decrypted(key.to_owned(), Some("Secret"));
    assert_eq!(wrong, Err(KeyError::WrongPassword), "{key}");
    let none = decrypted(key.to_owned(), None);
    assert_eq!(none, Err(KeyError::NoPassword), "{key}");
}

#[test]
fn keys_of_pkcs8() {
    check(include_str!("keys/p-default.pem"));
    check(include_str!("keys/p-aes128.pem"));
    check(include_str!("keys/p-des3.pem"));
    check(include_str!("keys/p-scrypt.pem"));
}

#[test]
fn keys_of_the_older_form() {
    for key in [
        include_str!("keys/l-aes128.pem"),
        include_str!("keys/l-aes256.pem"),
        include_str!("keys/l-des3.pem"),
        include_str!("keys/l-des.pem"),
    ] {
        check(key);
        let made = decrypted(key.to_owned(), Some("secret")).unwrap();
        assert_eq!(pem::parse(made).unwrap(), pem::parse(PLAIN).unwrap());
    }
}

#[test]
fn keys_that_need_no_password_stay_as_they_are() {
    for key in [
        PLAIN,
        "",
        "no key",
        "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
    ] {
        for password in [None, Some("secret")] {
            assert_eq!(decrypted(key.to_owned(), password).as_deref(), Ok(key));
        }
    }
}

#[test]
fn other_algorithms_are_named() {
    let key = include_str!("keys/p-pbes1.pem").to_owned();
    let error = decrypted(key, Some("secret")).unwrap_err();
    assert_eq!(error, KeyError::Unsupported("PBES1".to_owned()));
    let text = include_str!("keys/l-des.pem");
    for (from, to, name) in [
        ("DES-CBC", "RC2-CBC", "RC2-CBC"),
        (",BDC0", ",XYC0", "DES-CBC"),
        (",BDC0", ",C0", "DES-CBC"),
    ] {
        assert!(text.contains(from));
        let error = decrypted(text.replace(from, to), Some("secret")).unwrap_err();
        assert_eq!(error, KeyError::Unsupported(name.to_owned()));
    }
}

/// Some wrong passwords leave a valid padding: none of these may pass for a key.
#[test]
fn no_wrong_password_passes() {
    for number in 0..3_000 {
        let key = include_str!("keys/l-aes128.pem").to_owned();
        let wrong = decrypted(key, Some(&number.to_string()));
        assert_eq!(wrong, Err(KeyError::WrongPassword));
    }
}
