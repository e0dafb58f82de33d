//! A network namespace of its own for all operands of a benchmark, so that every socket has the same congestion control.
//!
//! Some systems choose BBR, which paces what is sent even on the loopback; plimsoll takes another there. Ratios to programs
//! that keep the system's choice would then be better than where that is CUBIC, the usual default.

use std::path::Path;
use std::process::Command;

use crate::step;

/// The namespace; removed with the value.
pub(super) struct Network {
    name: String,
}

/// Some kernels permit only Reno in namespaces; neither paces, and without loss they are alike.
const SETTINGS: &str = "ip link set lo up && cd /proc/sys/net/ipv4 && \
    { echo cubic > tcp_congestion_control || echo reno > tcp_congestion_control; } 2> /dev/null && \
    cat tcp_congestion_control";

impl Network {
    /// A namespace with a loopback interface and CUBIC. Absent where that is not permitted, with a notice.
    pub(super) fn new(root: &Path) -> Option<Self> {
        let name = format!("plimsoll-bench-{}", std::process::id());
        let network = Self { name };
        let made = step::output(
            root,
            Command::new("ip").args(["netns", "add", &network.name]),
        );
        let set = made.and_then(|_| step::output(root, network.enter("sh").args(["-c", SETTINGS])));
        let Ok(control) = set else {
            println!(
                "no network namespace of its own: operands have the congestion control of this system"
            );
            return None;
        };
        println!("congestion control of all operands: {}", control.trim());
        Some(network)
    }

    /// A command that runs in it.
    pub(super) fn enter(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let deleted = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
        if !deleted.is_ok_and(|status| status.success()) {
            eprintln!("cannot delete the network namespace {}", self.name);
        }
    }
}
