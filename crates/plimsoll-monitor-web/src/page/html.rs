//! Snapshots as HTML, in the language of the reader.

mod card;

mod charts;

mod component;

mod draw;

mod forms;

mod past;

mod theme;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use askama::Template;
use jiff::civil::Date;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::escaped_html;
use plimsoll_monitor::config::{ApiToken, Language};
use plimsoll_monitor::detect::uptime::Uptime;
use plimsoll_monitor::detect::window::Window as MaintenanceWindow;
use plimsoll_monitor::time::Timestamp;
use ring::digest::{SHA256, digest};

use crate::language::Texts as _;
use crate::page::PagePlan;
use crate::page::html::card::Card;
use crate::page::html::past::PastDay;
use crate::page::snapshot::{
    Completed, Component, DAYS, Day, MaintenancePhase, NEAR, PublicIncident, Snapshot, State,
};

pub(crate) use crate::page::html::card::{incident_page, maintenance_page, phase_text};
pub(crate) use crate::page::html::charts::{chart, phases};
pub(crate) use crate::page::html::component::{WINDOWS, Window, component_page};
pub(crate) use crate::page::html::draw::{icon, sparkline, tab_icon};
pub(crate) use crate::page::html::forms::{decide_page, message_page, subscribe_page};

const STYLE: &str = include_str!("assets/page.css");
pub(crate) const SCRIPT: &str = include_str!("assets/page.js");

/// Planned occurrences of one maintenance window on a page.
pub(crate) const PLANNED: usize = 3;

/// Past incidents of the page are from so many days.
pub(crate) const PAST_DAYS: u64 = 14;

/// The frame of all pages.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    languages: [Language; Language::ALL.len()],
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
    let theme = &plan.theme;
    let style = [
        plimsoll_model::look::STYLE,
        plimsoll_report::plot::STYLE,
        STYLE,
        accent.as_deref().unwrap_or_default(),
        theme::of_font(theme.font),
        if theme.is_compact { theme::COMPACT } else { "" },
        theme::of_bars(theme.bars),
        theme.css.as_deref().unwrap_or_default(),
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

    fn row(&self, component: &Component) -> Row {
        let percent = component.uptime.ratio().map(|ratio| self.t.percent(ratio));
        let shown = percent.unwrap_or_else(|| self.t.text("day_unknown").to_owned());
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
            path: segment(&component.key),
            key: component.key.clone(),
            name: component.name.clone(),
            about: component.about.clone(),
            state: component.state.name(),
            text: self.t.text(component.state.text()),
            strip,
            days: self.strip(&component.days),
            uptime: self.uptime(&component.uptime, component.days.len()),
            near_uptime: self.near_uptime(&component.near),
            latency,
            latency_title: title.unwrap_or_default(),
            spark: sparkline(&component.hours),
        }
    }

    /// The label beside the bars of so many days.
    fn uptime(&self, uptime: &Uptime, days: usize) -> String {
        match uptime.ratio() {
            Some(ratio) => self
                .t
                .with("uptime", "percent", &self.t.percent(ratio))
                .replace("{n}", &days.to_string()),
            None => self.t.text("uptime_none").to_owned(),
        }
    }

    /// The label of a phone, which has room for the share alone; the days are beside it.
    fn near_uptime(&self, uptime: &Uptime) -> String {
        match uptime.ratio() {
            Some(ratio) => self.t.percent(ratio),
            None => self.t.text("uptime_none").to_owned(),
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
                escaped_html(&text)
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
    /// For the days of a phone's strip.
    near_uptime: String,
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
    maintenance: Vec<Card>,
    /// To come.
    planned: Vec<Card>,
    groups: Vec<GroupRows>,
    /// Incidents that are over, by day.
    past: Vec<PastDay>,
    no_incidents: String,
    far: String,
    near: String,
    until: String,
}

/// The page itself.
///
/// - `stale`: the text and the time of a state that is not the present one.
pub(crate) fn status_page(
    f: Frame<'_>,
    snapshot: &Snapshot,
    stale: Option<(&'static str, Timestamp)>,
) -> String {
    let t = f.t;
    let (active, mut planned): (Vec<_>, Vec<_>) = snapshot
        .maintenance
        .iter()
        .partition(|one| one.phase == MaintenancePhase::InProgress);
    // The calendar has the others.
    let mut shown: HashMap<Option<*const MaintenanceWindow>, usize> = HashMap::new();
    planned.retain(|one| {
        let window = one.windows.first().map(Arc::as_ptr);
        let count = shown.entry(window).or_default();
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
        stale: stale.map(|(text, time)| t.with(text, "time", &f.time(time))),
        active: snapshot.active().map(|one| f.card(one)).collect(),
        maintenance: active.into_iter().map(|one| f.maintenance(one)).collect(),
        planned: f.described_once(planned.into_iter()).collect(),
        groups: groups.collect(),
        past: f.past_days(snapshot),
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

/// A text as a segment of a path.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
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
    entries: Vec<Card>,
    /// For windows with more occurrences.
    omitted: Vec<String>,
}

/// The incidents that reach into a month, and the maintenance that began in it.
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
    // An outage across the end of a month is part of both.
    let of_month = incidents.iter().filter(|one| {
        let until = one.resolved.unwrap_or(now).max(one.started);
        f.date(one.started).first_of_month() <= first && f.date(until).first_of_month() >= first
    });
    let mut entries: Vec<_> = of_month.map(|one| (one.started, f.brief(one))).collect();
    let has_incidents = !entries.is_empty();
    let maintained = completed.all.iter();
    let starts = maintained.clone().map(|one| one.from);
    entries.extend(starts.zip(f.described_once(maintained)));
    entries.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let omitted = completed.omitted.iter().map(|(name, count)| {
        let text = f.t.with("maintenance_more", "name", name);
        text.replace("{n}", &count.to_string())
    });
    rendered(&HistoryPage {
        month: f.t.month(first),
        previous: month(moved(-1).unwrap_or(first)),
        next: moved(1).filter(|next| *next <= this_month).map(month),
        has_incidents,
        entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        omitted: omitted.collect(),
        f,
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
