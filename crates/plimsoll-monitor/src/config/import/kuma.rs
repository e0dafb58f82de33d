//! The backup of Uptime Kuma: `monitorList`.

use serde_json::Value;

use crate::config::import::{Imported, quoted, table, text_of};

pub(super) fn import(monitors: &[Value]) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    let groups: Vec<_> = monitors
        .iter()
        .filter(|monitor| text_of(monitor, "type") == Some("group"))
        .filter_map(|monitor| Some((monitor.get("id")?, text_of(monitor, "name")?)))
        .collect();
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
        let Some(target) = target(monitor, kind, name, &mut imported) else {
            continue;
        };
        let name = imported.begin(name, group, &mut taken);
        for (key, value) in target {
            imported.pair(key, &value);
        }
        common(monitor, kind, &name, &mut imported);
    }
    imported
}

type Pairs = Vec<(&'static str, String)>;

/// The kind with its target and conditions; a remark if it has none here.
fn target(monitor: &Value, kind: &str, name: &str, imported: &mut Imported) -> Option<Pairs> {
    let host = text_of(monitor, "hostname");
    let port = monitor.get("port").and_then(Value::as_u64);
    let is = |key: &str| {
        monitor
            .get(key)
            .is_some_and(|value| value == true || *value == 1)
    };
    if is("upsideDown") {
        imported.remark(
            name,
            "is left out: it is up when its target is down, which is not supported",
        );
        return None;
    }
    let missing = |imported: &mut Imported, what: &str| {
        imported.remark(name, format_args!("is left out: it has no {what}"));
        None
    };
    match kind {
        "http" | "keyword" | "json-query" => {
            let Some(url) = text_of(monitor, "url") else {
                return missing(imported, "url");
            };
            if kind == "json-query" {
                imported.remark(
                    name,
                    "its JSON query is left out; write it as `body.json(PATH)` in `expect`",
                );
            }
            Some(vec![
                ("http", http(monitor, url)),
                ("expect", expect(monitor, kind == "keyword")),
            ])
        }
        "port" => match (host, port) {
            (Some(host), Some(port)) => Some(vec![("tcp", quoted(&format!("{host}:{port}")))]),
            _ => missing(imported, "hostname and port"),
        },
        "ping" => match host {
            Some(host) => Some(vec![("icmp", quoted(host))]),
            None => missing(imported, "hostname"),
        },
        "dns" => {
            let Some(host) = host else {
                return missing(imported, "hostname");
            };
            let kind = text_of(monitor, "dns_resolve_type").unwrap_or("A");
            let mut pairs = vec![("name", quoted(host)), ("type", quoted(kind))];
            if let Some(server) = text_of(monitor, "dns_resolve_server") {
                // Several may be there, of which the first is taken.
                let server = server.split(',').next().unwrap_or(server).trim();
                let address = port.map_or(server.to_owned(), |port| format!("{server}:{port}"));
                pairs.push(("server", quoted(&address)));
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
                table(&[("every", quoted(&every)), ("token", quoted(&token))]),
            )])
        }
        "grpc-keyword" => match text_of(monitor, "grpcUrl") {
            Some(url) => {
                imported.remark(name, "asks the health service instead of its own method");
                let scheme = if is("grpcEnableTls") { "grpcs" } else { "grpc" };
                Some(vec![("grpc", quoted(&format!("{scheme}://{url}")))])
            }
            None => missing(imported, "grpcUrl"),
        },
        other => {
            imported.remark(
                name,
                format_args!("is left out: the type `{other}` is not supported"),
            );
            None
        }
    }
}

fn http(monitor: &Value, url: &str) -> String {
    let mut pairs = vec![("url", quoted(url))];
    let method = text_of(monitor, "method").filter(|method| *method != "GET");
    pairs.extend(method.map(|method| ("method", quoted(method))));
    pairs.extend(text_of(monitor, "body").map(|body| ("body", quoted(body))));
    let headers = text_of(monitor, "headers").and_then(|text| serde_json::from_str(text).ok());
    if let Some(Value::Object(headers)) = headers {
        let fields: Vec<_> = headers
            .iter()
            .map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                format!("{} = {}", quoted(name), quoted(&value))
            })
            .collect();
        pairs.push(("headers", format!("{{ {} }}", fields.join(", "))));
    }
    if let (Some(user), Some(password)) = (
        text_of(monitor, "basic_auth_user"),
        text_of(monitor, "basic_auth_pass"),
    ) {
        pairs.push(("basic", quoted(&format!("{user}:{password}"))));
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
        return quoted(url);
    }
    table(&pairs)
}

/// Statuses such as `200-299`, and the keyword.
fn expect(monitor: &Value, has_keyword: bool) -> String {
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
        let quote = if keyword.contains('\'') { '"' } else { '\'' };
        let contains = format!("body contains {quote}{keyword}{quote}");
        conditions.push(if is_inverted {
            format!("not({contains})")
        } else {
            contains
        });
    }
    let conditions: Vec<_> = conditions
        .iter()
        .map(|condition| quoted(condition))
        .collect();
    format!("[{}]", conditions.join(", "))
}

fn common(monitor: &Value, kind: &str, name: &str, imported: &mut Imported) {
    let number = |key: &str| {
        monitor
            .get(key)
            .and_then(Value::as_f64)
            .filter(|number| *number > 0.0)
    };
    if kind != "push" {
        if let Some(interval) = number("interval") {
            imported.pair("interval", &quoted(&format!("{interval}s")));
        }
        if let Some(timeout) = number("timeout") {
            imported.pair("timeout", &quoted(&format!("{timeout}s")));
        }
        let retries = monitor
            .get("maxretries")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        imported.pair("confirm", &(retries.min(999) + 1).to_string());
        imported.pair("recover", "1");
    }
    if monitor
        .get("active")
        .is_some_and(|value| *value == false || *value == 0)
    {
        imported.remark(name, "was paused, and runs here");
    }
}
