//! Platforms whose conditions are not read.

use plimsoll_model::{Limits, LoadAverage};

use super::MachineTime;

pub(super) fn throttled() -> Option<std::time::Duration> {
    None
}

pub(super) fn load_average() -> Option<LoadAverage> {
    None
}

pub(super) fn machine_time() -> Option<MachineTime> {
    None
}

pub(super) fn cpu_model() -> Option<String> {
    None
}

pub(super) fn governor() -> Option<String> {
    None
}

pub(super) fn memory_bytes() -> Option<u64> {
    None
}

pub(super) fn limits() -> Limits {
    Limits::default()
}

pub(super) fn local_ports() -> Option<u32> {
    None
}

pub(super) fn congestion_control() -> Option<String> {
    None
}
