//! Lines of text: a time in brackets and, behind it, a request line in quotation marks.
//!
//! That is what the formats common and combined have (nginx, Apache, Caddy, Traefik), those with a virtual host or an
//! address before it, Envoy's default and the HTTP log of `HAProxy`.

use super::time::Time;
use super::{Entry, Unusable, request_line};

pub(super) fn read(line: &str) -> Result<Entry, Unusable> {
    let (time, before, behind) = time(line).ok_or(Unusable::NotALine)?;
    let mut quoted = Quoted(behind);
    // `HAProxy` has captured fields before the request, in braces and without quotation marks.
    let request = quoted.next().ok_or(Unusable::NotALine)?;
    if let (true, Some(entry)) = (
        request.starts_with('/'),
        proxy_manager(time, behind, &request),
    ) {
        return Ok(entry);
    }
    let status = quoted.0.split_whitespace().next();
    let status = status.and_then(|status| status.parse().ok());
    let (method, target) = request_line(&request)?;
    // Envoy's: the authority is the second last of the fields in quotation marks.
    let host = if before.is_empty() {
        let fields: Vec<_> = quoted.collect();
        let authority = fields
            .len()
            .checked_sub(2)
            .and_then(|place| fields.get(place));
        authority.filter(|host| host.as_str() != "-").cloned()
    } else {
        virtual_host(before)
    };
    Ok(Entry {
        time,
        method,
        target,
        host,
        status,
    })
}

/// The entry of Nginx Proxy Manager, which has the method, the scheme and the host before the path in quotation marks:
/// `[time] - 200 200 - GET https example.org "/path"`.
fn proxy_manager(time: Time, behind: &str, target: &str) -> Option<Entry> {
    let (before, _) = behind.split_once('"')?;
    let words: Vec<_> = before.split_whitespace().collect();
    let [.., method, "http" | "https", host] = words[..] else {
        return None;
    };
    Some(Entry {
        time,
        method: method.to_owned(),
        target: target.to_owned(),
        host: Some(host.to_owned()),
        status: words.get(1).and_then(|status| status.parse().ok()),
    })
}

/// Whether a line has a time in brackets.
pub(super) fn has_time(line: &str) -> bool {
    time(line).is_some()
}

/// The first time in brackets, with what stands before and behind it.
fn time(line: &str) -> Option<(Time, &str, &str)> {
    for (open, _) in line.match_indices('[') {
        let (before, bracket) = line.split_at(open);
        let (inner, behind) = bracket.strip_prefix('[')?.split_once(']')?;
        if let Some(time) = Time::parse(inner) {
            return Some((time, before.trim(), behind));
        }
    }
    None
}

/// `example.org:443` as the first of five words, as `vhost_combined` of Apache has it.
fn virtual_host(before: &str) -> Option<String> {
    let words: Vec<_> = before.split_whitespace().collect();
    match words[..] {
        [host, _, _, _] if host.contains('.') || host.contains(':') => Some(host.to_owned()),
        _ => None,
    }
}

/// The texts in quotation marks, what is escaped in them undone: `\"`, `\\` and `\x22`.
struct Quoted<'a>(&'a str);

impl Iterator for Quoted<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let (_, text) = self.0.split_once('"')?;
        let mut bytes = Vec::new();
        let mut rest = text.bytes().enumerate();
        while let Some((position, byte)) = rest.next() {
            match byte {
                b'"' => {
                    self.0 = text.get(position + 1..).unwrap_or_default();
                    return Some(String::from_utf8_lossy(&bytes).into_owned());
                }
                b'\\' => match rest.next() {
                    Some((at, b'x')) => {
                        let digits = text.get(at + 1..at + 3);
                        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                            Some(byte) => {
                                bytes.push(byte);
                                rest.nth(1);
                            }
                            None => bytes.extend(b"\\x"),
                        }
                    }
                    Some((_, byte @ (b'"' | b'\\'))) => bytes.push(byte),
                    Some((_, byte)) => bytes.extend([b'\\', byte]),
                    None => return None,
                },
                byte => bytes.push(byte),
            }
        }
        None
    }
}
