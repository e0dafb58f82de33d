//! `_headers`, in the dialects of Netlify and Cloudflare.

use plimsoll_model::FieldClass;

use crate::Remark;
use crate::request::is_token;
use crate::site::{Dialect, Lenient, MOST_IN_LINE, split_host, without_mark};

/// A rule about paths, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderRule {
    /// Counted from 1.
    pub line: usize,
    /// A path with its slash, in which `:name` and `*` stand for any.
    pub path: String,
    /// The host that it is for, if not for any; in Cloudflare's dialect `:name` and `*` stand for any part of it.
    pub host: Option<String>,
    /// Names in lower case with their values; those that were given several times are joined, but for cookies.
    pub fields: Vec<(String, String)>,
    /// Names in lower case that are not to be sent.
    pub unset: Vec<String>,
}

/// Rules that Cloudflare takes.
const MOST: usize = 100;

/// Fields of one path. Common clients reject a response with more than 100.
const MOST_FIELDS: usize = 100;

/// Reads the rules.
pub fn parse_header_rules(text: &str, dialect: Dialect) -> Lenient<HeaderRule> {
    let mut parsed: Lenient<HeaderRule> = Lenient::default();
    // Below a path that is wrong, or too many, nothing is kept.
    let mut is_open = false;
    let mut has_begun = false;
    for (line, number) in without_mark(text).lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.chars().count() > MOST_IN_LINE {
            let message = format!("the line has more than {MOST_IN_LINE} characters");
            parsed.remarks.push(Remark::line(number, message));
            continue;
        }
        if line.starts_with('/') || split_host(line).is_some() {
            has_begun = true;
            let rule = match path(line, dialect) {
                Ok(_) if dialect == Dialect::Cloudflare && parsed.entries.len() == MOST => {
                    Err(HeaderLineError::TooManyRules)
                }
                Ok((host, path)) => Ok(HeaderRule {
                    line: number,
                    path,
                    host,
                    fields: Vec::new(),
                    unset: Vec::new(),
                }),
                Err(error) => Err(error),
            };
            is_open = rule.is_ok();
            parsed.keep_parsed(number, rule);
            continue;
        }
        let mistake = if !has_begun {
            Some(HeaderLineError::BeforePath)
        } else if !is_open {
            None
        } else if let Some(rule) = parsed.entries.last_mut() {
            field(rule, line, dialect).err()
        } else {
            None
        };
        parsed
            .remarks
            .extend(mistake.map(|error| Remark::line(number, error.to_string())));
    }
    parsed
        .entries
        .retain(|rule| !rule.fields.is_empty() || !rule.unset.is_empty());
    parsed
}

/// What is wrong in a line.
#[derive(Debug, thiserror::Error)]
enum HeaderLineError {
    #[error("stands before any path")]
    BeforePath,
    #[error("has more than one `*`")]
    Rests,
    #[error("a host is given without its port")]
    Port,
    #[error("is a path of any host")]
    Host,
    #[error("`{0}` is not a path")]
    NotAPath(String),
    #[error("is neither a path nor a header field")]
    Neither,
    #[error("`{0}` is no name of a header field")]
    Name(String),
    #[error("`{0}` has no value")]
    NoValue(String),
    #[error("the value of `{0}` has a control character")]
    ControlCharacter(String),
    #[error("`{0}` is set by the server and cannot be given")]
    SetByServer(String),
    #[error("the path has {MOST_FIELDS} fields already")]
    TooMany,
    #[error("there are {MOST} rules already")]
    TooManyRules,
}

fn path(line: &str, dialect: Dialect) -> Result<(Option<String>, String), HeaderLineError> {
    let (host, path) = match split_host(line) {
        Some((host, path)) => (Some(host), path),
        None => (None, line.to_owned()),
    };
    if dialect == Dialect::Cloudflare {
        if path.matches('*').count() > 1 {
            return Err(HeaderLineError::Rests);
        }
        let labels = |host: &str| {
            host.split(':')
                .skip(1)
                .any(|rest| !rest.starts_with(|it: char| it.is_ascii_alphabetic()))
        };
        if host.as_deref().is_some_and(labels) {
            return Err(HeaderLineError::Port);
        }
    } else if host.is_some() {
        return Err(HeaderLineError::Host);
    }
    if path.contains(char::is_whitespace) {
        return Err(HeaderLineError::NotAPath(path));
    }
    Ok((host, path))
}

fn field(rule: &mut HeaderRule, line: &str, dialect: Dialect) -> Result<(), HeaderLineError> {
    if dialect == Dialect::Cloudflare
        && let Some(name) = line.strip_prefix('!')
    {
        let name = name.trim();
        if !is_token(name) {
            return Err(HeaderLineError::Name(name.to_owned()));
        }
        rule.unset.push(name.to_ascii_lowercase());
        return Ok(());
    }
    let Some((name, value)) = line.split_once(':') else {
        return Err(HeaderLineError::Neither);
    };
    let (name, value) = (name.trim(), value.trim());
    if !is_token(name) {
        return Err(HeaderLineError::Name(name.to_owned()));
    }
    if value.is_empty() {
        return Err(HeaderLineError::NoValue(name.to_owned()));
    }
    if value
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err(HeaderLineError::ControlCharacter(name.to_owned()));
    }
    let name = name.to_ascii_lowercase();
    if is_set_by_server(&name) {
        return Err(HeaderLineError::SetByServer(name));
    }
    if rule.fields.len() == MOST_FIELDS {
        return Err(HeaderLineError::TooMany);
    }
    let mut known = rule.fields.iter_mut();
    match known.find(|(known, _)| *known == name) {
        // Cookies cannot share a field (RFC 6265, section 3).
        Some((_, joined)) if name != "set-cookie" => {
            joined.push_str(", ");
            joined.push_str(value);
        }
        _ => rule.fields.push((name, value.to_owned())),
    }
    Ok(())
}

/// True if the server sets the field itself: it frames or describes content.
fn is_set_by_server(name: &str) -> bool {
    let class = FieldClass::from_name(name.as_bytes());
    let describes_content = ["content-encoding", "content-range", "date", "trailer"];
    class.is_connection_specific() || class.is_framing() || describes_content.contains(&name)
}
