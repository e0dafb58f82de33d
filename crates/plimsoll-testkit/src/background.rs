//! A thread with a runtime of its own, stopped and joined on drop.

use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

#[derive(Debug)]
pub(crate) struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `server` and what it spawns until the value is dropped.
    pub(crate) fn run(name: &str, server: impl Future<Output = ()> + Send + 'static) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be built");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = stopped => {}
                        () = server => {}
                    }
                });
                // Dropping the runtime drops every connection's task.
            })
            .expect("a thread can be spawned");
        Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            // A panic of the server is the test's failure, unless the test is failing already.
            if !std::thread::panicking() {
                joined.expect("the background server did not panic");
            }
        }
    }
}
