//! One line of the log. Nothing that a client sends can end it early or be taken for another field.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_wire::h1::RequestError;

use crate::message::request::UpstreamNote;
use crate::observe::access_log::LogFormat;

/// The logged properties of a request. Texts are as the client sent them.
#[derive(Debug, Clone)]
pub(super) struct Record<'a> {
    /// When it had been read.
    pub(super) time: SystemTime,
    pub(super) peer: SocketAddr,
    /// `None` of what could not be read.
    pub(super) request: Option<LoggedRequest<'a>>,
    pub(super) version: &'static str,
    pub(super) user: Option<&'a str>,
    pub(super) status: u16,
    /// Content of the response, without what frames it.
    pub(super) bytes: u64,
    pub(super) duration: Duration,
    pub(super) route: Option<&'a str>,
    pub(super) request_id: Option<&'a str>,
    pub(super) trace: Option<u128>,
    /// Upstream of the request.
    pub(super) upstream: Option<&'a UpstreamNote>,
    /// The whole response was handed to the connection.
    pub(super) is_whole: bool,
    pub(super) refused: Option<RequestError>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoggedRequest<'a> {
    pub(super) method: &'a [u8],
    pub(super) host: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) query: Option<&'a [u8]>,
    pub(super) referer: Option<&'a [u8]>,
    pub(super) user_agent: Option<&'a [u8]>,
}

/// Bytes of one value; what is longer is cut.
const LONGEST: usize = 2048;

/// Appends the line with its end to `out`.
pub(super) fn write(format: LogFormat, record: &Record<'_>, out: &mut Vec<u8>) {
    match format {
        LogFormat::Json => json(record, out),
        LogFormat::Combined => combined(record, out),
    }
    out.push(b'\n');
}

fn json(record: &Record<'_>, out: &mut Vec<u8>) {
    let (year, month, day) = date(record.time);
    let (hour, minute, second, milli) = time_of_day(record.time);
    let request = record.request.unwrap_or_default();
    put(
        out,
        format_args!(
            "{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z\",\"peer\":\"{}\"",
            record.peer
        ),
    );
    let mut text = |name: &str, value: Option<&[u8]>| {
        if let Some(value) = value {
            put(out, format_args!(",\"{name}\":\""));
            json_text(value, out);
            out.push(b'"');
        }
    };
    if record.request.is_some() {
        text("method", Some(request.method));
        text("host", Some(request.host));
        text("path", Some(request.path));
    }
    text("query", request.query);
    text("protocol", Some(record.version.as_bytes()));
    text("referer", request.referer);
    text("user_agent", request.user_agent);
    text("user", record.user.map(str::as_bytes));
    text("route", record.route.map(str::as_bytes));
    text("request_id", record.request_id.map(str::as_bytes));
    if let Some(trace) = record.trace {
        text("trace_id", Some(format!("{trace:032x}").as_bytes()));
    }
    if let Some(note) = record.upstream {
        text("upstream", Some(note.upstream.as_bytes()));
        text("server", Some(note.server.as_bytes()));
    }
    text(
        "refused",
        record.refused.map(|error| error.name().as_bytes()),
    );
    if let Some(note) = record.upstream {
        put(out, format_args!(",\"attempts\":{}", note.attempts));
        let times = [("connect_us", note.connect), ("head_us", note.head)];
        for (name, time) in times {
            if let Some(time) = time {
                put(out, format_args!(",\"{name}\":{}", time.as_micros()));
            }
        }
    }
    put(
        out,
        format_args!(
            ",\"status\":{},\"bytes\":{},\"duration_us\":{},\"complete\":{}}}",
            record.status,
            record.bytes,
            record.duration.as_micros(),
            record.is_whole
        ),
    );
}

/// The logged properties of a connection or flow that is not HTTP, once it has ended.
#[derive(Debug, Clone)]
pub struct LoggedConnection<'a> {
    /// When it began.
    pub time: SystemTime,
    /// The client.
    pub peer: SocketAddr,
    /// `tcp`, `udp` or `quic`.
    pub protocol: &'static str,
    /// The name that a TLS client requested, in lower case.
    pub server_name: Option<&'a str>,
    /// Upstream and server of a forwarded request.
    pub forwarded: Option<(&'a str, &'a str)>,
    /// Servers that were tried.
    pub attempts: u32,
    /// Time to open the connection to the server.
    pub connect: Option<Duration>,
    /// Bytes from the client.
    pub received: u64,
    /// Bytes to the client.
    pub sent: u64,
    /// From its first byte to its end.
    pub duration: Duration,
    /// Why it ended, in one word.
    pub end: &'static str,
}

/// Appends the line of a connection with its end to `out`.
pub(super) fn write_connection(
    format: LogFormat,
    connection: &LoggedConnection<'_>,
    out: &mut Vec<u8>,
) {
    match format {
        LogFormat::Json => connection_json(connection, out),
        LogFormat::Combined => connection_combined(connection, out),
    }
    out.push(b'\n');
}

fn connection_json(connection: &LoggedConnection<'_>, out: &mut Vec<u8>) {
    let (year, month, day) = date(connection.time);
    let (hour, minute, second, milli) = time_of_day(connection.time);
    put(
        out,
        format_args!(
            "{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z\",\"peer\":\"{}\",\"protocol\":\"{}\"",
            connection.peer, connection.protocol
        ),
    );
    let (upstream, server) = connection.forwarded.unzip();
    for (name, value) in [
        ("server_name", connection.server_name),
        ("upstream", upstream),
        ("server", server),
    ] {
        if let Some(value) = value {
            put(out, format_args!(",\"{name}\":\""));
            json_text(value.as_bytes(), out);
            out.push(b'"');
        }
    }
    put(out, format_args!(",\"attempts\":{}", connection.attempts));
    if let Some(time) = connection.connect {
        put(out, format_args!(",\"connect_us\":{}", time.as_micros()));
    }
    put(
        out,
        format_args!(
            ",\"bytes_received\":{},\"bytes\":{},\"duration_us\":{},\"end\":\"{}\"}}",
            connection.received,
            connection.sent,
            connection.duration.as_micros(),
            connection.end
        ),
    );
}

fn connection_combined(connection: &LoggedConnection<'_>, out: &mut Vec<u8>) {
    combined_start(connection.peer, None, connection.time, out);
    let protocol = connection.protocol.to_ascii_uppercase();
    put(out, format_args!("\"{protocol} "));
    quoted(connection.server_name.unwrap_or("-").as_bytes(), out);
    put(out, format_args!("\" 0 {} \"-\" \"-\"", connection.sent));
}

/// Text within quotes (RFC 8259, section 7); what is not UTF-8 becomes U+FFFD.
fn json_text(value: &[u8], out: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(cut(value)).chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            // Those above 127 would reach a terminal as commands, too.
            character if character.is_control() => {
                put(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            character => put(out, format_args!("{character}")),
        }
    }
}

/// The start of every line of the combined format, up to the request.
fn combined_start(peer: SocketAddr, user: Option<&str>, time: SystemTime, out: &mut Vec<u8>) {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, month, day) = date(time);
    let (hour, minute, second, _) = time_of_day(time);
    let month = MONTHS[month - 1];
    put(out, format_args!("{} - ", peer.ip()));
    match user {
        Some(user) if !user.is_empty() => field(user.as_bytes(), out),
        _ => out.push(b'-'),
    }
    put(
        out,
        format_args!(" [{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000] "),
    );
}

fn combined(record: &Record<'_>, out: &mut Vec<u8>) {
    combined_start(record.peer, record.user, record.time, out);
    out.push(b'"');
    match record.request {
        None => out.push(b'-'),
        Some(request) => {
            quoted(request.method, out);
            out.push(b' ');
            // CONNECT has no path, only an authority.
            quoted(
                if request.path.is_empty() {
                    request.host
                } else {
                    request.path
                },
                out,
            );
            if let Some(query) = request.query {
                out.push(b'?');
                quoted(query, out);
            }
            put(out, format_args!(" {}", record.version));
        }
    }
    put(
        out,
        format_args!("\" {:03} {} \"", record.status, record.bytes),
    );
    let request = record.request.unwrap_or_default();
    quoted(request.referer.unwrap_or(b"-"), out);
    out.extend_from_slice(b"\" \"");
    quoted(request.user_agent.unwrap_or(b"-"), out);
    out.push(b'"');
}

/// Text within quotes, as Apache and nginx escape it.
fn quoted(value: &[u8], out: &mut Vec<u8>) {
    for byte in cut(value) {
        match byte {
            b' '..=b'~' if !b"\"\\".contains(byte) => out.push(*byte),
            byte => put(out, format_args!("\\x{byte:02X}")),
        }
    }
}

/// Text without quotes: it has no spaces either.
fn field(value: &[u8], out: &mut Vec<u8>) {
    for byte in cut(value) {
        match byte {
            b' ' => out.extend_from_slice(b"\\x20"),
            byte => quoted(&[*byte], out),
        }
    }
}

fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(LONGEST)]
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("a Vec takes whatever is written");
}

const SECONDS_OF_DAY: u64 = 86_400;

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Hour, minute, second and millisecond in UTC.
fn time_of_day(time: SystemTime) -> (u64, u64, u64, u32) {
    let since = since_epoch(time);
    let second = since.as_secs() % SECONDS_OF_DAY;
    (
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis(),
    )
}

/// Year, month and day in UTC: days are counted from the first of March, so that leap days come last.
fn date(time: SystemTime) -> (u64, usize, u64) {
    /// Days of 400 years, and from 0000-03-01 to 1970-01-01.
    const ERA: u64 = 146_097;
    const TO_EPOCH: u64 = 719_468;
    let days = since_epoch(time).as_secs() / SECONDS_OF_DAY + TO_EPOCH;
    let of_era = days % ERA;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + days / ERA * 400 + u64::from(month <= 2);
    (year, usize::try_from(month).unwrap_or(1), day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn record() -> Record<'static> {
        Record {
            time: UNIX_EPOCH + Duration::from_millis(784_111_777_005),
            peer: "[2001:db8::7]:4711".parse().unwrap(),
            request: Some(LoggedRequest {
                method: b"GET",
                host: b"example.org:80",
                path: b"/a",
                query: Some(b"b=c"),
                referer: None,
                user_agent: Some(b"curl/8"),
            }),
            version: "HTTP/1.1",
            user: None,
            status: 200,
            bytes: 5,
            duration: Duration::from_micros(12),
            route: Some("home"),
            request_id: Some("id-1"),
            trace: Some(0xab),
            upstream: None,
            is_whole: true,
            refused: None,
        }
    }

    fn written(format: LogFormat, record: &Record<'_>) -> String {
        let mut out = Vec::new();
        write(format, record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_both_formats() {
        assert_eq!(
            written(LogFormat::Json, &record()),
            "{\"time\":\"1994-11-06T08:49:37.005Z\",\"peer\":\"[2001:db8::7]:4711\",\"method\":\"GET\",\
             \"host\":\"example.org:80\",\"path\":\"/a\",\"query\":\"b=c\",\"protocol\":\"HTTP/1.1\",\
             \"user_agent\":\"curl/8\",\"route\":\"home\",\"request_id\":\"id-1\",\
             \"trace_id\":\"000000000000000000000000000000ab\",\"status\":200,\"bytes\":5,\
             \"duration_us\":12,\"complete\":true}\n"
        );
        assert_eq!(
            written(LogFormat::Combined, &record()),
            "2001:db8::7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b=c HTTP/1.1\" 200 5 \"-\" \"curl/8\"\n"
        );
        let refused = Record {
            request: None,
            status: 400,
            refused: Some(RequestError::HostMissing),
            user: Some("a b\""),
            ..record()
        };
        assert_eq!(
            written(LogFormat::Combined, &refused),
            "2001:db8::7 - a\\x20b\\x22 [06/Nov/1994:08:49:37 +0000] \"-\" 400 5 \"-\" \"-\"\n"
        );
        let json: Value = serde_json::from_str(&written(LogFormat::Json, &refused)).unwrap();
        assert_eq!(json["refused"], RequestError::HostMissing.name());
        assert_eq!(json.get("method"), None);
    }

    #[test]
    fn a_forwarded_request_names_its_server_and_phases() {
        let note = UpstreamNote {
            upstream: "api".into(),
            server: "http://10.0.0.1:80".into(),
            attempts: 2,
            connect: Some(Duration::from_micros(7)),
            head: Some(Duration::from_micros(9)),
        };
        let forwarded = Record {
            upstream: Some(&note),
            ..record()
        };
        let json: Value = serde_json::from_str(&written(LogFormat::Json, &forwarded)).unwrap();
        assert_eq!(json["upstream"], "api");
        assert_eq!(json["server"], "http://10.0.0.1:80");
        let numbers = ["attempts", "connect_us", "head_us"].map(|key| json[key].as_u64());
        assert_eq!(numbers, [Some(2), Some(7), Some(9)]);
    }

    #[test]
    fn dates_are_those_of_httpdate() {
        for days in (0..80_000).step_by(7) {
            let time = UNIX_EPOCH + Duration::from_secs(days * SECONDS_OF_DAY);
            let (year, month, day) = date(time);
            let parsed = httpdate::parse_http_date(&httpdate::fmt_http_date(time)).unwrap();
            assert_eq!(parsed, time);
            let text = httpdate::fmt_http_date(time);
            assert!(text.contains(&format!(" {day:02} ")), "{text}");
            assert!(text.contains(&format!(" {year} ")), "{text}");
            let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
            let name = months.get(3 * (month - 1)..3 * month).unwrap();
            assert!(text.contains(name), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_value_forges_a_line(bytes in prop::collection::vec(any::<u8>(), 0..64), user in ".*") {
            let request = LoggedRequest {
                method: &bytes,
                host: &bytes,
                path: &bytes,
                query: Some(&bytes),
                referer: Some(&bytes),
                user_agent: Some(&bytes),
            };
            let record = Record { request: Some(request), user: Some(&user), ..record() };
            let json = written(LogFormat::Json, &record);
            prop_assert_eq!(json.find(|it: char| it.is_control()), Some(json.len() - 1));
            let json: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(json["path"].as_str().unwrap(), String::from_utf8_lossy(&bytes));
            prop_assert_eq!(&json["status"], 200);
            let line = written(LogFormat::Combined, &record);
            prop_assert!(line.trim_end_matches('\n').bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(line.matches('"').count(), 6);
        }
    }
}
