//! Network namespaces: one for servers, and one for each agent, with a link between it and that of the servers.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::step;
use crate::{Failure, Outcome};

/// The address of the servers, which every namespace reaches.
pub(crate) const HUB: &str = "10.213.0.1";

/// The namespaces; removed with the value.
pub(crate) struct Network {
    hub: String,
    agents: Vec<String>,
}

impl Network {
    pub(crate) fn new(root: &Path, agents: usize) -> Result<Self, Failure> {
        let id = std::process::id();
        let network = Self {
            hub: format!("plimsoll-hub-{id}"),
            agents: (1..=agents)
                .map(|number| format!("plimsoll-agent-{number}-{id}"))
                .collect(),
        };
        let ip = |words: &str| -> Outcome {
            let words = words.split_whitespace();
            step::run(root, Command::new("ip").args(words))
        };
        let Self { hub, agents } = &network;
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("-n {hub} addr add {HUB}/32 dev lo"))?;
        for (number, agent) in (1..).zip(agents) {
            let (ours, theirs) = (format!("a{number}"), "eth0");
            ip(&format!("netns add {agent}"))?;
            ip(&format!(
                "-n {hub} link add {ours} type veth peer name {theirs} netns {agent}"
            ))?;
            ip(&format!(
                "-n {hub} addr add 10.213.{number}.1/24 dev {ours}"
            ))?;
            ip(&format!("-n {hub} link set {ours} up"))?;
            ip(&format!("-n {agent} link set lo up"))?;
            ip(&format!(
                "-n {agent} addr add 10.213.{number}.2/24 dev {theirs}"
            ))?;
            ip(&format!("-n {agent} link set {theirs} up"))?;
            ip(&format!(
                "-n {agent} route add default via 10.213.{number}.1"
            ))?;
        }
        Ok(network)
    }

    /// A command beside the servers.
    pub(crate) fn in_hub(&self, program: impl AsRef<OsStr>) -> Command {
        within(&self.hub, program)
    }

    /// A command beside an agent.
    pub(crate) fn in_agent(&self, number: usize, program: impl AsRef<OsStr>) -> Command {
        within(&self.agents[number], program)
    }
}

fn within(namespace: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.agents.iter().chain([&self.hub]) {
            // One that was never made is not there.
            Command::new("ip")
                .args(["netns", "del", name])
                .stderr(std::process::Stdio::null())
                .status()
                .ok();
        }
    }
}
