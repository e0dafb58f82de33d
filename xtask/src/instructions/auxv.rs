//! Why programs would end with SIGSEGV under valgrind, and how they do not.
//!
//! Valgrind hides the vdso from a program by the auxiliary vector on its stack and by `/proc/self/auxv`, but passes `prctl(PR_GET_AUXV)`
//! on to the kernel (3.19 does), whose answer has the vdso's address. rustix asks by `prctl` first, and calls into memory that
//! is not there.

use std::collections::BTreeMap;
use std::fmt::Display;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::Outcome;

/// `PR_GET_AUXV` of `linux/prctl.h` (since Linux 6.4).
const GET_AUXV: u64 = 0x4155_5856;

/// From now on `prctl(PR_GET_AUXV)` fails with EINVAL, as on an older kernel, for this thread and the processes that it starts.
pub(super) fn refuse() -> Outcome {
    let failed = |error: &dyn Display| format!("cannot filter system calls: {error}");
    let is_auxv = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, GET_AUXV);
    let is_auxv = is_auxv.map_err(|error| failed(&error))?;
    let rule = SeccompRule::new(vec![is_auxv]).map_err(|error| failed(&error))?;
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
    let refused = SeccompAction::Errno(libc::EINVAL.cast_unsigned());
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_prctl, vec![rule])]),
        SeccompAction::Allow,
        refused,
        architecture,
    )
    .map_err(|error| failed(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error| failed(&error))?;
    apply_filter(&program).map_err(|error| failed(&error).into())
}
