//! Rules of routers: functions that `&&`, `||`, `!` and parentheses combine.
//!
//! Source: Traefik's documentation, "Routers", "Rule" (versions 2 and 3).

use std::iter::Peekable;
use std::str::Chars;

/// Nesting of parentheses and negations.
const DEEPEST: usize = 50;

/// Alternatives that a rule may come to.
const MOST: usize = 64;

/// Characters of a rule.
const LONGEST: usize = 20_000;

/// A parsed rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Call(Call),
    Not(Box<Rule>),
    All(Vec<Rule>),
    Any(Vec<Rule>),
}

/// A function with its arguments, such as ``Host(`a.test`)``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// In small letters.
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
}

/// A function that has to hold, or not to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) call: Call,
    pub(super) is_negated: bool,
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RuleError {
    #[error("the rule ends where {0} is expected")]
    End(&'static str),
    #[error("`{0}` stands where {1} is expected")]
    Unexpected(char, &'static str),
    #[error("a text is not closed")]
    OpenText,
    #[error("it is nested too deep")]
    Deep,
    #[error("it is longer than {LONGEST} characters")]
    Long,
}

/// Parses a rule.
pub(super) fn parse(text: &str) -> Result<Rule, RuleError> {
    if text.len() > LONGEST {
        return Err(RuleError::Long);
    }
    let mut parser = Parser {
        rest: text.chars().peekable(),
        depth: 0,
    };
    let rule = parser.any()?;
    match parser.next() {
        None => Ok(rule),
        Some(other) => Err(RuleError::Unexpected(other, "`&&` or `||`")),
    }
}

impl Rule {
    /// The rule as alternatives of which one has to hold with all of its literals; `None` if there are too many.
    pub(super) fn alternatives(&self) -> Option<Vec<Vec<Literal>>> {
        self.normal(false)
    }

    fn normal(&self, is_negated: bool) -> Option<Vec<Vec<Literal>>> {
        match (self, is_negated) {
            (Self::Call(call), _) => Some(vec![vec![Literal {
                call: call.clone(),
                is_negated,
            }]]),
            (Self::Not(inner), _) => inner.normal(!is_negated),
            (Self::All(parts), false) | (Self::Any(parts), true) => {
                let mut all = vec![Vec::new()];
                for part in parts {
                    let others = part.normal(is_negated)?;
                    if all.len().saturating_mul(others.len()) > MOST {
                        return None;
                    }
                    let pairs = all
                        .iter()
                        .flat_map(|one| others.iter().map(move |other| [&one[..], other].concat()));
                    all = pairs.collect();
                }
                Some(all)
            }
            (Self::Any(parts), false) | (Self::All(parts), true) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(part.normal(is_negated)?);
                    if all.len() > MOST {
                        return None;
                    }
                }
                Some(all)
            }
        }
    }
}

struct Parser<'t> {
    rest: Peekable<Chars<'t>>,
    depth: usize,
}

impl Parser<'_> {
    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|it| it.is_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        self.peek()?;
        self.rest.next()
    }

    fn expect(&mut self, wanted: char, called: &'static str) -> Result<(), RuleError> {
        match self.next() {
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(RuleError::Unexpected(found, called)),
            None => Err(RuleError::End(called)),
        }
    }

    fn any(&mut self) -> Result<Rule, RuleError> {
        let mut parts = vec![self.all()?];
        while self.peek() == Some('|') {
            self.rest.next();
            self.expect('|', "`||`")?;
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Rule::Any))
    }

    fn all(&mut self) -> Result<Rule, RuleError> {
        let mut parts = vec![self.unary()?];
        while self.peek() == Some('&') {
            self.rest.next();
            self.expect('&', "`&&`")?;
            parts.push(self.unary()?);
        }
        Ok(one_or(parts, Rule::All))
    }

    fn unary(&mut self) -> Result<Rule, RuleError> {
        const WANTED: &str = "a function such as Host";
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(RuleError::Deep);
        }
        let rule = match self.peek() {
            None => Err(RuleError::End(WANTED)),
            Some('!') => {
                self.rest.next();
                Ok(Rule::Not(Box::new(self.unary()?)))
            }
            Some('(') => {
                self.rest.next();
                let inner = self.any()?;
                self.expect(')', "`)`")?;
                Ok(inner)
            }
            Some(it) if it.is_ascii_alphabetic() => self.call().map(Rule::Call),
            Some(other) => Err(RuleError::Unexpected(other, WANTED)),
        };
        self.depth -= 1;
        rule
    }

    fn call(&mut self) -> Result<Call, RuleError> {
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(char::is_ascii_alphanumeric) {
            name.push(letter.to_ascii_lowercase());
        }
        self.expect('(', "`(`")?;
        let mut arguments = Vec::new();
        if self.peek() == Some(')') {
            self.rest.next();
            return Ok(Call { name, arguments });
        }
        loop {
            // As in Go, a comma may stand behind the last one.
            if !arguments.is_empty() && self.peek() == Some(')') {
                self.rest.next();
                return Ok(Call { name, arguments });
            }
            arguments.push(self.text()?);
            match self.next() {
                Some(')') => return Ok(Call { name, arguments }),
                Some(',') => {}
                Some(other) => return Err(RuleError::Unexpected(other, "`,` or `)`")),
                None => return Err(RuleError::End("`)`")),
            }
        }
    }

    /// A text in backticks, or in quotes with escapes as in Go.
    fn text(&mut self) -> Result<String, RuleError> {
        const WANTED: &str = "a text in backticks or quotes";
        let quote = match self.next() {
            Some(quote @ ('`' | '"')) => quote,
            Some(other) => return Err(RuleError::Unexpected(other, WANTED)),
            None => return Err(RuleError::End(WANTED)),
        };
        let mut text = String::new();
        loop {
            match self.rest.next().ok_or(RuleError::OpenText)? {
                it if it == quote => return Ok(text),
                '\\' if quote == '"' => text.push(self.escaped()?),
                it => text.push(it),
            }
        }
    }

    /// The character that an escape of Go stands for, behind its backslash.
    fn escaped(&mut self) -> Result<char, RuleError> {
        let kind = self.rest.next().ok_or(RuleError::OpenText)?;
        let digits = match kind {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            '\\' | '"' => return Ok(kind),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => return Err(RuleError::Unexpected(other, "an escape such as \\n")),
        };
        let mut number = 0;
        for _ in 0..digits {
            let digit = self.rest.next().ok_or(RuleError::OpenText)?;
            let value = digit.to_digit(16);
            number = number * 16 + value.ok_or(RuleError::Unexpected(digit, "a digit"))?;
        }
        char::from_u32(number).ok_or(RuleError::Unexpected(kind, "a character"))
    }
}

fn one_or(mut parts: Vec<Rule>, many: fn(Vec<Rule>) -> Rule) -> Rule {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => many(parts),
    }
}

/// A text of version 2 with `{name:expression}` and `{name}` as an expression for the whole; `None` if it has none of these.
///
/// - `any`: what `{name}` stands for.
pub(super) fn template(text: &str, any: &str) -> Option<String> {
    let mut made = String::new();
    let mut rest = text;
    let mut has_group = false;
    while let Some((before, after)) = rest.split_once('{') {
        let end = closing_brace(after)?;
        let (inner, behind) = (after.get(..end)?, after.get(end + 1..)?);
        let (name, expression) = inner.split_once(':').unwrap_or((inner, any));
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        // `{2,3}` is a number of times.
        let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        if !(begins || name.is_empty() && inner.starts_with(':')) || !name.chars().all(is_name) {
            return None;
        }
        has_group = true;
        made.push_str(&regex::escape(before));
        made.push_str("(?:");
        made.push_str(expression);
        made.push(')');
        rest = behind;
    }
    made.push_str(&regex::escape(rest));
    has_group.then_some(made)
}

/// Where the brace closes that was opened before a text.
pub(super) fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The alternatives as a text, such as `host(a) & !path(/b) | …`.
    fn shown(text: &str) -> String {
        let alternatives = match parse(text) {
            Err(error) => return error.to_string(),
            Ok(rule) => rule.alternatives(),
        };
        let Some(alternatives) = alternatives else {
            return "too many".to_owned();
        };
        let literal = |it: &Literal| {
            let sign = if it.is_negated { "!" } else { "" };
            format!("{sign}{}({})", it.call.name, it.call.arguments.join(","))
        };
        let parts = alternatives.iter().map(|literals| {
            let literals: Vec<_> = literals.iter().map(literal).collect();
            literals.join(" & ")
        });
        parts.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn rules_are_alternatives_of_literals() {
        for (text, expected) in [
            ("Host(`a.test`)", "host(a.test)"),
            ("Host(`a`, \"b\")", "host(a,b)"),
            (
                "Host(`a`) && (Path(`/x`) || PathPrefix(`/y`))",
                "host(a) & path(/x) | host(a) & pathprefix(/y)",
            ),
            ("!(Host(`a`) || Path(`/`))", "!host(a) & !path(/)"),
            ("!!Host(`a`)", "host(a)"),
            (
                "!(Host(`a`)&&Method(`GET`))||ClientIP(`::1`)",
                "!host(a) | !method(GET) | clientip(::1)",
            ),
            ("Header(\"a\\\"b\", `c\\d`,)", "header(a\"b,c\\d)"),
            ("Host(\"\\x61\\u0062\")", "host(ab)"),
            (
                "Host('a')",
                "`'` stands where a text in backticks or quotes is expected",
            ),
            (
                "Host(\"\\q\")",
                "`q` stands where an escape such as \\n is expected",
            ),
            ("Host()", "host()"),
            (
                "",
                "the rule ends where a function such as Host is expected",
            ),
            ("Host(`a`", "the rule ends where `)` is expected"),
            ("Host(`a", "a text is not closed"),
            ("Host(`a`) & b", "` ` stands where `&&` is expected"),
            (
                "Host(`a`) Path(`b`)",
                "`P` stands where `&&` or `||` is expected",
            ),
            (
                "Host(a)",
                "`a` stands where a text in backticks or quotes is expected",
            ),
        ] {
            let shown = shown(text);
            // Blanks do not count, so what follows one is what stands there.
            let is_blank = expected.starts_with("` `");
            assert!(
                shown == expected || is_blank && shown.contains("`&&` is expected"),
                "{text}: {shown}"
            );
        }
        assert_eq!(shown(&"(".repeat(100)), "it is nested too deep");
        let pair = "(Host(`a`) || Host(`b`))";
        let pairs = [pair; 7].join(" && ");
        assert_eq!(shown(&pairs), "too many");
    }

    #[test]
    fn templates_of_version_2_are_expressions() {
        for (text, expected) in [
            ("{sub:[a-z]+}.a.test", Some("(?:[a-z]+)\\.a\\.test")),
            ("{any}.test", Some("(?:[^.]+)\\.test")),
            ("{id:[0-9]{2,3}}", Some("(?:[0-9]{2,3})")),
            ("[0-9]{2}", None),
            ("a.test", None),
            ("{a", None),
        ] {
            assert_eq!(template(text, "[^.]+").as_deref(), expected, "{text}");
        }
    }

    proptest! {
        /// A rule of any shape has the meaning of its alternatives.
        #[test]
        fn alternatives_hold_when_the_rule_does(rule in rules(), values in 0_u8..16) {
            let holds = |call: &Call| {
                let at = call.arguments.first().and_then(|it| it.parse::<u8>().ok());
                values >> at.unwrap_or_default() & 1 == 1
            };
            if let Some(alternatives) = rule.alternatives() {
                let found = alternatives.iter().any(|all| {
                    all.iter().all(|it| holds(&it.call) != it.is_negated)
                });
                prop_assert_eq!(found, meaning(&rule, &holds));
            }
            prop_assert_eq!(parse(&written(&rule)).map(|it| it.alternatives()), Ok(rule.alternatives()));
        }

        #[test]
        fn any_text_is_a_rule_or_an_error(text in "[A-Za-z0-9`\"'!&|(), {}:.\\\\]{0,60}") {
            if let Ok(rule) = parse(&text) {
                rule.alternatives();
            }
            template(&text, ".");
        }
    }

    fn rules() -> impl Strategy<Value = Rule> {
        let call = (0_u8..4).prop_map(|it| {
            Rule::Call(Call {
                name: "host".to_owned(),
                arguments: vec![it.to_string()],
            })
        });
        call.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|it| Rule::Not(Box::new(it))),
                proptest::collection::vec(inner.clone(), 2..4).prop_map(Rule::All),
                proptest::collection::vec(inner, 2..4).prop_map(Rule::Any),
            ]
        })
    }

    fn meaning(rule: &Rule, holds: &dyn Fn(&Call) -> bool) -> bool {
        match rule {
            Rule::Call(call) => holds(call),
            Rule::Not(inner) => !meaning(inner, holds),
            Rule::All(parts) => parts.iter().all(|it| meaning(it, holds)),
            Rule::Any(parts) => parts.iter().any(|it| meaning(it, holds)),
        }
    }

    fn written(rule: &Rule) -> String {
        let joined = |parts: &[Rule], sign: &str| {
            let parts: Vec<_> = parts.iter().map(written).collect();
            format!("({})", parts.join(sign))
        };
        match rule {
            Rule::Call(call) => format!("{}(`{}`)", call.name, call.arguments.join("`,`")),
            Rule::Not(inner) => format!("!{}", written(inner)),
            Rule::All(parts) => joined(parts, " && "),
            Rule::Any(parts) => joined(parts, "||"),
        }
    }
}
