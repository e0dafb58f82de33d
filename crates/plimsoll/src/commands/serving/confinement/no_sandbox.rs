//! Other systems than Linux have no sandbox.

use plimsoll_server::config::{NamedPath, PermittedPaths};

use crate::problem::{Failed, Problem};

/// A sandbox, which there cannot be.
#[derive(Debug)]
pub(crate) enum Sandbox {}

impl Sandbox {
    pub(crate) fn enter(_: &[NamedPath]) -> Result<Self, Failed> {
        let problem = Problem::with("--sandbox", "there is no sandbox on this system");
        Err(problem
            .hint("start it without --sandbox; on Linux it uses Landlock and seccomp")
            .usage())
    }

    pub(crate) fn permitted(&self) -> &PermittedPaths {
        match *self {}
    }
}
