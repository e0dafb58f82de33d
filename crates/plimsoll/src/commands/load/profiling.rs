//! `load --profile`: where the target's processor time goes while it is measured.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_lab::profile::{ProfileError, ProfileKind, ProfilePlan, flame, pprof, take_profile};
use plimsoll_load::{Interrupt, RunPlan};
use plimsoll_model::Clock as _;
use plimsoll_observe::Target;
use plimsoll_report::files::{NamedFile, PROFILE_FOLDED, PROFILE_PPROF, PROFILE_SVG};
use plimsoll_wire::SystemClock;

use crate::problem::Problem;

/// Samples per second of CPU time and thread: near 1,000, but prime, so that it does not beat with timers.
const FREQUENCY: u64 = 997;

/// How long a run bounded by its number of requests is profiled at most.
const LONGEST: Duration = Duration::from_hours(24);

/// A profile that begins with the measured window and ends with the run.
pub(super) struct Profiling {
    /// Gone once the run is over.
    warm_up: SyncSender<()>,
    over: Arc<Interrupt>,
    thread: JoinHandle<Result<Vec<NamedFile>, Failure>>,
}

enum Failure {
    Profile(ProfileError),
    Encode(std::io::Error),
}

impl Profiling {
    /// To be called just before the run begins.
    pub(super) fn start(target: &dyn Target, plan: &RunPlan) -> Self {
        let (warm_up, began) = sync_channel(0);
        let over = Arc::<Interrupt>::default();
        let profile = ProfilePlan {
            pids: target.pid().into_iter().collect(),
            duration: plan.stop.duration.unwrap_or(LONGEST),
            frequency: FREQUENCY,
            call_graph: None,
            kind: ProfileKind::Cpu,
        };
        let name = target.name().to_owned();
        let (length, ended) = (plan.warm_up, Arc::clone(&over));
        let thread = thread::spawn(move || match began.recv_timeout(length) {
            Err(RecvTimeoutError::Timeout) => files(&profile, &name, &ended),
            // The run did not outlast its warm-up.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
        });
        Self {
            warm_up,
            over,
            thread,
        }
    }

    /// The files of the profile; none if nothing was seen.
    pub(super) fn finish(self) -> Result<Vec<NamedFile>, Problem> {
        drop(self.warm_up);
        self.over.ask();
        let Ok(taken) = self.thread.join() else {
            let message = "the profile was not finished";
            return Err(Problem::with("--profile", message));
        };
        taken.map_err(|failure| {
            let problem = match failure {
                Failure::Profile(error) => Problem::caused_by(&error),
                Failure::Encode(error) => Problem::caused_by(&error),
            };
            problem.about("--profile")
        })
    }
}

fn files(plan: &ProfilePlan, name: &str, over: &Interrupt) -> Result<Vec<NamedFile>, Failure> {
    let begun = SystemClock.wall();
    let profile = take_profile(plan, over).map_err(Failure::Profile)?;
    let folded = profile.folded();
    // Nothing cannot be drawn.
    if folded.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![
        (
            PROFILE_SVG,
            flame::svg(&profile, name).map_err(Failure::Encode)?,
        ),
        (PROFILE_FOLDED, folded.into_bytes()),
        (
            PROFILE_PPROF,
            pprof::encode(&profile, begun).map_err(Failure::Encode)?,
        ),
    ])
}
