//! `plimsoll gateway`: forwards requests to servers.

use std::path::PathBuf;

use crate::exit::Exit;
use crate::flags::{ServingArgs, quoted, quoted_path};
use crate::problem::Failed;

/// Forward requests to upstream servers, as a reverse proxy and load balancer
///
/// SIGTERM and Ctrl-C drain open connections; a second signal stops at once. `plimsoll up` takes several upstreams and
/// routes from a file; --print-config prints that of this command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Forward to this server: `http://10.0.0.1:8080`, `https://…`; repeatable
    #[arg(long, value_name = "URL", required = true)]
    to: Vec<String>,

    #[command(flatten)]
    upstream: UpstreamArgs,

    #[command(flatten)]
    serving: ServingArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Upstream")]
struct UpstreamArgs {
    /// Balance requests by `round_robin`, `random`, `least_requests`, `p2c`, `peak_ewma`, `ring_hash` or `maglev`
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

    /// Check each server by GET of this path and leave failing ones out
    #[arg(long, value_name = "PATH")]
    health: Option<String>,

    /// Retry a failed request at another server up to N times [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=10))]
    retries: Option<u8>,

    /// Host that the servers see: `client`, `server` or a name [default: client]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Trust the certificates of this file (PEM) for https:// servers, and no others
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Accept every certificate of https:// servers
    #[arg(short = 'k', long)]
    insecure: bool,

    /// Limit the time to the head of a response [default: 60s]
    #[arg(long, value_name = "TIME")]
    response_timeout: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    args.serving.serve(&configuration(args))
}

/// What the flags mean, as an upstream and a route.
fn configuration(args: &Args) -> String {
    let UpstreamArgs {
        balance,
        by,
        sticky,
        upstream_http2,
        health,
        retries,
        host,
        cacert,
        insecure,
        response_timeout,
    } = &args.upstream;
    let servers: Vec<_> = args.to.iter().map(|url| quoted(url)).collect();
    let mut lines = vec![
        "[upstream.servers]".to_owned(),
        format!("servers = [{}]", servers.join(", ")),
    ];
    let mut key = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name} = {value}")));
    };
    key("balance", balance.as_deref().map(quoted));
    key("by", by.as_deref().map(quoted));
    key("sticky", sticky.as_deref().map(quoted));
    key("protocol", upstream_http2.then(|| quoted("http2")));
    let path = |path: &String| format!("{{ path = {} }}", quoted(path));
    key("health", health.as_ref().map(path));
    let retry = retries.map(|retries| format!("{{ retries = {retries} }}"));
    key("retry", retry);
    let ca = cacert
        .as_ref()
        .map(|file| format!("{{ ca = {} }}", quoted_path(file)));
    let tls = ca.or_else(|| insecure.then(|| "{ insecure = true }".to_owned()));
    key("tls", tls);
    key("response_timeout", response_timeout.as_deref().map(quoted));
    let host = host.as_deref().map(quoted);
    let host = host.map_or(String::new(), |host| format!(", host = {host}"));
    lines.push(format!(
        "\n[[route]]\nproxy = {{ to = \"servers\"{host} }}\n"
    ));
    lines.join("\n")
}
