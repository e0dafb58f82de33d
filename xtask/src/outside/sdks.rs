//! Client libraries of services, of Python, against mocks of the services' OpenAPI documents: every ordinary call has to be
//! accepted by the mock, and its response by the library.
//!
//! The checkout is a folder with a document for each service, such as `stripe.json`. The libraries are installed into
//! `environment` beside them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::exchange::serve;
use super::{Bench, Results};
use crate::Failure;
use crate::python::{self, Packages};

/// The services that `sdks.py` calls.
const SERVICES: [&str; 5] = ["stripe", "openai", "twilio", "docker", "kubernetes"];

const LIBRARIES: Packages<'_> = Packages {
    found: |environment| {
        SERVICES
            .iter()
            .all(|it| python::has_module(environment, it))
    },
    arguments: &[
        "stripe==16.1.0",
        "openai==3.51.0",
        "twilio==9.13.0",
        "docker==7.2.0",
        "kubernetes==37.0.2",
    ],
};

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let mut results = Results::default();
    let folder = bench.checkout.join("environment");
    let python = python::environment(bench.checkout, &folder, &LIBRARIES)?;
    let script = bench.scratch.join("sdks.py");
    fs::write(&script, include_str!("sdks.py")).map_err(|it| it.to_string())?;
    for service in SERVICES {
        let mut documents = ["json", "yaml"]
            .map(|it| format!("{service}.{it}"))
            .into_iter();
        let Some(document) = documents.find(|name| bench.checkout.join(name).is_file()) else {
            results.skip("a service whose document is not there");
            continue;
        };
        call(bench, &python, &script, (service, &document), &mut results)?;
    }
    Ok(results)
}

fn call(
    bench: &Bench<'_>,
    python: &Path,
    script: &Path,
    (service, document): (&str, &str),
    results: &mut Results,
) -> Result<(), Failure> {
    let file = bench.checkout.join(document);
    let place = file.to_string_lossy();
    let arguments = ["mock", "--import", &place, "--listen", "127.0.0.1:0"];
    let serving = match serve(&bench.plimsoll, &arguments) {
        Ok(serving) => serving,
        Err(complaint) => {
            results.add_result(service, Err(complaint));
            return Ok(());
        }
    };
    let output = Command::new(python)
        .arg(script)
        .args([service, &serving.port.to_string()])
        .output()
        .map_err(|it| it.to_string())?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or_default();
        results.add_result(service, Err(last.to_owned()));
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(name) = line.strip_prefix("ok ") {
            results.add_result(format!("{service} {name}"), Ok(()));
        } else if let Some((name, reason)) = line
            .strip_prefix("failed ")
            .and_then(|line| line.split_once(": "))
        {
            results.add_result(format!("{service} {name}"), Err(reason.to_owned()));
        }
    }
    Ok(())
}
