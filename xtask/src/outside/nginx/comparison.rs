//! What two programs have to agree on in their responses to a request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;

use flate2::read::GzDecoder;

use super::Ports;
use crate::outside::exchange::Answer;

/// The status, fields, and the request as the server got it or other content, by name.
pub(super) type Shown = BTreeMap<String, String>;

/// A request, as far as its response depends on it by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Its response has no content to look at.
    pub(super) is_head: bool,
    /// Where it was sent.
    pub(super) port: u16,
    /// How many servers, from the first one on, take turns.
    pub(super) alike: usize,
}

/// Fields of the connection, of the program itself, or of the time of day.
const LEFT_OUT: [&str; 12] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "date",
    "server",
    "via",
    "alt-svc",
    // A response that was stored has its age by RFC 9111, which nginx leaves out, and its history by RFC 9211.
    "age",
    "cache-status",
    // `cache-control` says the same, and counts where both are there.
    "expires",
    // Of two programs that serve the same file.
    "etag",
    // How a request was named for the server, which that shows too.
    "x-request-id",
];

/// Fields that describe a page which each program has of its own.
const OF_PAGES: [&str; 5] = [
    "content-type",
    "content-length",
    "cache-control",
    "vary",
    "x-content-type-options",
];

/// What has to be the same.
pub(super) fn shown(answer: &Answer, asked: &Asked, ports: Ports) -> Shown {
    let named = |text: &str| {
        let text = text.replace(&ports.https.to_string(), "HTTPS");
        let text = text.replace(&ports.extra.to_string(), "EXTRA");
        text.replace(&ports.http.to_string(), "HTTP")
    };
    let server = |text: &str| {
        let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
        let is_alike = number.parse().is_ok_and(|it: usize| it < asked.alike);
        let number = if is_alike { "one of several" } else { number };
        named(&format!("{number} {rest}"))
    };
    let text = decoded(answer);
    let has_page = is_page(answer, &text, asked.is_head);
    let mut shown = BTreeMap::from([("status".to_owned(), answer.status.to_string())]);
    if has_page {
        shown.insert("page".to_owned(), "of the program".to_owned());
    }
    for (name, _) in &answer.fields {
        let name = name.to_ascii_lowercase();
        if LEFT_OUT.contains(&name.as_str()) || has_page && OF_PAGES.contains(&name.as_str()) {
            continue;
        }
        let value = values_of(answer, &name);
        let value = match name.as_str() {
            "location" => named(&below_port(&value, asked.port)),
            "content-type" => media_type(&value),
            "vary" => value.to_ascii_lowercase(),
            "x-received" => server(&value),
            _ => named(&value),
        };
        shown.insert(name, value);
    }
    if has_page {
        return shown;
    }
    let Some(rest) = text.strip_prefix("server ") else {
        shown.insert("content".to_owned(), named(&text));
        return shown;
    };
    let (number, rest) = rest.split_once('\n').unwrap_or_default();
    shown.insert("received by server".to_owned(), server(number));
    for (number, line) in rest.lines().enumerate() {
        let (name, value) = match line.split_once(": ") {
            Some((name, value)) => (format!("received {name}"), value),
            None => (format!("line {number}"), line),
        };
        // The order of fields is not that of lines, and these are of the connection.
        let is_last = line.ends_with(" bytes");
        let name = if is_last { "length".to_owned() } else { name };
        // An address of IPv4 at a socket for both families; and a number that is another one each time.
        let value = value.strip_prefix("::ffff:").unwrap_or(value);
        let is_id = name == "received x-request-id" && value.len() == 32;
        let value = if is_id { "an ID" } else { value };
        if !OF_CONNECTION.contains(&name.as_str()) {
            shown.insert(name, named(value));
        }
    }
    shown
}

/// What servers receive that belongs to the connection with them, the key of a WebSocket included.
const OF_CONNECTION: [&str; 3] = [
    "received connection",
    "received via",
    "received sec-websocket-key",
];

/// The target of a redirect without the server, which nginx puts before it with the port.
fn below_port(location: &str, port: u16) -> String {
    let parts = location.split_once("://");
    let parts = parts.and_then(|(_, rest)| rest.split_once(&format!(":{port}/")));
    match parts {
        // Behind the host, and within no path.
        Some((host, rest)) if !host.contains('/') => format!("/{rest}"),
        _ => location.to_owned(),
    }
}

/// A media type as RFC 9239 and RFC 9110 have it: there is one for scripts, and blanks around `;` mean nothing.
fn media_type(value: &str) -> String {
    let value = value.to_ascii_lowercase().replace("; ", ";");
    value.replace("application/javascript", "text/javascript")
}

/// All values of a field.
fn values_of(answer: &Answer, name: &str) -> String {
    let fields = answer.fields.iter();
    let values = fields.filter(|(it, _)| it.eq_ignore_ascii_case(name));
    let values: Vec<_> = values.map(|(_, value)| value.as_str()).collect();
    values.join(", ")
}

fn decoded(answer: &Answer) -> String {
    let is_compressed = answer.field("content-encoding") == Some("gzip");
    let mut text = String::new();
    if is_compressed
        && GzDecoder::new(&answer.body[..])
            .read_to_string(&mut text)
            .is_ok()
    {
        return text;
    }
    answer.text()
}

/// Whether the content is a page of the program itself, about a status, and no other's.
fn is_page(answer: &Answer, text: &str, is_head: bool) -> bool {
    if text.contains("<center>nginx") {
        return true;
    }
    let is_about_status = answer.status >= 300
        && answer.status != 304
        && answer.field("x-received").is_none()
        && !text.starts_with("the file ");
    let is_of_nginx = answer
        .field("server")
        .is_some_and(|it| it.starts_with("nginx"));
    is_about_status && (is_head || text.is_empty() || !is_of_nginx)
}

/// Nothing, or the differences.
pub(super) fn compare(expected: &Shown, found: &Shown) -> Result<(), String> {
    let mut differences = String::new();
    let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let is_file = !expected.contains_key("x-received");
    for name in names {
        let (theirs, ours) = (expected.get(name), found.get(name));
        if theirs != ours && !is_extra(name, theirs, ours, is_file) {
            let of = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
            write!(
                differences,
                "{name}: nginx {:?}, plimsoll {:?}; ",
                of(theirs),
                of(ours)
            )
            .ok();
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(differences)
    }
}

/// Whether plimsoll says more than nginx, or one of them does not know before how long the content is.
fn is_extra(name: &str, theirs: Option<&String>, ours: Option<&String>, is_file: bool) -> bool {
    let is_ours = |value: &str| ours.is_some_and(|it| it == value);
    match name {
        // A gateway that forwards the client's address forwards these, too.
        "received x-forwarded-for" | "received x-forwarded-host" | "received x-forwarded-proto"
        // A proxy passes it on (RFC 9110, section 10.1.1).
        | "received expect"
        // Which methods there are, when to come back, and what a limit leaves.
        | "allow" | "retry-after" | "ratelimit" | "ratelimit-policy" => theirs.is_none(),
        // There is no content (RFC 9110, section 8.6).
        "received content-length" => theirs.is_none() && is_ours("0"),
        // Of files, where the configuration says nothing.
        "cache-control" => theirs.is_none() && is_ours("no-cache"),
        // `gzip_vary` is off by default, and caches have no use for that.
        "vary" => theirs.is_none() && is_ours("accept-encoding"),
        // Of a part of a file.
        "accept-ranges" => theirs.is_none() && is_ours("bytes"),
        // Texts that are files say how they are written.
        "content-type" => {
            let written = |it: &String| is_ours(&format!("{it};charset=utf-8"));
            is_file && theirs.is_some_and(written)
        }
        "content-length" => theirs.is_none() || ours.is_none(),
        _ => false,
    }
}
