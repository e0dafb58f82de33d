//! Processes by name, as `pgrep` finds them.

use std::fs;
use std::path::Path;

/// Bytes of a name that the kernel keeps (`TASK_COMM_LEN`, proc(5)), without its end.
const LONGEST_COMM: usize = 15;

/// Why a name leads to no process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No process has it.
    #[error("no process is named `{0}`")]
    None(String),
    /// Several that were not started by one another.
    #[error("{count} processes are named `{name}`: give the id of one of them ({pids})", count = .pids.len(), pids = listed(.pids))]
    Several {
        /// The name.
        name: String,
        /// Their ids.
        pids: Vec<u32>,
    },
    /// This platform has no proc file system.
    #[error("processes can be found by name on Linux only; give an id")]
    Unsupported,
}

/// The id of the process of that name; of several that started one another, as a server and its workers, the first.
///
/// A name is that of the program, or what it calls itself.
pub fn pid_of_name(name: &str) -> Result<u32, NameError> {
    if !cfg!(target_os = "linux") {
        return Err(NameError::Unsupported);
    }
    let found = processes(Path::new("/proc"), name);
    let has = |pid| found.iter().any(|process| process.pid == pid);
    let roots = found.iter().filter(|process| !has(process.parent));
    let mut pids: Vec<_> = roots.map(|process| process.pid).collect();
    pids.sort_unstable();
    match pids.as_slice() {
        [] => Err(NameError::None(name.to_owned())),
        [pid] => Ok(*pid),
        _ => Err(NameError::Several {
            name: name.to_owned(),
            pids,
        }),
    }
}

#[derive(Debug)]
struct NamedProcess {
    pid: u32,
    parent: u32,
}

/// Processes of that name but this one; those that end meanwhile are left out.
fn processes(proc: &Path, name: &str) -> Vec<NamedProcess> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| *pid != std::process::id())
        .filter_map(|pid| {
            let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
            let (comm, parent) = comm_and_parent(&stat)?;
            let is_it = is_comm_of(comm, name) || program(proc, pid).is_some_and(|it| it == name);
            is_it.then_some(NamedProcess { pid, parent })
        })
        .collect()
}

/// Name and parent of a line of `stat` (proc(5)); the name may have blanks and parentheses in it.
fn comm_and_parent(stat: &str) -> Option<(&str, u32)> {
    let (before, behind) = stat.rsplit_once(')')?;
    let (_, comm) = before.split_once('(')?;
    let parent = behind.split_whitespace().nth(1)?.parse().ok()?;
    Some((comm, parent))
}

fn is_comm_of(comm: &str, name: &str) -> bool {
    let end = name.floor_char_boundary(LONGEST_COMM);
    comm == name || (end < name.len() && comm == name.split_at(end).0)
}

/// The file name of the program of a process, as its command line has it.
fn program(proc: &Path, pid: u32) -> Option<String> {
    let line = fs::read(proc.join(pid.to_string()).join("cmdline")).ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    let first = String::from_utf8_lossy(first);
    let name = Path::new(first.as_ref()).file_name()?.to_str()?;
    Some(name.to_owned())
}

fn listed(pids: &[u32]) -> String {
    let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
    pids.join(", ")
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// A folder such as `/proc` with processes of these ids, parents, names and programs.
    fn proc(processes: &[(u32, u32, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (pid, parent, comm, program) in processes {
            let process = folder.path().join(pid.to_string());
            fs::create_dir(&process).unwrap();
            fs::write(
                process.join("stat"),
                format!("{pid} ({comm}) S {parent} 1 1"),
            )
            .unwrap();
            fs::write(process.join("cmdline"), format!("{program}\0-x\0")).unwrap();
        }
        fs::create_dir(folder.path().join("sys")).unwrap();
        folder
    }

    #[test]
    fn names_are_those_of_programs_or_what_they_call_themselves() {
        let folder = proc(&[
            (10, 1, "nginx", "nginx: master process"),
            (11, 10, "nginx", "nginx: worker process"),
            (20, 1, "a-very-long-nam", "/opt/a-very-long-name"),
            (30, 1, "MainThread", "/usr/bin/node"),
            (40, 1, "odd) name (x", ""),
        ]);
        let found = |name: &str| {
            let found = processes(folder.path(), name);
            let mut pids: Vec<_> = found.iter().map(|it| (it.pid, it.parent)).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(found("nginx"), [(10, 1), (11, 10)]);
        assert_eq!(found("a-very-long-name"), [(20, 1)]);
        assert_eq!(found("node"), [(30, 1)]);
        assert_eq!(found("odd) name (x"), [(40, 1)]);
        assert_eq!(found("ngin"), []);
    }

    #[test]
    fn a_name_that_is_not_there_or_not_unique_is_reported() {
        let name = "no-process-has-this-name";
        assert_eq!(pid_of_name(name), Err(NameError::None(name.to_owned())));
        let several = NameError::Several {
            name: "x".to_owned(),
            pids: vec![3, 5],
        };
        assert_eq!(
            several.to_string(),
            "2 processes are named `x`: give the id of one of them (3, 5)"
        );
    }
}
