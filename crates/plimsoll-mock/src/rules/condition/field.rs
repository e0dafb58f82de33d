//! Tests of what a request may have or not: header fields, parameters, cookies, fields of forms.

use std::fmt;

use super::json::NumberOperator;
use super::text::TextTest;
use super::time::TimeTest;

/// A test of the values of one name.
#[derive(Debug, Clone)]
pub enum FieldTest {
    /// `exists`: it is there, whatever it says.
    Exists,
    /// `absent`: it is not there.
    Absent,
    /// There are so many values.
    Count(usize),
    /// A value is a number that stands so to this one.
    Number(NumberOperator, f64),
    /// A value is a time before, after or at another one.
    Time(TimeTest),
    /// A value meets a test; without one, none is met, not even those that are negated.
    Text(TextTest),
}

impl FieldTest {
    /// The same of values that are text or bytes; those that are not UTF-8 meet no test of texts.
    pub fn is_met_by_bytes<'v>(&self, mut values: impl Iterator<Item = &'v [u8]>) -> bool {
        match self {
            Self::Exists => values.next().is_some(),
            Self::Absent => values.next().is_none(),
            Self::Count(count) => values.count() == *count,
            Self::Time(test) => values.any(|value| is_text(value, |text| test.is_met_by(text))),
            Self::Number(operator, wanted) => values.any(|value| {
                is_text(value, |text| {
                    let number = text.trim().parse().ok();
                    number.is_some_and(|number| operator.is_met_by(number, *wanted))
                })
            }),
            Self::Text(test) if test.operator().is_negated() => {
                let mut values = values.peekable();
                values.peek().is_some()
                    && values.all(|value| is_text(value, |text| test.is_met_by(text)))
            }
            Self::Text(test) => values.any(|value| is_text(value, |text| test.is_met_by(text))),
        }
    }

    /// Whether any of the values meets it; of a negated operator, whether there is one and all do.
    pub fn is_met_by_any<'v>(&self, values: impl Iterator<Item = &'v str>) -> bool {
        self.is_met_by_bytes(values.map(str::as_bytes))
    }
}

fn is_text(value: &[u8], meets: impl Fn(&str) -> bool) -> bool {
    std::str::from_utf8(value).is_ok_and(meets)
}

impl fmt::Display for FieldTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("exists"),
            Self::Absent => f.write_str("absent"),
            Self::Count(count) => write!(f, "count {count}"),
            Self::Number(operator, number) => write!(f, "{} \"{number}\"", operator.name()),
            Self::Time(test) => test.fmt(f),
            Self::Text(test) => test.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::TextOperator;
    use super::*;

    #[test]
    fn what_is_missing_meets_only_absent() {
        let text = |operator| FieldTest::Text(TextTest::new(operator, "a").unwrap());
        assert!(!FieldTest::Exists.is_met_by_any([].into_iter()));
        assert!(FieldTest::Absent.is_met_by_any([].into_iter()));
        for operator in TextOperator::ALL {
            assert!(
                !text(operator).is_met_by_any([].into_iter()),
                "{}",
                operator.name()
            );
            assert!(!text(operator).is_met_by_bytes([&b"\xff"[..]].into_iter()));
        }
        assert!(FieldTest::Exists.is_met_by_bytes([&b"\xff"[..]].into_iter()));
        let not_a = text(TextOperator::NotEqual);
        assert!(not_a.is_met_by_any(["b", "c"].into_iter()));
        assert!(!not_a.is_met_by_any(["b", "a"].into_iter()));
        assert!(!not_a.is_met_by_any([].into_iter()));
        assert!(text(TextOperator::Equal).is_met_by_any(["b", "a"].into_iter()));
    }
}
