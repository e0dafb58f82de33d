//! Filters of routes as what requests pass, and as what responds.

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::rows::actions::{Fields, Passed};
use super::super::toml::Keys;
use super::Object;

/// The filters of a rule.
pub(super) struct Filters<'n> {
    pub(super) passed: Passed,
    /// `RequestRedirect`
    pub(super) redirect: Option<&'n Node>,
    /// The path of `URLRewrite`.
    pub(super) path: Option<&'n Node>,
    /// The host that servers get.
    pub(super) host: Option<String>,
    /// `RequestMirror`
    pub(super) mirror: Option<&'n Node>,
}

impl<'n> Filters<'n> {
    pub(super) fn read(filters: &'n Node, route: &Object<'_>, notes: &mut Notes) -> Self {
        let mut made = Self {
            passed: Passed::default(),
            redirect: None,
            path: None,
            host: None,
            mirror: None,
        };
        made.extend(filters, route, notes);
        made
    }

    /// Adds those of the one backend of a rule.
    pub(super) fn extend(&mut self, filters: &'n Node, route: &Object<'_>, notes: &mut Notes) {
        for filter in filters.items() {
            self.add(filter, route, notes);
        }
    }

    fn add(&mut self, filter: &'n Node, route: &Object<'_>, notes: &mut Notes) {
        let place = route.at(filter);
        let kind = filter.text_at("type").unwrap_or_default();
        match kind {
            "RequestHeaderModifier" => {
                let options = filter.get("requestHeaderModifier");
                self.request_fields(options, route, notes);
            }
            "ResponseHeaderModifier" => {
                let options = filter.get("responseHeaderModifier");
                change(&mut self.passed.response, options, route, notes);
            }
            "RequestRedirect" => self.redirect = Some(filter.get("requestRedirect")),
            "URLRewrite" => {
                let options = filter.get("urlRewrite");
                let host = options.text_at("hostname").map(str::to_owned);
                let path = Some(options.get("path")).filter(|it| it.is_there());
                self.host = host.or(self.host.take());
                self.path = path.or(self.path);
            }
            "RequestMirror" if self.mirror.is_some() => {
                notes.add(&place, "all but the first of its mirrors are left out");
            }
            "RequestMirror" => self.mirror = Some(filter.get("requestMirror")),
            "CORS" => self.cors(filter.get("cors")),
            _ => {
                let message = format!(
                    "its rule responds with 501: the filter `{kind}` may keep clients out, and has no counterpart"
                );
                notes.add(&place, message);
                self.passed.is_closed = true;
            }
        }
    }

    fn request_fields(&mut self, options: &Node, route: &Object<'_>, notes: &mut Notes) {
        let mut set = options.get("set").items().iter();
        let host = set.rfind(|it| is_host(it));
        if let Some(host) = host.and_then(|it| it.text_at("value")) {
            self.host = Some(host.to_owned());
        }
        change(&mut self.passed.request, options, route, notes);
    }

    fn cors(&mut self, options: &Node) {
        let mut cors = Keys::default();
        let lists = [
            ("origins", "allowOrigins"),
            ("methods", "allowMethods"),
            ("headers", "allowHeaders"),
            ("expose", "exposeHeaders"),
        ];
        for (key, name) in lists {
            let values = options.get(name).texts();
            let is_any = values.iter().any(|it| it == "*");
            match key {
                "origins" if is_any => cors.text(key, "*"),
                // `*` allows the requested fields, as plimsoll does without the key.
                _ if is_any || values.is_empty() => {}
                _ => cors.set(key, texts(&values)),
            }
        }
        if options.is_true("allowCredentials") {
            cors.set("credentials", "true");
        }
        if let Some(seconds) = options.number_at("maxAge").filter(|it| *it > 0) {
            cors.text("max_age", &format!("{seconds}s"));
        }
        if cors.get("origins").is_some() {
            self.passed.keys.set("cors", cors.inline());
        }
    }
}

fn is_host(field: &Node) -> bool {
    let name = field.text_at("name").unwrap_or_default();
    name.eq_ignore_ascii_case("host")
}

fn change(fields: &mut Fields, options: &Node, route: &Object<'_>, notes: &mut Notes) {
    for key in ["set", "add"] {
        for field in options.get(key).items() {
            let text = |key: &str| field.text_at(key).unwrap_or_default();
            let (name, value) = (text("name"), text("value"));
            if is_host(field) {
                continue;
            }
            if !is_plain(value) {
                let message = format!("`{name}` is left out: braces of its value are places here");
                notes.add(&route.at(field), message);
            } else if key == "set" {
                fields.set_text(name, value);
            } else {
                fields.add.text(name, value);
            }
        }
    }
    let removed = options.get("remove").texts();
    fields.removed.extend(removed);
}

/// Whether a text has no places.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['{', '}'])
}

fn texts(values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|it| toml_string(it)).collect();
    format!("[{}]", values.join(", "))
}
