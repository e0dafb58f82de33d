//! The messages about files that cannot be used.

use std::path::PathBuf;

use plimsoll_testkit::{Authority, MaterialFiles};
use plimsoll_wire::tls::{IdentityFiles, TlsSettings, Trust};

fn refused(settings: &TlsSettings) -> String {
    settings.compile().unwrap_err().to_string()
}

fn only(file: PathBuf) -> TlsSettings {
    TlsSettings {
        trust: Trust::Only(file),
        ..TlsSettings::default()
    }
}

fn identity(certificate: PathBuf, key: Option<PathBuf>) -> TlsSettings {
    TlsSettings {
        trust: Trust::Anyone,
        identity: Some(IdentityFiles { certificate, key }),
        ..TlsSettings::default()
    }
}

/// The message with the file's folder taken out.
fn check(files: &MaterialFiles, settings: &TlsSettings, expected: &str) {
    let folder = format!("{}/", files.path("").display()).replace("//", "/");
    assert_eq!(refused(settings).replace(&folder, ""), expected);
}

#[test]
fn roots_that_cannot_be_used() {
    let files = MaterialFiles::new();
    check(
        &files,
        &only(files.path("missing.pem")),
        "cannot read `missing.pem`",
    );
    check(
        &files,
        &only(files.write("empty.pem", "nothing here\n")),
        "`empty.pem` has no certificate; expected a `-----BEGIN CERTIFICATE-----` section",
    );
    check(
        &files,
        &only(files.write("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n")),
        "`cut.pem` is not valid PEM: the file ends inside a section, before its END line",
    );
    let message = refused(&only(files.write(
        "other.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )));
    assert!(
        message.contains("other.pem` cannot be used as a root"),
        "{message}"
    );
}

#[test]
fn identities_that_cannot_be_used() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let client = authority.issue_for_client("client.test");
    let other = authority.issue_for_client("other.test");
    let certificate = files.write("client.pem", client.pem());
    check(
        &files,
        &identity(certificate.clone(), Some(files.path("missing.key"))),
        "cannot read `missing.key`",
    );
    check(
        &files,
        &identity(certificate.clone(), None),
        "`client.pem` has no private key; expected an unencrypted `-----BEGIN PRIVATE KEY-----` \
         section",
    );
    check(
        &files,
        &identity(
            certificate.clone(),
            Some(files.write(
                "locked.key",
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            )),
        ),
        "the private key in `locked.key` is encrypted; decrypt it with `openssl pkey`",
    );
    check(
        &files,
        &identity(
            certificate.clone(),
            Some(files.write("other.key", other.key_pem())),
        ),
        "`client.pem` and `other.key` cannot be used together: the key is not the certificate's; \
         give the key that the certificate was issued for",
    );
    check(
        &files,
        &identity(files.write("client.key", client.key_pem()), None),
        "`client.key` has no certificate; expected a `-----BEGIN CERTIFICATE-----` section",
    );
}

#[test]
fn what_is_requested_is_set() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let client = authority.issue_for_client("client.test");
    let config = TlsSettings {
        trust: Trust::Only(files.write("ca.pem", &authority.pem())),
        identity: Some(IdentityFiles {
            certificate: files.write("client.pem", client.pem()),
            key: Some(files.write("client.key", client.key_pem())),
        }),
        alpn: vec![b"http/1.1".to_vec()],
        ..TlsSettings::default()
    }
    .compile()
    .unwrap();
    assert_eq!(config.alpn_protocols, [b"http/1.1"]);
    assert!(config.client_auth_cert_resolver.has_certs());
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}
