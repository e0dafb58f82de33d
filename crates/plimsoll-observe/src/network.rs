//! Traffic of a network namespace, from `/proc/PID/net/dev` (proc(5)).

use std::fs;
use std::path::PathBuf;

use plimsoll_model::NetworkBytes;

use crate::machine::Machine;

/// The counters of a network namespace that is not that of this process: bytes of the machine's own are not those of a
/// target.
#[derive(Debug)]
pub(crate) struct OwnNetwork {
    file: PathBuf,
}

impl OwnNetwork {
    /// That of process `pid`; `None` if it shares ours, or may not be read.
    pub(crate) fn of_process(machine: &Machine, pid: u32) -> Option<Self> {
        let namespace = |process: PathBuf| fs::read_link(process.join("ns/net")).ok();
        let ours = namespace(machine.file("proc/self"))?;
        let process = machine.process(pid);
        let is_own = namespace(process.clone())? != ours;
        is_own.then(|| Self {
            file: process.join("net/dev"),
        })
    }

    /// Bytes of all interfaces but the loopback; `None` once the process is gone.
    pub(crate) fn bytes(&self) -> Option<NetworkBytes> {
        parse(&fs::read_to_string(&self.file).ok()?)
    }
}

fn parse(text: &str) -> Option<NetworkBytes> {
    let mut sum = None;
    // Two lines of headings have no colon.
    for (name, counters) in text.lines().filter_map(|line| line.split_once(':')) {
        let total = sum.get_or_insert_with(NetworkBytes::default);
        if name.trim() == "lo" {
            continue;
        }
        let counters: Vec<u64> = counters
            .split_whitespace()
            .map_while(|it| it.parse().ok())
            .collect();
        total.received += counters.first()?;
        total.sent += counters.get(8)?;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_but_the_loopback_counts() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0
  eth0: 1000 10 0 0 0 0 0 0 200 2 0 0 0 0 0 0
  eth1:30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0
";
        let bytes = NetworkBytes {
            received: 1_030,
            sent: 204,
        };
        assert_eq!(parse(text), Some(bytes));
        assert_eq!(parse("nothing\n"), None);
        assert_eq!(parse("  eth0: 1 2\n"), None);
    }
}
