//! What a request sets of a check. Fields without a counterpart here are refused by their names.

use std::collections::BTreeSet;

use axum::body::{Body, to_bytes};
use plimsoll_monitor::config::EveryOrCron;
use serde_json::{Map, Value};
use toml::Table;

use crate::api::healthchecks::{Check, MOST_BODY, Refusal, channels_of, id_of};
use crate::state::Api;

/// Seconds of a period and of a grace.
const DURATIONS: std::ops::RangeInclusive<u64> = 60..=31_536_000;

/// Characters of names and slugs, and of descriptions.
const MOST_NAME: usize = 100;
const MOST_DESC: usize = 10_000;

/// Fields by which a check is looked for.
const UNIQUE: [&str; 5] = ["name", "slug", "tags", "timeout", "grace"];

/// Texts that classify what jobs send by mail; only empty ones do nothing.
const TEXTS_OF_MAIL: [&str; 6] = [
    "methods",
    "subject",
    "subject_fail",
    "start_kw",
    "success_kw",
    "failure_kw",
];

/// The same that are true or false.
const SWITCHES_OF_MAIL: [&str; 4] = [
    "filter_subject",
    "filter_body",
    "filter_http_body",
    "filter_default_fail",
];

/// What is given.
#[derive(Debug, Default)]
pub(super) struct Spec {
    name: Option<String>,
    slug: Option<String>,
    tags: Option<BTreeSet<String>>,
    desc: Option<String>,
    timeout: Option<u64>,
    grace: Option<u64>,
    schedule: Option<String>,
    tz: Option<String>,
    manual_resume: Option<bool>,
    channels: Option<String>,
    unique: Vec<String>,
}

/// A sentence about a field, as Healthchecks writes it.
fn wrong(field: &str, what: &str) -> Refusal {
    Refusal::invalid(format!("json validation error: {field} {what}"))
}

struct Fields(Map<String, Value>);

impl Fields {
    fn text(&mut self, name: &str, most: usize) -> Result<Option<String>, Refusal> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.chars().count() > most => {
                Err(wrong(name, "is too long"))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "is not a string")),
        }
    }

    fn seconds(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(seconds) if seconds < 60 => Err(wrong(name, "is too small")),
            Some(seconds) => match u64::try_from(seconds) {
                Ok(seconds) if DURATIONS.contains(&seconds) => Ok(Some(seconds)),
                _ => Err(wrong(name, "is too large")),
            },
            None => Err(wrong(name, "is not a number")),
        }
    }

    fn boolean(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Bool(is_set)) => Ok(Some(is_set)),
            Some(_) => Err(wrong(name, "is not a boolean")),
        }
    }

    fn unique(&mut self) -> Result<Vec<String>, Refusal> {
        let all = match self.0.remove("unique") {
            None => return Ok(Vec::new()),
            Some(Value::Array(all)) => all,
            Some(_) => return Err(wrong("unique", "is not an array")),
        };
        let known = |value: &Value| {
            let name = value.as_str().filter(|name| UNIQUE.contains(name));
            name.map(str::to_owned)
                .ok_or_else(|| wrong("an item in 'unique'", "has unexpected value"))
        };
        all.iter().map(known).collect()
    }

    /// Refuses fields that are not supported.
    fn finish(mut self) -> Result<(), Refusal> {
        const UNSUPPORTED: &str = "is not supported: pings come by HTTP, with any method";

        for name in TEXTS_OF_MAIL {
            if self
                .text(name, usize::MAX)?
                .is_some_and(|it| !it.is_empty())
            {
                return Err(wrong(name, UNSUPPORTED));
            }
        }
        for name in SWITCHES_OF_MAIL {
            if self.boolean(name)? == Some(true) {
                return Err(wrong(name, UNSUPPORTED));
            }
        }
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(wrong(name, "is not supported")),
        }
    }
}

impl Spec {
    /// The body of a request; an empty one sets nothing.
    pub(super) async fn read(body: Body) -> Result<Self, Refusal> {
        let content = to_bytes(body, MOST_BODY).await;
        let content = content.map_err(|_| Refusal::invalid("could not parse request body"))?;
        if content.is_empty() {
            return Ok(Self::default());
        }
        let value = serde_json::from_slice(&content);
        match value.map_err(|_| Refusal::invalid("could not parse request body"))? {
            Value::Object(fields) => Self::of_fields(fields),
            _ => Err(wrong("value", "is not an object")),
        }
    }

    /// A check that has only a slug.
    pub(super) fn of_slug(slug: &str) -> Self {
        Self {
            name: Some(slug.to_owned()),
            slug: Some(slug.to_owned()),
            ..Self::default()
        }
    }

    fn of_fields(fields: Map<String, Value>) -> Result<Self, Refusal> {
        let mut fields = Fields(fields);
        // It has been read before.
        fields.0.remove("api_key");
        let name = fields.text("name", MOST_NAME)?;
        let name = name.filter(|name| !name.trim().is_empty());
        let slug = fields.text("slug", MOST_NAME)?;
        let is_plain =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if slug
            .as_ref()
            .is_some_and(|slug| !slug.chars().all(is_plain))
        {
            return Err(wrong("slug", "does not match pattern"));
        }
        let tags = fields.text("tags", MOST_DESC)?;
        let spec = Self {
            name,
            slug,
            tags: tags.map(|tags| tags.split_whitespace().map(str::to_owned).collect()),
            desc: fields.text("desc", MOST_DESC)?,
            timeout: fields.seconds("timeout")?,
            grace: fields.seconds("grace")?,
            schedule: fields.text("schedule", MOST_NAME)?,
            tz: fields.text("tz", MOST_NAME)?,
            manual_resume: fields.boolean("manual_resume")?,
            channels: fields.text("channels", MOST_DESC)?,
            unique: fields.unique()?,
        };
        fields.finish()?;
        if let Some(schedule) = &spec.schedule
            && schedule
                .parse::<plimsoll_monitor::detect::window::Cron>()
                .is_err()
        {
            return Err(wrong("schedule", "is not a valid cron expression"));
        }
        if let Some(tz) = &spec.tz
            && jiff::tz::TimeZone::get(tz).is_err()
        {
            return Err(wrong("tz", "is not a valid timezone"));
        }
        Ok(spec)
    }

    /// Whether a check has the values of all fields that `unique` names, of which there is one at least.
    pub(super) fn is_same_as(&self, check: &Check) -> bool {
        let plan = &check.view.plan;
        let is_same = |field: &String| match field.as_str() {
            "name" => self.name.as_ref() == Some(&plan.name),
            "slug" => self.slug == Some(check.slug()),
            "tags" => self.tags == Some(plan.tags.iter().cloned().collect()),
            "timeout" => match &check.plan.due {
                EveryOrCron::Every(period) => self.timeout == Some(period.as_secs()),
                EveryOrCron::Cron(..) => false,
            },
            _ => self.grace == Some(check.plan.grace.as_secs()),
        };
        !self.unique.is_empty() && self.unique.iter().all(is_same)
    }

    /// The definition of a new check.
    pub(super) fn added(&self, uuid: &str) -> Table {
        const DAY: u64 = 86_400;
        const HOUR: u64 = 3_600;

        let mut heartbeat = Table::new();
        heartbeat.insert("token".to_owned(), uuid.into());
        heartbeat.insert("every".to_owned(), duration(DAY));
        heartbeat.insert("grace".to_owned(), duration(HOUR));
        heartbeat.insert("resume_on_ping".to_owned(), true.into());
        let mut table = Table::new();
        let slug = self.slug.as_deref().filter(|slug| !slug.is_empty());
        table.insert("name".to_owned(), slug.unwrap_or(uuid).into());
        table.insert("heartbeat".to_owned(), heartbeat.into());
        self.apply(&mut table);
        table
    }

    /// Changes what is given in a definition.
    pub(super) fn apply(&self, table: &mut Table) {
        if let Some(name) = &self.name {
            table.insert("name".to_owned(), name.as_str().into());
        }
        if let Some(tags) = &self.tags {
            let tags: Vec<_> = tags.iter().cloned().collect();
            set(table, "tags", (!tags.is_empty()).then(|| tags.into()));
        }
        let Some(toml::Value::Table(heartbeat)) = table.get_mut("heartbeat") else {
            return;
        };
        if let Some(slug) = &self.slug {
            set(heartbeat, "slug", text(slug));
        }
        if let Some(desc) = &self.desc {
            set(heartbeat, "about", text(desc));
        }
        if let Some(grace) = self.grace {
            set(heartbeat, "grace", Some(duration(grace)));
        }
        // A schedule takes precedence, as there.
        if let Some(schedule) = &self.schedule {
            set(heartbeat, "cron", text(schedule));
            set(heartbeat, "every", None);
        } else if let Some(timeout) = self.timeout {
            set(heartbeat, "every", Some(duration(timeout)));
            set(heartbeat, "cron", None);
            set(heartbeat, "zone", None);
        }
        if let Some(tz) = &self.tz
            && heartbeat.contains_key("cron")
        {
            set(heartbeat, "zone", text(tz));
        }
        if let Some(manual) = self.manual_resume {
            set(heartbeat, "resume_on_ping", Some((!manual).into()));
        }
    }

    /// Channels are no part of a check here: each names its monitors. What is in force already may be given.
    pub(super) fn check_channels(&self, api: &Api, key: &str) -> Result<(), Refusal> {
        let Some(given) = &self.channels else {
            return Ok(());
        };
        let all = api.handle.board.channels();
        let chosen: BTreeSet<&str> = match given.as_str() {
            "*" => all.iter().map(|one| one.name.as_str()).collect(),
            "" => BTreeSet::new(),
            list => {
                let found = list.split(',').map(|wanted| {
                    let mut all = all.iter();
                    let found = all.find(|one| one.name == wanted || id_of(&one.name) == wanted);
                    let why = || Refusal::invalid(format!("invalid channel identifier: {wanted}"));
                    found.map(|one| one.name.as_str()).ok_or_else(why)
                });
                found.collect::<Result<_, _>>()?
            }
        };
        let present = channels_of(api, key);
        let present: BTreeSet<_> = present.iter().map(|one| one.name.as_str()).collect();
        if chosen == present {
            return Ok(());
        }
        let why = "cannot be changed here: `monitors` of each [[notify]] says what it reports on";
        Err(wrong("channels", why))
    }
}

fn duration(seconds: u64) -> toml::Value {
    format!("{seconds}s").into()
}

fn text(text: &str) -> Option<toml::Value> {
    (!text.is_empty()).then(|| text.into())
}

/// Sets a key, or removes it.
fn set(table: &mut Table, key: &str, value: Option<toml::Value>) {
    match value {
        Some(value) => table.insert(key.to_owned(), value),
        None => table.remove(key),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Spec, String> {
        let Value::Object(fields) = value else {
            panic!("{value} is no object");
        };
        Spec::of_fields(fields).map_err(|refusal| refusal.message)
    }

    #[test]
    fn what_is_given_changes_a_definition_and_nothing_else() {
        let mut table: Table = "name = \"a\"\ngroup = \"jobs\"\nconfirm = 2\ntags = [\"x\"]\n[heartbeat]\ntoken = \"0123456789abcdef\"\nevery = \"1h\"\nmax_runtime = \"5m\"\nslug = \"old\"\n"
            .parse()
            .unwrap();
        let spec = read(json!({
            "api_key": "k", "name": "b", "tags": "two one", "desc": "backs up", "schedule": "0 3 * * *",
            "timeout": 60, "tz": "Europe/Riga", "grace": 120, "slug": "", "manual_resume": true, "methods": "",
            "filter_body": false,
        }));
        spec.unwrap().apply(&mut table);
        let expected = "name = \"b\"\ngroup = \"jobs\"\nconfirm = 2\ntags = [\"one\", \"two\"]\n[heartbeat]\ntoken = \"0123456789abcdef\"\nmax_runtime = \"5m\"\nabout = \"backs up\"\ngrace = \"120s\"\ncron = \"0 3 * * *\"\nzone = \"Europe/Riga\"\nresume_on_ping = false\n";
        assert_eq!(table, expected.parse().unwrap());
        read(json!({ "timeout": 300, "tags": "", "desc": "" }))
            .unwrap()
            .apply(&mut table);
        let expected = "name = \"b\"\ngroup = \"jobs\"\nconfirm = 2\n[heartbeat]\ntoken = \"0123456789abcdef\"\nmax_runtime = \"5m\"\ngrace = \"120s\"\nevery = \"300s\"\nresume_on_ping = false\n";
        assert_eq!(table, expected.parse().unwrap());
    }

    #[test]
    fn fields_are_refused_by_their_names() {
        for (value, expected) in [
            (json!({ "name": 1 }), "name is not a string"),
            (json!({ "name": "x".repeat(101) }), "name is too long"),
            (json!({ "slug": "A b" }), "slug does not match pattern"),
            (json!({ "timeout": 59 }), "timeout is too small"),
            (json!({ "grace": 31_536_001 }), "grace is too large"),
            (json!({ "grace": "1h" }), "grace is not a number"),
            (
                json!({ "manual_resume": 1 }),
                "manual_resume is not a boolean",
            ),
            (json!({ "unique": "name" }), "unique is not an array"),
            (
                json!({ "unique": ["desc"] }),
                "an item in 'unique' has unexpected value",
            ),
            (
                json!({ "schedule": "Mon..Fri 9:00" }),
                "schedule is not a valid cron expression",
            ),
            (
                json!({ "tz": "Mars/Olympus" }),
                "tz is not a valid timezone",
            ),
            (json!({ "methods": "POST" }), "methods is not supported"),
            (json!({ "success_kw": "OK" }), "success_kw is not supported"),
            (
                json!({ "filter_subject": true }),
                "filter_subject is not supported",
            ),
            (json!({ "nonsense": 1 }), "nonsense is not supported"),
        ] {
            let message = read(value.clone()).unwrap_err();
            let expected = format!("json validation error: {expected}");
            assert!(message.starts_with(&expected), "{value}: {message}");
        }
    }
}
