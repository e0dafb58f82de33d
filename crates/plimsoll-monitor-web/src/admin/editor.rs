//! The form of a monitor: few fields, the rest folded, and a test before anything is saved.
//!
//! The form and the stored definition are the same thing in two shapes: what has no field stands as TOML in the last one.

mod tested;

use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::config::{Source, What, mask, overlay};
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::probe::reading::CheckResult;
use plimsoll_monitor::store::DefinitionKind;

use crate::admin::editor::tested::Tested;
use crate::admin::faults::first_part;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::shell::{Shell, html, missing, redirect};
use crate::api::encoded;
use crate::random;
use crate::state::Api;

/// Kinds: the key, the name for people, the key of the target in a table, and what the target looks like.
const KINDS: [(&str, &str, &str, &str); 28] = [
    ("http", "HTTP", "url", "https://example.org/"),
    ("tcp", "TCP port", "to", "db.example.org:5432"),
    ("icmp", "Ping (ICMP)", "to", "gateway.example.org"),
    ("dns", "DNS", "name", "example.org"),
    ("tls", "TLS certificate", "to", "example.org:443"),
    (
        "heartbeat",
        "Heartbeat of a job",
        "every",
        "1h, the time between two heartbeats",
    ),
    ("grpc", "gRPC", "url", "grpcs://api.example.org"),
    ("websocket", "WebSocket", "url", "wss://example.org/live"),
    (
        "starttls",
        "STARTTLS certificate",
        "to",
        "mail.example.org:25",
    ),
    (
        "smtp",
        "Mail server (SMTP)",
        "to",
        "mail.example.org:587, with `user` and `password` in the table `smtp` below",
    ),
    ("udp", "UDP", "to", "dns.example.org:53"),
    ("ssh", "SSH", "to", "host.example.org"),
    (
        "postgres",
        "PostgreSQL",
        "url",
        "postgres://user:password@db.example.org/shop",
    ),
    (
        "mysql",
        "MySQL, MariaDB",
        "url",
        "mysql://user:password@db.example.org/shop",
    ),
    ("redis", "Redis", "url", "redis://cache.example.org/0"),
    ("mqtt", "MQTT", "url", "mqtt://broker.example.org"),
    (
        "amqp",
        "AMQP, RabbitMQ",
        "url",
        "amqp://user:password@broker.example.org/vhost",
    ),
    ("kafka", "Kafka", "url", "kafka://broker.example.org:9092"),
    ("nats", "NATS", "url", "nats://broker.example.org"),
    ("ldap", "LDAP", "url", "ldap://directory.example.org"),
    ("snmp", "SNMP", "to", "switch.example.org"),
    ("ntp", "NTP", "to", "ntp.example.org"),
    (
        "prometheus",
        "Prometheus query",
        "url",
        "http://prometheus.example.org:9090, with `query` in the table `prometheus` below",
    ),
    (
        "docker",
        "Docker container",
        "container",
        "web, with `host` in the table `docker` below",
    ),
    ("domain", "Domain registration", "name", "example.org"),
    (
        "all_of",
        "All of several monitors",
        "",
        "names of monitors, with commas between them",
    ),
    (
        "any_of",
        "Any of several monitors",
        "",
        "names of monitors, with commas between them",
    ),
    (
        "manual",
        "Set by hand",
        "",
        "nothing: an operator sets the status",
    ),
];

/// Keys with one line each, in the folded part.
const PLAIN: [(&str, &str, &str); 8] = [
    ("timeout", "Timeout", "10s"),
    ("confirm", "Failures in a row that make an outage", "2"),
    ("recover", "Successes in a row that end it", "2"),
    ("hold", "Hold before the incident is resolved", "3m"),
    ("retries", "Attempts after a failed one", "0"),
    ("retry_pause", "Pause between attempts", "1s"),
    ("jitter", "Jitter", "5%"),
    ("regions", "Regions that must see an outage", "majority"),
];

/// Keys that are numbers in TOML.
const NUMBERS: [&str; 3] = ["confirm", "recover", "retries"];

/// The typed fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    group: String,
    kind: String,
    target: String,
    interval: String,
    tags: String,
    expect: String,
    warn_unless: String,
    depends_on: String,
    /// In the order of [`PLAIN`].
    plain: [String; 8],
    /// TOML.
    more: String,
}

impl Fields {
    fn of_form(form: &Form) -> Self {
        Self {
            name: form.get("name").to_owned(),
            group: form.get("group").to_owned(),
            kind: form.get("kind").to_owned(),
            target: form.get("target").to_owned(),
            interval: form.get("interval").to_owned(),
            tags: form.words("tags").join(", "),
            expect: form.lines("expect").join("\n"),
            warn_unless: form.lines("warn_unless").join("\n"),
            depends_on: form.lines("depends_on").join("\n"),
            plain: PLAIN.map(|(key, ..)| form.get(key).to_owned()),
            more: form.text("more"),
        }
    }

    /// The fields of a definition.
    fn of_table(mut table: toml::Table) -> Self {
        let mut fields = Self::default();
        let text = |value: Option<toml::Value>| match value {
            Some(toml::Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let lines = |value: Option<toml::Value>| match value {
            Some(toml::Value::Array(all)) => all
                .into_iter()
                .map(|one| text(Some(one)))
                .collect::<Vec<_>>()
                .join("\n"),
            other => text(other),
        };
        fields.name = text(table.remove("name"));
        fields.group = text(table.remove("group"));
        fields.interval = text(table.remove("interval"));
        fields.tags = lines(table.remove("tags")).replace('\n', ", ");
        fields.expect = lines(table.remove("expect"));
        fields.warn_unless = lines(table.remove("warn_unless"));
        fields.depends_on = lines(table.remove("depends_on"));
        for (field, (key, ..)) in fields.plain.iter_mut().zip(PLAIN) {
            *field = text(table.remove(key));
        }
        for (kind, _, key, _) in KINDS {
            let Some(value) = table.remove(kind) else {
                continue;
            };
            kind.clone_into(&mut fields.kind);
            match value {
                toml::Value::Table(mut inner) => {
                    fields.target = text(inner.remove(key));
                    if !inner.is_empty() {
                        table.insert(kind.to_owned(), toml::Value::Table(inner));
                    }
                }
                toml::Value::Array(_) => fields.target = lines(Some(value)).replace('\n', ", "),
                toml::Value::Boolean(_) => {}
                other => fields.target = text(Some(other)),
            }
            break;
        }
        fields.more = table.to_string();
        fields
    }

    /// The definition of the fields; fails with what is wrong with the TOML.
    fn table(&self) -> Result<toml::Table, FormError> {
        let more = self.more.parse::<toml::Table>();
        let mut table = more.map_err(FormError::MoreSettings)?;
        let mut put = |key: &str, value: &str| {
            if !value.is_empty() {
                table.insert(key.to_owned(), value.into());
            }
        };
        put("name", &self.name);
        put("group", &self.group);
        put("interval", &self.interval);
        for (value, (key, ..)) in self.plain.iter().zip(PLAIN) {
            match value.parse::<i64>() {
                Ok(number) if NUMBERS.contains(&key) || key == "regions" => {
                    table.insert(key.to_owned(), number.into());
                }
                _ if !value.is_empty() => {
                    table.insert(key.to_owned(), value.as_str().into());
                }
                _ => {}
            }
        }
        let lists = [
            ("expect", &self.expect, '\n'),
            ("warn_unless", &self.warn_unless, '\n'),
            ("depends_on", &self.depends_on, '\n'),
            ("tags", &self.tags, ','),
        ];
        for (key, text, separator) in lists {
            let all = split(text, separator);
            if !all.is_empty() {
                table.insert(key.to_owned(), all.into());
            }
        }
        let Some((kind, _, key, _)) = KINDS.into_iter().find(|(kind, ..)| *kind == self.kind)
        else {
            return Ok(table);
        };
        let value = match (kind, table.remove(kind)) {
            ("manual", _) => toml::Value::Boolean(true),
            ("all_of" | "any_of", _) => split(&self.target, ',').into(),
            (_, Some(toml::Value::Table(mut inner))) => {
                if !self.target.is_empty() {
                    inner.insert(key.to_owned(), self.target.as_str().into());
                }
                if kind == "heartbeat" && !inner.contains_key("token") {
                    inner.insert("token".to_owned(), token()?.into());
                }
                toml::Value::Table(inner)
            }
            ("heartbeat", _) => {
                let mut inner = toml::Table::new();
                inner.insert(key.to_owned(), self.target.as_str().into());
                inner.insert("token".to_owned(), token()?.into());
                toml::Value::Table(inner)
            }
            _ => self.target.as_str().into(),
        };
        table.insert(kind.to_owned(), value);
        Ok(table)
    }
}

fn split(text: &str, separator: char) -> Vec<String> {
    let all = text.split(separator).map(str::trim);
    all.filter(|one| !one.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A token for the URL of a heartbeat.
fn token() -> Result<String, FormError> {
    random::token().ok_or(FormError::NoRandomNumbers)
}

/// A line of the folded part.
#[derive(Debug)]
struct Plain {
    key: &'static str,
    label: &'static str,
    placeholder: &'static str,
    value: String,
}

#[derive(Template)]
#[template(path = "admin/editor.html")]
struct EditorPage {
    s: Shell,
    /// Target of the form.
    action: String,
    /// Of the definition that is edited; empty for a new one.
    version: String,
    f: Fields,
    kinds: [(&'static str, &'static str, &'static str, &'static str); KINDS.len()],
    plain: Vec<Plain>,
    groups: Vec<String>,
    tested: Option<Tested>,
    is_open: bool,
}

fn shown(
    api: &Api,
    me: &Me,
    key: Option<&str>,
    version: String,
    fields: Fields,
    error: Option<&FormError>,
    tested: Option<Tested>,
) -> Response {
    let mut groups: Vec<_> = api
        .handle
        .board
        .views()
        .iter()
        .map(|view| view.plan.group.clone())
        .filter(|group| !group.is_empty())
        .collect();
    groups.sort();
    groups.dedup();
    let (title, action) = match key {
        Some(key) => (
            format!("Edit {}", fields.name),
            format!("/admin/monitors/{}/edit", encoded(key)),
        ),
        None => ("Add a monitor".to_owned(), "/admin/new-monitor".to_owned()),
    };
    let plain = PLAIN.iter().zip(&fields.plain);
    let plain: Vec<_> = plain
        .map(|((key, label, placeholder), value)| Plain {
            key,
            label,
            placeholder,
            value: value.clone(),
        })
        .collect();
    let has_more = !fields.more.is_empty()
        || !fields.warn_unless.is_empty()
        || !fields.depends_on.is_empty()
        || plain.iter().any(|plain| !plain.value.is_empty());
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    html(
        &EditorPage {
            s: Shell::new(me, "/admin/monitors", title)
                .refused(error, |key| Some(field_of(&fields.kind, key))),
            action,
            version,
            f: fields,
            kinds: KINDS,
            plain,
            groups,
            tested,
            is_open: has_more,
        },
        status,
    )
}

/// The field of a key of a definition.
fn field_of(kind: &str, key: &str) -> String {
    const OWN: [&str; 7] = [
        "name",
        "group",
        "interval",
        "tags",
        "expect",
        "warn_unless",
        "depends_on",
    ];

    let first = first_part(key);
    if OWN.contains(&first) || PLAIN.iter().any(|(plain, ..)| *plain == first) {
        return first.to_owned();
    }
    let target = KINDS.iter().find(|(known, ..)| *known == first);
    let rest = key.strip_prefix(first).unwrap_or_default();
    let is_target = target.is_some_and(|(known, _, target, _)| {
        let is_list = rest.starts_with('[');
        *known == kind && (rest.is_empty() || is_list || rest.strip_prefix('.') == Some(target))
    });
    if is_target { "target" } else { "more" }.to_owned()
}

pub(super) async fn new(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let fields = Fields {
        kind: "http".to_owned(),
        ..Fields::default()
    };
    shown(&api, &me, None, String::new(), fields, None, None)
}

pub(super) async fn create(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    submitted(&api, &me, None).await
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(key): Path<String>,
) -> Response {
    let Some(view) = api.handle.board.view(&key) else {
        return missing().await;
    };
    if view.source == Source::File {
        let why = "The configuration file defines this monitor; change it there.";
        return failed(&me, why.to_owned());
    }
    let found = api.handle.definition(DefinitionKind::Monitor, &key).await;
    let definition = match found {
        Ok(Some(definition)) => definition,
        Ok(None) => return missing().await,
        Err(error) => return failed(&me, error.to_string()),
    };
    let mut table = toml::from_str(&definition.text).unwrap_or_default();
    mask::mask(&mut table);
    let version = definition.version.to_string();
    shown(
        &api,
        &me,
        Some(&key),
        version,
        Fields::of_table(table),
        None,
        None,
    )
}

pub(super) async fn update(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(key): Path<String>,
) -> Response {
    submitted(&api, &me, Some(key)).await
}

/// The button decides: test, or save.
async fn submitted(api: &Api, me: &Me, key: Option<String>) -> Response {
    let fields = Fields::of_form(&me.form);
    let version = me.form.get("version").to_owned();
    let again = |error: Option<&FormError>, tested: Option<Tested>| {
        shown(
            api,
            me,
            key.as_deref(),
            version.clone(),
            fields.clone(),
            error,
            tested,
        )
    };
    let table = match fields.table() {
        Ok(table) => table,
        Err(error) => return again(Some(&error), None),
    };
    if me.form.get("action") == "test" {
        return match tried(api, key.as_deref(), &table).await {
            Ok(result) => again(None, Some(Tested::from_result(&result))),
            Err(error) => again(Some(&error), None),
        };
    }
    let put = Put {
        id: None,
        was: key.clone(),
        version: version.parse().ok(),
        table,
    };
    let written = api
        .handle
        .change_monitors(&me.actor, vec![put], Vec::new(), None, me.now)
        .await;
    let written = match written {
        Ok(written) => written,
        Err(error) => return again(Some(&error.into()), None),
    };
    let Some(definition) = written.first() else {
        return redirect("/admin/monitors?done=saved");
    };
    // So that the page shows the first result at once. If it cannot run now, it comes at its time.
    api.handle.check_now(&definition.key).await.ok();
    let done = if key.is_some() { "saved" } else { "added" };
    let path = encoded(&definition.key);
    redirect(&format!("/admin/monitors/{path}?done={done}"))
}

/// One check of what the form defines.
async fn tried(
    api: &Api,
    key: Option<&str>,
    table: &toml::Table,
) -> Result<CheckResult, FormError> {
    let views = api.handle.board.views();
    let others = views
        .iter()
        .filter(|view| key != Some(view.plan.key.as_str()))
        .map(|view| &view.plan);
    let mut puts = [Put {
        id: None,
        was: key.map(str::to_owned),
        version: None,
        table: table.clone(),
    }];
    api.handle.unmask(&mut puts).await?;
    let text = puts[0].table.to_string();
    let grounds = api.handle.board.grounds();
    let plan = match overlay::monitors(&[&text], &grounds, others).pop() {
        Some(Ok(plan)) => plan,
        Some(Err(problems)) => return Err(FormError::Definition(problems)),
        None => return Err(FormError::NothingToTest),
    };
    if !matches!(plan.what, What::Probe(_)) {
        return Err(FormError::NotProbed);
    }
    Ok(api.handle.try_out(plan).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> toml::Table {
        let table: toml::Table = toml::from_str(text).unwrap();
        Fields::of_table(table).table().unwrap()
    }

    #[test]
    fn a_definition_comes_back_from_its_form_as_it_was() {
        for text in [
            "name = \"a\"\nhttp = \"https://a/\"\n",
            "name = \"a\"\ngroup = \"g\"\ninterval = \"30s\"\nconfirm = 3\nregions = 2\njitter = \"1%\"\nhttp = \"https://a/\"\nexpect = [\"status == 200\", \"body contains 'x'\"]\ntags = [\"x\", \"y\"]\n",
            "name = \"a\"\nregions = \"any\"\nflap = false\n[http]\nurl = \"https://a/\"\nmethod = \"POST\"\n[http.headers]\nx = \"y\"\n[labels]\nteam = \"core\"\n",
            "name = \"a\"\nmanual = true\ndepends_on = [\"b, with a comma\", \"c\"]\n",
            "name = \"a\"\nall_of = [\"b\", \"c\"]\n",
            "name = \"a\"\n[heartbeat]\nevery = \"1h\"\ntoken = \"0123456789abcdef\"\ngrace = \"5m\"\n",
        ] {
            let table: toml::Table = toml::from_str(text).unwrap();
            assert_eq!(round(text), table, "{text}");
        }
    }

    #[test]
    fn a_new_heartbeat_gets_a_token() {
        let fields = Fields {
            name: "job".to_owned(),
            kind: "heartbeat".to_owned(),
            target: "1h".to_owned(),
            ..Fields::default()
        };
        let table = fields.table().unwrap();
        assert_eq!(table["heartbeat"]["every"].as_str(), Some("1h"));
        assert_eq!(table["heartbeat"]["token"].as_str().map(str::len), Some(43));
    }

    #[test]
    fn keys_have_their_fields() {
        for (kind, key, field) in [
            ("http", "interval", "interval"),
            ("http", "expect[2]", "expect"),
            ("http", "retry_pause", "retry_pause"),
            ("http", "http", "target"),
            ("http", "http.url", "target"),
            ("http", "http.headers.x", "more"),
            ("tcp", "http", "more"),
            ("all_of", "all_of[1]", "target"),
            ("tcp", "labels", "more"),
        ] {
            assert_eq!(field_of(kind, key), field, "{key} of {kind}");
        }
    }

    #[test]
    fn wrong_toml_is_reported() {
        let fields = Fields {
            more: "a = ".to_owned(),
            ..Fields::default()
        };
        assert!(
            fields
                .table()
                .unwrap_err()
                .to_string()
                .starts_with("More settings: ")
        );
    }

    proptest::proptest! {
        /// Whatever is typed gives a table or a message.
        #[test]
        fn anything_can_be_typed(content in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let fields = Fields::of_form(&Form::parse(&content));
            if let Ok(table) = fields.table() {
                toml::from_str::<toml::Table>(&table.to_string()).unwrap();
            }
        }
    }
}
