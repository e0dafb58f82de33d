//! Cipher suites by name: those of the IANA registry and those that OpenSSL gave them.

use std::str::FromStr;

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::ALL_CIPHER_SUITES;

/// The cipher suites to offer, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct CipherSuites(Vec<SupportedCipherSuite>);

impl CipherSuites {
    /// The suites.
    pub(crate) fn suites(&self) -> &[SupportedCipherSuite] {
        &self.0
    }

    /// The names of all that can be offered, as the IANA registry writes them.
    pub fn known() -> impl Iterator<Item = String> {
        ALL_CIPHER_SUITES.iter().map(iana_name)
    }
}

impl FromStr for CipherSuites {
    type Err = CipherSuitesError;

    /// Parses names separated by colons or commas, such as `TLS_AES_128_GCM_SHA256` or
    /// `ECDHE-RSA-AES128-GCM-SHA256`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut suites: Vec<SupportedCipherSuite> = Vec::new();
        for name in text.split([':', ',']).map(str::trim) {
            let suite = ALL_CIPHER_SUITES
                .iter()
                .find(|suite| {
                    let iana = iana_name(suite);
                    iana.eq_ignore_ascii_case(name) || openssl_name(&iana) == name.to_uppercase()
                })
                .ok_or_else(|| CipherSuitesError {
                    unknown: name.to_owned(),
                })?;
            if !suites.contains(suite) {
                suites.push(*suite);
            }
        }
        Ok(Self(suites))
    }
}

/// A name that is none of the suites that can be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no cipher suite `{unknown}`; there are {}", known_list())]
pub struct CipherSuitesError {
    unknown: String,
}

fn known_list() -> String {
    CipherSuites::known().collect::<Vec<_>>().join(", ")
}

/// rustls writes `TLS13_AES_…` where the registry has `TLS_AES_…` (RFC 8446, appendix B.4).
fn iana_name(suite: &SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    name.replacen("TLS13_", "TLS_", 1)
}

/// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`; the suites of TLS 1.3
/// have one name only.
fn openssl_name(iana: &str) -> String {
    if !iana.contains("_WITH_") {
        return iana.to_owned();
    }
    iana.trim_start_matches("TLS_")
        .replace("_WITH_", "_")
        .replace("AES_", "AES")
        .trim_end_matches("POLY1305_SHA256")
        .replace("CHACHA20_", "CHACHA20_POLY1305")
        .replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_naming_a_suite() {
        for (openssl, iana) in [
            (
                "ECDHE-RSA-AES128-GCM-SHA256",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            ),
            (
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            ),
            (
                "ECDHE-RSA-CHACHA20-POLY1305",
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            ),
        ] {
            assert_eq!(openssl_name(iana), openssl);
            let suites: CipherSuites = openssl.parse().unwrap();
            assert_eq!(suites, iana.parse().unwrap(), "{openssl}");
        }
    }

    #[test]
    fn a_list_keeps_its_order_and_drops_repetitions() {
        let suites: CipherSuites =
            "tls_chacha20_poly1305_sha256:TLS_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256"
                .parse()
                .unwrap();
        let names: Vec<_> = suites.suites().iter().map(iana_name).collect();
        assert_eq!(
            names,
            ["TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"]
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "RC4-SHA".parse::<CipherSuites>().unwrap_err().to_string();
        assert!(
            error.starts_with("no cipher suite `RC4-SHA`; there are TLS_AES_256_GCM_SHA384, "),
            "{error}"
        );
    }
}
