//! Proxies: which one, if any, stands between us and a target (curl's `-x` and `*_proxy`).

use std::fmt;
use std::str::FromStr;

use plimsoll_model::Secret;
use url::{Host, Url};

use crate::connect::credentials::{self, basic_authorization, decode};
use crate::connect::endpoint::{Endpoint, Scheme};
use crate::connect::no_proxy::{NoProxy, NoProxyError};

/// A proxy and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    scheme: ProxyScheme,
    host: Host<String>,
    port: u16,
    credentials: Option<(String, Secret)>,
}

/// Protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyScheme {
    /// HTTP in the clear: absolute-form requests and `CONNECT`.
    Http,
    /// HTTP over TLS.
    Https,
    /// SOCKS 4: the target's name is resolved here, IPv4 only.
    Socks4,
    /// SOCKS 4a: the target's name is resolved by the proxy.
    Socks4a,
    /// SOCKS 5 (RFC 1928): the target's name is resolved here.
    Socks5,
    /// SOCKS 5: the target's name is resolved by the proxy.
    Socks5h,
}

impl ProxyScheme {
    const ALL: [Self; 6] = [
        Self::Http,
        Self::Https,
        Self::Socks4,
        Self::Socks4a,
        Self::Socks5,
        Self::Socks5h,
    ];

    /// The name as it stands in a proxy's URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks4 => "socks4",
            Self::Socks4a => "socks4a",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    /// Whether it speaks HTTP rather than SOCKS.
    pub const fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// curl's: 443 over TLS, 1080 for all others.
    const fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            _ => 1080,
        }
    }
}

impl Proxy {
    /// Protocol of the proxy.
    pub const fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// Its name or address.
    pub fn host(&self) -> Host<&str> {
        match &self.host {
            Host::Domain(name) => Host::Domain(name),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        }
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// User and password for it, decoded.
    pub fn credentials(&self) -> Option<(&str, &Secret)> {
        self.credentials
            .as_ref()
            .map(|(user, password)| (user.as_str(), password))
    }

    /// The value of `Proxy-Authorization`, if there are credentials.
    pub fn authorization(&self) -> Option<Secret> {
        self.credentials()
            .map(|(user, password)| basic_authorization(user, password))
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    /// `[SCHEME://][USER[:PASSWORD]@]HOST[:PORT]`; without a scheme `http://` is meant, and without
    /// a port 443 for `https://`, otherwise 1080, as for curl.
    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let text = text.trim();
        let (scheme, rest) = match text.split_once("://") {
            None => (ProxyScheme::Http, text),
            Some((name, rest)) => {
                let scheme = ProxyScheme::ALL
                    .into_iter()
                    .find(|scheme| scheme.name().eq_ignore_ascii_case(name))
                    .ok_or_else(|| ProxyError::UnknownScheme(name.to_owned()))?;
                (scheme, rest)
            }
        };
        // Under a scheme of its own, because a URL parser drops `:80` from `http://proxy:80`.
        let url = Url::parse(&format!("proxy://{rest}")).map_err(ProxyError::Malformed)?;
        let host = match url.host() {
            None => return Err(ProxyError::MissingHost),
            Some(Host::Domain(name)) => {
                Host::parse(&decode(name)).map_err(ProxyError::Malformed)?
            }
            Some(address) => address.to_owned(),
        };
        Ok(Self {
            scheme,
            host,
            port: url.port().unwrap_or(scheme.default_port()),
            credentials: credentials::of_url(&url),
        })
    }
}

/// The proxy's URL without its credentials.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), self.host, self.port)
    }
}

/// Why a proxy's URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// A scheme that no proxy of ours has.
    #[error(
        "unknown proxy scheme `{0}`; plimsoll speaks http://, https://, socks4://, socks4a://, socks5:// and socks5h://"
    )]
    UnknownScheme(String),
    /// No host.
    #[error("the proxy has no host; expected [SCHEME://][USER:PASSWORD@]HOST[:PORT]")]
    MissingHost,
    /// Not a URL.
    #[error("not a proxy URL")]
    Malformed(#[source] url::ParseError),
}

/// Which proxy each target is reached through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyRules {
    http: Option<Proxy>,
    https: Option<Proxy>,
    except: NoProxy,
}

impl ProxyRules {
    /// The environment variables that [`from_variables`](Self::from_variables) looks at.
    pub const VARIABLES: [&str; 7] = [
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "no_proxy",
        "NO_PROXY",
    ];

    /// No proxy for anything.
    pub fn none() -> Self {
        Self::default()
    }

    /// `proxy` for everything (`-x`); add [`except`](Self::except) for what is exempt.
    pub fn always(proxy: Proxy) -> Self {
        Self {
            http: Some(proxy.clone()),
            https: Some(proxy),
            except: NoProxy::default(),
        }
    }

    /// The same rules with `list` exempt.
    #[must_use]
    pub fn except(mut self, list: NoProxy) -> Self {
        self.except = list;
        self
    }

    /// The rules that the environment variables in `variables` make, as curl reads them.
    ///
    /// `http_proxy` (in lowercase only: under CGI a client sets `HTTP_PROXY` by sending a `Proxy`
    /// field), `https_proxy`, `all_proxy` and `no_proxy`, where lowercase beats uppercase and an
    /// empty value counts as absent. Other variables are ignored. The error names the variable.
    ///
    /// Source: curl's manual, section "environment".
    pub fn from_variables<N, V>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ProxyVariableError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut found: [Option<(&'static str, String)>; Self::VARIABLES.len()] = Default::default();
        for (name, value) in variables {
            let known = Self::VARIABLES
                .iter()
                .position(|known| *known == name.as_ref());
            if let Some(index) = known
                && !value.as_ref().is_empty()
            {
                found[index] = Some((Self::VARIABLES[index], value.as_ref().to_owned()));
            }
        }
        let [http, https, https_upper, all, all_upper, none, none_upper] = found;
        let all = all.or(all_upper);
        Ok(Self {
            http: http.or_else(|| all.clone()).map(parse).transpose()?,
            https: https.or(https_upper).or(all).map(parse).transpose()?,
            except: none
                .or(none_upper)
                .map(parse)
                .transpose()?
                .unwrap_or_default(),
        })
    }

    /// The proxy for `endpoint`, if it is reached through one.
    pub fn select(&self, endpoint: &Endpoint) -> Option<&Proxy> {
        match endpoint.scheme() {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        }
        .filter(|_| !self.except.matches(&endpoint.host(), endpoint.port()))
    }

    /// Every proxy that may be used.
    pub fn proxies(&self) -> impl Iterator<Item = &Proxy> {
        self.http.iter().chain(&self.https)
    }
}

/// A proxy variable with an unusable value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyVariableError {
    /// Not a proxy.
    #[error("environment variable `{variable}`")]
    Proxy {
        /// The variable's name.
        variable: &'static str,
        /// The error in its value.
        source: ProxyError,
    },
    /// Not a list of hosts.
    #[error("environment variable `{variable}`")]
    NoProxy {
        /// The variable's name.
        variable: &'static str,
        /// The error in its value.
        source: NoProxyError,
    },
}

/// A value of a proxy variable.
trait Variable: FromStr {
    fn error(variable: &'static str, source: Self::Err) -> ProxyVariableError;
}

impl Variable for Proxy {
    fn error(variable: &'static str, source: ProxyError) -> ProxyVariableError {
        ProxyVariableError::Proxy { variable, source }
    }
}

impl Variable for NoProxy {
    fn error(variable: &'static str, source: NoProxyError) -> ProxyVariableError {
        ProxyVariableError::NoProxy { variable, source }
    }
}

fn parse<T: Variable>((variable, value): (&'static str, String)) -> Result<T, ProxyVariableError> {
    value.parse().map_err(|source| T::error(variable, source))
}

#[cfg(test)]
mod tests;
