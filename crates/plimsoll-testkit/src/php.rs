//! An application of PHP behind FastCGI, by Debian's php-cgi.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::services::{ChildProcess, new_folder, unprivileged, wait_until};

/// A php-cgi on a socket of its own, which is deleted at the end.
#[derive(Debug)]
pub struct PhpApplication {
    folder: PathBuf,
    running: Option<ChildProcess>,
}

impl PhpApplication {
    /// Starts one with these scripts, by their names, and waits until it takes connections.
    ///
    /// It serves one connection at a time.
    pub fn start(scripts: &[(&str, &str)]) -> Self {
        let folder = new_folder("php");
        let root = folder.join("root");
        fs::create_dir(&root).expect("a new folder takes another one");
        for (name, text) in scripts {
            fs::write(root.join(name), text).expect("a new folder takes files");
        }
        let socket = folder.join("socket");
        let mut command = Command::new("php-cgi");
        command
            .arg("-b")
            .arg(&socket)
            .env("PHP_FCGI_MAX_REQUESTS", "100000");
        let running = ChildProcess::start_until("TERM", &command, &folder, unprivileged());
        wait_until(|| UnixStream::connect(&socket).is_ok());
        Self {
            folder,
            running: Some(running),
        }
    }

    /// Its socket, as servers of an upstream are written.
    pub fn url(&self) -> String {
        format!("unix:{}", self.folder.join("socket").display())
    }

    /// The folder of the scripts.
    pub fn root(&self) -> String {
        self.folder.join("root").display().to_string()
    }

    /// A file in that folder.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.root()).join(name)
    }
}

impl Drop for PhpApplication {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}
