//! One line of the log. Nothing that a client sends can end it early or be taken for another field.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use crate::observe::access_log::format::{Escape, Layout, Line, TextPiece};
use crate::place::{TimeForm, Values};

/// Bytes of one value; what is longer is cut.
const LONGEST: usize = 2048;

/// Appends the line with its end to `out`.
///
/// - `text`: memory for one value.
pub(super) fn write(layout: &Layout, values: &dyn Values, text: &mut Vec<u8>, out: &mut Vec<u8>) {
    match &layout.line {
        Line::Json(members) => {
            let mut separator = b'{';
            for member in members {
                text.clear();
                let is_there = if let Some(place) = member.value.as_place() {
                    values.write(place, text)
                } else {
                    member.value.write(values, None, text);
                    true
                };
                if !is_there {
                    continue;
                }
                out.push(separator);
                separator = b',';
                out.extend_from_slice(&member.name);
                if member.is_literal {
                    out.extend_from_slice(text);
                } else {
                    out.push(b'"');
                    json_text(text, out);
                    out.push(b'"');
                }
            }
            out.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
        }
        Line::Text(pieces) => {
            for piece in pieces {
                match piece {
                    TextPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                    TextPiece::Value { place, escape } => {
                        text.clear();
                        if !values.write(place, text) || text.is_empty() {
                            out.push(b'-');
                            continue;
                        }
                        match escape {
                            Escape::None => out.extend_from_slice(text),
                            Escape::Quoted => quoted(text, out),
                            Escape::Bare => field(text, out),
                        }
                    }
                }
            }
        }
    }
    out.push(b'\n');
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
    layout: &Layout,
    connection: &LoggedConnection<'_>,
    out: &mut Vec<u8>,
) {
    match layout.line {
        Line::Json(_) => connection_json(connection, out),
        Line::Text(_) => connection_combined(connection, out),
    }
    out.push(b'\n');
}

fn connection_json(connection: &LoggedConnection<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    TimeForm::Iso.write(connection.time, out);
    put(
        out,
        format_args!(
            "\",\"peer\":\"{}\",\"protocol\":\"{}\"",
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
    put(out, format_args!("{} - - [", connection.peer.ip()));
    TimeForm::Clf.write(connection.time, out);
    let protocol = connection.protocol.to_ascii_uppercase();
    put(out, format_args!("] \"{protocol} "));
    quoted(connection.server_name.unwrap_or("-").as_bytes(), out);
    put(out, format_args!("\" 0 {} \"-\" \"-\"", connection.sent));
}

/// Text within quotes (RFC 8259, section 7); what is not UTF-8 becomes U+FFFD.
pub(super) fn json_text(value: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte);
    if cut(value).iter().all(is_plain) {
        return out.extend_from_slice(cut(value));
    }
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

/// Text within quotes, as Apache and nginx escape it.
pub(super) fn quoted(value: &[u8], out: &mut Vec<u8>) {
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

pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("a Vec takes whatever is written");
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::message::request::{Notes, TraceNote, UpstreamNote};
    use crate::observe::access_log::LogFormat;
    use crate::place::{Captured, CapturedValues, EndValues, Place};

    /// The values of a request by their places.
    struct Given<'a>(&'a [(Place, &'a [u8])]);

    impl Values for Given<'_> {
        fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
            let found = self.0.iter().find(|(known, _)| known == place);
            out.extend_from_slice(found.map_or(b"", |(_, value)| value));
            found.is_some()
        }
    }

    fn header(name: &'static str) -> Place {
        Place::Header(http::HeaderName::from_static(name))
    }

    fn notes() -> Notes {
        Notes {
            request_id: Some("id-1".into()),
            trace: Some(TraceNote {
                trace: 0xab,
                span: 1,
                parent: None,
                is_sampled: true,
            }),
            ..Notes::default()
        }
    }

    fn written(
        format: &LogFormat,
        request: &[(Place, &[u8])],
        notes: &Notes,
        refused: Option<&'static str>,
    ) -> String {
        let layout = &*format.0;
        let captured = Captured::read(&layout.of_request, &Given(request));
        let values = EndValues {
            captured: captured.with(&layout.of_request),
            head: CapturedValues::default(),
            notes,
            time: UNIX_EPOCH + Duration::from_millis(784_111_777_005),
            status: if refused.is_some() { 400 } else { 200 },
            bytes: 5,
            duration: Duration::from_micros(12),
            is_whole: true,
            refused,
        };
        let mut out = Vec::new();
        write(layout, &values, &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_both_formats() {
        let request: [(Place, &[u8]); 9] = [
            (Place::Client, b"2001:db8::7"),
            (Place::Peer, b"[2001:db8::7]:4711"),
            (Place::Method, b"GET"),
            (Place::Authority, b"example.org:80"),
            (Place::Path, b"/a"),
            (Place::QueryString, b"b=c"),
            (Place::Protocol, b"HTTP/1.1"),
            (Place::RequestLine, b"GET /a?b=c HTTP/1.1"),
            (header("user-agent"), b"curl/8"),
        ];
        assert_eq!(
            written(&LogFormat::json(), &request, &notes(), None),
            "{\"time\":\"1994-11-06T08:49:37.005Z\",\"peer\":\"[2001:db8::7]:4711\",\"method\":\"GET\",\
             \"host\":\"example.org:80\",\"path\":\"/a\",\"query\":\"b=c\",\"protocol\":\"HTTP/1.1\",\
             \"user_agent\":\"curl/8\",\"request_id\":\"id-1\",\
             \"trace_id\":\"000000000000000000000000000000ab\",\"status\":200,\"bytes\":5,\
             \"duration_us\":12,\"complete\":true}\n"
        );
        assert_eq!(
            written(&LogFormat::combined(), &request, &notes(), None),
            "2001:db8::7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b=c HTTP/1.1\" 200 5 \"-\" \"curl/8\"\n"
        );
        let user = Notes {
            user: Some("a b\"".into()),
            ..notes()
        };
        let refused: [(Place, &[u8]); 1] = [(Place::Client, b"2001:db8::7")];
        assert_eq!(
            written(
                &LogFormat::combined(),
                &refused,
                &user,
                Some("host-missing")
            ),
            "2001:db8::7 - a\\x20b\\x22 [06/Nov/1994:08:49:37 +0000] \"-\" 400 5 \"-\" \"-\"\n"
        );
        let json = written(&LogFormat::json(), &refused, &user, Some("host-missing"));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["refused"], "host-missing");
        assert_eq!(json.get("method"), None);
    }

    #[test]
    fn a_forwarded_request_names_its_server_and_phases() {
        let forwarded = Notes {
            upstream: Some(UpstreamNote {
                upstream: "api".into(),
                server: "http://10.0.0.1:80".into(),
                attempts: 2,
                connect: Some(Duration::from_micros(7)),
                head: Some(Duration::from_micros(9)),
            }),
            ..notes()
        };
        let json = written(&LogFormat::json(), &[], &forwarded, None);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["upstream"], "api");
        assert_eq!(json["server"], "http://10.0.0.1:80");
        let numbers = ["attempts", "connect_us", "head_us"].map(|key| json[key].as_u64());
        assert_eq!(numbers, [Some(2), Some(7), Some(9)]);
    }

    proptest! {
        #[test]
        fn no_value_forges_a_line(bytes in prop::collection::vec(any::<u8>(), 0..64), user in ".*") {
            let places = [
                Place::Client,
                Place::Path,
                Place::RequestLine,
                header("referer"),
                header("user-agent"),
            ];
            let request = places.map(|place| (place, bytes.as_slice()));
            let notes = Notes { user: Some(user.as_str().into()), ..notes() };
            let json = written(&LogFormat::json(), &request, &notes, None);
            prop_assert_eq!(json.find(|it: char| it.is_control()), Some(json.len() - 1));
            let json: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(json["path"].as_str().unwrap(), String::from_utf8_lossy(&bytes));
            prop_assert_eq!(&json["status"], 200);
            let line = written(&LogFormat::combined(), &request, &notes, None);
            prop_assert!(line.trim_end_matches('\n').bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(line.matches('"').count(), 6);
        }
    }
}
