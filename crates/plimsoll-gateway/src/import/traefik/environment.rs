//! Variables of compose files.
//!
//! Source: Docker's documentation, "Interpolation".

use super::rule::closing_brace;

/// A text in which `${NAME:-default}` is its default and `$$` a dollar, and the names of variables without one, for which
/// [`stand_in`] stands.
pub(super) fn filled(text: &str) -> (String, Vec<String>) {
    let mut made = String::new();
    let mut unknown = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        if let Some(behind) = after.strip_prefix('$') {
            made.push('$');
            rest = behind;
            continue;
        }
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let braced = after.strip_prefix('{').and_then(|it| {
            let end = closing_brace(it)?;
            Some((it.get(..end)?, it.get(end + 1..)?))
        });
        let (inner, behind) = braced.unwrap_or_else(|| {
            let end = after.find(|it| !is_name(it)).unwrap_or(after.len());
            after.split_at(end)
        });
        let end = inner.find(|it| !is_name(it)).unwrap_or(inner.len());
        let (name, default) = inner.split_at(end);
        if !name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') {
            made.push('$');
            rest = after;
            continue;
        }
        let default = default
            .strip_prefix(":-")
            .or_else(|| default.strip_prefix('-'));
        if let Some(default) = default {
            let (default, others) = filled_default(default);
            made.push_str(&default);
            unknown.extend(others);
        } else {
            made.push_str(&stand_in(name));
            unknown.push(name.to_owned());
        }
        rest = behind;
    }
    made.push_str(rest);
    (made, unknown)
}

/// A file in which names stand for `{{ env "NAME" }}` of templates.
///
/// - `found`: gets the line, the name of each variable, and what stands for it.
pub(super) fn with_stand_ins(text: &str, mut found: impl FnMut(usize, &str, &str)) -> String {
    let mut made = String::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            made.push_str(before);
            let variable = after.split_once("}}").and_then(|(inner, behind)| {
                let inner = inner.trim_matches(|it: char| it == '-' || it.is_whitespace());
                let name = inner
                    .strip_prefix("env")?
                    .trim()
                    .trim_matches(['"', '`', '\'']);
                let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
                (!name.is_empty() && name.chars().all(is_name)).then_some((name, behind))
            });
            if let Some((name, behind)) = variable {
                let stand_in = stand_in(name);
                found(number + 1, name, &stand_in);
                made.push_str(&stand_in);
                rest = behind;
            } else {
                made.push_str("{{");
                rest = after;
            }
        }
        made.push_str(rest);
    }
    made
}

/// A default may have one variable within; deeper ones are left as they stand.
fn filled_default(text: &str) -> (String, Vec<String>) {
    match text.strip_prefix("${").and_then(|it| it.strip_suffix('}')) {
        Some(name)
            if name
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_') =>
        {
            (stand_in(name), vec![name.to_owned()])
        }
        Some(inner) => match inner.split_once(":-") {
            Some((_, default)) if !default.contains('$') => (default.to_owned(), Vec::new()),
            _ => (text.to_owned(), Vec::new()),
        },
        None => (text.to_owned(), Vec::new()),
    }
}

/// A label of a host that stands for a variable.
pub(super) fn stand_in(name: &str) -> String {
    let text = name.to_ascii_lowercase().replace('_', "-");
    text.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_variables_of_templates() {
        let mut found = Vec::new();
        let text = "a: 1\nb: \"{{ env \"MY_HOST\" }}.x {{env `B`}} {{ range }}\"\n{{";
        let made = with_stand_ins(text, |line, name, _| found.push((line, name.to_owned())));
        assert_eq!(made, "a: 1\nb: \"my-host.x b {{ range }}\"\n{{");
        assert_eq!(found, [(2, "MY_HOST".to_owned()), (2, "B".to_owned())]);
    }

    #[test]
    fn variables_have_defaults_or_stand_ins() {
        for (text, expected, unknown) in [
            ("a$$2y$$10", "a$2y$10", ""),
            (
                "Host(`a.${DOMAIN_NAME}`)",
                "Host(`a.domain-name`)",
                "DOMAIN_NAME",
            ),
            ("${A:-b.test}/$C", "b.test/c", "C"),
            ("${A-${B:-c}}", "c", ""),
            ("${A:?not set}", "a", "A"),
            ("5$ and ${", "5$ and ${", ""),
            ("^https://(.*)$", "^https://(.*)$", ""),
        ] {
            let (filled, found) = filled(text);
            assert_eq!(
                (filled.as_str(), found.join(",").as_str()),
                (expected, unknown)
            );
        }
    }
}
