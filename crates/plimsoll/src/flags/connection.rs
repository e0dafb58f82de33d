//! The connection: which way it takes and which certificates it trusts.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{
    AddressFamily, ConnectOptions, ConnectPlan, Endpoint, Overrides, Proxy, ProxyHeader,
    ProxyRules, ProxyScheme, QuicOptions,
};
use plimsoll_model::Protocol;
use plimsoll_wire::ProxyProtocol;
use plimsoll_wire::tls::{
    CipherSuites, ClientConfig, IdentityFiles, TlsError, TlsSettings, TlsVersion, TlsVersions,
    Trust,
};

use super::Problems;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ConnectionArgs {
    /// Resolve HOST:PORT to this address, repeatable
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    resolve: Vec<String>,

    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long)]
    ipv6: bool,

    /// Connect from this local address
    #[arg(long, value_name = "ADDRESS")]
    source: Option<IpAddr>,

    /// Connect to this Unix socket instead of the host
    #[arg(long, value_name = "PATH", conflicts_with = "proxy")]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Proxy: `http://`, `https://`, `socks5://`, `socks5h://` [default: from *_PROXY]
    #[arg(short = 'x', long, value_name = "URL")]
    proxy: Option<String>,

    /// Use HTTP/2: by ALPN for https, with prior knowledge (h2c) for http
    #[arg(long)]
    pub(crate) http2: bool,

    /// Use HTTP/3 (https only)
    #[arg(long, conflicts_with = "http2")]
    pub(crate) http3: bool,

    /// UDP payload of QUIC packets in bytes [default: 1200, growing to 1452]
    #[arg(long, value_name = "BYTES", requires = "http3")]
    pub(crate) udp_payload: Option<u16>,

    /// Send requests in the first flight of resumed sessions (0-RTT)
    #[arg(long, requires = "http3", conflicts_with = "no_sessionid")]
    early_data: bool,

    /// Accept any certificate
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,

    /// Trust only the CA certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM) [default: in the certificate's file]
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Minimum TLS version
    #[arg(long, value_name = "VERSION", default_value = "1.2")]
    tls_min: String,

    /// Maximum TLS version
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    tls_max: String,

    /// Cipher suites in order of preference, separated by colons
    #[arg(long, value_name = "NAMES")]
    ciphers: Option<String>,

    /// Disable TLS session resumption
    #[arg(long)]
    no_sessionid: bool,

    /// Append TLS secrets to this file, for Wireshark [default: from SSLKEYLOGFILE]
    #[arg(long, value_name = "FILE")]
    tls_key_log: Option<PathBuf>,

    /// Send a PROXY protocol header, `v1` or `v2`
    #[arg(
        long,
        value_name = "VERSION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "v1"
    )]
    haproxy_protocol: Option<ProxyProtocolVersion>,

    /// Client address in the PROXY header [default: the local address]
    #[arg(long, value_name = "ADDRESS", requires = "haproxy_protocol")]
    haproxy_clientip: Option<IpAddr>,
}

/// Values of `--haproxy-protocol`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ProxyProtocolVersion {
    V1,
    V2,
}

impl ConnectionArgs {
    /// How connections to `endpoints` are opened.
    ///
    /// - `variables`: those of the environment that name proxies and the file for TLS secrets.
    pub(crate) fn plan(
        &self,
        endpoints: &[Endpoint],
        timeout: Duration,
        variables: &[(String, String)],
        problems: &mut Problems,
    ) -> Option<ConnectPlan> {
        let overrides: Vec<_> = self
            .resolve
            .iter()
            .filter_map(|text| problems.value("--resolve", text.parse()))
            .collect();
        let proxies = self.proxies(variables, problems)?;
        let key_log = self.tls_key_log.clone().or_else(|| key_log_of(variables));
        let settings = TlsSettings {
            versions: self.versions(problems)?,
            ciphers: match &self.ciphers {
                Some(names) => Some(problems.value("--ciphers", names.parse::<CipherSuites>())?),
                None => None,
            },
            key_log,
            trust: match &self.cacert {
                Some(file) => Trust::Only(file.clone()),
                None if self.insecure => Trust::Anyone,
                None => Trust::PublicRoots,
            },
            identity: self.cert.clone().map(|certificate| IdentityFiles {
                certificate,
                key: self.key.clone(),
            }),
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        if self.http3 {
            self.refuse_without_quic(endpoints, &proxies, problems);
        }
        let mut tls = None;
        let mut quic = None;
        if endpoints.iter().any(Endpoint::is_tls) {
            let protocol: &[u8] = match self.version() {
                Protocol::Http1 | Protocol::WebSocket => b"http/1.1",
                Protocol::Http2 => b"h2",
                Protocol::Http3 => b"h3",
            };
            let settings = TlsSettings {
                alpn: vec![protocol.to_vec()],
                ..settings.clone()
            };
            let compiled = compile(&settings, problems)?;
            if self.http3 {
                let options = QuicOptions {
                    udp_payload: self.udp_payload,
                    early_data: self.early_data,
                    stream_window: None,
                };
                let flag = match self.udp_payload {
                    Some(bytes) if !QuicOptions::PAYLOADS.contains(&bytes) => "--udp-payload",
                    _ => "--http3",
                };
                let options = options.compile(&compiled, self.no_sessionid);
                quic = Some(problems.value(flag, options)?);
            }
            tls = Some(compiled);
        }
        let mut proxy_tls = None;
        if proxies
            .proxies()
            .any(|proxy| proxy.scheme() == ProxyScheme::Https)
        {
            proxy_tls = Some(compile(&settings, problems)?);
        }
        let plan = ConnectPlan::new(ConnectOptions {
            address_filter: None,
            overrides: Overrides::new(overrides),
            family: match (self.ipv4, self.ipv6) {
                (true, _) => AddressFamily::Ipv4,
                (_, true) => AddressFamily::Ipv6,
                _ => AddressFamily::default(),
            },
            source: self.source,
            keepalive: None,
            unix_socket: self.unix_socket.clone(),
            name_servers: Vec::new(),
            address_ttl: None,
            proxies,
            tls,
            proxy_tls,
            server_name: None,
            quic,
            full_handshakes: self.no_sessionid,
            proxy_header: self.haproxy_protocol.map(|version| ProxyHeader {
                version: match version {
                    ProxyProtocolVersion::V1 => ProxyProtocol::V1,
                    ProxyProtocolVersion::V2 => ProxyProtocol::V2,
                },
                client: self.haproxy_clientip,
            }),
            timeout: Some(timeout),
        });
        problems.value("--source", plan)
    }

    /// The version of HTTP that is spoken.
    pub(crate) fn version(&self) -> Protocol {
        match (self.http2, self.http3) {
            (_, true) => Protocol::Http3,
            (true, false) => Protocol::Http2,
            (false, false) => Protocol::Http1,
        }
    }

    /// Notes what leads over TCP only.
    fn refuse_without_quic(
        &self,
        endpoints: &[Endpoint],
        proxies: &ProxyRules,
        problems: &mut Problems,
    ) {
        if let Some(endpoint) = endpoints.iter().find(|endpoint| !endpoint.is_tls()) {
            let message = format!("needs an https:// URL, and {endpoint} is none");
            problems.add("--http3", message);
        }
        if endpoints
            .iter()
            .any(|endpoint| proxies.select(endpoint).is_some())
        {
            problems.add(
                "--http3",
                "does not go through a proxy; use none with `-x ''`",
            );
        }
        for (flag, is_given) in [
            ("--unix-socket", self.unix_socket.is_some()),
            ("--haproxy-protocol", self.haproxy_protocol.is_some()),
        ] {
            if is_given {
                problems.add(flag, "has no meaning with --http3, which runs over UDP");
            }
        }
    }

    /// The same for servers that are not the target: the same trust, proxies and lookups, but
    /// nothing that the target or this machine's address shows.
    pub(crate) fn plan_aside(
        &self,
        endpoints: &[Endpoint],
        timeout: Duration,
        variables: &[(String, String)],
        problems: &mut Problems,
    ) -> Option<ConnectPlan> {
        let aside = Self {
            source: None,
            unix_socket: None,
            http2: false,
            http3: false,
            udp_payload: None,
            early_data: false,
            cert: None,
            key: None,
            tls_key_log: None,
            haproxy_protocol: None,
            haproxy_clientip: None,
            ..self.clone()
        };
        aside.plan(endpoints, timeout, variables, problems)
    }

    fn versions(&self, problems: &mut Problems) -> Option<TlsVersions> {
        let least = problems.value("--tls-min", self.tls_min.parse::<TlsVersion>());
        let most = problems.value("--tls-max", self.tls_max.parse::<TlsVersion>());
        problems.value("--tls-min, --tls-max", TlsVersions::new(least?, most?))
    }

    fn proxies(
        &self,
        variables: &[(String, String)],
        problems: &mut Problems,
    ) -> Option<ProxyRules> {
        match &self.proxy {
            // As with curl, an empty proxy means none, whatever the environment says.
            Some(text) if text.is_empty() => Some(ProxyRules::none()),
            Some(text) => {
                let proxy = problems.value("-x", text.parse::<Proxy>())?;
                Some(ProxyRules::always(proxy))
            }
            None => {
                let variables = variables.iter();
                let rules = ProxyRules::from_variables(
                    variables.map(|(name, value)| (name.as_str(), value.as_str())),
                );
                problems.value("environment", rules)
            }
        }
    }
}

fn compile(settings: &TlsSettings, problems: &mut Problems) -> Option<Arc<ClientConfig>> {
    let flag = |error: &TlsError| match error {
        TlsError::NoSuite => "--ciphers",
        TlsError::KeyLog { .. } => "--tls-key-log",
        TlsError::Root { .. } => "--cacert",
        TlsError::Identity { .. } => "--cert, --key",
        TlsError::Material(_) => match (&settings.identity, &settings.trust) {
            (Some(_), Trust::Only(_)) => "--cacert, --cert, --key",
            (Some(_), _) => "--cert, --key",
            (None, _) => "--cacert",
        },
    };
    let compiled = settings.compile();
    let flag = compiled.as_ref().err().map_or("TLS", flag);
    problems.value(flag, compiled)
}

/// Where OpenSSL, curl and browsers write the secrets of their TLS sessions.
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

pub(crate) fn key_log_of(variables: &[(String, String)]) -> Option<PathBuf> {
    let is_set = |(name, value): &&(String, String)| name == KEY_LOG_VARIABLE && !value.is_empty();
    variables
        .iter()
        .find(is_set)
        .map(|(_, value)| PathBuf::from(value))
}

/// The environment variables that connections respect.
#[expect(clippy::disallowed_methods, reason = "this is the binary")]
pub(crate) fn connection_variables() -> Vec<(String, String)> {
    ProxyRules::VARIABLES
        .into_iter()
        .chain([KEY_LOG_VARIABLE])
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect()
}
