//! Ctrl-C, SIGTERM and a terminal that goes away: the first asks a run to end, the second does not wait.

use std::sync::Arc;
use std::thread;

use plimsoll_load::Interrupt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for signals from now on, on a thread of its own.
pub(crate) fn watch() -> std::io::Result<Arc<Interrupt>> {
    let interrupt = Arc::new(Interrupt::default());
    let signalled = Arc::clone(&interrupt);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut interrupted, mut terminated, mut hung_up) = {
        let _guard = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupted.recv() => {}
                        _ = terminated.recv() => {}
                        _ = hung_up.recv() => {}
                    }
                    signalled.ask();
                }
            });
        })?;
    Ok(interrupt)
}

/// Ctrl-C and SIGTERM, within a runtime.
pub(crate) struct Ends {
    interrupted: Signal,
    terminated: Signal,
}

impl Ends {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
