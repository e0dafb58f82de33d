//! A load that is kept running: its command is started again whenever it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_model::with_causes;
use plimsoll_wire::SystemClock;

use super::outcome::LoadTally;
use crate::command::Command;
use crate::counts;
use crate::plans::{Placeholders, fill};

/// Runs in a row that may fail within a moment before the load is given up.
const MOST_FAILURES: u32 = 5;

/// The shortest run of a load that counts as begun properly.
const MOMENT: Duration = Duration::from_secs(1);

/// Pause before a command is started again.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a command is looked after.
const STEP: Duration = Duration::from_millis(50);

/// Keeps a load running until `deadline` or until it is to stop; what came of it.
///
/// - `words`: the command, with everything filled in but `{time}` and `{seconds}`.
/// - `longest`: how long one run lasts at most.
pub(super) fn keep_running(
    name: &str,
    words: &[String],
    longest: Duration,
    deadline: Instant,
    stop: &AtomicBool,
) -> LoadTally {
    let clock = SystemClock;
    let mut tally = LoadTally::new(name);
    let mut failures = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let left = deadline.saturating_duration_since(now);
        if left < MOMENT {
            break;
        }
        let words = with_time(words, left.min(longest));
        let mut command = match Command::start(&words, &[]) {
            Ok(command) => command,
            Err(error) => {
                tally.given_up = Some(with_causes(&error));
                return tally;
            }
        };
        tally.runs += 1;
        let Some(status) = wait(&mut command, deadline, stop) else {
            // Cut off by the end of the scenario.
            break;
        };
        if let Ok(counted) = counts::read(&command.stdout()) {
            tally.ok += counted.ok;
            tally.failed += counted.failed;
        }
        // Hostile clients and checks say by 1 that an objective was missed; they did run.
        let did_run = matches!(status.code(), Some(0 | 1));
        if did_run {
            failures = 0;
        } else {
            tally.failed_runs += 1;
            failures += u32::from(clock.now().saturating_duration_since(now) < MOMENT);
            if failures == MOST_FAILURES {
                let complaint = command.complaint();
                tally.given_up = Some(format!(
                    "ended at once {MOST_FAILURES} times ({status}): {}",
                    complaint.trim()
                ));
                return tally;
            }
        }
        std::thread::park_timeout(PAUSE);
    }
    tally
}

/// How the command ended; `None` if it was stopped.
fn wait(
    command: &mut Command,
    deadline: Instant,
    stop: &AtomicBool,
) -> Option<std::process::ExitStatus> {
    /// Time beyond the end for a load to finish and report.
    const GRACE: Duration = Duration::from_secs(5);

    loop {
        match command.wait(STEP) {
            Ok(Some(finished)) => return Some(finished.status),
            Ok(None) => {}
            Err(_) => return None,
        }
        let is_late = SystemClock.now() > deadline + GRACE;
        if stop.load(Ordering::Relaxed) || is_late {
            return None;
        }
    }
}

fn with_time(words: &[String], time: Duration) -> Vec<String> {
    let values: &Placeholders = &[
        ("time".to_owned(), format!("{}ms", time.as_millis())),
        ("seconds".to_owned(), time.as_secs().max(1).to_string()),
    ];
    words.iter().map(|word| fill(word, values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, time: Duration) -> LoadTally {
        let words = ["sh", "-c", script].map(str::to_owned);
        let deadline = SystemClock.now() + time;
        keep_running(
            "load",
            &words,
            Duration::MAX,
            deadline,
            &AtomicBool::new(false),
        )
    }

    #[test]
    fn a_load_that_ends_is_started_again() {
        let tally = run("echo {seconds} {time}", Duration::from_secs(3));
        assert!(tally.runs > 1, "{tally:?}");
        assert_eq!((tally.failed_runs, tally.given_up), (0, None));
    }

    #[test]
    fn a_load_that_cannot_run_is_given_up_with_its_complaint() {
        let tally = run("echo no such flag >&2; exit 2", Duration::from_mins(1));
        assert_eq!((tally.runs, tally.failed_runs), (5, 5));
        let given_up = tally.given_up.unwrap();
        assert!(given_up.contains("no such flag"), "{given_up}");
        let missing = ["/no/such/program".to_owned()];
        let deadline = SystemClock.now() + Duration::from_mins(1);
        let stop = AtomicBool::new(false);
        let tally = keep_running("load", &missing, Duration::MAX, deadline, &stop);
        assert!(tally.given_up.is_some());
    }
}
