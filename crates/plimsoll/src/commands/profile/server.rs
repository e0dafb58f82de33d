//! How the profile that a server takes of itself is requested.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_lab::profile::Server;
use plimsoll_wire::tls::{ClientConfig, TlsSettings, Trust};
use url::Url;

use crate::flags::Problems;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct ServerArgs {
    /// Header field of the request for a profile, such as `authorization: Bearer …`; repeatable
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        requires = "url"
    )]
    headers: Vec<String>,

    /// Trust only the certificates in this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    insecure: bool,
}

impl ServerArgs {
    /// The server at `url`, if one is given.
    pub(super) fn compile(&self, url: Option<&str>, problems: &mut Problems) -> Option<Server> {
        let fields = problems.header_fields("-H", &self.headers);
        let text = url?;
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            problems.add("URL", format!("`{text}` is not an http or https URL"));
            return None;
        };
        let tls = match url.scheme() {
            "https" => Some(self.tls(b"http/1.1", problems)?),
            _ => None,
        };
        Some(Server { url, fields, tls })
    }

    /// The trusted certificates.
    ///
    /// - `protocol`: what is spoken, by its name in ALPN.
    fn tls(&self, protocol: &[u8], problems: &mut Problems) -> Option<Arc<ClientConfig>> {
        let settings = TlsSettings {
            trust: match &self.cacert {
                Some(file) => Trust::Only(file.clone()),
                None if self.insecure => Trust::Anyone,
                None => Trust::PublicRoots,
            },
            alpn: vec![protocol.to_vec()],
            ..TlsSettings::default()
        };
        let flag = if self.cacert.is_some() {
            "--cacert"
        } else {
            "TLS"
        };
        problems.value(flag, settings.compile())
    }
}
