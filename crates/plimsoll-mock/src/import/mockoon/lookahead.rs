//! Lookahead at the beginning of an expression as tests of their own: `^(?!A)B` is `^B` and not `^A`.
//!
//! Expressions of rules run in linear time, which has no room for lookahead in general. Rules have it nearly always at the
//! beginning, to exclude a word or to demand several at once.

/// What an expression looks ahead for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lookahead {
    pub(super) is_negative: bool,
    /// An expression for the beginning of the text.
    pub(super) pattern: String,
}

/// The tests at the beginning of an expression, and the expression without them; nothing if there are none.
pub(super) fn split(pattern: &str) -> Option<(Vec<Lookahead>, String)> {
    let mut rest = pattern.strip_prefix('^')?;
    let mut tests = Vec::new();
    loop {
        let is_negative = rest.starts_with("(?!");
        if !is_negative && !rest.starts_with("(?=") {
            break;
        }
        let end = end_of_group(rest)?;
        let inner = rest.get(3..end)?;
        tests.push(Lookahead {
            is_negative,
            pattern: format!("^(?:{inner})"),
        });
        rest = rest.get(end + 1..)?;
    }
    // The beginning is that of one alternative only.
    if tests.is_empty() || has_alternatives(rest) {
        return None;
    }
    Some((tests, format!("^{rest}")))
}

/// The position of the parenthesis that closes the group at the beginning of `text`.
fn end_of_group(text: &str) -> Option<usize> {
    let found = outside_of_classes(text).scan(0_u32, |depth, (at, character)| {
        match character {
            '(' => *depth += 1,
            ')' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, *depth))
    });
    found
        .into_iter()
        .find(|(_, depth)| *depth == 0)
        .map(|(at, _)| at)
}

fn has_alternatives(text: &str) -> bool {
    let mut depth = 0_u32;
    outside_of_classes(text).any(|(_, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == '|' && depth == 0
    })
}

/// The characters that are neither escaped nor in a class, with their positions.
fn outside_of_classes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut is_escaped, mut is_in_class) = (false, false);
    text.char_indices().filter(move |(_, character)| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            _ if was_escaped => return false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => return !is_in_class,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookahead_at_the_beginning_is_split_off() {
        let check = |pattern: &str, expected: Option<(&[(bool, &str)], &str)>| {
            let found = split(pattern);
            let found = found.as_ref().map(|(tests, rest)| {
                let tests = tests.iter().map(|it| (it.is_negative, it.pattern.as_str()));
                (tests.collect::<Vec<_>>(), rest.as_str())
            });
            let expected = expected.map(|(tests, rest)| (tests.to_vec(), rest));
            assert_eq!(found, expected, "{pattern}");
        };
        check("^(?!.*xyz).*$", Some((&[(true, "^(?:.*xyz)")], "^.*$")));
        check(
            r"^(?=.*[()])(?!a(b|c)\)).{8,}$",
            Some((
                &[(false, "^(?:.*[()])"), (true, r"^(?:a(b|c)\))")],
                "^.{8,}$",
            )),
        );
        check("^(?!a)(b|c)", Some((&[(true, "^(?:a)")], "^(b|c)")));
        check("^(?!a)b|c", None);
        check("(?!a)b", None);
        check("^a(?!b)", None);
        check("^(?!a", None);
        check("^a", None);
    }
}
