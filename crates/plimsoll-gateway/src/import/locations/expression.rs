//! The expression of a location as the condition of a route.

use plimsoll_server::PathCondition;

use super::super::Notes;
use super::super::access;
use super::super::patterns::{
    Kind, UnknownExpression, branches, literal_start, without_look_around,
};
use super::super::route::Route;
use super::super::toml::Keys;
use super::Location;

/// Why an expression has no counterpart.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExpressionProblem {
    #[error("`{0}` names bytes that are no characters")]
    Bytes(String),
    #[error("`{pattern}` is not known to match below `{below}` alone")]
    Below { pattern: String, below: String },
    #[error(transparent)]
    Unknown(#[from] UnknownExpression),
}

/// The expression of a location, which may match anywhere, as one for the whole path. Within a prefix it is for paths
/// below that prefix, or for more if it keeps somebody out and may match a part of the prefix too.
///
/// Bytes that are written one by one (`\xc3\xa9`) are the characters that they make.
pub(super) fn expression(
    location: &Location<'_>,
    pattern: &str,
) -> Result<String, ExpressionProblem> {
    let Some(pattern) = &with_characters(pattern) else {
        return Err(ExpressionProblem::Bytes(pattern.to_owned()));
    };
    // Each branch begins and ends by itself: the `^` of one does not bind another.
    let branches = branches(pattern).into_iter();
    let whole: Result<Vec<_>, _> = branches.map(|text| whole_path(location, text)).collect();
    let whole = whole?.join("|");
    match PathCondition::regex(&whole) {
        Ok(_) => Ok(whole),
        Err(_) => Err(UnknownExpression(location.pattern.to_owned()).into()),
    }
}

/// A branch of an expression, which may match a part, as one for the whole path.
fn whole_path(location: &Location<'_>, text: &str) -> Result<String, ExpressionProblem> {
    // A slash at the end may be that with which the expression begins.
    let is_joined = location.is_closing && literal_start(text).starts_with('/');
    let below = location.below.map(|below| match below.strip_suffix('/') {
        Some(joined) if is_joined => (joined, "(?:/.*)?"),
        _ => (below, ".*"),
    });
    let (before, text) = match (text.strip_prefix('^'), below) {
        (Some(rest), Some((below, _)))
            if !location.is_closing && !rest.starts_with(&regex::escape(below)) =>
        {
            return Err(ExpressionProblem::Below {
                pattern: text.to_owned(),
                below: below.to_owned(),
            });
        }
        (Some(rest), _) => (String::new(), rest),
        (None, Some((below, between)))
            if !location.is_closing || !overlaps(below, literal_start(text)) =>
        {
            (format!("(?-i:{}){between}", regex::escape(below)), text)
        }
        (None, _) => (".*".to_owned(), text),
    };
    let (text, after) = match text.strip_suffix('$').filter(|it| !it.ends_with('\\')) {
        Some(rest) => (rest, ""),
        None => (text, ".*"),
    };
    let case = if location.kind == Kind::RegexAnyCase {
        "i"
    } else {
        "-i"
    };
    Ok(format!("{before}(?{case}:{text}){after}"))
}

/// A 403 for what an expression without a counterpart keeps somebody out of: other locations must not let them in.
pub(super) fn closed(
    location: &Location<'_>,
    problem: &ExpressionProblem,
    notes: &mut Notes,
) -> Option<Route> {
    if !location.is_closing {
        notes.add(location.directive, format!("left out: {problem}"));
        return None;
    }
    let wider = expression(location, &without_look_around(location.pattern));
    let wider = wider.unwrap_or_else(|_| "/.*".to_owned());
    notes.add(
        location.directive,
        format!("paths that match `{wider}` respond with 403: {problem}"),
    );
    let mut keys = Keys::default();
    keys.text("regex", &wider);
    access::forbid(&mut keys);
    Some(Route::new(&keys, location.directive))
}

/// The expression with characters beyond ASCII in place of their bytes: nginx compares bytes, routes characters. Nothing
/// for bytes that make none.
fn with_characters(pattern: &str) -> Option<String> {
    let mut characters = String::new();
    let mut bytes = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let escape = rest
            .strip_prefix("\\x")
            .and_then(|it| it.split_at_checked(2));
        let byte = escape.and_then(|(digits, after)| {
            let byte = u8::from_str_radix(digits, 16).ok()?;
            (!byte.is_ascii()).then_some((byte, after))
        });
        if let Some((byte, after)) = byte {
            bytes.push(byte);
            rest = after;
            continue;
        }
        characters += &String::from_utf8(std::mem::take(&mut bytes)).ok()?;
        // An escape belongs to what follows it.
        let length = if rest.starts_with('\\') { 2 } else { 1 };
        characters.extend(rest.chars().take(length));
        let mut after = rest.chars();
        after.by_ref().take(length).for_each(drop);
        rest = after.as_str();
    }
    characters += &String::from_utf8(bytes).ok()?;
    Some(characters)
}

/// Whether a match that begins so can begin within a prefix.
fn overlaps(prefix: &str, literal: impl AsRef<str>) -> bool {
    let literal = literal.as_ref().to_lowercase();
    let prefix = prefix.to_lowercase();
    let mut ends = prefix
        .char_indices()
        .map(|(at, _)| prefix.get(at..).unwrap_or_default());
    ends.any(|end| end.starts_with(&literal) || literal.starts_with(end))
}

#[cfg(test)]
mod tests {
    use regex::RegexBuilder;

    use crate::import::import_nginx;

    /// The paths of which one of the expressions of routes that respond with 403 is.
    fn closed<'a>(locations: &str, paths: &[&'a str]) -> Vec<&'a str> {
        let text = format!("server {{ listen 80; location / {{ return 200 a; }} {locations} }}");
        let mut include = |_: &str| Err("there are no files here".into());
        let imported = import_nginx("n", &text, &mut include).unwrap();
        let table: toml::Table = imported.toml.parse().unwrap();
        let expressions: Vec<_> = table["route"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|route| route["respond"]["status"].as_integer() == Some(403))
            .filter_map(|route| route.get("regex")?.as_str())
            .map(|text| {
                RegexBuilder::new(&format!("^(?:{text})$"))
                    .case_insensitive(true)
                    .build()
                    .unwrap()
            })
            .collect();
        let is_closed = |path: &&str| expressions.iter().any(|it| it.is_match(path));
        paths.iter().copied().filter(is_closed).collect()
    }

    /// Each branch of an expression begins and ends by itself, as in nginx.
    #[test]
    fn branches_of_an_expression_match_each_by_itself() {
        let paths = [
            "/p/x", "/p/abc", "/q/p/x", "/a/1", "/z/b", "/z/b/c", "/z/c|d", "/other",
        ];
        for (expression, expected) in [
            ("^/a|/b", &["/a/1", "/z/b", "/z/b/c"][..]),
            ("^/a|/b$", &["/a/1", "/z/b"]),
            ("/b$|^/a", &["/a/1", "/z/b"]),
            ("abc|^/p/x$", &["/p/x", "/p/abc"]),
            ("[x|]$|^/a", &["/p/x", "/q/p/x", "/a/1"]),
            ("(abc|c[|]d)$", &["/p/abc", "/z/c|d"]),
        ] {
            let location = format!("location ~ \"{expression}\" {{ deny all; }}");
            assert_eq!(closed(&location, &paths), expected, "{expression}");
        }
        let within = "location /p/ { location ~ \"abc|/p/x\" { deny all; } return 200 p; }";
        assert_eq!(
            closed(within, &["/p/x", "/p/abc", "/p/y", "/x"]),
            ["/p/x", "/p/abc"]
        );
    }
}
