//! A script run once, as a check: by a monitor, for example.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_client::{AddressFilter, ProxyRules};
use plimsoll_model::Clock as _;
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;
use serde_json::Value;

use crate::line_source::LineSource;
use crate::options::{Overrides, SummaryMode};
use crate::run::exit_code::ExitCode;
use crate::run::invocation::Invocation;
use crate::run::run;
use crate::script::Script;

/// The verdict of one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceVerdict {
    /// Why the check fails; empty if it does not. Exceptions, failed checks, thresholds, `test.abort()`, a timeout.
    pub failures: Vec<String>,
    /// Checks of the script that passed, and all of them.
    pub checks: (u64, u64),
    /// Total time, initialisation included.
    pub took: Duration,
    /// Console lines of the script, and messages; at most [`LINES`].
    pub log: Vec<String>,
}

impl OnceVerdict {
    /// True if the check passes.
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Lines of the log that are kept, the last ones: enough to read a failure on a monitor's page.
pub const LINES: usize = 100;

/// Runs one iteration of a script by one virtual user, with `setup()` and `teardown()`. Scenarios and durations of the script do not count; its
/// thresholds do.
///
/// Blocks the thread and starts another: call it where blocking is allowed.
///
/// - `environment`: what `__ENV` has.
/// - `timeout`: for everything together; a script that computes without end is stopped too.
pub fn run_once(
    script: Script,
    environment: Vec<(String, String)>,
    (proxies, address_filter): (ProxyRules, Option<AddressFilter>),
    timeout: Duration,
) -> OnceVerdict {
    let began = SystemClock.now();
    let is_over = move || SystemClock.now().saturating_duration_since(began) >= timeout;
    let log: Arc<Mutex<(Vec<String>, Vec<String>)>> = Arc::default();
    let kept = Arc::clone(&log);
    let lines = Arc::new(move |level, text: &str, source: LineSource| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Exceptions of an iteration change no exit code.
        if level == Level::Error && source == LineSource::StackTrace {
            let line = text.lines().next().unwrap_or_default();
            kept.1.push(line.to_owned());
        }
        if kept.0.len() < LINES {
            kept.0.push(text.to_owned());
        }
    });
    let outcome = run(&Invocation {
        overrides: Overrides {
            iterations: Some(1),
            vus: Some(1),
            ..Overrides::default()
        },
        environment,
        summary_mode: SummaryMode::Disabled,
        proxies,
        address_filter,
        ..Invocation::new(script, lines, &is_over)
    });
    let (lines, exceptions) =
        std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    let mut failures = exceptions;
    let mut checks = (0, 0);
    if let Some(data) = &outcome.data {
        count(&data["root_group"], &mut checks, &mut failures);
    }
    match outcome.exit {
        ExitCode::Fine => {}
        ExitCode::ExternalAbort => failures.push(format!("took longer than {timeout:?}")),
        ExitCode::ScriptException | ExitCode::Other
            if !failures.is_empty() && outcome.message.is_empty() => {}
        _ => failures.push(if outcome.message.is_empty() {
            format!("ended with exit code {}", outcome.exit.number())
        } else {
            outcome.message
        }),
    }
    OnceVerdict {
        failures,
        checks,
        took: SystemClock.now().saturating_duration_since(began),
        log: lines,
    }
}

fn count(group: &Value, checks: &mut (u64, u64), failures: &mut Vec<String>) {
    let each = |key: &str| group[key].as_array().into_iter().flatten();
    for check in each("checks") {
        let name = check["name"].as_str().unwrap_or_default();
        let passes = check["passes"].as_u64().unwrap_or_default();
        let fails = check["fails"].as_u64().unwrap_or_default();
        checks.0 += passes;
        checks.1 += passes + fails;
        if fails > 0 {
            failures.push(format!("check `{name}` failed"));
        }
    }
    for inner in each("groups") {
        count(inner, checks, failures);
    }
}
