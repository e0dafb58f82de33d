//! The channels of notices, and the tasks beside the checks that send to them.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::deliveries::Deliveries;
use crate::engine::{Beside, Board, Parts, budget};
use crate::notify::{self, Delivery, NotifyPlan};
use crate::store::{OrgId, Store};

/// What the tasks work with.
pub(super) struct Surroundings {
    pub(super) org: OrgId,
    pub(super) store: Arc<dyn Store>,
    pub(super) board: Arc<Board>,
    pub(super) notice: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A channel of the store with its definition.
type Stored = (String, Arc<NotifyPlan>);

/// The present channels.
pub(super) struct Channels {
    all: Vec<Arc<NotifyPlan>>,
    of_file: Vec<Arc<NotifyPlan>>,
    /// Those of the store, with their definitions.
    of_store: Vec<Stored>,
    /// Whether those of the file have been replaced.
    file_is_new: bool,
    /// Whether deliveries are for other channels than these.
    deliveries_are_old: bool,
    /// They send what waits, one for each channel.
    deliveries: Deliveries,
    /// What upper parts have run beside the checks.
    beside: &'static [Beside],
}

impl Default for Channels {
    /// None, before the first configuration.
    fn default() -> Self {
        Self {
            all: Vec::new(),
            of_file: Vec::new(),
            of_store: Vec::new(),
            file_is_new: true,
            deliveries_are_old: true,
            deliveries: Deliveries::default(),
            beside: &[],
        }
    }
}

impl Channels {
    /// What upper parts have run beside the checks, from the next start of deliveries on.
    pub(super) fn run_beside(&mut self, beside: &'static [Beside]) {
        self.beside = beside;
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<NotifyPlan>> {
        self.all.iter()
    }

    /// Notes that the file was loaded: each channel may have changed.
    pub(super) fn expect_change(&mut self) {
        self.of_store.clear();
        self.file_is_new = true;
    }

    /// The channels of the file and of the store take the place of those before; all of them if they are others. Channels
    /// that stay as they are go on with what they send.
    pub(super) fn replace(
        &mut self,
        of_file: Vec<Arc<NotifyPlan>>,
        of_store: Vec<Stored>,
    ) -> Option<&[Arc<NotifyPlan>]> {
        let is_same = |(known, other): (&Stored, &Stored)| {
            known.0 == other.0
                && known.1.monitors == other.1.monitors
                && known.1.rotations == other.1.rotations
        };
        let are_same = self.of_store.len() == of_store.len()
            && self.of_store.iter().zip(&of_store).all(is_same)
            && self.of_file.len() == of_file.len()
            && self
                .of_file
                .iter()
                .zip(&of_file)
                .all(|(known, other)| known.rotations == other.rotations);
        if are_same && !std::mem::take(&mut self.file_is_new) {
            return None;
        }
        let plans = of_store.iter().map(|(_, plan)| plan);
        self.all = of_file.iter().chain(plans).cloned().collect();
        self.of_store = of_store;
        self.of_file = of_file;
        self.deliveries_are_old = true;
        Some(&self.all)
    }

    /// What is sent goes to the present channels.
    pub(super) fn start_deliveries(&mut self, surroundings: impl FnOnce() -> Surroundings) {
        if !std::mem::take(&mut self.deliveries_are_old) {
            return;
        }
        let Surroundings {
            org,
            store,
            board,
            notice,
        } = surroundings();
        self.deliveries.renew();
        for plan in &self.all {
            let delivery = Delivery {
                org,
                store: Arc::clone(&store),
                changes: board.subscribe(),
                links: board.acknowledge(),
                report: Arc::clone(&notice),
            };
            let plan = Arc::clone(plan);
            let name = format!("channel {}", plan.name);
            self.deliveries
                .start(&name, move |stop| notify::run(delivery, plan, stop));
        }
        let budgets: Beside = |parts| Box::pin(budget::run(parts));
        let tasks = self.beside.iter().copied().chain([budgets]).enumerate();
        for (number, task) in tasks {
            let (store, board) = (Arc::clone(&store), Arc::clone(&board));
            let report = Arc::clone(&notice);
            self.deliveries
                .start(&format!("task {number}"), move |stop| {
                    task(Parts {
                        stop,
                        org,
                        store,
                        board,
                        report,
                    })
                });
        }
    }

    /// Ends what sends; slower tasks are abandoned.
    pub(super) async fn end_deliveries(&mut self, within: Duration) {
        std::mem::take(&mut self.deliveries).end(within).await;
    }
}
