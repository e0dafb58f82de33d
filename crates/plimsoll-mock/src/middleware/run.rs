//! What belongs to one call of a script, on the thread that runs it: its time limit, and where it prints.
//!
//! An engine serves many threads at once and has no place for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::SystemClock;

use crate::script::notice_limiter::NoticeLimiter;

thread_local! {
    static CURRENT: RefCell<Option<Run>> = const { RefCell::new(None) };
}

struct Run {
    deadline: Instant,
    shown: String,
    notices: Arc<NoticeLimiter>,
}

/// Runs a script on this thread.
///
/// - `time`: that it may take.
/// - `shown`: the name of the script in the log.
pub(super) fn within_limits<T>(
    time: Duration,
    shown: &str,
    notices: &Arc<NoticeLimiter>,
    run: impl FnOnce() -> T,
) -> T {
    let _ending = Ending;
    CURRENT.set(Some(Run {
        deadline: SystemClock.now() + time,
        shown: shown.to_owned(),
        notices: Arc::clone(notices),
    }));
    run()
}

/// Ends a run, also when the script panics.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Time that is left for the script that runs; nothing where none does.
pub(super) fn time_left() -> Duration {
    CURRENT.with_borrow(|run| {
        run.as_ref().map_or(Duration::ZERO, |run| {
            run.deadline.saturating_duration_since(SystemClock.now())
        })
    })
}

/// Reports a text that the script prints.
pub(super) fn print(text: &str) {
    CURRENT.with_borrow(|run| {
        if let Some(run) = run {
            let notice = Notice::new(Severity::Note, text).about(run.shown.as_str());
            run.notices.report(&notice);
        }
    });
}
