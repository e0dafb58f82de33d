//! Rates of requests that stick-tables count, as `rate_limit`.

use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::values::{after, time, with_places};
use super::{Model, Section};

/// The limit of a rule such as `http-request deny if { sc_http_req_rate(0) gt 20 }`; `None` for rules with other conditions.
pub(super) fn rate_limit(
    line: &Directive,
    section: &Section<'_>,
    model: &Model<'_>,
) -> Option<Keys> {
    if line.argument(0) != "deny" {
        return None;
    }
    let at = line.arguments.iter().position(|it| it == "if")?;
    let [sample, operator, count] = test(section, line.arguments.get(at + 1..)?)?;
    let count: u64 = count.parse().ok()?;
    let requests = match operator {
        "gt" => count,
        "ge" => count.checked_sub(1)?,
        _ => return None,
    };
    let counted = Counted::of_sample(sample, section)?;
    let table = match counted.table {
        Some(name) => model.sections.iter().find(|it| it.name() == name)?,
        None => section,
    };
    let stored = after(table.last("stick-table")?, "store")?;
    let period = stored
        .split(',')
        .find_map(|it| it.strip_prefix("http_req_rate(")?.strip_suffix(')'))?;
    if requests == 0 {
        return None;
    }
    let mut limit = Keys::default();
    limit.set("requests", requests.to_string());
    limit.text("per", &time(period)?);
    let status = after(line, "deny_status").unwrap_or("403");
    limit.set("status", status.parse::<u16>().ok()?.to_string());
    if let Some(key) = counted.key {
        limit.text("key", &key);
    }
    Some(limit)
}

/// Whether a stick-table counts nothing but rates of requests, which rules have as limits.
pub(super) fn counts_rates_only(table: &Directive) -> bool {
    after(table, "store")
        .is_some_and(|stored| stored.split(',').all(|it| it.starts_with("http_req_rate(")))
}

/// Sample, operator and value of a condition that is one test, written in place or as one `acl`.
fn test<'l>(section: &'l Section<'_>, words: &'l [String]) -> Option<[&'l str; 3]> {
    let words = match words {
        [open, words @ .., close] if open == "{" && close == "}" => words,
        [name] => {
            let mut same = section.all("acl").filter(|it| it.argument(0) == name);
            let acl = same.next()?;
            if same.next().is_some() {
                return None;
            }
            acl.arguments.get(1..)?
        }
        _ => return None,
    };
    match words {
        [sample, operator, value] => Some([sample, operator, value]),
        _ => None,
    }
}

/// What a rate is counted by.
struct Counted<'l> {
    /// A text with places; `None` for the address of the client.
    key: Option<String>,
    /// The section whose stick-table counts, unless it is the same.
    table: Option<&'l str>,
}

impl<'l> Counted<'l> {
    /// - `sample`: such as `sc_http_req_rate(0)`, `sc0_http_req_rate` or `src_http_req_rate(table)`.
    fn of_sample(sample: &'l str, section: &'l Section<'_>) -> Option<Self> {
        let (name, arguments) = match sample.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')')?),
            None => (sample, ""),
        };
        let named = |it: &'l str| Some(it).filter(|it| !it.is_empty());
        let (counter, table) = match name {
            "src_http_req_rate" => {
                return Some(Self {
                    key: None,
                    table: named(arguments),
                });
            }
            "sc_http_req_rate" => match arguments.split_once(',') {
                Some((counter, table)) => (counter, named(table)),
                None => (arguments, None),
            },
            "sc0_http_req_rate" => ("0", named(arguments)),
            "sc1_http_req_rate" => ("1", named(arguments)),
            "sc2_http_req_rate" => ("2", named(arguments)),
            _ => return None,
        };
        let word = format!("track-sc{counter}");
        let mut lines = section.lines.iter();
        let track =
            lines.find(|it| it.name.ends_with("-request") && it.arguments.contains(&word))?;
        let key = match after(track, &word)? {
            "src" => None,
            sample => Some(with_places(&format!("%[{sample}]"))?),
        };
        Some(Self {
            key,
            table: table.or_else(|| after(track, "table")),
        })
    }
}
