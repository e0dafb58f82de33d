//! Which versions of TLS are offered.

use std::fmt;
use std::str::FromStr;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// A version of TLS that can be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

impl TlsVersion {
    pub(crate) fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::V1_2 => &TLS12,
            Self::V1_3 => &TLS13,
        }
    }
}

impl FromStr for TlsVersion {
    type Err = TlsVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err(TlsVersionError(text.to_owned())),
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        })
    }
}

/// Not a version of TLS that can be spoken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of TLS that can be spoken here; write `1.2` or `1.3`")]
pub struct TlsVersionError(String);

/// The oldest and the newest version offered; by default 1.2 to 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsVersions {
    least: TlsVersion,
    most: TlsVersion,
}

impl TlsVersions {
    /// From `least` to `most`, both included.
    pub fn new(least: TlsVersion, most: TlsVersion) -> Result<Self, TlsVersionsError> {
        if least > most {
            return Err(TlsVersionsError { least, most });
        }
        Ok(Self { least, most })
    }

    /// Whether `version` is offered.
    pub fn contains(self, version: TlsVersion) -> bool {
        (self.least..=self.most).contains(&version)
    }

    /// The versions, newest first.
    pub(crate) fn supported(self) -> Vec<&'static SupportedProtocolVersion> {
        [TlsVersion::V1_3, TlsVersion::V1_2]
            .into_iter()
            .filter(|version| self.contains(*version))
            .map(TlsVersion::supported)
            .collect()
    }
}

impl Default for TlsVersions {
    fn default() -> Self {
        Self {
            least: TlsVersion::V1_2,
            most: TlsVersion::V1_3,
        }
    }
}

/// The range is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no version of TLS is at least {least} and at most {most}")]
pub struct TlsVersionsError {
    least: TlsVersion,
    most: TlsVersion,
}

#[cfg(test)]
mod tests {
    use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};

    use super::*;

    #[test]
    fn ranges_offer_the_newest_first() {
        let names = |least, most| {
            let versions = TlsVersions::new(least, most).unwrap().supported();
            versions.iter().map(|one| one.version).collect::<Vec<_>>()
        };
        assert_eq!(
            names(TlsVersion::V1_2, TlsVersion::V1_3),
            [TLSv1_3, TLSv1_2]
        );
        assert_eq!(names(TlsVersion::V1_3, TlsVersion::V1_3), [TLSv1_3]);
        assert_eq!(names(TlsVersion::V1_2, TlsVersion::V1_2), [TLSv1_2]);
        let error = TlsVersions::new(TlsVersion::V1_3, TlsVersion::V1_2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no version of TLS is at least 1.3 and at most 1.2"
        );
        assert!("1.1".parse::<TlsVersion>().is_err());
    }
}
