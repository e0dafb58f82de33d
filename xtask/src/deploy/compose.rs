//! The servers of the compose file, as processes.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::compose;
use crate::server::Server;
use crate::step;

/// Runs each command of the file, and requests what it promises.
pub(super) fn check(root: &Path, program: &Path, directory: &Path) -> Outcome {
    let composition = compose::read(root, directory)?;
    let mut processes = Vec::new();
    for service in &composition.servers {
        let mut command = Command::new(program);
        command.args(service.local_command()).stdout(Stdio::null());
        processes.push(Server::start(command.current_dir(directory))?);
    }
    compose::expect_answers(root, &composition)?;
    drop(processes);
    let few = composition
        .load_test
        .iter()
        .map(|word| match word.as_str() {
            "50000" => "50",
            "30s" => "1s",
            word => word,
        });
    let mut load_test = Command::new(program);
    step::run(root, load_test.args(few).stdout(Stdio::null()))
}
