//! `cargo xtask mcp`: the reference client of the Model Context Protocol, `mcp` of `PyPI`, uses every tool of `plimsoll mcp`, by the
//! handshake of earlier versions of the protocol and by that of the newest.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::bench::{free_ports, target_directory};
use crate::python::{self, Packages};
use crate::server::{Server, wait_for};
use crate::step::{self, cargo};

const SDK: Packages<'_> = Packages {
    found: |environment| python::has_module(environment, "mcp"),
    arguments: &["mcp==2.3.0"],
};

/// Files of the root: name and content.
const FILES: [(&str, &str); 3] = [
    (
        "script.js",
        "import http from 'k6/http';\nexport default function () { http.get(__ENV.BASE) }\n",
    ),
    (
        "rules.toml",
        "[[rules]]\nwhen.request.url_path = { op = \"starts_with\", value = \"/\" }\nrespond.text = \"ok\"\n",
    ),
    (
        "up.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { body = \"hi\" }\n",
    ),
];

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    step::run(
        root,
        &mut cargo(&["build", "--locked", "--bin", "plimsoll"]),
    )?;
    let target = target_directory(root)?;
    let python = python::environment(root, &target.join("peers/mcp"), &SDK)?;
    let directory = target.join(format!("mcp-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = use_tools(root, &target.join("debug/plimsoll"), &python, &directory);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn use_tools(root: &Path, plimsoll: &Path, python: &Path, directory: &Path) -> Outcome {
    for (name, content) in FILES {
        fs::write(directory.join(name), content).map_err(|error| error.to_string())?;
    }
    let [port] = free_ports()?;
    let url = format!("http://127.0.0.1:{port}/");
    let mut mock = Command::new(plimsoll);
    mock.arg("mock").arg(directory.join("rules.toml"));
    mock.args(["--listen", &format!("127.0.0.1:{port}")]);
    let _origin = Server::start(mock.stdout(Stdio::null()))?;
    wait_for(port)?;
    let mut load = Command::new(plimsoll);
    load.args(["load", &url, "-n", "20", "-c", "1", "--out"]);
    step::run(
        root,
        load.arg(directory.join("result")).stdout(Stdio::null()),
    )?;
    let mut client = Command::new(python);
    client.arg(root.join("xtask/src/mcp_client.py"));
    client.arg(plimsoll).arg(directory).arg(&url);
    step::run(root, &mut client)
}
