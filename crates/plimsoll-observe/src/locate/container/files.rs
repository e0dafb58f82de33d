//! Names of containers in the files of Podman and Docker.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::machine::Machine;

/// Longer files are not read.
const LONGEST: u64 = 16 << 20;

/// Containers that are looked at.
const MOST: usize = 4096;

/// The ids of containers of that name; several where one was removed or belongs to another user.
pub(super) fn ids_of(machine: &Machine, name: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for list in podman_lists(machine) {
        let Some(list) = read(&list) else { continue };
        let containers = list.as_array().into_iter().flatten();
        let named = containers.filter(|container| {
            let names = container["names"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).any(|it| it == name)
        });
        ids.extend(named.filter_map(|it| it["id"].as_str().map(str::to_owned)));
    }
    let docker = fs::read_dir(machine.file("var/lib/docker/containers"));
    for entry in docker.into_iter().flatten().flatten().take(MOST) {
        let Some(container) = read(&entry.path().join("config.v2.json")) else {
            continue;
        };
        let known = container["Name"].as_str().unwrap_or_default();
        if known.trim_start_matches('/') == name {
            ids.extend(container["ID"].as_str().map(str::to_owned));
        }
    }
    ids
}

/// The lists of Podman: of root, and of users.
fn podman_lists(machine: &Machine) -> Vec<PathBuf> {
    const LIST: &str = "containers/storage/overlay-containers/containers.json";

    let homes = fs::read_dir(machine.file("home"));
    let homes = homes.into_iter().flatten().flatten().take(MOST);
    let own = homes.map(|home| home.path().join(".local/share"));
    std::iter::once(machine.file("var/lib"))
        .chain(own)
        .map(|folder| folder.join(LIST))
        .collect()
}

fn read(file: &Path) -> Option<Value> {
    let is_short = fs::metadata(file).ok()?.len() <= LONGEST;
    serde_json::from_slice(&fs::read(file).ok().filter(|_| is_short)?).ok()
}
