//! Incidents of a page as text and JSON, for messages.

use plimsoll_monitor::config::Language;
use plimsoll_monitor::store::PublicPhase;
use plimsoll_monitor::time::Timestamp;
use serde_json::Value;

use crate::language::Texts as _;
use crate::page::html::{Frame, phase_text};
use crate::page::snapshot::{PublicIncident, Snapshot, State, Update};
use crate::page::{PagePlan, statuspage};

/// The words of a page in one language.
pub(crate) struct Words<'a> {
    frame: Frame<'a>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(plan: &'a PagePlan, language: Language) -> Self {
        Self {
            frame: Frame::new(plan, language, "", "", State::Unknown),
        }
    }

    pub(crate) fn title(&self, incident: &PublicIncident) -> String {
        self.frame.title(incident)
    }

    pub(crate) fn phase(&self, phase: PublicPhase) -> &'static str {
        phase_text(self.frame.t, phase)
    }

    pub(crate) fn body(&self, incident: &PublicIncident, update: &Update) -> String {
        self.frame.body(incident, update.phase, &update.body)
    }

    /// A date in the zone of the page.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        let zoned = at.to_jiff().to_zoned(self.frame.plan.zone.clone());
        format!(
            "{}, {}",
            self.frame.t.date(zoned.date()),
            zoned.strftime("%H:%M %Z")
        )
    }

    /// The incident as Statuspage writes it.
    pub(crate) fn json(&self, incident: &PublicIncident, url: &str) -> Value {
        let snapshot = Snapshot::without_rows(incident.changed);
        statuspage::incident(self.frame, &snapshot, url, incident)
    }

    /// The page as Statuspage writes it to webhooks.
    pub(crate) fn page(&self, url: &str) -> Value {
        statuspage::page_of(self.frame, url)
    }
}
