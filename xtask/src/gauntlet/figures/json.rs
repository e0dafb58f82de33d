//! `summary.json`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{BUCKET, Figures, Shown, Statuses, exact};
use crate::Failure;

/// The figures of the JSON, which those of other formats have to agree with.
pub(in crate::gauntlet) struct Summary {
    pub(in crate::gauntlet) figures: Figures,
    /// How much of durations may be the generator's at most, in microseconds.
    pub(in crate::gauntlet) of_generator: BTreeMap<&'static str, f64>,
    pub(in crate::gauntlet) statuses: Statuses,
    pub(in crate::gauntlet) window: Duration,
    /// Start of the run, in seconds since midnight (UTC).
    pub(in crate::gauntlet) started: Option<f64>,
    /// Whether bytes are marked to be those before TLS.
    pub(in crate::gauntlet) excludes_tls: bool,
    /// Cautions, the one of a generator that is the limit among them.
    pub(in crate::gauntlet) cautions: Vec<String>,
}

/// Names of counts here and in the document.
const COUNTS: [(&str, &str); 11] = [
    ("started", "started"),
    ("ok", "ok"),
    ("failed", "failed"),
    ("aborted", "aborted"),
    ("dropped", "dropped"),
    ("missed", "missed"),
    ("errors", "errors"),
    ("reconnects", "reconnects"),
    ("redirects", "redirects"),
    ("warm-up", "warm_up"),
    ("in window", "completed_in_window"),
];

/// Names of durations here and in the document.
const TIMES: [(&str, &str, &str); 9] = [
    ("p50", "started p50", "p50_us"),
    ("p90", "started p90", "p90_us"),
    ("p99", "started p99", "p99_us"),
    ("max", "started max", "max_us"),
    ("mean", "started mean", "mean_us"),
    ("min", "started min", "min_us"),
    ("p75", "started p75", "p75_us"),
    ("p95", "started p95", "p95_us"),
    ("p99.9", "started p99.9", "p99_9_us"),
];

impl Summary {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let number = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
        let mut figures = Figures::new();
        for (name, key) in COUNTS {
            let value = number(&format!("/counts/{key}")).unwrap_or(0.0);
            figures.insert(name, exact(value));
        }
        for (name, pointer) in [
            ("sent", "/sent_bytes"),
            ("received", "/received_bytes"),
            ("connections", "/connections_opened"),
            ("requests/s", "/requests_per_second"),
        ] {
            figures.insert(name, exact(number(pointer).unwrap_or(0.0)));
        }
        let started = document.pointer("/latency/from_started");
        let intended = document.pointer("/latency/from_intended");
        let honest = intended.filter(|times| !times.is_null()).or(started);
        let mut of_generator = BTreeMap::new();
        for (name, of_started, key) in TIMES {
            for (figure, times) in [(name, honest), (of_started, started)] {
                let part = times.and_then(|times| times["of_generator"][key].as_f64());
                of_generator.extend(part.map(|part| (figure, part)));
            }
            figures.extend(
                honest
                    .and_then(|times| time(times, key))
                    .map(|it| (name, it)),
            );
            let shown = started.and_then(|times| time(times, key));
            figures.extend(shown.map(|it| (of_started, it)));
        }
        if let Some(times) = honest {
            let number = |key: &str| times[key].as_f64().unwrap_or(0.0);
            let all = number("count") + number("censored_count");
            figures.insert("latencies", exact(all));
        }
        let phases = document["phases"].as_array().into_iter().flatten();
        for phase in phases {
            if phase["phase"] == "tls" {
                figures.extend(time(phase, "p50_us").map(|it| ("tls p50", it)));
            }
        }
        let statuses = document["statuses"].as_object().into_iter().flatten();
        let warnings = document.pointer("/conditions/warnings");
        let warnings = warnings.and_then(Value::as_array).into_iter().flatten();
        let mut cautions: Vec<String> = warnings
            .filter_map(|warning| Some(warning.as_str()?.to_owned()))
            .collect();
        let saturated = document.pointer("/generator/saturated");
        if saturated.is_some_and(|saturated| !saturated.is_null()) {
            cautions.push("the generator was the limit".to_owned());
        }
        Ok(Self {
            figures,
            of_generator,
            statuses: statuses
                .filter_map(|(status, count)| Some((status.parse().ok()?, count.as_u64()?)))
                .collect(),
            window: Duration::from_secs_f64(number("/window_us").unwrap_or(0.0) / 1e6),
            started: document
                .pointer("/conditions/started")
                .and_then(Value::as_str)
                .and_then(seconds_of_day),
            excludes_tls: document["bytes_exclude_tls"] == true,
            cautions,
        })
    }

    pub(in crate::gauntlet) fn value(&self, name: &str) -> f64 {
        self.figures.get(name).map_or(0.0, |shown| shown.value)
    }
}

fn time(times: &Value, key: &str) -> Option<Shown> {
    let censored = times["censored"].as_array();
    Some(Shown {
        value: times[key].as_f64()?,
        is_bound: censored.is_some_and(|names| names.iter().any(|name| name == key)),
        rounding: BUCKET,
    })
}

/// Seconds since midnight of `2026-11-25T23:43:00.725Z`.
fn seconds_of_day(date: &str) -> Option<f64> {
    let time = date.split_once('T')?.1.strip_suffix('Z')?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    Some(hours.ok()? * 3600.0 + minutes.ok()? * 60.0 + seconds.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_their_marks_are_read() {
        let summary = Summary::parse(
            r#"{"counts": {"started": 3, "ok": 2}, "window_us": 2000000.0, "statuses": {"200": 2},
                "latency": {"from_started": {"count": 3, "p50_us": 10.0, "p99_us": 20.0, "censored": ["p99_us"],
                    "of_generator": {"p50_us": 3.0}}},
                "conditions": {"started": "2026-11-25T01:00:01.500Z", "warnings": ["slow"]},
                "generator": {"saturated": {"by": "cpu"}}}"#,
        )
        .unwrap();
        assert!((summary.value("started") - 3.0).abs() < 1e-9);
        assert!(!summary.figures["p50"].is_bound && summary.figures["p99"].is_bound);
        assert!((summary.of_generator["started p50"] - 3.0).abs() < 1e-9);
        assert_eq!(summary.started, Some(3601.5));
        assert_eq!(summary.cautions.len(), 2);
        assert_eq!(summary.statuses[&200], 2);
    }
}
