//! Environments of Python with packages from `PyPI`, under the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome};

/// What an environment holds.
pub(crate) struct Packages<'a> {
    /// Whether they are installed in this environment.
    pub(crate) found: fn(&Path) -> bool,
    /// Arguments of `pip install`.
    pub(crate) arguments: &'a [&'a str],
}

/// The environment in `folder`, which is made if the module is missing; returns its Python.
pub(crate) fn environment(
    root: &Path,
    folder: &Path,
    wanted: &Packages<'_>,
) -> Result<PathBuf, Failure> {
    packages::install(root, &[packages::PYTHON])?;
    let python = folder.join("bin/python3");
    if (wanted.found)(folder) {
        return Ok(python);
    }
    let make = || -> Outcome {
        let mut command = Command::new("python3");
        step::run(root, command.args(["-m", "venv", "--clear"]).arg(folder))
    };
    if make().is_err() {
        // Debian has the module in a package of its own, which brings pip too.
        let venv = Package {
            program: "pip3",
            name: "python3-venv",
        };
        packages::install_always(root, &[venv])?;
        make()?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    step::run(root, pip.args(wanted.arguments))?;
    Ok(python)
}

/// Whether an environment has a module.
pub(crate) fn has_module(folder: &Path, name: &str) -> bool {
    Command::new(folder.join("bin/python3"))
        .args(["-c", &format!("import {name}")])
        .output()
        .is_ok_and(|output| output.status.success())
}
