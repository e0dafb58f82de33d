//! bench/instructions/cases.toml.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::{Failure, Outcome};

/// All cases. In commands and files `{plimsoll}`, `{dir}`, `{requests}` and `{port}` to `{port3}` are filled in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    #[serde(rename = "case")]
    pub(super) cases: Vec<Case>,
}

/// One path of requests through one program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    /// By how many requests both runs differ.
    pub(super) requests: u64,
    /// Growth beyond the recorded figure that fails, in percent. More than usual where timers and tasks wake more often on a busy machine.
    #[serde(default = "usual_growth")]
    pub(super) most_growth: f64,
    /// What it does each second outweighs its requests unless it is optimised, and depends on how long they take.
    #[serde(default)]
    pub(super) needs_optimisation: bool,
    /// Files by their names, written into `{dir}`.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// What runs meanwhile, on `{port2}`.
    #[serde(default)]
    pub(super) background: Vec<Vec<String>>,
    /// Whose instructions are counted.
    #[serde(flatten)]
    pub(super) subject: Subject,
    /// Others that do the same.
    #[serde(default, rename = "peer")]
    pub(super) peers: Vec<Peer>,
}

fn usual_growth() -> f64 {
    3.0
}

/// A program that is counted.
#[derive(Debug, Deserialize)]
pub(super) struct Subject {
    pub(super) command: Vec<String>,
    /// What sends the requests, if the program is a server: it listens on `{port}`, and ends by SIGTERM.
    pub(super) driver: Option<Vec<String>>,
}

/// Another program.
#[derive(Debug, Deserialize)]
pub(super) struct Peer {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) subject: Subject,
}

impl Plan {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| cannot(&error))?;
        toml::from_str(&text).map_err(|error| cannot(&error).into())
    }

    /// Keeps the cases whose names begin with one of these; all if there are none.
    pub(super) fn select(&mut self, names: &[String]) -> Outcome {
        let wanted = |case: &Case| names.iter().any(|name| case.name.starts_with(name));
        if !names.is_empty() {
            let all: Vec<_> = self.cases.iter().map(|case| case.name.clone()).collect();
            self.cases.retain(wanted);
            if self.cases.is_empty() {
                return Err(format!("no such case; there are {}", all.join(", ")).into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_of_this_repository_can_be_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/instructions/cases.toml");
        let mut plan = Plan::read(&path).unwrap();
        assert!(plan.cases.len() >= 5);
        plan.select(&["gateway".to_owned()]).unwrap();
        assert!(plan.cases.iter().all(|case| case.subject.driver.is_some()));
        assert!(plan.select(&["no such".to_owned()]).is_err());
    }
}
