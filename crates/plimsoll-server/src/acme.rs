//! Certificates that are ordered by ACME (RFC 8555): what is wanted, and how the listeners prove control of
//! the names are.
//!
//! The code that runs a plan orders the certificates and keeps their files; see `plimsoll-certificates`.

mod http_challenges;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_model::Secret;
use plimsoll_wire::tls::{AwaitedCertificate, OnDemandCertificates, TlsChallenges, Trust};

pub(crate) use crate::acme::http_challenges::WithChallenges;
pub use crate::acme::http_challenges::{AnsweringHttpChallenge, HttpChallenges};

/// A certificate that is to be had, and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmePlan {
    /// Hosts and addresses that it is for, in lower case; at least one.
    pub names: Vec<String>,
    /// Challenge type that proves control of the names.
    pub challenge: ChallengeKind,
    /// The account that orders it.
    pub account: AcmeAccount,
    /// File of the certificate with its key, in PEM.
    pub file: PathBuf,
}

/// Certificates that are ordered when a client first requests a name that a service permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDemandPlan {
    /// How names are shown to be the server's.
    pub challenge: ChallengeKind,
    /// The account that orders them.
    pub account: AcmeAccount,
    /// Where accounts and certificates are kept.
    pub folder: PathBuf,
    /// First orders of names within an hour.
    pub most_per_hour: usize,
}

impl OnDemandPlan {
    /// The certificate of one name.
    ///
    /// - `name`: a host in lower case.
    pub fn certificate(&self, name: &str) -> AcmePlan {
        let (file, _) = AcmePlan::files(&self.folder, &self.account.directory, name);
        AcmePlan {
            names: vec![name.to_owned()],
            challenge: self.challenge,
            account: self.account.clone(),
            file,
        }
    }
}

/// The directory and account by which certificates are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeAccount {
    /// The URL of the authority's directory.
    pub directory: String,
    /// Which servers are believed to be the authority's.
    pub trust: Trust,
    /// URLs that the authority may write to, such as `mailto:admin@example.org`.
    pub contacts: Vec<String>,
    /// The account elsewhere that this one belongs to, if the authority wants one (RFC 8555, section 7.3.4).
    pub external: Option<ExternalAccount>,
    /// File of the account with its key, in JSON.
    pub file: PathBuf,
}

/// An account that was opened by other means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Its identifier.
    pub id: String,
    /// Its key for HMAC with SHA-256, in base64url without padding.
    pub key: Secret,
}

/// Challenge type that proves control of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeKind {
    /// By an answer in the clear at port 80 (RFC 8555, section 8.3).
    Http,
    /// By a certificate at port 443 (RFC 8737).
    TlsAlpn,
}

impl ChallengeKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Http, Self::TlsAlpn];

    /// As protocols write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http-01",
            Self::TlsAlpn => "tls-alpn-01",
        }
    }
}

/// Responses to pending challenges, and permitted names; shared between the ACME client and the listeners.
#[derive(Debug, Clone, Default)]
pub struct Challenges {
    /// In the clear.
    pub http: HttpChallenges,
    /// By certificates.
    pub tls: TlsChallenges,
    /// Certificates ordered on demand, which services permit and listeners show.
    pub on_demand: OnDemandCertificates,
}

impl AcmePlan {
    /// The certificate as listeners wait for it.
    pub fn awaited(&self) -> AwaitedCertificate {
        AwaitedCertificate {
            names: self.names.clone(),
            file: self.file.clone(),
            ocsp: None,
        }
    }

    /// Its name: the first domain.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Files of the certificate of `name` and of the account at `directory` within `folder`: a folder for each authority.
    pub(crate) fn files(folder: &Path, directory: &str, name: &str) -> (PathBuf, PathBuf) {
        let authority = directory.trim_start_matches("https://");
        let plain = |text: &str| -> String {
            let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '.' || it == '-';
            text.chars()
                .map(|it| if is_plain(it) { it } else { '_' })
                .collect()
        };
        let folder = folder.join(plain(authority));
        let certificate = folder.join(format!("{}.pem", plain(name)));
        (certificate, folder.join("account.json"))
    }
}

/// The error in a name for a certificate, if there is one.
pub(crate) fn mistake_in_name(name: &str) -> Option<String> {
    if name.parse::<IpAddr>().is_ok() {
        return None;
    }
    if name.starts_with("*.") {
        return Some(format!(
            "`{name}`: authorities give certificates with a star for records of DNS (dns-01) alone"
        ));
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_host = name.len() <= 253 && name.split('.').all(is_label);
    (!is_host).then(|| format!("`{name}` is neither a host nor an address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hosts_and_addresses() {
        for name in [
            "example.org",
            "A-1.example",
            "127.0.0.1",
            "::1",
            "localhost",
        ] {
            assert_eq!(mistake_in_name(name), None);
        }
        for name in [
            "",
            "*.example.org",
            "a..b",
            "-a.example",
            "a_b.example",
            "a/b",
        ] {
            assert!(mistake_in_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn files_lie_within_the_folder_whatever_the_names() {
        let files = |directory, name| AcmePlan::files(Path::new("acme"), directory, name);
        let (certificate, account) = files("https://acme.example:14000/dir", "example.org");
        assert_eq!(
            certificate,
            Path::new("acme/acme.example_14000_dir/example.org.pem")
        );
        assert_eq!(
            account,
            Path::new("acme/acme.example_14000_dir/account.json")
        );
        let (certificate, _) = files("https://../../etc", "::1");
        assert_eq!(certificate, Path::new("acme/.._.._etc/__1.pem"));
    }
}
