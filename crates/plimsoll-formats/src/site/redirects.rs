//! `_redirects`, in the dialects of Netlify and Cloudflare.

use std::collections::HashSet;

use crate::Remark;
use crate::site::{Dialect, Lenient, MOST_IN_LINE, split_host, without_mark};

/// One rule, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectRule {
    /// Counted from 1.
    pub line: usize,
    /// A path with its slash, in which `:name` and `*` stand for any.
    pub from: String,
    /// The host that it is for, if not for any.
    pub host: Option<String>,
    /// Parameters that the query must have; a value may be a place such as `:id`.
    pub query: Vec<(String, String)>,
    /// A path, or a URL; `:name` and `:splat` stand for what they matched.
    pub to: String,
    /// 200 answers with what is at `to`, 404 too; the others send clients there.
    pub status: u16,
    /// It holds even where there is a file.
    pub is_forced: bool,
}

impl RedirectRule {
    /// True if it is for one path only.
    pub fn is_static(&self) -> bool {
        !self.from.contains(['*', ':'])
    }
}

/// Rules of one path and others that Cloudflare takes.
const MOST_STATIC: usize = 2000;
const MOST_DYNAMIC: usize = 100;

/// Reads the rules, in the order in which they are to be tried.
pub fn parse_redirects(text: &str, dialect: Dialect) -> Lenient<RedirectRule> {
    let mut parsed = Lenient::default();
    for (line, number) in without_mark(text).lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let rule = if line.chars().count() > MOST_IN_LINE {
            Err(RedirectError::TooLong)
        } else {
            match dialect {
                Dialect::Netlify => netlify(line, number),
                Dialect::Cloudflare => cloudflare(line, number),
            }
        };
        if dialect == Dialect::Cloudflare
            && rule.is_ok()
            && let Some((_, query)) = line
                .split_whitespace()
                .next()
                .and_then(|from| from.split_once('?'))
        {
            let message = format!("`?{query}` is ignored: Cloudflare matches paths only");
            parsed.remarks.push(Remark::line(number, message));
        }
        parsed.keep_parsed(number, rule);
    }
    match dialect {
        Dialect::Netlify => parsed,
        Dialect::Cloudflare => limited(parsed),
    }
}

/// Why a line is no rule.
#[derive(Debug, thiserror::Error)]
enum RedirectError {
    #[error("the line has more than {MOST_IN_LINE} characters")]
    TooLong,
    #[error("is not a rule")]
    NotARule,
    #[error("is not a path, a target and, if wanted, a status")]
    Words,
    #[error("`{0}` is neither a path nor a URL")]
    From(String),
    #[error("`{0}`: only paths can be redirected")]
    NotAPath(String),
    #[error("paths below /.netlify are not to be redirected")]
    OfNetlify,
    #[error("`*` stands for the rest, so nothing may follow it")]
    BehindRest,
    #[error("has more than one `*`")]
    Rests,
    #[error("has no target")]
    NoTarget,
    #[error("`{0}` is neither a path nor a URL with https://")]
    Target(String),
    #[error("the target has a character that must be written as %XX")]
    TargetCharacter,
    #[error("content of other servers is not fetched; redirect to them")]
    OtherServer,
    #[error("leads to itself")]
    Itself,
    #[error("`{0}` is not a pair such as id=:id")]
    Pair(String),
    #[error("`{0}`: rules for some visitors only are not applied")]
    Visitors(String),
    #[error("`{0}` is no status")]
    Status(String),
    #[error("`{0}` is no status; there are 200, 301, 302, 303, 307 and 308")]
    StatusOfCloudflare(String),
    #[error("{0} is no status of a rule")]
    StatusOfRule(u16),
    #[error("307 is not supported by Netlify; use 302 or 308")]
    TemporaryRedirect,
}

fn netlify(line: &str, number: usize) -> Result<RedirectRule, RedirectError> {
    let words: Vec<_> = line
        .split_whitespace()
        .take_while(|word| !word.starts_with('#'))
        .collect();
    let Some((from, rest)) = words.split_first() else {
        return Err(RedirectError::NotARule);
    };
    let (host, from) = match split_host(from) {
        Some((host, path)) => (Some(host), path),
        None if from.starts_with('/') => (None, (*from).to_owned()),
        None => return Err(RedirectError::From((*from).to_owned())),
    };
    let from = with_single_slashes(&from);
    if from.starts_with("/.netlify") {
        return Err(RedirectError::OfNetlify);
    }
    if from
        .split('/')
        .rev()
        .skip(1)
        .any(|segment| segment.contains('*'))
    {
        return Err(RedirectError::BehindRest);
    }
    let is_target = |word: &&str| {
        word.starts_with('/') || word.starts_with("http://") || word.starts_with("https://")
    };
    let (query, to, rest) = if let Some(at) = rest.iter().position(is_target) {
        (&rest[..at], rest[at].to_owned(), &rest[at + 1..])
    } else {
        // What is meant is the same path, for rules that say that something is to be served.
        let status = rest.first().and_then(|word| netlify_status(word));
        match (status, from.strip_suffix("/*")) {
            (Some((200..=299, _)), Some(base)) => (&rest[..0], format!("{base}/:splat"), rest),
            _ => return Err(RedirectError::NoTarget),
        }
    };
    let query = query.iter().map(|pair| {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| RedirectError::Pair((*pair).to_owned()))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let query = query.collect::<Result<Vec<_>, RedirectError>>()?;
    let (status, is_forced, rest) = match rest.split_first() {
        None => (301, false, rest),
        Some((word, after)) => match netlify_status(word) {
            Some((status, is_forced)) => (status, is_forced, after),
            None if word.contains('=') => (301, false, rest),
            None => return Err(RedirectError::Status((*word).to_owned())),
        },
    };
    if let Some(condition) = rest.first() {
        return Err(RedirectError::Visitors((*condition).to_owned()));
    }
    let is_elsewhere = !to.starts_with('/');
    match status {
        200 | 404 if is_elsewhere => {
            return Err(RedirectError::OtherServer);
        }
        200 | 301 | 302 | 303 | 308 | 404 => {}
        307 => return Err(RedirectError::TemporaryRedirect),
        other => return Err(RedirectError::StatusOfRule(other)),
    }
    check_target(&to)?;
    Ok(RedirectRule {
        line: number,
        from,
        host,
        query,
        to,
        status,
        is_forced,
    })
}

/// The leading digits of a word, and whether `!` follows them.
fn netlify_status(word: &str) -> Option<(u16, bool)> {
    let digits = word.trim_end_matches('!');
    let status = digits
        .parse()
        .ok()
        .filter(|status| (100..1000).contains(status))?;
    Some((status, digits.len() < word.len()))
}

/// A path whose repeated slashes are one, as in the paths of requests.
fn with_single_slashes(path: &str) -> String {
    let mut before = None;
    let mut plain = path.to_owned();
    plain.retain(|character| before.replace(character) != Some('/') || character != '/');
    plain
}

fn cloudflare(line: &str, number: usize) -> Result<RedirectRule, RedirectError> {
    let line = line.split_once(" #").map_or(line, |(rule, _)| rule);
    let words: Vec<_> = line.split_whitespace().collect();
    let (from, to, status) = match words[..] {
        [from, to] => (from, to, "302"),
        [from, to, status] => (from, to, status),
        _ => return Err(RedirectError::Words),
    };
    if !from.starts_with('/') && from.contains("://") {
        return Err(RedirectError::NotAPath(from.to_owned()));
    }
    let from = from.split('?').next().unwrap_or_default();
    let from = with_single_slashes(&format!("/{from}"));
    if from.matches('*').count() > 1 {
        return Err(RedirectError::Rests);
    }
    let status = match status {
        "200" | "301" | "302" | "303" | "307" | "308" => status.parse().unwrap_or(302),
        other => {
            return Err(RedirectError::StatusOfCloudflare(other.to_owned()));
        }
    };
    let to = if to.starts_with('/') {
        single_slashes(to)
    } else if to.starts_with("https://") && status != 200 {
        to.to_owned()
    } else if to.starts_with("https://") {
        return Err(RedirectError::OtherServer);
    } else {
        return Err(RedirectError::Target(to.to_owned()));
    };
    let is_index = |to: &str| to.starts_with("/index");
    if (from == "/*" && matches!(to.as_str(), "/index" | "/index.html"))
        || (from == "/" && is_index(&to))
    {
        return Err(RedirectError::Itself);
    }
    check_target(&to)?;
    Ok(RedirectRule {
        line: number,
        from,
        host: None,
        query: Vec::new(),
        to,
        status,
        is_forced: true,
    })
}

/// Repeated slashes of a path as one; those of its query stay.
fn single_slashes(to: &str) -> String {
    let at = to.find(['?', '#']).unwrap_or(to.len());
    let (path, rest) = to.split_at(at);
    let mut single = String::with_capacity(to.len());
    for character in path.chars() {
        if character != '/' || !single.ends_with('/') {
            single.push(character);
        }
    }
    single + rest
}

fn check_target(to: &str) -> Result<(), RedirectError> {
    if to.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(RedirectError::TargetCharacter)
    }
}

/// Refuses what is given twice or beyond the limits, and puts rules for one path first.
fn limited(parsed: Lenient<RedirectRule>) -> Lenient<RedirectRule> {
    let Lenient {
        entries,
        mut remarks,
    } = parsed;
    let mut known = HashSet::new();
    let (mut statics, mut others) = (Vec::new(), Vec::new());
    for rule in entries {
        if !known.insert(rule.from.clone()) {
            let message = format!("`{}` has a rule already", rule.from);
            remarks.push(Remark::line(rule.line, message));
            continue;
        }
        // Behind a rule for many paths, one for a single path counts as such too.
        let (rules, most) = if rule.is_static() && others.is_empty() {
            (&mut statics, MOST_STATIC)
        } else {
            (&mut others, MOST_DYNAMIC)
        };
        if rules.len() == most {
            remarks.push(Remark::line(
                rule.line,
                format!("there are {most} rules of its kind already"),
            ));
            continue;
        }
        rules.push(rule);
    }
    let is_behind = |rule: &RedirectRule| !rule.is_static();
    others.sort_by_key(is_behind);
    statics.append(&mut others);
    Lenient {
        entries: statics,
        remarks,
    }
}
