//! A runtime for one thread.

use std::future::Future;
use std::io;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

/// Runs a future on this thread, on a runtime of its own, until it completes. The future may spawn local tasks; those still running
/// are then dropped.
///
/// The future runs as a task. A tokio runtime of one thread queues a task that is woken; waking the future that the runtime blocks
/// on, or a task of a `LocalSet` within it, writes to an eventfd, and the next wait returns at once: two system calls for each
/// group of events.
///
/// Fails if the runtime cannot be created, for example without free descriptors. Panics if the future does.
pub fn block_on_local<F>(future: F) -> io::Result<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    match runtime.block_on(async { spawn_local(future).await }) {
        Ok(output) => Ok(output),
        // Nothing aborts the task, so it panicked.
        Err(error) => resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn local_tasks_run_beside_it_and_end_with_it() {
        let shared = Rc::new(7);
        let kept = Rc::clone(&shared);
        let sum = block_on_local(async move {
            let other = Rc::clone(&kept);
            let added = spawn_local(async move {
                tokio::task::yield_now().await;
                *other + 1
            });
            let forever = Rc::clone(&kept);
            spawn_local(async move {
                std::future::pending::<()>().await;
                drop(forever);
            });
            *kept + added.await.unwrap()
        });
        assert_eq!(sum.unwrap(), 15);
        assert_eq!(Rc::strong_count(&shared), 1);
    }

    #[test]
    #[should_panic(expected = "of its own")]
    fn a_panic_is_that_of_the_future() {
        block_on_local(async { panic!("of its own") }).unwrap();
    }
}
