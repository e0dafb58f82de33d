//! The schema and the documentation of channels, made of their table. `PLIMSOLL_WRITE=1` has these tests write them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::notify::channel::all::CHANNELS;
use crate::notify::channel::{Channel, Foreign, placeholders};
use crate::notify::field::{Field, FieldKind};

/// What stands before the part of a page that is made.
const MADE: &str = "<!-- From here on this page is made of the channels' own declarations by a test of plimsoll-monitor. -->\n";

fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Compares a file with what it should be, or writes it.
fn expect(path: &Path, expected: &str) {
    let found = std::fs::read_to_string(path).unwrap();
    if found != expected && std::env::var_os("PLIMSOLL_WRITE").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    let differing = found
        .lines()
        .zip(expected.lines())
        .find(|(one, other)| one != other);
    assert!(
        found == expected,
        "{} is not what the channels declare; run this test with PLIMSOLL_WRITE=1: {differing:?}",
        path.display()
    );
}

fn schema_of(field: &Field) -> Value {
    let mut schema = match field.kind {
        FieldKind::Text | FieldKind::Lines | FieldKind::Address => json!({ "type": "string" }),
        FieldKind::Secret | FieldKind::SecretUrl | FieldKind::SecretTemplate => {
            json!({ "$ref": "#/$defs/secret" })
        }
        FieldKind::Url => json!({ "type": "string", "pattern": "^https?://" }),
        FieldKind::Choice(known) => json!({ "enum": known }),
        FieldKind::Number(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        FieldKind::Texts | FieldKind::Addresses => json!({ "oneOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ] }),
        FieldKind::SecretPairs => json!({
            "type": "object", "additionalProperties": { "$ref": "#/$defs/secret" },
        }),
    };
    schema["description"] = format!("{}.", capital(field.about)).into();
    schema
}

fn capital(text: &str) -> String {
    let mut all = text.chars();
    let first = all.next().map(|it| it.to_uppercase().to_string());
    first.unwrap_or_default() + all.as_str()
}

fn schema(channel: &Channel) -> Value {
    let required = channel.fields.iter().filter(|field| field.is_required);
    let required: Vec<_> = required.map(|field| field.key).collect();
    let mut properties = json!({});
    for field in channel.fields {
        properties[field.key] = schema_of(field);
    }
    json!({
        "type": "object",
        "description": channel.about,
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

#[test]
fn the_schema_has_every_channel() {
    let path = workspace("schemas/monitor.v1.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert!(all["properties"]["notify"]["items"]["oneOf"].is_array());
    // The channels are the last properties of `notify`, one a line.
    let from = text
        .find("      \"description\": \"Where notices go.\"")
        .unwrap();
    let (before, part) = text.split_at(from);
    let ends = part.find("\n        }\n").unwrap();
    let (part, after) = part.split_at(ends);
    let (head, _) = part.split_once("          \"alertmanager\": ").unwrap();
    let choices = CHANNELS.map(|channel| format!("{{ \"required\": [\"{}\"] }}", channel.key));
    let choices = format!("        \"oneOf\": [{}],", choices.join(", "));
    let lines = head.lines().map(|line| {
        if line.trim_start().starts_with("\"oneOf\": [{ \"required\"") {
            choices.as_str()
        } else {
            line
        }
    });
    let mut part = lines.collect::<Vec<_>>().join("\n");
    part.push('\n');
    let channels =
        CHANNELS.map(|channel| format!("          \"{}\": {}", channel.key, schema(channel)));
    part.push_str(&channels.join(",\n"));
    expect(&path, &format!("{before}{part}{after}"));
}

/// How a field is written in an example.
fn example(channel: &Channel, field: &Field) -> String {
    let variable = format!("{}_{}", channel.key, field.key).to_uppercase();
    let value = match field.kind {
        kind if kind.is_secret() => format!("{{ env = \"{variable}\" }}"),
        FieldKind::Addresses => "[\"ops@example.org\"]".to_owned(),
        FieldKind::Address => "\"monitor@example.org\"".to_owned(),
        FieldKind::Texts => "[\"…\"]".to_owned(),
        FieldKind::Url => "\"https://…\"".to_owned(),
        _ => "\"…\"".to_owned(),
    };
    format!("{} = {value}", field.key)
}

fn names(all: &[Foreign], of: &str) -> Option<String> {
    let names: Vec<_> = all.iter().map(|it| format!("`{}`", it.name)).collect();
    (!names.is_empty()).then(|| format!("{} of {of}", names.join(" and ")))
}

fn section(channel: &Channel) -> String {
    let required = channel.fields.iter().filter(|field| field.is_required);
    let required: Vec<_> = required.map(|field| example(channel, field)).collect();
    let key = channel.key;
    let mut text = format!(
        "\n## {}\n\n{} `{key} = {{ {} }}`\n\n| key of `{key}` | default | meaning |\n|---|---|---|\n",
        channel.name,
        channel.about,
        required.join(", ")
    );
    for field in channel.fields {
        let default = match (field.is_required, field.default) {
            (true, _) => " required ".to_owned(),
            (false, Some(default)) => format!(" `{default}` "),
            (false, None) => " ".to_owned(),
        };
        let mut about = field.about.to_owned();
        if let FieldKind::Choice(known) = field.kind {
            let known: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
            write!(about, ": {}", known.join(", ")).unwrap();
        }
        if field.kind.is_secret() {
            about.push_str("; a secret");
        }
        writeln!(text, "| `{}` |{default}| {about} |", field.key).unwrap();
    }
    let theirs = [
        names(channel.gatus, "Gatus"),
        names(channel.kuma, "Uptime Kuma"),
    ];
    let theirs: Vec<_> = theirs.into_iter().flatten().collect();
    if !theirs.is_empty() {
        writeln!(text, "\nMade of {}.", theirs.join(" and ")).unwrap();
    }
    if key == "webhook" {
        text.push_str("\n| placeholder | what it stands for |\n|---|---|\n");
        for (name, about) in placeholders() {
            writeln!(text, "| `{{{{ {name} }}}}` | {about} |").unwrap();
        }
    }
    text
}

#[test]
fn the_page_has_every_channel() {
    let path = workspace("docs/channels.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (by_hand, _) = text.split_once(MADE).expect("the page has its mark");
    let made: String = CHANNELS.iter().map(|channel| section(channel)).collect();
    expect(&path, &format!("{by_hand}{MADE}{made}"));
}

#[test]
fn declarations_are_complete() {
    for channel in CHANNELS {
        assert!(channel.about.ends_with('.'), "{}", channel.key);
        assert!(
            channel.fields.iter().any(|field| field.key == "url") || channel.key == "email",
            "{}",
            channel.key
        );
        for field in channel.fields {
            assert!(
                !field.about.ends_with('.') && !field.about.is_empty(),
                "{}",
                field.about
            );
        }
        for foreign in channel.gatus.iter().chain(channel.kuma) {
            for (_, ours) in foreign.keys {
                let is_there = channel.fields.iter().any(|field| field.key == *ours);
                assert!(is_there, "{}: {ours}", channel.key);
            }
        }
    }
    let keys = CHANNELS.map(|channel| channel.key);
    assert!(keys.is_sorted());
}
