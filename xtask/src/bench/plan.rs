//! bench/NAME.toml.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Failure;

/// One benchmark. In commands `{dir}`, `{release}` and `{port}` to `{port6}` are filled in by the task, and
/// `{seconds}`, `{connections}` and `{url}` by `plimsoll compare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// Heading of its section.
    pub(super) title: String,
    /// What it shows, in a sentence or two.
    pub(super) about: String,
    /// Measured trials of each operand.
    pub(super) trials: u32,
    /// Length of a trial.
    pub(super) seconds: u32,
    /// Cores of the operands.
    pub(super) pin: String,
    /// What operands request.
    pub(super) url: String,
    /// Arguments of the builds that it needs, as releases unless they name a profile.
    pub(super) build: Vec<Vec<String>>,
    /// What answers.
    pub(super) server: Server,
    /// The one under judgement first.
    #[serde(rename = "operand")]
    pub(super) operands: Vec<Operand>,
    /// What is varied.
    #[serde(rename = "case")]
    pub(super) cases: Vec<Case>,
    /// What must hold.
    #[serde(default, rename = "limit")]
    pub(super) limits: Vec<Limit>,
}

/// The other end of all trials: usually the server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: String,
    /// The operands are servers, and this drives them.
    #[serde(default)]
    pub(super) drives: bool,
    /// What must be installed.
    pub(super) program: String,
    pub(super) command: String,
    /// A command that prints the version.
    pub(super) version: Vec<String>,
    pub(super) pin: String,
    /// What it answers once it serves; nothing if it drives.
    #[serde(default)]
    pub(super) ready: String,
    /// Commands to be run once the files are there.
    #[serde(default)]
    pub(super) prepare: Vec<Vec<String>>,
    /// Commands that run through all trials, such as what gateways forward to.
    #[serde(default)]
    pub(super) background: Vec<Vec<String>>,
    /// Files by their names, written into `{dir}`.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
}

/// One of those compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operand {
    pub(super) name: String,
    /// What must be installed.
    pub(super) program: String,
    /// Without one it takes part where a case has one for it.
    #[serde(default)]
    pub(super) command: String,
    /// A command that prints the version; none for programs of this workspace.
    #[serde(default)]
    pub(super) version: Vec<String>,
}

/// One setting under which all operands run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) connections: u32,
    /// Length of a trial where the plan's is too short.
    pub(super) seconds: Option<u32>,
    /// Commands in place of the operands' own, by their names; the others then do not take part.
    #[serde(default)]
    pub(super) commands: BTreeMap<String, String>,
    /// What drives the operands in place of the server.
    pub(super) driver: Option<Operand>,
}

impl Case {
    /// Who takes part, in the plan's order, and by which command.
    pub(super) fn operands<'a>(&'a self, plan: &'a Plan) -> Vec<(&'a str, &'a str)> {
        plan.operands
            .iter()
            .filter_map(|operand| {
                let command = match self.commands.get(&operand.name) {
                    Some(command) => command,
                    None if self.commands.is_empty() && !operand.command.is_empty() => {
                        &operand.command
                    }
                    None => return None,
                };
                Some((operand.name.as_str(), command.as_str()))
            })
            .collect()
    }
}

/// A bound on the first operand: relative to `peer`, or absolute without one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limit {
    /// The case's name.
    pub(super) case: String,
    /// A metric of `plimsoll compare`.
    pub(super) metric: String,
    /// The operand whose median is 1.
    pub(super) peer: Option<String>,
    pub(super) at_most: Option<f64>,
    pub(super) at_least: Option<f64>,
}

impl Plan {
    /// Reads and checks `NAME.toml` in `directory`.
    pub(super) fn read(directory: &Path, name: &str) -> Result<Self, Failure> {
        let file = directory.join(format!("{name}.toml"));
        let text = fs::read_to_string(&file).map_err(|error| {
            format!(
                "cannot read {}: {error}; there are {}",
                file.display(),
                names(directory)
            )
        })?;
        let plan: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        plan.check()
            .map_err(|problem| format!("{}: {problem}", file.display()))?;
        Ok(plan)
    }

    /// Leaves out every case whose name begins with none of `beginnings`, if there are any, with its limits.
    pub(super) fn select(&mut self, beginnings: &[String]) -> Result<(), Failure> {
        let is_wanted = |name: &str| {
            beginnings.is_empty()
                || beginnings
                    .iter()
                    .any(|text| name.starts_with(text.as_str()))
        };
        let names: Vec<_> = self.cases.iter().map(|case| case.name.clone()).collect();
        self.cases.retain(|case| is_wanted(&case.name));
        self.limits.retain(|limit| is_wanted(&limit.case));
        if self.cases.is_empty() {
            return Err(format!("no such case; there are {}", names.join("; ")).into());
        }
        Ok(())
    }

    /// What drives the operands of some case in place of the server.
    pub(super) fn drivers(&self) -> impl Iterator<Item = &Operand> {
        self.cases.iter().filter_map(|case| case.driver.as_ref())
    }

    /// What must be there to run it.
    pub(super) fn programs(&self) -> Vec<&str> {
        let operands = self.operands.iter().map(|operand| &operand.program);
        let drivers = self.drivers().map(|driver| &driver.program);
        let prepares = self.server.prepare.iter().filter_map(|words| words.first());
        let all = operands.chain(drivers).chain(prepares);
        let all = all.chain([&self.server.program]);
        all.map(String::as_str).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.operands.len() < 2 {
            return Err("there must be at least two operands".to_owned());
        }
        for case in &self.cases {
            if case.driver.is_some() && !self.server.drives {
                return Err(format!(
                    "the case `{}` has a driver, but the server does not drive",
                    case.name
                ));
            }
            let unknown = case
                .commands
                .keys()
                .find(|name| !self.operands.iter().any(|operand| operand.name == **name));
            if let Some(name) = unknown {
                return Err(format!(
                    "the case `{}` names the operand `{name}`, which is not there",
                    case.name
                ));
            }
        }
        for limit in &self.limits {
            if !self.cases.iter().any(|case| case.name == limit.case) {
                return Err(format!(
                    "a limit names the case `{}`, which is not there",
                    limit.case
                ));
            }
            let peers = &self.operands[1..];
            if let Some(peer) = &limit.peer
                && !peers.iter().any(|operand| operand.name == *peer)
            {
                return Err(format!(
                    "a limit names the peer `{peer}`, which is not there"
                ));
            }
            if limit.at_most.is_some() == limit.at_least.is_some() {
                return Err("a limit has either `at_most` or `at_least`".to_owned());
            }
        }
        Ok(())
    }
}

fn names(directory: &Path) -> String {
    let mut names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some(name.strip_suffix(".toml")?.to_owned())
        })
        .collect();
    names.sort();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_in_bench_can_be_read() {
        let directory = crate::root().join("bench");
        let names = names(&directory);
        assert!(names.contains("load"), "{names}");
        for name in names.split(", ") {
            let plan = Plan::read(&directory, name)
                .map_err(|error| error.0)
                .unwrap();
            assert!(!plan.cases.is_empty());
        }
    }

    #[test]
    fn cases_are_selected_by_the_beginnings_of_their_names() {
        let read = || {
            Plan::read(&crate::root().join("bench"), "load")
                .map_err(|error| error.0)
                .unwrap()
        };
        let mut plan = read();
        plan.select(&["64 connections".to_owned()])
            .map_err(|error| error.0)
            .unwrap();
        assert!(!plan.cases.is_empty());
        let all = plan.cases.iter().map(|case| &case.name);
        assert!(
            all.chain(plan.limits.iter().map(|limit| &limit.case))
                .all(|name| name.starts_with("64 connections"))
        );
        let error = read().select(&["none".to_owned()]).unwrap_err();
        assert!(error.0.contains("64 connections"), "{}", error.0);
    }

    #[test]
    fn a_limit_on_nothing_is_refused() {
        let directory = crate::root().join("bench");
        let mut plan = Plan::read(&directory, "load")
            .map_err(|error| error.0)
            .unwrap();
        plan.limits[0].peer = Some("nobody".to_owned());
        assert!(plan.check().unwrap_err().contains("`nobody`"));
    }
}
