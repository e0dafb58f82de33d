//! The cookies of one user (RFC 6265): what responses set, and what a request carries of it.
//!
//! Pure: dates are given. There is no list of public suffixes here; a domain without a dot in it is
//! taken for one.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use cookie::Cookie;

/// The cookies of one user.
#[derive(Debug, Default)]
pub struct CookieJar {
    /// Longer paths first, and of equal ones those that were set earlier (section 5.4).
    cookies: Vec<Stored>,
    /// Cookies that were ever set.
    set: u64,
}

#[derive(Debug)]
struct Stored {
    name: String,
    value: String,
    /// In lowercase.
    domain: String,
    /// Sent to that host, but not to those below it.
    is_host_only: bool,
    path: String,
    is_secure: bool,
    /// `None` for the length of the run.
    expires: Option<SystemTime>,
    number: u64,
}

/// The parts of a request's target that cookies depend on.
#[derive(Debug, Clone, Copy)]
pub struct CookiePlace<'a> {
    /// The host without its port.
    pub host: &'a str,
    /// The path; what follows a `?` does not count.
    pub path: &'a str,
    /// Whether it goes over TLS.
    pub is_secure: bool,
}

impl CookieJar {
    /// Cookies that are kept at most; the oldest has to go for one more.
    pub const MOST: usize = 300;

    /// Bytes of name and value together, at most; a larger cookie is ignored.
    pub const MOST_BYTES: usize = 4096;

    /// Takes the value of a `Set-Cookie` field; one that makes no sense, or that is not the sender's to
    /// set, is ignored (section 5.3).
    pub fn store_cookie(&mut self, set_cookie: &[u8], place: CookiePlace<'_>, now: SystemTime) {
        let Some(mut new) = Stored::parse(set_cookie, place, now) else {
            return;
        };
        let is_over = new.expires.is_some_and(|expires| expires <= now);
        let old = self.cookies.iter().position(|cookie| cookie.is_same(&new));
        match old {
            Some(position) if is_over => {
                self.cookies.remove(position);
            }
            Some(position) => {
                // It keeps its place among the others.
                new.number = self.cookies[position].number;
                self.cookies[position] = new;
            }
            None if is_over => {}
            None => {
                if self.cookies.len() == Self::MOST {
                    self.make_room(now);
                }
                new.number = self.set;
                self.set += 1;
                let length = new.path.len();
                let position = self
                    .cookies
                    .partition_point(|cookie| cookie.path.len() >= length);
                self.cookies.insert(position, new);
            }
        }
    }

    /// Appends the names and values that a request to `place` carries, as `a=b; c=d`.
    pub fn write(&self, place: CookiePlace<'_>, now: SystemTime, out: &mut Vec<u8>) {
        let path = path_of(place.path);
        for cookie in &self.cookies {
            let is_meant = cookie.expires.is_none_or(|expires| expires > now)
                && (place.is_secure || !cookie.is_secure)
                && cookie.matches_host(place.host)
                && cookie.matches_path(path);
            if is_meant {
                if !out.is_empty() {
                    out.extend_from_slice(b"; ");
                }
                out.extend_from_slice(cookie.name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(cookie.value.as_bytes());
            }
        }
    }

    /// Whether a request to `place` carries a cookie of that name.
    pub fn has(&self, name: &[u8], place: CookiePlace<'_>, now: SystemTime) -> bool {
        let path = path_of(place.path);
        self.cookies.iter().any(|cookie| {
            cookie.name.as_bytes() == name
                && cookie.expires.is_none_or(|expires| expires > now)
                && (place.is_secure || !cookie.is_secure)
                && cookie.matches_host(place.host)
                && cookie.matches_path(path)
        })
    }

    fn make_room(&mut self, now: SystemTime) {
        self.cookies
            .retain(|cookie| cookie.expires.is_none_or(|expires| expires > now));
        if self.cookies.len() == Self::MOST {
            let oldest = self.cookies.iter().map(|cookie| cookie.number).min();
            self.cookies.retain(|cookie| Some(cookie.number) != oldest);
        }
    }
}

impl Stored {
    fn parse(set_cookie: &[u8], place: CookiePlace<'_>, now: SystemTime) -> Option<Self> {
        let text = std::str::from_utf8(set_cookie).ok()?;
        if text
            .chars()
            .any(|character| character.is_control() && character != '\t')
        {
            return None;
        }
        let cookie = Cookie::parse(text).ok()?;
        let (name, value) = cookie.name_value();
        if name.len() + value.len() > CookieJar::MOST_BYTES {
            return None;
        }
        let host = place.host.to_ascii_lowercase();
        let domain = cookie.domain().unwrap_or_default();
        let domain = domain.trim_start_matches('.').to_ascii_lowercase();
        let is_host_only = domain.is_empty();
        let is_senders = is_host_only
            || domain == host
            || (domain.contains('.') && is_below(&host, &domain) && !is_address(&host));
        if !is_senders {
            return None;
        }
        let path = match cookie.path() {
            Some(path) if path.starts_with('/') => path,
            _ => default_path(path_of(place.path)),
        };
        Some(Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: if is_host_only { host } else { domain },
            is_host_only,
            path: path.to_owned(),
            is_secure: cookie.secure().unwrap_or(false),
            expires: expiry(&cookie, now),
            number: 0,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.domain == other.domain && self.path == other.path
    }

    /// Section 5.1.3.
    fn matches_host(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(&self.domain)
            || (!self.is_host_only && is_below(host, &self.domain) && !is_address(host))
    }

    /// Section 5.1.4.
    fn matches_path(&self, path: &str) -> bool {
        path.strip_prefix(&self.path).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        })
    }
}

/// When it is forgotten; `Max-Age` counts before `Expires` (section 5.3).
fn expiry(cookie: &Cookie<'_>, now: SystemTime) -> Option<SystemTime> {
    match cookie.max_age() {
        Some(age) => {
            let seconds = u64::try_from(age.whole_seconds()).unwrap_or(0);
            now.checked_add(Duration::from_secs(seconds))
        }
        None => cookie.expires_datetime().map(SystemTime::from),
    }
}

/// Whether `host` is a name below `domain`.
fn is_below(host: &str, domain: &str) -> bool {
    host.len() > domain.len()
        && host
            .as_bytes()
            .split_at(host.len() - domain.len())
            .1
            .eq_ignore_ascii_case(domain.as_bytes())
        && host.as_bytes()[host.len() - domain.len() - 1] == b'.'
}

fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn path_of(target: &str) -> &str {
    match target.split(['?', '#']).next() {
        Some(path) if path.starts_with('/') => path,
        _ => "/",
    }
}

/// Section 5.1.4.
fn default_path(path: &str) -> &str {
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/",
        Some((folder, _)) => folder,
    }
}

#[cfg(test)]
mod tests;
