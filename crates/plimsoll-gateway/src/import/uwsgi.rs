//! `uwsgi_pass` and its parameters.

use plimsoll_model::document::toml_string;

use super::Notes;
use super::application::{Application, Usual};
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;

/// Parameters that every request has, with the values that mean the same.
const USUAL: Usual = &[("PATH_INFO", &["$document_uri", "$uri"])];

/// The action `proxy` of a route to an application behind uwsgi.
pub(super) fn uwsgi(
    directive: &Directive,
    server: &Directive,
    scope: &Scope<'_>,
    route: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let target = directive.argument(0);
    let application = Application {
        protocol: "uwsgi",
        directive,
        target: target.strip_prefix("uwsgi://").unwrap_or(target),
        server,
        scope,
    };
    if !application.is_known(upstreams, route, notes) {
        return;
    }
    let mut root = None;
    let mut parameters = application.parameters(USUAL, notes, |given, notes| {
        let is_root = ["$document_root", "$realpath_root"].contains(&given.argument(1));
        if is_root {
            root = document_root(given, scope, notes).or(root.take());
        }
        is_root
    });
    if let Some((name, root)) = root {
        parameters.set(&name, toml_string(&root));
    }
    let mut table = Keys::default();
    if !parameters.is_empty() {
        table.set("parameters", parameters.inline());
    }
    for (name, key) in [
        ("uwsgi_modifier1", "modifier1"),
        ("uwsgi_modifier2", "modifier2"),
    ] {
        let Some(given) = scope.last(name) else {
            continue;
        };
        match given.argument(0).parse::<u8>() {
            Ok(number) => table.set(key, number.to_string()),
            Err(_) => notes.add(given, "left out: it is no number from 0 to 255"),
        }
    }
    application.forward(&table, route, upstreams, notes);
}

/// A parameter with the folder of the location, which no application needs where there is none.
fn document_root(
    given: &Directive,
    scope: &Scope<'_>,
    notes: &mut Notes,
) -> Option<(String, String)> {
    let root = scope.last("root")?.argument(0);
    let name = given.argument(0);
    if root.contains('$') {
        notes.add(
            given,
            format!("left out: `{root}` depends on the request, so `{name}` is not sent"),
        );
        return None;
    }
    Some((name.to_owned(), root.to_owned()))
}
