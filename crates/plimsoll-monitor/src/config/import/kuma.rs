//! The backup of Uptime Kuma: `monitorList`.

use std::collections::HashMap;

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::kuma_notifications::channel;
use crate::config::import::kuma_targets::{self, Target};
use crate::config::import::{Imported, table, text_of};

pub(super) fn import(backup: &Value) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    let none = Vec::new();
    let list = |key: &str| backup.get(key).and_then(Value::as_array).unwrap_or(&none);
    let monitors = list("monitorList");
    let groups: Vec<_> = monitors
        .iter()
        .filter(|monitor| text_of(monitor, "type") == Some("group"))
        .filter_map(|monitor| Some((monitor.get("id")?, text_of(monitor, "name")?)))
        .collect();
    // By the number of each notification.
    let mut receivers: HashMap<String, Vec<String>> = HashMap::new();
    for monitor in monitors {
        let kind = text_of(monitor, "type").unwrap_or("http");
        if kind == "group" {
            continue;
        }
        let name = text_of(monitor, "name").unwrap_or("monitor");
        let parent = monitor.get("parent").filter(|parent| !parent.is_null());
        let group = groups
            .iter()
            .find(|(id, _)| Some(*id) == parent)
            .map_or("", |(_, name)| name);
        let target = if kind == "docker" {
            let found = kuma_targets::docker(monitor, list("dockerHosts"));
            special(found, name, &mut imported)
        } else {
            target(monitor, kind, name, &mut imported)
        };
        let Some(target) = target else {
            continue;
        };
        let begun = imported.text.len();
        let name = imported.begin(name, group, &mut taken);
        for (key, value) in target {
            imported.pair(key, &value);
        }
        common(monitor, kind, &mut imported);
        if is(monitor, "active", Some(false)) {
            // A file has no paused monitors.
            let of_monitor = imported.text.split_off(begun);
            for line in of_monitor.lines() {
                let prefix = if line.is_empty() || line.starts_with('#') {
                    ""
                } else {
                    "# "
                };
                imported.line(format_args!("{prefix}{line}"));
            }
            imported.remark(&name, "is paused, so its lines are comments");
            continue;
        }
        let key = crate::config::key_of(group, &name);
        let numbers = monitor.get("notificationIDList").and_then(Value::as_object);
        for (number, _) in numbers.into_iter().flatten().filter(|(_, it)| **it == true) {
            receivers
                .entry(number.clone())
                .or_default()
                .push(key.clone());
        }
        let number = monitor.get("id").and_then(Value::as_i64);
        imported.numbers.extend(number.map(|number| (number, key)));
    }
    for notification in list("notificationList") {
        notify(notification, &receivers, &mut imported);
    }
    for (key, what) in [
        ("maintenances", "maintenance windows"),
        ("statusPages", "status pages"),
    ] {
        if let Some(count) = backup.get(key).and_then(Value::as_u64).filter(|it| *it > 0) {
            imported.remark(what, format_args!("{count} are left out"));
        }
    }
    imported
}

/// Writes a notification for the monitors that have it.
fn notify(notification: &Value, receivers: &HashMap<String, Vec<String>>, imported: &mut Imported) {
    let name = text_of(notification, "name").unwrap_or("notification");
    let number = notification
        .get("id")
        .map(Value::to_string)
        .unwrap_or_default();
    let Some(monitors) = receivers.get(&number) else {
        imported.remark(name, "is left out: no monitor has this notification");
        return;
    };
    if is(notification, "active", Some(false)) {
        imported.remark(name, "is left out: this notification is not active");
        return;
    }
    match channel(notification) {
        Ok(channel) => {
            imported.line(format_args!("\n[[notify]]"));
            // The number keeps two of one name apart.
            imported.pair("name", &toml_string(&format!("{name} {number}")));
            imported.pair(channel.key, &channel.settings);
            imported.pair("on", "[\"opened\", \"resolved\"]");
            let monitors: Vec<_> = monitors.iter().map(|key| toml_string(key)).collect();
            imported.pair("monitors", &format!("[{}]", monitors.join(", ")));
            for key in &channel.not_carried_over {
                imported.remark(name, format_args!("`{key}` is not carried over"));
            }
        }
        Err(why) => imported.remark(name, format_args!("is left out: {why}")),
    }
}

/// Whether a key is set, as a boolean or as the number that SQLite has for it.
///
/// - `wanted`: another value than true.
fn is(monitor: &Value, key: &str, wanted: Option<bool>) -> bool {
    let wanted = wanted.unwrap_or(true);
    let found = monitor.get(key);
    found.is_some_and(|value| *value == wanted || *value == i64::from(wanted))
}

type Pairs = Vec<(&'static str, String)>;

/// The kind with its target and conditions; a remark if it has none here.
fn target(monitor: &Value, kind: &str, name: &str, imported: &mut Imported) -> Option<Pairs> {
    let host = text_of(monitor, "hostname");
    let port = monitor.get("port").and_then(Value::as_u64);
    let missing = |imported: &mut Imported, what: &str| {
        imported.remark(name, format_args!("is left out: it has no {what}"));
        None
    };
    match kind {
        "http" | "keyword" | "json-query" => {
            let Some(url) = text_of(monitor, "url") else {
                return missing(imported, "url");
            };
            let mut conditions = expect(monitor, kind == "keyword");
            if kind == "json-query" {
                match json_query(monitor) {
                    Some(condition) => conditions.push(condition),
                    None => imported.remark(
                        name,
                        "its JSON query is left out; write it as `body.json(PATH)` in `expect`",
                    ),
                }
            }
            let conditions: Vec<_> = conditions.iter().map(|it| toml_string(it)).collect();
            Some(vec![
                ("http", http(monitor, url, name, imported)),
                ("expect", format!("[{}]", conditions.join(", "))),
            ])
        }
        "port" => match (host, port) {
            (Some(host), Some(port)) => Some(vec![("tcp", toml_string(&format!("{host}:{port}")))]),
            _ => missing(imported, "hostname and port"),
        },
        "ping" => match host {
            Some(host) => Some(vec![("icmp", toml_string(host))]),
            None => missing(imported, "hostname"),
        },
        "dns" => {
            let Some(host) = host else {
                return missing(imported, "hostname");
            };
            let kind = text_of(monitor, "dns_resolve_type").unwrap_or("A");
            let mut pairs = vec![("name", toml_string(host)), ("type", toml_string(kind))];
            if let Some(server) = text_of(monitor, "dns_resolve_server") {
                // Several may be there, of which the first is taken.
                let server = server.split(',').next().unwrap_or(server).trim();
                let address = port.map_or(server.to_owned(), |port| format!("{server}:{port}"));
                pairs.push(("server", toml_string(&address)));
            }
            Some(vec![("dns", table(&pairs))])
        }
        "push" => {
            let Some(token) = text_of(monitor, "pushToken") else {
                return missing(imported, "token");
            };
            let token = format!("uptime-kuma-{token}");
            let every = format!(
                "{}s",
                monitor
                    .get("interval")
                    .and_then(Value::as_u64)
                    .unwrap_or(60)
            );
            imported.remark(
                name,
                format_args!("its job has to call /ping/{token} from now on"),
            );
            Some(vec![(
                "heartbeat",
                table(&[
                    ("every", toml_string(&every)),
                    ("token", toml_string(&token)),
                ]),
            )])
        }
        "grpc-keyword" => {
            let is_inverted = is(monitor, "invertKeyword", None);
            let keyword = text_of(monitor, "keyword").map(|text| contains(text, is_inverted));
            let is_tls = is(monitor, "grpcEnableTls", None);
            special(kuma_targets::grpc(monitor, is_tls, keyword), name, imported)
        }
        "snmp" => special(kuma_targets::snmp(monitor), name, imported),
        "kafka-producer" => {
            let is_tls = is(monitor, "kafkaProducerSsl", None);
            special(kuma_targets::kafka(monitor, is_tls), name, imported)
        }
        "rabbitmq" => special(kuma_targets::rabbitmq(monitor), name, imported),
        "redis" | "postgres" | "mysql" => {
            let Some(url) = text_of(monitor, "databaseConnectionString") else {
                return missing(imported, "connection string");
            };
            if kind == "redis" {
                return Some(vec![("redis", toml_string(url))]);
            }
            let query = text_of(monitor, "databaseQuery");
            let mut pairs = vec![("url", toml_string(url))];
            pairs.extend(query.map(|query| ("query", toml_string(query))));
            let ours = if kind == "mysql" { "mysql" } else { "postgres" };
            Some(vec![(ours, table(&pairs))])
        }
        "mqtt" => {
            let Some(host) = host else {
                return missing(imported, "hostname");
            };
            let (scheme, host) = host.split_once("://").unwrap_or(("mqtt", host));
            if !["mqtt", "mqtts"].contains(&scheme) {
                let why = format_args!("is left out: MQTT over `{scheme}` is not supported");
                imported.remark(name, why);
                return None;
            }
            let [user, password] =
                ["mqttUsername", "mqttPassword"].map(|key| text_of(monitor, key));
            let login = kuma_targets::login(user, password);
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            let mut pairs = vec![(
                "url",
                toml_string(&format!("{scheme}://{login}{host}{port}")),
            )];
            pairs.extend(text_of(monitor, "mqttTopic").map(|topic| ("topic", toml_string(topic))));
            let mut kind = vec![("mqtt", table(&pairs))];
            if text_of(monitor, "mqttCheckType").unwrap_or("keyword") == "keyword" {
                let wanted = text_of(monitor, "mqttSuccessMessage");
                let contains = wanted.map(|text| contains(text, false));
                kind.extend(contains.map(|it| ("expect", format!("[{}]", toml_string(&it)))));
            }
            Some(kind)
        }
        "websocket-upgrade" => match text_of(monitor, "url") {
            Some(url) => Some(vec![("websocket", toml_string(url))]),
            None => missing(imported, "url"),
        },
        "smtp" => match (host, port) {
            (Some(host), Some(port)) => {
                let expected = format!("[{}]", table(&[("expect", toml_string("^220"))]));
                let to = toml_string(&format!("{host}:{port}"));
                let mut pairs = vec![("to", to), ("talk", expected)];
                if text_of(monitor, "smtpSecurity") == Some("secure") {
                    pairs.push(("tls", "true".to_owned()));
                }
                Some(vec![("tcp", table(&pairs))])
            }
            _ => missing(imported, "hostname and port"),
        },
        "manual" => Some(vec![("manual", "true".to_owned())]),
        other => {
            imported.remark(
                name,
                format_args!("is left out: the type `{other}` is not supported"),
            );
            None
        }
    }
}

/// Notes the remarks on a target, or why there is none.
fn special(target: Target, name: &str, imported: &mut Imported) -> Option<Pairs> {
    match target {
        Ok((pairs, remarks)) => {
            for remark in remarks {
                imported.remark(name, remark);
            }
            Some(pairs)
        }
        Err(why) => {
            imported.remark(name, format_args!("is left out: {why}"));
            None
        }
    }
}

fn http(monitor: &Value, url: &str, name: &str, imported: &mut Imported) -> String {
    let mut pairs = vec![("url", toml_string(url))];
    let method = text_of(monitor, "method").filter(|method| *method != "GET");
    pairs.extend(method.map(|method| ("method", toml_string(method))));
    let body = text_of(monitor, "body");
    pairs.extend(body.map(|body| ("body", toml_string(body))));
    let headers = text_of(monitor, "headers").and_then(|text| serde_json::from_str(text).ok());
    let mut fields: Vec<(String, String)> = Vec::new();
    if let Some(Value::Object(headers)) = headers {
        fields.extend(headers.into_iter().map(|(name, value)| match value {
            Value::String(text) => (name, text),
            other => (name, other.to_string()),
        }));
    }
    let has_type = fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if body.is_some() && !has_type {
        let media_type = match text_of(monitor, "httpBodyEncoding") {
            Some("xml") => "text/xml; charset=utf-8",
            Some("form") => "application/x-www-form-urlencoded",
            _ => "application/json",
        };
        fields.push(("content-type".to_owned(), media_type.to_owned()));
    }
    if !fields.is_empty() {
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{} = {}", toml_string(name), toml_string(value)));
        let fields: Vec<_> = fields.collect();
        pairs.push(("headers", format!("{{ {} }}", fields.join(", "))));
    }
    match text_of(monitor, "authMethod") {
        None | Some("basic") => {}
        Some("bearer") => {
            let token = text_of(monitor, "bearerToken");
            pairs.extend(token.map(|token| ("bearer", toml_string(token))));
        }
        Some(other) => imported.remark(
            name,
            format_args!("signs in by `{other}` there, and not here"),
        ),
    }
    if monitor.get("proxyId").is_some_and(|id| !id.is_null()) {
        imported.remark(name, "uses a proxy there, and none here");
    }
    if let (Some(user), Some(password)) = (
        text_of(monitor, "basic_auth_user"),
        text_of(monitor, "basic_auth_pass"),
    ) {
        pairs.push(("basic", toml_string(&format!("{user}:{password}"))));
    }
    if let Some(redirects) = monitor
        .get("maxredirects")
        .and_then(Value::as_u64)
        .filter(|it| *it != 10)
    {
        pairs.push(("redirects", redirects.min(50).to_string()));
    }
    if monitor
        .get("ignoreTls")
        .is_some_and(|value| *value == true || *value == 1)
    {
        pairs.push(("insecure", "true".to_owned()));
    }
    if pairs.len() == 1 {
        return toml_string(url);
    }
    table(&pairs)
}

/// Statuses such as `200-299`, and the keyword.
fn expect(monitor: &Value, has_keyword: bool) -> Vec<String> {
    let codes = monitor
        .get("accepted_statuscodes")
        .and_then(Value::as_array);
    let codes: Vec<_> = codes
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let ranges: Vec<_> = codes
        .iter()
        .filter_map(|code| match code.split_once('-') {
            Some((from, to)) => Some((
                from.trim().parse::<u16>().ok()?,
                to.trim().parse::<u16>().ok()?,
            )),
            None => code.trim().parse().ok().map(|code| (code, code)),
        })
        .collect();
    let mut conditions = match ranges.as_slice() {
        [] => vec!["status >= 200".to_owned(), "status <= 299".to_owned()],
        [(from, to)] if from == to => vec![format!("status == {from}")],
        [(from, to)] => vec![format!("status >= {from}"), format!("status <= {to}")],
        several => {
            let parts = several.iter().map(|(from, to)| {
                if from == to {
                    format!("status == {from}")
                } else {
                    format!("not(any(status < {from}, status > {to}))")
                }
            });
            vec![format!("any({})", parts.collect::<Vec<_>>().join(", "))]
        }
    };
    if let Some(keyword) = text_of(monitor, "keyword").filter(|_| has_keyword) {
        let is_inverted = monitor
            .get("invertKeyword")
            .is_some_and(|value| *value == true || *value == 1);
        conditions.push(contains(keyword, is_inverted));
    }
    conditions
}

/// The condition that a body has a text, or has it not.
pub(super) fn contains(text: &str, is_inverted: bool) -> String {
    let quote = if text.contains('\'') { '"' } else { '\'' };
    let contains = format!("body contains {quote}{text}{quote}");
    if is_inverted {
        format!("not({contains})")
    } else {
        contains
    }
}

/// A query that is a plain path, with its value; others are of a language of their own.
fn json_query(monitor: &Value) -> Option<String> {
    let path = text_of(monitor, "jsonPath")?;
    let rest = path.strip_prefix('$').unwrap_or(path);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    if rest.is_empty() || !rest.chars().all(is_plain) || rest.contains("..") {
        return None;
    }
    let dot = if rest.starts_with(['.', '[']) {
        ""
    } else {
        "."
    };
    let operator = text_of(monitor, "jsonPathOperator").unwrap_or("==");
    if !["==", "!=", "<", "<=", ">", ">=", "contains"].contains(&operator) {
        return None;
    }
    let value = text_of(monitor, "expectedValue").unwrap_or_default();
    // Values are compared as texts there.
    let is_bare = value.parse::<f64>().is_ok() || ["true", "false", "null"].contains(&value);
    let subject = format!("body.json(${dot}{rest})");
    Some(match (is_bare, operator) {
        (true, "==") => format!("any({subject} == {value}, {subject} == '{value}')"),
        (true, _) => format!("{subject} {operator} {value}"),
        (false, _) if value.contains('\'') => format!("{subject} {operator} \"{value}\""),
        (false, _) => format!("{subject} {operator} '{value}'"),
    })
}

fn common(monitor: &Value, kind: &str, imported: &mut Imported) {
    let number = |key: &str| {
        monitor
            .get(key)
            .and_then(Value::as_f64)
            .filter(|number| *number > 0.0)
    };
    if kind != "push" && kind != "manual" {
        if let Some(interval) = number("interval") {
            imported.pair("interval", &toml_string(&format!("{interval}s")));
        }
        if let Some(timeout) = number("timeout") {
            imported.pair("timeout", &toml_string(&format!("{timeout}s")));
        }
        let retries = monitor
            .get("maxretries")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        imported.pair("confirm", &(retries.min(999) + 1).to_string());
        imported.pair("recover", "1");
    }
    if is(monitor, "upsideDown", None) {
        imported.pair("upside_down", "true");
    }
    let expires = is(monitor, "expiryNotification", None)
        && text_of(monitor, "url").is_some_and(|url| url.starts_with("https:"));
    if expires && !is(monitor, "upsideDown", None) {
        // The first of the days in that list.
        imported.pair("warn_unless", "[\"cert.days > 21\"]");
    }
    let tags = monitor.get("tags").and_then(Value::as_array);
    let mut names: Vec<_> = tags.into_iter().flatten().filter_map(tag).collect();
    names.sort();
    names.dedup();
    if !names.is_empty() {
        let names: Vec<_> = names.iter().map(|name| toml_string(name)).collect();
        imported.pair("tags", &format!("[{}]", names.join(", ")));
    }
    if let Some(description) = text_of(monitor, "description") {
        imported.comment(description);
    }
}

/// Name and value of a tag as one text without spaces and commas.
fn tag(tag: &Value) -> Option<String> {
    /// Characters of a tag.
    const MOST: usize = 40;

    let name = text_of(tag, "name")?;
    let whole = match text_of(tag, "value") {
        Some(value) => format!("{name}:{value}"),
        None => name.to_owned(),
    };
    let separates = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    Some(whole.replace(separates, "-").chars().take(MOST).collect())
}
