//! Incidents and occurrences of maintenance as cards, and the pages of one of them.

use std::collections::HashSet;

use askama::Template;
use plimsoll_monitor::config::Language;
use plimsoll_monitor::store::PublicPhase;

use crate::language::Texts as _;
use crate::page::html::{Frame, rendered, segment};
use crate::page::snapshot::{Body, MaintenancePhase, PublicIncident, PublicMaintenance, Title};

/// An incident with its updates, or an occurrence of maintenance.
pub(super) struct Card {
    /// Of its own page, below that of the status page.
    pub(super) path: String,
    /// Its anchor.
    pub(super) id: Option<String>,
    pub(super) class: &'static str,
    pub(super) title: String,
    pub(super) phase: &'static str,
    pub(super) when: String,
    pub(super) lasted: Option<String>,
    /// What is done.
    pub(super) about: Option<String>,
    pub(super) affects: Option<String>,
    pub(super) updates: Vec<CardUpdate>,
}

pub(super) struct CardUpdate {
    pub(super) phase: &'static str,
    pub(super) at: String,
    pub(super) body: String,
}

impl Frame<'_> {
    pub(crate) fn title(&self, incident: &PublicIncident) -> String {
        match &incident.title {
            Title::MonitorDown(name) => self.t.with("monitor_down", "name", name),
            Title::Text(text) => text.clone(),
        }
    }

    /// The title for readers: of an outage that is over, that it was one. Feeds and JSON keep the title.
    pub(super) fn heading(&self, incident: &PublicIncident) -> String {
        match &incident.title {
            Title::MonitorDown(name) if incident.is_over() => {
                self.t.with("monitor_was_down", "name", name)
            }
            _ => self.title(incident),
        }
    }

    pub(crate) fn body(
        &self,
        incident: &PublicIncident,
        phase: PublicPhase,
        body: &Body,
    ) -> String {
        let key = match (body, phase) {
            (Body::Text(text), _) => return text.clone(),
            (_, PublicPhase::Investigating) => "auto_investigating",
            (_, PublicPhase::Identified) => "auto_identified",
            (_, PublicPhase::Monitoring) => "auto_monitoring",
            (_, PublicPhase::Resolved | PublicPhase::Postmortem) => "auto_resolved",
        };
        let name = incident.components.first().map(|(_, name)| name.as_str());
        self.t.with(key, "name", name.unwrap_or_default())
    }

    pub(super) fn card(&self, incident: &PublicIncident) -> Card {
        let names: Vec<_> = incident
            .components
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let lasted = incident.resolved.map(|at| {
            let lasted = self.t.duration(at.since(incident.started));
            self.t.with("lasted", "duration", &lasted)
        });
        let is_named = matches!(incident.title, Title::MonitorDown(_)) || names.is_empty();
        Card {
            path: format!("/incidents/{}", incident.id),
            id: Some(incident.id.clone()),
            class: match incident.impact {
                _ if incident.is_over() => "operational",
                plimsoll_monitor::store::Impact::None => "unknown",
                plimsoll_monitor::store::Impact::Minor => "degraded",
                plimsoll_monitor::store::Impact::Major => "partial",
                plimsoll_monitor::store::Impact::Critical => "major",
            },
            title: self.heading(incident),
            phase: self.t.text(phase_key(incident.phase)),
            when: self.time(incident.started),
            lasted,
            about: None,
            affects: (!is_named).then(|| self.t.with("affects", "names", &names.join(", "))),
            updates: incident
                .updates
                .iter()
                .map(|update| CardUpdate {
                    phase: self.t.text(phase_key(update.phase)),
                    at: self.time(update.at),
                    body: self.body(incident, update.phase, &update.body),
                })
                .collect(),
        }
    }

    /// A card among others: of an outage that is over and that nobody commented on, only the end.
    pub(super) fn brief(&self, incident: &PublicIncident) -> Card {
        let mut card = self.card(incident);
        let mut updates = incident.updates.iter();
        if incident.is_over() && updates.all(|it| matches!(it.body, Body::Automatic)) {
            card.updates.truncate(1);
        }
        card
    }

    pub(super) fn maintenance(&self, one: &PublicMaintenance) -> Card {
        let t = self.t;
        let names: Vec<_> = one
            .components
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let (class, phase) = match one.phase {
            MaintenancePhase::Scheduled => ("maintenance", "maintenance_scheduled"),
            MaintenancePhase::InProgress => ("maintenance", "maintenance_active"),
            MaintenancePhase::Completed => ("operational", "maintenance_completed"),
        };
        let until = t.with("until", "time", &self.end(one.to, one.from));
        Card {
            path: one.path(),
            id: None,
            class,
            title: one.name.clone(),
            phase: t.text(phase),
            when: format!("{} {until}", self.time(one.from)),
            lasted: None,
            about: one.about().map(str::to_owned),
            affects: Some(t.with("affects", "names", &names.join(", "))),
            updates: Vec::new(),
        }
    }

    /// Cards among others: only the first one of a text has it, as the occurrences of a window share theirs.
    pub(super) fn described_once<'o>(
        &self,
        all: impl Iterator<Item = &'o PublicMaintenance>,
    ) -> impl Iterator<Item = Card> {
        let mut described = HashSet::new();
        all.map(move |one| {
            let mut card = self.maintenance(one);
            card.about = card.about.filter(|about| {
                let key = (one.name.clone(), about.clone());
                described.insert(key)
            });
            card
        })
    }
}

pub(super) fn phase_key(phase: PublicPhase) -> &'static str {
    match phase {
        PublicPhase::Investigating => "phase_investigating",
        PublicPhase::Identified => "phase_identified",
        PublicPhase::Monitoring => "phase_monitoring",
        PublicPhase::Resolved => "phase_resolved",
        PublicPhase::Postmortem => "phase_postmortem",
    }
}

/// The name of a phase in the language of the reader.
pub(crate) fn phase_text(t: Language, phase: PublicPhase) -> &'static str {
    t.text(phase_key(phase))
}

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage<'a> {
    f: Frame<'a>,
    one: Card,
    /// Paths of the affected components' pages, as segments, and their names.
    components: Vec<(String, String)>,
    /// Other occurrences of the same maintenance.
    others: Vec<Card>,
}

/// The page of one incident.
pub(crate) fn incident_page(f: Frame<'_>, incident: &PublicIncident) -> String {
    rendered(&EventPage {
        one: f.card(incident),
        components: Vec::new(),
        others: Vec::new(),
        f,
    })
}

/// The page of one occurrence of maintenance.
///
/// - `others`: occurrences of the same window to be linked, in order.
pub(crate) fn maintenance_page<'o>(
    f: Frame<'_>,
    one: &PublicMaintenance,
    others: impl Iterator<Item = &'o PublicMaintenance>,
) -> String {
    let components = one.components.iter();
    // The components are listed with links instead.
    let mut card = f.maintenance(one);
    card.affects = None;
    rendered(&EventPage {
        one: card,
        components: components
            .map(|(key, name)| (segment(key), name.clone()))
            .collect(),
        others: others.map(|other| f.maintenance(other)).collect(),
        f,
    })
}
