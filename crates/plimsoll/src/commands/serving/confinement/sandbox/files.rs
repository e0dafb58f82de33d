//! Files: Landlock (`landlock(7)`).

use std::fs;

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use plimsoll_server::config::{PathUse, PermittedPaths};

/// The rights that are restricted, as far as the kernel has them; those of later versions stay as they are.
const RIGHTS: ABI = ABI::V6;

/// Whether the kernel restricts the files of this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilesRestricted {
    /// By this version of its interface.
    By(u32),
    /// It cannot.
    Not,
}

/// The folder of this process in `/proc`, kept open: the kernel may forget and make it anew otherwise, and a rule ends with it.
#[derive(Debug)]
pub(super) struct OwnProcess(PathFd);

impl OwnProcess {
    /// `None` without `/proc`.
    pub(super) fn open() -> Option<Self> {
        PathFd::new("/proc/self").ok().map(Self)
    }
}

/// Restricts this thread and those that it starts to `permitted`.
pub(super) fn restrict(
    permitted: &PermittedPaths,
    own_process: Option<&OwnProcess>,
) -> Result<FilesRestricted, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))?
        // Signals to other processes.
        .scope(Scope::Signal)?
        .create()?;
    for root in permitted.roots() {
        // It may be gone since.
        let Ok(open) = PathFd::new(&root.path) else {
            continue;
        };
        let rights = rights(root.usage);
        let is_folder = fs::metadata(&root.path).is_ok_and(|metadata| metadata.is_dir());
        let rights = if is_folder {
            rights
        } else {
            rights & AccessFs::from_file(RIGHTS)
        };
        ruleset = ruleset.add_rule(PathBeneath::new(open, rights))?;
    }
    if let Some(OwnProcess(open)) = own_process {
        ruleset = ruleset.add_rule(PathBeneath::new(open, rights(PathUse::Read)))?;
    }
    let status = ruleset.restrict_self()?;
    let abi = match status.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs),
        _ => 0,
    };
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => FilesRestricted::Not,
        _ => FilesRestricted::By(abi),
    })
}

fn rights(usage: PathUse) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    match usage {
        PathUse::Read => read,
        PathUse::WriteFile => {
            AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::MakeReg
                | AccessFs::MakeSock
                | AccessFs::RemoveFile
        }
        PathUse::WriteFolder => {
            read | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::MakeReg
                | AccessFs::MakeSock
                | AccessFs::MakeDir
                | AccessFs::RemoveFile
                | AccessFs::RemoveDir
                | AccessFs::Refer
        }
    }
}

#[cfg(test)]
mod tests;
