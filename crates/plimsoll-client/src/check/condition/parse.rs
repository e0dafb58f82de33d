//! From text to a condition.
//!
//! ```text
//! condition = ("any" | "not") "(" condition *("," condition) ")"
//!           / subject ["(" path ")"] operator [value]
//! ```
//!
//! At the top a value runs to the end of the text and needs no quotes. Within parentheses, commas
//! and parentheses that belong to a value stand in quotes, where a backslash keeps the quote after
//! it from closing them.

use plimsoll_model::{GrpcStatus, Phase, parse_byte_size, parse_duration};

use super::address::AddressTest;
use super::compare::Comparison;
use super::hash::HashTest;
use super::json::JsonTest;
use super::text::TextTest;
use super::{Condition, ConditionError, Test};

/// Conditions are parsed and judged by descent.
const DEEPEST: usize = 16;

/// Parses one condition that stands within `depth` others.
pub(super) fn condition(text: &str, depth: usize) -> Result<Condition, ConditionError> {
    let text = text.trim();
    if depth > DEEPEST {
        return Err(ConditionError::Depth(DEEPEST));
    }
    Ok(Condition {
        text: text.to_owned(),
        test: test(text, depth)?,
    })
}

fn test(text: &str, depth: usize) -> Result<Test, ConditionError> {
    let shape = || ConditionError::Shape(text.to_owned());
    let split = text
        .find(|c: char| c.is_whitespace() || "=!<>(".contains(c))
        .ok_or_else(shape)?;
    let (subject, rest) = text.split_at(split);
    let is_combined = matches!(subject, "any" | "not");
    let opening = if is_combined { rest.trim_start() } else { rest };
    let (argument, rest) = match opening.strip_prefix('(') {
        Some(inside) => {
            let (argument, rest) = closed(inside, text)?;
            (Some(argument), rest)
        }
        None => (None, rest),
    };
    let rest = rest.trim_start();
    if is_combined {
        let inside = argument.ok_or_else(|| ConditionError::NoParts(subject.to_owned()))?;
        return combined(subject, inside, rest, depth);
    }
    let (operator, value) = operator_and_value(rest);
    if subject.is_empty() || operator.is_empty() || (value.is_empty() && operator != "exists") {
        return Err(shape());
    }
    match (subject, argument) {
        ("body.json", Some(path)) => JsonTest::parse(path, operator, value),
        ("body.json", None) => Err(ConditionError::NoPath),
        (_, Some(argument)) => Err(ConditionError::Subject(format!("{subject}({argument})"))),
        (_, None) => simple(subject, operator, value),
    }
}

fn operator_and_value(rest: &str) -> (&str, &str) {
    let end = if rest.starts_with(|c: char| "=!<>".contains(c)) {
        rest.find(|c: char| !"=!<>".contains(c))
    } else {
        rest.find(char::is_whitespace)
    };
    let (operator, value) = rest.split_at(end.unwrap_or(rest.len()));
    (operator, value.trim())
}

fn simple(subject: &str, operator: &str, value: &str) -> Result<Test, ConditionError> {
    let comparison = || Comparison::parse(subject, operator);
    let phase = |phase| -> Result<Test, ConditionError> {
        Ok(Test::Phase(phase, comparison()?, parse_duration(value)?))
    };
    let not_whole = || ConditionError::Number(value.to_owned());
    match subject {
        "status" => {
            let status = value.parse().map_err(|_| not_whole())?;
            Ok(Test::Status(comparison()?, status))
        }
        "time" => Ok(Test::Time(comparison()?, parse_duration(value)?)),
        "dns" => phase(Phase::Dns),
        "connect" => phase(Phase::Connect),
        "tls" => phase(Phase::Tls),
        "send" => phase(Phase::Send),
        "wait" => phase(Phase::Wait),
        "receive" => phase(Phase::Receive),
        "size" => Ok(Test::Size(comparison()?, parse_byte_size(value)?.0)),
        "ip" => Ok(Test::Address(AddressTest::parse(subject, operator, value)?)),
        "cert.days" => {
            let days = value.parse().map_err(|_| not_whole())?;
            Ok(Test::CertificateDays(comparison()?, days))
        }
        "grpc.status" => grpc_status(operator, value),
        "body" => Ok(Test::Body(TextTest::parse(subject, operator, value)?)),
        "body.sha256" => Ok(Test::Hash(HashTest::parse(subject, operator, value)?)),
        _ => match subject.strip_prefix("header.") {
            Some(name) if !name.is_empty() => Ok(Test::Header(
                name.to_ascii_lowercase(),
                TextTest::parse(subject, operator, value)?,
            )),
            _ => Err(ConditionError::Subject(subject.to_owned())),
        },
    }
}

/// A status by its name, in any case, or by its code.
fn grpc_status(operator: &str, value: &str) -> Result<Test, ConditionError> {
    let is_equal = match operator {
        "==" | "=" => true,
        "!=" => false,
        _ => {
            return Err(ConditionError::Operator {
                subject: "grpc.status".to_owned(),
                operator: operator.to_owned(),
                known: "==, !=",
            });
        }
    };
    let is_meant = |status: &GrpcStatus| {
        status.name().eq_ignore_ascii_case(value) || status.code().to_string() == value
    };
    match GrpcStatus::all().find(is_meant) {
        Some(status) => Ok(Test::GrpcStatus(is_equal, status)),
        None => Err(ConditionError::GrpcStatus(value.to_owned())),
    }
}

fn combined(name: &str, inside: &str, rest: &str, depth: usize) -> Result<Test, ConditionError> {
    if !rest.is_empty() {
        return Err(ConditionError::Trailing {
            name: name.to_owned(),
            rest: rest.to_owned(),
        });
    }
    let mut conditions = separated(inside)
        .into_iter()
        .map(|part| condition(part, depth + 1))
        .collect::<Result<Vec<_>, _>>()?;
    if name == "any" {
        return Ok(Test::Any(conditions));
    }
    match (conditions.pop(), conditions.is_empty()) {
        (Some(condition), true) => Ok(Test::Not(Box::new(condition))),
        _ => Err(ConditionError::NotOfSeveral),
    }
}

/// The text before the parenthesis that closes one opened before `inside`, and the text after it.
fn closed<'a>(inside: &'a str, whole: &str) -> Result<(&'a str, &'a str), ConditionError> {
    let mut scanner = Scanner::default();
    for (position, c) in inside.char_indices() {
        let depth = scanner.depth;
        if scanner.is_structure(c) && c == ')' && depth == 0 {
            let (argument, rest) = inside.split_at(position);
            return Ok((argument, rest.strip_prefix(')').unwrap_or(rest)));
        }
    }
    Err(ConditionError::Unclosed(whole.to_owned()))
}

/// The parts between commas that are neither in quotes nor in parentheses.
fn separated(inside: &str) -> Vec<&str> {
    let mut scanner = Scanner::default();
    inside
        .split(move |c| scanner.is_structure(c) && c == ',' && scanner.depth == 0)
        .collect()
}

/// Follows quotes and parentheses.
#[derive(Debug, Default)]
struct Scanner {
    depth: usize,
    quote: Option<char>,
    is_escaped: bool,
    previous: Option<char>,
}

impl Scanner {
    /// Takes the next character; whether it stands outside of quotes.
    fn is_structure(&mut self, c: char) -> bool {
        let previous = self.previous.replace(c);
        if let Some(quote) = self.quote {
            if self.is_escaped {
                self.is_escaped = false;
            } else if c == '\\' {
                self.is_escaped = true;
            } else if c == quote {
                self.quote = None;
            }
            return false;
        }
        // An apostrophe within a word opens nothing.
        let may_open = previous.is_none_or(|c| c.is_whitespace() || "=!<>([,".contains(c));
        match c {
            '\'' | '"' if may_open => {
                self.quote = Some(c);
                return false;
            }
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        true
    }
}
