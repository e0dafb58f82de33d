//! A pod of Kubernetes: its control group has its UID in the name.
//!
//! The kubelet names groups `kubepods-burstable-podUID.slice` with `_` for `-` by systemd, and
//! `kubepods/burstable/podUID` otherwise. Logs of a pod are in `/var/log/pods/NAMESPACE_NAME_UID`, which gives the UID of
//! a name.

use std::fs;

use crate::locate::{LocateError, groups_named, missing, only};
use crate::machine::Machine;
use crate::target_name::TargetName;

/// Where the kubelet keeps logs.
const LOGS: &str = "var/log/pods";

pub(super) fn locate(machine: &Machine, target: &TargetName) -> Result<String, LocateError> {
    let uids = match target.value.split_once('/') {
        None => vec![target.value.to_ascii_lowercase()],
        Some((namespace, name)) => uids_of(machine, namespace, name),
    };
    if uids.is_empty() {
        let reason = format!("/{LOGS} has no folder of a pod of that name");
        return Err(missing(target, reason));
    }
    // A pod that was made anew leaves logs of its predecessor for a while.
    let found = groups_named(machine, |group| uids.iter().any(|uid| is_of(group, uid)));
    let reason = "no control group has its UID: it does not run on this machine";
    only(target, found, reason)
}

fn is_of(group: &str, uid: &str) -> bool {
    let plain = group.strip_prefix("pod").is_some_and(|it| it == uid);
    let by_systemd = group
        .strip_suffix(".slice")
        .and_then(|name| name.rsplit_once("-pod"))
        .is_some_and(|(before, it)| before.starts_with("kubepods") && it.replace('_', "-") == uid);
    plain || by_systemd
}

fn uids_of(machine: &Machine, namespace: &str, name: &str) -> Vec<String> {
    let entries = fs::read_dir(machine.file(LOGS))
        .into_iter()
        .flatten()
        .flatten();
    let folders = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let before = format!("{namespace}_{name}_");
    folders
        .filter_map(|folder| folder.strip_prefix(&before).map(str::to_owned))
        .collect()
}
