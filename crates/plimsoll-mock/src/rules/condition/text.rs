//! Tests of texts: the eleven operators that a path is tested by, and that everything else is tested by too.

use regex::Regex;

/// The operators, by the names that files call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextOperator {
    /// `equal`
    Equal,
    /// `not_equal`
    NotEqual,
    /// `starts_with`
    StartsWith,
    /// `not_starts_with`
    NotStartsWith,
    /// `ends_with`
    EndsWith,
    /// `not_ends_with`
    NotEndsWith,
    /// `contains`
    Contains,
    /// `not_contains`
    NotContains,
    /// `wild_card`
    WildCard,
    /// `regex`
    Regex,
    /// `not_regex`
    NotRegex,
}

impl TextOperator {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Equal,
        Self::NotEqual,
        Self::StartsWith,
        Self::NotStartsWith,
        Self::EndsWith,
        Self::NotEndsWith,
        Self::Contains,
        Self::NotContains,
        Self::WildCard,
        Self::Regex,
        Self::NotRegex,
    ];

    /// As files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::NotEqual => "not_equal",
            Self::StartsWith => "starts_with",
            Self::NotStartsWith => "not_starts_with",
            Self::EndsWith => "ends_with",
            Self::NotEndsWith => "not_ends_with",
            Self::Contains => "contains",
            Self::NotContains => "not_contains",
            Self::WildCard => "wild_card",
            Self::Regex => "regex",
            Self::NotRegex => "not_regex",
        }
    }

    /// Whether it is met by what another operator is not met by.
    pub const fn is_negated(self) -> bool {
        matches!(
            self,
            Self::NotEqual
                | Self::NotStartsWith
                | Self::NotEndsWith
                | Self::NotContains
                | Self::NotRegex
        )
    }
}

/// An operator with what it compares with.
#[derive(Debug, Clone)]
pub struct TextTest {
    operator: TextOperator,
    value: String,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    Plain,
    Glob(Vec<char>),
    Regex(Regex),
}

impl TextTest {
    /// Fails if the value is no regular expression, but has to be one.
    pub fn new(operator: TextOperator, value: impl Into<String>) -> Result<Self, regex::Error> {
        let value = value.into();
        let matcher = match operator {
            TextOperator::WildCard => Matcher::Glob(value.chars().collect()),
            TextOperator::Regex | TextOperator::NotRegex => Matcher::Regex(Regex::new(&value)?),
            _ => Matcher::Plain,
        };
        Ok(Self {
            operator,
            value,
            matcher,
        })
    }

    /// The comparison.
    pub fn operator(&self) -> TextOperator {
        self.operator
    }

    /// The value to compare with.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether `text` meets it.
    pub fn is_met_by(&self, text: &str) -> bool {
        let is_met = match (&self.matcher, self.operator) {
            (Matcher::Glob(glob), _) => glob_matches(glob, text),
            (Matcher::Regex(regex), _) => regex.is_match(text),
            (_, TextOperator::StartsWith | TextOperator::NotStartsWith) => {
                text.starts_with(&self.value)
            }
            (_, TextOperator::EndsWith | TextOperator::NotEndsWith) => text.ends_with(&self.value),
            (_, TextOperator::Contains | TextOperator::NotContains) => text.contains(&self.value),
            (Matcher::Plain, _) => text == self.value,
        };
        is_met != self.operator.is_negated()
    }
}

impl std::fmt::Display for TextTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.operator.name(), self.value)
    }
}

/// Whether the whole text is the glob's: `*` any run, `?` one character.
///
/// Goes back to the last `*` only, so it takes no more steps than the product of the lengths.
fn glob_matches(glob: &[char], text: &str) -> bool {
    let mut rest = text.chars();
    let mut at = 0;
    // Behind the last `*`, and what had been left of the text when it was met.
    let mut last_star = None;
    loop {
        if glob.get(at) == Some(&'*') {
            at += 1;
            last_star = Some((at, rest.clone()));
            continue;
        }
        let next = rest.next();
        match (glob.get(at), next) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if *wanted == '?' || *wanted == given => at += 1,
            (_, None) => return false,
            _ => match &mut last_star {
                None => return false,
                // The star takes one more.
                Some((behind, left)) => {
                    if left.next().is_none() {
                        return false;
                    }
                    at = *behind;
                    rest = left.clone();
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_operator_tests_what_its_name_says() {
        use TextOperator::*;
        for (operator, value, met, unmet) in [
            (Equal, "/a", "/a", "/a/"),
            (StartsWith, "/a", "/ab", "/b/a"),
            (EndsWith, ".zip", "/a.zip", "/a.zip/x"),
            (Contains, "b/c", "/ab/cd", "/abc"),
            (WildCard, "/a*c?", "/a/b/cd", "/a/b/c"),
            (Regex, "^/a/[0-9]+$", "/a/12", "/a/1x"),
        ] {
            let test = TextTest::new(operator, value).unwrap();
            assert!(test.is_met_by(met) && !test.is_met_by(unmet), "{test}");
        }
        for operator in TextOperator::ALL.into_iter().filter(|it| it.is_negated()) {
            let name = operator.name().trim_start_matches("not_");
            let plain = TextOperator::ALL
                .into_iter()
                .find(|it| it.name() == name)
                .unwrap();
            for text in ["/a", "/b", "a", ""] {
                let met = |operator| TextTest::new(operator, "/a").unwrap().is_met_by(text);
                assert_ne!(met(operator), met(plain), "{name} {text}");
            }
        }
        assert!(TextTest::new(NotRegex, "(").is_err());
    }

    proptest! {
        #[test]
        fn a_glob_is_a_regular_expression(glob in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let mut expression = String::from("^(?s:");
            for character in glob.chars() {
                expression.push_str(match character {
                    '*' => ".*",
                    '?' => ".",
                    'a' => "a",
                    _ => "b",
                });
            }
            expression.push_str(")$");
            let test = TextTest::new(TextOperator::WildCard, glob).unwrap();
            prop_assert_eq!(test.is_met_by(&text), Regex::new(&expression).unwrap().is_match(&text));
        }
    }

    #[test]
    fn a_glob_of_many_stars_ends() {
        let glob = "*a".repeat(50) + "b";
        let test = TextTest::new(TextOperator::WildCard, glob).unwrap();
        assert!(!test.is_met_by(&"a".repeat(5_000)));
    }
}
