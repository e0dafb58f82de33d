//! Text with places for values: `{{name}}`, `{{$generator}}` and `{{login.response.body.$.token}}`.
//!
//! The names of the generators are those that editors use for `.http` files, with blanks or with
//! parentheses around their arguments: `{{$randomInt 1 10}}` and `{{$random.integer(1, 10)}}` are the
//! same.

mod date;

mod filling;

mod reference;

use std::fmt;

pub use self::date::{Date, DateFormat, DateOffset, DatePart, DateToken};
pub use self::filling::MissingVariable;
pub use self::reference::{ResponsePart, ResponseValue};

/// Longest text between `{{` and `}}`; longer ones are not placeholders.
const LONGEST_PLACE: usize = 4096;

/// No real template needs more random characters in one place.
const MOST_CHARACTERS: u32 = 4096;

/// Text with places for values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Always the same.
    Text(Vec<u8>),
    /// A value that has a name.
    Variable(String),
    /// A value that is made up.
    Generator(Generator),
    /// A value of the response to another request.
    Response(ResponseValue),
}

/// The generator of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generator {
    /// A number that no other exchange of the run has: `$counter`, `$counter(first)`,
    /// `$counter(first, step)`.
    Counter {
        /// The first number.
        first: u64,
        /// The increment.
        step: u64,
    },
    /// A random UUID of version 4 (RFC 9562): `$uuid`, `$guid`, `$random.uuid`.
    Uuid,
    /// A random whole number: `$randomInt`, `$random.integer(least, below)`.
    Integer {
        /// The least.
        least: i64,
        /// Above the greatest; more than `least`.
        below: i64,
    },
    /// A random number with six decimals: `$random.float`, `$random.float(least, below)`.
    Float {
        /// The least, in millionths.
        least: i64,
        /// Above the greatest, in millionths; more than `least`.
        below: i64,
    },
    /// Random characters: `$random.hexadecimal(n)`, `$random.alphabetic(n)`,
    /// `$random.alphanumeric(n)`, `$random.numeric(n)`.
    Characters {
        /// The alphabet: ASCII, not empty.
        alphabet: &'static [u8],
        /// The number of characters.
        count: u32,
    },
    /// One of several texts: `$random.choice(a, b, c)`.
    Choice(Vec<String>),
    /// Seconds since 1970: `$timestamp`.
    Timestamp,
    /// Milliseconds since 1970: `$timestampMs`.
    TimestampMillis,
    /// Date and time in UTC (RFC 3339), with milliseconds: `$isoTimestamp`.
    IsoTimestamp,
    /// A date in a format, earlier or later than now: `$datetime "YYYY-MM-DD" -1 d`, `$localDatetime`, `$timestamp 1 h`.
    Date(Box<Date>),
}

const GENERATORS: [&str; 18] = [
    "counter",
    "uuid",
    "guid",
    "random.uuid",
    "randomInt",
    "random.integer",
    "random.float",
    "random.hexadecimal",
    "random.alphabetic",
    "random.alphanumeric",
    "random.numeric",
    "random.choice",
    "timestamp",
    "timestampMs",
    "isoTimestamp",
    "random.hex",
    "datetime",
    "localDatetime",
];

/// Values that editors ask the user for, or take from their own settings.
const EDITORS: [&str; 10] = [
    "input",
    "password",
    "pick",
    "prompt",
    "processEnv",
    "dotenv",
    "env",
    "aadToken",
    "auth",
    "global",
];

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const HEXADECIMAL: &[u8] = b"0123456789abcdef";
const DECIMAL: &[u8] = b"0123456789";

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("`{{{{` is not closed by `}}}}`: {{{{{0}")]
    Open(String),
    /// Neither a name nor a generator.
    #[error("`{0}` is not the name of a variable: letters, digits, `_`, `-` and `.`")]
    Name(String),
    /// No generator has that name.
    #[error("there is no generator `${0}`{close}; known are {known}", close = suggestion(.0), known = generators())]
    Generator(String),
    /// Editors ask the user for the value, or read it from somewhere else.
    #[error(
        "`${0}` is for editors: write `{{{{name}}}}` instead and give the value with `--var name=value`, or with `--var NAME` from the environment"
    )]
    Editor(&'static str),
    /// A value of another request that cannot be had.
    #[error("`{place}`: {message}")]
    Reference {
        /// The text as written.
        place: String,
        /// The error.
        message: &'static str,
    },
    /// A generator with the wrong arguments.
    #[error("`{place}`: {message}")]
    Arguments {
        /// The text as written.
        place: String,
        /// The error.
        message: &'static str,
    },
}

impl Template {
    /// A text that is always the same, whatever stands in it.
    pub fn literal(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::Text(text)]
        };
        Self { parts }
    }

    /// Finds the places for values in a text.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            // The innermost pair counts: of `{{{a}}}` the outer braces are text.
            let braces = after.len() - after.trim_start_matches('{').len();
            let (more, after) = after.split_at(braces);
            template.push_text(before.as_bytes());
            template.push_text(more.as_bytes());
            // A place may go over several lines, but not beyond its limit: a text of many places would be
            // searched to its end for each.
            let end = after.floor_char_boundary(LONGEST_PLACE + "}}".len());
            let near = after.get(..end).unwrap_or_default();
            let Some((place, _)) = near.split_once("}}") else {
                let line = near.lines().next().unwrap_or_default();
                return Err(TemplateError::Open(line.chars().take(40).collect()));
            };
            template.parts.push(parse_place(place.trim())?);
            rest = after.get(place.len() + 2..).unwrap_or_default();
        }
        template.push_text(rest.as_bytes());
        Ok(template)
    }

    /// Its parts; no two texts follow one another, and none is empty.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The text, if it is always the same.
    pub fn as_text(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(&[]),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The names of its variables, in order, repeated ones too.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The values of responses in it, in order, repeated ones too.
    pub fn responses(&self) -> impl Iterator<Item = &ResponseValue> {
        self.parts.iter().filter_map(|part| match part {
            Part::Response(value) => Some(value),
            _ => None,
        })
    }

    /// Adds text behind it.
    pub fn push_text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if let Some(Part::Text(last)) = self.parts.last_mut() {
            last.extend_from_slice(text);
        } else {
            self.parts.push(Part::Text(text.to_vec()));
        }
    }

    /// Adds another template behind it.
    pub fn push(&mut self, other: Self) {
        for part in other.parts {
            match part {
                Part::Text(text) => self.push_text(&text),
                part => self.parts.push(part),
            }
        }
    }
}

impl From<Part> for Template {
    fn from(part: Part) -> Self {
        match part {
            Part::Text(text) => Self::literal(text),
            place => Self { parts: vec![place] },
        }
    }
}

/// As it is written; generators in their form with parentheses.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(&String::from_utf8_lossy(text))?,
                Part::Variable(name) => write!(f, "{{{{{name}}}}}")?,
                Part::Generator(generator) => write!(f, "{{{{{generator}}}}}")?,
                Part::Response(value) => write!(f, "{{{{{value}}}}}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter { first, step } => write!(f, "$counter({first}, {step})"),
            Self::Uuid => f.write_str("$uuid"),
            Self::Integer { least, below } => write!(f, "$random.integer({least}, {below})"),
            Self::Float { least, below } => {
                let [least, below] = [*least, *below].map(Millionths);
                write!(f, "$random.float({least}, {below})")
            }
            Self::Characters { alphabet, count } => {
                let name = match alphabet.len() {
                    10 => "numeric",
                    16 => "hexadecimal",
                    52 => "alphabetic",
                    _ => "alphanumeric",
                };
                write!(f, "$random.{name}({count})")
            }
            Self::Choice(texts) => write!(f, "$random.choice({})", texts.join(", ")),
            Self::Timestamp => f.write_str("$timestamp"),
            Self::TimestampMillis => f.write_str("$timestampMs"),
            Self::IsoTimestamp => f.write_str("$isoTimestamp"),
            Self::Date(date) => date.fmt(f),
        }
    }
}

/// A number of millionths, written as a decimal number: `-0.250000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millionths(pub i64);

impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (
            self.0.unsigned_abs() / MILLION,
            self.0.unsigned_abs() % MILLION,
        );
        write!(f, "{sign}{whole}.{rest:06}")
    }
}

const MILLION: u64 = 1_000_000;

/// True if the byte may stand in a request target as it is; others are percent-encoded there.
///
/// Reserved characters of URLs keep their meaning (RFC 3986, section 2.2), `%` included.
pub const fn is_target_byte(byte: u8) -> bool {
    !matches!(byte, 0..=b' ' | 0x7f.. | b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

fn parse_place(text: &str) -> Result<Part, TemplateError> {
    match text.strip_prefix('$') {
        Some(generator) => parse_generator(generator).map(Part::Generator),
        None if reference::is_reference(text) => ResponseValue::parse(text).map(Part::Response),
        None if is_variable(text) => Ok(Part::Variable(text.to_owned())),
        None => Err(TemplateError::Name(text.to_owned())),
    }
}

pub(crate) fn is_variable(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn parse_generator(text: &str) -> Result<Generator, TemplateError> {
    let end = text.find(|c: char| c == '(' || c.is_whitespace());
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let wrong = |message| {
        Err(TemplateError::Arguments {
            place: format!("${text}"),
            message,
        })
    };
    let rest = rest.trim();
    if matches!(name, "datetime" | "localDatetime") || (name == "timestamp" && !rest.is_empty()) {
        let inner = rest.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        return Date::parse(name, inner.unwrap_or(rest)).map_or_else(
            || wrong("takes `iso8601`, `rfc1123` or a format such as \"YYYY-MM-DD\" (`$timestamp` takes none), and an offset such as `-1 d`: y, M, w, d, h, m, s or ms"),
            |date| Ok(Generator::Date(Box::new(date))),
        );
    }
    let arguments: Vec<&str> = match rest.strip_prefix('(') {
        None => rest
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|text| !text.is_empty())
            .collect(),
        Some(inner) => match inner.strip_suffix(')') {
            None => return wrong("the parenthesis is not closed"),
            Some(inner) if inner.trim().is_empty() => Vec::new(),
            Some(inner) => inner.split(',').map(str::trim).collect(),
        },
    };
    let characters = |alphabet| match arguments.as_slice() {
        [] => Ok(Generator::Characters { alphabet, count: 8 }),
        [count] => match count.parse() {
            Ok(count) if (1..=MOST_CHARACTERS).contains(&count) => {
                Ok(Generator::Characters { alphabet, count })
            }
            _ => wrong("takes a number of characters from 1 to 4096"),
        },
        _ => wrong("takes a number of characters from 1 to 4096"),
    };
    let plain = |generator| {
        if arguments.is_empty() {
            Ok(generator)
        } else {
            wrong("takes no arguments")
        }
    };
    match name {
        "counter" => {
            let numbers: Result<Vec<u64>, _> = arguments.iter().map(|text| text.parse()).collect();
            let (first, step) = match numbers.as_deref() {
                Ok([]) => (1, 1),
                Ok([first]) => (*first, 1),
                Ok([first, step]) if *step > 0 => (*first, *step),
                _ => return wrong("takes the first number and the step, such as `$counter(1, 1)`"),
            };
            Ok(Generator::Counter { first, step })
        }
        "uuid" | "guid" | "random.uuid" => plain(Generator::Uuid),
        "randomInt" | "random.integer" => {
            let numbers: Result<Vec<i64>, _> = arguments.iter().map(|text| text.parse()).collect();
            let (least, below) = match numbers.as_deref() {
                Ok([]) => (0, 1000),
                Ok([below]) => (0, *below),
                Ok([least, below]) => (*least, *below),
                _ => return wrong("takes two whole numbers, the second of which is not reached"),
            };
            if least >= below {
                return wrong(
                    "the second number must be greater than the first; it is not reached",
                );
            }
            Ok(Generator::Integer { least, below })
        }
        "random.float" => {
            let numbers: Option<Vec<i64>> = arguments.iter().map(|text| millionths(text)).collect();
            let (least, below) = match numbers.as_deref() {
                Some([]) => (0, 1_000_000_000),
                Some([least, below]) => (*least, *below),
                _ => return wrong("takes two numbers of at most nine digits before the point"),
            };
            if least >= below {
                return wrong(
                    "the second number must be greater than the first, by a millionth or more",
                );
            }
            Ok(Generator::Float { least, below })
        }
        "random.hexadecimal" | "random.hex" => characters(HEXADECIMAL),
        "random.alphabetic" => characters(LETTERS),
        "random.alphanumeric" => characters(LETTERS_AND_DIGITS),
        "random.numeric" => characters(DECIMAL),
        "random.choice" if arguments.is_empty() => wrong("takes the texts to choose from"),
        "random.choice" => {
            let texts = arguments.iter().map(|text| (*text).to_owned());
            Ok(Generator::Choice(texts.collect()))
        }
        "timestamp" => plain(Generator::Timestamp),
        "timestampMs" => plain(Generator::TimestampMillis),
        "isoTimestamp" => plain(Generator::IsoTimestamp),
        other => Err(EDITORS
            .into_iter()
            .find(|known| other.split('.').next() == Some(*known))
            .map_or_else(
                || TemplateError::Generator(other.to_owned()),
                TemplateError::Editor,
            )),
    }
}

/// A decimal number below 10⁹ on either side of zero, rounded to millionths.
fn millionths(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fifteen digits fit, and exactly"
    )]
    (number.abs() < 1e9).then(|| (number * 1e6).round() as i64)
}

fn suggestion(name: &str) -> String {
    let close = GENERATORS
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min();
    match close {
        Some((distance, known)) if distance <= 3 => format!("; did you mean `${known}`?"),
        _ => String::new(),
    }
}

fn generators() -> String {
    let names = GENERATORS.map(|name| format!("${name}"));
    names.join(", ")
}

#[cfg(test)]
mod tests;
