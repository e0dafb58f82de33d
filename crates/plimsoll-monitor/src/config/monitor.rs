//! `[[monitor]]` and `[defaults]`: what all kinds have.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::Condition;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::agent::{self, Regions};
use crate::config::file::Context;
use crate::config::plan::{MonitorPlan, Retries, What, key_of};
use crate::config::{kinds, mask};
use crate::detect::budget::{self, Slo};
use crate::detect::{DetectPolicy, FlapRule, RegionRule};
use crate::probe::reading::{Expectation, GatusDisplay};
use crate::schedule::{CatchUp, Timing};

/// The least interval.
const SHORTEST: Duration = Duration::from_millis(100);

/// Defaults for monitors that do not say otherwise.
#[derive(Debug, Clone)]
pub(super) struct Defaults {
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    jitter: f64,
    policy: DetectPolicy,
    retries: Retries,
    /// The regions that check; empty for that of this process.
    from: Vec<String>,
    slo: Option<Slo>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            timeout: Duration::from_secs(10),
            jitter: 0.05,
            policy: DetectPolicy::default(),
            retries: Retries {
                most: 0,
                pause: Duration::from_secs(1),
            },
            from: Vec::new(),
            slo: None,
        }
    }
}

impl Defaults {
    pub(super) fn compile(mut table: Table<'_>, regions: &Regions) -> Self {
        let defaults = Self::default().changed(&mut table, regions);
        table.finish();
        defaults
    }

    /// With the keys of a table.
    fn changed(&self, table: &mut Table<'_>, regions: &Regions) -> Self {
        let mut new = self.clone();
        if let Some(value) = table.take_value("from") {
            new.from = agent::from(value, regions).unwrap_or_default();
        }
        if let Some(interval) = positive(table, "interval", SHORTEST) {
            new.interval = interval;
        }
        if let Some(timeout) = positive(table, "timeout", Duration::from_millis(1)) {
            new.timeout = timeout;
        }
        if let Some(value) = table.take_value("jitter") {
            let percent = as_text(&value).and_then(|text| {
                let number = text
                    .strip_suffix('%')
                    .and_then(|text| text.trim().parse::<f64>().ok());
                let number = number.filter(|number| (0.0..=100.0).contains(number));
                number.or_else(|| {
                    value.wrong(format!(
                        "`{text}` is not a share of the interval such as \"5%\""
                    ))
                })
            });
            new.jitter = percent.map_or(new.jitter, |percent| percent / 100.0);
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(confirm) = table.count("confirm", 1..=1000) {
            new.policy.confirm = count(confirm);
        }
        if let Some(recover) = table.count("recover", 1..=1000) {
            new.policy.recover = count(recover);
        }
        if let Some(hold) = table.duration("hold") {
            new.policy.hold = hold;
        }
        if let Some(value) = table.take_value("regions") {
            new.policy.regions = region_rule(&value).unwrap_or(new.policy.regions);
        }
        match table.take_value("flap") {
            None => {}
            Some(value) if value.is_false() => new.policy.flap = None,
            Some(value) => new.policy.flap = value.table().map(flap),
        }
        match table.boolean("no_data") {
            None => {}
            Some(reports) => new.policy.reports_no_data = reports,
        }
        match table.take_value("slo") {
            None => {}
            Some(value) if value.is_false() => new.slo = None,
            Some(value) => new.slo = budget::compile(value),
        }
        if let Some(retries) = table.count("retries", 0..=20) {
            new.retries.most = count(retries);
        }
        if let Some(pause) = table.duration("retry_pause") {
            new.retries.pause = pause;
        }
        new
    }

    /// The part of a monitor that agents get: how it is checked, and nothing about the consequences.
    fn work(&self, mut written: toml::Table) -> Arc<str> {
        const FOR_THE_CENTRE: [&str; 11] = [
            "from",
            "depends_on",
            "labels",
            "tags",
            "confirm",
            "recover",
            "hold",
            "regions",
            "flap",
            "no_data",
            "slo",
        ];

        for key in FOR_THE_CENTRE {
            written.remove(key);
        }
        let text = |duration: Duration| toml::Value::String(format!("{}ms", duration.as_millis()));
        written.insert("interval".to_owned(), text(self.interval));
        written.insert("timeout".to_owned(), text(self.timeout));
        written.insert("retry_pause".to_owned(), text(self.retries.pause));
        let most = i64::from(self.retries.most);
        written.insert("retries".to_owned(), toml::Value::Integer(most));
        let jitter = format!("{}%", self.jitter * 100.0);
        written.insert("jitter".to_owned(), toml::Value::String(jitter));
        written.to_string().into()
    }
}

/// A monitor, and the names of others in it.
pub(super) struct Compiled<'i> {
    pub(super) plan: MonitorPlan,
    pub(super) parents: Vec<Value<'i>>,
    pub(super) members: Vec<Value<'i>>,
}

pub(super) fn compile<'i>(
    mut table: Table<'i>,
    context: &mut Context,
    keys: &mut HashSet<String>,
) -> Option<Compiled<'i>> {
    let written = table.to_toml();
    let secrets = mask::known_secrets(&written);
    let name = if let Some(value) = table.take_value("name") {
        match as_text(&value) {
            Some(text) if text.trim().is_empty() => value.wrong("must not be empty"),
            text => one_line(&value, text?),
        }
    } else {
        table.missing("name", "what the monitor is called");
        None
    };
    let group = table
        .take_value("group")
        .map_or(Some(String::new()), |value| {
            one_line(&value, as_text(&value)?)
        });
    let group = group.unwrap_or_default();
    let key = name.as_deref().map(|name| key_of(&group, name));
    if let Some(key) = &key
        && !keys.insert(key.clone())
    {
        let hint = "give each monitor of a group its own name".to_owned();
        table.wrong(format!("another monitor has the key `{key}`"), Some(hint));
    }
    let names_regions = table.has("from");
    let settings = context.defaults.changed(&mut table, &context.regions);
    let own = context.regions.own();
    let is_remote = settings.from.iter().any(|region| region != own);
    // A file of this machine is not on that of an agent.
    let may_name_files = context.may_name_files;
    context.may_name_files &= !is_remote;
    let expect = conditions(&mut table, "expect");
    let warn_unless = conditions(&mut table, "warn_unless");
    let parents = table
        .take_value("depends_on")
        .map(Value::elements)
        .unwrap_or_default();
    let labels = labels(&mut table);
    let tags = tags(&mut table);
    let is_upside_down = table.boolean("upside_down").unwrap_or(false);
    if is_upside_down && warn_unless.as_ref().is_some_and(|all| !all.is_empty()) {
        table.wrong("`warn_unless` has no effect beside `upside_down`", None);
    }
    let kind = kinds::compile(&mut table, context, &settings, expect.as_deref());
    context.may_name_files = may_name_files;
    let has_probe = |kind: &kinds::Kind| matches!(kind.what, What::Probe(_));
    if names_regions && kind.as_ref().is_some_and(|(kind, _)| !has_probe(kind)) {
        let hint = "agents check what has a probe, such as `http`".to_owned();
        table.wrong("`from` has no effect on this kind", Some(hint));
    }
    if is_upside_down && kind.as_ref().is_some_and(|(kind, _)| !has_probe(kind)) {
        let hint = "it turns the verdict of a probe, such as `http`".to_owned();
        table.wrong("`upside_down` has no effect on this kind", Some(hint));
    }
    table.finish();
    let (kind, members) = kind?;
    let is_probed = has_probe(&kind);
    let work = (is_remote && is_probed).then(|| settings.work(written));
    let from = if is_remote && is_probed {
        settings.from.clone()
    } else {
        Vec::new()
    };
    let expect = match expect? {
        given if !given.is_empty() => given,
        _ => kind.expect,
    };
    let timing = match &kind.what {
        What::Probe(_) => Some(Timing {
            interval: interval_of(kind.name, settings.interval),
            jitter: settings.jitter,
            catch_up: CatchUp::Once,
        }),
        _ => None,
    };
    let mut policy = settings.policy;
    if matches!(kind.what, What::Probe(_)) {
        // Three results are missing.
        policy.silent_after = interval_of(kind.name, settings.interval) * 3 + settings.timeout;
    } else {
        // They are late by themselves, and their results are final.
        policy.reports_no_data = false;
        policy.silent_after = Duration::from_hours(24 * 365 * 100);
        (policy.confirm, policy.recover) = (1, 1);
    }
    let expectation = Expectation::Conditions {
        expect,
        warn_unless: warn_unless?,
    };
    let plan = MonitorPlan {
        key: key?,
        name: name?,
        group,
        kind: kind.name.to_owned(),
        what: kind.what,
        expectation: if is_upside_down {
            Expectation::UpsideDown(Box::new(expectation))
        } else {
            expectation
        },
        secrets: Arc::new(secrets),
        timing,
        retries: settings.retries,
        from,
        work,
        slo: settings.slo,
        policy,
        windows: Vec::new(),
        parents: Vec::new(),
        labels: labels?,
        tags: tags?,
        badge_millis: [50, 200, 300, 500, 750],
        display: GatusDisplay::default(),
    };
    Some(Compiled {
        plan,
        parents,
        members,
    })
}

/// A name that stands in logs, mails, feeds and metrics: none of it may look like another line of them.
fn one_line(value: &Value<'_>, text: &str) -> Option<String> {
    if text.contains(char::is_control) {
        return value.wrong("must be one line, without control characters");
    }
    Some(text.to_owned())
}

/// Registries limit how often they answer.
fn interval_of(kind: &str, interval: Duration) -> Duration {
    const LEAST: Duration = Duration::from_hours(1);

    if kind == "domain" {
        interval.max(LEAST)
    } else {
        interval
    }
}

/// A duration of at least `least`.
fn positive(table: &mut Table<'_>, key: &'static str, least: Duration) -> Option<Duration> {
    let value = table.take_value(key)?;
    let duration = value.check(plimsoll_model::parse_duration(as_text(&value)?))?;
    if duration < least {
        return value.wrong(format!("must be at least {least:?}"));
    }
    Some(duration)
}

/// None at all is fine; a wrong one is not.
fn conditions(table: &mut Table<'_>, key: &'static str) -> Option<Vec<Condition>> {
    let Some(value) = table.take_value(key) else {
        return Some(Vec::new());
    };
    let values = value.elements();
    let parsed: Vec<_> = values
        .iter()
        .map(|value| as_text(value).and_then(|text| value.check(Condition::parse(text))))
        .collect();
    parsed.into_iter().collect()
}

fn labels(table: &mut Table<'_>) -> Option<BTreeMap<String, String>> {
    let Some(mut table) = table.table("labels") else {
        return Some(BTreeMap::new());
    };
    let mut all = BTreeMap::new();
    let mut is_whole = true;
    for (name, value) in table.rest() {
        let is_name = !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            value.wrong::<()>("is not a name of a label: letters, digits and underscores");
        }
        match value.text() {
            Some(text) if is_name => {
                all.insert(name, text);
            }
            _ => is_whole = false,
        }
    }
    is_whole.then_some(all)
}

/// Short texts to search and filter by, each once and in order.
fn tags(table: &mut Table<'_>) -> Option<Vec<String>> {
    const MOST: usize = 40;

    let Some(value) = table.take_value("tags") else {
        return Some(Vec::new());
    };
    let mut tags = value.texts_with(|tag| {
        let is_tag = !tag.is_empty()
            && tag.chars().count() <= MOST
            && !tag.contains(|c: char| c == ',' || c.is_whitespace() || c.is_control());
        (!is_tag).then(|| {
            format!("`{tag}` is not a tag: 1 to {MOST} characters without spaces and commas")
        })
    })?;
    tags.sort();
    tags.dedup();
    Some(tags)
}

fn region_rule(value: &Value<'_>) -> Option<RegionRule> {
    if let toml::Value::Integer(count) = value.to_toml() {
        return match u32::try_from(count) {
            Ok(count) if count > 0 => Some(RegionRule::Count(count)),
            _ => value.wrong("must be at least 1"),
        };
    }
    match as_text(value)? {
        "any" => Some(RegionRule::Any),
        "majority" => Some(RegionRule::Majority),
        "all" => Some(RegionRule::All),
        other => value.wrong(format!(
            "`{other}` is not \"any\", \"majority\", \"all\" or a number"
        )),
    }
}

fn flap(mut table: Table<'_>) -> FlapRule {
    let default = FlapRule::default();
    let rule = FlapRule {
        opens: table
            .count("opens", 1..=1000)
            .map_or(default.opens, |opens| {
                u32::try_from(opens).unwrap_or(u32::MAX)
            }),
        within: table.duration("within").unwrap_or(default.within),
        quiet: table.duration("quiet").unwrap_or(default.quiet),
    };
    table.finish();
    rule
}
