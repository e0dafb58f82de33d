//! Metrics in the text format of Prometheus.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4.

use std::fmt::{Display, Write as _};

const IN_MEMORY: &str = "writing to memory does not fail";

/// Metrics in the text format of Prometheus, version 0.0.4. The samples of one name stand together, behind its
/// [`family`](Self::family).
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// The media type of the text.
    pub const MEDIA_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins the samples of one name.
    ///
    /// - `kind`: `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(IN_MEMORY);
    }

    /// One sample, with the values of its labels.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (number, (label, value)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            write!(self.0, "{before}{label}=\"").expect(IN_MEMORY);
            self.push_escaped(value);
            self.0.push('"');
        }
        let after = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{after} {value}").expect(IN_MEMORY);
    }

    /// The samples of one histogram.
    ///
    /// - `buckets`: upper bounds, ascending, each with the count of values above the bound before it.
    /// - `beyond`: the count of values above the last bound.
    /// - `sum`: of all values, in the unit of the bounds.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        beyond: u64,
        sum: f64,
    ) {
        let bucket = format!("{name}_bucket");
        let mut count = 0;
        for (bound, in_bucket) in buckets {
            count += in_bucket;
            let bound = bound.to_string();
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.sample(&bucket, &labels, count);
        }
        count += beyond;
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }

    /// Appends samples that were collected apart.
    pub fn append(&mut self, samples: &Self) {
        self.0.push_str(&samples.0);
    }

    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }

    /// The value of a label: backslash, quote and line feed are escaped, other control characters are replaced.
    fn push_escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c if c.is_control() => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = MetricsText::default();
        text.family("a_total", "counter", "All.");
        text.sample("a_total", &[], 1);
        text.sample("a_total", &[("x", "a\"b\\c\nd\re"), ("y", "")], 2.5);
        let expected = "# HELP a_total All.\n# TYPE a_total counter\na_total 1\n\
                        a_total{x=\"a\\\"b\\\\c\\nd\u{fffd}e\",y=\"\"} 2.5\n";
        assert_eq!(text.as_str(), expected);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut text = MetricsText::default();
        text.histogram("t", &[("r", "a")], [(0.5, 2), (1.0, 0), (2.5, 3)], 1, 9.25);
        let expected = "t_bucket{r=\"a\",le=\"0.5\"} 2\nt_bucket{r=\"a\",le=\"1\"} 2\nt_bucket{r=\"a\",le=\"2.5\"} 5\n\
                        t_bucket{r=\"a\",le=\"+Inf\"} 6\nt_sum{r=\"a\"} 9.25\nt_count{r=\"a\"} 6\n";
        assert_eq!(text.into_text(), expected);
    }
}
