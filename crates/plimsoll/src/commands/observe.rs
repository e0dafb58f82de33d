//! `plimsoll observe`: serves the cost of this machine's servers to load generators on other machines.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_observe::{Machine, ObservePlan, SampleServer, SampleServerError, TargetPattern};
use plimsoll_wire::tls::CertificateFiles;

use crate::commands::serving::keep_private;
use crate::exit::Exit;
use crate::flags::{Problems, listen_address, token_in};
use crate::problem::{Failed, Problem};
use crate::service_manager::ServiceManager;
use crate::signals::Ends;
use crate::terminal;

/// How long open requests may take at the end.
const GRACE: Duration = Duration::from_secs(1);

/// Serve the cost of this machine's servers for `load --observe`
///
/// Samples of processor time, memory, descriptors, threads, throttling and traffic are read from the kernel when a client
/// wants them. Only what --allow names is served, and nothing is changed. An address that other machines reach needs a
/// token and TLS. The API is described at /openapi.json.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Listen on this address: `HOST:PORT`, `PORT` on the loopback, or `:PORT` on all addresses
    #[arg(long, value_name = "ADDR", value_parser = listen_address, default_value = "127.0.0.1:7070")]
    listen: SocketAddr,

    /// Allow this target, repeatable: `pid:4711`, `pid:nginx`, `unit:postgresql`, `cgroup:/shop.slice`, `container:web`,
    /// `pod:shop/web-0`; `*` stands for any characters, a kind alone for all of it
    #[arg(long, value_name = "KIND[:VALUE]", required = true)]
    allow: Vec<TargetPattern>,

    /// Require the token in this file as `authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Answer this many requests per second of each address
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll observe --allow unit:nginx
  plimsoll observe --listen :7070 --token-file token --cert cert.pem --key key.pem --allow unit:postgresql --allow container
  plimsoll load --observe db=https://db1:7070/?unit=postgresql --observe-token-file token http://shop.example.org/";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    keep_private()?;
    let mut problems = Problems::default();
    let token = args.token_file.as_deref();
    let token = token.and_then(|file| problems.value("--token-file", token_in(file)));
    problems.unless_any(Some(()))?;
    let files = args.cert.clone().zip(args.key.clone());
    let plan = ObservePlan {
        address: args.listen,
        token,
        tls: files.map(|(certificates, key)| CertificateFiles {
            certificates,
            key,
            ocsp: None,
        }),
        allowed: args.allow.clone(),
        requests_per_second: args.rate,
        machine: Machine::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let cannot_wait = |error: std::io::Error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot_wait)?;
    let mut ends = {
        let _guard = runtime.enter();
        Ends::listen().map_err(cannot_wait)?
    };
    let server = SampleServer::listen(plan).map_err(|error| failed(&error))?;
    let shown = format!("listening on {}", server.url());
    terminal::print(&shown).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let manager = ServiceManager::of_environment();
    manager.ready(&shown);
    runtime.block_on(async {
        loop {
            match manager.alive_every() {
                None => {
                    ends.next().await;
                    break;
                }
                Some(every) => tokio::select! {
                    () = ends.next() => break,
                    () = tokio::time::sleep(every) => manager.alive(),
                },
            }
        }
    });
    manager.stopping();
    server.stop(GRACE);
    Ok(Exit::Fine)
}

fn failed(error: &SampleServerError) -> Failed {
    let problem = Problem::caused_by(error);
    match error {
        SampleServerError::Exposed { .. } => problem
            .about("--listen")
            .hint(
                "give it --token-file FILE with --cert FILE and --key FILE, or listen on this machine only: --listen \
                 127.0.0.1:7070",
            )
            .usage(),
        SampleServerError::Tls(_) => problem.about("--cert").usage(),
        SampleServerError::Engine(_) => problem.about("--listen").could_not_run(),
        SampleServerError::Random => problem.could_not_run(),
    }
}
