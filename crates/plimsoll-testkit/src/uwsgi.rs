//! An application of Python behind uwsgi, by Debian's uWSGI with its plugin for Python 3.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::services::{ChildProcess, new_folder, unprivileged, wait_until};

/// A uWSGI on two sockets of its own, which is deleted at the end.
#[derive(Debug)]
pub struct UwsgiApplication {
    folder: PathBuf,
    address: String,
    running: Option<ChildProcess>,
}

impl UwsgiApplication {
    /// Starts one with the text of a module that has a WSGI application named `application`, and waits until it takes connections.
    ///
    /// It serves two requests at a time, whose parameters may have 64 KiB.
    pub fn start(module: &str) -> Self {
        let folder = new_folder("uwsgi");
        let (socket, log) = (folder.join("socket"), folder.join("log"));
        fs::write(folder.join("app.py"), module).expect("a new folder takes files");
        let mut command = Command::new("uwsgi-core");
        command
            .args(["--plugin", "python3", "--need-app", "--threads", "2"])
            .args(["--buffer-size", "65535", "--socket", "127.0.0.1:0"])
            .arg("--socket")
            .arg(&socket)
            .arg("--wsgi-file")
            .arg(folder.join("app.py"))
            .arg("--logto")
            .arg(&log);
        let running = ChildProcess::start_until("INT", &command, &folder, unprivileged());
        // Its worker is the last that it names.
        let said = || fs::read_to_string(&log).unwrap_or_default();
        wait_until(|| said().contains("spawned uWSGI worker"));
        let said = said();
        let address = said.split("bound to TCP address ").nth(1);
        let address = address.and_then(|rest| rest.split(' ').next());
        Self {
            address: address.expect("it listens on a port").to_owned(),
            folder,
            running: Some(running),
        }
    }

    /// Its Unix socket, as servers of an upstream are written.
    pub fn socket(&self) -> String {
        format!("unix:{}", self.folder.join("socket").display())
    }

    /// The same for its TCP socket.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for UwsgiApplication {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}
