//! Access logs: the requests that a server had, and when.
//!
//! Each line is read on its own, by what it looks like: lines of text in the formats common and combined, with whatever
//! stands before and behind them (Apache, nginx, Caddy, Traefik, `HAProxy`, Envoy), JSON lines (nginx, Caddy, Envoy and
//! Istio, Traefik, Cloudflare, Google's load balancers), labelled values (LTSV), those of load balancers of AWS and of
//! Squid. In W3C's extended format (IIS, `CloudFront`) a directive gives the columns of the lines behind it. What an engine of
//! containers wrote around a line is taken off first. A log has no bodies and few fields, so a request is its method and its
//! target.

mod aws;

mod container;

mod extended;

mod json;

mod labelled;

mod squid;

mod text;

mod time;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use self::container::{Output, Parts};
use self::extended::Columns;
use self::time::Time;
use crate::{Arrival, FileRequest, Place, Remark, RequestFile, Template, is_target_byte};

/// Lines that were not understood, after which a file in which none was understood is given up.
const MOST_BAD_LINES: usize = 5;

/// Lines that are looked at to see whether a file is a log; most of them are to be lines of one.
const DETECTED_BY: usize = 20;

/// One line, read.
#[derive(Debug, PartialEq)]
struct Entry {
    time: Time,
    method: String,
    target: String,
    host: Option<String>,
    status: Option<u16>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Unusable {
    /// It is no line of a log.
    NotALine,
    /// Nothing was received that is a request, as from a scanner or a client that closed.
    NoRequest,
    /// The method is CONNECT, or the target `*`.
    NoPath,
    /// The connection went on with another protocol.
    Upgraded,
    /// The target has characters that no URL has.
    Target,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotALine => "not of an access log",
            Self::NoRequest => "no request",
            Self::NoPath => "no path in the request",
            Self::Upgraded => "another protocol from then on, such as WebSockets",
            Self::Target => "characters in the target that no URL has",
        })
    }
}

/// Whether the first lines of `text` are those of an access log.
pub(crate) fn looks_like_log(text: &str) -> bool {
    let mut reader = LineReader::default();
    let lines = text.lines().filter_map(|line| reader.read(line));
    let (mut read, mut other) = (0, 0);
    for result in lines.take(DETECTED_BY) {
        match result {
            Ok(_) => read += 1,
            Err(Unusable::NotALine) => other += 1,
            Err(_) => {}
        }
    }
    read > other
}

/// Reads a log: each request once, with the number of times it was seen as its weight, and when each was made.
pub(crate) fn parse(text: &str) -> Result<RequestFile, Vec<Remark>> {
    let mut file = RequestFile::default();
    let mut positions = HashMap::new();
    let mut logged = Vec::new();
    let mut unusable: HashMap<Unusable, (usize, usize)> = HashMap::new();
    let mut reader = LineReader::default();
    for (index, line) in text.lines().enumerate() {
        let Some(result) = reader.read(line) else {
            continue;
        };
        let entry = match result {
            Ok(entry) => entry,
            Err(cause) => {
                let (count, _) = unusable.entry(cause).or_insert((0, index + 1));
                *count += 1;
                let is_hopeless = cause == Unusable::NotALine && *count >= MOST_BAD_LINES;
                if is_hopeless && logged.is_empty() {
                    return Err(vec![not_a_log(text)]);
                }
                continue;
            }
        };
        let Entry {
            time,
            method,
            target,
            host,
            ..
        } = entry;
        let key = (method, target, host);
        let position = if let Some(position) = positions.get(&key) {
            *position
        } else {
            let position = file.requests.len();
            let (method, target, host) = &key;
            let mut request =
                FileRequest::new(Place::Line(index + 1), Template::literal(target.as_str()));
            request.method = Some(method.clone());
            request.host.clone_from(host);
            request.weight = 0;
            file.requests.push(request);
            positions.insert(key, position);
            position
        };
        let request: &mut FileRequest = &mut file.requests[position];
        request.weight = request.weight.saturating_add(1);
        logged.push((time, position));
    }
    if logged.is_empty() && unusable.contains_key(&Unusable::NotALine) {
        return Err(vec![not_a_log(text)]);
    }
    let mut unusable: Vec<_> = unusable.into_iter().collect();
    unusable.sort_unstable();
    for (cause, (count, first)) in unusable {
        let lines = if count == 1 { "line" } else { "lines" };
        let message = format!("{count} {lines} ({cause}; the first is line {first})");
        file.left_out.push(Remark::whole(message));
    }
    file.arrivals = arrivals(logged);
    Ok(file)
}

/// The arrivals in their order. Those of a log that has whole seconds only are spread evenly over each second: it does
/// not say when in the second they were.
fn arrivals(mut logged: Vec<(Time, usize)>) -> Vec<Arrival> {
    logged.sort_by_key(|(time, _)| time.nanoseconds);
    let Some((first, _)) = logged.first() else {
        return Vec::new();
    };
    let first = first.nanoseconds;
    let is_coarse = logged.iter().all(|(time, _)| time.is_whole_second);
    let mut arrivals = Vec::with_capacity(logged.len());
    for same in logged.chunk_by(|(one, _), (other, _)| one.nanoseconds == other.nanoseconds) {
        let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
        let step = if is_coarse {
            Duration::from_secs(1) / count
        } else {
            Duration::ZERO
        };
        for (number, (time, request)) in (0..count).zip(same) {
            let since = u64::try_from(time.nanoseconds - first).unwrap_or(u64::MAX);
            arrivals.push(Arrival {
                at: Duration::from_nanos(since) + step * number,
                request: *request,
            });
        }
    }
    arrivals
}

/// Reads one line after the other.
#[derive(Debug, Default)]
struct LineReader {
    /// Those of the lines that follow, where a directive names them.
    columns: Option<Columns>,
    /// Of lines that an engine of containers has cut.
    parts: Parts,
}

impl LineReader {
    /// `None` for a line that holds nothing: an empty one, a directive, or the beginning of one that goes on in another line.
    fn read(&mut self, line: &str) -> Option<Result<Entry, Unusable>> {
        let line = line.trim();
        match Output::parse(line) {
            Some(output) => {
                let written = output.written;
                let whole = self.parts.add(&output)?;
                self.read_whole(whole.trim(), Some(written))
            }
            None => self.read_whole(line, None),
        }
    }

    /// - `written`: when its line was written, for a line that has no time.
    fn read_whole(&mut self, line: &str, written: Option<Time>) -> Option<Result<Entry, Unusable>> {
        if line.starts_with('#') {
            if let Some(columns) = Columns::parse(line) {
                self.columns = Some(columns);
            }
            return None;
        }
        if line.is_empty() {
            return None;
        }
        let entry = match &self.columns {
            Some(columns) => columns.read(line),
            None => read_line(line, written),
        };
        Some(entry.and_then(usable))
    }
}

fn read_line(line: &str, written: Option<Time>) -> Result<Entry, Unusable> {
    if let (Some(start), true) = (line.find("{\""), line.ends_with('}')) {
        // Containers write the name of their service or a time before it.
        let (before, object) = line.split_at(start);
        json::read(before, object, written)
    } else if aws::is_line(line) {
        aws::read(line)
    } else if let Some(object) = labelled::object(line) {
        json::of_object(&object, written)
    } else if squid::is_line(line) {
        squid::read(line)
    } else {
        text::read(line)
    }
}

/// The entry, if such a request can be sent.
fn usable(mut entry: Entry) -> Result<Entry, Unusable> {
    if entry.status == Some(101) {
        return Err(Unusable::Upgraded);
    }
    if entry.method == "CONNECT" {
        return Err(Unusable::NoPath);
    }
    // Through a proxy, and by some balancers, the target is a whole URL.
    if let Some((scheme, rest)) = entry.target.split_once("://")
        && matches!(scheme, "http" | "https")
    {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        entry.host.get_or_insert_with(|| host.to_owned());
        entry.target = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
    }
    if !entry.target.starts_with('/') {
        return Err(Unusable::NoPath);
    }
    // Servers receive some of these as they are, and so they are sent.
    let is_sent = |byte| is_target_byte(byte) || b"\"<>\\^`{|}".contains(&byte);
    if !entry.target.bytes().all(is_sent) {
        return Err(Unusable::Target);
    }
    if let Some(host) = &mut entry.host {
        host.make_ascii_lowercase();
    }
    Ok(entry)
}

/// Method and target of a request line, such as `GET / HTTP/1.1`.
fn request_line(line: &str) -> Result<(String, String), Unusable> {
    let (method, rest) = line.split_once(' ').ok_or(Unusable::NoRequest)?;
    if !crate::request::is_token(method) || method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(Unusable::NoRequest);
    }
    let target = match rest.rsplit_once(' ') {
        Some((target, version)) if version.starts_with("HTTP/") => target,
        _ => rest,
    };
    Ok((method.to_owned(), target.to_owned()))
}

/// What a file is that is no access log, as far as its beginning shows it.
fn not_a_log(text: &str) -> Remark {
    Remark::whole(format!(
        "is not an access log that can be read: {}",
        appearance(text)
    ))
    .hint(
        "formats that are read are common, combined, JSON lines and those of AWS's load balancers; docs/formats.md lists what is read",
    )
}

/// What the lines of a file look like, for people.
pub fn appearance(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.clone().next().unwrap_or_default().trim();
    if first.chars().any(|char| char.is_control() && char != '\t') || text.contains('\0') {
        return "it looks like binary data, perhaps compressed".to_owned();
    }
    if let Ok(serde_json::Value::Object(object)) = serde_json::from_str(first) {
        let keys: Vec<_> = object
            .keys()
            .take(8)
            .map(|key| format!("`{key}`"))
            .collect();
        return format!(
            "its lines are JSON objects with the keys {}",
            keys.join(", ")
        );
    }
    if first.starts_with("#Fields") || first.starts_with("#Version") {
        return "it is a log in W3C's extended format without method and path".to_owned();
    }
    if text::has_time(first) {
        return format!(
            "its lines have a time and no request: `{}`",
            shortened(first)
        );
    }
    let columns = first.split(',').count();
    if columns > 2 && lines.take(3).all(|line| line.split(',').count() == columns) {
        return format!("it looks like CSV with {columns} columns");
    }
    format!("its first line is `{}`", shortened(first))
}

fn shortened(line: &str) -> String {
    const MOST: usize = 80;
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", line.split_at(end).0),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
