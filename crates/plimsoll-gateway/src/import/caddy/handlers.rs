//! The directives of a site as routes, in Caddy's order.
//!
//! Caddy sorts directives, and of one kind those with longer paths first; the first handler whose matcher fits responds. Routes here
//! are chosen by their paths, the most specific first, so what Caddy would never reach is left out, and paths become expressions,
//! which are tried in their order, where that is not enough.

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::actions::{Action, Passed, Response};
use super::layers::{Layer, layer};
use super::matcher::{Matcher, Named, Overlap, PathMatch};
use super::proxies;
use super::responses::{
    answer, error, files, files_keys, not_translated, redirect, response, stripping, without_prefix,
};
use super::untranslated::Untranslated;

/// What directives of a block have in common.
pub(super) struct Scope<'s> {
    pub(super) upstreams: &'s mut Vec<UpstreamText>,
    /// The folder of files.
    pub(super) root: Option<String>,
    /// The prefix that `handle_path` takes off, without a slash at its end.
    pub(super) stripped: Option<String>,
    pub(super) notes: &'s mut Notes,
}
/// All that a block comes to.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) actions: Vec<Action>,
    /// Paths that an action is not for which takes all others, and its directive.
    excluded: Vec<(PathMatch, Directive)>,
}
/// Handlers, in the order in which Caddy tries them.
pub(super) const HANDLERS: [&str; 12] = [
    "redir",
    "handle",
    "handle_path",
    "route",
    "abort",
    "error",
    "respond",
    "metrics",
    "reverse_proxy",
    "php_fastcgi",
    "file_server",
    "acme_server",
];

/// The actions of a site, `handle` or `route`.
pub(super) fn routes_of_block(
    block: &Directive,
    named: &Named<'_>,
    scope: &mut Scope<'_>,
) -> Actions {
    let named = named.within(&block.block);
    let outer_root = scope.root.clone();
    for directive in block.block.iter().filter(|it| it.name == "root") {
        match directive.arguments.as_slice() {
            [root] => scope.root = Some(root.clone()),
            [all, root] if all == "*" => scope.root = Some(root.clone()),
            _ => scope.notes.add(
                directive,
                "left out: folders for some paths are those of `handle` here",
            ),
        }
    }
    let mut layers = Vec::new();
    for directive in &block.block {
        layers.extend(layer(directive, &named, scope));
    }
    let mut handlers: Vec<(usize, &Directive)> = Vec::new();
    for directive in &block.block {
        let rank = HANDLERS.iter().position(|it| *it == directive.name);
        match rank {
            Some(_) if block.name == "route" => handlers.push((0, directive)),
            // Both kinds of `handle` are one.
            Some(rank) => handlers.push((if rank == 2 { 1 } else { rank }, directive)),
            None => {}
        }
    }
    if block.name != "route" {
        let length = |directive: &Directive| match named.of(directive) {
            Ok((matcher, _)) => matcher
                .paths
                .iter()
                .map(PathMatch::length)
                .max()
                .unwrap_or(0),
            Err(_) => 0,
        };
        handlers.sort_by_key(|(rank, directive)| (*rank, usize::MAX - length(directive)));
    }
    let mut made = Actions::default();
    for (_, directive) in handlers {
        let (matcher, arguments) = match named.of(directive) {
            Ok(matcher) => matcher,
            Err(reason) => {
                let message = format!("left out: {reason}");
                scope.notes.add(directive, message);
                continue;
            }
        };
        made.add(
            directive,
            matcher,
            arguments,
            &named,
            block,
            scope,
            &mut layers,
        );
    }
    made.close_excluded();
    for layer in &layers {
        made.pass(layer, scope);
    }
    scope.root = outer_root;
    made
}
impl Actions {
    #[expect(clippy::too_many_arguments, reason = "what a directive is read by")]
    fn add(
        &mut self,
        directive: &Directive,
        matcher: Matcher,
        arguments: &[String],
        named: &Named<'_>,
        block: &Directive,
        scope: &mut Scope<'_>,
        layers: &mut Vec<Layer>,
    ) {
        match directive.name.as_str() {
            "handle" | "route" => {
                let inner = routes_of_block(directive, named, scope);
                self.extend(inner, &matcher, None, directive, scope);
            }
            "handle_path" => {
                let Some((prefix, matcher)) = stripping(&matcher) else {
                    let message = "responds with 501: what it takes off is no beginning of a path";
                    scope.notes.add(directive, message);
                    self.push(matcher, not_translated(), directive, scope);
                    return;
                };
                let whole = format!("{}{prefix}", scope.stripped.as_deref().unwrap_or(""));
                let outer = scope.stripped.replace(whole);
                let inner = routes_of_block(directive, named, scope);
                scope.stripped = outer;
                self.extend(inner, &matcher, Some(&prefix), directive, scope);
            }
            "abort" | "error" | "respond" if matcher.is_clients_alone() => {
                // Those who are refused here are kept out of everything else.
                if let Some(clients) = &matcher.clients {
                    let mut passed = Passed::default();
                    passed.keys.set("addresses", clients.addresses(true));
                    layers.push(Layer {
                        matcher: Matcher::default(),
                        passed,
                        directive: directive.clone(),
                        is_guard: true,
                    });
                }
            }
            _ => {
                let made = match directive.name.as_str() {
                    "redir" => redirect(arguments, &matcher).map(Response::Other),
                    "respond" => Ok(Response::Other(response(
                        directive, arguments, &matcher, scope,
                    ))),
                    "error" => Ok(Response::Other(error(arguments))),
                    "abort" => {
                        scope.notes.add(
                            directive,
                            "responds with 400, where Caddy closes the connection",
                        );
                        Ok(Response::Other(answer("400", "")))
                    }
                    "reverse_proxy" => proxies::reverse_proxy(directive, arguments, block, scope),
                    "php_fastcgi" => {
                        self.php(directive, arguments, &matcher, block, scope);
                        return;
                    }
                    // The files beside scripts are those of `php_fastcgi`.
                    "file_server"
                        if matcher.paths.is_empty()
                            && block.block.iter().any(|it| it.name == "php_fastcgi") =>
                    {
                        return;
                    }
                    "file_server" => files(directive, &matcher, block, scope),
                    _ => Err(Untranslated::Directive),
                };
                match made {
                    Ok(response) => self.push(matcher, response, directive, scope),
                    Err(reason) => {
                        scope
                            .notes
                            .add(directive, format!("responds with 501: {reason}"));
                        self.push(matcher, not_translated(), directive, scope);
                    }
                }
            }
        }
    }

    /// An action behind those that are there; left out if they take all of its requests.
    fn push(
        &mut self,
        mut matcher: Matcher,
        response: Response,
        directive: &Directive,
        scope: &mut Scope<'_>,
    ) {
        let is_taken = |action: &Action| {
            let is_excluded = matcher.paths.iter().all(|path| {
                let mut excluded = self.excluded.iter();
                excluded.any(|(it, _)| it.covers(path))
            });
            let is_other =
                !matcher.paths.is_empty() && action.matcher.paths.is_empty() && is_excluded;
            action.name.is_none() && action.matcher.covers(&matcher) && !is_other
        };
        if self.actions.iter().any(is_taken) {
            scope.notes.add(
                directive,
                "left out: what stands before it takes all of its requests",
            );
            return;
        }
        // What it is not for is another one's, or nobody's.
        let excluded = std::mem::take(&mut matcher.excluded);
        for path in excluded {
            self.excluded.push((path, directive.clone()));
        }
        let mut passed = Passed::default();
        if let Some(clients) = matcher.clients.take() {
            passed.keys.set("addresses", clients.addresses(false));
            scope.notes.add(
                directive,
                "clients of other addresses get a 403; they are not led on to what follows",
            );
        }
        self.actions.push(Action {
            matcher,
            response,
            passed,
            directive: directive.clone(),
            name: None,
        });
    }

    /// The actions of a block within.
    fn extend(
        &mut self,
        inner: Self,
        outer: &Matcher,
        stripped: Option<&str>,
        directive: &Directive,
        scope: &mut Scope<'_>,
    ) {
        self.excluded.extend(inner.excluded);
        for action in inner.actions {
            if action.name.is_some() {
                self.actions.push(action);
                continue;
            }
            let Some(both) = outer.and(&action.matcher, stripped) else {
                scope.notes.add(&action.directive, format!("left out: its conditions and those of `{}` around it are no route together", directive.name));
                continue;
            };
            let before = self.actions.len();
            self.push(both, action.response, &action.directive, scope);
            if let Some(pushed) = self.actions.get_mut(before) {
                pushed.passed.join(&action.passed);
            }
        }
    }

    /// Scripts of PHP, the files beside them, and the front controller for everything else.
    fn php(
        &mut self,
        directive: &Directive,
        arguments: &[String],
        matcher: &Matcher,
        block: &Directive,
        scope: &mut Scope<'_>,
    ) {
        let made = proxies::php(directive, arguments, scope);
        let (scripts, front) = match made {
            Ok(made) => made,
            Err(reason) => {
                let message = format!("responds with 501: {reason}");
                scope.notes.add(directive, message);
                self.push(matcher.clone(), not_translated(), directive, scope);
                return;
            }
        };
        let name = format!("index.php ({}:{})", directive.file, directive.line);
        let within = Matcher {
            paths: vec![PathMatch::Regex(".*\\.php(/.*)?".to_owned())],
            ..Matcher::default()
        };
        if let Overlap::Both(of_scripts) = matcher.overlap(&within) {
            self.push(of_scripts, scripts, directive, scope);
        }
        let files = block.block.iter().find(|it| it.name == "file_server");
        let own = match files.map(|it| files_keys(it, scope)) {
            Some(Ok(keys)) => {
                self.actions.push(Action {
                    matcher: Matcher::default(),
                    response: front,
                    passed: Passed::default(),
                    directive: directive.clone(),
                    name: Some(name.clone()),
                });
                Response::Files(keys, Some(name))
            }
            _ => front,
        };
        self.push(matcher.clone(), own, directive, scope);
    }

    /// Responds with 404 where an action is not for some paths and no other one is.
    fn close_excluded(&mut self) {
        for (path, directive) in std::mem::take(&mut self.excluded) {
            let mut paths = self.actions.iter().flat_map(|it| &it.matcher.paths);
            if paths.any(|it| it.covers(&path)) {
                continue;
            }
            self.actions.push(Action {
                matcher: Matcher {
                    paths: vec![path],
                    ..Matcher::default()
                },
                response: Response::Other(answer("404", "")),
                passed: Passed::default(),
                directive,
                name: None,
            });
        }
    }

    /// Adds what requests of a matcher pass to the actions that are for them.
    ///
    /// What keeps clients out is rather for too many requests than for too few.
    fn pass(&mut self, layer: &Layer, scope: &mut Scope<'_>) {
        let Layer {
            passed,
            directive,
            is_guard,
            ..
        } = layer;
        let mut matcher = layer.matcher.clone();
        if *is_guard && (!matcher.conditions.is_empty() || matcher.clients.is_some()) {
            scope.notes.add(
                directive,
                "is for all requests of its paths: its other conditions are left out",
            );
            matcher.conditions = Keys::default();
            matcher.clients = None;
        }
        let mut has_passed = false;
        let mut narrower = Vec::new();
        // What has a handler of its own is that one's.
        let handled: Vec<PathMatch> = self
            .actions
            .iter()
            .flat_map(|it| it.matcher.paths.clone())
            .collect();
        let is_free = |path: &PathMatch| !handled.iter().any(|it| it.covers(path));
        for action in &mut self.actions {
            let is_of_all = action.name.is_some() && matcher.paths.is_empty();
            if !matcher.excluded.is_empty() && matcher.paths.is_empty() {
                has_passed = true;
                let within = |path: &PathMatch| matcher.excluded.iter().any(|it| it.covers(path));
                let paths = &action.matcher.paths;
                if !paths.is_empty() && paths.iter().all(within) {
                    continue;
                }
                let mut without = Matcher {
                    paths: matcher.excluded.clone(),
                    ..Matcher::default()
                };
                without.paths.retain(is_free);
                if action.name.is_none()
                    && !without.paths.is_empty()
                    && !*is_guard
                    && let Overlap::Both(both) = action.matcher.overlap(&without)
                {
                    let mut outside = action.clone();
                    outside.matcher = both;
                    narrower.push(outside);
                }
                action.passed.join(passed);
                continue;
            }
            if is_of_all || matcher.covers(&action.matcher) {
                has_passed = true;
                action.passed.join(passed);
                continue;
            }
            if action.name.is_some() {
                continue;
            }
            match action.matcher.overlap(&matcher) {
                Overlap::Both(both) if matcher.conditions.is_empty() => {
                    has_passed = true;
                    let mut within = action.clone();
                    within.matcher = both;
                    within.passed.join(passed);
                    narrower.push(within);
                }
                Overlap::Both(_) | Overlap::Unknown if *is_guard => {
                    has_passed = true;
                    action.passed.join(passed);
                    let message = format!("is for all requests of `{}` too", action.directive.name);
                    scope.notes.add(directive, message);
                }
                Overlap::None | Overlap::Both(_) | Overlap::Unknown => {}
            }
        }
        // Before the wider ones, if the order decides.
        self.actions.splice(0..0, narrower);
        if !has_passed && !self.actions.is_empty() {
            let message = "left out: it is for requests that no handler of the site is for";
            scope.notes.add(directive, message);
        }
    }

    /// Makes expressions of all paths where the order of actions would not be that of their paths.
    pub(super) fn conflicts_in_order(&mut self) {
        let open: Vec<&Action> = self.actions.iter().filter(|it| it.name.is_none()).collect();
        let is_wrong = open.iter().enumerate().any(|(at, one)| {
            let later = open.iter().skip(at + 1);
            let mut later = later
                .filter(|other| !one.matcher.conditions.is_empty() && other.matcher != one.matcher);
            later.any(|other| {
                let paths = &one.matcher.paths;
                let mut others = other.matcher.paths.iter();
                paths.is_empty() && !other.matcher.paths.is_empty()
                    || others.any(|path| paths.iter().any(|it| it != path && it.covers(path)))
            })
        });
        // Expressions come behind all other paths.
        let has_regex = open.iter().any(|it| {
            it.matcher
                .paths
                .iter()
                .any(|it| matches!(it, PathMatch::Regex(_)))
        });
        let has_other = open.iter().any(|it| {
            it.matcher
                .paths
                .iter()
                .any(|it| matches!(it, PathMatch::Prefix(_)))
        });
        if !(is_wrong || has_regex && has_other) {
            return;
        }
        for action in self.actions.iter_mut().filter(|it| it.name.is_none()) {
            let paths = &mut action.matcher.paths;
            if paths.is_empty() {
                paths.push(PathMatch::Regex("/.*".to_owned()));
            }
            // A prefix that is taken off is named by itself.
            if let (
                Some(PathMatch::Prefix(prefix) | PathMatch::Exact(prefix)),
                Response::Proxy(proxy),
            ) = (paths.first(), &mut action.response)
                && proxy.get("strip").is_some()
            {
                proxy.remove("strip");
                proxy.set("rewrite", without_prefix(prefix));
            }
            if let (Some(PathMatch::Prefix(prefix)), Response::Files(files, _)) =
                (paths.first(), &mut action.response)
            {
                files.text("strip", prefix.trim_end_matches('/'));
            }
            for path in paths.iter_mut() {
                *path = path.to_regex();
            }
        }
    }
}
impl Matcher {
    fn is_clients_alone(&self) -> bool {
        self.clients.is_some() && self.paths.is_empty() && self.conditions.is_empty()
    }
}
