//! Credentials for a broker from a file, as the tools of NATS write them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use percent_encoding::percent_decode_str;
use url::Url;

/// Characters of a seed. Source: the page on nkeys of docs.nats.io: two bytes, 32 bytes of the seed and two of a checksum, in base32.
const SEED: usize = 58;

/// Who a URL says that the client is.
#[derive(PartialEq, Eq)]
pub(super) enum Login {
    None,
    /// `TOKEN@HOST`.
    Token(String),
    /// `USER:PASSWORD@HOST`.
    Password(String, String),
}

/// The URL without what stands before its host, and that.
pub(super) fn login(url: &str) -> (String, Login) {
    let Ok(mut parsed) = Url::parse(url) else {
        // A host alone, which the client completes.
        return (url.to_owned(), Login::None);
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(parsed.username());
    let login = match (user.is_empty(), parsed.password()) {
        (true, None) => Login::None,
        (false, None) => Login::Token(user),
        (_, Some(password)) => Login::Password(user, decoded(password)),
    };
    if login == Login::None {
        return (url.to_owned(), login);
    }
    let cleared = parsed
        .set_username("")
        .and_then(|()| parsed.set_password(None));
    debug_assert!(cleared.is_ok(), "it has a host");
    (parsed.into(), login)
}

/// Why a file gives no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    /// It cannot be read.
    #[error("{}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// It holds something else.
    #[error(
        "{}: it has neither the seed of a user's nkey (SU…) nor what `nsc generate creds` writes",
        .0.display()
    )]
    Form(PathBuf),
}

/// What a file holds.
pub(super) enum Credentials {
    /// The seed of an nkey of a user: `SU…`.
    Seed(String),
    /// A token of a user with the seed that signs for it: a `.creds` file of `nsc`.
    Token(String),
}

impl Credentials {
    /// Fails with the file and the reason; no content of it is in the message.
    pub(super) fn read(path: &Path) -> Result<Self, CredentialsError> {
        let text = fs::read_to_string(path).map_err(|cause| CredentialsError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        Self::parse(&text).ok_or_else(|| CredentialsError::Form(path.to_owned()))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.contains("BEGIN NATS USER JWT") && text.contains("BEGIN USER NKEY SEED") {
            return Some(Self::Token(text.to_owned()));
        }
        let seed = text.trim();
        let is_base32 = |it: u8| it.is_ascii_uppercase() || (b'2'..=b'7').contains(&it);
        let is_seed = seed.len() == SEED && seed.starts_with("SU") && seed.bytes().all(is_base32);
        is_seed.then(|| Self::Seed(seed.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_is_what_stands_before_the_host() {
        let check = |url: &str, expected: (&str, Login)| {
            let (address, login) = login(url);
            assert!(
                address == expected.0 && login == expected.1,
                "{url}: {address}"
            );
        };
        let password = |user: &str, word: &str| Login::Password(user.to_owned(), word.to_owned());
        check("nats://a:4222", ("nats://a:4222", Login::None));
        check("a:4222", ("a:4222", Login::None));
        check(
            "nats://ann:p%40ss@a:4222",
            ("nats://a:4222", password("ann", "p@ss")),
        );
        check(
            "tls://t0ken@a",
            ("tls://a", Login::Token("t0ken".to_owned())),
        );
    }

    #[test]
    fn a_file_has_a_seed_or_a_token_with_one() {
        // "NKeys", docs.nats.io.
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        assert!(
            matches!(Credentials::parse(&format!("{seed}\n")), Some(Credentials::Seed(it)) if it == seed)
        );
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\ne30.e30.e30\n------END NATS USER JWT------\n-----BEGIN USER NKEY \
             SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        assert!(matches!(
            Credentials::parse(&creds),
            Some(Credentials::Token(_))
        ));
        let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
        for text in [
            "",
            "SU",
            public,
            &seed.to_lowercase(),
            &seed.replace('U', "A"),
        ] {
            assert!(Credentials::parse(text).is_none(), "{text}");
        }
        let error = Credentials::read(Path::new("/nowhere/a.creds")).err();
        let error = error.expect("there is no such file").to_string();
        assert!(error.starts_with("/nowhere/a.creds: "), "{error}");
    }
}
