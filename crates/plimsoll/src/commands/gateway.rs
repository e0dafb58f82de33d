//! `plimsoll gateway`: forwards requests to servers.

pub(crate) mod import;

use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_model::document::readable_toml_string;

use crate::commands::serving::Brought;
use crate::exit::Exit;
use crate::flags::{Preferred, ServingArgs, listen_address, quoted_path};
use crate::problem::Failed;

/// Forward requests to upstream servers, as a reverse proxy and load balancer
///
/// SIGTERM and Ctrl-C drain open connections; a second signal stops at once. `plimsoll up` takes several upstreams and
/// routes from a file; --print-config prints that of this command line.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<GatewayCommand>,

    /// Forward to this server: `http://10.0.0.1:8080`, `https://…`, `unix:/run/app.sock`, `tcp://…` or `tls://…` with --tcp, `udp://…` with --udp and --quic; repeatable
    #[arg(long, value_name = "URL", required = true)]
    to: Vec<String>,

    /// Forward the TCP connections to this address instead of HTTP requests
    #[arg(long, value_name = "ADDR", value_parser = listen_address, conflicts_with_all = ONLY_HTTP)]
    tcp: Option<SocketAddr>,

    /// Forward the datagrams to this address instead of HTTP requests
    #[arg(long, value_name = "ADDR", value_parser = listen_address, conflicts_with_all = ONLY_HTTP, conflicts_with_all = ONLY_TLS, conflicts_with = "tcp")]
    udp: Option<SocketAddr>,

    /// Forward the QUIC connections to this address, without decrypting them, instead of HTTP requests
    #[arg(long, value_name = "ADDR", value_parser = listen_address, conflicts_with_all = ONLY_HTTP, conflicts_with_all = ONLY_TLS, conflicts_with_all = ["tcp", "udp"])]
    quic: Option<SocketAddr>,

    #[command(flatten)]
    upstream: UpstreamArgs,

    #[command(flatten)]
    serving: ServingArgs,
}

/// Flags that say something of requests, or of how a listener for them is encrypted.
const ONLY_HTTP: [&str; 13] = [
    "listen",
    "port",
    "tls",
    "cert",
    "key",
    "http3",
    "https_redirect",
    "security_headers",
    "sticky",
    "upstream_http2",
    "host",
    "cache",
    "response_timeout",
];

/// Flags that say something of TLS to servers, which datagrams are not sent over.
const ONLY_TLS: [&str; 2] = ["cacert", "insecure"];

#[derive(Debug, clap::Subcommand)]
enum GatewayCommand {
    Import(import::Args),
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Upstream")]
struct UpstreamArgs {
    /// Balance requests by `round_robin`, `random`, `least_requests`, `least_connections`, `p2c`, `peak_ewma`, `ring_hash` or `maglev`
    #[arg(long, value_name = "NAME")]
    balance: Option<String>,

    /// Send requests with the same key to the same server: `source`, `path`, `header:NAME` or `cookie:NAME`
    #[arg(long, value_name = "KEY")]
    by: Option<String>,

    /// Keep each client at its server by a cookie of this name
    #[arg(long, value_name = "NAME")]
    sticky: Option<String>,

    /// Speak HTTP/2 to the servers; without TLS by prior knowledge
    #[arg(long)]
    upstream_http2: bool,

    /// Check each server by GET of this path, or with `tcp` by a connection, and leave failing ones out
    #[arg(long, value_name = "PATH")]
    health: Option<String>,

    /// Retry a failed request at another server up to N times [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=10))]
    retries: Option<u8>,

    /// Host that the servers see: `client`, `server` or a name [default: client]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Cache responses in memory, as their `Cache-Control` allows
    #[arg(long)]
    cache: bool,

    /// Trust the certificates of this file (PEM) for https:// and tls:// servers, and no others
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Accept every certificate of https:// and tls:// servers
    #[arg(short = 'k', long)]
    insecure: bool,

    /// Limit the time to the head of a response [default: 60s]
    #[arg(long, value_name = "TIME")]
    response_timeout: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    if let Some(GatewayCommand::Import(args)) = &args.command {
        return import::run(args);
    }
    let preferred = Preferred {
        listeners: raw_listener(args),
        ..Preferred::default()
    };
    let text = configuration(args);
    args.serving
        .serve_preferring(&text, &preferred, Brought::all())
}

/// The listener for what is not HTTP, if the flags ask for one.
fn raw_listener(args: &Args) -> Option<String> {
    let kinds = [("tcp", args.tcp), ("udp", args.udp), ("quic", args.quic)];
    let (key, address) = kinds.into_iter().find_map(|(key, it)| Some((key, it?)))?;
    let address = readable_toml_string(&address.to_string());
    Some(format!(
        "[[listen]]\naddress = {address}\n{key} = \"servers\"\n"
    ))
}

/// The upstream and the route that the flags stand for.
fn configuration(args: &Args) -> String {
    let UpstreamArgs {
        balance,
        by,
        sticky,
        upstream_http2,
        health,
        retries,
        host,
        cache,
        cacert,
        insecure,
        response_timeout,
    } = &args.upstream;
    let servers: Vec<_> = args
        .to
        .iter()
        .map(|url| readable_toml_string(url))
        .collect();
    let mut lines = vec![
        "[upstream.servers]".to_owned(),
        format!("servers = [{}]", servers.join(", ")),
    ];
    let mut key = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name} = {value}")));
    };
    key("balance", balance.as_deref().map(readable_toml_string));
    key("by", by.as_deref().map(readable_toml_string));
    key("sticky", sticky.as_deref().map(readable_toml_string));
    key(
        "protocol",
        upstream_http2.then(|| readable_toml_string("http2")),
    );
    let path = |path: &String| match path.as_str() {
        "tcp" => "{ kind = \"tcp\" }".to_owned(),
        path => format!("{{ path = {} }}", readable_toml_string(path)),
    };
    key("health", health.as_ref().map(path));
    let retry = retries.map(|retries| format!("{{ retries = {retries} }}"));
    key("retry", retry);
    let ca = cacert
        .as_ref()
        .map(|file| format!("{{ ca = {} }}", quoted_path(file)));
    let tls = ca.or_else(|| insecure.then(|| "{ insecure = true }".to_owned()));
    key("tls", tls);
    key(
        "response_timeout",
        response_timeout.as_deref().map(readable_toml_string),
    );
    if raw_listener(args).is_some() {
        return lines.join("\n");
    }
    let host = host.as_deref().map(readable_toml_string);
    let host = host.map_or(String::new(), |host| format!(", host = {host}"));
    let cache = if *cache { ", cache = true" } else { "" };
    lines.push(format!(
        "\n[[route]]\nproxy = {{ to = \"servers\"{host}{cache} }}\n"
    ));
    lines.join("\n")
}
