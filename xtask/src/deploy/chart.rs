//! The Helm chart, rendered with each of its example values.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cannot, write};
use crate::packages;
use crate::python::{self, Packages};
use crate::step;
use crate::{Failure, Outcome};

const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.16.4";

/// It holds the JSON schemas of the Kubernetes API.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

/// The oldest version that Chart.yaml admits, and a new one.
pub(super) const VERSIONS: [&str; 2] = ["1.30", "1.37"];

/// A Helm that Go has built knows no version of Kubernetes but an old one.
const RENDER: [&str; 4] = ["template", "try", "--kube-version", "1.30.0"];

/// Values that the chart has to refuse, and the reason that its message has to name.
const REFUSED: [(&str, &str); 3] = [
    ("monitor.replicaz=2", "replicaz"),
    (
        "monitor.enabled=true,monitor.replicas=2",
        "monitor.replicas is 1",
    ),
    (
        "monitor.enabled=true,monitor.store.kind=servers",
        "monitor.store.serversSecret",
    ),
];

/// Lints and renders the chart, and validates what came of it.
pub(super) fn check(
    root: &Path,
    target: &Path,
    program: &Path,
    directory: &Path,
    helm: Option<&Path>,
) -> Outcome {
    let helm = match helm {
        Some(helm) => helm.to_owned(),
        None => installed(root, target)?,
    };
    let python = validator(root, target)?;
    let chart = root.join("packaging/helm/plimsoll");
    let examples = chart.join("ci");
    let entries = fs::read_dir(&examples).map_err(|error| cannot("list", &examples, &error))?;
    let mut examples: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    examples.sort();
    let rendered = directory.join("rendered.yaml");
    for values in &examples {
        let mut lint = Command::new(&helm);
        lint.args(["lint", "--strict"]).arg(&chart);
        step::run(root, lint.arg("--values").arg(values))?;
        let mut render = Command::new(&helm);
        render.args(RENDER).arg(&chart);
        let text = step::output(root, render.arg("--values").arg(values))?;
        write(&rendered, &text)?;
        let mut validate = Command::new(&python);
        validate.arg(root.join("xtask/src/deploy/chart.py"));
        validate.arg(&rendered).arg(program).arg(directory);
        step::run(root, validate.args(VERSIONS))?;
    }
    REFUSED
        .iter()
        .try_for_each(|(values, reason)| refused(root, &helm, &chart, values, reason))
}

fn refused(root: &Path, helm: &Path, chart: &Path, values: &str, reason: &str) -> Outcome {
    let mut render = Command::new(helm);
    render.args(RENDER).arg(chart);
    render.args(["--set", values]).current_dir(root);
    let output = render.output().map_err(|error| error.to_string())?;
    let message = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && message.contains(reason) {
        Ok(())
    } else {
        Err(format!("the chart takes {values}, or refuses it without `{reason}`: {message}").into())
    }
}

/// A Python with the schemas.
pub(super) fn validator(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let wanted = Packages {
        found: |environment| python::has_module(environment, "kubernetes_validate"),
        arguments: &[VALIDATOR],
    };
    python::environment(root, &target.join("peers/kubernetes"), &wanted)
}

/// Where Helm lies, which is built if it is missing.
fn installed(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let folder = target.join("peers/bin");
    if let Some(program) = packages::find("helm", std::slice::from_ref(&folder)) {
        return Ok(program);
    }
    let go = packages::find("go", &[PathBuf::from("/usr/local/go/bin")]);
    let go = go.ok_or("Helm is built by Go, which is not installed; --no-chart leaves it out")?;
    let mut install = Command::new(go);
    install
        .args(["install", HELM])
        .env("GOBIN", &folder)
        .env("GOFLAGS", "-modcacherw");
    step::run(root, &mut install)?;
    Ok(folder.join("helm"))
}
