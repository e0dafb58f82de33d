//! The user and the groups of this process, as Linux has them. Every call is for all threads of the process.

use std::io;

use nix::unistd::{Gid, Uid, getresgid, getresuid, setegid, seteuid, setgid, setgroups, setuid};

use super::user::Account;

const ROOT: Uid = Uid::from_raw(0);

/// Whether the process acts as this user already.
pub(super) fn is(account: &Account) -> bool {
    nix::unistd::geteuid().as_raw() == account.user
}

/// Whether the process can get the rights of root.
pub(super) fn can_become_root() -> bool {
    getresuid().is_ok_and(|ids| [ids.real, ids.effective, ids.saved].contains(&ROOT))
}

/// Acts as this user until further notice; root's rights can be had again.
pub(super) fn act_as(account: &Account) -> io::Result<()> {
    // The user cannot change its groups, so they come first; and an effective user who is root changes all three ids.
    seteuid(ROOT)?;
    setgroups(&groups(account))?;
    setegid(Gid::from_raw(account.group))?;
    seteuid(Uid::from_raw(account.user))?;
    Ok(())
}

/// Acts as root, after [`act_as`].
pub(super) fn act_as_root() -> io::Result<()> {
    seteuid(ROOT)?;
    setegid(Gid::from_raw(0))?;
    Ok(())
}

/// Becomes this user for good, after [`act_as_root`].
pub(super) fn become_user(account: &Account) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(account.user), Gid::from_raw(account.group));
    setgroups(&groups(account))?;
    setgid(group)?;
    setuid(user)?;
    let (users, group_ids) = (getresuid()?, getresgid()?);
    let is_user = [users.real, users.effective, users.saved] == [user; 3];
    let is_group = [group_ids.real, group_ids.effective, group_ids.saved] == [group; 3];
    // A process that can become root again has given up nothing.
    let can_return = !user.is_root() && (seteuid(ROOT).is_ok() || setuid(ROOT).is_ok());
    if !is_user || !is_group || can_return {
        return Err(io::Error::other("the process could become root again"));
    }
    Ok(())
}

fn groups(account: &Account) -> Vec<Gid> {
    account.groups.iter().copied().map(Gid::from_raw).collect()
}
