//! Content security policies (W3C CSP Level 3) that let one more script run and connect to where it came from.

/// By which the script is known where a policy trusts nonces alone. It guards nothing: this is for development.
pub(super) const NONCE: &str = "plimsoll-live";

/// The value of a field with one policy or several, separated by commas, each of which must allow it.
pub(super) fn allowing(value: &str) -> String {
    let policies: Vec<_> = value.split(',').map(policy).collect();
    policies.join(", ")
}

fn policy(text: &str) -> String {
    let mut directives: Vec<(String, Vec<String>)> = text
        .split(';')
        .filter_map(|directive| {
            let mut words = directive.split_ascii_whitespace().map(str::to_owned);
            Some((words.next()?.to_ascii_lowercase(), words.collect()))
        })
        .collect();
    allow(
        &mut directives,
        &["script-src-elem", "script-src", "default-src"],
    );
    allow(&mut directives, &["connect-src", "default-src"]);
    let directives: Vec<_> = directives
        .into_iter()
        .map(|(name, sources)| [&[name], sources.as_slice()].concat().join(" "))
        .collect();
    directives.join("; ")
}

/// Has the first of these directives that is there allow the own origin. What only falls back to `default-src` gets
/// a directive of its own, so that nothing else is allowed more.
fn allow(directives: &mut Vec<(String, Vec<String>)>, names: &[&str]) {
    let found = names
        .iter()
        .find_map(|name| directives.iter().position(|(it, _)| it == name));
    let Some(at) = found else {
        return;
    };
    let is_fallback = directives[at].0 == "default-src";
    let mut sources = directives[at].1.clone();
    sources.retain(|source| !source.eq_ignore_ascii_case("'none'"));
    // Beside it, origins count for nothing.
    let is_strict = sources
        .iter()
        .any(|source| source.eq_ignore_ascii_case("'strict-dynamic'"));
    let own = if is_strict {
        format!("'nonce-{NONCE}'")
    } else {
        "'self'".to_owned()
    };
    if !sources.contains(&own) {
        sources.push(own);
    }
    match names {
        [.., before, _] if is_fallback => directives.push(((*before).to_owned(), sources)),
        _ => directives[at].1 = sources,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_allow_the_script_and_nothing_else_more() {
        for (policy, expected) in [
            ("img-src 'self'", "img-src 'self'"),
            (
                "default-src 'none'",
                "default-src 'none'; script-src 'self'; connect-src 'self'",
            ),
            (
                "Default-Src 'self'; script-src https://a.example 'unsafe-inline'",
                "default-src 'self'; script-src https://a.example 'unsafe-inline' 'self'; connect-src 'self'",
            ),
            (
                "script-src 'nonce-x' 'strict-dynamic'; connect-src 'none';",
                "script-src 'nonce-x' 'strict-dynamic' 'nonce-plimsoll-live'; connect-src 'self'",
            ),
            (
                "script-src 'none'; script-src-elem 'self'",
                "script-src 'none'; script-src-elem 'self'",
            ),
            (
                "script-src 'self', default-src a.example",
                "script-src 'self', default-src a.example; script-src a.example 'self'; connect-src a.example 'self'",
            ),
            ("", ""),
        ] {
            assert_eq!(allowing(policy), expected, "{policy}");
            assert_eq!(allowing(expected), expected, "{policy}");
        }
    }
}
