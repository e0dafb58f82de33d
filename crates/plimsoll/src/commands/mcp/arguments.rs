//! Arguments of tools: one table for each tool, from which come the schema that a model reads, the check of what it sends, and the
//! flags of the command that is started.

use std::time::Duration;

use plimsoll_model::document::nearest;
use plimsoll_model::{Rate, parse_duration};
use serde_json::{Map, Value, json};

use super::bounds::Bounds;
use crate::confined::Target;
use crate::flags::number;
use crate::problem::Problem;

/// Texts are arguments of a process; the kernel allows each 128 KiB.
const LONGEST_TEXT: usize = 64 << 10;

/// Elements of a list.
const MOST_ELEMENTS: usize = 100;

/// Bodies are held in memory, several times.
const LONGEST_BODY: usize = 4 << 20;

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) passed: Passed,
    pub(super) doc: &'static str,
}

/// How an argument reaches the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// As the value of this flag, once for each element of a list; a switch is the flag alone.
    Flag(&'static str),
    /// Without a flag, in the order of the table.
    Positional,
    /// On standard input, which this flag names.
    Stdin(&'static str),
    /// By the tool itself.
    ByTool,
}

/// What an argument must be; what can be bounded is bounded by its kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Texts,
    /// The body of a request.
    Body,
    /// A URL of an allowed target.
    Url,
    /// Several of them.
    Urls,
    /// A whole number from one to this.
    Count(u64),
    /// A whole number within the bound of connections.
    Connections,
    /// Requests per second, within the bound.
    Rate,
    /// A duration within the bound.
    Time,
    Switch,
    Choice(&'static [&'static str]),
    /// A file or folder below the root.
    Path,
    /// Several of them.
    Paths,
}

/// The arguments of a call, checked.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// `--flag=value`, so that no value is taken for a flag.
    pub(super) flags: Vec<String>,
    pub(super) positional: Vec<String>,
    pub(super) stdin: Vec<u8>,
    values: Vec<(&'static str, Checked)>,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
enum Checked {
    Text(String),
    Texts(Vec<String>),
    Number(u64),
    Rate(Rate),
    Time(Duration),
    Targets(Vec<Target>),
    On(bool),
}

impl Argument {
    /// What a model reads about it.
    fn schema(&self, bounds: &Bounds) -> Value {
        let doc = self.doc;
        let bounded = |bound: String| format!("{doc}; at most {bound} here");
        let text = json!({ "type": "string", "maxLength": LONGEST_TEXT });
        let list =
            |item: Value| json!({ "type": "array", "items": item, "maxItems": MOST_ELEMENTS });
        let (mut schema, doc) = match self.kind {
            Kind::Text | Kind::Path => (text, doc.to_owned()),
            Kind::Texts | Kind::Paths => (list(text), doc.to_owned()),
            Kind::Body => (
                json!({ "type": "string", "maxLength": LONGEST_BODY }),
                doc.to_owned(),
            ),
            Kind::Url => (json!({ "type": "string" }), doc.to_owned()),
            Kind::Urls => (list(json!({ "type": "string" })), doc.to_owned()),
            Kind::Count(most) => (
                json!({ "type": "integer", "minimum": 1, "maximum": most }),
                doc.to_owned(),
            ),
            Kind::Connections => (
                json!({ "type": "integer", "minimum": 1, "maximum": bounds.connections }),
                doc.to_owned(),
            ),
            Kind::Rate => (
                json!({ "type": ["number", "string"] }),
                bounded(bounds.rate.to_string()),
            ),
            Kind::Time => (
                json!({ "type": ["number", "string"] }),
                bounded(format!("{:?}", bounds.duration)),
            ),
            Kind::Switch => (json!({ "type": "boolean" }), doc.to_owned()),
            Kind::Choice(words) => (json!({ "type": "string", "enum": words }), doc.to_owned()),
        };
        schema["description"] = doc.into();
        schema
    }

    fn check(&self, value: &Value, bounds: &Bounds) -> Result<Checked, String> {
        Ok(match self.kind {
            Kind::Text => Checked::Text(text(value, LONGEST_TEXT)?),
            Kind::Body => Checked::Text(text(value, LONGEST_BODY)?),
            Kind::Texts => Checked::Texts(texts(value, |text| Ok(text.to_owned()))?),
            Kind::Path => Checked::Text(bounds.admit_path(&text(value, LONGEST_TEXT)?)?),
            Kind::Paths => Checked::Texts(texts(value, |text| bounds.admit_path(text))?),
            Kind::Url => {
                let url = text(value, LONGEST_TEXT)?;
                Checked::Targets(vec![bounds.admit_url(&url)?])
            }
            Kind::Urls => {
                let mut targets = Vec::new();
                texts(value, |url| {
                    targets.push(bounds.admit_url(url)?);
                    Ok(url.to_owned())
                })?;
                Checked::Targets(targets)
            }
            Kind::Count(most) => Checked::Number(whole(value, most)?),
            Kind::Connections => {
                let number = whole(value, number::MOST_CONNECTIONS)?;
                bounds.admit_connections(number)?;
                Checked::Number(number)
            }
            Kind::Rate => {
                let rate =
                    number::positive_rate(&figure(value, "a rate such as 100 or \"5k/s\"")?)?;
                bounds.admit_rate(rate)?;
                Checked::Rate(rate)
            }
            Kind::Time => {
                let given = figure(value, "a time such as 10 (seconds) or \"500ms\"")?;
                let seconds = if value.is_number() { "s" } else { "" };
                let time = parse_duration(&format!("{given}{seconds}"));
                let time = time.map_err(|error| error.to_string())?;
                bounds.admit_duration(time)?;
                Checked::Time(time)
            }
            Kind::Switch => Checked::On(value.as_bool().ok_or("must be true or false")?),
            Kind::Choice(words) => {
                let word = text(value, LONGEST_TEXT)?;
                if !words.contains(&word.as_str()) {
                    return Err(format!("`{word}` is none of {}", words.join(", ")));
                }
                Checked::Text(word)
            }
        })
    }

    /// The texts that a command gets for the value.
    fn texts(&self, value: &Value) -> Vec<String> {
        let one = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match (self.kind, value) {
            (Kind::Time, Value::Number(seconds)) => vec![format!("{seconds}s")],
            (_, Value::Array(elements)) => elements.iter().map(one).collect(),
            (_, value) => vec![one(value)],
        }
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(
    arguments: &[Argument],
    required: &[&str],
    bounds: &Bounds,
) -> Map<String, Value> {
    let properties: Map<_, _> = arguments
        .iter()
        .map(|argument| (argument.name.to_owned(), argument.schema(bounds)))
        .collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("it was written as an object"),
    }
}

impl Call {
    /// Checks all arguments; every problem goes to `problems`.
    pub(super) fn read(
        arguments: &[Argument],
        required: &[&str],
        given: &Map<String, Value>,
        bounds: &Bounds,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut call = Self::default();
        let names: Vec<_> = arguments.iter().map(|argument| argument.name).collect();
        for name in given.keys().filter(|name| !names.contains(&name.as_str())) {
            let problem = Problem::with(&shortened(name), "unknown argument");
            problems.push(match nearest(name, &names) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("arguments are {}", names.join(", "))),
            });
        }
        for name in required.iter().filter(|name| !given.contains_key(**name)) {
            problems.push(Problem::with(name, "is required"));
        }
        for argument in arguments {
            let Some(value) = given.get(argument.name).filter(|value| !value.is_null()) else {
                continue;
            };
            match argument.check(value, bounds) {
                Ok(checked) => call.add(argument, value, checked),
                Err(message) => problems.push(Problem::with(argument.name, message)),
            }
        }
        call
    }

    fn add(&mut self, argument: &Argument, value: &Value, checked: Checked) {
        // Paths are passed on as they were admitted.
        let texts = match (&checked, argument.kind) {
            (Checked::Text(path), Kind::Path) => vec![path.clone()],
            (Checked::Texts(paths), Kind::Paths) => paths.clone(),
            _ => argument.texts(value),
        };
        match argument.passed {
            Passed::Flag(flag) => match checked {
                Checked::On(true) => self.flags.push(flag.to_owned()),
                Checked::On(false) => {}
                _ => self
                    .flags
                    .extend(texts.iter().map(|text| format!("{flag}={text}"))),
            },
            Passed::Positional => self.positional.extend(texts),
            Passed::Stdin(flag) => {
                self.flags.push(format!("{flag}=-"));
                self.stdin = texts.concat().into_bytes();
            }
            Passed::ByTool => {}
        }
        self.values.push((argument.name, checked));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn value(&self, name: &str) -> Option<&Checked> {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Checked::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Checked::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn time(&self, name: &str) -> Option<Duration> {
        match self.value(name)? {
            Checked::Time(time) => Some(*time),
            _ => None,
        }
    }

    /// Whether a switch is on.
    #[cfg(feature = "monitor")]
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name) == Some(&Checked::On(true))
    }

    /// The targets of a URL or of several.
    pub(super) fn targets(&self, name: &str) -> &[Target] {
        match self.value(name) {
            Some(Checked::Targets(targets)) => targets,
            _ => &[],
        }
    }
}

/// A text that can be an argument of a process.
fn text(value: &Value, longest: usize) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    if text.len() > longest {
        return Err(format!("is longer than {longest} bytes"));
    }
    if text.contains('\0') {
        return Err("has a NUL character".to_owned());
    }
    Ok(text.to_owned())
}

fn texts(
    value: &Value,
    mut check: impl FnMut(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let elements = value.as_array().ok_or("must be an array of strings")?;
    if elements.len() > MOST_ELEMENTS {
        return Err(format!("has more than {MOST_ELEMENTS} elements"));
    }
    let elements = elements.iter();
    elements
        .map(|element| check(&text(element, LONGEST_TEXT)?))
        .collect()
}

fn whole(value: &Value, most: u64) -> Result<u64, String> {
    let number = value.as_u64().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number from 1 to {most}"))
}

/// A number, or a text with a unit.
fn figure(value: &Value, expected: &str) -> Result<String, String> {
    match value {
        Value::String(text) if text.len() < 64 => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("must be {expected}")),
    }
}

/// A name may be long.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bounds::tests::bounds;
    use super::*;

    const ARGUMENTS: &[Argument] = &[
        argument("url", Kind::Url, Passed::Positional),
        argument("header", Kind::Texts, Passed::Flag("--header")),
        argument("body", Kind::Body, Passed::Stdin("--data-file")),
        argument("rate", Kind::Rate, Passed::Flag("--rate")),
        argument("time", Kind::Time, Passed::Flag("--duration")),
        argument(
            "connections",
            Kind::Connections,
            Passed::Flag("--connections"),
        ),
        argument("fast", Kind::Switch, Passed::Flag("--fast")),
        argument("form", Kind::Choice(&["a", "b"]), Passed::ByTool),
        argument("file", Kind::Path, Passed::Flag("--from")),
    ];

    const fn argument(name: &'static str, kind: Kind, passed: Passed) -> Argument {
        Argument {
            name,
            kind,
            passed,
            doc: "Doc",
        }
    }

    fn read(given: &Value) -> Result<Call, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("-f"), "").unwrap();
        let bounds = bounds(folder.path());
        let mut problems = Vec::new();
        let given = given.as_object().unwrap();
        let call = Call::read(ARGUMENTS, &["url"], given, &bounds, &mut problems);
        if problems.is_empty() {
            return Ok(call);
        }
        let shown = |problem: &Problem| {
            let about = problem.about.as_deref().unwrap_or_default();
            let hint = problem.hint.as_deref().unwrap_or_default();
            format!("{about}: {} {hint}", problem.message)
        };
        Err(problems.iter().map(shown).collect())
    }

    #[test]
    fn values_become_flags_that_cannot_be_mistaken_for_others() {
        let call = read(&json!({
            "url": "http://127.0.0.1/", "header": ["--spawn: x", "a: b"], "body": "@/etc/passwd",
            "rate": 50, "time": 1.5, "connections": 3, "fast": true, "form": "b", "file": "-f",
        }))
        .unwrap();
        assert_eq!(
            call.flags,
            [
                "--header=--spawn: x",
                "--header=a: b",
                "--data-file=-",
                "--rate=50",
                "--duration=1.5s",
                "--connections=3",
                "--fast",
                "--from=./-f",
            ]
        );
        assert_eq!(call.positional, ["http://127.0.0.1/"]);
        assert_eq!(call.stdin, b"@/etc/passwd");
        assert_eq!(call.text("form"), Some("b"));
        assert_eq!(call.time("time"), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let problems = read(&json!({
            "header": "a: b", "rate": "1M/s", "time": "2h", "connections": 101, "fast": "yes",
            "form": "c", "file": "../x", "ur": 1, "\u{0}": 1,
        }))
        .unwrap_err();
        for expected in [
            "url: is required",
            "header: must be an array of strings",
            "rate: 1,000,000/s is above the bound of 1,000/s",
            "time: 7200s is above the bound of 60s",
            "connections: 101 is above the bound of 100",
            "fast: must be true or false",
            "form: `c` is none of a, b",
            "file: ../x is not below",
            "ur: unknown argument did you mean `url`?",
        ] {
            let found = problems.iter().any(|problem| problem.starts_with(expected));
            assert!(found, "{expected} in {problems:#?}");
        }
        assert_eq!(problems.len(), 10);
    }

    #[test]
    fn extreme_values_are_refused() {
        for wrong in [
            json!({ "header": ["a\u{0}b"] }),
            json!({ "header": ["a".repeat(LONGEST_TEXT + 1)] }),
            json!({ "header": vec!["a"; MOST_ELEMENTS + 1] }),
            json!({ "header": [["a"]] }),
            json!({ "body": "a".repeat(LONGEST_BODY + 1) }),
            json!({ "rate": -1 }),
            json!({ "rate": 0 }),
            json!({ "rate": "nan" }),
            json!({ "rate": "inf" }),
            json!({ "rate": {} }),
            json!({ "time": -1 }),
            json!({ "time": "1" .repeat(100) }),
            json!({ "connections": 0 }),
            json!({ "connections": 1.5 }),
            json!({ "connections": u64::MAX }),
        ] {
            let mut whole = wrong.clone();
            whole["url"] = "http://127.0.0.1/".into();
            let problems = read(&whole).err();
            assert_eq!(problems.map(|it| it.len()), Some(1), "{wrong:.100}");
        }
    }

    #[test]
    fn the_schema_names_every_argument_and_the_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let schema = schema(ARGUMENTS, &["url"], &bounds(folder.path()));
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), ARGUMENTS.len());
        assert_eq!(properties["connections"]["maximum"], 100);
        assert_eq!(
            properties["rate"]["description"],
            "Doc; at most 1000/s here"
        );
        assert_eq!(schema["additionalProperties"], false);
    }
}
