//! Tests of what a request may have or not: header fields, parameters, cookies, fields of forms.

use std::fmt;

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
    /// A value is a time before, after or at another one.
    Time(TimeTest),
    /// A value meets a test; without one, none is met, not even those that are negated.
    Text(TextTest),
}

impl FieldTest {
    /// Whether one value meets it.
    ///
    /// - `value`: the first one; text, or bytes that are none.
    pub fn is_met_by_bytes(&self, value: Option<&[u8]>) -> bool {
        match (self, value) {
            (Self::Exists, value) => value.is_some(),
            (Self::Absent, value) => value.is_none(),
            (Self::Count(count), value) => usize::from(value.is_some()) == *count,
            (Self::Text(_) | Self::Time(_), None) => false,
            (Self::Time(test), Some(value)) => {
                std::str::from_utf8(value).is_ok_and(|text| test.is_met_by(text))
            }
            (Self::Text(test), Some(value)) => {
                std::str::from_utf8(value).is_ok_and(|text| test.is_met_by(text))
            }
        }
    }

    /// Whether any of the values meets it; of a negated operator, whether there is one and all do.
    pub fn is_met_by_any<'v>(&self, mut values: impl Iterator<Item = &'v str>) -> bool {
        match self {
            Self::Exists => values.next().is_some(),
            Self::Absent => values.next().is_none(),
            Self::Count(count) => values.count() == *count,
            Self::Time(test) => values.any(|value| test.is_met_by(value)),
            Self::Text(test) if test.operator().is_negated() => {
                let mut values = values.peekable();
                values.peek().is_some() && values.all(|value| test.is_met_by(value))
            }
            Self::Text(test) => values.any(|value| test.is_met_by(value)),
        }
    }
}

impl fmt::Display for FieldTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("exists"),
            Self::Absent => f.write_str("absent"),
            Self::Count(count) => write!(f, "count {count}"),
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
        assert!(!FieldTest::Exists.is_met_by_bytes(None));
        assert!(FieldTest::Absent.is_met_by_bytes(None));
        for operator in TextOperator::ALL {
            assert!(!text(operator).is_met_by_bytes(None), "{}", operator.name());
            assert!(!text(operator).is_met_by_bytes(Some(b"\xff")));
        }
        assert!(FieldTest::Exists.is_met_by_bytes(Some(b"\xff")));
        let not_a = text(TextOperator::NotEqual);
        assert!(not_a.is_met_by_any(["b", "c"].into_iter()));
        assert!(!not_a.is_met_by_any(["b", "a"].into_iter()));
        assert!(!not_a.is_met_by_any([].into_iter()));
        assert!(text(TextOperator::Equal).is_met_by_any(["b", "a"].into_iter()));
    }
}
