//! Files of a confined command: Landlock (`landlock(7)`).

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};

use super::Confinement;
use crate::own_file::own_file;

/// The rights that are restricted, as far as the kernel has them.
const RIGHTS: ABI = ABI::V6;

/// What name lookups, TLS, time zones and the figures of a run need. No folder in which services keep secrets: scripts can read
/// all of it.
const SYSTEM: [&str; 29] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates/extracted",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/zoneinfo",
    "/var/lib/ca-certificates",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/dev/null",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/sys/fs/cgroup",
    "/sys/devices/system",
];

/// Where the certificates of authorities are looked for first.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Where the dynamic linker and libraries lie, for a program that starts itself.
const LIBRARIES: [&str; 6] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/nix/store",
    "/etc/ld.so.cache",
];

/// Restricts this thread and all that it starts; false if the kernel cannot.
pub(super) fn restrict(confinement: &Confinement) -> Result<bool, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut permitted: Vec<(PathBuf, BitFlags<AccessFs>)> = vec![(confinement.root.clone(), read)];
    if let Some(scratch) = &confinement.scratch {
        let written = AccessFs::from_write(RIGHTS) & !AccessFs::MakeChar & !AccessFs::MakeBlock;
        permitted.push((scratch.clone(), read | written));
    }
    permitted.extend(SYSTEM.map(|path| (PathBuf::from(path), read)));
    let certificates = CERTIFICATES.into_iter().filter_map(std::env::var_os);
    permitted.extend(certificates.map(|path| (PathBuf::from(path), read)));
    permitted.push((PathBuf::from("/proc/self"), read));
    permitted.extend(own_file().ok().map(|own| {
        let starts = AccessFs::Execute | AccessFs::ReadFile;
        let rights = if confinement.starts_itself {
            starts
        } else {
            read
        };
        (own, rights)
    }));
    if confinement.starts_itself {
        permitted.extend(LIBRARIES.map(|path| (PathBuf::from(path), read | AccessFs::Execute)));
        // The time and memory of what it starts.
        permitted.push((PathBuf::from("/proc"), read));
    }
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))?
        .scope(Scope::Signal)?
        .scope(Scope::AbstractUnixSocket)?
        .create()?;
    for (path, rights) in permitted {
        ruleset = add(ruleset, &path, rights)?;
    }
    let status = ruleset.restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Permits a path, if there is one.
fn add(
    ruleset: landlock::RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, RulesetError> {
    let Ok(open) = PathFd::new(path) else {
        return Ok(ruleset);
    };
    let rights = if path.is_dir() {
        rights
    } else {
        rights & AccessFs::from_file(RIGHTS)
    };
    ruleset.add_rule(PathBeneath::new(open, rights))
}
