//! `split_clients` and `mirror`: requests that go to other servers too.

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;

/// The servers that requests are distributed to by shares.
pub(super) struct Split {
    /// The one for what remains.
    pub(super) main: String,
    pub(super) others: Vec<String>,
    /// Percentages of the others.
    pub(super) shares: Keys,
}

/// The servers of `http://$variable`, if a `split_clients` sets the variable.
pub(super) fn split(url: &str, scope: &Scope<'_>, notes: &mut Notes) -> Option<Split> {
    let (scheme, variable) = url.split_once("://")?;
    if !variable.starts_with('$') {
        return None;
    }
    let blocks = scope.outermost().all("split_clients");
    let block = blocks.into_iter().find(|it| it.argument(1) == variable)?;
    let mut split = Split {
        main: String::new(),
        others: Vec::new(),
        shares: Keys::default(),
    };
    for part in &block.block {
        let name = part.argument(0);
        if name.is_empty() || name.contains('$') {
            return None;
        }
        if part.name == "*" {
            name.clone_into(&mut split.main);
            continue;
        }
        let percent: u32 = part.name.strip_suffix('%')?.parse().ok()?;
        split.shares.set(name, percent.to_string());
        split.others.push(name.to_owned());
    }
    // Without the rest, or with servers that are no upstreams of the file, it is left to its own note.
    let is_upstream = |it: &str| {
        scope
            .outermost()
            .all("upstream")
            .iter()
            .any(|block| block.argument(0) == it)
    };
    let all = std::iter::once(&split.main).chain(&split.others);
    if scheme != "http" || !all.into_iter().all(|it| is_upstream(it)) {
        return None;
    }
    notes.add(
        block,
        "each request is distributed by itself: `split_cookie` keeps a client at one server",
    );
    Some(split)
}

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
