//! Regular expressions as Java reads them, in the words of the `regex` crate.
//!
//! WireMock's expressions are `java.util.regex.Pattern`s. Most read the same here; what reads differently is translated, and
//! what the linear-time matcher here cannot do (look-around, back-references, possessive and atomic groups) is refused
//! by its name, since an expression without it would match something else.
//!
//! Source: the documentation of `java.util.regex.Pattern`, Java 21.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// What `\s` matches.
const BLANKS: &str = r"\t\n\x0B\f\r ";

/// What `\h` matches.
const HORIZONTAL: &str = r"\t \xA0\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}";

/// What `\v` matches.
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

/// What `.` does not match.
const LINE_ENDS: &str = r"\n\r\x{85}\x{2028}\x{2029}";

/// Properties of characters by Java's names, as classes of ASCII.
const PROPERTIES: [(&str, &str); 13] = [
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x00-\x7F"),
    ("Alpha", "a-zA-Z"),
    ("Digit", "0-9"),
    ("Alnum", "a-zA-Z0-9"),
    ("Punct", r"!-/:-@\[-`{-~"),
    ("Graph", "!-~"),
    ("Print", " -~"),
    ("Blank", r" \t"),
    ("Cntrl", r"\x00-\x1F\x7F"),
    ("XDigit", "0-9a-fA-F"),
    ("Space", BLANKS),
];

/// Why an expression of Java cannot be used here. Messages continue the name of the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JavaRegexError {
    #[error("possessive repetitions (`a*+`) are not supported")]
    Possessive,
    #[error("lookahead (`(?=`, `(?!`) is not supported")]
    Lookahead,
    #[error("lookbehind (`(?<=`, `(?<!`) is not supported")]
    Lookbehind,
    #[error("atomic groups (`(?>`) are not supported")]
    Atomic,
    /// With how it is written.
    #[error("back-references (`{0}`) are not supported")]
    BackReference(&'static str),
    #[error("`\\{0}` is not supported")]
    Unsupported(char),
    #[error("the property `\\p{{{0}}}` is not supported")]
    Property(String),
    #[error("has no escape `\\{0}`")]
    NoEscape(char),
    /// A group, class or property.
    #[error("has a {0} without an end")]
    Unclosed(&'static str),
    #[error("ends with {0}")]
    EndsWith(&'static str),
    /// The escape, and the kind of number that it needs.
    #[error("has `{0}` without {1} number")]
    NoNumber(&'static str, &'static str),
}

/// The expression in the words of the `regex` crate; fails with what it cannot say.
#[cfg_attr(
    not(any(feature = "mock-import", test)),
    expect(dead_code, reason = "only templates use it")
)]
pub(crate) fn translated(pattern: &str) -> Result<String, JavaRegexError> {
    translated_with(pattern, false)
}

/// The same for the patterns of mappings, whose dot matches line ends too: WireMock compiles them with `DOTALL`.
pub(crate) fn translated_pattern(pattern: &str) -> Result<String, JavaRegexError> {
    translated_with(pattern, true)
}

fn translated_with(pattern: &str, dot_matches_all: bool) -> Result<String, JavaRegexError> {
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        made: String::with_capacity(pattern.len()),
        dot_matches_all,
        is_all_by_default: dot_matches_all,
    };
    translator.translate()?;
    Ok(translator.made)
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    made: String,
    /// `(?s)` holds.
    dot_matches_all: bool,
    /// It holds from the beginning, where the expression has no flag of its own.
    is_all_by_default: bool,
}

impl Translator<'_> {
    fn translate(&mut self) -> Result<(), JavaRegexError> {
        // What `(?s)` was outside of each group that is open.
        let mut outer = Vec::new();
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '.' if self.dot_matches_all && self.is_all_by_default => {
                    self.made.push_str("(?s:.)");
                }
                '.' if !self.dot_matches_all => {
                    self.made.push_str("[^");
                    self.made.push_str(LINE_ENDS);
                    self.made.push(']');
                }
                '(' => {
                    outer.push(self.dot_matches_all);
                    self.made.push('(');
                    if self.rest.next_if_eq(&'?').is_some() {
                        self.group(&mut outer)?;
                    }
                }
                ')' => {
                    self.dot_matches_all = outer.pop().unwrap_or(false);
                    self.made.push(')');
                }
                '*' | '+' | '?' => {
                    self.made.push(character);
                    self.after_repetition()?;
                }
                '}' => {
                    let is_repetition = is_open_repetition(&self.made);
                    self.made.push_str(if is_repetition { "}" } else { r"\}" });
                    if is_repetition {
                        self.after_repetition()?;
                    }
                }
                character => self.made.push(character),
            }
        }
        Ok(())
    }

    /// What follows `*`, `+`, `?` or `{n}`.
    fn after_repetition(&mut self) -> Result<(), JavaRegexError> {
        match self.rest.peek() {
            Some('+') => Err(JavaRegexError::Possessive),
            Some('?') => {
                self.rest.next();
                self.made.push('?');
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What follows `(?`.
    fn group(&mut self, outer: &mut Vec<bool>) -> Result<(), JavaRegexError> {
        match self.rest.peek().copied() {
            Some('=' | '!') => return Err(JavaRegexError::Lookahead),
            Some('>') => return Err(JavaRegexError::Atomic),
            Some('<') => {
                self.rest.next();
                if matches!(self.rest.peek(), Some('=' | '!')) {
                    return Err(JavaRegexError::Lookbehind);
                }
                self.made.push_str("?P<");
                return Ok(());
            }
            _ => {}
        }
        // Flags, of which some are the default here, or mean something else.
        let mut flags = String::new();
        let mut is_off = false;
        for flag in self.rest.by_ref() {
            match flag {
                'd' | 'u' | 'U' => {}
                '-' => {
                    is_off = true;
                    flags.push('-');
                }
                ':' | ')' => {
                    let flags = flags.strip_suffix('-').unwrap_or(&flags);
                    if flag == ':' {
                        self.made.push('?');
                        self.made.push_str(flags);
                        self.made.push(':');
                    } else if flags.is_empty() {
                        // Without flags there is no group either: Java lets both be empty.
                        self.made.pop();
                        outer.pop();
                    } else {
                        self.made.push('?');
                        self.made.push_str(flags);
                        self.made.push(')');
                        // They hold for what is left of the group around them.
                        outer.pop();
                    }
                    return Ok(());
                }
                flag => {
                    if flag == 's' {
                        self.dot_matches_all = !is_off;
                    }
                    flags.push(flag);
                }
            }
        }
        Err(JavaRegexError::Unclosed("group"))
    }

    /// A class of characters, without its `[`.
    fn class(&mut self) -> Result<(), JavaRegexError> {
        self.made.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.made.push('^');
        }
        let mut is_first = true;
        // Whether what came last is a character that a range may begin with.
        let mut begins_range = false;
        loop {
            let Some(character) = self.rest.next() else {
                return Err(JavaRegexError::Unclosed("class"));
            };
            match character {
                ']' if !is_first => {
                    self.made.push(']');
                    return Ok(());
                }
                ']' => self.made.push_str(r"\]"),
                '[' => {
                    self.class()?;
                    begins_range = false;
                    is_first = false;
                    continue;
                }
                '\\' => {
                    begins_range = self.escape_of_class()?;
                    is_first = false;
                    continue;
                }
                '&' if self.rest.next_if_eq(&'&').is_some() => {
                    self.made.push_str("&&");
                    begins_range = false;
                    is_first = false;
                    continue;
                }
                '-' => {
                    // A range goes from one character to another; any other hyphen is itself.
                    let ends_range = match self.rest.peek() {
                        None | Some(']' | '[') => false,
                        Some('\\') => {
                            let mut ahead = self.rest.clone();
                            ahead.next();
                            !ahead.next().is_some_and(|it| "dDsSwWhHvVpPR".contains(it))
                        }
                        Some(_) => true,
                    };
                    if begins_range && ends_range {
                        self.made.push('-');
                        self.end_of_range()?;
                        begins_range = false;
                    } else {
                        self.made.push_str(r"\-");
                        begins_range = true;
                    }
                    is_first = false;
                    continue;
                }
                '&' | '~' | '^' => {
                    self.made.push('\\');
                    self.made.push(character);
                }
                character => self.made.push(character),
            }
            begins_range = true;
            is_first = false;
        }
    }

    /// The last character of a range in a class.
    fn end_of_range(&mut self) -> Result<(), JavaRegexError> {
        match self.rest.next() {
            Some('\\') => self.escape_of_class().map(|_| ()),
            Some(character) => {
                if "-&~^[]".contains(character) {
                    self.made.push('\\');
                }
                self.made.push(character);
                Ok(())
            }
            None => Err(JavaRegexError::Unclosed("class")),
        }
    }

    /// What follows a backslash in a class; whether it is one character.
    fn escape_of_class(&mut self) -> Result<bool, JavaRegexError> {
        let kind = self.rest.peek().copied();
        self.escape(true)?;
        Ok(!kind.is_some_and(|it| "dDsSwWhHvVpPQ".contains(it)))
    }

    /// What follows a backslash.
    fn escape(&mut self, is_in_class: bool) -> Result<(), JavaRegexError> {
        let Some(character) = self.rest.next() else {
            return Err(JavaRegexError::EndsWith("a backslash"));
        };
        let class = |made: &mut String, is_negated: bool, inner: &str| {
            // Negated ones stand in brackets of their own, so that both may be parts of a class.
            made.push_str(if is_negated { "[^" } else { "[" });
            made.push_str(inner);
            made.push(']');
        };
        let made = &mut self.made;
        match character {
            'd' | 'D' => class(made, character == 'D', "0-9"),
            'w' | 'W' => class(made, character == 'W', "a-zA-Z_0-9"),
            's' | 'S' => class(made, character == 'S', BLANKS),
            'h' | 'H' => class(made, character == 'H', HORIZONTAL),
            'v' | 'V' => class(made, character == 'V', VERTICAL),
            'R' if !is_in_class => {
                made.push_str(r"(?:\r\n|[");
                made.push_str(VERTICAL);
                made.push_str("])");
            }
            'Z' if !is_in_class => made.push_str(r"\n?\z"),
            'A' | 'z' | 'b' | 'B' if !is_in_class => {
                made.push('\\');
                made.push(character);
            }
            'G' | 'X' | 'N' => return Err(JavaRegexError::Unsupported(character)),
            'k' => return Err(JavaRegexError::BackReference("\\k<name>")),
            '1'..='9' => return Err(JavaRegexError::BackReference("\\1")),
            'p' | 'P' => self.property(character == 'P')?,
            'Q' => self.quotation(),
            'E' => {}
            '0' => self.octal()?,
            'c' => {
                let control = self.rest.next().ok_or(JavaRegexError::EndsWith("`\\c`"))?;
                write!(self.made, "\\x{{{:x}}}", u32::from(control) ^ 64)
                    .expect("a String takes everything");
            }
            'e' => made.push_str(r"\x1B"),
            'a' | 'f' | 'n' | 'r' | 't' | 'u' => {
                made.push('\\');
                made.push(character);
            }
            'x' => self.hexadecimal()?,
            character if character.is_ascii_alphabetic() => {
                return Err(JavaRegexError::NoEscape(character));
            }
            // Here these are the ends of words.
            '<' | '>' => made.push(character),
            character if character.is_ascii() => {
                made.push('\\');
                made.push(character);
            }
            character => made.push(character),
        }
        Ok(())
    }

    /// `\p{Alpha}`, `\p{IsGreek}`, `\pL`.
    fn property(&mut self, is_negated: bool) -> Result<(), JavaRegexError> {
        let name = if self.rest.next_if_eq(&'{').is_some() {
            let mut name = String::new();
            loop {
                match self.rest.next() {
                    Some('}') => break name,
                    Some(character) => name.push(character),
                    None => return Err(JavaRegexError::Unclosed("property")),
                }
            }
        } else {
            self.rest.next().map(String::from).unwrap_or_default()
        };
        let of_ascii = PROPERTIES.iter().find(|(known, _)| *known == name);
        if let Some((_, inner)) = of_ascii {
            self.made.push_str(if is_negated { "[^" } else { "[" });
            self.made.push_str(inner);
            self.made.push(']');
            return Ok(());
        }
        if name.starts_with("In") || name.starts_with("java") {
            return Err(JavaRegexError::Property(name));
        }
        let name = name.strip_prefix("Is").unwrap_or(&name);
        self.made.push_str(if is_negated { r"\P{" } else { r"\p{" });
        self.made.push_str(name);
        self.made.push('}');
        Ok(())
    }

    /// Up to `\E`, everything is itself.
    fn quotation(&mut self) {
        let mut quoted = String::new();
        while let Some(character) = self.rest.next() {
            if character == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            quoted.push(character);
        }
        self.made.push_str(&regex::escape(&quoted));
    }

    /// `\x41` or `\x{41}`.
    fn hexadecimal(&mut self) -> Result<(), JavaRegexError> {
        let is_braced = self.rest.next_if_eq(&'{').is_some();
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit) {
            digits.push(digit);
            if !is_braced && digits.len() == 2 {
                break;
            }
        }
        if digits.is_empty() || is_braced && self.rest.next() != Some('}') {
            return Err(JavaRegexError::NoNumber("\\x", "a hexadecimal"));
        }
        write!(self.made, "\\x{{{digits}}}").expect("a String takes everything");
        Ok(())
    }

    /// `\0n`, `\0nn` or `\0mnn`.
    fn octal(&mut self) -> Result<(), JavaRegexError> {
        let mut number = 0;
        let mut has_digit = false;
        while let Some(digit) = self.rest.peek().and_then(|it| it.to_digit(8)) {
            if number * 8 + digit > 0o377 {
                break;
            }
            number = number * 8 + digit;
            has_digit = true;
            self.rest.next();
        }
        if !has_digit {
            return Err(JavaRegexError::NoNumber("\\0", "an octal"));
        }
        write!(self.made, "\\x{{{number:x}}}").expect("a String takes everything");
        Ok(())
    }
}

/// Whether a text ends within `{n`, `{n,` or `{n,m`.
fn is_open_repetition(made: &str) -> bool {
    let bounds = made
        .rsplit_once('{')
        .filter(|(before, _)| !before.ends_with('\\'));
    bounds.is_some_and(|(_, bounds)| {
        bounds.starts_with(|it: char| it.is_ascii_digit())
            && bounds.bytes().all(|it| it.is_ascii_digit() || it == b',')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let translated = translated(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let whole = format!("^(?:{translated})$");
        let regex = Regex::new(&whole).unwrap_or_else(|error| panic!("{pattern} {whole}: {error}"));
        regex.is_match(text)
    }

    #[test]
    fn the_dot_of_a_mapping_matches_line_ends() {
        let text = "{\n \"a\": 1\r\n}";
        for pattern in [".*\"a\": 1.*", "(?i).*A.*", "[{].*[}]", "(?:.*)a(.*)"] {
            let made = translated_pattern(pattern).unwrap();
            let regex = Regex::new(&format!("^(?:{made})$")).unwrap();
            assert!(regex.is_match(text), "{pattern}");
            assert!(!matches(pattern, text), "{pattern}");
        }
        // A flag in the expression turns that off.
        let made = translated_pattern("(?-s).*a.*").unwrap();
        assert!(!Regex::new(&format!("^(?:{made})$")).unwrap().is_match(text));
    }

    #[test]
    fn expressions_match_what_they_match_in_java() {
        for (pattern, met, unmet) in [
            (r"[A-Za-z\s-.]+", &["a b-c.d"][..], &["a1", "a_b"][..]),
            (r"[\w-]+", &["a-b_1"], &["a b", "é"]),
            (r"[\w.-]+@[\w-]+\.\w{2,4}", &["a.b-c@d-e.org"], &["a@b"]),
            (r"[+-]?\d+", &["+1", "-12"], &["+", "٣"]),
            (r"[a-z&&[^bc]]", &["a", "d"], &["b"]),
            (r"[^&=]+", &["a b"], &["a&b"]),
            (r"[a-]", &["a", "-"], &["b"]),
            (r"[+--]", &["+", ",", "-"], &["."]),
            (r"[~~a]", &["~", "a"], &["b"]),
            (r"[]a]", &["]", "a"], &["b"]),
            (r"[a-d[m-p]]", &["b", "n"], &["f"]),
            (r"\Qa.b*c\E+", &["a.b*c", "a.b*cc"], &["aXb*c"]),
            (r"/a/\d{3}", &["/a/123"], &["/a/12"]),
            (r"\{.*\}", &["{x}"], &["x"]),
            (r"a{2}b{1,}}", &["aabb}"], &["aabb"]),
            (r".*", &["abc", "ü"], &["a\nb", "a\rb"]),
            (r"(?s).*", &["a\nb"], &[]),
            (r"(?s:a.b).c", &["a\nbxc"], &["a\nb\nc"]),
            (r"(?i)abc", &["ABC"], &["ab"]),
            (r"(?iu)abc|(?-i)d", &["ABC", "d"], &[]),
            (r"(?u)a", &["a"], &["b"]),
            (r"(?<year>\d+)-x", &["2024-x"], &["-x"]),
            (r"\p{Alpha}+\p{Punct}", &["ab!"], &["é!", "ab"]),
            (r"\p{IsGreek}\p{Lu}\pL", &["λÄö"], &["aAb"]),
            (r"[\p{Digit}\-x]+", &["1-x"], &["a"]),
            (r"\P{Digit}", &["a"], &["1"]),
            (r#"\<a\>\"\/\_"#, &["<a>\"/_"], &["a"]),
            (r"\x41\u0042\0103\cA\e", &["ABC\u{1}\u{1b}"], &[]),
            (r"\x{1F600}+[\x{61}-\x{63}]", &["😀😀b"], &["d"]),
            (r"a\Rb", &["a\r\nb", "a\nb"], &["ab"]),
            (r"\h\H\v\V", &["\u{a0}a\n1"], &[]),
            (r"\bfoo\b", &["foo"], &["foos"]),
            (r"a+?b*?c??", &["aab"], &["b"]),
        ] {
            for text in met {
                assert!(matches(pattern, text), "{pattern} {text:?}");
            }
            for text in unmet {
                assert!(!matches(pattern, text), "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        for (pattern, named) in [
            ("a(?=b)", "lookahead"),
            ("(?!x).*", "lookahead"),
            ("(?<=a)b", "lookbehind"),
            ("(?<!a)b", "lookbehind"),
            (r"(a)\1", "back-references"),
            (r"(?<n>a)\k<n>", "back-references"),
            ("a*+b", "possessive"),
            ("a{2}+", "possessive"),
            ("(?>a)", "atomic"),
            (r"\p{InGreek}", "InGreek"),
            (r"\p{javaLowerCase}", "javaLowerCase"),
            (r"\y", r"\y"),
            (r"\G", r"\G"),
            ("[a", "class"),
            ("a\\", "backslash"),
        ] {
            let error = translated(pattern).unwrap_err().to_string();
            assert!(error.contains(named), "{pattern}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_expression_is_too_strange(pattern in r"[\\\[\](){}a-c&~^.*+?|0-9QEpdwsRZux<>=!:iU-]{0,24}") {
            if let Ok(translated) = translated(&pattern) {
                Regex::new(&translated).ok();
            }
        }

        /// Quoted, every text is itself.
        #[test]
        fn quotations_match_themselves(text in "[^\\\\]{0,12}") {
            let quoted = format!("\\Q{text}\\E");
            let is_met = matches(&quoted, &text);
            prop_assert!(is_met);
        }

        #[test]
        fn plain_expressions_stay(pattern in "[a-c]{1,3}([a-c]|\\([a-c]{1,2}\\)|[a-c]\\*|\\[a-c\\])*", text in "[a-d]{0,5}") {
            let plain = Regex::new(&format!("^(?:{pattern})$")).unwrap();
            prop_assert_eq!(matches(&pattern, &text), plain.is_match(&text));
        }
    }
}
