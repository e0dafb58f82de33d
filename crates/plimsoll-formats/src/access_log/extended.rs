//! W3C's extended log format (IIS, `CloudFront`): a directive names the columns.
//!
//! Source: <https://www.w3.org/TR/WD-logfile.html>

use super::time::Time;
use super::{Entry, Unusable};

/// Positions of what a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    date: Option<usize>,
    time: usize,
    method: usize,
    stem: usize,
    query: Option<usize>,
    host: Option<usize>,
    status: Option<usize>,
    /// `CloudFront` separates them by tabs.
    has_tabs: bool,
}

impl Columns {
    /// Reads `#Fields: date time cs-method cs-uri-stem …`; `None` for another directive, or if one of those is missing.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let names: Vec<_> = line.strip_prefix("#Fields:")?.split_whitespace().collect();
        let of = |known: &[&str]| names.iter().position(|name| known.contains(name));
        Some(Self {
            date: of(&["date"]),
            time: of(&["time"])?,
            method: of(&["cs-method"])?,
            stem: of(&["cs-uri-stem", "cs-uri"])?,
            query: of(&["cs-uri-query"]),
            host: of(&["cs-host", "x-host-header", "cs(Host)", "s-computername"]),
            status: of(&["sc-status"]),
            has_tabs: names.contains(&"x-edge-location"),
        })
    }

    pub(super) fn read(&self, line: &str) -> Result<Entry, Unusable> {
        let values: Vec<_> = if self.has_tabs {
            line.split('\t').collect()
        } else {
            fields(line)
        };
        let value = |position: usize| values.get(position).copied().filter(|value| *value != "-");
        let time = value(self.time).ok_or(Unusable::NotALine)?;
        // Without a date, times of one day follow one another.
        let date = self.date.and_then(value).unwrap_or("2000-01-01");
        let time = Time::parse(&format!("{date}T{time}")).ok_or(Unusable::NotALine)?;
        let method = value(self.method).ok_or(Unusable::NoRequest)?;
        let stem = value(self.stem).ok_or(Unusable::NoRequest)?;
        let target = match self.query.and_then(value) {
            Some(query) => format!("{stem}?{query}"),
            None => stem.to_owned(),
        };
        Ok(Entry {
            time,
            method: method.to_owned(),
            target,
            host: self.host.and_then(value).map(str::to_owned),
            status: self
                .status
                .and_then(value)
                .and_then(|status| status.parse().ok()),
        })
    }
}

/// Values separated by blanks; some are in quotation marks.
pub(super) fn fields(line: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once([' ', '\t']).unwrap_or((rest, "")),
        };
        fields.push(field);
        rest = behind.trim_start();
    }
    fields
}
