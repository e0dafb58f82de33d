//! Servers that tasks start.

use std::net::TcpStream;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::step;
use crate::{Failure, Outcome};

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
        // It may have ended by itself. Asked first, since only so a server ends processes of its own; those that are left
        // hold the output of the task open.
        if let Some(id) = Pid::from_raw(self.0.id().cast_signed()) {
            kill_process(id, Signal::TERM).ok();
        }
        for _ in 0..100 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::park_timeout(Duration::from_millis(100));
        }
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until a server listens on a port, for half a minute at most.
pub(crate) fn wait_for(port: u16) -> Outcome {
    for _ in 0..300 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        thread::park_timeout(Duration::from_millis(100));
    }
    Err(format!("no server listens on port {port}").into())
}
