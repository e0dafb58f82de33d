//! One thread with a runtime for work that answers no request: lists fetched again, certificates ordered.
//!
//! Tasks must not block it for long; what waits for the kernel all the time (changes of files, writes to a log) has a thread of
//! its own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

/// Tasks that may wait for the thread to start them; it does so at once.
const MOST_WAITING: usize = 64;

/// Starts tasks on a thread that is there as long as one of them is kept.
#[derive(Debug, Default)]
pub struct Background {
    thread: Mutex<Weak<Thread>>,
}

/// A task of [`Background::spawn`], which ends when this is dropped.
#[derive(Debug)]
pub struct BackgroundTask {
    _thread: Arc<Thread>,
    _end: oneshot::Sender<()>,
}

/// Handle to spawn tasks on a thread, which ends when this is dropped.
#[derive(Debug)]
struct Thread {
    tasks: mpsc::Sender<MakeTask>,
}

type MakeTask = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

impl Background {
    /// Runs a task until it ends or the result is dropped.
    ///
    /// - `make`: makes the task on its thread, so the task itself need not be `Send`.
    ///
    /// Fails if there can be no thread or runtime, or if 64 tasks wait already.
    pub fn spawn<F>(&self, make: impl FnOnce() -> F + Send + 'static) -> io::Result<BackgroundTask>
    where
        F: Future<Output = ()> + 'static,
    {
        let thread = self.thread()?;
        let (end, ended) = oneshot::channel::<()>();
        let make: MakeTask = Box::new(move || {
            let task = make();
            Box::pin(async move {
                tokio::select! {
                    () = task => {}
                    _ = ended => {}
                }
            })
        });
        let handed = thread.tasks.try_send(make);
        handed.map_err(|_| io::Error::other("too many background tasks wait to start"))?;
        Ok(BackgroundTask {
            _thread: thread,
            _end: end,
        })
    }

    fn thread(&self) -> io::Result<Arc<Thread>> {
        let mut known = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = known.upgrade() {
            return Ok(thread);
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (tasks, handed) = mpsc::channel(MOST_WAITING);
        std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || run(&runtime, handed))?;
        let thread = Arc::new(Thread { tasks });
        *known = Arc::downgrade(&thread);
        Ok(thread)
    }
}

/// Runs what is handed over until all senders are gone; tasks that are left are dropped.
fn run(runtime: &Runtime, mut handed: mpsc::Receiver<MakeTask>) {
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        while let Some(make) = handed.recv().await {
            tokio::task::spawn_local(make());
        }
    });
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;

    fn thread_of_task(background: &Background) -> (BackgroundTask, ThreadId) {
        let (report, reported) = mpsc::channel();
        let task = background.spawn(move || {
            // Not `Send`, and held over an await.
            let id = Rc::new(std::thread::current().id());
            async move {
                tokio::task::yield_now().await;
                report.send(*id).unwrap();
                std::future::pending::<()>().await;
            }
        });
        (task.unwrap(), reported.recv().unwrap())
    }

    #[test]
    fn tasks_share_a_thread() {
        let background = Background::default();
        let (_one, first) = thread_of_task(&background);
        let (_other, second) = thread_of_task(&background);
        assert_eq!(first, second);
        assert_ne!(first, std::thread::current().id());
    }

    #[test]
    fn a_task_ends_when_it_is_dropped_and_the_thread_with_the_last() {
        let background = Background::default();
        let (kept, _) = thread_of_task(&background);
        let (dropped, wait) = mpsc::channel::<()>();
        let task = background.spawn(move || async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        });
        drop(task.unwrap());
        assert_eq!(wait.recv(), Err(mpsc::RecvError), "the task is dropped");
        let thread = background.thread.lock().unwrap().clone();
        assert!(thread.upgrade().is_some());
        drop(kept);
        assert!(thread.upgrade().is_none());
    }
}
