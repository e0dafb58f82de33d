//! The line of a change through the admin port, in the format of the log.

use std::time::SystemTime;

use super::format::{Layout, Line};
use super::line::{json_text, put, quoted};
use crate::observe::audit::{AuditLine, AuditOutcome, AuditSource, MOST_CHANGES};
use crate::place::TimeForm;

/// Appends the line with its end to `out`.
pub(super) fn write(layout: &Layout, entry: &AuditLine<'_>, time: SystemTime, out: &mut Vec<u8>) {
    match layout.line {
        Line::Json(_) => json(entry, time, out),
        Line::Text(_) => combined(entry, time, out),
    }
    out.push(b'\n');
}

fn json(entry: &AuditLine<'_>, time: SystemTime, out: &mut Vec<u8>) {
    let member = |name: &str, value: &str, out: &mut Vec<u8>| {
        put(out, format_args!("\"{name}\":\""));
        json_text(value.as_bytes(), out);
        out.push(b'"');
    };
    out.extend_from_slice(b"{\"time\":\"");
    TimeForm::Iso.write(time, out);
    out.extend_from_slice(b"\",");
    member("audit", entry.action(), out);
    out.push(b',');
    member("by", entry.source.name(), out);
    if let AuditSource::Client(client) = entry.source {
        put(out, format_args!(",\"peer\":\"{}\"", client.peer));
        if let Some(user) = &client.user {
            out.push(b',');
            member("user", user, out);
        }
    }
    if !entry.changes.is_empty() {
        out.extend_from_slice(b",\"changes\":[");
        for (index, change) in entry.changes.iter().take(MOST_CHANGES).enumerate() {
            out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
            member("path", &change.path, out);
            for (name, value) in [("before", &change.before), ("after", &change.after)] {
                if let Some(value) = value {
                    out.push(b',');
                    member(name, value, out);
                }
            }
            out.push(b'}');
        }
        out.push(b']');
    }
    if let Some(more) = entry.more() {
        put(out, format_args!(",\"more\":{more}"));
    }
    match entry.outcome {
        AuditOutcome::Responded(status) => {
            put(out, format_args!(",\"status\":{}", status.as_u16()));
        }
        AuditOutcome::Done => out.extend_from_slice(b",\"result\":\"done\""),
        AuditOutcome::Failed => out.extend_from_slice(b",\"result\":\"failed\""),
    }
    out.push(b'}');
}

/// As the line of a request, for programs that read those.
fn combined(entry: &AuditLine<'_>, time: SystemTime, out: &mut Vec<u8>) {
    match entry.source {
        AuditSource::Client(client) => {
            put(out, format_args!("{}", client.peer.ip().to_canonical()));
        }
        AuditSource::Signal | AuditSource::File => out.push(b'-'),
    }
    out.extend_from_slice(b" - - [");
    TimeForm::Clf.write(time, out);
    out.extend_from_slice(b"] \"AUDIT ");
    quoted(entry.text().as_bytes(), out);
    let status = match entry.outcome {
        AuditOutcome::Responded(status) => status.as_u16(),
        AuditOutcome::Done | AuditOutcome::Failed => 0,
    };
    put(out, format_args!("\" {status} 0 \"-\" \"-\""));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::StatusCode;
    use serde_json::Value;

    use super::*;
    use crate::content::Difference;
    use crate::observe::access_log::LogFormat;
    use crate::observe::audit::AuditClient;

    fn written(format: &LogFormat, entry: &AuditLine<'_>) -> String {
        let mut out = Vec::new();
        let time = UNIX_EPOCH + Duration::from_millis(784_111_777_005);
        write(&format.0, entry, time, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_both_formats_say_who_did_what() {
        let client = AuditClient {
            peer: "127.0.0.1:4711".parse().unwrap(),
            user: Some("a\"\n".to_owned()),
            is_page: true,
            request: "PUT /upstreams/api".to_owned(),
        };
        let change = Difference {
            path: "upstream.api".to_owned(),
            before: Some("1".to_owned()),
            after: None,
        };
        let changes = vec![change; MOST_CHANGES + 2];
        let entry = AuditLine {
            source: AuditSource::Client(&client),
            changes: &changes[..1],
            outcome: AuditOutcome::Responded(StatusCode::NO_CONTENT),
        };
        assert_eq!(
            written(&LogFormat::json(), &entry),
            "{\"time\":\"1994-11-06T08:49:37.005Z\",\"audit\":\"PUT /upstreams/api\",\"by\":\"page\",\"peer\":\"127.0.0.1:4711\",\
             \"user\":\"a\\\"\\u000a\",\"changes\":[{\"path\":\"upstream.api\",\"before\":\"1\"}],\"status\":204}\n"
        );
        assert_eq!(
            written(&LogFormat::combined(), &entry),
            "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"AUDIT PUT /upstreams/api by 127.0.0.1:4711 (page, user a\\x22): 204; \
             - upstream.api: 1\" 204 0 \"-\" \"-\"\n"
        );
        let reload = AuditLine {
            source: AuditSource::Signal,
            changes: &changes,
            outcome: AuditOutcome::Failed,
        };
        let line: Value = serde_json::from_str(&written(&LogFormat::json(), &reload)).unwrap();
        assert_eq!(line["audit"], "reload");
        assert_eq!(line["by"], "signal");
        assert_eq!(line["result"], "failed");
        assert_eq!(line["changes"].as_array().unwrap().len(), MOST_CHANGES);
        assert_eq!(line["more"], 2);
    }
}
