//! Flags that every serving command has, as the configuration that they mean.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use plimsoll_model::document::readable_toml_string;
use plimsoll_server::Address;

use crate::commands::serving::{self, Brought, ConfinementArgs, ProcessOptions, Source};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServingArgs {
    /// Listen on this address: `HOST:PORT`, `PORT` on the loopback, or `:PORT` on all addresses; repeatable
    /// [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Vec<SocketAddr>,

    /// Listen on this port of the loopback, as `--listen PORT`
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,

    /// Serve metrics, health and readiness on this loopback address
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    admin: Option<SocketAddr>,

    /// Serve metrics, health (/healthz) and readiness (/readyz) alone on this address
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    metrics: Option<SocketAddr>,

    /// Prefix of the site's metrics [default: `plimsoll_site`]
    #[arg(long, value_name = "NAME", requires = "metrics")]
    metrics_prefix: Option<String>,

    /// Number of worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Pin each worker to a core
    #[arg(long)]
    pin: bool,

    /// Serve TLS with a self-signed certificate for localhost
    #[arg(long, conflicts_with_all = ["cert", "key"])]
    tls: bool,

    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Serve HTTP/3 too, on the same UDP port; needs TLS
    #[arg(long)]
    http3: bool,

    /// Listen on this address without TLS and redirect to HTTPS
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    https_redirect: Option<SocketAddr>,

    /// Add the security headers that OWASP and Mozilla Observatory recommend
    #[arg(long)]
    security_headers: bool,

    /// Append a JSON line per request to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,

    /// Take the sockets over from the server that was started with the same socket, if there is one, and hand them over to
    /// the next one
    #[arg(long, value_name = "SOCKET")]
    takeover: Option<PathBuf>,

    /// Print this command line as a configuration for `plimsoll up` and exit
    #[arg(long)]
    print_config: bool,

    /// What would be served is printed; commands that have it say so.
    #[arg(skip)]
    is_check: bool,

    #[command(flatten)]
    pub(crate) confinement: ConfinementArgs,
}

/// Where and how to listen if the command line does not say where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preferred {
    /// Addresses, each with the files of its certificate and key if it is encrypted; none for the usual one.
    pub(crate) listen: Vec<Listening>,
    /// The lines of `[limits]`.
    pub(crate) limits: String,
    /// The `[[listen]]` tables of a command that serves no HTTP; they take the place of those of the flags.
    pub(crate) listeners: Option<String>,
    /// Where metrics alone are shown, and what the names of a site's own begin with.
    pub(crate) metrics: Option<(SocketAddr, &'static str)>,
}

/// An address, with the files of its certificate and key if it has its own.
type Listening = (SocketAddr, Option<(PathBuf, PathBuf)>);

const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

impl ServingArgs {
    /// Serves `routes`, the text of `[[route]]` tables, until a signal ends it, or prints the configuration.
    pub(crate) fn serve(&self, routes: &str) -> Result<Exit, Failed> {
        self.serve_preferring(routes, &Preferred::default(), Brought::all())
    }

    /// The same for something that has a place of its own.
    pub(crate) fn serve_preferring(
        &self,
        routes: &str,
        preferred: &Preferred,
        brought: Brought,
    ) -> Result<Exit, Failed> {
        let text = self.configuration(routes, preferred)?;
        if self.print_config {
            let printed = terminal::print(text.trim_end());
            printed.map_err(|error| Problem::caused_by(&error).could_not_run())?;
            return Ok(Exit::Fine);
        }
        if self.is_check {
            let lines = serving::check(Source::CommandLine(text), brought)?;
            let printed = terminal::print(&lines.join("\n"));
            printed.map_err(|error| Problem::caused_by(&error).could_not_run())?;
            return Ok(Exit::Fine);
        }
        let options = ProcessOptions {
            takeover: self.takeover.as_deref(),
            watch: false,
            confinement: &self.confinement,
        };
        serving::run(Source::CommandLine(text), brought, &options)
    }

    /// The same, which prints where it would listen instead of serving if `is_check`.
    pub(crate) fn or_check(&self, is_check: bool) -> Self {
        Self {
            is_check,
            ..self.clone()
        }
    }

    /// Whether there seems to be a server to take over from.
    pub(crate) fn takes_over(&self) -> bool {
        self.takeover.as_deref().is_some_and(Path::exists)
    }

    fn configuration(&self, routes: &str, preferred: &Preferred) -> Result<String, Failed> {
        let mut text = String::new();
        if let Some(threads) = self.threads {
            line(&mut text, "threads", &threads.to_string());
        }
        if self.pin {
            line(&mut text, "pin", "true");
        }
        let own = self.cert.clone().zip(self.key.clone());
        let port = self.port.map(|port| SocketAddr::new(USUAL.ip(), port));
        let given: Vec<_> = self.listen.iter().copied().chain(port).collect();
        let listen = match (given.as_slice(), preferred.listen.as_slice()) {
            ([], []) => vec![(USUAL, own)],
            ([], preferred) if own.is_none() && !self.tls => preferred.to_vec(),
            ([], preferred) => preferred.iter().map(|(it, _)| (*it, own.clone())).collect(),
            (given, _) => given
                .iter()
                .map(|address| (*address, own.clone()))
                .collect(),
        };
        let is_encrypted = |files: &Option<_>| self.tls || files.is_some();
        if self.http3 && !listen.iter().any(|(_, files)| is_encrypted(files)) {
            let problem = Problem::with("--http3", "there is no TLS, which it runs over");
            return Err(problem.hint("give --cert and --key, or --tls").usage());
        }
        let to_tls = self.to_tls(&listen)?;
        if let Some(listeners) = &preferred.listeners {
            header(&mut text, listeners.trim_end());
        }
        let of_flags = listen.into_iter().filter(|_| preferred.listeners.is_none());
        for (address, files) in of_flags {
            header(&mut text, "[[listen]]");
            line(
                &mut text,
                "address",
                &readable_toml_string(&address.to_string()),
            );
            if self.tls {
                line(&mut text, "tls", "[{ self_signed = true }]");
            }
            if let Some((cert, key)) = &files {
                let (cert, key) = (quoted_path(cert), quoted_path(key));
                let tls = format!("[{{ cert = {cert}, key = {key} }}]");
                line(&mut text, "tls", &tls);
            }
            if self.http3 && is_encrypted(&files) {
                line(&mut text, "http3", "true");
            }
            if self.security_headers {
                line(&mut text, "security_headers", "true");
            }
        }
        text.push_str(&to_tls);
        if !preferred.limits.is_empty() {
            header(&mut text, "[limits]");
            text.push_str(&preferred.limits);
        }
        if let Some(address) = self.admin {
            header(&mut text, "[admin]");
            line(
                &mut text,
                "address",
                &readable_toml_string(&address.to_string()),
            );
        }
        let metrics = match (self.metrics, &self.metrics_prefix) {
            (Some(address), prefix) => Some((address, prefix.as_deref())),
            (None, _) => preferred.metrics.map(|(it, prefix)| (it, Some(prefix))),
        };
        if let Some((address, prefix)) = metrics {
            header(&mut text, "[metrics]");
            line(
                &mut text,
                "address",
                &readable_toml_string(&address.to_string()),
            );
            if let Some(prefix) = prefix {
                line(&mut text, "prefix", &readable_toml_string(prefix));
            }
        }
        if let Some(file) = &self.access_log {
            header(&mut text, "[log]");
            line(&mut text, "file", &quoted_path(file));
        }
        header(&mut text, routes.trim());
        Ok(text)
    }

    /// The listener that sends clients to the first of the others.
    fn to_tls(&self, others: &[Listening]) -> Result<String, Failed> {
        let Some(address) = self.https_redirect else {
            return Ok(String::new());
        };
        let wrong = |message: &str, hint: &str| {
            let problem = Problem::with("--https-redirect", message);
            Err(problem.hint(hint).usage())
        };
        let encrypted = others.iter().find(|(_, files)| self.tls || files.is_some());
        let Some((target, _)) = encrypted else {
            return wrong(
                "there is no TLS to send clients to",
                "give --cert and --key, or --tls",
            );
        };
        if target.port() == 0 {
            return wrong("the port of TLS is not known", "give --listen one");
        }
        let mut text = String::from("\n[[listen]]\n");
        line(
            &mut text,
            "address",
            &readable_toml_string(&address.to_string()),
        );
        let redirect = format!("{{ port = {} }}", target.port());
        line(&mut text, "redirect_https", &redirect);
        Ok(text)
    }
}

/// An address with a port in any of the forms that the configuration takes.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        format!(
            "`{text}` is not an address with a port, such as 127.0.0.1:8080, localhost:8080, 8080 (this machine only) or \
             :8080 (every address)"
        )
    };
    let address: Address = text.parse().map_err(|_| wrong())?;
    address.port().ok_or_else(wrong)
}

/// A path as it stands in TOML.
pub(crate) fn quoted_path(path: &Path) -> String {
    readable_toml_string(&path.to_string_lossy())
}

fn line(text: &mut String, key: &str, value: &str) {
    writeln!(text, "{key} = {value}").expect("texts take everything");
}

fn header(text: &mut String, header: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(header);
    text.push('\n');
}
