//! A unit of systemd by its name: its control group has the same, whichever slice it is in (systemd.resource-control(5)).

use std::path::Path;

use crate::locate::{LocateError, groups_named, only};
use crate::machine::Machine;
use crate::target_name::TargetName;

/// The kinds of units that have control groups.
const SUFFIXES: [&str; 6] = ["service", "scope", "slice", "socket", "mount", "swap"];

pub(super) fn locate(machine: &Machine, target: &TargetName) -> Result<String, LocateError> {
    let name = full_name(&target.value);
    let found = groups_named(machine, |group| group == name);
    let system = format!("/system.slice/{name}");
    if found.contains(&system) {
        return Ok(system);
    }
    let reason = format!("{name} has no control group, so it does not run");
    only(target, found, &reason)
}

/// The name with its kind, as `systemctl` completes it.
fn full_name(name: &str) -> String {
    let suffix = Path::new(name).extension().and_then(|it| it.to_str());
    if suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix)) {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}
