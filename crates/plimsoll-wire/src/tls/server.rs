//! Certificates of a server, chosen by the requested name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_model::{Certificate, Clock};
use rustls::crypto::ring;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use crate::SystemClock;
use crate::tls::certificate::{certificate, common_name, version};
use crate::tls::challenges::{ACME_TLS, TlsChallenges};
use crate::tls::key_pair::certified_key;
use crate::tls::ocsp::OcspQuestion;
use crate::tls::on_demand::OnDemandCertificates;
use crate::tls::pem::{self, MaterialError};
use crate::tls::self_signed::SelfSigned;

/// The files of one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those that vouch for it, in PEM.
    pub certificates: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The OCSP response, in DER; not shown if it does not fit or is not valid.
    pub ocsp: Option<PathBuf>,
}

impl CertificateFiles {
    /// The version of X.509 as people count it, if it is one before 3: such a certificate has no names of hosts, and browsers
    /// refuse it (RFC 5280, section 4.1.2.1). Others, within a network of one's own, may not look.
    pub fn old_version(&self) -> Option<u32> {
        let chain = pem::certificates(&self.certificates).ok()?;
        version(chain.first()?).filter(|version| *version < 3)
    }
}

/// A certificate that a server shows.
#[derive(Debug, Clone)]
pub enum ServerCertificate {
    /// Read from files.
    Files(CertificateFiles),
    /// Made here.
    SelfSigned(SelfSigned),
    /// Read from a file, once there is one.
    Awaited(AwaitedCertificate),
}

/// A certificate that is being ordered. Until it is there, clients that request one of its names are turned
/// away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedCertificate {
    /// The names that it is for, in lower case.
    pub names: Vec<String>,
    /// File of the certificate with its key, in PEM, once it is ordered.
    pub file: PathBuf,
    /// File of its OCSP response, in DER.
    pub ocsp: Option<PathBuf>,
}

impl AwaitedCertificate {
    pub(crate) fn files(&self) -> CertificateFiles {
        CertificateFiles {
            certificates: self.file.clone(),
            key: self.file.clone(),
            ocsp: self.ocsp.clone(),
        }
    }

    /// The certificate, if it is there and its key with it.
    pub fn load(&self) -> Result<Certificate, ServerTlsError> {
        let files = self.files();
        Certified::load(&files)?;
        let chain = pem::certificates(&files.certificates)?;
        let leaf = chain.first().and_then(|leaf| certificate(leaf));
        leaf.ok_or(ServerTlsError::None)
    }
}

/// Whose certificates clients may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificates {
    /// Those that vouch for them, in PEM.
    pub authorities: PathBuf,
    /// Clients without one are turned away; those with one of somebody else always are.
    pub required: bool,
}

/// Why certificates cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// A file is of no use.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The key is of a kind that is not known, or not that of the certificate.
    #[error("the key in `{}` does not fit the certificate in `{}`: {reason}", files.key.display(), files.certificates.display())]
    Key {
        /// The files.
        files: CertificateFiles,
        /// Why the key and the certificate do not match.
        reason: String,
    },
    /// There is none.
    #[error("no certificate is given")]
    None,
    /// Nothing in the file can vouch for clients.
    #[error("`{}` cannot vouch for clients: {reason}", authorities.display())]
    Authorities {
        /// The file.
        authorities: PathBuf,
        /// The error.
        reason: String,
    },
    /// rustls refuses.
    #[error("cannot set TLS up: {0}")]
    Refused(#[from] rustls::Error),
}

/// Settings of a server with these certificates, for `h2` if wanted and `http/1.1` by ALPN.
///
/// A client that asks for a name gets the first certificate that is for it, any other the first of all.
/// Sessions are resumed by tickets, whose keys are changed by time.
///
/// - `clients`: whose certificates clients may or must show; absent requests none.
/// - `challenges`: what authorities are shown that ask for it by ALPN (RFC 8737).
/// - `on_demand`: certificates of names that none of `certificates` is for; with it there may be no other.
pub fn server_config(
    certificates: &[ServerCertificate],
    clients: Option<&ClientCertificates>,
    http2: bool,
    challenges: Option<&TlsChallenges>,
    on_demand: Option<&OnDemandCertificates>,
) -> Result<ServerConfig, ServerTlsError> {
    let certificates = certificates
        .iter()
        .map(Certified::all_of)
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    if certificates.is_empty() && on_demand.is_none() {
        return Err(ServerTlsError::None);
    }
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(verifier(clients)?),
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName {
        certificates,
        challenges: challenges.cloned(),
        on_demand: on_demand.cloned(),
    }));
    config.ticketer = ring::Ticketer::new()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    if challenges.is_some() {
        config.alpn_protocols.push(ACME_TLS.to_vec());
    }
    Ok(config)
}

fn verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, ServerTlsError> {
    let wrong = |reason: String| ServerTlsError::Authorities {
        authorities: clients.authorities.clone(),
        reason,
    };
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(&clients.authorities)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::new(ring::default_provider()),
    );
    let builder = if clients.required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    builder.build().map_err(|error| wrong(error.to_string()))
}

#[derive(Debug, Clone)]
pub(crate) struct Certified {
    /// Lower case.
    names: Vec<String>,
    /// Absent as long as it is awaited.
    key: Option<Arc<CertifiedKey>>,
    /// The same with what its authority says of it, and until when that holds.
    stapled: Option<(Arc<CertifiedKey>, SystemTime)>,
}

#[derive(Debug)]
struct ByName {
    certificates: Vec<Certified>,
    challenges: Option<TlsChallenges>,
    on_demand: Option<OnDemandCertificates>,
}

impl Certified {
    fn all_of(certificate: &ServerCertificate) -> Result<Vec<Self>, ServerTlsError> {
        match certificate {
            ServerCertificate::Files(files) => Ok(vec![Self::load(files)?]),
            ServerCertificate::SelfSigned(made) => {
                let chain = vec![made.certificate()];
                let key = CertifiedKey::from_der(chain, made.key(), &ring::default_provider())?;
                Ok(vec![Self::named(made.names(), key)])
            }
            // One that is of no use is ordered anew, as if it were not there.
            ServerCertificate::Awaited(awaited) => {
                let absent = Self {
                    names: awaited.names.clone(),
                    key: None,
                    stapled: None,
                };
                // It may be for some of the names alone, as long as they were others.
                let loaded = Self::load(&awaited.files()).ok();
                Ok(loaded.into_iter().chain([absent]).collect())
            }
        }
    }

    pub(crate) fn load(files: &CertificateFiles) -> Result<Self, ServerTlsError> {
        let chain = pem::certificates(&files.certificates)?;
        let key = pem::private_key(&files.key)?;
        let misfit = |error: rustls::Error| ServerTlsError::Key {
            files: files.clone(),
            reason: error.to_string(),
        };
        let leaf = chain.first().and_then(|leaf| certificate(leaf));
        let mut names = leaf.map(|leaf| leaf.names).unwrap_or_default();
        if names.is_empty() {
            names.extend(chain.first().and_then(|leaf| common_name(leaf)));
        }
        let key = certified_key(chain, key, &ring::default_provider()).map_err(misfit)?;
        let response = files.ocsp.as_ref().and_then(|file| {
            let question = OcspQuestion::new(&key.cert).ok()?;
            question.read(file, SystemClock.wall()).ok()?
        });
        let stapled = response.map(|response| {
            let mut key = key.clone();
            key.ocsp = Some(response.der);
            (Arc::new(key), response.until)
        });
        Ok(Self {
            stapled,
            ..Self::named(&names, key)
        })
    }

    fn named(names: &[String], key: CertifiedKey) -> Self {
        Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            key: Some(Arc::new(key)),
            stapled: None,
        }
    }

    /// The certificate in use.
    pub(crate) fn shown(&self) -> Option<Arc<CertifiedKey>> {
        match &self.stapled {
            Some((stapled, until)) if *until > SystemClock.wall() => Some(Arc::clone(stapled)),
            _ => self.key.clone(),
        }
    }

    fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| match own.strip_prefix("*.") {
            None => own == name,
            // The star stands for one label (RFC 9525, section 6.3).
            Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest == parent),
        })
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let mut protocols = hello.alpn().into_iter().flatten();
        if protocols.any(|protocol| protocol == ACME_TLS) {
            return self.challenges.as_ref()?.certificate(&name?);
        }
        let all = &self.certificates;
        let named = name
            .as_deref()
            .and_then(|name| all.iter().find(|it| it.is_for(name)));
        if let Some(named) = named {
            return named.shown();
        }
        if let (Some(on_demand), Some(name)) = (&self.on_demand, name)
            && on_demand.permits(&name)
        {
            // Another certificate would only make the client warn of this one.
            return on_demand.certificate(&name);
        }
        all.iter().find_map(Certified::shown)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plimsoll_testkit::{Authority, MaterialFiles};

    use super::*;

    fn files_of(files: &CertificateFiles) -> ServerCertificate {
        ServerCertificate::Files(files.clone())
    }

    /// As `openssl x509 -req` makes one without a file of extensions.
    const FIRST_VERSION: &str = "-----BEGIN CERTIFICATE-----
MIIBITCByAITagyb+sGKUw9XrINCpW4zyrYdnDAKBggqhkjOPQQDAjATMREwDwYD
VQQDDAhvbGQudGVzdDAgFw0yNjExMjgxODQyMTZaGA8yMTI2MTEwNDE4NDIxNlow
EzERMA8GA1UEAwwIb2xkLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATd
qBNZTMh+K2roj3KV6rivkwstdo5CkG26UzwhZeggjKi4AGNDpDD1MFHV4vNwjwt9
832rJw+jc0916iaDBPXlMAoGCCqGSM49BAMCA0gAMEUCIAK3PT9SjAV0SXzG1CgW
m5fR12IccVBIma/UtWkrDlzJAiEA9CtrluTPC6rW9rv7FLB27ohSS2+qwzZlvHM1
lcx1B50=
-----END CERTIFICATE-----
";
    const FIRST_VERSION_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEqO/5cr3kYhy0Ukk
MdZ8Ki+xgHFegWe7gN8w8gVPUQKhRANCAATdqBNZTMh+K2roj3KV6rivkwstdo5C
kG26UzwhZeggjKi4AGNDpDD1MFHV4vNwjwt9832rJw+jc0916iaDBPXl
-----END PRIVATE KEY-----
";

    /// A certificate of X.509 version 1 for `old.test`.
    pub(in crate::tls) fn first_version(files: &MaterialFiles) -> CertificateFiles {
        CertificateFiles {
            certificates: files.write("v1.pem", FIRST_VERSION),
            key: files.write("v1.key", FIRST_VERSION_KEY),
            ocsp: None,
        }
    }

    #[test]
    fn names_choose_and_mistakes_are_reported() {
        let (files, authority) = (MaterialFiles::new(), Authority::new());
        let write = |name: &str, names: &[&str]| {
            let leaf = authority.issue(names);
            CertificateFiles {
                certificates: files.write(&format!("{name}.pem"), leaf.pem()),
                key: files.write(&format!("{name}.key"), leaf.key_pem()),
                ocsp: None,
            }
        };
        let (one, other) = (
            write("one", &["A.example"]),
            write("other", &["*.b.example"]),
        );
        let other_certified = Certified::load(&other).unwrap();
        assert!(Certified::load(&one).unwrap().is_for("a.example"));
        assert!(other_certified.is_for("x.b.example"));
        assert!(!other_certified.is_for("b.example"));
        assert!(!other_certified.is_for("x.y.b.example"));
        let config =
            server_config(&[files_of(&one), files_of(&other)], None, true, None, None).unwrap();
        assert_eq!(config.alpn_protocols, [&b"h2"[..], b"http/1.1"]);
        let clients = ClientCertificates {
            authorities: files.write("clients.pem", &authority.pem()),
            required: true,
        };
        assert!(server_config(&[files_of(&one)], Some(&clients), true, None, None).is_ok());
        let no_clients = ClientCertificates {
            authorities: one.key.clone(),
            ..clients
        };
        assert!(server_config(&[files_of(&one)], Some(&no_clients), true, None, None).is_err());
        let mixed = CertificateFiles {
            certificates: one.certificates,
            key: other.key,
            ocsp: None,
        };
        assert!(matches!(
            server_config(&[files_of(&mixed)], None, true, None, None),
            Err(ServerTlsError::Key { .. })
        ));
        let of_its_own = first_version(&files);
        assert_eq!(of_its_own.old_version(), Some(1));
        // A key that is not the certificate's is still an error.
        let of_another = CertificateFiles {
            key: mixed.key,
            ..of_its_own.clone()
        };
        let refused = server_config(&[files_of(&of_another)], None, true, None, None);
        assert!(matches!(refused, Err(ServerTlsError::Key { .. })));
        let loaded = Certified::load(&of_its_own).unwrap();
        assert!(loaded.is_for("old.test") && loaded.key.is_some());
        let awaited = AwaitedCertificate {
            names: vec!["c.example".to_owned()],
            file: files.path("awaited.pem"),
            ocsp: None,
        };
        let found = || {
            let awaited = ServerCertificate::Awaited(awaited.clone());
            let all = Certified::all_of(&awaited).unwrap();
            all.into_iter().find(|it| it.is_for("c.example"))
        };
        assert!(found().unwrap().key.is_none());
        assert!(awaited.load().is_err());
        let leaf = authority.issue(&["c.example"]);
        files.write("awaited.pem", &(leaf.pem().to_owned() + leaf.key_pem()));
        assert!(found().unwrap().key.is_some());
        assert_eq!(awaited.load().unwrap().names, ["c.example"]);
        assert!(matches!(
            server_config(&[], None, true, None, None),
            Err(ServerTlsError::None)
        ));
    }
}
