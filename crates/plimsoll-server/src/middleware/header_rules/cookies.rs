//! Attributes of the cookies that responses set (RFC 6265, section 4.1; `SameSite` of its successor).

use http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use regex::Regex;

use crate::place::location::LocationTemplate;
use crate::place::{Place, Values};

/// What becomes of cookies.
#[derive(Debug, Clone)]
pub struct CookieRule {
    /// Those whose names it matches; all without.
    pub cookie: Option<Regex>,
    /// A part of the attribute `Domain` that is replaced.
    pub domain: Option<AttributeRewrite>,
    /// The same of `Path`.
    pub path: Option<AttributeRewrite>,
    /// Whether `Secure` is there; as it is without.
    pub secure: Option<bool>,
    /// Whether `HttpOnly` is there; as it is without.
    pub http_only: Option<bool>,
    /// The value of `SameSite`, if it is to be another one.
    pub same_site: Option<SameSite>,
}

/// The value of an attribute in which a part is replaced.
#[derive(Debug, Clone)]
pub struct AttributeRewrite {
    /// What is replaced.
    pub from: Regex,
    /// By what; groups of `from` may stand in it.
    pub to: LocationTemplate,
}

/// Values of `SameSite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// No attribute.
    Absent,
    /// `Strict`
    Strict,
    /// `Lax`
    Lax,
    /// `None`
    None,
}

impl SameSite {
    const fn wanted(self) -> Wanted {
        match self {
            Self::Absent => Wanted::Absent,
            Self::Strict => Wanted::Value("Strict"),
            Self::Lax => Wanted::Value("Lax"),
            Self::None => Wanted::Value("None"),
        }
    }
}

impl CookieRule {
    /// The places of its texts.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        let rewrites = self.domain.iter().chain(&self.path);
        rewrites.flat_map(|rewrite| rewrite.to.places())
    }

    fn is_for(&self, cookie: &str) -> bool {
        self.cookie
            .as_ref()
            .is_none_or(|name| name.is_match(cookie))
    }
}

impl AttributeRewrite {
    fn rewritten(&self, value: &str, request: &dyn Values) -> Option<String> {
        let groups = self.from.captures(value)?;
        let found = groups.get(0)?;
        let group = |_: &str, number| groups.get(number).map(|it| it.as_str().to_owned());
        let to = self.to.fill(request, &group);
        let (before, after) = (value.get(..found.start())?, value.get(found.end()..)?);
        Some(format!("{before}{to}{after}"))
    }
}

/// Changes the cookies that a response sets. Of the rules that change the same attribute the first that applies counts.
pub(super) fn change(rules: &[CookieRule], request: &dyn Values, fields: &mut HeaderMap) {
    if rules.is_empty() {
        return;
    }
    let values = fields.iter_mut().filter(|(name, _)| **name == SET_COOKIE);
    for (_, value) in values {
        let changed = value
            .to_str()
            .ok()
            .map(|text| changed(rules, request, text));
        if let Some(changed) = changed.and_then(|it| HeaderValue::from_str(&it).ok()) {
            *value = changed;
        }
    }
}

fn changed(rules: &[CookieRule], request: &dyn Values, text: &str) -> String {
    // What is not changed stays as it was written, blanks included.
    let mut parts: Vec<String> = text.split(';').map(str::to_owned).collect();
    let pair = parts.first().map_or("", String::as_str);
    let cookie = pair.split('=').next().unwrap_or_default().trim().to_owned();
    let rules = || rules.iter().filter(|rule| rule.is_for(&cookie));
    for (attribute, rewrites) in [
        (
            "domain",
            rules()
                .filter_map(|it| it.domain.as_ref())
                .collect::<Vec<_>>(),
        ),
        ("path", rules().filter_map(|it| it.path.as_ref()).collect()),
    ] {
        for part in parts.iter_mut().skip(1) {
            let Some((name, value)) = part.split_once('=') else {
                continue;
            };
            if !name.trim().eq_ignore_ascii_case(attribute) {
                continue;
            }
            let mut rewrites = rewrites.iter();
            let rewritten = rewrites.find_map(|it| it.rewritten(value.trim_start(), request));
            if let Some(rewritten) = rewritten {
                *part = format!("{name}={rewritten}");
            }
        }
    }
    let flag = |wanted: Option<bool>| {
        let wanted = wanted?;
        Some(if wanted { Wanted::Flag } else { Wanted::Absent })
    };
    let same_site = rules().find_map(|it| it.same_site);
    for (attribute, wanted) in [
        ("Secure", flag(rules().find_map(|it| it.secure))),
        ("HttpOnly", flag(rules().find_map(|it| it.http_only))),
        ("SameSite", same_site.map(SameSite::wanted)),
    ] {
        if let Some(wanted) = wanted {
            set(&mut parts, attribute, wanted);
        }
    }
    parts.join(";")
}

/// What an attribute is to be.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Absent,
    /// There, without a value.
    Flag,
    Value(&'static str),
}

/// Has the attribute once, or not at all.
fn set(parts: &mut Vec<String>, attribute: &str, wanted: Wanted) {
    let is_it = |part: &str| {
        let name = part.split('=').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case(attribute)
    };
    let known = parts.iter().skip(1).position(|part| is_it(part));
    let written = match wanted {
        Wanted::Absent => {
            let pair = parts.first().cloned();
            let others = parts.drain(..).skip(1).filter(|part| !is_it(part));
            *parts = pair.into_iter().chain(others.collect::<Vec<_>>()).collect();
            return;
        }
        // One that is there keeps its case.
        Wanted::Flag if known.is_some() => return,
        Wanted::Flag => format!(" {attribute}"),
        Wanted::Value(value) => format!(" {attribute}={value}"),
    };
    match known.and_then(|at| parts.get_mut(at + 1)) {
        Some(part) => *part = written,
        None => parts.push(written),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Nothing;
    use super::*;
    use crate::place::Maps;

    fn rewrite(from: &str, to: &str) -> AttributeRewrite {
        let from = Regex::new(from).unwrap();
        AttributeRewrite {
            to: LocationTemplate::parse(to, Some(&from), &Maps::default()).unwrap(),
            from,
        }
    }

    fn rule() -> CookieRule {
        CookieRule {
            cookie: None,
            domain: None,
            path: None,
            secure: None,
            http_only: None,
            same_site: None,
        }
    }

    #[test]
    fn attributes_are_rewritten_set_and_removed() {
        let rules = [
            CookieRule {
                domain: Some(rewrite(r"(?i)^\.?app\.test$", "example.org")),
                ..rule()
            },
            CookieRule {
                domain: Some(rewrite(r"^([a-z]+)\.test$", "{1}.org")),
                path: Some(rewrite("^/in/", "/")),
                ..rule()
            },
            CookieRule {
                cookie: Some(Regex::new("^sid$").unwrap()),
                secure: Some(true),
                http_only: Some(true),
                same_site: Some(SameSite::Lax),
                ..rule()
            },
            CookieRule {
                cookie: Some(Regex::new("^open").unwrap()),
                secure: Some(false),
                same_site: Some(SameSite::Absent),
                ..rule()
            },
        ];
        for (text, expected) in [
            ("a=b", "a=b"),
            (
                "a=b;Path=/in/x;domain=.APP.test",
                "a=b;Path=/x;domain=example.org",
            ),
            (
                "a=domain=x.test; Domain=x.test",
                "a=domain=x.test; Domain=x.org",
            ),
            ("a=b; Domain=other; Path=/", "a=b; Domain=other; Path=/"),
            (
                "sid=1; secure; SameSite=None",
                "sid=1; secure; SameSite=Lax; HttpOnly",
            ),
            ("sid=1", "sid=1; Secure; HttpOnly; SameSite=Lax"),
            (
                "open=Secure; Secure; SameSite=None; HttpOnly",
                "open=Secure; HttpOnly",
            ),
            ("", ""),
            ("sid", "sid; Secure; HttpOnly; SameSite=Lax"),
        ] {
            assert_eq!(changed(&rules, &Nothing, text), expected, "{text}");
        }
    }
}
