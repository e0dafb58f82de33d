//! What the kernel reports of a process.

use std::fs;

use crate::Failure;

/// Ticks of a second, as Linux reports CPU time.
const TICKS: f64 = 100.0;

/// CPU time of a process so far, in seconds.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat = stat.map_err(|error| format!("the process is gone: {error}"))?;
    // The name of the program, in parentheses, may have spaces in it.
    let fields = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace());
    let mut times = fields.ok_or("the system reports no CPU time")?.skip(11);
    let mut time = || times.next().and_then(|field| field.parse::<f64>().ok());
    let (user, system) = (time(), time());
    let whole = user.zip(system).map(|(user, system)| user + system);
    Ok(whole.ok_or("the system reports no CPU time")? / TICKS)
}
