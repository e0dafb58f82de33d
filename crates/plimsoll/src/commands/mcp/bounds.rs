//! What tools may do at most: flags of the command, which no argument of a tool changes.

use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_model::{Rate, grouped};
use url::Url;

use crate::confined::{Confinement, ScriptBounds, Target, TargetPolicy};
use crate::flags::number;
use crate::problem::{Failed, Problem};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Bounds of tools")]
pub(crate) struct BoundArgs {
    /// Allow requests to this origin besides loopback, repeatable: `https://staging.example.org`
    #[arg(long, value_name = "ORIGIN")]
    allow_target: Vec<Target>,

    /// Private addresses that the names of --allow-target may have, repeatable: `10.0.0.0/8`
    #[arg(long, value_name = "NETWORK", requires = "allow_target")]
    allow_network: Vec<IpNet>,

    /// Folder below which tools read files; they write none
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,

    /// Highest rate of requests
    // One generator against a staging system of one machine: enough to see a limit, not an attack.
    #[arg(long, value_name = "RATE", value_parser = number::positive_rate, default_value = "10k/s")]
    max_rate: Rate,

    /// Longest run of a tool
    // A search for the load line with its defaults takes three to four minutes.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "5m")]
    max_duration: Duration,

    /// Maximum connections, requests in flight and virtual users
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = number::count::<u64>(number::MOST_CONNECTIONS))]
    max_connections: u64,

    /// Pass this environment variable on to scripts and configurations, repeatable; no other is
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,

    /// Run tools on files although this system cannot keep them to --root (it has no Landlock)
    #[arg(long)]
    unconfined_files: bool,
}

/// The flags, checked.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(super) targets: TargetPolicy,
    /// Without symbolic links.
    pub(super) root: PathBuf,
    pub(super) rate: Rate,
    pub(super) duration: Duration,
    pub(super) connections: u64,
    unconfined_files: bool,
    /// The environment of tools.
    pub(super) environment: Vec<(String, String)>,
}

/// Variables that say how to show text and where certificates lie.
const HARMLESS: [&str; 6] = [
    "LANG",
    "LC_ALL",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TZ",
];

impl BoundArgs {
    pub(super) fn compile(&self) -> Result<Bounds, Failed> {
        let root = self.root.canonicalize().ok().filter(|root| root.is_dir());
        let Some(root) = root else {
            let message = format!("there is no folder {}", self.root.display());
            return Err(Problem::with("--root", message).usage());
        };
        let passed = self.pass_env.iter().map(String::as_str);
        let environment = HARMLESS.into_iter().chain(passed).filter_map(variable);
        Ok(Bounds {
            targets: TargetPolicy::new(self.allow_target.clone(), self.allow_network.clone()),
            root,
            rate: self.max_rate,
            duration: self.max_duration,
            connections: self.max_connections,
            unconfined_files: self.unconfined_files,
            environment: environment.collect(),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the binary")]
fn variable(name: &str) -> Option<(String, String)> {
    Some((name.to_owned(), std::env::var(name).ok()?))
}

impl Bounds {
    /// Fails if `rate` is above the bound.
    pub(super) fn admit_rate(&self, rate: Rate) -> Result<(), String> {
        if rate.per_second() <= self.rate.per_second() {
            return Ok(());
        }
        Err(format!(
            "{}/s is above the bound of {}/s (`plimsoll mcp --max-rate`)",
            grouped(rate.per_second()),
            grouped(self.rate.per_second())
        ))
    }

    pub(super) fn admit_duration(&self, duration: Duration) -> Result<(), String> {
        if duration <= self.duration {
            return Ok(());
        }
        Err(format!(
            "{duration:?} is above the bound of {:?} (`plimsoll mcp --max-duration`)",
            self.duration
        ))
    }

    pub(super) fn admit_connections(&self, connections: u64) -> Result<(), String> {
        if connections <= self.connections {
            return Ok(());
        }
        Err(format!(
            "{} is above the bound of {} (`plimsoll mcp --max-connections`)",
            grouped(connections),
            grouped(self.connections)
        ))
    }

    /// The target of a URL of HTTP or WebSockets; fails if it is not allowed.
    pub(super) fn admit_url(&self, text: &str) -> Result<Target, String> {
        let schemes = ["http://", "https://", "ws://", "wss://"];
        if !schemes.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(format!(
                "`{text}` is not a URL that begins with http://, https://, ws:// or wss://"
            ));
        }
        let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
        let target = Target::of_url(&url).ok_or_else(|| format!("`{text}` has no host"))?;
        if self.targets.allows(&target) {
            return Ok(target);
        }
        Err(format!(
            "{target} is not an allowed target: these are loopback and those of `plimsoll mcp --allow-target`"
        ))
    }

    /// A path below the root, relative to it; fails if it is not there, or leads out of it.
    pub(super) fn admit_path(&self, text: &str) -> Result<String, String> {
        let outside = || {
            format!(
                "{text} is not below {} (`plimsoll mcp --root`)",
                self.root.display()
            )
        };
        // What lies outside is refused before it is looked at: whether it exists is no answer for a tool either.
        let mut depth = 0_usize;
        let given = Path::new(text);
        let relative = if given.is_absolute() {
            given.strip_prefix(&self.root).map_err(|_| outside())?
        } else {
            given
        };
        for component in relative.components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir if depth > 0 => depth -= 1,
                _ => return Err(outside()),
            }
        }
        let whole = self.root.join(relative);
        let resolved = whole
            .canonicalize()
            .map_err(|error| format!("cannot read {text}: {error}"))?;
        let below = resolved.strip_prefix(&self.root).map_err(|_| outside())?;
        let below = below
            .to_str()
            .ok_or_else(|| format!("{text} is not UTF-8"))?;
        // So that it is not taken for a flag or for standard input.
        Ok(if below.is_empty() {
            ".".to_owned()
        } else {
            format!("./{below}")
        })
    }

    /// The confinement of a command.
    pub(super) fn confinement(
        &self,
        scratch: Option<PathBuf>,
        starts_itself: bool,
        reads_files: bool,
    ) -> Confinement {
        let whole = self.rate.per_second().clamp(1.0, f64::from(u32::MAX));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is clamped to the range"
        )]
        let requests_per_second = NonZeroU32::new(whole as u32).unwrap_or(NonZeroU32::MIN);
        Confinement {
            root: self.root.clone(),
            scratch,
            starts_itself,
            started_by_init: std::process::id() == 1,
            allows_other_files: self.unconfined_files || !reads_files,
            targets: self.targets.clone(),
            script: ScriptBounds {
                users: self.connections,
                duration: self.duration,
                requests_per_second,
            },
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
