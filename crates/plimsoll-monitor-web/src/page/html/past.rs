//! Incidents of the last days, one line each: their updates are on their own pages.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::ToSpan as _;
use jiff::civil::Date;
use plimsoll_monitor::time::Timestamp;

use crate::language::Texts as _;
use crate::page::html::card::phase_key;
use crate::page::html::{Frame, PAST_DAYS};
use crate::page::snapshot::{PublicIncident, Snapshot, Title};

/// A day with the incidents that began on it.
pub(super) struct PastDay {
    pub(super) date: String,
    /// The newest first.
    pub(super) lines: Vec<PastLine>,
}

/// An incident in one line.
pub(super) struct PastLine {
    /// Its anchor.
    pub(super) id: String,
    /// Of its own page, below that of the status page.
    pub(super) path: String,
    pub(super) title: String,
    /// From when until when, or its phase if it is not over.
    pub(super) range: String,
    /// Names of components, unless the title has the only one.
    pub(super) affects: Option<String>,
}

impl Frame<'_> {
    /// The last days, today first, and days before them on which incidents began that ended since, each with its incidents;
    /// those that are not over are among them. Empty without incidents.
    pub(super) fn past_days(&self, snapshot: &Snapshot) -> Vec<PastDay> {
        let since = snapshot.built.minus(Duration::from_hours(24 * PAST_DAYS));
        let mut by_day: BTreeMap<Date, Vec<PastLine>> = BTreeMap::new();
        let open = snapshot.active().filter(|one| one.started >= since);
        let mut incidents: Vec<_> = open.chain(snapshot.past(since)).collect();
        incidents.sort_by_key(|incident| std::cmp::Reverse(incident.started));
        for incident in incidents {
            let day = self.date(incident.started);
            by_day
                .entry(day)
                .or_default()
                .push(self.line(incident, day));
        }
        if by_day.is_empty() {
            return Vec::new();
        }
        let today = self.date(snapshot.built);
        let days = i64::try_from(PAST_DAYS).unwrap_or(0);
        for back in 0..days {
            if let Ok(day) = today.checked_sub(back.days()) {
                by_day.entry(day).or_default();
            }
        }
        let days = by_day.into_iter().rev().map(|(day, lines)| PastDay {
            date: self.t.date(day),
            lines,
        });
        days.collect()
    }

    fn line(&self, incident: &PublicIncident, day: Date) -> PastLine {
        let names: Vec<_> = incident
            .components
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let is_named = matches!(incident.title, Title::MonitorDown(_)) || names.is_empty();
        let until = match incident.resolved {
            Some(ended) => self.clock(ended, day, "%H:%M %Z"),
            None => self.t.text(phase_key(incident.phase)).to_owned(),
        };
        PastLine {
            id: incident.id.clone(),
            path: format!("/incidents/{}", incident.id),
            title: self.heading(incident),
            range: format!("{} – {until}", self.clock(incident.started, day, "%H:%M")),
            affects: (!is_named).then(|| names.join(", ")),
        }
    }

    /// A time below the heading of a day: without its date on that day. A script does the same in the reader's zone.
    fn clock(&self, at: Timestamp, day: Date, format: &str) -> String {
        let zoned = at.to_jiff().to_zoned(self.plan.zone.clone());
        let clock = zoned.strftime(format);
        let text = if zoned.date() == day {
            clock.to_string()
        } else {
            format!("{}, {clock}", self.t.date(zoned.date()))
        };
        format!("<time datetime=\"{at}\" data-day=\"{day}\">{text}</time>")
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_monitor::config::{Language, load};
    use plimsoll_monitor::store::{Impact, PublicPhase};

    use super::*;
    use crate::page::PagePlan;
    use crate::page::snapshot::State;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn plan() -> PagePlan {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("monitor.toml");
        let text = "[[monitor]]\nname = \"a\"\nmanual = true\n[[page]]\nslug = \"p\"\ntitle = \"P\"\nzone = \"Europe/Berlin\"\n";
        std::fs::write(&path, text).unwrap();
        PagePlan::clone(&load(&path, &|_| None).unwrap().pages[0])
    }

    fn incident(id: &str, from: &str, to: Option<&str>, components: &[&str]) -> PublicIncident {
        PublicIncident {
            id: id.to_owned(),
            title: Title::Text(format!("title of {id}")),
            impact: Impact::Minor,
            phase: PublicPhase::Resolved,
            started: at(from),
            resolved: to.map(at),
            changed: at(from),
            components: components
                .iter()
                .map(|name| (name.to_lowercase(), (*name).to_owned()))
                .collect(),
            updates: Vec::new(),
        }
    }

    /// Dates with the titles and ranges below them, as the page at noon of 30 March has them.
    fn shown(incidents: Vec<PublicIncident>) -> Vec<(String, Vec<String>)> {
        let plan = plan();
        let frame = Frame::new(&plan, Language::English, "", "", State::Operational);
        let mut snapshot = Snapshot::without_rows(at("2026-03-30T12:00:00Z"));
        snapshot.incidents = incidents;
        let days = frame.past_days(&snapshot).into_iter().map(|day| {
            let lines = day.lines.into_iter().map(|line| {
                let range = line.range.replace("</time>", "");
                let range: Vec<_> = range
                    .split(" – ")
                    .map(|time| time.split('>').next_back().unwrap_or_default())
                    .collect();
                let affects = line.affects.unwrap_or_default();
                format!("{} {} [{affects}]", line.id, range.join(" – "))
            });
            (day.date, lines.collect())
        });
        days.collect()
    }

    #[test]
    fn each_of_fourteen_days_has_its_incidents() {
        let days = shown(vec![
            // Half past eleven in Berlin, on the day before as UTC has it.
            incident(
                "d3",
                "2026-03-27T23:30:00Z",
                Some("2026-03-28T01:00:00Z"),
                &["Web", "API"],
            ),
            incident(
                "d2",
                "2026-03-20T10:00:00Z",
                Some("2026-03-21T10:00:00Z"),
                &[],
            ),
            // It ended within the days that are shown.
            incident(
                "d1",
                "2026-03-01T10:00:00Z",
                Some("2026-03-29T10:00:00Z"),
                &[],
            ),
            incident("d0", "2026-03-29T10:00:00Z", None, &["Web"]),
            // These are older.
            incident("d5", "2026-03-02T09:00:00Z", None, &[]),
            incident(
                "d4",
                "2026-03-02T10:00:00Z",
                Some("2026-03-02T11:00:00Z"),
                &[],
            ),
        ]);
        let lines = |date: &str| {
            let found = days.iter().find(|(day, _)| day == date);
            found.map(|(_, lines)| lines.clone())
        };
        assert_eq!(days.len(), 15);
        assert_eq!(days[0].0, "30 March 2026");
        assert_eq!(days[13].0, "17 March 2026");
        assert_eq!(
            lines("28 March 2026"),
            Some(vec!["d3 00:30 – 02:00 CET [Web, API]".to_owned()])
        );
        assert_eq!(
            lines("20 March 2026"),
            Some(vec!["d2 11:00 – 21 March 2026, 11:00 CET []".to_owned()])
        );
        assert_eq!(
            lines("1 March 2026"),
            Some(vec!["d1 11:00 – 29 March 2026, 12:00 CEST []".to_owned()])
        );
        assert_eq!(
            lines("29 March 2026"),
            Some(vec!["d0 12:00 – Resolved [Web]".to_owned()]),
            "its phase, as it is not over"
        );
        assert_eq!(lines("30 March 2026"), Some(Vec::new()));
        assert_eq!(lines("2 March 2026"), None);
    }

    #[test]
    fn without_incidents_there_are_no_days() {
        assert!(shown(Vec::new()).is_empty());
    }
}
