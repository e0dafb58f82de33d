//! Middlewares that change paths, one after another, as `rewrite` of a proxy.

use plimsoll_model::document::toml_string;

use super::super::toml::Keys;

/// Changes of the path so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    rewrites: Vec<(String, String)>,
    kind: Kind,
}

/// What the changes are, as far as others may follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    /// Beginnings that are taken off.
    Stripped,
    Other,
}

impl Changes {
    /// Takes off the first of these that a path begins with; false if that cannot follow what is there.
    pub(super) fn strip(&mut self, prefixes: &[String]) -> bool {
        if self.kind != Kind::None {
            return false;
        }
        for prefix in prefixes {
            let prefix = prefix.trim_end_matches('/');
            if !prefix.is_empty() {
                let from = format!("^{}/*", regex::escape(prefix));
                self.rewrites.push((from, "/".to_owned()));
            }
        }
        self.kind = Kind::Stripped;
        true
    }

    /// The same by expressions.
    pub(super) fn strip_by(&mut self, expressions: &[String]) -> bool {
        if self.kind != Kind::None {
            return false;
        }
        for expression in expressions {
            let expression = expression.strip_prefix('^').unwrap_or(expression);
            if regex::Regex::new(expression).is_err() {
                return false;
            }
            let from = format!("^(?:{expression})/*");
            self.rewrites.push((from, "/".to_owned()));
        }
        self.kind = Kind::Stripped;
        true
    }

    pub(super) fn add(&mut self, prefix: &str) -> bool {
        if self.kind == Kind::Other {
            return false;
        }
        let prefix = format!("/{}", prefix.trim_matches('/')).replace('$', "$$");
        let prefix = if prefix == "/" { String::new() } else { prefix };
        for (_, to) in &mut self.rewrites {
            *to = format!("{prefix}/");
        }
        self.rewrites.push(("^/".to_owned(), format!("{prefix}/")));
        self.kind = Kind::Other;
        true
    }

    /// Whatever the path was before.
    pub(super) fn replace(&mut self, path: &str) -> bool {
        if !path.starts_with('/') {
            return false;
        }
        self.rewrites = vec![("^.*$".to_owned(), path.replace('$', "$$"))];
        self.kind = Kind::Other;
        true
    }

    pub(super) fn replace_by(&mut self, expression: &str, replacement: &str) -> bool {
        if self.kind != Kind::None || regex::Regex::new(expression).is_err() {
            return false;
        }
        self.rewrites
            .push((expression.to_owned(), replacement.to_owned()));
        self.kind = Kind::Other;
        true
    }

    /// Writes `rewrite` of a proxy.
    pub(super) fn write(&self, proxy: &mut Keys) {
        let made: Vec<String> = self
            .rewrites
            .iter()
            .map(|(from, to)| {
                let (from, to) = (toml_string(from), toml_string(to));
                format!("{{ from = {from}, to = {to} }}")
            })
            .collect();
        match made.as_slice() {
            [] => {}
            [only] => proxy.set("rewrite", only.clone()),
            several => proxy.set("rewrite", format!("[{}]", several.join(", "))),
        }
    }
}
