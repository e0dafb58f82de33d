//! TLS material: trust and certificates of clients, certificates of servers, and the meaning of failed handshakes.
//!
//! rustls with ring, handed over explicitly: nothing here installs or reads a process default.

mod settings;

mod versions;

mod ciphers;

mod identities;

mod key_log;

mod key_pair;

mod roots;

mod pem;

mod verify;

mod failure;

mod certificate;

mod ocsp;

mod self_signed;

mod challenges;

mod client_hello;

mod server;

mod on_demand;

pub use rustls::ClientConfig;

pub use crate::tls::certificate::{
    AlternativeName, CertificateNames, certificate, certificate_names,
};
pub use crate::tls::challenges::{ACME_TLS, AnsweringChallenge, TlsChallengeError, TlsChallenges};
pub use crate::tls::ciphers::{CipherSuites, CipherSuitesError};
pub use crate::tls::client_hello::{ClientHello, ClientHelloError};
pub use crate::tls::failure::{failure, failure_kind, failure_kind_of_io, failure_of_alert};
pub use crate::tls::ocsp::{MOST_OCSP_BYTES, OcspError, OcspQuestion, OcspResponse};
pub use crate::tls::on_demand::{NamePermission, OnDemandCertificates, PermitsName};
pub use crate::tls::pem::MaterialError;
pub use crate::tls::self_signed::{SelfSigned, SelfSignedError};
pub use crate::tls::server::{
    AwaitedCertificate, CertificateFiles, ClientCertificates, ServerCertificate, ServerTlsError,
    server_config,
};
pub use crate::tls::settings::{IdentityFiles, IdentityText, TlsError, TlsSettings, Trust};
pub use crate::tls::versions::{TlsVersion, TlsVersionError, TlsVersions, TlsVersionsError};
