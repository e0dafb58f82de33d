//! Certificates, good and bad, for servers and clients of tests.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;

/// A certificate authority that is trusted only where it is given.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// With a new key.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "plimsoll test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self {
            issuer: CertifiedIssuer::self_signed(params, new_key()).expect("parameters are valid"),
        }
    }

    /// A server's certificate for `names` (host names or addresses), valid now.
    pub fn issue(&self, names: &[&str]) -> Leaf {
        self.sign(&leaf_params(names))
    }

    /// The same, but its time is over.
    pub fn issue_expired(&self, names: &[&str]) -> Leaf {
        let mut params = leaf_params(names);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(&params)
    }

    /// The same, but its time has not come.
    pub fn issue_not_yet_valid(&self, names: &[&str]) -> Leaf {
        let mut params = leaf_params(names);
        params.not_before = date_time_ymd(3001, 1, 1);
        params.not_after = date_time_ymd(3002, 1, 1);
        self.sign(&params)
    }

    /// A certificate that is good for clients only.
    pub fn issue_for_client(&self, name: &str) -> Leaf {
        let mut params = leaf_params(&[name]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// The same with these URIs beside the name.
    pub fn issue_for_client_with(&self, name: &str, uris: &[&str]) -> Leaf {
        let mut params = leaf_params(&[name]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let uris = uris.iter().map(|uri| {
            let uri = (*uri).try_into().expect("a URI is ASCII");
            SanType::URI(uri)
        });
        params.subject_alt_names.extend(uris);
        self.sign(&params)
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own certificate.
    pub fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    fn sign(&self, params: &CertificateParams) -> Leaf {
        let key = new_key();
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("parameters are valid");
        Leaf::new(&certificate, &key)
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Leaf {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: PrivatePkcs8KeyDer<'static>,
    key_pem: String,
}

impl Leaf {
    /// A server's certificate that is its own issuer.
    pub fn self_signed(names: &[&str]) -> Self {
        Self::sign_itself(&leaf_params(names))
    }

    /// The same, marked as an authority, which is what `openssl req -x509` makes.
    pub fn self_signed_authority(names: &[&str]) -> Self {
        let mut params = leaf_params(names);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::sign_itself(&params)
    }

    /// The certificate.
    pub fn der(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// Its key.
    pub fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    /// The certificate.
    pub fn pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its key.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Settings of a server that shows this certificate and offers `http/1.1`.
    pub fn server_config(&self) -> ServerConfig {
        let config = server_config_builder().with_no_client_auth();
        self.finish(config)
    }

    /// The same for a server that turns away clients without a certificate of `clients`.
    pub fn server_config_for_clients_of(&self, clients: &Authority) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(clients.der())
            .expect("an authority can be a root");
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(ring::default_provider()),
        )
        .build()
        .expect("there is a root");
        let config = server_config_builder().with_client_cert_verifier(verifier);
        self.finish(config)
    }

    /// Settings of a server that shows this certificate but signs with the key of `other`.
    pub fn server_config_signing_as(&self, other: &Self) -> ServerConfig {
        let key = ring::sign::any_supported_type(&other.key_der()).expect("ring knows P-256");
        let certified = CertifiedKey::new(vec![self.der()], key);
        server_config_builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
    }

    fn sign_itself(params: &CertificateParams) -> Self {
        let key = new_key();
        let certificate = params.self_signed(&key).expect("parameters are valid");
        Self::new(&certificate, &key)
    }

    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            key_pem: key.serialize_pem(),
        }
    }

    fn finish(
        &self,
        builder: rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    ) -> ServerConfig {
        let mut config = builder
            .with_single_cert(vec![self.der()], self.key_der())
            .expect("the key is the certificate's");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}

/// A folder for PEM files, gone when dropped.
#[derive(Debug)]
pub struct MaterialFiles(TempDir);

impl MaterialFiles {
    /// An empty folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Writes `text` to the file `name` and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    }

    /// The path that `name` has or would have.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Default for MaterialFiles {
    fn default() -> Self {
        Self::new()
    }
}

fn leaf_params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let common = names.first().cloned().unwrap_or_default();
    let mut params = CertificateParams::new(names).expect("names are host names or addresses");
    // Without a name of its own it would have the authority's, and pass for self-signed.
    params.distinguished_name.push(DnType::CommonName, common);
    params
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("ring can make a P-256 key")
}

fn server_config_builder() -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring offers suites for TLS 1.2 and 1.3")
}
