//! The cookie jars of a virtual user.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use plimsoll_client::{CookieJar, CookiePlace};
use url::Url;

/// Jar 0 is that of the virtual user, others are made by scripts.
#[derive(Debug, Default)]
pub(crate) struct Jars {
    jars: HashMap<u32, CookieJar>,
    last: u32,
}

/// Attributes that a script gives a cookie.
#[derive(Debug, Default)]
pub(crate) struct CookieOptions {
    pub(crate) domain: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) expires: Option<String>,
    pub(crate) max_age: Option<f64>,
    pub(crate) is_secure: bool,
    pub(crate) is_http_only: bool,
}

impl Jars {
    /// Adds an empty jar.
    pub(crate) fn add(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.jars.remove(&id);
    }

    /// Empties the jar of the virtual user.
    pub(crate) fn reset(&mut self) {
        self.jars.remove(&0);
    }

    /// Names and values that a request to `url` carries.
    pub(crate) fn cookies(&self, id: u32, url: &Url, now: SystemTime) -> Vec<(String, String)> {
        let Some(jar) = self.jars.get(&id) else {
            return Vec::new();
        };
        let mut field = Vec::new();
        jar.write(place(url), now, &mut field);
        let field = String::from_utf8_lossy(&field);
        let pairs = field.split("; ").filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Takes the value of a `Set-Cookie` field.
    pub(crate) fn store_cookie(&mut self, id: u32, url: &Url, field: &[u8], now: SystemTime) {
        self.jars
            .entry(id)
            .or_default()
            .store_cookie(field, place(url), now);
    }

    pub(crate) fn set(
        &mut self,
        id: u32,
        url: &Url,
        (name, value): (&str, &str),
        options: &CookieOptions,
        now: SystemTime,
    ) {
        let mut field = format!("{name}={value}");
        for (key, value) in [
            ("Domain", &options.domain),
            ("Path", &options.path),
            ("Expires", &options.expires),
        ] {
            if let Some(value) = value {
                // Writing to a text does not fail.
                write!(field, "; {key}={value}").ok();
            }
        }
        if let Some(seconds) = options.max_age {
            write!(field, "; Max-Age={seconds:.0}").ok();
        }
        if options.is_secure {
            field.push_str("; Secure");
        }
        if options.is_http_only {
            field.push_str("; HttpOnly");
        }
        self.store_cookie(id, url, field.as_bytes(), now);
    }

    pub(crate) fn delete(&mut self, id: u32, url: &Url, name: &str, now: SystemTime) {
        // At the default path, and at the root, where most cookies are.
        for path in ["", "; Path=/"] {
            let field = format!("{name}=; Max-Age=0{path}");
            self.store_cookie(id, url, field.as_bytes(), now);
        }
    }

    pub(crate) fn clear(&mut self, id: u32, url: &Url, now: SystemTime) {
        for (name, _) in self.cookies(id, url, now) {
            self.delete(id, url, &name, now);
        }
    }
}

fn place(url: &Url) -> CookiePlace<'_> {
    CookiePlace {
        host: url.host_str().unwrap_or_default(),
        path: url.path(),
        is_secure: url.scheme() == "https",
    }
}
