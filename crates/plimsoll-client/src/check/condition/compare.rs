//! Comparisons of values that have an order.

use super::ConditionError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const KNOWN: &str = "==, !=, <, <=, >, >=";

impl Comparison {
    pub(super) fn from_operator(operator: &str) -> Option<Self> {
        Some(match operator {
            "==" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    pub(super) fn parse(subject: &str, operator: &str) -> Result<Self, ConditionError> {
        Self::from_operator(operator).ok_or_else(|| ConditionError::Operator {
            subject: subject.to_owned(),
            operator: operator.to_owned(),
            known: KNOWN,
        })
    }

    /// The comparison that holds of ordered values where this one does not.
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// Values that cannot be ordered are unequal, and nothing else.
    pub(super) fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}
