//! What a server waits for while its workers serve: signals, processes that take over, changes that clients want, and the time.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use plimsoll_server::{ChangeRequest, ChangeRequests, Drained};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

use super::takeover::Successors;

/// How often certificates are checked for changes: a reload a second after renewal is soon enough, and a check is one
/// stat(2) per file.
const LOOK: Duration = Duration::from_secs(1);

/// Far enough to never come.
const FAR: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Reload,
    /// Whether certificates have changed, or the file.
    Look,
    /// Whether it still does.
    IsAlive,
    /// A process takes over.
    Successor,
    /// A client of the admin port wants a change.
    Change,
    End,
}

/// The signals that a server handles.
pub(super) struct Signals {
    runtime: Runtime,
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
    alive: Option<Interval>,
    /// Where processes connect that take over.
    successors: Option<UnixListener>,
    /// The one that has connected.
    pub(super) successor: Option<UnixStream>,
    pub(super) changes: ChangeRequests,
    /// The change that is wanted.
    pub(super) request: Option<ChangeRequest>,
}

impl Signals {
    /// Waits for processes that take over, too.
    pub(super) fn wait_at(&mut self, successors: &Successors) -> std::io::Result<()> {
        let _guard = self.runtime.enter();
        let listener = successors.listener()?;
        self.successors = Some(UnixListener::from_std(listener)?);
        Ok(())
    }

    /// From now on they do not end the program by themselves.
    pub(super) fn watch(changes: ChangeRequests) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (hang_up, terminate, interrupt) = {
            let _guard = runtime.enter();
            (
                signal(SignalKind::hangup())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        Ok(Self {
            runtime,
            hang_up,
            terminate,
            interrupt,
            alive: None,
            successors: None,
            successor: None,
            changes,
            request: None,
        })
    }

    /// - `alive_every`: how often the service manager wants a sign of life.
    pub(super) fn next(&mut self, alive_every: Option<Duration>) -> Event {
        let alive = self.alive.get_or_insert_with(|| {
            let _guard = self.runtime.enter();
            let every = alive_every.unwrap_or(Duration::MAX);
            let mut alive = tokio::time::interval(every.min(FAR));
            alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
            alive
        });
        let successors = &self.successors;
        let connected = async {
            match successors {
                None => std::future::pending().await,
                Some(successors) => successors.accept().await?.0.into_std(),
            }
        };
        let successor = &mut self.successor;
        let (changes, request) = (&mut self.changes, &mut self.request);
        self.runtime.block_on(async {
            tokio::select! {
                connected = connected => {
                    *successor = connected.ok();
                    Event::Successor
                }
                Some(wanted) = changes.next() => {
                    *request = Some(wanted);
                    Event::Change
                }
                _ = alive.tick(), if alive_every.is_some() => Event::IsAlive,
                () = tokio::time::sleep(LOOK) => Event::Look,
                _ = self.hang_up.recv() => Event::Reload,
                _ = self.terminate.recv() => Event::End,
                _ = self.interrupt.recv() => Event::End,
            }
        })
    }

    /// The server to wait for; absent if the user does not want to wait.
    pub(super) fn unless_signalled_again(
        &mut self,
        drained: oneshot::Receiver<Drained>,
    ) -> Option<Drained> {
        self.runtime.block_on(async {
            tokio::select! {
                drained = drained => drained.ok(),
                _ = self.terminate.recv() => None,
                _ = self.interrupt.recv() => None,
            }
        })
    }
}
