//! Servers that tasks start.

use std::process::{Child, Command};

use crate::Failure;
use crate::step;

/// A process that is stopped with the value.
pub(crate) struct Server(pub(crate) Child);

impl Server {
    /// Starts it, and says so.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        println!("$ {}", step::shown(command));
        let child = command.spawn();
        let cannot = |error| format!("cannot start `{}`: {error}", step::shown(command));
        Ok(Self(child.map_err(cannot)?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
