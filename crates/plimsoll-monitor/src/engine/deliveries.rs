//! Tasks beside the checks that send and write: each is ended between two pieces of its work, never within one,
//! so that what a receiver has got is noted, and is not sent again by the process or the configuration that follows.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::stop::Stop;

/// The tasks of one monitor.
#[derive(Default)]
pub(crate) struct Deliveries {
    tasks: JoinSet<()>,
    /// For the tasks of the present configuration; they end when it is dropped.
    stop: Option<watch::Sender<()>>,
    /// By name: a task begins once its predecessor has ended, which keeps what both do from being done twice.
    turns: HashMap<String, Rc<Mutex<()>>>,
}

impl Deliveries {
    /// Lets the tasks end that run, each at the end of its work; tasks that are started from here on replace them.
    pub(crate) fn renew(&mut self) {
        let (stop, _) = watch::channel(());
        self.stop = Some(stop);
        while self.tasks.try_join_next().is_some() {}
        // One that a task has, or waits for, is known to that task too.
        self.turns.retain(|_, turn| Rc::strong_count(turn) > 1);
    }

    /// Starts a task once the one of the same name has ended.
    pub(crate) fn start<F>(&mut self, name: &str, task: impl FnOnce(Stop) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let stop = self.stop.get_or_insert_with(|| watch::channel(()).0);
        let stop = Stop::new(stop.subscribe());
        let turn = Rc::clone(self.turns.entry(name.to_owned()).or_default());
        self.tasks.spawn_local(async move {
            let _turn = turn.lock().await;
            if !stop.is_set() {
                task(stop).await;
            }
        });
    }

    /// Ends all tasks; slower ones are abandoned.
    pub(crate) async fn end(mut self, within: Duration) {
        self.stop = None;
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        tokio::time::timeout(within, ended).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::task::LocalSet;

    use super::*;

    /// A task that notes when it begins and ends a piece of work of one second.
    async fn work(mut stop: Stop, name: &'static str, log: Rc<RefCell<Vec<String>>>) {
        loop {
            log.borrow_mut().push(format!("{name} begins"));
            tokio::time::sleep(Duration::from_secs(1)).await;
            log.borrow_mut().push(format!("{name} ends"));
            if stop.comes_within(Duration::from_mins(1)).await {
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_ends_what_it_has_begun_and_its_successor_waits_for_it() {
        let log = Rc::<RefCell<Vec<String>>>::default();
        LocalSet::new()
            .run_until(async {
                let mut deliveries = Deliveries::default();
                let (first, second) = (Rc::clone(&log), Rc::clone(&log));
                deliveries.start("hook", move |stop| work(stop, "old", first));
                tokio::time::sleep(Duration::from_millis(500)).await;
                deliveries.renew();
                deliveries.start("hook", move |stop| work(stop, "new", second));
                tokio::time::sleep(Duration::from_secs(1)).await;
                deliveries.end(Duration::from_secs(5)).await;
            })
            .await;
        assert_eq!(
            log.take(),
            ["old begins", "old ends", "new begins", "new ends"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_task_holds_up_neither_others_nor_the_end() {
        let log = Rc::<RefCell<Vec<String>>>::default();
        LocalSet::new()
            .run_until(async {
                let mut deliveries = Deliveries::default();
                let (first, second) = (Rc::clone(&log), Rc::clone(&log));
                deliveries.start("slow", |_| std::future::pending());
                deliveries.start("hook", move |stop| work(stop, "old", first));
                tokio::time::sleep(Duration::from_secs(2)).await;
                deliveries.renew();
                deliveries.start("slow", |_| std::future::pending());
                deliveries.start("hook", move |stop| work(stop, "new", second));
                tokio::time::sleep(Duration::from_secs(2)).await;
                let end = deliveries.end(Duration::from_secs(5));
                let slow = tokio::time::timeout(Duration::from_secs(6), end).await;
                assert!(slow.is_ok());
            })
            .await;
        assert_eq!(
            log.take(),
            ["old begins", "old ends", "new begins", "new ends"]
        );
    }
}
