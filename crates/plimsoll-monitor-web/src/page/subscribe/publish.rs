//! Writes updates of incidents to the outbox, once for each subscriber.
//!
//! The outbox itself has the updates that were written, so a process that is killed at any moment sends each update after its
//! restart, and writes none twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_monitor::engine::{Board, Parts};
use plimsoll_monitor::store::{
    About, DefinitionChanges, DefinitionKind, NewNotice, OrgId, Store, StoreError,
};
use plimsoll_monitor::time::Timestamp;
use plimsoll_wire::SystemClock;
use serde_json::json;

use crate::page::subscribe::CHANNEL;
use crate::page::subscribe::record::Subscriber;
use crate::page::subscribe::sign_up::CONFIRM_WITHIN;
use crate::page::{PagePlan, PublicIncident, Rows, incidents_of};

/// Changes wait so long for others.
const GATHER: Duration = Duration::from_secs(1);

/// Looks without a change.
const LOOK: Duration = Duration::from_secs(30);

/// Updates that are older are not sent any more, such as after a long pause of the program.
const FRESH: Duration = Duration::from_hours(1);

/// Incidents that are looked at.
const MOST_INCIDENTS: usize = 500;

/// Updates that are known to be in the outbox; then all are tried again there.
const MOST_KNOWN: usize = 200_000;

/// Publishes until it should end.
pub(crate) async fn run(parts: Parts) {
    let Parts {
        mut stop,
        org,
        store,
        board,
        report,
    } = parts;
    let mut publisher = Publisher {
        org,
        store,
        board,
        written: HashSet::new(),
    };
    let mut changes = publisher.board.subscribe();
    loop {
        if let Err(error) = publisher.publish().await {
            report(&format!("cannot write messages to subscribers: {error}"));
            if stop.comes_within(LOOK).await {
                return;
            }
        }
        if stop.comes_before_a_change(&mut changes, LOOK).await || stop.comes_within(GATHER).await {
            return;
        }
    }
}

struct Publisher {
    org: OrgId,
    store: Arc<dyn Store>,
    board: Arc<Board>,
    written: HashSet<String>,
}

impl Publisher {
    async fn publish(&mut self) -> Result<(), StoreError> {
        if self.board.subscriptions().is_none() {
            return Ok(());
        }
        let stored = Subscriber::all(&*self.store, self.org).await?;
        if stored.is_empty() {
            return Ok(());
        }
        let now = Timestamp::from_system(SystemClock.wall());
        let mut subscribers = Vec::with_capacity(stored.len());
        let mut gone = Vec::new();
        for (definition, subscriber) in stored {
            let asked = Timestamp(subscriber.asked);
            if subscriber.confirmed.is_none() && now.since(asked) >= CONFIRM_WITHIN * 2 {
                gone.push((definition.key, Some(definition.version)));
            } else if subscriber.confirmed.is_some() {
                subscribers.push((definition.key, subscriber));
            }
        }
        self.forget(gone, now).await?;
        if subscribers.is_empty() {
            return Ok(());
        }
        let since = now.minus(FRESH);
        let (store, org) = (&self.store, self.org);
        let rows = Rows {
            incidents: store.timelines(org, since, MOST_INCIDENTS).await?.into(),
            declared: store.declared(org, since, None, MOST_INCIDENTS).await?,
            ..Rows::default()
        };
        if self.written.len() > MOST_KNOWN {
            self.written.clear();
        }
        let mut notices = Vec::new();
        for page in &*self.board.pages() {
            let incidents = incidents_of(page, &self.board.views_of(page), &rows, now);
            let of_page = subscribers.iter().filter(|(_, it)| it.page == page.slug);
            for (id, subscriber) in of_page {
                let of_interest = incidents
                    .iter()
                    .filter(|incident| subscriber.is_about(&incident.components));
                for incident in of_interest {
                    self.collect(page, id, subscriber, incident, now, &mut notices);
                }
            }
        }
        if notices.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = notices.iter().map(|notice| notice.dedup.clone()).collect();
        self.store
            .settle_notices(self.org, Vec::new(), notices, now)
            .await?;
        self.written.extend(keys);
        Ok(())
    }

    /// The updates of an incident that a subscriber has not received.
    fn collect(
        &self,
        page: &PagePlan,
        id: &str,
        subscriber: &Subscriber,
        incident: &PublicIncident,
        now: Timestamp,
        notices: &mut Vec<NewNotice>,
    ) {
        let since = now.minus(FRESH);
        // The oldest first.
        for update in incident.updates.iter().rev() {
            let is_due = update.at >= since && subscriber.receives(update.at);
            let phase = update.phase.name();
            let dedup = format!("{id}/{}/{}/{phase}", incident.id, update.at.0);
            if !is_due || self.written.contains(&dedup) {
                continue;
            }
            notices.push(NewNotice {
                channel: CHANNEL.to_owned(),
                about: About::Other,
                dedup,
                message: json!({
                    "kind": "update",
                    "subscriber": id,
                    "page": page.slug,
                    "incident": incident.id,
                    "at": update.at.0,
                    "phase": phase,
                })
                .to_string(),
                due: now,
            });
        }
    }

    /// Removes those who never followed their link.
    async fn forget(
        &self,
        gone: Vec<(String, Option<i64>)>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if gone.is_empty() {
            return Ok(());
        }
        let changes = DefinitionChanges {
            removals: gone,
            ..DefinitionChanges::default()
        };
        let kind = DefinitionKind::Subscriber;
        let outcome = self
            .store
            .change_definitions(self.org, kind, changes, now)
            .await;
        match outcome {
            // One of them has just changed: the next time.
            Ok(_) | Err(StoreError::Conflict | StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
