//! `proxy_cookie_domain`, `proxy_cookie_path` and `proxy_cookie_flags`, as rules for the cookies of responses.

use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;
use regex::Regex;

use super::Notes;
use super::nginx::Directive;
use super::responses::COOKIES;
use super::scope::Scope;
use super::toml::Keys;
use super::variables::with_places;

/// Why a directive about cookies is not carried over.
#[derive(Debug, thiserror::Error)]
enum CookieProblem {
    #[error("it takes what is replaced, and by what")]
    Arguments,
    #[error("what is replaced cannot depend on the request")]
    Replaced,
    #[error("its expression is not known here")]
    Expression,
    #[error("what replaces it has a variable without a counterpart")]
    Replacement,
    #[error("the name `{0}` cannot depend on the request")]
    Name(String),
    #[error("`{0}` is no flag")]
    Flag(String),
}

/// The rules of a route that forwards.
pub(super) fn proxy_cookies(scope: &Scope<'_>, route: &mut Keys, notes: &mut Notes) {
    let mut rules = Vec::new();
    for (name, attribute) in [
        ("proxy_cookie_domain", "domain"),
        ("proxy_cookie_path", "path"),
    ] {
        for directive in scope.all(name) {
            let rule = match directive.arguments.as_slice() {
                [only] if only == "off" => continue,
                [from, to] => {
                    let (value, attributes) = to.split_once(';').unwrap_or((to, ""));
                    // A value goes on with other attributes, which nginx writes as they are.
                    match more_attributes(attributes) {
                        Ok(None) => {}
                        Ok(Some(more)) => rules.push(more),
                        Err(reason) => notes.add(directive, format!("left out: {reason}")),
                    }
                    rewrite(attribute, from, value.trim_end(), scope)
                }
                _ => Err(CookieProblem::Arguments),
            };
            match rule {
                Ok(rule) => rules.push(format!("{{ {attribute} = {rule} }}")),
                Err(reason) => notes.add(directive, format!("left out: {reason}")),
            }
        }
    }
    for directive in scope.all("proxy_cookie_flags") {
        match flags(directive) {
            Ok(Some(rule)) => rules.push(rule),
            Ok(None) => {}
            Err(reason) => notes.add(directive, format!("left out: {reason}")),
        }
    }
    if !rules.is_empty() {
        route.set(COOKIES, format!("[{}]", rules.join(", ")));
    }
}

/// A rule for the attributes that follow a value: of every cookie, where nginx would add them to those whose value it
/// replaces.
fn more_attributes(attributes: &str) -> Result<Option<String>, CookieProblem> {
    let mut rule = Keys::default();
    for attribute in attributes.split(';').map(str::trim) {
        let (key, value) = match attribute.to_ascii_lowercase().as_str() {
            "" => continue,
            "secure" => ("secure", "true"),
            "httponly" => ("http_only", "true"),
            "samesite=strict" => ("same_site", "\"strict\""),
            "samesite=lax" => ("same_site", "\"lax\""),
            "samesite=none" => ("same_site", "\"none\""),
            _ => return Err(CookieProblem::Flag(attribute.to_owned())),
        };
        rule.set(key, value);
    }
    Ok((!rule.is_empty()).then(|| rule.inline()))
}

/// The expression for a value, and what replaces what it matches.
fn rewrite(
    attribute: &str,
    from: &str,
    to: &str,
    scope: &Scope<'_>,
) -> Result<String, CookieProblem> {
    let expression = match from.strip_prefix('~') {
        Some(expression) => whole(attribute, expression),
        None if from.contains('$') => return Err(CookieProblem::Replaced),
        // A dot at the beginning of a domain means nothing.
        None if attribute == "domain" => {
            format!("(?i)^\\.?{}$", regex::escape(from.trim_start_matches('.')))
        }
        None => format!("^{}", regex::escape(from)),
    };
    let compiled = Regex::new(&expression).map_err(|_| CookieProblem::Expression)?;
    let to = match attribute {
        "domain" => to.trim_start_matches('.'),
        _ => to,
    };
    let to = with_places(to, scope, Moment::Request, Some(&compiled));
    let to = to.ok_or(CookieProblem::Replacement)?;
    Ok(format!(
        "{{ from = {}, to = {} }}",
        toml_string(&expression),
        toml_string(&to)
    ))
}

/// An expression for the whole of what it matches in, as nginx replaces it.
///
/// - `expression`: behind its `~`; another `*` makes it disregard case, as it does anyway for domains.
fn whole(attribute: &str, expression: &str) -> String {
    let (case, text) = match expression.strip_prefix('*') {
        Some(text) => ("(?i)", text),
        None if attribute == "domain" => ("(?i)", expression),
        None => ("", expression),
    };
    let start = if text.starts_with('^') { "" } else { "^.*?" };
    let end = if text.ends_with('$') { "" } else { ".*$" };
    format!("{case}{start}{text}{end}")
}

/// The flags of the cookies with a name.
fn flags(directive: &Directive) -> Result<Option<String>, CookieProblem> {
    let Some((name, flags)) = directive.arguments.split_first() else {
        return Ok(None);
    };
    if name == "off" {
        return Ok(None);
    }
    if name.contains('$') && !name.starts_with('~') {
        return Err(CookieProblem::Name(name.clone()));
    }
    let expression = match name.strip_prefix('~') {
        None => format!("(?i)^{}$", regex::escape(name)),
        // It disregards case in any form.
        Some(expression) => format!("(?i){}", expression.trim_start_matches('*')),
    };
    let mut rule = Keys::default();
    rule.text("cookie", &expression);
    for flag in flags {
        let (key, value) = match flag.as_str() {
            "secure" => ("secure", "true"),
            "nosecure" => ("secure", "false"),
            "httponly" => ("http_only", "true"),
            "nohttponly" => ("http_only", "false"),
            "samesite=strict" => ("same_site", "\"strict\""),
            "samesite=lax" => ("same_site", "\"lax\""),
            "samesite=none" => ("same_site", "\"none\""),
            "nosamesite" => ("same_site", "false"),
            other => return Err(CookieProblem::Flag(other.to_owned())),
        };
        rule.set(key, value);
    }
    Ok(Some(rule.inline()))
}
