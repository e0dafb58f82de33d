//! What a script would do, from its initialisation alone.

use std::sync::Arc;

use plimsoll_k6::{
    ExitCode as K6ExitCode, InspectedScript, Invocation, Overrides, RunControl, RunServers,
    go_duration,
};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use super::flags::{GlobalFlags, RunFlags, SourceFlags, TestType};
use super::load::load;
use super::settings::{log_of, overrides, refuse_unsupported_of_all};
use super::{Failure, LogFormat};
use crate::problem::Problem;
use crate::terminal;

/// Prints the options of a run and what it needs, and runs nothing.
pub(super) fn check(flags: &RunFlags, test_type: Option<TestType>) -> Result<(), Failure> {
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let (source, global) = (&flags.source, &flags.global);
    let overrides = overrides(&flags.overrides, source, global).map_err(config)?;
    let form = Some(LogFormat::default());
    let inspection = inspected(source, global, test_type, overrides, form)?;
    let text = format!("{:#}", requirements(inspection));
    terminal::print(&text).map_err(|error| other(Problem::new(error.to_string())))
}

/// The options with the scenarios that shortcuts stand for, and the virtual users and the time that they need at most.
pub(crate) fn requirements(inspection: InspectedScript) -> Value {
    let mut shown = inspection.derived;
    if let Some(shown) = shown.as_object_mut() {
        let duration = go_duration(inspection.plan.duration);
        shown.insert("totalDuration".to_owned(), json!(duration));
        shown.insert("maxVUs".to_owned(), json!(inspection.plan.most_vus));
    }
    shown
}

/// Runs the initialisation of a script.
///
/// - `overrides`: options of the command line.
/// - `form`: of lines of the log, as of [`log_of`].
pub(crate) fn inspected(
    source: &SourceFlags,
    global: &GlobalFlags,
    test_type: Option<TestType>,
    overrides: Overrides,
    form: Option<LogFormat>,
) -> Result<InspectedScript, Failure> {
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    refuse_unsupported_of_all(source, global).map_err(other)?;
    let log = log_of(global, SystemClock.now(), form).map_err(config)?;
    let loaded = load(source, global, test_type, false)?;
    let goes_on = || false;
    let invocation = Invocation {
        overrides,
        // A script that begins paused can be inspected.
        control: Some(RunControl::default()),
        servers: RunServers::Elsewhere,
        ..loaded.invocation(
            Arc::new(move |level, text, origin| log.write(level, text, origin)),
            &goes_on,
        )
    };
    plimsoll_k6::inspect(&invocation).map_err(|outcome| {
        let message = if outcome.message.is_empty() {
            format!("{} cannot be initialised", source.script)
        } else {
            outcome.message
        };
        (Problem::new(message), outcome.exit)
    })
}
