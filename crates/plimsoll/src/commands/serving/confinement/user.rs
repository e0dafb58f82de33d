//! `--user`: the user that a server becomes.
//!
//! Users and groups are read from `/etc/passwd` and `/etc/group`, not by getpwnam(3): a static program cannot load the modules of the
//! name service. Users of a directory service are given by their numbers.

use std::fs;
use std::io;
use std::str::FromStr;

use crate::problem::{Failed, Problem};

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// `NAME`, `NAME:GROUP`, or numbers in place of either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserName {
    user: String,
    group: Option<String>,
}

impl FromStr for UserName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let is_name = |name: &str| !name.is_empty() && !name.contains(':');
        if !is_name(user) || !group.is_none_or(is_name) {
            return Err("must be a user, or a user and a group such as `www-data:www-data`");
        }
        Ok(Self {
            user: user.to_owned(),
            group: group.map(str::to_owned),
        })
    }
}

/// A user of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// As `--user` names it.
    shown: String,
    pub(super) user: u32,
    pub(super) group: u32,
    /// All groups that it is in, its own among them.
    pub(super) groups: Vec<u32>,
}

impl Account {
    /// The process cannot act as this user.
    pub(super) fn unreachable(&self, error: &io::Error) -> Failed {
        let message = format!("cannot become {}: {error}", self.shown);
        let hint =
            "start it as root with CAP_SETUID and CAP_SETGID, or as the user itself without --user";
        Problem::with("--user", message).hint(hint).could_not_run()
    }
}

impl UserName {
    /// The user of that name.
    pub(super) fn account(&self) -> Result<Account, Failed> {
        // Where there are no such files, there are numbers only.
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let account = self.account_in(&read(USERS), &read(GROUPS));
        account.map_err(|message| Problem::with("--user", message).usage())
    }

    /// - `users`, `groups`: the content of passwd(5) and group(5).
    fn account_in(&self, users: &str, groups: &str) -> Result<Account, String> {
        let number = self.user.parse::<u32>().ok();
        let entry = entries(users).find(|entry| match number {
            Some(number) => entry.number(2) == Some(number),
            None => entry.text(0) == Some(&self.user),
        });
        let user = number.or_else(|| entry.as_ref()?.number(2));
        let user = user.ok_or_else(|| format!("there is no user `{}` in {USERS}", self.user))?;
        let group = match &self.group {
            None => entry.as_ref().and_then(|entry| entry.number(3)),
            Some(group) => Some(group_of(group, groups)?),
        };
        let group = group.ok_or_else(|| {
            format!(
                "no user in {USERS} has the number {user}: name a group too, as in `{user}:{user}`"
            )
        })?;
        let mut all = vec![group];
        if let Some(name) = entry.as_ref().and_then(|entry| entry.text(0)) {
            let is_member = |entry: &Entry<'_>| {
                let members = entry.text(3).unwrap_or_default();
                members.split(',').any(|member| member == name)
            };
            let of_user = entries(groups).filter(is_member);
            all.extend(of_user.filter_map(|entry| entry.number(2)));
            all.sort_unstable();
            all.dedup();
        }
        Ok(Account {
            shown: self.user.clone(),
            user,
            group,
            groups: all,
        })
    }
}

fn group_of(name: &str, groups: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let entry = entries(groups).find(|entry| entry.text(0) == Some(name));
    let number = entry.and_then(|entry| entry.number(2));
    number.ok_or_else(|| format!("there is no group `{name}` in {GROUPS}"))
}

/// A line of passwd(5) or group(5).
struct Entry<'f>(Vec<&'f str>);

impl<'f> Entry<'f> {
    fn text(&self, field: usize) -> Option<&'f str> {
        self.0.get(field).copied()
    }

    fn number(&self, field: usize) -> Option<u32> {
        self.text(field)?.parse().ok()
    }
}

fn entries(file: &str) -> impl Iterator<Item = Entry<'_>> {
    file.lines().map(|line| Entry(line.split(':').collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nwww:x:33:33::/var/www:/bin/false\nbroken\n";
    const GROUPS: &str =
        "root:x:0:\nwww:x:33:\nkeys:x:44:other,www\nlogs:x:45:www\nwwwx:x:46:wwwx\n";

    fn account(text: &str) -> Result<Account, String> {
        let name: UserName = text.parse().map_err(str::to_owned)?;
        name.account_in(USERS, GROUPS)
    }

    #[test]
    fn users_are_found_by_name_and_number_with_all_their_groups() {
        for (text, user, group, groups) in [
            ("www", 33, 33, &[33, 44, 45][..]),
            ("33", 33, 33, &[33, 44, 45]),
            ("www:keys", 33, 44, &[44, 45]),
            ("www:7", 33, 7, &[7, 44, 45]),
            ("root", 0, 0, &[0]),
            ("65532:65533", 65_532, 65_533, &[65_533]),
        ] {
            let found = account(text).unwrap();
            assert_eq!((found.user, found.group), (user, group), "{text}");
            assert_eq!(found.groups, groups, "{text}");
        }
    }

    #[test]
    fn an_unknown_user_is_reported_with_what_to_write() {
        for (text, message) in [
            ("", "must be a user"),
            ("www:", "must be a user"),
            (":www", "must be a user"),
            ("a:b:c", "must be a user"),
            ("nobody", "there is no user `nobody` in /etc/passwd"),
            ("www:no", "there is no group `no` in /etc/group"),
            ("4711", "name a group too, as in `4711:4711`"),
            ("-1", "there is no user `-1`"),
            ("broken", "there is no user `broken`"),
        ] {
            let error = account(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
