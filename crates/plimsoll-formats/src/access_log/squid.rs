//! Squid's own format: `1580740555.461 138 192.0.2.1 TCP_MISS/200 3853 GET http://example.org/ - HIER_DIRECT/- text/html`.

use super::time::Time;
use super::{Entry, Unusable};

/// Whether a line begins as one of them does.
pub(super) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let time = words.next().and_then(|word| word.parse().ok());
    time.and_then(Time::from_number).is_some()
        && words.nth(2).is_some_and(|word| word.contains('/'))
}

pub(super) fn read(line: &str) -> Result<Entry, Unusable> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [time, took, _, result, _, method, target, ..] = words[..] else {
        return Err(Unusable::NotALine);
    };
    let time = time.parse().ok().and_then(Time::from_number);
    let time = time.ok_or(Unusable::NotALine)?;
    let took = took.parse::<f64>().unwrap_or_default() / 1e3;
    let status = result
        .rsplit_once('/')
        .and_then(|(_, status)| status.parse().ok());
    if method == "-" || target.starts_with("error:") {
        return Err(Unusable::NoRequest);
    }
    Ok(Entry {
        time: time.minus(took),
        method: method.to_owned(),
        target: target.to_owned(),
        host: None,
        status,
    })
}
