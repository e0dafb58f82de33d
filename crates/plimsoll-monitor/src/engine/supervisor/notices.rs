//! Notices: what the effects of a detector mean for each channel.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::detect::Notice;
use crate::detect::budget;
use crate::engine::supervisor::Supervisor;
use crate::notify::{self, Courier, Facts, NoticeKind, NotifyPlan};
use crate::page::subscribe;
use crate::store::timestamp::{Moment, Timestamp};
use crate::store::{Change, MonitorId, NewNotice};

/// Notices of trouble wait so long for others, to be sent as one.
const GATHER: Duration = Duration::from_secs(1);

impl Supervisor {
    /// The channels of a configuration take the place of those before, and deliver what waits for them.
    pub(super) fn set_channels(&mut self, channels: Vec<Arc<NotifyPlan>>) {
        self.couriers = JoinSet::new();
        for plan in &channels {
            let courier = Courier {
                org: self.org,
                store: Arc::clone(&self.store),
                board: Arc::clone(&self.board),
                report: Arc::clone(&self.notice),
            };
            self.couriers
                .spawn_local(notify::run(courier, Arc::clone(plan)));
        }
        let (store, board) = (&self.store, &self.board);
        let parts = || {
            (
                Arc::clone(store),
                Arc::clone(board),
                Arc::clone(&self.notice),
            )
        };
        let (store, board, report) = parts();
        let publishing = subscribe::publish(self.org, store, board, report);
        self.couriers.spawn_local(publishing);
        let (store, board, report) = parts();
        let delivering = subscribe::deliver(self.org, store, board, report);
        self.couriers.spawn_local(delivering);
        let (store, board, report) = parts();
        let watching = budget::run(self.org, store, board, report);
        self.couriers.spawn_local(watching);
        self.channels = channels;
    }

    /// The notices for the outbox, written together with the change that they report.
    ///
    /// - `before`: the incident before the step that led here, which may have ended it.
    pub(super) fn notices(
        &self,
        id: MonitorId,
        notice: Notice,
        before: Option<(Timestamp, bool)>,
        now: Moment,
    ) -> Option<Change> {
        let live = self.live.get(&id)?;
        let plan = &live.plan;
        let kind = match notice {
            Notice::Opened => NoticeKind::Opened,
            Notice::Resolved => NoticeKind::Resolved,
            Notice::NoData => NoticeKind::NoData,
            Notice::DataAgain => NoticeKind::DataAgain,
        };
        let opened = live.detector.incident().or(before);
        let (incident, since) = match (kind, opened) {
            (NoticeKind::Opened | NoticeKind::Resolved, Some((opened, _))) => {
                (format!("{}/{}", plan.key, opened.0), opened)
            }
            // Silence and its end are joined for receivers that open and close alerts.
            _ => (format!("{}/silence", plan.key), now.wall),
        };
        let is_silence = !matches!(kind, NoticeKind::Opened | NoticeKind::Resolved);
        let view = self.board.view(&plan.key);
        let reason = view.and_then(|view| view.last?.reason).unwrap_or_default();
        let pages = self.board.pages();
        let link = pages.iter().find_map(|page| page.url.clone());
        let facts = Facts {
            kind,
            plan,
            reason: &reason,
            incident: incident.clone(),
            at: now.wall,
            since,
            link,
        };
        let wanted = self.channels.iter();
        // The end goes to who got the beginning, which is known when it is sent.
        let wanted = wanted
            .filter(|channel| channel.wants(kind, &plan.key))
            .filter(|channel| kind == NoticeKind::Resolved || channel.is_on_call(now.wall));
        let notices: Vec<_> = wanted
            .map(|channel| {
                let wait = match kind {
                    NoticeKind::Opened => channel.after.max(GATHER),
                    _ => GATHER,
                };
                let dedup = notify::dedup(&incident, kind);
                NewNotice {
                    channel: channel.name.clone(),
                    dedup: if is_silence {
                        format!("{dedup}/{}", now.wall.0)
                    } else {
                        dedup
                    },
                    message: channel.message(&facts).to_json().to_string(),
                    due: now.wall.plus(wait),
                }
            })
            .collect();
        (!notices.is_empty()).then_some(Change::Notices {
            monitor: id,
            at: now.wall,
            notices,
        })
    }
}
