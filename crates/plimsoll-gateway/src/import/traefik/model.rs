//! What files and labels say: routers, services, middlewares, entry points.

use std::rc::Rc;

use plimsoll_formats::yaml::Node;

use super::super::nginx::Directive;

/// All of it, in one form.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) file: Rc<str>,
    /// The provider, whose names have `@file` or `@docker` behind them elsewhere.
    pub(super) providers: &'static [&'static str],
    /// The dynamic configuration, with `http` and `tls`.
    pub(super) dynamic: Node,
    /// The static one, with `entryPoints` and `certificatesResolvers`.
    pub(super) fixed: Node,
}

/// Why something has no counterpart; ends notes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untranslated {
    #[error("`{0}` is no middleware that has a counterpart")]
    Middleware(String),
    #[error("`{0}` has no counterpart")]
    Option(String),
    #[error("`{0}` has no value that has a counterpart")]
    Value(&'static str),
    #[error("`{0}` is no expression that has a counterpart")]
    Expression(String),
    #[error("`{0}` is no URL of a server")]
    Server(String),
    #[error("`{0}` is no network")]
    Network(String),
    /// A key of routes.
    #[error("a route has one `{0}`, and this is a second one")]
    Second(&'static str),
    #[error("paths cannot be changed in this way, or after what changes them before")]
    Paths,
    #[error("the service `{0}` is not in this file")]
    NoService(String),
    #[error("the service `{0}` has no server")]
    NoServer(String),
    #[error("the service `{0}` is one of Traefik itself")]
    Internal(String),
    #[error("the service `{0}` consists of services that do not go together here")]
    Nested(String),
}

impl Model {
    /// What a name with its provider or without stands for, and the name itself.
    ///
    /// - `kind`: `middlewares`, `services` or `serversTransports`.
    pub(super) fn find<'m>(&'m self, kind: &str, name: &'m str) -> Option<(&'m str, &'m Node)> {
        let own = match name.split_once('@') {
            None => name,
            Some((own, provider)) if self.providers.contains(&provider) => own,
            Some(_) => return None,
        };
        let all = self.dynamic.get("http").get(kind);
        let mut entries = all.entries().iter();
        let (_, node) = entries.find(|(known, _)| known.eq_ignore_ascii_case(own))?;
        Some((own, node))
    }

    /// A place for notes.
    pub(super) fn place(&self, node: &Node, name: &str) -> Directive {
        Directive::place(&self.file, node.line, name)
    }
}

/// Takes over what another node has, level by level. An empty map is something too: it switches on what it is for.
pub(super) fn merge(into: &mut Node, other: &Node) {
    if into.is_there() && !other.entries().is_empty() {
        for (key, value) in other.entries() {
            merge(into.entry(key, value.line), value);
        }
    } else if other.is_there() {
        into.clone_from(other);
    }
}
