//! What an agent answers, as JSON: `schemas/observe.v1.json`.
//!
//! Units are in the names. Processor time is in nanoseconds. Within a version fields are added and never change their
//! meaning. What the kernel does not count is `null`.

use std::time::Duration;

use plimsoll_model::{CpuTime, Memory, NetworkBytes, ResourceSample, Throttling};
use serde::{Deserialize, Serialize};

/// The process that serves samples, with its clocks when it answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDocument {
    /// Differs for each start of an agent, and with it the origin of `clock_ns`.
    pub id: String,
    /// Version of plimsoll.
    pub version: String,
    /// Name of the machine.
    pub host: String,
    /// Cores of the machine that are there for the agent.
    pub cores: usize,
    /// Time since the agent started, on a clock that is never set.
    pub clock_ns: u64,
    /// The time of day: microseconds since the Unix epoch.
    pub unix_us: u64,
}

/// Targets at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleDocument {
    /// Always [`SampleDocument::SCHEMA`].
    pub schema: String,
    /// The agent.
    pub agent: AgentDocument,
    /// The wanted targets, in the order of the request.
    pub targets: Vec<TargetSample>,
}

impl SampleDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.observe.sample/1";
}

/// One target at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSample {
    /// Its name, such as `unit:postgresql`.
    pub target: String,
    /// Its figures; `null` if there are none, and never zeros instead.
    pub figures: Option<FiguresDocument>,
    /// Why there are none; `null` if there are.
    pub problem: Option<String>,
}

/// What a target holds, and what it has used since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiguresDocument {
    /// Processor time in the program's own code, ended children included.
    pub cpu_user_ns: u64,
    /// Processor time in the kernel on its behalf.
    pub cpu_system_ns: u64,
    /// Resident memory: heap and stacks.
    pub memory_anonymous_bytes: u64,
    /// Resident memory: code, mapped files, shared memory.
    pub memory_file_bytes: u64,
    /// Open descriptors; `null` if they could not be counted.
    pub fds: Option<u64>,
    /// Threads.
    pub threads: u64,
    /// Processes.
    pub processes: u64,
    /// Periods in which its control group used up its quota of processor time.
    pub throttled_periods: Option<u64>,
    /// Time for which it was stopped in them, summed over cores.
    pub throttled_ns: Option<u64>,
    /// Bytes received in its network namespace, without the loopback; `null` if it has none of its own.
    pub network_received_bytes: Option<u64>,
    /// Bytes sent in it.
    pub network_sent_bytes: Option<u64>,
}

impl FiguresDocument {
    /// The figures of a sample.
    pub fn from_sample(sample: &ResourceSample) -> Self {
        Self {
            cpu_user_ns: nanos(sample.cpu.user),
            cpu_system_ns: nanos(sample.cpu.system),
            memory_anonymous_bytes: sample.memory.anonymous_bytes,
            memory_file_bytes: sample.memory.file_bytes,
            fds: (sample.fds > 0).then_some(sample.fds),
            threads: sample.threads,
            processes: sample.processes,
            throttled_periods: sample.throttled.map(|it| it.periods),
            throttled_ns: sample.throttled.map(|it| nanos(it.time)),
            network_received_bytes: sample.network.map(|it| it.received),
            network_sent_bytes: sample.network.map(|it| it.sent),
        }
    }

    /// The sample that these are the figures of.
    ///
    /// - `at`: time since the start of the run, `completed`: exchanges completed by then.
    pub fn sample(&self, at: Duration, completed: u64) -> ResourceSample {
        let throttled = self.throttled_periods.zip(self.throttled_ns);
        let network = self.network_received_bytes.zip(self.network_sent_bytes);
        ResourceSample {
            at,
            completed,
            cpu: CpuTime {
                user: Duration::from_nanos(self.cpu_user_ns),
                system: Duration::from_nanos(self.cpu_system_ns),
            },
            memory: Memory {
                anonymous_bytes: self.memory_anonymous_bytes,
                file_bytes: self.memory_file_bytes,
            },
            fds: self.fds.unwrap_or(0),
            threads: self.threads,
            processes: self.processes,
            throttled: throttled.map(|(periods, time)| Throttling {
                periods,
                time: Duration::from_nanos(time),
            }),
            network: network.map(|(received, sent)| NetworkBytes { received, sent }),
        }
    }
}

/// What an agent serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetsDocument {
    /// Always [`TargetsDocument::SCHEMA`].
    pub schema: String,
    /// The agent.
    pub agent: AgentDocument,
    /// The targets that it allows.
    pub allowed: Vec<AllowedDocument>,
}

impl TargetsDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.observe.targets/1";
}

/// One target that is allowed, or those of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedDocument {
    /// The target or pattern, such as `unit:postgresql` or `container:*`.
    pub target: String,
    /// Processes that it consists of now; `null` of a pattern, or if it is not there.
    pub processes: Option<u64>,
    /// Why it cannot be sampled now; `null` if it can, and of a pattern.
    pub problem: Option<String>,
}

/// Whole nanoseconds: enough for 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_sample() {
        let sample = ResourceSample {
            at: Duration::from_millis(7),
            cpu: CpuTime {
                user: Duration::from_nanos(1_234_567_891),
                system: Duration::from_nanos(9),
            },
            memory: Memory {
                anonymous_bytes: 5,
                file_bytes: 6,
            },
            fds: 3,
            threads: 2,
            processes: 1,
            completed: 8,
            throttled: Some(Throttling {
                periods: 4,
                time: Duration::from_nanos(77),
            }),
            network: Some(NetworkBytes {
                received: 10,
                sent: 11,
            }),
        };
        let document = FiguresDocument::from_sample(&sample);
        assert_eq!(document.sample(sample.at, sample.completed), sample);
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(
            serde_json::from_str::<FiguresDocument>(&text).unwrap(),
            document
        );
        let bare = ResourceSample {
            fds: 0,
            throttled: None,
            network: None,
            ..sample
        };
        let document = FiguresDocument::from_sample(&bare);
        assert_eq!((document.fds, document.throttled_ns), (None, None));
        assert_eq!(document.sample(sample.at, sample.completed), bare);
    }
}
