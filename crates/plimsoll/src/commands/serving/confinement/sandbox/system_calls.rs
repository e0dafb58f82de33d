//! System calls: a seccomp filter (`seccomp(2)`).
//!
//! It lists what is refused, not what is permitted. The calls of an allocator, a runtime, an engine of JavaScript and SQLite change
//! with each version and C library, and a server that fails a year later at a call that was forgotten protects no one. The unit
//! files have the list of permitted calls that systemd maintains for its services beside this filter. A call fails with EPERM;
//! the process goes on.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Numbers of calls with what their arguments must be; without conditions every call is refused.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The `libc` crate lacks it for musl on ARM; Linux has one number for it on all newer processors (`asm-generic/unistd.h`).
const SYS_KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") {
    320
} else {
    294
};

/// Calls that no server makes.
const REFUSED: &[i64] = &[
    // Other programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Other users and rights: what was given up stays so.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    // Namespaces, mounts and roots.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Parts of the kernel in which errors are found most often.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Protocols of sockets that servers use: others are parts of the kernel that few programs need and many attacks began with.
const FAMILIES: [i32; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// Namespaces that clone(2) makes.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests of ioctl(2) that type into the terminal of a process.
const TYPING: [u64; 2] = [libc::TIOCSTI as _, libc::TIOCLINUX as _];

/// Filters the system calls of all threads of this process, and of those that they start.
pub(super) fn filter() -> io::Result<()> {
    for program in &programs()? {
        apply_filter_all_threads(program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn programs() -> io::Result<[BpfProgram; 2]> {
    Ok([
        program(refused().map_err(io::Error::other)?, libc::EPERM)?,
        // A filter cannot read the flags of clone3(2). Where it does not exist, C libraries use clone(2); after any other error
        // they start no thread.
        program(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?,
    ])
}

fn refused() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut of_clone = NAMESPACES
        .iter()
        .map(|flag| rule(&[masked(0, flag_bits(*flag), flag_bits(*flag))]))
        .collect::<Result<Vec<_>, _>>()?;
    // A new process, not a thread.
    of_clone.push(rule(&[masked(0, flag_bits(libc::CLONE_THREAD), 0)])?);
    rules.insert(libc::SYS_clone, of_clone);
    let other_family = FAMILIES.map(|family| (0, SeccompCmpOp::Ne, flag_bits(family)));
    rules.insert(libc::SYS_socket, vec![rule(&other_family)?]);
    let typing = TYPING.map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    rules.insert(
        libc::SYS_ioctl,
        typing.into_iter().collect::<Result<_, _>>()?,
    );
    #[cfg(target_arch = "x86_64")]
    add_x32(&mut rules);
    Ok(rules)
}

/// Every call has a second number, for programs with pointers of 32 bits, and some have a third.
#[cfg(target_arch = "x86_64")]
fn add_x32(rules: &mut Rules) {
    /// `__X32_SYSCALL_BIT`.
    const X32: i64 = 0x4000_0000;
    /// `execve`, `ptrace`, `kexec_load`, `process_vm_readv`, `process_vm_writev`, `execveat` and `ioctl`.
    const OWN: [i64; 7] = [520, 521, 528, 539, 540, 545, 514];

    let second: Vec<_> = rules
        .iter()
        .map(|(call, conditions)| (call | X32, conditions.clone()))
        .collect();
    rules.extend(second);
    rules.extend(OWN.map(|call| (call | X32, Vec::new())));
}

/// An argument, by its number, and what it must be.
type Argument = (u8, SeccompCmpOp, u64);

fn masked(number: u8, mask: u64, value: u64) -> Argument {
    (number, SeccompCmpOp::MaskedEq(mask), value)
}

/// All of `arguments` must be so.
fn rule(arguments: &[Argument]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = arguments.iter().map(|(number, operator, value)| {
        SeccompCondition::new(*number, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// The kernel reads these arguments as 32 bits.
fn flag_bits(flag: i32) -> u64 {
    u64::from(flag.cast_unsigned())
}

fn program(rules: Rules, error: i32) -> io::Result<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture);
    let program = filter.and_then(BpfProgram::try_from);
    program.map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
