//! Address of a listener: TCP, UDP or a Unix socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Address of a listener.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A port; 0 takes a free one. `[::]` means every address of both families.
    Port(SocketAddr),
    /// A socket in the file system, at an absolute path or one relative to the working directory.
    Unix(PathBuf),
    /// A socket that was opened by the parent process, by its name.
    Inherited(String),
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address with a port, such as 127.0.0.1:8080, localhost:8080, 8080 (this machine only) or :8080 \
     (every address), nor unix:PATH or inherited:NAME"
)]
pub struct AddressError(String);

impl Address {
    /// The port, if it is one.
    pub fn port(&self) -> Option<SocketAddr> {
        match self {
            Self::Port(address) => Some(*address),
            Self::Unix(_) | Self::Inherited(_) => None,
        }
    }

    /// Whether two listeners on it would collide: port 0 gives each a different port.
    pub(crate) fn is_one(&self) -> bool {
        self.port().is_none_or(|address| address.port() != 0)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Port(address)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = !path.is_empty() && !path.contains('\0');
            return is_path.then(|| Self::Unix(path.into())).ok_or_else(wrong);
        }
        if let Some(name) = text.strip_prefix("inherited:") {
            let is_name = !name.is_empty();
            return is_name
                .then(|| Self::Inherited(name.to_owned()))
                .ok_or_else(wrong);
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
        let ip = match host {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            // Every address of both families.
            "" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => return text.parse().map(Self::Port).map_err(|_| wrong()),
        };
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number);
        let port = port.ok_or_else(wrong)?;
        Ok(Self::Port(SocketAddr::new(ip, port)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "inherited:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_says() {
        for text in [
            "127.0.0.1:80",
            "[::]:8443",
            "unix:/run/x.sock",
            "unix:x.sock",
            "inherited:web",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for (text, meant) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            (":8080", "[::]:8080"),
            ("0", "127.0.0.1:0"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), meant);
        }
        for text in [
            "unix:",
            "inherited:",
            "unix:\0",
            "",
            ":",
            "70000",
            ":70000",
            "+80",
            "localhost",
            "localhost:",
            "example.org:80",
            "::1:80",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
