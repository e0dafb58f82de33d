//! A program that is started for the run and stopped after it.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec, SpawnError};

use crate::pid::ProcessSource;
use crate::{AttachError, SampleSource, Target};

/// A program to start, and how to find out that it serves.
#[derive(Debug, Clone)]
pub struct SpawnedPlan {
    /// Its name in the summary; without one, `spawned` and the program's file name.
    pub name: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Cores to bind it to; empty leaves it to the scheduler.
    pub cores: Vec<usize>,
    /// Test whether it is ready.
    pub ready: Readiness,
    /// Start timeout.
    pub timeout: Duration,
    /// Time to end after `SIGTERM` before it is killed.
    pub grace: Duration,
}

/// Test whether a program is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// One of these addresses accepts a TCP connection; none may do so before the start.
    Accepts(Vec<SocketAddr>),
    /// It prints a line `listening on URL` on its standard output.
    Announces,
}

/// Why a program that was to be the target does not serve.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Something else already listens where it was to listen.
    #[error("something already listens on {address}, so `{program}` was not started")]
    AddressTaken {
        /// The expected address.
        address: SocketAddr,
        /// The program that was to be started.
        program: String,
    },
    /// It ended before it served.
    #[error("`{program}` ended before it served ({status}){}{}", Background(*status), Stderr(stderr))]
    Exited {
        /// The program.
        program: String,
        /// Exit status.
        status: ExitStatus,
        /// The end of what it wrote on its standard error.
        stderr: String,
    },
    /// The user ended the run while it was waited for.
    #[error("interrupted while waiting for `{program}`")]
    Interrupted {
        /// The program, which was stopped.
        program: String,
    },
    /// It runs, but does not serve in time.
    #[error("`{program}` does not {awaited} after {} s{}", timeout.as_secs_f64(), Stderr(stderr))]
    TimedOut {
        /// The program.
        program: String,
        /// The state that was awaited.
        awaited: String,
        /// For how long.
        timeout: Duration,
        /// The end of what it wrote on its standard error.
        stderr: String,
    },
}

/// A program that was started for the run; dropping it kills its process group.
#[derive(Debug)]
pub struct Spawned {
    process: Process,
    name: String,
    cores: Vec<usize>,
    grace: Duration,
    announced: Option<String>,
}

impl Spawned {
    /// Starts the program and blocks until it serves, or `is_interrupted`.
    pub fn start(plan: &SpawnedPlan, is_interrupted: &dyn Fn() -> bool) -> Result<Self, NotReady> {
        let program = plan.argv.first().cloned().unwrap_or_default();
        if let Readiness::Accepts(addresses) = &plan.ready
            && let Some(address) = addresses.iter().find(|address| accepts(**address))
        {
            return Err(NotReady::AddressTaken {
                address: *address,
                program,
            });
        }
        let mut process = Process::spawn(&ProcessSpec {
            argv: plan.argv.clone(),
            cores: plan.cores.clone(),
            stdout: match plan.ready {
                Readiness::Accepts(_) => Output::Null,
                Readiness::Announces => Output::Captured,
            },
            stderr: Output::Captured,
            ..ProcessSpec::default()
        })?;
        let announced = wait(&mut process, &program, plan, is_interrupted)?;
        Ok(Self {
            name: plan
                .name
                .clone()
                .unwrap_or_else(|| format!("spawned {}", file_name(&program))),
            process,
            cores: plan.cores.clone(),
            grace: plan.grace,
            announced,
        })
    }

    /// The URL that the program announced, if that was waited for.
    pub fn announced(&self) -> Option<&str> {
        self.announced.as_deref()
    }

    /// Exit status, if it has ended, with the end of its standard error; a target must outlive the run.
    pub fn ended(&mut self) -> Option<(ExitStatus, String)> {
        let status = self.process.wait(Duration::ZERO)?;
        Some((status, self.process.stderr_tail()))
    }
}

impl Target for Spawned {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> Option<u32> {
        Some(self.process.id())
    }

    fn cores(&self) -> &[usize] {
        &self.cores
    }

    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        ProcessSource::open(self.process.id())
    }

    fn stop(self: Box<Self>) {
        self.process.stop(self.grace);
    }
}

/// Interval of attempts to connect; the wait ends early if the program does.
const RETRY: Duration = Duration::from_millis(20);

/// Interval at which the wait for a line of output checks for an interrupt.
const LISTEN: Duration = Duration::from_millis(100);

/// Timeout of one attempt to connect.
const CONNECT: Duration = Duration::from_millis(500);

/// Blocks until the program serves; gives the URL it announced.
fn wait(
    process: &mut Process,
    program: &str,
    plan: &SpawnedPlan,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Option<String>, NotReady> {
    let deadline = SystemClock.now() + plan.timeout;
    let left = || deadline.saturating_duration_since(SystemClock.now());
    let awaited = match &plan.ready {
        Readiness::Announces => {
            while !left().is_zero() && !is_interrupted() {
                let url = process.stdout_line(LISTEN.min(left()), announced_url);
                if url.is_some() {
                    return Ok(url);
                }
                if process.wait(Duration::ZERO).is_some() {
                    break;
                }
            }
            "announce its address (`listening on …`)".to_owned()
        }
        Readiness::Accepts(addresses) => {
            while process.wait(RETRY.min(left())).is_none()
                && !left().is_zero()
                && !is_interrupted()
            {
                // A program that goes into the background ends just when its child begins to serve.
                if addresses.iter().any(|address| accepts(*address))
                    && process.wait(RETRY).is_none()
                {
                    return Ok(None);
                }
            }
            format!("accept connections on {}", listed(addresses))
        }
    };
    Err(match process.wait(Duration::ZERO) {
        _ if is_interrupted() => NotReady::Interrupted {
            program: program.to_owned(),
        },
        Some(status) => NotReady::Exited {
            program: program.to_owned(),
            status,
            stderr: process.stderr_tail(),
        },
        None => NotReady::TimedOut {
            program: program.to_owned(),
            awaited,
            timeout: plan.timeout,
            stderr: process.stderr_tail(),
        },
    })
}

fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, CONNECT).is_ok()
}

/// `http://127.0.0.1:1234` of `listening on http://127.0.0.1:1234`.
fn announced_url(line: &str) -> Option<String> {
    let (_, url) = line.split_once("listening on ")?;
    let url = url.split_whitespace().next()?;
    url.contains("://").then(|| url.to_owned())
}

fn file_name(program: &str) -> &str {
    Path::new(program)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(program)
}

fn listed(addresses: &[SocketAddr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" or ")
}

/// A program that ends well at once has usually put itself into the background.
struct Background(ExitStatus);

impl std::fmt::Display for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.success() {
            f.write_str(
                "; if it went into the background, it still runs there: keep it in the foreground \
                 (nginx: `-g 'daemon off;'`)",
            )?;
        }
        Ok(())
    }
}

/// The end of standard error, indented on lines of its own.
struct Stderr<'a>(&'a str);

impl std::fmt::Display for Stderr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<&str> = self.0.lines().collect();
        let shown = lines.len().saturating_sub(8);
        for line in lines.iter().skip(shown) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}
