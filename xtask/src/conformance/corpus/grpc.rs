//! A gRPC server for the scripts of a repository, which responds to every method of its `.proto` files.
//!
//! It is Python's grpcio, so that neither program's own implementation is on both ends.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::Failure;
use crate::python::{self, Packages};
use crate::server::Server;

const PACKAGES: Packages<'_> = Packages {
    found: |environment| {
        ["grpc", "grpc_tools", "grpc_reflection"]
            .iter()
            .all(|module| python::has_module(environment, module))
    },
    arguments: &[
        "grpcio==1.85.1",
        "grpcio-tools==1.85.1",
        "grpcio-reflection==1.85.1",
    ],
};

/// The Python that runs it, whose environment is made for the first repository that needs it.
#[derive(Debug)]
pub(super) struct Python {
    root: PathBuf,
    environment: PathBuf,
    made: OnceLock<Result<PathBuf, String>>,
}

/// The server of one repository, which ends with the value.
pub(super) struct GrpcServer {
    _server: Server,
    /// `HOST:PORT`
    pub(super) address: String,
}

impl Python {
    /// - `target`: where the environment is made.
    pub(super) fn new(root: &Path, target: &Path) -> Self {
        Self {
            root: root.to_owned(),
            environment: target.join("grpcio"),
            made: OnceLock::new(),
        }
    }

    /// Starts the server for the files below a folder.
    pub(super) fn serve(&self, folder: &Path) -> Result<GrpcServer, Failure> {
        let made = self.made.get_or_init(|| {
            python::environment(&self.root, &self.environment, &PACKAGES)
                .map_err(|error| format!("the gRPC server: {}", error.0))
        });
        let mut command = Command::new(made.as_ref().map_err(Clone::clone)?);
        command
            .arg(
                self.root
                    .join("xtask/src/conformance/corpus/grpc_server.py"),
            )
            .arg(folder)
            .stdout(Stdio::piped())
            // Files that cannot be compiled.
            .stderr(Stdio::null());
        let mut server = Server::start(&mut command)?;
        let stdout = server.0.stdout.take().ok_or("the server has no output")?;
        let line = BufReader::new(stdout).lines().map_while(Result::ok).next();
        Ok(GrpcServer {
            _server: server,
            address: line.ok_or("the gRPC server does not listen")?,
        })
    }
}

/// Whether any of these scripts has a gRPC client.
pub(super) fn is_called(texts: &[String]) -> bool {
    texts.iter().any(|text| has_client(text))
}

/// Whether this one has.
pub(super) fn has_client(text: &str) -> bool {
    ["k6/net/grpc", "k6/experimental/grpc"]
        .iter()
        .any(|module| text.contains(module))
}
