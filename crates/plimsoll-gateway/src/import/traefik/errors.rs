//! `errors`: a page of a service in place of errors, as an internal route that `on_status` leads to.

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::route::Route;
use super::super::toml::Keys;
use super::middlewares::Surroundings;
use super::model::Untranslated;
use super::services::Services;
use super::values::list;

/// Statuses of a range that is no class of them.
const MOST: u16 = 20;

/// A middleware that replaces errors.
#[derive(Debug, Clone)]
pub(super) struct ErrorPages {
    /// Of the middleware.
    name: String,
    /// Keys of `on_status`.
    statuses: Vec<String>,
    service: String,
    /// Path and query of the page, perhaps with `{status}`.
    query: String,
    place: Directive,
}

/// A route that has a page.
#[derive(Debug)]
pub(super) struct PageRoute {
    /// Under which it is led to.
    pub(super) path: String,
    proxy: Keys,
    place: Directive,
}

impl ErrorPages {
    /// - `name`: of the middleware.
    pub(super) fn read(
        name: &str,
        options: &Node,
        place: &Directive,
    ) -> Result<Self, Untranslated> {
        let mut statuses = Vec::new();
        for text in list(options.get("status")) {
            let keys = status_keys(&text).ok_or(Untranslated::Value("status"))?;
            statuses.extend(keys);
        }
        let query = options.text_at("query").unwrap_or("/");
        let is_one = statuses.iter().all(|it| !it.ends_with('x'));
        let has_place = query.contains("{status}");
        let rest = query.replace("{status}", "");
        if statuses.is_empty() {
            return Err(Untranslated::Value("status"));
        }
        if !query.starts_with('/') || rest.contains(['{', '}']) || has_place && !is_one {
            return Err(Untranslated::Value("query"));
        }
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        Ok(Self {
            name: name.replace(|it| !is_plain(it), "-"),
            statuses,
            service: options.text_at("service").unwrap_or_default().to_owned(),
            query: query.to_owned(),
            place: place.clone(),
        })
    }

    /// The routes of its pages, and what leads to them.
    pub(super) fn routes(
        &self,
        services: &mut Services,
        on_status: &mut Keys,
        around: &mut Surroundings<'_>,
    ) -> Vec<PageRoute> {
        let none = Keys::default();
        let found = services.proxy(&self.service, &none, around.model, around.notes);
        let proxy = match found {
            Ok(proxy) => proxy,
            Err(reason) => {
                around.notes.add(&self.place, format!("left out: {reason}"));
                return Vec::new();
            }
        };
        let mut made: Vec<PageRoute> = Vec::new();
        for status in &self.statuses {
            let query = self.query.replace("{status}", status);
            let path = if query == self.query {
                format!("/.errors/{}", self.name)
            } else {
                format!("/.errors/{}/{status}", self.name)
            };
            // Of several middlewares the outermost has the last word on a response.
            if on_status.get(status).is_none() {
                on_status.text(status, &path);
            }
            if made.iter().any(|it| it.path == path) {
                continue;
            }
            let mut proxy = proxy.clone();
            let to = toml_string(&query.replace('$', "$$"));
            proxy.set("rewrite", format!("{{ from = \"^.*$\", to = {to} }}"));
            made.push(PageRoute {
                path,
                proxy,
                place: self.place.clone(),
            });
        }
        made
    }
}

impl PageRoute {
    /// Whether a route leads to it.
    pub(super) fn is_led_to(&self, keys: &Keys) -> bool {
        let path = toml_string(&self.path);
        keys.get("on_status").is_some_and(|it| it.contains(&path))
    }

    /// - `listen`: the name of the listener.
    pub(super) fn route(&self, host: Option<&str>, listen: &str) -> Route {
        let mut keys = Keys::default();
        keys.text("listen", listen);
        if let Some(host) = host {
            keys.text("host", host);
        }
        keys.text("path", &self.path);
        keys.set("proxy", self.proxy.inline());
        Route::internal(&keys, &self.place)
    }
}

/// `503`, `500-599` and the like as keys of `on_status`.
fn status_keys(text: &str) -> Option<Vec<String>> {
    let status = |text: &str| {
        let status: u16 = text.trim().parse().ok()?;
        (300..600).contains(&status).then_some(status)
    };
    let Some((first, last)) = text.split_once('-') else {
        return Some(vec![status(text)?.to_string()]);
    };
    let (first, last) = (status(first)?, status(last)?);
    if first % 100 == 0 && last % 100 == 99 && first < last {
        let classes = first / 100..=last / 100;
        return Some(classes.map(|it| format!("{it}xx")).collect());
    }
    let is_short = first <= last && last - first < MOST;
    is_short.then(|| (first..=last).map(|it| it.to_string()).collect())
}
