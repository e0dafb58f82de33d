//! A check as Healthchecks has it: a monitor with a heartbeat.

use axum::response::Response;
use http::StatusCode;
use plimsoll_model::Clock as _;
use plimsoll_monitor::config::{ApiToken, EveryOrCron, HeartbeatPlan, What};
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::engine::View;
use plimsoll_monitor::notify::NotifyPlan;
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use super::{Refusal, UNIQUE_KEY};
use crate::answer::json_of;
use crate::api::ping::{is_same, slug_of};
use crate::state::Api;

/// A monitor with its heartbeat.
pub(super) struct Check {
    pub(super) view: View,
    pub(super) plan: HeartbeatPlan,
}

impl Check {
    fn from_view(view: &View) -> Option<Self> {
        match &view.plan.what {
            What::Heartbeat(plan) => Some(Self {
                view: view.clone(),
                plan: plan.clone(),
            }),
            _ => None,
        }
    }

    /// All checks by key.
    pub(super) fn all(api: &Api) -> Vec<Self> {
        let views = api.handle.board.with_views(|views| {
            let checks = views.filter(|view| matches!(view.plan.what, What::Heartbeat(_)));
            checks.cloned().collect::<Vec<_>>()
        });
        views.iter().filter_map(Self::from_view).collect()
    }

    /// The check of a UUID or a unique key.
    pub(super) fn find(api: &Api, id: &str) -> Result<Self, Refusal> {
        let all = Self::all(api).into_iter();
        let found = all.filter(|check| is_same(check.uuid(), id) || is_same(&check.unique(), id));
        // Each is compared, so that the time says nothing about the one before.
        found.last().ok_or_else(Refusal::missing)
    }

    /// The check of a monitor, once it is in force.
    pub(super) fn of_key(api: &Api, key: &str) -> Result<Self, Refusal> {
        let view = api.handle.board.view(key);
        let check = view.as_ref().and_then(Self::from_view);
        check.ok_or_else(Refusal::missing)
    }

    pub(super) fn uuid(&self) -> &str {
        self.plan.token.expose()
    }

    /// Identifies the check for clients that may not ping it.
    pub(super) fn unique(&self) -> String {
        let hash = ApiToken::written(&ApiToken::hash_of(self.uuid()));
        hash.chars().take(UNIQUE_KEY).collect()
    }

    pub(super) fn slug(&self) -> String {
        let own = self.plan.slug.clone();
        own.unwrap_or_else(|| slug_of(&self.view.plan.name))
    }

    pub(super) fn key(&self) -> &str {
        &self.view.plan.key
    }

    /// When the next ping is due.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let last = self.view.beat?.last?;
        Some(last.plus(self.plan.period_after(last)))
    }

    pub(super) fn status(&self, now: Timestamp) -> &'static str {
        if self.view.is_paused {
            return "paused";
        }
        if self.view.health == Health::Down {
            return "down";
        }
        match self.due() {
            None => "new",
            Some(due) if due <= now => "grace",
            Some(_) => "up",
        }
    }

    /// As Healthchecks shows it.
    ///
    /// - `origin`: scheme and host of this server.
    /// - `writes`: whether the client may know the address of pings.
    pub(super) fn shown(&self, api: &Api, origin: &str, writes: bool) -> Value {
        let now = Timestamp::from_system(api.clock.wall());
        let status = self.status(now);
        let beat = self.view.beat.unwrap_or_default();
        let due = self.due().filter(|_| matches!(status, "up" | "grace"));
        let mut shown = json!({
            "name": self.view.plan.name,
            "slug": self.slug(),
            "tags": self.view.plan.tags.join(" "),
            "desc": self.plan.about.as_deref().unwrap_or_default(),
            "grace": self.plan.grace.as_secs(),
            "n_pings": beat.count,
            "status": status,
            "started": beat.started.is_some(),
            "last_ping": beat.last.map(seconds),
            "next_ping": due.map(seconds),
            "manual_resume": !self.plan.resumes,
            "methods": "",
            "subject": "",
            "subject_fail": "",
            "start_kw": "",
            "success_kw": "",
            "failure_kw": "",
            "filter_subject": false,
            "filter_body": false,
        });
        match &self.plan.due {
            EveryOrCron::Every(period) => shown["timeout"] = period.as_secs().into(),
            EveryOrCron::Cron(cron, zone) => {
                shown["schedule"] = cron.text().into();
                shown["tz"] = zone.iana_name().unwrap_or("UTC").into();
            }
        }
        if !writes {
            shown["unique_key"] = self.unique().into();
            return shown;
        }
        let uuid = self.uuid();
        let update = format!("{origin}/api/v3/checks/{uuid}");
        let channels = channels_of(api, self.key());
        let channels: Vec<_> = channels.iter().map(|one| id_of(&one.name)).collect();
        shown["uuid"] = uuid.into();
        shown["ping_url"] = format!("{origin}/ping/{uuid}").into();
        shown["pause_url"] = format!("{update}/pause").into();
        shown["resume_url"] = format!("{update}/resume").into();
        shown["update_url"] = update.into();
        shown["channels"] = channels.join(",").into();
        shown
    }

    pub(super) fn answer(&self, api: &Api, origin: &str, status: StatusCode) -> Response {
        let mut response = json_of(&self.shown(api, origin, true));
        *response.status_mut() = status;
        response
    }
}

/// `2020-03-24T14:02:03+00:00`.
pub(super) fn seconds(at: Timestamp) -> String {
    format!("{}+00:00", at.to_jiff().strftime("%Y-%m-%dT%H:%M:%S"))
}

/// The same with microseconds.
pub(super) fn micros(at: Timestamp) -> String {
    let date = at.to_jiff().strftime("%Y-%m-%dT%H:%M:%S");
    format!("{date}.{:03}000+00:00", at.0.rem_euclid(1000))
}

/// The channels that report on a monitor.
pub(super) fn channels_of(api: &Api, key: &str) -> Vec<std::sync::Arc<NotifyPlan>> {
    let all = api.handle.board.channels();
    let all = all.iter().filter(|channel| {
        let monitors = channel.monitors.as_ref();
        monitors.is_none_or(|monitors| monitors.contains(key))
    });
    all.cloned().collect()
}

/// Sixteen bytes as a UUID of that version (RFC 9562).
pub(super) fn uuid_of(bits: &[u8; 32], version: u8) -> String {
    let mut bytes = *bits;
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = ApiToken::written(&bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}

/// The id of a channel, which has a name alone: made of that, so that it stays.
pub(super) fn id_of(name: &str) -> String {
    uuid_of(&ApiToken::hash_of(name), 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_version_and_stay() {
        let id = id_of("ops");
        assert_eq!(id, id_of("ops"));
        assert_ne!(id, id_of("ops 2"));
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(
            &uuid_of(&[0xff; 32], 4),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
    }

    #[test]
    fn dates_are_those_of_healthchecks() {
        let at = Timestamp::parse("2020-03-24T14:02:03.004Z").unwrap();
        assert_eq!(seconds(at), "2020-03-24T14:02:03+00:00");
        assert_eq!(micros(at), "2020-03-24T14:02:03.004000+00:00");
    }
}
