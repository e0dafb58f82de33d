//! The manifests that `load --fleet … --kubernetes N` prints, by the schemas of the Kubernetes API.

use std::path::Path;
use std::process::Command;

use super::chart::{VERSIONS, validator};
use super::write;
use crate::Outcome;
use crate::step;

const SCRIPT: &str = "\
import http from 'k6/http';
export const options = { vus: 4, iterations: 8 };
export default function () { http.get('http://shop.example.org/'); }
";

/// Of a plain load with files, a label and a password, and of a script.
const RUNS: [&[&str]; 2] = [
    &[
        "--fleet=nats://user:word@nats:4222",
        "--kubernetes=3",
        "--kubernetes-name=shop",
        "--kubernetes-label=team=shop",
        "--kubernetes-annotation=example.org/note=of a team: shop",
        "--kubernetes-cpu=2",
        "--feeder=users.csv",
        "--threshold=p99<50ms",
        "--header=x-value: $(A)",
        "-q=300",
        "-z=1m",
        "http://shop.example.org/{{name}}",
    ],
    &[
        "--fleet=nats://nats:4222",
        "--kubernetes=2",
        "--kubernetes-allow=shop.example.org",
        "script.js",
    ],
];

/// Prints and validates them.
pub(super) fn check(root: &Path, target: &Path, program: &Path, directory: &Path) -> Outcome {
    let python = validator(root, target)?;
    write(&directory.join("users.csv"), "name\nann\n")?;
    write(&directory.join("script.js"), SCRIPT)?;
    let printed = directory.join("fleet.yaml");
    for arguments in RUNS {
        let mut print = Command::new(program);
        print.arg("load").args(arguments);
        let text = step::output(directory, &mut print)?;
        write(&printed, &text)?;
        let mut validate = Command::new(&python);
        validate.arg(root.join("xtask/src/deploy/fleet.py"));
        step::run(root, validate.arg(&printed).args(VERSIONS))?;
    }
    Ok(())
}
