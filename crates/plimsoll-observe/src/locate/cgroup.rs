//! A control group by its path, with or without the mount point and the name of a controller before it.

use crate::locate::{LocateError, hierarchies, missing};
use crate::machine::Machine;
use crate::target_name::TargetName;

pub(super) fn locate(machine: &Machine, target: &TargetName) -> Result<String, LocateError> {
    let mut path = target.value.as_str();
    let hierarchies = hierarchies(machine);
    for mount in hierarchies.iter().filter_map(|mount| mount.to_str()) {
        // The tree of version 2 has no name of its own.
        if let Some(below) = path.strip_prefix(mount)
            && (below.is_empty() || below.starts_with('/'))
        {
            path = below;
            break;
        }
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(missing(target, "a path has no `.` and no `..` in it"));
    }
    let path = parts.join("/");
    if hierarchies.iter().any(|mount| mount.join(&path).is_dir()) {
        return Ok(format!("/{path}"));
    }
    let groups = machine.groups();
    let reason = format!("there is no such control group below {}", groups.display());
    Err(missing(target, reason))
}
