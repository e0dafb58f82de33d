//! `UptimeRobot`: what `getMonitors` of its API (v2) and `GET /v3/monitors` return.
//!
//! Source: <https://uptimerobot.com/api/legacy/> and <https://uptimerobot.com/api/v3/>.

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::hosted::{Hosted, HttpParts, LeftOut, address, is_set, number};
use crate::config::import::{Imported, table, text_of};

/// Whether these are its monitors: each has a name of its own spelling.
pub(super) fn is_list(monitors: &[Value]) -> bool {
    !monitors.is_empty()
        && monitors.iter().all(|monitor| {
            monitor.get("friendly_name").is_some() || monitor.get("friendlyName").is_some()
        })
}

pub(super) fn import(monitors: &[Value]) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    for monitor in monitors {
        let name = either(monitor, "friendly_name", "friendlyName").unwrap_or("monitor");
        match hosted(monitor, name) {
            Ok(hosted) => hosted.write(&mut imported, &mut taken),
            Err(why) => imported.remark(name, format_args!("is left out: {why}")),
        }
    }
    imported
}

/// The type, by the number of v2 or the name of v3.
fn kind(monitor: &Value) -> Option<&str> {
    match number(monitor, "type") {
        Some(1) => Some("HTTP"),
        Some(2) => Some("KEYWORD"),
        Some(3) => Some("PING"),
        Some(4) => Some("PORT"),
        Some(5) => Some("HEARTBEAT"),
        Some(_) => None,
        None => text_of(monitor, "type"),
    }
}

fn either<'v>(monitor: &'v Value, old: &str, new: &str) -> Option<&'v str> {
    text_of(monitor, old).or_else(|| text_of(monitor, new))
}

fn hosted<'v>(monitor: &'v Value, name: &'v str) -> Result<Hosted<'v>, LeftOut> {
    let kind = kind(monitor).ok_or(LeftOut::UnknownType)?;
    let mut hosted = Hosted {
        name,
        interval: number(monitor, "interval"),
        timeout: number(monitor, "timeout").map(|seconds| seconds * 1000),
        is_paused: number(monitor, "status") == Some(0)
            || text_of(monitor, "status") == Some("PAUSED"),
        ..Hosted::default()
    };
    let tags = monitor.get("tags").and_then(Value::as_array);
    hosted.tags = tags
        .into_iter()
        .flatten()
        .filter_map(|tag| tag.as_str().or_else(|| text_of(tag, "name")))
        .collect();
    let url = || text_of(monitor, "url").ok_or(LeftOut::Missing("`url`"));
    match kind {
        "HTTP" | "KEYWORD" => {
            let mut parts = http(monitor, url()?, &mut hosted.remarks);
            // A keyword is in the content, which HEAD has none of.
            if kind == "KEYWORD" && parts.method.as_deref() == Some("HEAD") {
                parts.method = None;
            }
            hosted.kind = parts.kind();
            statuses(monitor, &mut hosted);
            if kind == "KEYWORD" {
                keyword(monitor, &mut hosted)?;
            }
            if is_set(monitor, "sslExpirationReminder") == Some(true) {
                // It reminds 30 days before for the first time.
                hosted.warn_of_certificate(30);
            }
        }
        "PING" => hosted.kind = vec![("icmp", toml_string(url()?))],
        "PORT" => {
            let port = match number(monitor, "port") {
                Some(port) => port,
                // Of services with a port of their own.
                None => match number(monitor, "sub_type") {
                    Some(1) => 80,
                    Some(2) => 443,
                    Some(3) => 21,
                    Some(4) => 25,
                    Some(5) => 110,
                    Some(6) => 143,
                    _ => return Err(LeftOut::Missing("`port`")),
                },
            };
            hosted.kind = vec![("tcp", address(url()?, port))];
        }
        "HEARTBEAT" => {
            let id = monitor.get("id").map(Value::to_string).unwrap_or_default();
            let token = format!("uptimerobot-heartbeat-{}", id.trim_matches('"'));
            let every = format!("{}s", hosted.interval.take().unwrap_or(300));
            let mut pairs = vec![
                ("every", toml_string(&every)),
                ("token", toml_string(&token)),
            ];
            if let Some(grace) = number(monitor, "gracePeriod") {
                pairs.push(("grace", toml_string(&format!("{grace}s"))));
            }
            hosted.timeout = None;
            hosted.kind = vec![("heartbeat", table(&pairs))];
            hosted.remarks.push(format!(
                "its job has to call /ping/{token} from now on; choose a token that cannot be guessed"
            ));
        }
        other => return Err(LeftOut::Type(other.to_owned())),
    }
    for (key, what) in [
        ("mwindows", "its maintenance windows are"),
        ("maintenanceWindows", "its maintenance windows are"),
        ("alert_contacts", "its contacts are"),
        ("assignedAlertContacts", "its contacts are"),
    ] {
        let list = monitor.get(key).and_then(Value::as_array);
        if list.is_some_and(|list| !list.is_empty()) {
            hosted.remarks.push(format!("{what} not carried over"));
        }
    }
    Ok(hosted)
}

fn http<'v>(monitor: &'v Value, url: &'v str, remarks: &mut Vec<String>) -> HttpParts<'v> {
    const METHODS: [&str; 7] = ["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

    let numbered = number(monitor, "http_method")
        .and_then(|number| METHODS.get(usize::try_from(number).ok()?.checked_sub(1)?))
        .copied();
    let method = numbered.or_else(|| text_of(monitor, "httpMethodType"));
    let headers = monitor
        .get("custom_http_headers")
        .or_else(|| monitor.get("customHttpHeaders"))
        .and_then(Value::as_object);
    let headers = headers.into_iter().flatten();
    let user = either(monitor, "http_username", "httpUsername");
    let password = either(monitor, "http_password", "httpPassword");
    let is_digest = number(monitor, "http_auth_type") == Some(2)
        || text_of(monitor, "authType") == Some("DIGEST");
    if is_digest && user.is_some() {
        remarks.push("its login by Digest is left out; write `basic` or `bearer`".to_owned());
    }
    let body = text_of(monitor, "post_value").or_else(|| text_of(monitor, "postValueData"));
    let has_parts = |key| monitor.get(key).is_some_and(Value::is_object);
    if has_parts("post_value") || has_parts("postValueData") {
        remarks.push("its form is left out; write it as `body`".to_owned());
    }
    HttpParts {
        url,
        method: method.map(str::to_owned),
        body,
        headers: headers
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect(),
        basic: user.zip(password).filter(|_| !is_digest),
        follows: is_set(monitor, "followRedirections").unwrap_or(true),
        // Then it does not check certificates.
        is_insecure: is_set(monitor, "checkSSLErrors") == Some(false),
    }
}

fn statuses(monitor: &Value, hosted: &mut Hosted<'_>) {
    let codes = monitor
        .get("successHttpResponseCodes")
        .and_then(Value::as_array);
    if let Some(codes) = codes {
        hosted.expect_statuses(codes.iter().filter_map(Value::as_str));
        return;
    }
    // `404:0_200:1`: a status that is down, and one that is up, beside the default.
    if let Some(custom) = text_of(monitor, "custom_http_statuses") {
        hosted.remarks.push(format!(
            "`custom_http_statuses` is left out: write `expect` for `{custom}`"
        ));
    }
}

fn keyword(monitor: &Value, hosted: &mut Hosted<'_>) -> Result<(), LeftOut> {
    let keyword =
        either(monitor, "keyword_value", "keywordValue").ok_or(LeftOut::Missing("keyword"))?;
    // It is down if the keyword is there (1), or is not there (2).
    let is_absent = match (
        number(monitor, "keyword_type"),
        text_of(monitor, "keywordType"),
    ) {
        (Some(1), _) | (_, Some("ALERT_EXISTS")) => true,
        (Some(2), _) | (_, Some("ALERT_NOT_EXISTS")) => false,
        _ => return Err(LeftOut::KeywordType),
    };
    let ignores_case = number(monitor, "keyword_case_type") == Some(1)
        || text_of(monitor, "keywordCaseType") == Some("CaseInsensitive");
    if ignores_case {
        hosted.remarks.push(
            "its keyword is found in this case only; write `body matches '(?i)…'`".to_owned(),
        );
    }
    hosted.expect_keyword(keyword, is_absent);
    Ok(())
}
