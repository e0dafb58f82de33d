//! `mirror`: requests that go to another server too.

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;

/// The key `mirror`, for a location that forwards the same path to another server.
pub(super) fn mirrored(
    directive: &Directive,
    scope: &Scope<'_>,
    upstreams: &Upstreams,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let path = directive.argument(0);
    let locations = scope.server().iter().filter(|it| it.name == "location");
    let mut named = locations.filter(|it| it.arguments.last().is_some_and(|it| it == path));
    let pass = named.next().and_then(|it| it.last("proxy_pass"));
    let target = pass.and_then(|it| it.argument(0).strip_suffix("$request_uri"));
    let target = target.filter(|it| !it.contains('$'));
    let authority = target.and_then(|it| Some(it.split_once("://")?.1));
    match target.zip(authority) {
        Some((_, name)) if upstreams.has(name) => keys.text("mirror", name),
        Some((url, _)) => keys.text("mirror", url),
        None => notes.add(
            directive,
            format!(
                "left out: `{path}` does not forward the URL as it was requested to one server"
            ),
        ),
    }
}
