//! The rights that a server gives up.
//!
//! In this order: it writes no core dumps and files for its user alone; it does everything but binding as the user of `--user`;
//! with its sockets bound it becomes that user for good; then it confines itself to the files of its configuration
//! (`--sandbox`). Workers and all other threads start after that, so they have no more rights than it.

mod user;

#[cfg(target_os = "linux")]
mod rights;

#[cfg(not(target_os = "linux"))]
#[path = "confinement/no_rights.rs"]
mod rights;

#[cfg(target_os = "linux")]
mod sandbox;

#[cfg(not(target_os = "linux"))]
#[path = "confinement/no_sandbox.rs"]
mod sandbox;

use clap::ArgAction;
use clap::builder::FalseyValueParser;
use plimsoll_wire::process;

pub(crate) use self::sandbox::Sandbox;
use self::user::{Account, UserName};
use crate::problem::{Failed, Problem};

/// Flags of every server about its rights.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Confinement")]
pub(crate) struct ConfinementArgs {
    /// Become this user once the sockets are bound: `NAME`, `NAME:GROUP` or numbers; needs root
    #[arg(long, value_name = "NAME")]
    user: Option<UserName>,

    /// Permit only files that the configuration names, and only system calls that servers need (Landlock and seccomp of Linux)
    #[arg(long, env = "PLIMSOLL_SANDBOX", action = ArgAction::SetTrue, value_parser = FalseyValueParser::new())]
    sandbox: bool,
}

impl ConfinementArgs {
    /// Gives up what no server needs, and from now on acts as the user of `--user`.
    pub(crate) fn begin(&self) -> Result<Privileges, Failed> {
        keep_private()?;
        Privileges::lower(self.user.as_ref())
    }

    /// Acts as the user of `--user` from now on, for what a command does before it serves.
    #[cfg(feature = "monitor")]
    pub(crate) fn act_as_user(&self) -> Result<(), Failed> {
        self.begin().map(drop)
    }

    /// Whether `--sandbox` is given.
    pub(crate) fn has_sandbox(&self) -> bool {
        self.sandbox
    }
}

/// Keeps the memory and the new files of this process from other users.
pub(crate) fn keep_private() -> Result<(), Failed> {
    process::keep_new_files_private();
    process::forbid_core_dumps().map_err(|error| {
        let message = format!("cannot turn off core dumps: {error}");
        Problem::new(message).could_not_run()
    })
}

/// The privileges of a server that was started as root: it has them to bind sockets, and for nothing else.
///
/// What it reads and writes before and after that is read and written with the rights of its user, so a file that the user cannot
/// read is an error at the start and not at the first reload.
#[derive(Debug)]
#[must_use = "a process that keeps them can become root again"]
pub(crate) struct Privileges {
    /// The user that the process acts as; absent if it stays as it was.
    account: Option<Account>,
}

impl Privileges {
    fn lower(user: Option<&UserName>) -> Result<Self, Failed> {
        let Some(user) = user else {
            return Ok(Self { account: None });
        };
        let account = user.account()?;
        if rights::is(&account) && !rights::can_become_root() {
            return Ok(Self { account: None });
        }
        rights::act_as(&account).map_err(|error| account.unreachable(&error))?;
        Ok(Self {
            account: Some(account),
        })
    }

    /// Does `work`, which binds sockets, with the privileges, and gives them up for good.
    pub(crate) fn bind<T>(self, work: impl FnOnce() -> T) -> Result<T, Failed> {
        let Some(account) = self.account else {
            return Ok(work());
        };
        rights::act_as_root().map_err(|error| account.unreachable(&error))?;
        let done = work();
        rights::become_user(&account).map_err(|error| account.unreachable(&error))?;
        Ok(done)
    }
}
