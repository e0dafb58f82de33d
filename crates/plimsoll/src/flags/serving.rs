//! Flags that every serving command has, as the configuration that they mean.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Value;

use crate::commands::serving::{self, Source};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServingArgs {
    /// Where to listen; may be given several times.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: Vec<SocketAddr>,

    /// Metrics, health and readiness, on the loopback only.
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,

    /// Workers; one for each core unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Bind each worker to a core of its own.
    #[arg(long)]
    pin: bool,

    /// TLS with a certificate for localhost that is made now and vouches for itself.
    #[arg(long, conflicts_with_all = ["cert", "key"])]
    tls: bool,

    /// TLS with this certificate and those that vouch for it, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// One JSON line for each request, appended to this file; `-` for the standard output.
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,

    /// Print the configuration that this command line means, for `plimsoll up`, and serve nothing.
    #[arg(long)]
    print_config: bool,
}

impl ServingArgs {
    /// Serves `routes`, the text of `[[route]]` tables, until a signal ends it, or prints the configuration.
    pub(crate) fn serve(&self, routes: &str) -> Result<Exit, Failed> {
        let text = self.configuration(routes);
        if self.print_config {
            let printed = terminal::print(text.trim_end());
            printed.map_err(|error| Problem::caused_by(&error).could_not_run())?;
            return Ok(Exit::Fine);
        }
        serving::run(Source::CommandLine(text))
    }

    fn configuration(&self, routes: &str) -> String {
        let mut text = String::new();
        if let Some(threads) = self.threads {
            line(&mut text, "threads", &threads.to_string());
        }
        if self.pin {
            line(&mut text, "pin", "true");
        }
        for address in &self.listen {
            header(&mut text, "[[listen]]");
            line(&mut text, "address", &quoted(&address.to_string()));
            if self.tls {
                line(&mut text, "tls", "[{ self_signed = true }]");
            }
            if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
                let (cert, key) = (quoted_path(cert), quoted_path(key));
                let tls = format!("[{{ cert = {cert}, key = {key} }}]");
                line(&mut text, "tls", &tls);
            }
        }
        if let Some(address) = self.admin {
            header(&mut text, "[admin]");
            line(&mut text, "address", &quoted(&address.to_string()));
        }
        if let Some(file) = &self.access_log {
            header(&mut text, "[log]");
            line(&mut text, "file", &quoted_path(file));
        }
        header(&mut text, routes.trim());
        text
    }
}

/// A text as it stands in TOML.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A path as it stands in TOML.
pub(crate) fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
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
