//! What imports of hosted monitors share: a monitor as its service describes it, and the tables that it becomes.

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::kuma::contains;
use crate::config::import::{Imported, table};

/// The pairs of a table, with values in TOML.
pub(super) type Pairs = Vec<(&'static str, String)>;

/// Why a monitor of a service is left out.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeftOut {
    /// The number of its type is not documented.
    #[error("its type is not known")]
    UnknownType,
    /// There is no such kind here.
    #[error("the type `{0}` is not supported")]
    Type(String),
    /// It lacks what it is about.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// It does not say whether its keyword has to be there.
    #[error("its keyword type is not known")]
    KeywordType,
}

/// A monitor of a service.
#[derive(Debug, Default)]
pub(super) struct Hosted<'v> {
    pub(super) name: &'v str,
    pub(super) group: &'v str,
    pub(super) is_paused: bool,
    /// The kind with its target.
    pub(super) kind: Pairs,
    /// Conditions.
    pub(super) expect: Vec<String>,
    /// Conditions that only degrade.
    pub(super) warn_unless: Vec<String>,
    pub(super) tags: Vec<&'v str>,
    /// Seconds.
    pub(super) interval: Option<u64>,
    /// Milliseconds.
    pub(super) timeout: Option<u64>,
    /// Further keys.
    pub(super) rest: Pairs,
    pub(super) remarks: Vec<String>,
}

impl Hosted<'_> {
    /// Writes it down; lines of one that is paused are comments, since a file has no paused monitors.
    pub(super) fn write(mut self, imported: &mut Imported, taken: &mut Vec<String>) {
        let begun = imported.text.len();
        let name = imported.begin(self.name, self.group, taken);
        for (key, value) in &self.kind {
            imported.pair(key, value);
        }
        if let Some(seconds) = self.interval.filter(|seconds| *seconds > 0) {
            imported.pair("interval", &toml_string(&format!("{seconds}s")));
        }
        if let Some(millis) = self.timeout.filter(|millis| *millis > 0) {
            let text = if millis % 1000 == 0 {
                format!("{}s", millis / 1000)
            } else {
                format!("{millis}ms")
            };
            imported.pair("timeout", &toml_string(&text));
        }
        for (key, conditions) in [("expect", &self.expect), ("warn_unless", &self.warn_unless)] {
            if !conditions.is_empty() {
                let all: Vec<_> = conditions.iter().map(|it| toml_string(it)).collect();
                imported.pair(key, &format!("[{}]", all.join(", ")));
            }
        }
        for (key, value) in &self.rest {
            imported.pair(key, value);
        }
        if !self.tags.is_empty() {
            let all: Vec<_> = self.tags.iter().map(|it| toml_string(it)).collect();
            imported.pair("tags", &format!("[{}]", all.join(", ")));
        }
        if self.is_paused {
            let of_monitor = imported.text.split_off(begun);
            for line in of_monitor.lines() {
                let prefix = if line.is_empty() { "" } else { "# " };
                imported.line(format_args!("{prefix}{line}"));
            }
            self.remarks
                .push("is paused, so its lines are comments".to_owned());
        }
        for remark in self.remarks {
            imported.remark(&name, remark);
        }
    }

    /// Warns of the end of a certificate.
    pub(super) fn warn_of_certificate(&mut self, days: u64) {
        self.warn_unless.push(format!("cert.days > {days}"));
    }

    /// Expects a text in the content, or its absence.
    pub(super) fn expect_keyword(&mut self, keyword: &str, is_absent: bool) {
        self.expect.push(contains(keyword, is_absent));
    }

    /// Expects one of these statuses: `200`, or all of a hundred (`2xx`). Others are remarked on.
    pub(super) fn expect_statuses<'s>(&mut self, statuses: impl Iterator<Item = &'s str>) {
        let mut all = Vec::new();
        for status in statuses {
            let hundred = status
                .strip_suffix("xx")
                .and_then(|it| it.parse::<u16>().ok());
            match (hundred, status.parse::<u16>()) {
                (Some(hundred @ 1..=5), _) => {
                    all.extend([format!("{hundred}xx")]);
                }
                (None, Ok(status)) => all.push(status.to_string()),
                _ => self
                    .remarks
                    .push(format!("the status `{status}` is left out")),
            }
        }
        // The default here.
        if all.is_empty() || all == ["2xx"] {
            return;
        }
        let mut parts: Vec<String> = Vec::new();
        for status in all {
            match status.strip_suffix("xx") {
                None => parts.push(format!("status == {status}")),
                // `any` has no ranges: both ends of a hundred, negated.
                Some(hundred) => {
                    let next = hundred.parse::<u16>().unwrap_or_default() + 1;
                    parts.push(format!(
                        "not(any(status < {hundred}00, status >= {next}00))"
                    ));
                }
            }
        }
        self.expect.push(match parts.as_slice() {
            [one] => one.clone(),
            several => format!("any({})", several.join(", ")),
        });
    }
}

/// The parts of a request.
#[derive(Debug, Default)]
pub(super) struct HttpParts<'v> {
    pub(super) url: &'v str,
    pub(super) method: Option<String>,
    pub(super) body: Option<&'v str>,
    /// Names with texts.
    pub(super) headers: Vec<(&'v str, &'v str)>,
    /// User and password.
    pub(super) basic: Option<(&'v str, &'v str)>,
    pub(super) follows: bool,
    pub(super) is_insecure: bool,
}

impl HttpParts<'_> {
    pub(super) fn kind(&self) -> Pairs {
        let mut pairs = vec![("url", toml_string(self.url))];
        let method = self.method.as_ref().filter(|method| *method != "GET");
        pairs.extend(method.map(|method| ("method", toml_string(method))));
        pairs.extend(self.body.map(|body| ("body", toml_string(body))));
        if let Some((user, password)) = self.basic {
            pairs.push(("basic", toml_string(&format!("{user}:{password}"))));
        }
        if !self.headers.is_empty() {
            let fields = self.headers.iter();
            let fields: Vec<_> = fields
                .map(|(name, value)| format!("{} = {}", toml_string(name), toml_string(value)))
                .collect();
            pairs.push(("headers", format!("{{ {} }}", fields.join(", "))));
        }
        if !self.follows {
            pairs.push(("redirects", "0".to_owned()));
        }
        if self.is_insecure {
            pairs.push(("insecure", "true".to_owned()));
        }
        let value = match pairs.as_slice() {
            [(_, url)] => url.clone(),
            several => table(several),
        };
        vec![("http", value)]
    }
}

/// `host:port` of a monitor of a port.
pub(super) fn address(host: &str, port: u64) -> String {
    let host = host.split_once("://").map_or(host, |(_, rest)| rest);
    toml_string(&format!("{}:{port}", host.trim_end_matches('/')))
}

/// A number that may be written as a text.
pub(super) fn number(value: &Value, key: &str) -> Option<u64> {
    let value = value.get(key)?;
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// A boolean that may be written as a number.
pub(super) fn is_set(value: &Value, key: &str) -> Option<bool> {
    let value = value.get(key)?;
    value.as_bool().or_else(|| Some(value.as_u64()? != 0))
}
