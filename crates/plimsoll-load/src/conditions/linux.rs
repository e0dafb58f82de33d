//! proc(5) and sysfs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_model::{Limits, LoadAverage};
use procfs::{CpuInfo, Current, CurrentSI, KernelStats, Meminfo};

#[path = "cgroup.rs"]
mod cgroup;

use super::MachineTime;

/// See [`cgroup::throttled`].
pub(super) fn throttled() -> Option<Duration> {
    cgroup::throttled(Path::new("/"))
}

pub(super) fn load_average() -> Option<LoadAverage> {
    let load = procfs::LoadAverage::current().ok()?;
    // The kernel gives two decimals, which single precision would blur.
    let exact = |value: f32| (f64::from(value) * 100.0).round() / 100.0;
    Some(LoadAverage {
        one: exact(load.one),
        five: exact(load.five),
        fifteen: exact(load.fifteen),
    })
}

/// Time of guests is part of `user` and not added again.
pub(super) fn machine_time() -> Option<MachineTime> {
    let total = KernelStats::current().ok()?.total;
    let optional = [total.iowait, total.irq, total.softirq, total.steal];
    Some(MachineTime {
        all: total.user
            + total.nice
            + total.system
            + total.idle
            + optional.iter().flatten().sum::<u64>(),
        stolen: total.steal?,
    })
}

pub(super) fn cpu_model() -> Option<String> {
    let model = CpuInfo::current().ok()?.model_name(0)?.trim().to_owned();
    (!model.is_empty()).then_some(model)
}

pub(super) fn governor() -> Option<String> {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

pub(super) fn memory_bytes() -> Option<u64> {
    Some(Meminfo::current().ok()?.mem_total)
}

pub(super) fn limits() -> Limits {
    cgroup::limits(Path::new("/"))
}

/// tcp(7), `tcp_congestion_control`.
pub(super) fn congestion_control() -> Option<String> {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// ip(7), `ip_local_port_range`: first and last.
pub(super) fn local_ports() -> Option<u32> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_whitespace().map(str::parse::<u32>);
    let (first, last) = (ports.next()?.ok()?, ports.next()?.ok()?);
    (last >= first).then(|| last - first + 1)
}
