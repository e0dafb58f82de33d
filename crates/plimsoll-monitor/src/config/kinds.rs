//! The kinds of monitors in TOML: each is a key whose value is a target, or a table with more.

mod heartbeat;

mod mail;

mod network;

mod reach;

mod services;

mod web;

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_client::check::Condition;
use plimsoll_model::document::{Table, Value, as_text};

pub(super) use self::reach::ReachKey;
use crate::config::file::Context;
use crate::config::monitor::Defaults;
use crate::config::plan::{CompositePlan, What};
use crate::probe::{Probe, SuppliedKind};

/// Every kind, by its key.
pub(super) const KINDS: [&str; 29] = [
    "http",
    "tcp",
    "tls",
    "udp",
    "dns",
    "icmp",
    "starttls",
    "smtp",
    "websocket",
    "grpc",
    "ssh",
    "postgres",
    "mysql",
    "redis",
    "mqtt",
    "amqp",
    "kafka",
    "nats",
    "ldap",
    "snmp",
    "ntp",
    "prometheus",
    "docker",
    "systemd",
    "domain",
    "heartbeat",
    "all_of",
    "any_of",
    "manual",
];

/// Whether a key of a definition is that of a kind.
pub(crate) fn is_kind(key: &str) -> bool {
    KINDS.contains(&key)
}

/// A compiled kind.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) what: What,
    /// The conditions if none are given.
    pub(super) expect: Vec<Condition>,
}

/// The kind of a monitor, and the names of its members.
pub(super) fn compile<'i>(
    table: &mut Table<'i>,
    context: &mut Context,
    settings: &Defaults,
    expect: Option<&[Condition]>,
) -> Option<(Kind, Vec<Value<'i>>)> {
    let supplied = context.supplied;
    let keys = || {
        KINDS
            .into_iter()
            .chain(supplied.iter().map(|kind| kind.key))
    };
    let given: Vec<_> = keys()
        .filter_map(|key| Some((key, table.take_value(key)?)))
        .collect();
    let mut given = given.into_iter();
    let Some((key, value)) = given.next() else {
        let keys: Vec<_> = keys().collect();
        let hint = format!("one of {} says what is monitored", keys.join(", "));
        table.wrong("there is no target", Some(hint));
        return None;
    };
    if let Some((other, value)) = given.next() {
        value.wrong::<()>(format!(
            "a monitor has one kind, and this one has `{key}` and `{other}`"
        ));
        return None;
    }
    if let "all_of" | "any_of" = key {
        let members = value.elements();
        let composite = CompositePlan {
            members: Vec::new(),
            least_up: if key == "all_of" { members.len() } else { 1 },
        };
        let kind = Kind {
            name: "composite",
            what: What::Composite(composite),
            expect: Vec::new(),
        };
        return Some((kind, members));
    }
    let needs_body = expect.is_some_and(|all| all.iter().any(Condition::needs_body));
    let kind = match key {
        "http" => web::http(value, context, settings, needs_body),
        "tcp" => network::tcp(value, context, settings),
        "tls" => network::tls(value, context, settings),
        "udp" => network::udp(value, context, settings),
        "dns" => network::dns(value, context, settings),
        "icmp" => network::icmp(value, context, settings),
        "starttls" => mail::starttls(value, context, settings),
        "smtp" => mail::smtp(value, context, settings),
        "websocket" => web::websocket(value, context, settings),
        "grpc" => {
            let leaves_status = expect.is_some_and(|all| all.iter().any(Condition::needs_grpc));
            services::grpc(value, context, settings, leaves_status)
        }
        "ssh" => network::ssh(value, context, settings),
        "postgres" => services::postgres(value, context, settings),
        "mysql" => services::mysql(value, context, settings),
        "redis" => services::redis(value, context, settings),
        "mqtt" => services::mqtt(value, context, settings),
        "amqp" => services::amqp(value, context, settings),
        "kafka" => services::kafka(value, context, settings),
        "nats" => services::nats(value, context, settings),
        "ldap" => services::ldap(value, context, settings),
        "snmp" => services::snmp(value, context, settings),
        "ntp" => services::ntp(value, context, settings),
        "prometheus" => services::prometheus(value, context, settings),
        "docker" => services::docker(value, context, settings),
        "systemd" => services::systemd(value, context, settings),
        "domain" => network::domain(value, context, settings),
        "heartbeat" => heartbeat::heartbeat(value),
        "manual" => manual(&value),
        key => supplied
            .iter()
            .find(|kind| kind.key == key)
            .and_then(|kind| of_file(&value, *kind, context, settings)),
    };
    Some((kind?, Vec::new()))
}

/// A target, and the table that it stands in unless it stands alone.
fn target<'i>(value: Value<'i>, key: &'static str) -> Option<(Value<'i>, Option<Table<'i>>)> {
    if !value.is_table() {
        return Some((value, None));
    }
    let mut table = value.table()?;
    if let Some(target) = table.take_value(key) {
        Some((target, Some(table)))
    } else {
        table.missing(key, "what is monitored");
        None
    }
}

/// A file of this machine, which only the configuration file may name.
fn file(table: &mut Table<'_>, context: &Context, key: &'static str) -> Option<PathBuf> {
    let value = table.take_value(key)?;
    of_this_machine(
        &value,
        context,
        "names a file of the machine of the monitor",
    )?;
    Some(context.file(&value.text()?))
}

/// Nothing unless the configuration file defines the monitor, and no agent checks it.
fn of_this_machine(value: &Value<'_>, context: &Context, what: &str) -> Option<()> {
    if context.may_name_files {
        return Some(());
    }
    let hint = "define this monitor in the configuration file, and check it from there";
    value.wrong_with(what, Some(hint.to_owned()))
}

fn probe(name: &'static str, probe: impl Probe + 'static) -> Kind {
    Kind {
        name,
        what: What::Probe(Arc::new(probe)),
        expect: Vec::new(),
    }
}

/// A kind that the program supplies, by its file.
fn of_file(
    value: &Value<'_>,
    kind: SuppliedKind,
    context: &Context,
    settings: &Defaults,
) -> Option<Kind> {
    let file = as_text(value)?;
    of_this_machine(value, context, "names a file of the machine of the monitor")?;
    let path = context.file(file);
    let filter = context.filter.clone();
    let probe = value.check((kind.compile)(&path, settings.timeout, filter))?;
    Some(Kind {
        name: kind.key,
        what: What::Probe(probe),
        expect: Vec::new(),
    })
}

fn manual(value: &Value<'_>) -> Option<Kind> {
    if !value.is_true() {
        return value.wrong("is `true`");
    }
    Some(Kind {
        name: "manual",
        what: What::Manual,
        expect: Vec::new(),
    })
}
