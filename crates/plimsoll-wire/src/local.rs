//! A runtime for one thread.

use std::future::Future;
use std::io;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

/// Runs a future on this thread with a runtime of its own, until it is done. It may spawn local tasks; those that are left then
/// end too.
///
/// The future becomes a task itself. In tokio's runtimes of one thread a task that is woken is put in a queue; to wake what the
/// runtime blocks on, or a task of a `LocalSet` in it, writes to an eventfd, which ends the next wait at once: two system calls for
/// each group of events.
///
/// Fails if the system has no descriptors for the runtime. Panics as the future does.
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
