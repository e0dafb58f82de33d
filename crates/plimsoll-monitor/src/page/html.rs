//! Snapshots as HTML, in the language of the reader.

mod draw;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use askama::Template;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_report::plot::{Axis, Line, Plot};
use ring::digest::{SHA256, digest};

use crate::config::ApiToken;
use crate::detect::uptime::Uptime;
use crate::page::PagePlan;
use crate::page::html::draw::{icon, sparkline};
use crate::page::language::Language;
use crate::page::snapshot::{
    Body, Completed, Component, DAYS, Day, MaintenancePhase, PublicIncident, PublicMaintenance,
    Snapshot, State, Title,
};
use crate::page::subscribe::Means;
use crate::store::timestamp::Timestamp;
use crate::store::{PublicPhase, Rollup};

pub(crate) use crate::page::html::draw::tab_icon;

const STYLE: &str = include_str!("assets/page.css");
pub(crate) const SCRIPT: &str = include_str!("assets/page.js");

/// Days of the phone's strip; the style sheet hides the others.
const NEAR: usize = 45;

/// Planned occurrences of one maintenance window on the page.
const PLANNED: usize = 3;

/// Past incidents of the page are from so many days.
pub(crate) const PAST_DAYS: u64 = 14;

/// The frame of all pages.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    languages: [Language; Language::COUNT],
    pub(crate) plan: &'a PagePlan,
    pub(crate) t: Language,
    /// The prefix of paths: nothing, or `/status/SLUG`.
    pub(crate) base: &'a str,
    pub(crate) state: &'static str,
    /// Whether a script keeps it up to date.
    pub(crate) is_live: bool,
    /// Whether readers may subscribe.
    pub(crate) subscribes: bool,
    style: &'a str,
    script: &'static str,
}

static SCRIPT_NAME: LazyLock<String> =
    LazyLock::new(|| format!("page-{}.js", short_hash(SCRIPT.as_bytes())));

fn short_hash(content: &[u8]) -> String {
    let hash = digest(&SHA256, content);
    let mut whole = [0; 32];
    whole.copy_from_slice(hash.as_ref());
    ApiToken::written(&whole).chars().take(12).collect()
}

/// The name of the script.
pub(crate) fn script_name() -> &'static str {
    &SCRIPT_NAME
}

/// The style sheet of a page, and its name, which changes with it.
pub(crate) fn style(plan: &PagePlan) -> (String, String) {
    let accent = plan.color.as_ref().map(|color| {
        // A colour that is dark enough on white is lightened for dark pages.
        format!(
            "body{{--accent:{color}}}@media (prefers-color-scheme:dark){{body{{--accent:color-mix(in srgb,{color} 45%,#fff)}}}}\n"
        )
    });
    let style = [
        plimsoll_model::look::STYLE,
        plimsoll_report::plot::STYLE,
        STYLE,
        accent.as_deref().unwrap_or_default(),
    ]
    .concat();
    let name = format!("page-{}.css", short_hash(style.as_bytes()));
    (name, style)
}

impl<'a> Frame<'a> {
    pub(crate) fn new(
        plan: &'a PagePlan,
        t: Language,
        base: &'a str,
        style: &'a str,
        state: State,
    ) -> Self {
        Self {
            languages: Language::ALL,
            plan,
            t,
            base,
            state: state.name(),
            is_live: false,
            subscribes: false,
            style,
            script: script_name(),
        }
    }

    fn home(&self) -> String {
        format!("{}/", self.base)
    }

    /// Target of the title's link.
    fn brand(&self) -> String {
        self.plan.link.clone().unwrap_or_else(|| self.home())
    }

    fn is_listed(&self) -> bool {
        self.plan.is_listed
    }

    /// A time in the zone of the page; a script replaces it by that of the reader.
    fn time(&self, at: Timestamp) -> String {
        let zoned = at.to_jiff().to_zoned(self.plan.zone.clone());
        let date = self.t.date(zoned.date());
        let clock = zoned.strftime("%H:%M %Z");
        format!("<time datetime=\"{at}\">{date}, {clock}</time>")
    }

    /// The end of a time that began at `from`: without its date if that is the same.
    fn end(&self, at: Timestamp, from: Timestamp) -> String {
        if self.date(at) != self.date(from) {
            return self.time(at);
        }
        let zoned = at.to_jiff().to_zoned(self.plan.zone.clone());
        let clock = zoned.strftime("%H:%M %Z");
        format!("<time datetime=\"{at}\" data-from=\"{from}\">{clock}</time>")
    }

    fn date(&self, at: Timestamp) -> Date {
        at.to_jiff().to_zoned(self.plan.zone.clone()).date()
    }

    pub(crate) fn title(&self, incident: &PublicIncident) -> String {
        match &incident.title {
            Title::MonitorDown(name) => self.t.with("monitor_down", "name", name),
            Title::Text(text) => text.clone(),
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

    fn card(&self, incident: &PublicIncident) -> Card {
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
            id: incident.id.clone(),
            class: match incident.impact {
                _ if incident.is_over() => "operational",
                crate::store::Impact::None => "unknown",
                crate::store::Impact::Minor => "degraded",
                crate::store::Impact::Major => "partial",
                crate::store::Impact::Critical => "major",
            },
            title: self.title(incident),
            phase: self.t.text(phase_key(incident.phase)),
            started: self.time(incident.started),
            lasted,
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
    fn brief(&self, incident: &PublicIncident) -> Card {
        let mut card = self.card(incident);
        let mut updates = incident.updates.iter();
        if incident.is_over() && updates.all(|it| matches!(it.body, Body::Automatic)) {
            card.updates.truncate(1);
        }
        card
    }

    fn maintenance(&self, one: &PublicMaintenance) -> MaintenanceCard {
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
        MaintenanceCard {
            class,
            name: one.name.clone(),
            phase: t.text(phase),
            from: self.time(one.from),
            until: t.with("until", "time", &self.end(one.to, one.from)),
            affects: t.with("affects", "names", &names.join(", ")),
        }
    }

    fn row(&self, component: &Component) -> Row {
        let percent = component.uptime.ratio().map(|ratio| self.t.percent(ratio));
        let shown = percent
            .clone()
            .unwrap_or_else(|| self.t.text("day_unknown").to_owned());
        let strip = self
            .t
            .with("strip", "name", &component.name)
            .replace("{n}", &component.days.len().to_string())
            .replace("{percent}", &shown);
        let latency = component.median_us.map(|micros| self.t.latency(micros));
        let title = latency
            .as_ref()
            .map(|value| self.t.with("latency", "value", value));
        Row {
            path: utf8_percent_encode(&component.key, NON_ALPHANUMERIC).to_string(),
            key: component.key.clone(),
            name: component.name.clone(),
            about: component.about.clone(),
            state: component.state.name(),
            text: self.t.text(component.state.text()),
            strip,
            days: self.strip(&component.days),
            uptime: match percent {
                Some(percent) => self
                    .t
                    .with("uptime", "percent", &percent)
                    .replace("{n}", &component.days.len().to_string()),
                None => self.t.text("uptime_none").to_owned(),
            },
            latency,
            latency_title: title.unwrap_or_default(),
            spark: sparkline(&component.hours),
        }
    }

    /// Cells; those that say more than "no downtime" say it in their title.
    fn strip(&self, days: &[Day]) -> String {
        let mut html = String::with_capacity(days.len() * 16);
        for day in days {
            let (class, text) = match day.state {
                State::Operational => {
                    html.push_str("<i></i>");
                    continue;
                }
                State::Unknown => ("u", self.t.text("day_unknown").to_owned()),
                State::Maintenance => ("w", self.t.text("day_maintenance").to_owned()),
                State::Degraded if day.down.is_zero() => (
                    "d",
                    self.t
                        .with("day_degraded", "duration", &self.t.duration(day.degraded)),
                ),
                State::Degraded => ("d", self.down(day.down)),
                State::Partial => ("p", self.down(day.down)),
                State::Major => ("m", self.down(day.down)),
            };
            write!(
                html,
                "<i class=\"{class}\" title=\"{}\"></i>",
                escaped(&text)
            )
            .expect(IN_MEMORY);
        }
        html
    }

    fn down(&self, down: Duration) -> String {
        self.t.with("day_down", "duration", &self.t.duration(down))
    }

    fn far(&self, days: usize) -> String {
        self.t
            .with("days_ago", "n", &days.saturating_sub(1).to_string())
    }
}

const IN_MEMORY: &str = "writing to memory does not fail";

/// Text within markup or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn phase_key(phase: PublicPhase) -> &'static str {
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

/// An incident with its updates.
struct Card {
    id: String,
    class: &'static str,
    title: String,
    phase: &'static str,
    started: String,
    lasted: Option<String>,
    affects: Option<String>,
    updates: Vec<CardUpdate>,
}

struct CardUpdate {
    phase: &'static str,
    at: String,
    body: String,
}

struct MaintenanceCard {
    class: &'static str,
    name: String,
    phase: &'static str,
    from: String,
    until: String,
    affects: String,
}

struct Row {
    key: String,
    /// The key as a segment of a path.
    path: String,
    name: String,
    about: Option<String>,
    state: &'static str,
    text: &'static str,
    strip: String,
    days: String,
    uptime: String,
    latency: Option<String>,
    latency_title: String,
    spark: String,
}

struct GroupRows {
    name: String,
    state: &'static str,
    text: &'static str,
    components: Vec<Row>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct StatusPage<'a> {
    f: Frame<'a>,
    overall: &'static str,
    overall_text: &'static str,
    icon: &'static str,
    updated: String,
    stale: Option<String>,
    active: Vec<Card>,
    /// Under way.
    maintenance: Vec<MaintenanceCard>,
    /// To come.
    planned: Vec<MaintenanceCard>,
    groups: Vec<GroupRows>,
    past: Vec<Card>,
    no_incidents: String,
    far: String,
    near: String,
    until: String,
}

/// The page itself.
pub(crate) fn status_page(f: Frame<'_>, snapshot: &Snapshot, is_stale: bool) -> String {
    let t = f.t;
    let since = snapshot.built.minus(Duration::from_hours(24 * PAST_DAYS));
    let (active, mut planned): (Vec<_>, Vec<_>) = snapshot
        .maintenance
        .iter()
        .partition(|one| one.phase == MaintenancePhase::InProgress);
    // The calendar has the others.
    let mut shown: HashMap<&str, usize> = HashMap::new();
    planned.retain(|one| {
        let count = shown.entry(&one.name).or_default();
        *count += 1;
        *count <= PLANNED
    });
    let groups = snapshot.groups.iter().map(|group| GroupRows {
        name: group.name.clone(),
        state: group.state.name(),
        text: t.text(group.state.text()),
        components: group.components.iter().map(|one| f.row(one)).collect(),
    });
    let page = StatusPage {
        overall: snapshot.overall.name(),
        overall_text: t.text(snapshot.overall.overall()),
        icon: icon(snapshot.overall),
        updated: t.with("updated", "time", &f.time(snapshot.built)),
        stale: is_stale.then(|| t.with("stale", "time", &f.time(snapshot.built))),
        active: snapshot.active().map(|one| f.card(one)).collect(),
        maintenance: active.into_iter().map(|one| f.maintenance(one)).collect(),
        planned: planned.into_iter().map(|one| f.maintenance(one)).collect(),
        groups: groups.collect(),
        past: snapshot.past(since).map(|one| f.brief(one)).collect(),
        no_incidents: t.with("no_incidents", "n", &PAST_DAYS.to_string()),
        far: f.far(DAYS),
        near: f.far(NEAR),
        until: last_date(snapshot),
        f,
    };
    rendered(&page)
}

fn rendered(template: &impl Template) -> String {
    // Values of templates are texts and numbers, whose display does not fail.
    template.render().unwrap_or_default()
}

fn last_date(snapshot: &Snapshot) -> String {
    snapshot
        .dates
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[derive(Template)]
#[template(path = "incident.html")]
struct IncidentPage<'a> {
    f: Frame<'a>,
    one: Card,
}

/// The page of one incident.
pub(crate) fn incident_page(f: Frame<'_>, incident: &PublicIncident) -> String {
    rendered(&IncidentPage {
        one: f.card(incident),
        f,
    })
}

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage<'a> {
    f: Frame<'a>,
    month: String,
    previous: String,
    next: Option<String>,
    has_incidents: bool,
    /// The newest first.
    entries: Vec<Entry>,
    /// For windows with more occurrences.
    omitted: Vec<String>,
}

/// Something that happened in a month.
enum Entry {
    Incident(Card),
    Maintenance(MaintenanceCard),
}

/// The incidents and maintenance that began in a month.
///
/// - `completed`: maintenance of that month.
/// - `first`: its first day.
pub(crate) fn history_page(
    f: Frame<'_>,
    incidents: &[PublicIncident],
    completed: &Completed,
    first: Date,
    now: Timestamp,
) -> String {
    let month = |date: Date| date.strftime("%Y-%m").to_string();
    let moved = |months: i32| first.checked_add(jiff::Span::new().months(months)).ok();
    let this_month = f.date(now).first_of_month();
    let of_month = incidents
        .iter()
        .filter(|one| f.date(one.started).first_of_month() == first);
    let of_month = of_month.map(|one| (one.started, Entry::Incident(f.brief(one))));
    let maintained = completed.all.iter();
    let maintained = maintained.map(|one| (one.from, Entry::Maintenance(f.maintenance(one))));
    let mut entries: Vec<_> = of_month.chain(maintained).collect();
    entries.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let omitted = completed.omitted.iter().map(|(name, count)| {
        let text = f.t.with("maintenance_more", "name", name);
        text.replace("{n}", &count.to_string())
    });
    rendered(&HistoryPage {
        month: f.t.month(first),
        previous: month(moved(-1).unwrap_or(first)),
        next: moved(1).filter(|next| *next <= this_month).map(month),
        has_incidents: entries
            .iter()
            .any(|(_, entry)| matches!(entry, Entry::Incident(_))),
        entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        omitted: omitted.collect(),
        f,
    })
}

/// A window of a component's page.
pub(crate) struct Window {
    pub(crate) query: &'static str,
    pub(crate) text: &'static str,
    pub(crate) length: Duration,
}

/// The windows for which there is a chart.
pub(crate) const WINDOWS: [Window; 3] = [
    Window {
        query: "24h",
        text: "window_day",
        length: Duration::from_hours(24),
    },
    Window {
        query: "7d",
        text: "window_week",
        length: Duration::from_hours(7 * 24),
    },
    Window {
        query: "30d",
        text: "window_month",
        length: Duration::from_hours(30 * 24),
    },
];

struct WindowFigures {
    name: String,
    query: &'static str,
    has_chart: bool,
    is_chosen: bool,
    uptime: String,
    down: String,
    outages: u32,
}

#[derive(Template)]
#[template(path = "component.html")]
struct ComponentPage<'a> {
    f: Frame<'a>,
    one: Row,
    windows: Vec<WindowFigures>,
    chart: String,
    regions: Vec<RegionRow>,
    incidents: Vec<Card>,
    far: String,
    near: String,
    until: String,
}

/// Results of a region in the last day.
struct RegionRow {
    name: String,
    /// The share of results that were up or degraded.
    up: String,
    /// p50, p95 and p99.
    times: [String; 3],
}

fn region_row(t: Language, name: &str, rollup: &Rollup) -> RegionRow {
    let time = |q| {
        rollup
            .took
            .quantile(q)
            .map_or_else(|| "–".to_owned(), |it| t.latency(it))
    };
    let [up, degraded, ..] = rollup.counts;
    let ratio = (up + degraded) as f64 / rollup.total().max(1) as f64;
    RegionRow {
        name: name.to_owned(),
        up: t.percent(ratio),
        times: [0.5, 0.95, 0.99].map(time),
    }
}

/// The page of one component.
///
/// - `uptimes`: of each of the [`WINDOWS`].
/// - `chosen`: the window of the chart, and `buckets` its results.
/// - `regions`: what each saw in the last day, if there are several.
pub(crate) fn component_page(
    f: Frame<'_>,
    snapshot: &Snapshot,
    component: &Component,
    uptimes: &[Uptime],
    chosen: &Window,
    (buckets, regions): (&[Rollup], &[(Arc<str>, Rollup)]),
) -> String {
    let t = f.t;
    let figures = |name: String, query, is_chosen, has_chart, uptime: &Uptime| WindowFigures {
        name,
        query,
        has_chart,
        is_chosen,
        uptime: match uptime.ratio() {
            Some(ratio) => t.percent(ratio),
            None => "–".to_owned(),
        },
        down: t.duration(uptime.down),
        outages: uptime.outages,
    };
    let mut windows: Vec<_> = WINDOWS
        .iter()
        .zip(uptimes)
        .map(|(window, uptime)| {
            let is_chosen = window.query == chosen.query;
            figures(
                t.text(window.text).to_owned(),
                window.query,
                is_chosen,
                true,
                uptime,
            )
        })
        .collect();
    let whole = t.text("window_quarter").to_owned();
    windows.push(figures(whole, "", false, false, &component.uptime));
    let incidents = snapshot
        .incidents
        .iter()
        .filter(|one| one.components.iter().any(|(key, _)| *key == component.key))
        .take(20);
    rendered(&ComponentPage {
        one: f.row(component),
        windows,
        chart: chart(
            f.t.text("percentiles"),
            &f.plan.zone,
            chosen.length,
            buckets,
        ),
        regions: regions
            .iter()
            .map(|(name, rollup)| region_row(t, name, rollup))
            .collect(),
        incidents: incidents.map(|one| f.brief(one)).collect(),
        far: f.far(DAYS),
        near: f.far(NEAR),
        until: last_date(snapshot),
        f,
    })
}

/// Charts of fewer points show dots instead of lines.
const FEW_POINTS: usize = 4;

/// Percentiles of response times as a plot; empty without any.
///
/// - `length`: of the time that the buckets are of.
pub(crate) fn chart(title: &str, zone: &TimeZone, length: Duration, buckets: &[Rollup]) -> String {
    let is_day = length <= Duration::from_hours(24);
    let label = |bucket: &Rollup| {
        let zoned = bucket.start.to_jiff().to_zoned(zone.clone());
        if is_day {
            zoned.strftime("%H:%M").to_string()
        } else {
            zoned.strftime("%m-%d").to_string()
        }
    };
    let line = |name: &str, q: f64| {
        let points = buckets.iter().enumerate();
        Line {
            label: name.to_owned(),
            points: points
                .map(|(at, bucket)| {
                    let micros = bucket.took.quantile(q);
                    (at as f64, micros.map(|micros| micros as f64))
                })
                .collect(),
            // A line needs two points beside each other.
            is_dots: buckets.len() < FEW_POINTS,
        }
    };
    let plot = Plot {
        title: title.to_owned(),
        x: Axis::Names(buckets.iter().map(label).collect()),
        across: "",
        y: Axis::Linear(plimsoll_report::page::short_time),
        lines: vec![line("p50", 0.5), line("p95", 0.95), line("p99", 0.99)],
        shaded: Vec::new(),
    };
    if plot.is_empty() {
        String::new()
    } else {
        plot.html()
    }
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    f: Frame<'a>,
    message: &'a str,
    is_bad: bool,
    asks_password: bool,
}

/// A message, perhaps with a form for the password.
pub(crate) fn message_page(
    f: Frame<'_>,
    message: &str,
    is_bad: bool,
    asks_password: bool,
) -> String {
    rendered(&MessagePage {
        f,
        message,
        is_bad,
        asks_password,
    })
}

/// A means by which readers subscribe.
struct Offer {
    name: &'static str,
    text: &'static str,
    hint: &'static str,
    /// The type of its field.
    field: &'static str,
    autocomplete: &'static str,
}

#[derive(Template)]
#[template(path = "subscribe.html")]
struct SubscribePage<'a> {
    f: Frame<'a>,
    offers: Vec<Offer>,
    choices: &'a [(String, String, bool)],
    message: Option<&'a str>,
}

/// The forms by which readers subscribe.
///
/// - `choices`: key and name of each component, and whether it is chosen.
/// - `message`: what was wrong with the last one.
pub(crate) fn subscribe_page(
    f: Frame<'_>,
    means: &[Means],
    choices: &[(String, String, bool)],
    message: Option<&str>,
) -> String {
    let offers = means.iter().map(|means| Offer {
        name: means.name(),
        text: f.t.text(means.text()),
        hint: f.t.text(match means {
            Means::Email => "subscribe_hint_email",
            Means::Webhook => "subscribe_hint_webhook",
            Means::Slack => "subscribe_hint_slack",
        }),
        field: match means {
            Means::Email => "email",
            Means::Webhook | Means::Slack => "url",
        },
        autocomplete: match means {
            Means::Email => "email",
            Means::Webhook | Means::Slack => "off",
        },
    });
    rendered(&SubscribePage {
        offers: offers.collect(),
        choices,
        f,
        message,
    })
}

#[derive(Template)]
#[template(path = "decide.html")]
struct DecidePage<'a> {
    f: Frame<'a>,
    question: &'a str,
    action: &'a str,
    link: &'a str,
    button: &'a str,
    choices: &'a [(String, String, bool)],
}

/// A question with a button, behind a link of a message.
///
/// - the second of `(question, action, button)`: the last part of the path.
/// - `choices`: components among which it may be chosen instead.
pub(crate) fn decide_page(
    f: Frame<'_>,
    (question, action, button): (&str, &str, &str),
    link: &str,
    choices: &[(String, String, bool)],
) -> String {
    rendered(&DecidePage {
        f,
        question,
        action,
        link,
        button,
        choices,
    })
}

#[derive(Template)]
#[template(path = "embed.html")]
struct Embed<'a> {
    f: Frame<'a>,
    overall: &'static str,
    overall_text: &'static str,
    href: String,
}

/// A link with the overall state, to be framed by other sites.
pub(crate) fn embed(f: Frame<'_>, snapshot: &Snapshot) -> String {
    rendered(&Embed {
        overall: snapshot.overall.name(),
        overall_text: f.t.text(snapshot.overall.overall()),
        href: f.home(),
        f,
    })
}
