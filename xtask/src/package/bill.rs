//! The bill of materials: every crate that the program is made of, in `CycloneDX` 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Release, cannot, metadata};
use crate::Failure;

/// Writes `NAME.cdx.json`. Crates that only tests or build scripts use are left out.
pub(super) fn write(root: &Path, out: &Path, release: &Release) -> Result<PathBuf, Failure> {
    let metadata = metadata(root, &["--filter-platform", release.target.triple])?;
    let document = document(&metadata, release)?;
    let path = out.join(format!("{}.cdx.json", release.name()));
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    fs::write(&path, text + "\n").map_err(|error| cannot("write", &path, &error))?;
    Ok(path)
}

fn document(metadata: &Value, release: &Release) -> Result<Value, Failure> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (id(&package["id"]), package))
        .collect();
    let edges: BTreeMap<String, BTreeSet<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| (id(&node["id"]), linked(node)))
        .collect();
    let program = packages
        .iter()
        .find(|(_, package)| package["name"] == "plimsoll")
        .map(|(id, _)| id.clone())
        .ok_or("cargo's metadata has no package `plimsoll`")?;
    let mut reached = BTreeSet::from([program.clone()]);
    let mut waiting = vec![program.clone()];
    while let Some(next) = waiting.pop() {
        for dependency in edges.get(&next).into_iter().flatten() {
            if reached.insert(dependency.clone()) {
                waiting.push(dependency.clone());
            }
        }
    }
    let described = |id: &String| packages.get(id).map(component);
    let components = reached.iter().filter(|id| **id != program);
    let mut components: Vec<Value> = components.filter_map(described).collect();
    components.sort_by_key(|component| component["bom-ref"].as_str().map(str::to_owned));
    let reference = |id: &String| packages.get(id).map(reference);
    let mut dependencies: Vec<Value> = reached
        .iter()
        .filter_map(|from| {
            let to = edges.get(from)?.iter().filter_map(reference);
            let mut to: Vec<String> = to.collect();
            to.sort();
            Some(json!({"ref": reference(from)?, "dependsOn": to}))
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].as_str().map(str::to_owned));
    let created = jiff::Timestamp::from_second(release.epoch.try_into().unwrap_or_default())
        .map_err(|error| error.to_string())?;
    let mut own = described(&program).unwrap_or_default();
    own["type"] = "application".into();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": created.to_string(), "component": own},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// What a node of cargo's graph is linked with.
fn linked(node: &Value) -> BTreeSet<String> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"].is_null())
        })
        .map(|dependency| id(&dependency["pkg"]))
        .collect()
}

fn component(package: &Value) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // Older manifests separate licences by a slash.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    component
}

/// The package URL: `pkg:cargo/NAME@VERSION`.
fn reference(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn id(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_nothing_else() {
        let package = |name: &str, licence: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": licence});
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("plimsoll", "MIT"),
                package("a", "MIT/Apache-2.0"),
                package("b", "MIT"),
                package("c", "MIT"),
            ],
            "resolve": {"nodes": [
                {"id": "plimsoll", "deps": [needs("a", Value::Null), needs("c", "dev".into())]},
                {"id": "a", "deps": [needs("b", Value::Null), needs("c", "build".into())]},
                {"id": "b", "deps": []},
                {"id": "c", "deps": []},
            ]},
        });
        let release = Release {
            version: "1.0.0".into(),
            target: super::super::target::Target::named("x86_64-unknown-linux-gnu").unwrap(),
            epoch: 1_800_000_000,
            revision: String::new(),
            repository: String::new(),
        };
        let document = document(&metadata, &release).unwrap();
        let names: Vec<_> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            document["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(
            document["dependencies"][2],
            json!({"ref": "pkg:cargo/plimsoll@1.0.0", "dependsOn": ["pkg:cargo/a@1.0.0"]})
        );
        assert_eq!(document["metadata"]["component"]["type"], "application");
    }
}
