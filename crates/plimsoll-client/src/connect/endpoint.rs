//! The target of a URL, taken apart into what connecting and asking need.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plimsoll_model::Secret;
use url::{Host, Url};

use crate::connect::credentials;

/// Scheme, host, port and path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    host: Host<String>,
    port: u16,
    authority: String,
    path_and_query: String,
    credentials: Option<(String, Secret)>,
    pinned: Option<Pin>,
}

/// Where connections lead, in place of the addresses that the host is looked up for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// An address of the host.
    Address(IpAddr),
    /// A Unix socket; the host is for requests alone.
    UnixSocket(PathBuf),
}

impl Pin {
    /// The address, if it is one.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::UnixSocket(_) => None,
        }
    }
}

/// An address, or `unix:` with a path.
impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::UnixSocket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The schemes that plimsoll speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `http://`
    Http,
    /// `https://`
    Https,
}

impl Scheme {
    /// The name as it stands in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means (RFC 9110, sections 4.2.1 and 4.2.2).
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Endpoint {
    /// Parses a URL as a person types it: without a scheme, `http://` is meant; spaces around it
    /// are ignored; a fragment is dropped.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        let with_scheme;
        let url = if has_scheme(text) {
            text
        } else {
            if lacks_colon(text) {
                return Err(EndpointError::MissingColon {
                    url: text.to_owned(),
                });
            }
            let rest = text.strip_prefix("//").unwrap_or(text);
            with_scheme = format!("http://{rest}");
            &with_scheme
        };
        // A URL parser would take the first segment of the path for the host.
        if url
            .split_once("://")
            .is_some_and(|(_, rest)| rest.starts_with('/'))
        {
            return Err(EndpointError::MissingHost {
                url: text.to_owned(),
            });
        }
        let parsed = Url::parse(url).map_err(|source| match source {
            url::ParseError::EmptyHost => EndpointError::MissingHost {
                url: text.to_owned(),
            },
            source => EndpointError::Malformed {
                url: shown(text),
                source,
            },
        })?;
        Self::try_from(&parsed)
    }

    /// The same at one of the host's addresses: connections lead there, while TLS and requests name the host.
    #[must_use]
    pub fn at(self, address: IpAddr) -> Self {
        Self {
            pinned: Some(Pin::Address(address)),
            ..self
        }
    }

    /// The same behind a Unix socket of this machine.
    #[must_use]
    pub fn at_socket(self, path: PathBuf) -> Self {
        Self {
            pinned: Some(Pin::UnixSocket(path)),
            ..self
        }
    }

    /// Another service of the same host.
    #[must_use]
    pub fn with_service(self, scheme: Scheme, port: u16) -> Self {
        let authority = if port == scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{port}", self.host)
        };
        Self {
            scheme,
            port,
            authority,
            ..self
        }
    }

    /// The server at a Unix socket, without TLS; requests name the host `localhost`.
    pub fn unix_socket(path: PathBuf) -> Self {
        let scheme = Scheme::Http;
        Self {
            scheme,
            host: Host::Domain("localhost".to_owned()),
            port: scheme.default_port(),
            authority: "localhost".to_owned(),
            path_and_query: "/".to_owned(),
            credentials: None,
            pinned: Some(Pin::UnixSocket(path)),
        }
    }

    /// Where connections lead, if the host is not to be looked up.
    pub const fn pinned(&self) -> Option<&Pin> {
        self.pinned.as_ref()
    }

    /// The Unix socket that connections lead to.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match &self.pinned {
            Some(Pin::UnixSocket(path)) => Some(path),
            Some(Pin::Address(_)) | None => None,
        }
    }

    /// The scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether the exchange runs over TLS.
    pub const fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https)
    }

    /// The host: a name in ASCII (IDNA applied) or an address.
    pub fn host(&self) -> Host<&str> {
        match &self.host {
            Host::Domain(name) => Host::Domain(name),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        }
    }

    /// The host's address, if it is one rather than a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// The port, be it written or the scheme's.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as the `Host` field carries them: IPv6 in brackets, a default port left out
    /// (RFC 9110, section 7.2).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Host and port with the port always there, as `CONNECT` wants it (RFC 9110, section 9.3.6).
    pub fn authority_with_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The request target in origin form; never empty (RFC 9112, section 3.2.1).
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// User and password of the URL, decoded.
    pub fn credentials(&self) -> Option<(&str, &Secret)> {
        self.credentials
            .as_ref()
            .map(|(user, password)| (user.as_str(), password))
    }
}

impl TryFrom<&Url> for Endpoint {
    type Error = EndpointError;

    fn try_from(url: &Url) -> Result<Self, EndpointError> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => {
                return Err(EndpointError::UnknownScheme {
                    scheme: other.to_owned(),
                });
            }
        };
        let host = match url.host() {
            None => {
                return Err(EndpointError::MissingHost {
                    url: shown(url.as_str()),
                });
            }
            Some(host) => host.to_owned(),
        };
        let authority = match url.port() {
            None => host.to_string(),
            Some(port) => format!("{host}:{port}"),
        };
        let path_and_query = match url.query() {
            None => url.path().to_owned(),
            Some(query) => format!("{}?{query}", url.path()),
        };
        Ok(Self {
            pinned: None,
            scheme,
            host,
            port: url.port().unwrap_or(scheme.default_port()),
            authority,
            path_and_query,
            credentials: credentials::of_url(url),
        })
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::parse(text)
    }
}

/// The URL without its credentials.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}{}",
            self.scheme, self.authority, self.path_and_query
        )
    }
}

/// Why a URL is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// There is nothing.
    #[error("the URL is empty")]
    Empty,
    /// A scheme that plimsoll does not speak.
    #[error("unknown scheme `{scheme}`; plimsoll speaks http:// and https://")]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// A scheme whose colon was left out.
    #[error("`{url}` has no `:` behind its scheme")]
    MissingColon {
        /// The URL.
        url: String,
    },
    /// No host.
    #[error("`{url}` has no host")]
    MissingHost {
        /// The URL, without a password.
        url: String,
    },
    /// Not a URL.
    #[error("`{url}` is not a URL")]
    Malformed {
        /// The URL, without a password.
        url: String,
        /// The error of the URL parser.
        source: url::ParseError,
    },
}

/// `localhost:8080/x` has none although it looks like one to a URL parser; what precedes `://` is
/// one, and so is `mailto:` before something that is no port.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_name = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let is_port = rest.starts_with(|first: char| first.is_ascii_digit());
    is_name && !is_port && (rest.starts_with('/') || !text.contains('@'))
}

/// Whether a text without a scheme has the name of one before `//`: it names no host then.
fn lacks_colon(text: &str) -> bool {
    const SCHEMES: [&str; 10] = [
        "http", "https", "ws", "wss", "grpc", "grpcs", "ftp", "ftps", "tcp", "udp",
    ];

    text.split_once("//").is_some_and(|(name, _)| {
        SCHEMES
            .iter()
            .any(|scheme| name.eq_ignore_ascii_case(scheme))
    })
}

/// The text with what stands before an `@` hidden, for messages.
fn shown(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}{path}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
