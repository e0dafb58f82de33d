//! Thresholds: what the figures of a run have to meet.
//!
//! A [`Threshold`] is parsed once and then judges anything that is [`Measured`]: a whole run, or a
//! stretch of one. Metrics and aggregations have the names of k6, as far as k6 has the figure.

mod metric;

mod error;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use self::error::ThresholdError;
pub use self::metric::{Aggregation, Measured, Metric, ServerFigures, Trend, Unit};
use crate::{Bounded, parse_byte_size, parse_duration, parse_rate};

/// The shortest and the longest stretch that a threshold can be held over.
const STRETCH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(1));

/// One condition on the figures of a run: `http_req_duration:p(99)<300ms over 10s abort after 5s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    metric: Metric,
    /// The observed server that the metric is of, if it is named.
    server: Option<String>,
    aggregation: Aggregation,
    comparison: Comparison,
    limit: f64,
    /// Every stretch of this length has to meet it; the whole run if absent.
    pub over: Option<Duration>,
    /// Whether, and from how long after the start on, a breach ends the run.
    pub abort_after: Option<Duration>,
}

impl Threshold {
    /// Parses `METRIC[{name:SERVER}]:AGGREGATION OPERATOR LIMIT [over TIME] [abort [after TIME]]`.
    ///
    /// A metric of the server may name one of several that are observed: `server_cpu_per_request{name:db}:value<2ms`.
    ///
    /// A limit has the unit of the figure: a time (a bare number is milliseconds, as in k6), a
    /// share such as `0.01` or `1%`, a size, a rate or a number.
    ///
    /// Without a metric it is the latency from the intended start: `p99<50ms`, `med<5ms`. `errors<1%` is their rate.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let whole = in_full(text.trim());
        let text = whole.as_ref();
        let (name, tag, rest) = named(text)?;
        let metric = Metric::parse(name.trim())?;
        let server = tag.map(|tag| server_of(metric, tag)).transpose()?;
        let start = rest
            .find(['<', '>', '=', '!'])
            .ok_or(ThresholdError::Operator)?;
        let (aggregation, rest) = rest.split_at(start);
        let aggregation = metric.aggregation(aggregation.trim())?;
        let end = rest
            .find(|c| !matches!(c, '<' | '>' | '=' | '!'))
            .unwrap_or(rest.len());
        let (operator, rest) = rest.split_at(end);
        let comparison = operator.parse()?;
        let mut words = rest.split_whitespace().peekable();
        let mut limit = String::new();
        while let Some(word) = words.next_if(|word| !matches!(*word, "over" | "abort")) {
            limit.push_str(word);
        }
        let limit = parse_limit(&limit, metric.unit(aggregation))?;
        let (mut over, mut abort_after) = (None, None);
        while let Some(word) = words.next() {
            match word {
                "over" if over.is_none() => {
                    let stretch = time(words.next(), "over")?;
                    if stretch < STRETCH.0 || stretch > STRETCH.1 {
                        return Err(ThresholdError::Stretch);
                    }
                    over = Some(stretch);
                }
                "abort" if abort_after.is_none() => {
                    abort_after = Some(match words.next_if_eq(&"after") {
                        Some(_) => time(words.next(), "abort after")?,
                        None => Duration::ZERO,
                    });
                }
                word => return Err(ThresholdError::Word(word.to_owned())),
            }
        }
        Ok(Self {
            text: text.to_owned(),
            metric,
            server,
            aggregation,
            comparison,
            limit,
            over,
            abort_after,
        })
    }

    /// The threshold as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The figure that is looked at.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The observed server that the figure is of; `None` for the target of the run.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The unit of its value and its limit.
    pub fn unit(&self) -> Unit {
        self.metric.unit(self.aggregation)
    }

    /// The limit, in [`Threshold::unit`].
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// The value in `measured`, in [`Threshold::unit`]; `None` if there is nothing to compute it from.
    pub fn value(&self, measured: &dyn Measured) -> Option<Bounded<f64>> {
        self.metric
            .value(self.aggregation, measured, self.server())
            .filter(|value| value.low().is_finite())
    }

    /// Whether `value` is within the limit, wherever between its bounds it lies.
    pub fn is_met(&self, value: Bounded<f64>) -> bool {
        let high = value.high().unwrap_or(f64::INFINITY);
        match self.comparison {
            // Two bounds on one side of the value that is excluded leave it possible in between.
            Comparison::NotEqual => self.limit < value.low() || self.limit > high,
            _ => self.holds(value.low()) && self.holds(high),
        }
    }

    fn holds(&self, value: f64) -> bool {
        let limit = &self.limit;
        match self.comparison {
            Comparison::Less => value < *limit,
            Comparison::LessOrEqual => value <= *limit,
            Comparison::Greater => value > *limit,
            Comparison::GreaterOrEqual => value >= *limit,
            Comparison::Equal => value.total_cmp(limit).is_eq(),
            Comparison::NotEqual => !value.total_cmp(limit).is_eq(),
        }
    }

    /// Margin of `value` to the limit, in percent of the limit; negative beyond it. `None`
    /// where that has no meaning, as for a value that is only known to be above a limit that it has to stay below.
    pub fn margin_percent(&self, value: Bounded<f64>) -> Option<f64> {
        let value = match self.comparison {
            Comparison::Less | Comparison::LessOrEqual => value.high()?,
            _ => value.low(),
        };
        let room = match self.comparison {
            Comparison::Less | Comparison::LessOrEqual => self.limit - value,
            Comparison::Greater | Comparison::GreaterOrEqual => value - self.limit,
            Comparison::Equal | Comparison::NotEqual => return None,
        };
        (self.limit > 0.0).then(|| room / self.limit * 100.0)
    }

    /// Whether `value` is worse than `other`: breached where the other is not, or nearer to it.
    pub fn is_worse(&self, value: Bounded<f64>, other: Bounded<f64>) -> bool {
        let high = |value: Bounded<f64>| value.high().unwrap_or(f64::INFINITY);
        match (self.is_met(value), self.is_met(other)) {
            (false, true) => true,
            (true, false) => false,
            _ => match self.comparison {
                Comparison::Less | Comparison::LessOrEqual => high(value) > high(other),
                Comparison::Greater | Comparison::GreaterOrEqual => value.low() < other.low(),
                Comparison::Equal | Comparison::NotEqual => false,
            },
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The name of a metric, the tag in braces behind it, and the text behind the colon.
fn named(text: &str) -> Result<(&str, Option<&str>, &str), ThresholdError> {
    let (name, rest) = text.split_once(':').ok_or(ThresholdError::Form)?;
    let Some((name, _)) = name.split_once('{') else {
        return Ok((name, None, rest));
    };
    let (_, tagged) = text.split_once('{').ok_or(ThresholdError::Form)?;
    let (tag, rest) = tagged.split_once('}').ok_or(ThresholdError::Tag)?;
    let rest = rest.trim_start().strip_prefix(':');
    Ok((name, Some(tag), rest.ok_or(ThresholdError::Form)?))
}

/// The server of the tag `name:SERVER`.
fn server_of(metric: Metric, tag: &str) -> Result<String, ThresholdError> {
    let (key, name) = tag.split_once(':').ok_or(ThresholdError::Tag)?;
    let name = name.trim();
    if !metric.needs_server() || key.trim() != "name" || name.is_empty() {
        return Err(ThresholdError::Tag);
    }
    Ok(name.to_owned())
}

fn time(word: Option<&str>, after: &'static str) -> Result<Duration, ThresholdError> {
    let word = word.ok_or(ThresholdError::Time { after })?;
    parse_duration(word).map_err(ThresholdError::Limit)
}

/// In the unit that values have.
/// A short form with its metric.
fn in_full(text: &str) -> Cow<'_, str> {
    if text.contains([':', '{']) {
        return text.into();
    }
    let end = text.find(['<', '>', '=', '!', ' ']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_percentile = word.strip_prefix('p').is_some_and(|number| {
        number.starts_with(|char: char| char == '(' || char.is_ascii_digit())
    });
    match word {
        "errors" => format!("errors:rate{rest}").into(),
        "avg" | "min" | "max" | "med" => format!("latency:{text}").into(),
        _ if is_percentile => format!("latency:{text}").into(),
        _ => text.into(),
    }
}

fn parse_limit(text: &str, unit: Unit) -> Result<f64, ThresholdError> {
    if text.is_empty() {
        return Err(ThresholdError::NoLimit {
            example: unit.example(),
        });
    }
    let bare = text.parse::<f64>().ok();
    let limit = match unit {
        Unit::Microseconds => match bare {
            Some(milliseconds) => milliseconds * 1e3,
            None => parse_duration(text)?.as_secs_f64() * 1e6,
        },
        Unit::Bytes => parse_byte_size(text)?.0 as f64,
        Unit::BytesPerSecond => parse_byte_size(text.strip_suffix("/s").unwrap_or(text))?.0 as f64,
        Unit::PerSecond => parse_rate(text)?.per_second(),
        Unit::Ratio => match text.strip_suffix('%').map(str::parse::<f64>) {
            Some(Ok(percent)) => percent / 100.0,
            _ => bare.ok_or_else(|| number(text, unit))?,
        },
        Unit::Percent => text
            .strip_suffix('%')
            .unwrap_or(text)
            .parse()
            .map_err(|_| number(text, unit))?,
        Unit::Count => bare.ok_or_else(|| number(text, unit))?,
    };
    if !limit.is_finite() || limit < 0.0 {
        return Err(number(text, unit));
    }
    Ok(limit)
}

fn number(text: &str, unit: Unit) -> ThresholdError {
    ThresholdError::Number {
        text: text.to_owned(),
        example: unit.example(),
    }
}

/// Comparison of a value with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl FromStr for Comparison {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        Ok(match text {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "==" | "===" => Self::Equal,
            "!=" => Self::NotEqual,
            _ => return Err(ThresholdError::Operator),
        })
    }
}

/// A threshold with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedThreshold {
    /// The threshold.
    pub threshold: Threshold,
    /// The value of the run, or of the stretch that was worst; `None` if there was nothing to compute
    /// it from.
    pub value: Option<Bounded<f64>>,
    /// Time since the start of the run at the end of that stretch.
    pub at: Option<Duration>,
    /// Whether its breach ended the run.
    pub ended_run: bool,
}

/// The verdict on a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdVerdict {
    /// The value is within the limit.
    Met,
    /// It is not.
    Breached,
    /// There was nothing to compute the value from: it was not shown to hold.
    NoData,
}

impl JudgedThreshold {
    /// Whether it was met.
    pub fn verdict(&self) -> ThresholdVerdict {
        match self.value {
            None => ThresholdVerdict::NoData,
            Some(value) if self.threshold.is_met(value) => ThresholdVerdict::Met,
            Some(_) => ThresholdVerdict::Breached,
        }
    }

    /// Margin to the limit, in percent of the limit; negative beyond it.
    pub fn margin_percent(&self) -> Option<f64> {
        self.threshold.margin_percent(self.value?)
    }
}

impl ThresholdVerdict {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Breached => "breached",
            Self::NoData => "no-data",
        }
    }
}

#[cfg(test)]
mod tests;
