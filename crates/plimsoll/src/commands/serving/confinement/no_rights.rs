//! Other systems than Linux: a process stays the user that started it.

use std::io;

use super::user::Account;

pub(super) fn is(_: &Account) -> bool {
    false
}

pub(super) fn can_become_root() -> bool {
    false
}

pub(super) fn act_as(_: &Account) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn act_as_root() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn become_user(_: &Account) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
