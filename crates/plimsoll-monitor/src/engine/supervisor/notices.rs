//! Notices: what the effects of a detector mean for each channel.

use std::sync::Arc;
use std::time::Duration;

use crate::detect::{Notice, Resolution};
use crate::engine::memory::Silence;
use crate::engine::supervisor::Supervisor;
use crate::engine::supervisor::channels::Surroundings;
use crate::notify::{self, EscalationPlan, Facts, Message, NoticeKind, NotifyPlan, full_name};
use crate::store::{About, Change, MonitorId, NewNotice, Orphan, StoreError};
use crate::time::{Moment, Timestamp};

/// Notices of trouble wait so long for others, to be sent as one.
const GATHER: Duration = Duration::from_secs(1);

impl Supervisor {
    /// What is sent goes to the present channels.
    pub(super) fn start_deliveries(&mut self) {
        self.channels.start_deliveries(|| Surroundings {
            org: self.org,
            store: Arc::clone(&self.store),
            board: Arc::clone(&self.board),
            notice: Arc::clone(&self.notice),
        });
    }

    /// The notices for the outbox, written together with the change that they report.
    ///
    /// - `before`: when the incident opened that the step may have ended.
    pub(super) fn notices(
        &mut self,
        id: MonitorId,
        notice: Notice,
        before: Option<Timestamp>,
        now: Moment,
    ) -> Option<Change> {
        let live = self.live.get_mut(&id)?;
        let plan = Arc::clone(&live.plan);
        let (kind, ended) = match notice {
            Notice::Opened => (NoticeKind::Opened, None),
            Notice::Resolved(by) => (NoticeKind::Resolved, Some(by)),
            Notice::NoData => (NoticeKind::NoData, None),
            Notice::DataAgain(by) => (NoticeKind::DataAgain, Some(by)),
        };
        // Silence and its end are joined for receivers that open and close alerts, under one name and date.
        let silence = || Silence {
            key: format!("{}/silence", plan.key),
            since: now.wall,
            name: full_name(&plan.group, &plan.name),
        };
        let (incident, since, about) = match notice {
            Notice::Opened | Notice::Resolved(_) => {
                let opened = live.detector.incident().map(|(opened, _)| opened);
                let opened = opened.or(before).unwrap_or(now.wall);
                (String::new(), opened, About::OpenIncident)
            }
            Notice::NoData => {
                let silence = live.silence.insert(silence());
                (silence.key.clone(), silence.since, About::Other)
            }
            Notice::DataAgain(_) => {
                let silence = live.silence.take().unwrap_or_else(silence);
                (silence.key, silence.since, About::Other)
            }
        };
        let view = self.board.view(&plan.key);
        let reason = view.and_then(|view| view.last?.reason).unwrap_or_default();
        let pages = self.board.pages();
        let link = pages.iter().find_map(|page| page.url.clone());
        let facts = Facts {
            kind,
            ended,
            key: &plan.key,
            name: &plan.name,
            group: &plan.group,
            reason: &reason,
            incident: incident.clone(),
            at: now.wall,
            since,
            link,
        };
        let escalations = self.board.escalations();
        let escalation = escalations.iter().find(|it| it.covers(&plan.key));
        let escalation = escalation.map(|it| &**it);
        let wanted = self.channels.iter().filter_map(|channel| {
            let (escalation, key) = (escalation, plan.key.as_str());
            Some((channel, wait(channel, escalation, kind, key, now.wall)?))
        });
        let notices: Vec<_> = wanted
            .map(|(channel, wait)| {
                let mut message = channel.message(&facts);
                message.is_escalated = kind == NoticeKind::Opened && !wait.is_zero();
                NewNotice {
                    channel: channel.name.clone(),
                    about,
                    dedup: match about {
                        About::Other => dedup_of_silence(&incident, kind, since),
                        _ => kind.name().to_owned(),
                    },
                    message: message.to_json().to_string(),
                    due: now.wall.plus(wait.max(GATHER)),
                }
            })
            .collect();
        (!notices.is_empty()).then_some(Change::Notices {
            monitor: id,
            at: now.wall,
            notices,
        })
    }

    /// The notices that an incident ended since its monitor is gone.
    pub(super) fn notices_of_removed(&self, orphan: &Orphan, now: Timestamp) -> Vec<NewNotice> {
        let kind = NoticeKind::Resolved;
        let name = full_name(&orphan.group, &orphan.name);
        let message = Message {
            kind,
            title: notify::title(&name, kind, Some(Resolution::Removed)),
            text: String::new(),
            monitor: orphan.key.clone(),
            name: orphan.name.clone(),
            group: orphan.group.clone(),
            incident: String::new(),
            at: now,
            since: orphan.incident.opened,
            link: None,
            acknowledge: None,
            is_escalated: false,
        };
        let content = message.to_json().to_string();
        // No channel names it any more. Those that did not get the beginning will not get the end.
        let wanted = self.channels.iter();
        let wanted = wanted.filter(|channel| channel.kinds.contains(&kind));
        wanted
            .map(|channel| NewNotice {
                channel: channel.name.clone(),
                about: About::OpenIncident,
                dedup: kind.name().to_owned(),
                message: content.clone(),
                due: now.plus(GATHER),
            })
            .collect()
    }

    /// The notices that a silence ended since its monitor is gone: to the channels that announced it.
    pub(super) async fn notices_of_removed_silence(
        &self,
        monitor: &str,
        silence: &Silence,
        now: Timestamp,
    ) -> Result<Vec<NewNotice>, StoreError> {
        let kind = NoticeKind::DataAgain;
        let message = Message {
            kind,
            title: notify::title(&silence.name, kind, Some(Resolution::Removed)),
            text: String::new(),
            monitor: monitor.to_owned(),
            name: silence.name.clone(),
            group: String::new(),
            incident: silence.key.clone(),
            at: now,
            since: silence.since,
            link: None,
            acknowledge: None,
            is_escalated: false,
        };
        let content = message.to_json().to_string();
        let began = dedup_of_silence(&silence.key, NoticeKind::NoData, silence.since);
        let mut notices = Vec::new();
        for channel in self.channels.iter() {
            let announced = self.store.notice(self.org, &channel.name, &began).await?;
            if announced.is_some() && channel.kinds.contains(&kind) {
                notices.push(NewNotice {
                    channel: channel.name.clone(),
                    about: About::Other,
                    dedup: dedup_of_silence(&silence.key, kind, silence.since),
                    message: content.clone(),
                    due: now.plus(GATHER),
                });
            }
        }
        Ok(notices)
    }
}

/// How long a notice to a channel waits; nothing if it gets none.
///
/// - `escalation`: whose steps the opening takes, if any.
fn wait(
    channel: &NotifyPlan,
    escalation: Option<&EscalationPlan>,
    kind: NoticeKind,
    key: &str,
    now: Timestamp,
) -> Option<Duration> {
    match (kind, escalation) {
        (NoticeKind::Opened, Some(escalation)) => {
            let is_wanted = channel.kinds.contains(&kind);
            let after = escalation.notifies(&channel.name, now);
            after.filter(|_| is_wanted)
        }
        // The end goes to who got the beginning, which is known when it is sent.
        (NoticeKind::Resolved, Some(escalation))
            if channel.kinds.contains(&kind) && escalation.may_notify(&channel.name) =>
        {
            Some(Duration::ZERO)
        }
        (NoticeKind::Resolved, _) => channel.wants(kind, key).then_some(Duration::ZERO),
        _ if !channel.wants(kind, key) || !channel.is_on_call(now) => None,
        (NoticeKind::Opened, None) => Some(channel.after),
        _ => Some(Duration::ZERO),
    }
}

/// What makes a notice about a silence the same as another one.
fn dedup_of_silence(key: &str, kind: NoticeKind, since: Timestamp) -> String {
    format!("{key}/{}/{}", kind.name(), since.0)
}
