//! What responds to requests, with what they pass before it, as routes.

use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::maps::Maps;
use super::matcher::Matcher;
use super::paths::PathMatch;

/// Something that responds, and when.
#[derive(Debug, Clone)]
pub(in crate::import) struct Action {
    pub(in crate::import) matcher: Matcher,
    pub(in crate::import) response: Response,
    /// What requests pass before it.
    pub(in crate::import) passed: Passed,
    pub(in crate::import) directive: Directive,
    /// Other routes lead to it, clients do not.
    pub(in crate::import) name: Option<String>,
}

/// The action of a route. What `handle_path` takes off is the value of `strip`, until [`Action::settle`].
#[derive(Debug, Clone)]
pub(in crate::import) enum Response {
    /// The keys of `proxy`.
    Proxy(Keys),
    /// The keys of `files`, and the route that takes what is no file.
    Files(Keys, Option<String>),
    /// `respond` or `redirect`.
    Other(Keys),
}

/// What requests and responses pass.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct Passed {
    pub(in crate::import) keys: Keys,
    pub(in crate::import) request: Fields,
    pub(in crate::import) response: Fields,
    /// `auth` of a proxy.
    pub(in crate::import) auth: Option<String>,
    /// `max_request` of a proxy.
    pub(in crate::import) max_request: Option<String>,
    /// Something that keeps clients out cannot be said: they are all kept out.
    pub(in crate::import) is_closed: bool,
}

/// Changes of fields.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct Fields {
    pub(in crate::import) set: Keys,
    pub(in crate::import) add: Keys,
    pub(in crate::import) removed: Vec<String>,
}
impl Action {
    pub(in crate::import) fn new(
        matcher: Matcher,
        response: Response,
        directive: &Directive,
    ) -> Self {
        Self {
            matcher,
            response,
            passed: Passed::default(),
            directive: directive.clone(),
            name: None,
        }
    }

    /// What it takes off the beginning of paths, without a slash at its end.
    fn taken(&self) -> Option<String> {
        let (Response::Proxy(keys) | Response::Files(keys, _)) = &self.response else {
            return None;
        };
        keys.get("strip").and_then(text)
    }

    /// Makes expressions of prefixes that a folder would be looked up without, though nothing takes them off.
    pub(in crate::import) fn keep_prefixes(&mut self) {
        let taken = self.taken().unwrap_or_default();
        if !matches!(self.response, Response::Files(..)) {
            return;
        }
        for path in &mut self.matcher.paths {
            if !path.is_prefix(&taken) {
                *path = path.to_regex();
            }
        }
    }

    /// Writes what is taken off in the way that fits the paths.
    pub(in crate::import) fn settle(&mut self) {
        let Some(taken) = self.taken() else {
            return;
        };
        let is_own = self.matcher.paths.iter().all(|it| it.is_prefix(&taken))
            && !self.matcher.paths.is_empty();
        match &mut self.response {
            Response::Proxy(proxy) => {
                proxy.remove("strip");
                if is_own {
                    proxy.set("strip", "true");
                } else {
                    proxy.set("rewrite", without_prefix(&taken));
                }
            }
            Response::Files(files, _) if is_own => files.remove("strip"),
            Response::Files(..) | Response::Other(_) => {}
        }
    }

    /// One route for each of its paths.
    ///
    /// - `listen`: the name of the listener.
    pub(in crate::import) fn routes(
        &self,
        host: Option<&str>,
        listen: &str,
        maps: &mut Maps,
    ) -> Vec<Keys> {
        let paths: Vec<Option<&PathMatch>> = match self.matcher.paths.as_slice() {
            [] => vec![None],
            paths => paths.iter().map(Some).collect(),
        };
        let made = paths.into_iter().map(|path| {
            let mut keys = Keys::default();
            keys.text("listen", listen);
            if let Some(host) = host {
                keys.text("host", host.trim_matches(['[', ']']));
            }
            match path {
                Some(path) => path.set(&mut keys),
                None => keys.text("prefix", "/"),
            }
            self.matcher.set(&mut keys, maps);
            self.write(&mut keys);
            keys
        });
        made.collect()
    }
}

impl Action {
    /// The action and what requests pass before it.
    fn write(&self, keys: &mut Keys) {
        let passed = &self.passed;
        if passed.is_closed {
            keys.inherit(&answer("501", "not translated\n"));
            return;
        }
        match &self.response {
            Response::Proxy(proxy) => {
                let mut proxy = proxy.clone();
                if let Some(auth) = &passed.auth {
                    proxy.set("auth", auth.clone());
                }
                if let Some(most) = &passed.max_request {
                    proxy.set("max_request", most.clone());
                }
                let is_plain = proxy.pairs().count() == 1;
                match proxy.get("to").filter(|_| is_plain) {
                    Some(to) => keys.set("proxy", to),
                    None => keys.set("proxy", proxy.inline()),
                }
            }
            Response::Files(files, leads) => {
                keys.set("files", files.inline());
                if let Some(name) = leads {
                    let lead = format!("{{ to = {}, status = \"own\" }}", toml_string(name));
                    keys.set("on_status", format!("{{ 404 = {lead}, 405 = {lead} }}"));
                }
            }
            Response::Other(other) => keys.inherit(other),
        }
        let is_forwarded = matches!(self.response, Response::Proxy(_));
        if let Some(auth) = passed.auth.as_ref().filter(|_| !is_forwarded) {
            keys.set("auth", auth.clone());
        }
        keys.inherit(&passed.keys);
        for (key, fields) in [
            ("request_headers", &passed.request),
            ("response_headers", &passed.response),
        ] {
            if let Some(fields) = fields.inline() {
                keys.set(key, fields);
            }
        }
    }
}

/// `rewrite` of a proxy that takes a beginning off.
pub(in crate::import) fn without_prefix(prefix: &str) -> String {
    let from = format!("^{}/*", regex::escape(prefix.trim_end_matches('/')));
    format!("{{ from = {}, to = \"/\" }}", toml_string(&from))
}

pub(in crate::import) fn not_translated() -> Response {
    Response::Other(answer("501", "not translated\n"))
}

pub(in crate::import) fn answer(status: &str, body: &str) -> Keys {
    let mut keys = Keys::default();
    let body = toml_string(body);
    keys.set("respond", format!("{{ status = {status}, body = {body} }}"));
    keys
}

/// The text of a value of TOML, which is written as in JSON.
fn text(value: &str) -> Option<String> {
    serde_json::from_str(value).ok()
}

impl Passed {
    /// The same, and that of another layer.
    pub(in crate::import) fn join(&mut self, other: &Self) {
        // A route has one of each, and clients have to get past both.
        let basic = |it: &Self| it.keys.get("basic_auth").map(str::to_owned);
        let is_double = |one: Option<String>, other: Option<String>| {
            one.is_some() && other.is_some() && one != other
        };
        self.is_closed |= other.is_closed
            || is_double(basic(self), basic(other))
            || is_double(self.auth.clone(), other.auth.clone());
        for (key, value) in other.keys.pairs() {
            self.keys.set(key, value);
        }
        self.request.join(&other.request);
        self.response.join(&other.response);
        if other.auth.is_some() {
            self.auth.clone_from(&other.auth);
        }
        if other.max_request.is_some() {
            self.max_request.clone_from(&other.max_request);
        }
    }
}

impl Fields {
    /// Sets a field, whose name may be there in other letters.
    pub(in crate::import) fn set_text(&mut self, name: &str, value: &str) {
        let known = self.set.pairs().map(|(known, _)| known.to_owned());
        let known = known.collect::<Vec<_>>();
        for known in known.iter().filter(|it| it.eq_ignore_ascii_case(name)) {
            self.set.remove(known);
        }
        self.removed.retain(|it| !it.eq_ignore_ascii_case(name));
        self.set.text(name, value);
    }

    pub(in crate::import) fn join(&mut self, other: &Self) {
        self.set.inherit(&other.set);
        self.add.inherit(&other.add);
        self.removed.extend(other.removed.iter().cloned());
    }

    /// As a table; `None` if nothing changes.
    fn inline(&self) -> Option<String> {
        let mut keys = Keys::default();
        for (key, table) in [("set", &self.set), ("add", &self.add)] {
            if !table.is_empty() {
                keys.set(key, table.inline());
            }
        }
        if !self.removed.is_empty() {
            let names = self.removed.iter().map(|it| toml_string(it));
            keys.set(
                "remove",
                format!("[{}]", names.collect::<Vec<_>>().join(", ")),
            );
        }
        (!keys.is_empty()).then(|| keys.inline())
    }
}
