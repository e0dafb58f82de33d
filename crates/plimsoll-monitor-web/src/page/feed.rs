//! Feeds of incidents (RSS 2.0; Atom, RFC 4287) and of maintenance (iCalendar, RFC 5545).

use std::fmt::Write as _;

use askama::Template;
use plimsoll_model::{escaped_html, is_xml_char};
use plimsoll_monitor::time::{Timestamp, calendar};

use crate::language::Texts as _;
use crate::page::html::{Frame, phase_text};
use crate::page::snapshot::{PublicIncident, Snapshot};

/// Entries of a feed.
const MOST: usize = 50;

struct Entry {
    id: String,
    title: String,
    term: &'static str,
    phase: &'static str,
    published: Timestamp,
    updated: Timestamp,
    updated_rfc2822: String,
    html: String,
}

impl Entry {
    fn from_incident(f: Frame<'_>, incident: &PublicIncident) -> Self {
        let mut html = String::new();
        for update in &incident.updates {
            let body = f.body(incident, update.phase, &update.body);
            let body = escaped_html(&body).replace('\n', "<br>");
            let phase = phase_text(f.t, update.phase);
            write!(
                html,
                "<p><strong>{phase}</strong> ({}): {body}</p>",
                update.at
            )
            .expect("writing to memory does not fail");
        }
        Self {
            id: incident.id.clone(),
            title: f.title(incident),
            term: incident.phase.name(),
            phase: phase_text(f.t, incident.phase),
            published: incident.started,
            updated: incident.changed,
            updated_rfc2822: rfc2822(incident.changed),
            html,
        }
    }
}

fn rfc2822(at: Timestamp) -> String {
    at.to_jiff()
        .strftime("%a, %d %b %Y %H:%M:%S +0000")
        .to_string()
}

#[derive(Template)]
#[template(path = "feed.atom.xml")]
struct Atom<'a> {
    url: &'a str,
    title: &'a str,
    language: &'a str,
    updated: Timestamp,
    entries: Vec<Entry>,
}

#[derive(Template)]
#[template(path = "feed.rss.xml")]
struct Rss<'a> {
    url: &'a str,
    title: &'a str,
    about: &'a str,
    language: &'a str,
    updated_rfc2822: String,
    entries: Vec<Entry>,
}

fn entries(f: Frame<'_>, snapshot: &Snapshot) -> (Vec<Entry>, Timestamp) {
    let entries = snapshot.incidents.iter().take(MOST);
    let entries: Vec<_> = entries.map(|one| Entry::from_incident(f, one)).collect();
    // A feed without a change stays the same, byte by byte.
    let updated = entries.iter().map(|entry| entry.updated).max();
    (entries, updated.unwrap_or(Timestamp(0)))
}

/// The feed, without the characters that XML cannot have, wherever its texts come from.
fn well_formed(feed: &impl Template) -> String {
    let text = feed.render().unwrap_or_default();
    text.replace(|c| !is_xml_char(c), "\u{fffd}")
}

/// - `url`: of the page, without a slash at its end.
pub(crate) fn atom(f: Frame<'_>, snapshot: &Snapshot, url: &str) -> String {
    let (entries, updated) = entries(f, snapshot);
    let feed = Atom {
        url,
        title: &f.plan.title,
        language: f.t.code(),
        updated,
        entries,
    };
    well_formed(&feed)
}

/// - `url`: of the page, without a slash at its end.
pub(crate) fn rss(f: Frame<'_>, snapshot: &Snapshot, url: &str) -> String {
    let (entries, updated) = entries(f, snapshot);
    let feed = Rss {
        url,
        title: &f.plan.title,
        about: f.plan.about.as_deref().unwrap_or(&f.plan.title),
        language: f.t.code(),
        updated_rfc2822: rfc2822(updated),
        entries,
    };
    well_formed(&feed)
}

/// Maintenance as a calendar.
///
/// - `url`: of the page, without a slash at its end.
pub(crate) fn calendar(f: Frame<'_>, snapshot: &Snapshot, url: &str) -> String {
    let events = snapshot.maintenance.iter().map(|one| {
        let names: Vec<_> = one
            .components
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let affects = f.t.with("affects", "names", &names.join(", "));
        calendar::Event {
            uid: format!("{}@{}", one.id, f.plan.slug),
            from: one.from,
            to: one.to,
            summary: one.name.clone(),
            description: Some(match one.about() {
                Some(about) => format!("{about}\n{affects}"),
                None => affects,
            }),
            url: Some(format!("{url}{}", one.path())),
        }
    });
    calendar::text(&f.plan.title, events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_rss() {
        let date = Timestamp(1_772_366_400_123);
        assert_eq!(rfc2822(date), "Sun, 01 Mar 2026 12:00:00 +0000");
    }
}
