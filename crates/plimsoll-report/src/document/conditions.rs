//! Under which conditions a run was made.

use plimsoll_model::Conditions;
use serde::{Deserialize, Serialize};

use super::{rounded, to_json};

/// Under which conditions the run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionsDocument {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// When the run started, in UTC (RFC 3339).
    pub started: String,
    /// Operating system and kernel release.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Cores that the generator could use.
    pub cores: usize,
    /// Scaling governor of the first core.
    pub governor: Option<String>,
    /// Physical memory.
    pub memory_bytes: Option<u64>,
    /// Cores that control groups allow the generator; absent where they do not limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<f64>,
    /// Memory that control groups allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Local ports that its connections may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_ports: Option<u32>,
    /// Congestion control of new TCP connections, by the kernel's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Load averages before the run over one, five and fifteen minutes.
    pub load_before: Option<[f64; 3]>,
    /// Share of time that the hypervisor took away during the run.
    pub steal_percent: Option<f64>,
    /// Cores of the generator's workers; empty if the scheduler chose.
    pub generator_cores: Vec<usize>,
    /// Cores of the target; empty if the scheduler chose.
    pub target_cores: Vec<usize>,
    /// Whether generator and target shared the machine.
    pub co_located: Option<bool>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
}

impl ConditionsDocument {
    /// The document of `conditions`.
    pub fn from_conditions(conditions: &Conditions) -> Self {
        Self {
            plimsoll: conditions.plimsoll.clone(),
            command: conditions.command.clone(),
            started: humantime::format_rfc3339_millis(conditions.started).to_string(),
            kernel: conditions.kernel.clone(),
            cpu_model: conditions.cpu_model.clone(),
            cores: conditions.cores,
            governor: conditions.governor.clone(),
            memory_bytes: conditions.memory_bytes,
            cpu_limit: conditions.limits.cpus.map(rounded),
            memory_limit_bytes: conditions.limits.memory_bytes,
            local_ports: conditions.local_ports,
            congestion_control: conditions.congestion_control.clone(),
            load_before: conditions
                .load_before
                .map(|load| [load.one, load.five, load.fifteen]),
            steal_percent: conditions.steal_percent.map(rounded),
            generator_cores: conditions.pinning.generator.clone(),
            target_cores: conditions.pinning.target.clone(),
            co_located: conditions.co_located,
            warnings: conditions.warnings.clone(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
