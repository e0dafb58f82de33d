//! The public API of Statuspage, `/api/v2/….json`, so that its readers work here.

use plimsoll_monitor::store::{Impact, PublicPhase};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::page::html::Frame;
use crate::page::snapshot::{
    Component, Group, MaintenancePhase, PublicIncident, PublicMaintenance, Snapshot, State,
};

/// Incidents of one answer, and maintenances that are over or to come.
const MOST: usize = 50;

/// Below `/api/v2/`, the only answer that needs maintenance that is over.
pub(crate) const ALL_MAINTENANCE: &str = "scheduled-maintenances.json";

/// The answer to a path below `/api/v2/`; `None` if there is no such path.
///
/// - `url`: of the page, without a slash at its end.
/// - `completed`: maintenance that is over, for [`ALL_MAINTENANCE`].
pub(crate) fn answer(
    f: Frame<'_>,
    snapshot: &Snapshot,
    completed: &[PublicMaintenance],
    url: &str,
    path: &str,
) -> Option<Value> {
    let api = Api { f, snapshot, url };
    let mut answer = json!({ "page": api.page() });
    match path {
        "summary.json" => {
            answer["components"] = api.components();
            answer["incidents"] = api.incidents(|one| !one.is_over());
            answer["scheduled_maintenances"] = api.maintenances(|_| true);
            answer["status"] = api.status();
        }
        "status.json" => answer["status"] = api.status(),
        "components.json" => answer["components"] = api.components(),
        "incidents.json" => answer["incidents"] = api.incidents(|_| true),
        "incidents/unresolved.json" => answer["incidents"] = api.incidents(|one| !one.is_over()),
        ALL_MAINTENANCE => {
            let coming = snapshot.maintenance.iter().take(MOST);
            let all = coming.chain(completed.iter().take(MOST));
            let all = all.map(|one| api.maintenance(one));
            answer["scheduled_maintenances"] = all.collect();
        }
        "scheduled-maintenances/upcoming.json" => {
            answer["scheduled_maintenances"] =
                api.maintenances(|one| one.phase == MaintenancePhase::Scheduled);
        }
        "scheduled-maintenances/active.json" => {
            answer["scheduled_maintenances"] =
                api.maintenances(|one| one.phase == MaintenancePhase::InProgress);
        }
        _ => return None,
    }
    Some(answer)
}

/// One incident, its components by number and name.
pub(crate) fn incident(
    f: Frame<'_>,
    snapshot: &Snapshot,
    url: &str,
    incident: &PublicIncident,
) -> Value {
    let mut answer = Api { f, snapshot, url }.incident(incident);
    let components = incident.components.iter();
    answer["components"] = components
        .map(|(key, name)| json!({ "id": id("component", key), "name": name }))
        .collect();
    answer
}

/// The page in a message to a webhook.
pub(crate) fn page_of(f: Frame<'_>, url: &str) -> Value {
    json!({ "id": id("page", &f.plan.slug), "name": f.plan.title, "url": url })
}

struct Api<'a> {
    f: Frame<'a>,
    snapshot: &'a Snapshot,
    url: &'a str,
}

/// Twelve characters, as Statuspage's are: the same for the same thing.
fn id(kind: &str, name: &str) -> String {
    const LETTERS: &[u8; 32] = b"0123456789bcdfghjklmnpqrstvwxyz_";

    let hash = ring::digest::digest(&ring::digest::SHA256, format!("{kind}/{name}").as_bytes());
    let letters = hash.as_ref().iter().take(12);
    letters
        .map(|byte| char::from(LETTERS[usize::from(byte & 31)]))
        .collect()
}

impl Api<'_> {
    fn page_id(&self) -> String {
        id("page", &self.f.plan.slug)
    }

    fn page(&self) -> Value {
        let zone = self.f.plan.zone.iana_name().unwrap_or("Etc/UTC");
        json!({
            "id": self.page_id(),
            "name": self.f.plan.title,
            "url": self.url,
            "time_zone": zone,
            "updated_at": self.changed().to_string(),
        })
    }

    /// When something last changed, so that an answer without a change stays the same.
    fn changed(&self) -> Timestamp {
        let components = self.snapshot.components().map(|one| one.since);
        let incidents = self.snapshot.incidents.iter().map(|one| one.changed);
        components
            .chain(incidents)
            .max()
            .unwrap_or(self.snapshot.built)
    }

    fn status(&self) -> Value {
        let (indicator, description) = match self.snapshot.overall {
            State::Operational | State::Unknown => ("none", "All Systems Operational"),
            State::Maintenance => ("maintenance", "Service Under Maintenance"),
            State::Degraded => ("minor", "Partially Degraded Service"),
            State::Partial => ("major", "Partial System Outage"),
            State::Major => ("critical", "Major System Outage"),
        };
        json!({ "indicator": indicator, "description": description })
    }

    fn components(&self) -> Value {
        let mut all = Vec::new();
        let mut position = 0;
        for group in &self.snapshot.groups {
            let mut group_id = None;
            if !group.name.is_empty() {
                position += 1;
                group_id = Some(id("group", &group.name));
                all.push(self.group(group, position));
            }
            for component in &group.components {
                position += 1;
                all.push(self.component(component, group_id.as_deref(), position));
            }
        }
        all.into()
    }

    fn group(&self, group: &Group, position: usize) -> Value {
        let since = group.components.iter().map(|one| one.since);
        let since = since.max().unwrap_or(self.snapshot.built).to_string();
        let children: Vec<_> = group
            .components
            .iter()
            .map(|one| id("component", &one.key))
            .collect();
        json!({
            "id": id("group", &group.name),
            "name": group.name,
            "status": component_status(group.state),
            "created_at": since,
            "updated_at": since,
            "position": position,
            "description": null,
            "showcase": false,
            "start_date": null,
            "group_id": null,
            "page_id": self.page_id(),
            "group": true,
            "only_show_if_degraded": false,
            "components": children,
        })
    }

    fn component(&self, component: &Component, group: Option<&str>, position: usize) -> Value {
        let since = component.since.to_string();
        json!({
            "id": id("component", &component.key),
            "name": component.name,
            "status": component_status(component.state),
            "created_at": since,
            "updated_at": since,
            "position": position,
            "description": component.about,
            "showcase": true,
            "start_date": null,
            "group_id": group,
            "page_id": self.page_id(),
            "group": false,
            "only_show_if_degraded": false,
        })
    }

    /// Those of an incident or a maintenance.
    fn affected(&self, names: &[(String, String)]) -> Value {
        let all = self.snapshot.components().enumerate();
        let all = all.filter(|(_, one)| names.iter().any(|(key, _)| *key == one.key));
        all.map(|(position, one)| {
            let groups = &mut self.snapshot.groups.iter();
            let group = groups.find(|group| group.components.iter().any(|it| it.key == one.key));
            let group = group.filter(|group| !group.name.is_empty());
            let group = group.map(|group| id("group", &group.name));
            self.component(one, group.as_deref(), position + 1)
        })
        .collect()
    }

    fn incidents(&self, is_wanted: fn(&PublicIncident) -> bool) -> Value {
        let wanted = self.snapshot.incidents.iter().filter(|one| is_wanted(one));
        wanted.take(MOST).map(|one| self.incident(one)).collect()
    }

    fn incident(&self, one: &PublicIncident) -> Value {
        let incident_id = id("incident", &one.id);
        let at = |wanted: PublicPhase| {
            let found = one.updates.iter().find(|update| update.phase == wanted);
            found.map(|update| update.at.to_string())
        };
        let updates: Vec<_> = one
            .updates
            .iter()
            .enumerate()
            .map(|(index, update)| {
                let number = one.updates.len() - index;
                let id = id("update", &format!("{}/{number}", one.id));
                let body = self.f.body(one, update.phase, &update.body);
                let at = update.at.to_string();
                update_of(&incident_id, &id, update.phase.name(), &body, &at)
            })
            .collect();
        json!({
            "id": incident_id,
            "name": self.f.title(one),
            "status": one.phase.name(),
            "created_at": one.started.to_string(),
            "updated_at": one.changed.to_string(),
            "monitoring_at": at(PublicPhase::Monitoring),
            "resolved_at": one.resolved.map(|at| at.to_string()),
            "impact": impact(one.impact),
            "shortlink": format!("{}/incidents/{}", self.url, one.id),
            "started_at": one.started.to_string(),
            "page_id": self.page_id(),
            "incident_updates": updates,
            "components": self.affected(&one.components),
        })
    }

    fn maintenances(&self, is_wanted: fn(&PublicMaintenance) -> bool) -> Value {
        let wanted = self
            .snapshot
            .maintenance
            .iter()
            .filter(|one| is_wanted(one));
        wanted.take(MOST).map(|one| self.maintenance(one)).collect()
    }

    fn maintenance(&self, one: &PublicMaintenance) -> Value {
        let from = one.from.to_string();
        // It was made before it begins; when exactly is not known.
        let known = one.from.min(self.snapshot.built).to_string();
        let (status, resolved) = match one.phase {
            MaintenancePhase::Scheduled => ("scheduled", None),
            MaintenancePhase::InProgress => ("in_progress", None),
            MaintenancePhase::Completed => ("completed", Some(one.to.to_string())),
        };
        let maintenance_id = id("maintenance", &one.id);
        let about = one.about().map(|about| {
            let id = id("update", &one.id);
            update_of(&maintenance_id, &id, status, about, &known)
        });
        json!({
            "id": maintenance_id,
            "name": one.name,
            "status": status,
            "created_at": known,
            "updated_at": resolved.as_ref().unwrap_or(&known),
            "monitoring_at": null,
            "resolved_at": resolved,
            "impact": "maintenance",
            "shortlink": format!("{}{}", self.url, one.path()),
            "started_at": from,
            "page_id": self.page_id(),
            "incident_updates": Vec::from_iter(about),
            "components": self.affected(&one.components),
            "scheduled_for": from,
            "scheduled_until": one.to.to_string(),
        })
    }
}

/// An update of an incident or a maintenance.
fn update_of(event_id: &str, id: &str, status: &str, body: &str, at: &str) -> Value {
    json!({
        "id": id,
        "status": status,
        "body": body,
        "incident_id": event_id,
        "created_at": at,
        "updated_at": at,
        "display_at": at,
        "affected_components": null,
        "deliver_notifications": true,
        "custom_tweet": null,
        "tweet_id": null,
    })
}

fn component_status(state: State) -> &'static str {
    match state {
        State::Unknown | State::Operational => "operational",
        State::Maintenance => "under_maintenance",
        State::Degraded => "degraded_performance",
        State::Partial => "partial_outage",
        State::Major => "major_outage",
    }
}

fn impact(impact: Impact) -> &'static str {
    impact.name()
}
