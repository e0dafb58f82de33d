//! A container by its id or its name.
//!
//! Its control group has its id in the name: `docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope` by systemd,
//! `docker/ID` otherwise. Names are those of Podman's files, of Docker's, or of the API that both serve on a socket.

mod api;

mod files;

use crate::locate::{LocateError, groups_named, only};
use crate::machine::Machine;
use crate::target_name::TargetName;

/// Digits of an id.
const ID_LENGTH: usize = 64;

/// The fewest digits by which a container is named: fewer are more likely a name.
const FEWEST_DIGITS: usize = 8;

pub(super) fn locate(machine: &Machine, target: &TargetName) -> Result<String, LocateError> {
    let wanted = target.value.trim_start_matches('/');
    let is_digits = wanted
        .bytes()
        .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let mut found = Vec::new();
    if is_digits && (FEWEST_DIGITS..=ID_LENGTH).contains(&wanted.len()) {
        found = groups_named(machine, |group| {
            id_of(group).is_some_and(|id| id.starts_with(wanted))
        });
    }
    if found.is_empty() {
        let ids = files::ids_of(machine, wanted);
        let ids = if ids.is_empty() {
            api::id_of(machine, wanted).into_iter().collect()
        } else {
            ids
        };
        // One that was removed may have had the same name.
        found = groups_named(machine, |group| {
            id_of(group).is_some_and(|id| ids.iter().any(|it| it == id))
        });
    }
    let reason = "neither Podman nor Docker runs a container of that name or id here, as far as this user may see";
    only(target, found, reason)
}

/// The id in the name of a group.
fn id_of(group: &str) -> Option<&str> {
    let name = group.strip_suffix(".scope").unwrap_or(group);
    // The process that watches over a container has a group of its own.
    if name.contains("conmon") {
        return None;
    }
    let id = name.rsplit_once('-').map_or(name, |(_, id)| id);
    let is_id =
        id.len() == ID_LENGTH && id.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then_some(id)
}
