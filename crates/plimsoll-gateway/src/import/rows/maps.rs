//! Conditions on the addresses of clients, as maps.

use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::super::toml::Keys;
use super::matcher::{Clients, Matcher};

/// Maps that say whether a client is in some networks, each once.
#[derive(Debug, Default)]
pub(in crate::import) struct Maps(Vec<Vec<String>>);

impl Maps {
    fn name(&mut self, clients: &Clients) -> String {
        let known = self.0.iter().position(|it| *it == clients.networks);
        let at = known.unwrap_or_else(|| {
            self.0.push(clients.networks.clone());
            self.0.len() - 1
        });
        format!("clients-{}", at + 1)
    }

    /// `[map.NAME]` of each.
    pub(in crate::import) fn write(&self, out: &mut String) {
        for (at, networks) in self.0.iter().enumerate() {
            let mut table = Keys::default();
            for network in networks {
                table.text(network, "1");
            }
            let mut keys = Keys::default();
            keys.text("key", "{client}");
            keys.set("networks", table.inline());
            keys.text("default", "0");
            write!(out, "\n[map.clients-{}]\n", at + 1).ok();
            keys.lines(out);
        }
    }
}

impl Matcher {
    /// Writes its conditions but those on the path.
    pub(in crate::import) fn set(&self, keys: &mut Keys, maps: &mut Maps) {
        let mut places = Keys::default();
        if !self.methods.is_empty() {
            let methods = format!("[{}]", self.methods.join(", "));
            let has = |method: &str| self.methods.iter().any(|it| *it == toml_string(method));
            // GET of a route includes HEAD.
            if has("GET") && !has("HEAD") {
                places.set("method", methods);
            } else {
                keys.set("method", methods);
            }
        }
        for (key, table) in [("header", &self.fields), ("query", &self.query)] {
            if !table.is_empty() {
                keys.set(key, table.inline());
            }
        }
        if let Some(scheme) = &self.scheme {
            places.set("scheme", scheme.clone());
        }
        for (place, value) in &self.places {
            places.set(place, value.clone());
        }
        for clients in &self.clients {
            let wanted = if clients.is_negated { "0" } else { "1" };
            let place = format!("map:{}", maps.name(clients));
            places.set(&place, toml_string(wanted));
        }
        if !places.is_empty() {
            keys.set("places", places.inline());
        }
    }
}
