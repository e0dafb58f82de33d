//! The kind `script` of monitors: one iteration of a k6 script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{AddressFilter, ProxyRules};
use plimsoll_k6::{LoadError, Script, ScriptText, run_once};
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_monitor::Reading;
use plimsoll_monitor::probe::{
    Probe, ProbeContext, ProbeFileError, ProbeFuture, SuppliedKind, SuppliedKinds,
};
use tokio::sync::Semaphore;

/// Kinds of probes that this binary supplies.
pub(super) const SUPPLIED: SuppliedKinds = &[SuppliedKind {
    key: "script",
    compile,
}];

/// Scripts that run at a time, each on threads of its own; others wait within their timeout.
static RUNNING: Semaphore = Semaphore::const_new(4);

#[derive(Debug)]
struct ScriptProbe {
    file: PathBuf,
    timeout: Duration,
    filter: Option<AddressFilter>,
}

fn compile(
    file: &Path,
    timeout: Duration,
    filter: Option<AddressFilter>,
) -> Result<Arc<dyn Probe>, ProbeFileError> {
    // Errors of the script are those of the configuration; the file is read again for each check.
    load(file)?;
    Ok(Arc::new(ScriptProbe {
        file: file.to_owned(),
        timeout,
        filter,
    }))
}

fn load(file: &Path) -> Result<Script, LoadError> {
    Script::load(&ScriptText::File(file.to_owned()))
}

impl Probe for ScriptProbe {
    fn kind(&self) -> &'static str {
        "script"
    }

    fn target(&self) -> String {
        self.file.display().to_string()
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn check<'a>(&'a self, _: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(async move {
            let ours = |cause: String| {
                let failure = Failure::new(Phase::Blocked, FailureKind::ResourceLimit);
                Reading::failed(failure.on(Side::Ours).because(cause))
            };
            let permit = tokio::time::timeout(self.timeout, RUNNING.acquire()).await;
            let Ok(Ok(permit)) = permit else {
                return ours("too many scripts run".to_owned());
            };
            let (file, timeout) = (self.file.clone(), self.timeout);
            let reach = (ProxyRules::none(), self.filter.clone());
            let ran = tokio::task::spawn_blocking(move || {
                let script = load(&file)?;
                Ok(run_once(script, Vec::new(), reach, timeout))
            });
            let ran: Result<Result<_, LoadError>, _> = ran.await;
            drop(permit);
            let verdict = match ran {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(error)) => return ours(error.to_string()),
                Err(error) => return ours(error.to_string()),
            };
            let mut reading = Reading {
                connected: true,
                took: verdict.took,
                ..Reading::default()
            };
            reading.phases.set(Phase::Wait, verdict.took);
            reading.body = verdict.log.join("\n").into_bytes();
            reading.size = reading.body.len() as u64;
            reading.unmet = verdict.failures.into_iter().next();
            reading
        })
    }
}
