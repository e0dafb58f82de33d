//! `k6 version`: the k6 whose behaviour this program has, in the notation that programs parse.

use std::sync::LazyLock;

use plimsoll_k6::K6_VERSION;
use serde_json::json;

use crate::problem::Problem;
use crate::terminal;

/// Print the version of k6 that is followed, and that of plimsoll
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Problem> {
    let text = if args.json {
        let version = json!({
            "version": format!("v{K6_VERSION}"),
            "plimsoll_version": env!("CARGO_PKG_VERSION"),
            "go_os": os(),
            "go_arch": architecture(),
        });
        version.to_string()
    } else {
        format!("k6 {}", *VERSION)
    };
    terminal::print(&text).map_err(|error| Problem::new(error.to_string()))
}

/// `v2.2.0 (plimsoll 1.0.0, linux/amd64)`
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let own = env!("CARGO_PKG_VERSION");
    let (os, architecture) = (os(), architecture());
    format!("v{K6_VERSION} (plimsoll {own}, {os}/{architecture})")
});

/// As Go calls it.
fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

/// As Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
