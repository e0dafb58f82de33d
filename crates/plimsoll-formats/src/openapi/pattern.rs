//! Texts that match a regular expression: of each choice the first, of each repetition the fewest.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longer texts are not made.
const LONGEST: usize = 4096;

/// A text that a pattern of JSON Schema matches, of a length within bounds; nothing if the pattern is none here, or no
/// such text is found.
pub(super) fn text_of(pattern: &str, least: usize, most: usize) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    // A repetition that is made more often makes a text longer.
    (0..=least.min(LONGEST)).find_map(|more| {
        let mut text = String::new();
        push(&hir, &mut text, u32::try_from(more).ok()?)?;
        let length = text.chars().count();
        (least..=most).contains(&length).then_some(text)
    })
}

/// - `more`: how often repetitions are made beyond the fewest, as far as they may be.
fn push(hir: &Hir, text: &mut String, more: u32) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(one_of(class)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.saturating_add(more).min(most) {
                push(&repetition.sub, text, 0)?;
                if text.len() > LONGEST {
                    return None;
                }
            }
        }
        HirKind::Capture(capture) => push(&capture.sub, text, more)?,
        HirKind::Concat(all) => {
            for part in all {
                push(part, text, more)?;
            }
        }
        HirKind::Alternation(all) => push(all.first()?, text, more)?,
    }
    Some(())
}

/// A letter or a digit if the class has one, else its first character.
fn one_of(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|it| (it.start(), it.end())).collect(),
        Class::Bytes(class) => {
            let ranges = class.iter();
            ranges
                .map(|it| (char::from(it.start()), char::from(it.end())))
                .collect()
        }
    };
    let has = |wanted: char| {
        ranges
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&wanted))
    };
    let known = ('a'..='z')
        .chain('A'..='Z')
        .chain('0'..='9')
        .find(|it| has(*it));
    known.or_else(|| ranges.first().map(|(from, _)| *from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_patterns() {
        for (pattern, least, expected) in [
            ("^(0|[1-9][0-9]*)$", 0, Some("0")),
            ("^[A-Z]{3}-[0-9]{2}$", 0, Some("AAA-00")),
            ("^[a-z]+$", 5, Some("aaaaa")),
            ("^(GET|POST)$", 0, Some("GET")),
            ("^#?[0-9a-f]{6}$", 0, Some("aaaaaa")),
            ("^\\d{4}-\\d{2}$", 0, Some("0000-00")),
            ("x", 0, Some("x")),
            ("^a$", 2, None),
            ("(?=a)", 0, None),
        ] {
            assert_eq!(
                text_of(pattern, least, 4096).as_deref(),
                expected,
                "{pattern}"
            );
        }
    }
}
