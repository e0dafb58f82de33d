//! `[[notify]]`: which notices go where.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::AddressFilter;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::{MonitorPlan, Source};
use crate::detect::Resolution;
use crate::notify::channel::{CHANNELS, Notifier};
use crate::notify::message::{Message, NoticeKind};
use crate::notify::oncall::OnCallPlan;
use crate::notify::settings::Settings;
use crate::store::timestamp::Timestamp;

/// A channel with the notices that it gets.
#[derive(Debug, Clone)]
pub struct NotifyPlan {
    /// In the outbox and the log.
    pub name: String,
    /// Source of the definition.
    pub source: Source,
    /// Which addresses it may reach; absent for all.
    pub(crate) filter: Option<AddressFilter>,
    /// The rotations that it is a member of; while it is on call in none of them, what opens goes to others.
    pub rotations: Vec<Arc<OnCallPlan>>,
    /// The kind of its receiver, as configurations name it.
    pub channel: String,
    /// The form of its messages.
    pub notifier: Arc<dyn Notifier>,
    /// The notices that it receives.
    pub kinds: Vec<NoticeKind>,
    /// The keys of its monitors; all if it is absent.
    pub monitors: Option<HashSet<String>>,
    /// An incident is reported once it has been open for so long and is not acknowledged.
    pub after: Duration,
    /// Between two reminders of an open incident that is not acknowledged.
    pub remind: Option<Duration>,
    /// The title of messages.
    pub title: Option<Template>,
    /// The text of messages.
    pub text: Option<Template>,
}

/// A text with placeholders such as `{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

/// The facts that messages are made of.
#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) kind: NoticeKind,
    /// How it ended, of an end.
    pub(crate) ended: Option<Resolution>,
    pub(crate) plan: &'a MonitorPlan,
    pub(crate) reason: &'a str,
    pub(crate) incident: String,
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) link: Option<String>,
}

const PLACEHOLDERS: [&str; 7] = ["name", "group", "key", "state", "reason", "since", "link"];

impl Template {
    /// Fails with the first placeholder that is not known.
    fn parse(text: &str) -> Result<Self, String> {
        for part in text.split('{').skip(1) {
            let name = part.split('}').next().unwrap_or_default();
            if !PLACEHOLDERS.contains(&name) {
                let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
                return Err(format!("`{{{name}}}` is not one of {known}"));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Values are put in at once, so that a value that looks like a placeholder stays as it is.
    fn filled(&self, facts: &Facts<'_>) -> String {
        let mut filled = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            let (name, after) = behind.split_once('}').unwrap_or((behind, ""));
            let since = facts.since.to_string();
            filled.push_str(match name {
                "name" => &facts.plan.name,
                "group" => &facts.plan.group,
                "key" => &facts.plan.key,
                "state" => state(facts.kind, facts.ended),
                "reason" => facts.reason,
                "since" => &since,
                _ => facts.link.as_deref().unwrap_or_default(),
            });
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

/// The name of a monitor with that of its group.
pub(crate) fn full_name(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{group}/{name}")
    }
}

/// The title of a message without a template.
pub(crate) fn title(name: &str, kind: NoticeKind, ended: Option<Resolution>) -> String {
    let was = if kind == NoticeKind::DataAgain {
        "had no results"
    } else {
        "was down"
    };
    match ended {
        None | Some(Resolution::Recovery) => format!("{name} is {}", state(kind, None)),
        Some(ended) => format!("{name} was {} while it {was}", state(kind, Some(ended))),
    }
}

const fn state(kind: NoticeKind, ended: Option<Resolution>) -> &'static str {
    match ended {
        None | Some(Resolution::Recovery) => {}
        Some(Resolution::Operator) => return "closed by an operator",
        Some(Resolution::Paused) => return "paused",
        Some(Resolution::Removed) => return "removed",
    }
    match kind {
        NoticeKind::Opened => "down",
        NoticeKind::Reminder => "still down",
        NoticeKind::Resolved => "up again",
        NoticeKind::NoData => "without results",
        NoticeKind::DataAgain => "with results again",
        NoticeKind::BudgetBurning => "using its error budget up too fast",
        NoticeKind::BudgetSteady => "within its error budget again",
        NoticeKind::Test => "tested",
    }
}

impl NotifyPlan {
    /// Whether it is sent notices of a kind about a monitor.
    pub(crate) fn wants(&self, kind: NoticeKind, key: &str) -> bool {
        let is_of = self.monitors.as_ref();
        self.kinds.contains(&kind) && is_of.is_none_or(|monitors| monitors.contains(key))
    }

    /// Whether it is on call, if it takes turns at all.
    pub(crate) fn is_on_call(&self, at: Timestamp) -> bool {
        let mut rotations = self.rotations.iter();
        self.rotations.is_empty() || rotations.any(|rotation| rotation.who(at) == self.name)
    }

    /// The message of its templates.
    pub(crate) fn message(&self, facts: &Facts<'_>) -> Message {
        let plan = facts.plan;
        let name = full_name(&plan.group, &plan.name);
        let title = || title(&name, facts.kind, facts.ended);
        let text = || {
            if facts.kind.is_trouble() {
                facts.reason.to_owned()
            } else {
                String::new()
            }
        };
        let filled = |template: &Option<Template>| template.as_ref().map(|it| it.filled(facts));
        Message {
            kind: facts.kind,
            title: filled(&self.title).unwrap_or_else(title),
            text: filled(&self.text).unwrap_or_else(text),
            monitor: plan.key.clone(),
            incident: facts.incident.clone(),
            at: facts.at,
            since: facts.since,
            link: facts.link.clone(),
        }
    }
}

/// Compiles all channels.
pub(crate) fn compile<'t>(
    tables: Vec<Table<'t>>,
    monitors: &[MonitorPlan],
    (rotations, filter): (&[Arc<OnCallPlan>], Option<AddressFilter>),
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Vec<Arc<NotifyPlan>> {
    let mut names = HashSet::new();
    let plans = tables.into_iter().filter_map(|table| {
        let mut plan = one(table, monitors, environment, &mut names)?;
        let mine = rotations.iter().filter(|one| one.names(&plan.name));
        plan.rotations = mine.cloned().collect();
        plan.filter.clone_from(&filter);
        Some(Arc::new(plan))
    });
    plans.collect()
}

/// Compiles a channel that is kept in the store, which names no variable of the environment.
///
/// - `others`: channels that are there already.
pub(crate) fn compile_one(
    table: Table<'_>,
    monitors: &[MonitorPlan],
    (rotations, filter): (&[Arc<OnCallPlan>], Option<AddressFilter>),
    others: &[Arc<NotifyPlan>],
) -> Option<Arc<NotifyPlan>> {
    let mut names = others.iter().map(|other| other.name.clone()).collect();
    let mut plan = one(table, monitors, &|_| None, &mut names)?;
    let mine = rotations.iter().filter(|one| one.names(&plan.name));
    plan.rotations = mine.cloned().collect();
    plan.source = Source::Store;
    plan.filter = filter;
    Some(Arc::new(plan))
}

fn one<'t>(
    mut table: Table<'t>,
    monitors: &[MonitorPlan],
    environment: &'t dyn Fn(&str) -> Option<String>,
    names: &mut HashSet<String>,
) -> Option<NotifyPlan> {
    let name = name(&mut table, names);
    let notifier = notifier(&mut table, environment);
    let kinds = match table.take("on") {
        None => Some(NoticeKind::ALL.to_vec()),
        Some(value) => kinds(value),
    };
    let only = table.take("monitors").map(|value| chosen(value, monitors));
    let after = table.duration("after").unwrap_or_default();
    let remind = table.take("remind").and_then(|value| {
        let parsed = plimsoll_model::parse_duration(as_text(&value)?);
        match value.check(parsed) {
            Some(remind) if remind < Duration::from_mins(1) => {
                value.wrong("must be a minute or more")
            }
            remind => remind,
        }
    });
    let mut template = |key| {
        let value = table.take(key)?;
        value.check(Template::parse(as_text(&value)?))
    };
    let (title, text) = (template("title"), template("text"));
    table.finish();
    let (channel, notifier) = notifier?;
    Some(NotifyPlan {
        name: name?,
        source: Source::File,
        filter: None,
        rotations: Vec::new(),
        channel,
        notifier,
        kinds: kinds?,
        monitors: only,
        after,
        remind,
        title,
        text,
    })
}

fn name(table: &mut Table<'_>, names: &mut HashSet<String>) -> Option<String> {
    let Some(value) = table.take("name") else {
        table.missing("name", "what the log and the outbox call the channel");
        return None;
    };
    let name = as_text(&value)?;
    if name == crate::notify::SUBSCRIBERS {
        return value.wrong(format!(
            "`{name}` is the name of messages to readers of pages"
        ));
    }
    if names.insert(name.to_owned()) {
        Some(name.to_owned())
    } else {
        value.wrong(format!("`{name}` is the name of another channel"))
    }
}

/// The channel whose key the table has, with that key.
fn notifier<'t>(
    table: &mut Table<'t>,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<(String, Arc<dyn Notifier>)> {
    let given: Vec<_> = CHANNELS.iter().filter(|(key, _)| table.has(key)).collect();
    let [(key, compile)] = given.as_slice() else {
        // Taking them all keeps each from being an unknown key too.
        for (key, _) in CHANNELS {
            table.take(key);
        }
        let known = CHANNELS.map(|(key, _)| key).join(", ");
        table.wrong(
            format!("exactly one of {known} says where notices go"),
            None,
        );
        return None;
    };
    let mut settings = Settings::new(table.take(key)?.table()?, environment);
    let notifier = compile(&mut settings);
    settings.table.finish();
    Some(((*key).to_owned(), notifier?))
}

fn kinds(value: Value<'_>) -> Option<Vec<NoticeKind>> {
    let elements = value.elements();
    let kinds = elements.iter().map(|value| {
        let text = as_text(value)?;
        let found = NoticeKind::ALL.into_iter().find(|kind| kind.name() == text);
        if found.is_none() {
            let known = NoticeKind::ALL.map(NoticeKind::name).join(", ");
            value.wrong::<()>(format!("`{text}` is not one of {known}"));
        }
        found
    });
    kinds.collect::<Vec<_>>().into_iter().collect()
}

/// The keys of monitors and of those of groups.
fn chosen(value: Value<'_>, monitors: &[MonitorPlan]) -> HashSet<String> {
    let mut keys = HashSet::new();
    for value in value.elements() {
        let Some(text) = as_text(&value) else {
            continue;
        };
        let is_meant = |monitor: &&MonitorPlan| {
            monitor.key == text || monitor.name == text || monitor.group == text
        };
        let found: Vec<_> = monitors.iter().filter(is_meant).collect();
        if found.is_empty() {
            value.wrong::<()>(format!("there is no monitor and no group `{text}`"));
        }
        keys.extend(found.into_iter().map(|monitor| monitor.key.clone()));
    }
    keys
}
