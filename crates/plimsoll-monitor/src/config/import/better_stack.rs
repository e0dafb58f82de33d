//! Better Stack: what `GET /api/v2/monitors` and `GET /api/v2/heartbeats` return (JSON:API).
//!
//! Source: <https://betterstack.com/docs/uptime/api/list-all-existing-monitors/>.

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::hosted::{Hosted, HttpParts, LeftOut, address, is_set, number};
use crate::config::import::{Imported, table, text_of};

/// Whether these are its monitors or heartbeats.
pub(super) fn is_list(resources: &[Value]) -> bool {
    !resources.is_empty()
        && resources.iter().all(|resource| {
            let is_ours = ["monitor", "heartbeat"]
                .iter()
                .any(|kind| text_of(resource, "type") == Some(*kind));
            is_ours && resource.get("attributes").is_some_and(Value::is_object)
        })
}

pub(super) fn import(resources: &[Value]) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    for resource in resources {
        let attributes = &resource["attributes"];
        let name = text_of(attributes, "pronounceable_name")
            .or_else(|| text_of(attributes, "name"))
            .or_else(|| text_of(attributes, "url"))
            .unwrap_or("monitor");
        let hosted = if text_of(resource, "type") == Some("heartbeat") {
            Ok(heartbeat(resource, name))
        } else {
            monitor(attributes, name)
        };
        match hosted {
            Ok(hosted) => hosted.write(&mut imported, &mut taken),
            Err(why) => imported.remark(name, format_args!("is left out: {why}")),
        }
    }
    imported
}

fn is_paused(attributes: &Value) -> bool {
    is_set(attributes, "paused") == Some(true)
        || text_of(attributes, "paused_at").is_some()
        || text_of(attributes, "status") == Some("paused")
}

fn heartbeat<'v>(resource: &'v Value, name: &'v str) -> Hosted<'v> {
    let attributes = &resource["attributes"];
    let id = text_of(resource, "id").unwrap_or("0");
    // The last part of its URL is what makes that secret.
    let secret = text_of(attributes, "url").and_then(|url| url.rsplit('/').next());
    let token = format!("better-stack-{}", secret.unwrap_or(id));
    let seconds = |key, default| format!("{}s", number(attributes, key).unwrap_or(default));
    Hosted {
        name,
        is_paused: is_paused(attributes),
        kind: vec![(
            "heartbeat",
            table(&[
                ("every", toml_string(&seconds("period", 86_400))),
                ("grace", toml_string(&seconds("grace", 0))),
                ("token", toml_string(&token)),
            ]),
        )],
        remarks: vec![format!("its job has to call /ping/{token} from now on")],
        ..Hosted::default()
    }
}

fn monitor<'v>(attributes: &'v Value, name: &'v str) -> Result<Hosted<'v>, LeftOut> {
    let kind = text_of(attributes, "monitor_type").unwrap_or("status");
    let url = text_of(attributes, "url").ok_or(LeftOut::Missing("`url`"))?;
    let is_http = [
        "status",
        "expected_status_code",
        "keyword",
        "keyword_absence",
    ]
    .contains(&kind);
    let timeout = number(attributes, "request_timeout");
    let mut hosted = Hosted {
        name,
        is_paused: is_paused(attributes),
        interval: number(attributes, "check_frequency"),
        // Seconds for requests, milliseconds for servers and ports.
        timeout: timeout.map(|timeout| if is_http { timeout * 1000 } else { timeout }),
        ..Hosted::default()
    };
    let port = |default| match number(attributes, "port") {
        Some(port) => Ok(port),
        None => Option::ok_or(default, LeftOut::Missing("`port`")),
    };
    let keyword = text_of(attributes, "required_keyword");
    let is_tls = url.starts_with("https://");
    match kind {
        _ if is_http => {
            hosted.kind = http(attributes, url).kind();
            match kind {
                "expected_status_code" => {
                    let codes = attributes
                        .get("expected_status_codes")
                        .and_then(Value::as_array);
                    let codes: Vec<_> = codes.into_iter().flatten().map(Value::to_string).collect();
                    let codes = codes.iter().map(|code| code.trim_matches('"'));
                    hosted.expect_statuses(codes);
                }
                "keyword" | "keyword_absence" => {
                    let keyword = keyword.ok_or(LeftOut::Missing("`required_keyword`"))?;
                    hosted.expect_keyword(keyword, kind == "keyword_absence");
                }
                _ => {}
            }
        }
        "ping" => hosted.kind = vec![("icmp", toml_string(url))],
        "tcp" => hosted.kind = vec![("tcp", address(url, port(None)?))],
        "udp" => {
            let to = address(url, port(None)?);
            hosted.kind = vec![("udp", table(&[("to", to), ("send", toml_string(""))]))];
        }
        "smtp" | "pop" | "imap" => {
            let (greeting, default) = match kind {
                "smtp" => ("^220", 25),
                "pop" => (r"^\+OK", 110),
                _ => (r"^\* (OK|PREAUTH)", 143),
            };
            let talk = format!("[{}]", table(&[("expect", toml_string(greeting))]));
            let to = address(url, port(Some(default))?);
            hosted.kind = vec![("tcp", table(&[("to", to), ("talk", talk)]))];
        }
        "dns" => {
            let name =
                text_of(attributes, "request_body").ok_or(LeftOut::Missing("name to look up"))?;
            let pairs = [("name", toml_string(name)), ("server", toml_string(url))];
            hosted.kind = vec![("dns", table(&pairs))];
        }
        other => return Err(LeftOut::Type(other.to_owned())),
    }
    if let (Some(keyword), "udp" | "dns") = (keyword, kind) {
        hosted.expect_keyword(keyword, false);
    }
    if let Some(days) = number(attributes, "ssl_expiration").filter(|_| is_tls) {
        hosted.warn_of_certificate(days);
    }
    if let Some(days) = number(attributes, "domain_expiration") {
        hosted.remarks.push(format!(
            "the end of its domain is not watched: add a monitor with `domain`, `warn_within = \"{days}d\"`"
        ));
    }
    if let (Some(confirmation), Some(interval)) =
        (number(attributes, "confirmation_period"), hosted.interval)
        && interval > 0
    {
        // So many checks in a row lie within it.
        let confirm = 1 + confirmation.div_ceil(interval);
        hosted.rest.push(("confirm", confirm.to_string()));
    }
    if let Some(recovery) = number(attributes, "recovery_period") {
        let hold = toml_string(&format!("{recovery}s"));
        hosted.rest.push(("hold", hold));
    }
    for (key, what) in [
        (
            "maintenance_from",
            "its maintenance window is not carried over",
        ),
        ("playwright_script", "its script is not carried over"),
    ] {
        if text_of(attributes, key).is_some() {
            hosted.remarks.push(what.to_owned());
        }
    }
    Ok(hosted)
}

fn http<'v>(attributes: &'v Value, url: &'v str) -> HttpParts<'v> {
    let method = text_of(attributes, "http_method").map(str::to_ascii_uppercase);
    let headers = attributes.get("request_headers").and_then(Value::as_array);
    let headers = headers.into_iter().flatten();
    let user = text_of(attributes, "auth_username");
    HttpParts {
        url,
        method,
        body: text_of(attributes, "request_body"),
        headers: headers
            .filter_map(|field| Some((text_of(field, "name")?, text_of(field, "value")?)))
            .collect(),
        basic: user.zip(text_of(attributes, "auth_password")),
        follows: is_set(attributes, "follow_redirects").unwrap_or(true),
        is_insecure: is_set(attributes, "verify_ssl") == Some(false),
    }
}
