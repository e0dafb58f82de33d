//! The confinement of commands that `plimsoll mcp` starts, which act for a model that is not trusted.
//!
//! Such a command is started with [`VARIABLE`] in its environment and gives up rights before it looks at its arguments: it reads
//! files below one folder alone (and what name lookups and TLS need), writes to one scratch folder or nowhere, starts no program
//! or only itself, connects to allowed targets alone, and ends with the process that started it. So no argument, no script and no
//! file that a file names leads further, whatever command it is. Programs that it starts inherit all of it.

#[cfg(target_os = "linux")]
mod files;

#[cfg(not(target_os = "linux"))]
#[path = "confined/no_files.rs"]
mod files;

mod targets;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_client::confine_process;
use plimsoll_model::grouped;
use plimsoll_wire::process;
use serde_json::{Value, json};

pub(crate) use self::targets::{Target, TargetPolicy};
use crate::problem::{Failed, Problem};

/// The environment variable with the confinement, as JSON.
pub(crate) const VARIABLE: &str = "PLIMSOLL_CONFINED";

/// What a command may do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Confinement {
    /// Files below this folder are read.
    pub(crate) root: PathBuf,
    /// Files below this folder are written too.
    pub(crate) scratch: Option<PathBuf>,
    /// Whether the command may start this program again.
    pub(crate) starts_itself: bool,
    /// Whether `plimsoll mcp` is the first process of its container, as whose child every orphan appears.
    pub(crate) started_by_init: bool,
    /// Whether the command runs although the kernel cannot restrict its files.
    pub(crate) allows_other_files: bool,
    pub(crate) targets: TargetPolicy,
    /// Bounds of scripts.
    pub(crate) script: ScriptBounds,
}

/// What a script may ask for at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptBounds {
    pub(crate) users: u64,
    pub(crate) duration: Duration,
    pub(crate) requests_per_second: NonZeroU32,
}

impl ScriptBounds {
    /// Fails if a run needs more.
    pub(crate) fn admit(&self, users: u64, duration: Duration) -> Result<(), String> {
        let mut problems = Vec::new();
        if users > self.users {
            problems.push(format!(
                "the script has up to {} virtual users, above the bound of {} (`plimsoll mcp --max-connections`)",
                grouped(users),
                grouped(self.users)
            ));
        }
        if duration > self.duration {
            problems.push(format!(
                "the script takes up to {duration:?}, above the bound of {:?} (`plimsoll mcp --max-duration`)",
                self.duration
            ));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }
}

impl Confinement {
    /// The value of [`VARIABLE`].
    pub(crate) fn to_json(&self) -> String {
        json!({
            "root": self.root.to_string_lossy(),
            "scratch": self.scratch.as_ref().map(|path| path.to_string_lossy()),
            "starts_itself": self.starts_itself,
            "started_by_init": self.started_by_init,
            "allows_other_files": self.allows_other_files,
            "targets": self.targets.to_json(),
            "script": {
                "users": self.script.users,
                "duration_ms": u64::try_from(self.script.duration.as_millis()).unwrap_or(u64::MAX),
                "requests_per_second": self.script.requests_per_second.get(),
            },
        })
        .to_string()
    }

    fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let script = &value["script"];
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let rate = u32::try_from(script["requests_per_second"].as_u64()?).ok()?;
        Some(Self {
            root: path(&value["root"])?,
            scratch: path(&value["scratch"]),
            starts_itself: value["starts_itself"].as_bool()?,
            started_by_init: value["started_by_init"].as_bool()?,
            allows_other_files: value["allows_other_files"].as_bool()?,
            targets: TargetPolicy::from_json(&value["targets"])?,
            script: ScriptBounds {
                users: script["users"].as_u64()?,
                duration: Duration::from_millis(script["duration_ms"].as_u64()?),
                requests_per_second: NonZeroU32::new(rate)?,
            },
        })
    }

    /// That of this process, if it has one. A value that cannot be read is an error: a command without its confinement must not
    /// run.
    fn of_process() -> Result<Option<Self>, Failed> {
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let read = text.to_str().and_then(Self::from_json);
        read.map(Some).ok_or_else(|| {
            Problem::with(VARIABLE, "is not what `plimsoll mcp` writes")
                .hint("unset it")
                .usage()
        })
    }
}

/// Gives up the rights that the environment names, if it names any. No other thread may run.
pub(crate) fn enter() -> Result<(), Failed> {
    let Some(confinement) = Confinement::of_process()? else {
        return Ok(());
    };
    let cannot = |verb: &str, error: &dyn std::fmt::Display| {
        Problem::new(format!("cannot {verb}: {error}")).could_not_run()
    };
    if let Err(error) = process::end_with_parent()
        && !confinement.started_by_init
    {
        return Err(cannot("end with its parent", &error));
    }
    process::forbid_core_dumps().map_err(|error| cannot("turn off core dumps", &error))?;
    let is_restricted =
        files::restrict(&confinement).map_err(|error| cannot("restrict files", &error))?;
    if !is_restricted && !confinement.allows_other_files {
        return Err(Problem::new(
            "this system cannot keep files to the folder of `--root`: it has no Landlock",
        )
        .hint("start `plimsoll mcp --unconfined-files` if the client and its files are trusted")
        .could_not_run());
    }
    let is_first = confine_process(confinement.targets.filter());
    debug_assert!(is_first, "a process is confined once");
    Ok(())
}

/// The bounds of scripts in this process.
#[cfg(feature = "k6")]
pub(crate) fn script_bounds() -> Option<ScriptBounds> {
    // An unreadable one has ended the process already.
    let confinement = Confinement::of_process().ok().flatten();
    confinement.map(|confinement| confinement.script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement() -> Confinement {
        Confinement {
            root: PathBuf::from("/srv/with space"),
            scratch: Some(PathBuf::from("/tmp/x")),
            starts_itself: true,
            started_by_init: false,
            allows_other_files: false,
            targets: TargetPolicy::new(
                vec!["https://staging.example.org".parse().unwrap()],
                vec!["10.0.0.0/8".parse().unwrap()],
            ),
            script: ScriptBounds {
                users: 5,
                duration: Duration::from_millis(1500),
                requests_per_second: NonZeroU32::new(7).unwrap(),
            },
        }
    }

    #[test]
    fn a_confinement_survives_the_environment_and_a_part_of_one_is_none() {
        let whole = confinement();
        let text = whole.to_json();
        assert_eq!(Confinement::from_json(&text), Some(whole));
        let value: Value = serde_json::from_str(&text).unwrap();
        for key in value.as_object().unwrap().keys() {
            let mut part = value.clone();
            part.as_object_mut().unwrap().remove(key);
            let read = Confinement::from_json(&part.to_string());
            // A command without a scratch folder writes nowhere.
            assert_eq!(read.is_some(), key == "scratch", "{key}");
        }
    }

    #[test]
    fn scripts_are_refused_by_each_bound_with_its_flag() {
        let bounds = confinement().script;
        assert_eq!(bounds.admit(5, bounds.duration), Ok(()));
        let both = bounds.admit(6, Duration::from_secs(2)).unwrap_err();
        assert!(
            both.contains("--max-connections") && both.contains("--max-duration"),
            "{both}"
        );
    }
}
