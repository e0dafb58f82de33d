//! The path that a server sees.

use std::borrow::Cow;

use plimsoll_server::OwnedRequest;
use plimsoll_wire::http::{NormalPath, below};
use regex::Regex;

use super::ForwardPlan;

/// A change of paths by a regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Rewrite {
    pub(crate) from: Regex,
    /// With `$1` or `${name}` for groups. A query in it comes before that of the request.
    pub(crate) to: String,
}

/// Path and query as they were sent, rewritten, behind the base and without the stripped prefix.
///
/// `None` if the path does not begin with that prefix, which a route prevents, or if what a rewrite yields is not a path.
pub(super) fn target<'a>(plan: &ForwardPlan, request: &'a OwnedRequest) -> Option<Cow<'a, str>> {
    let sent = request.path_and_query();
    let is_changed = !plan.base.is_empty() || plan.strip.is_some() || !plan.rewrites.is_empty();
    if !is_changed && sent.starts_with('/') {
        return Some(Cow::Borrowed(sent));
    }
    let request = request.request();
    if request.path == "*" {
        return Some(Cow::Borrowed("*"));
    }
    let path = match &plan.strip {
        Some(prefix) => below(request.path, prefix)?,
        None => request.path,
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path = match rewritten(&plan.rewrites, &format!("{slash}{path}")) {
        Some(rewritten) => Cow::Owned(rewritten),
        None if slash.is_empty() => Cow::Borrowed(path),
        None => Cow::Owned(format!("/{path}")),
    };
    if !plan.rewrites.is_empty() && !is_path(&path) {
        return None;
    }
    let query = request.query.map_or(0, |query| query.len() + 1);
    let mut target = String::with_capacity(plan.base.len() + path.len() + query);
    target.push_str(&plan.base);
    target.push_str(&path);
    if let Some(query) = request.query {
        target.push(if path.contains('?') { '&' } else { '?' });
        target.push_str(query);
    }
    Some(Cow::Owned(target))
}

/// Whether what a rewrite yields may be sent: a path with one meaning, and perhaps a query.
fn is_path(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_text = |text: &str| text.bytes().all(|it| it.is_ascii_graphic() && it != b'#');
    is_text(path) && is_text(query) && NormalPath::parse(path).is_ok()
}

/// The path by the first rule that matches.
fn rewritten(rewrites: &[Rewrite], path: &str) -> Option<String> {
    let mut rewrites = rewrites.iter();
    rewrites.find_map(|Rewrite { from, to }| {
        let groups = from.captures(path)?;
        let whole = groups.get(0)?;
        let mut rewritten = path.get(..whole.start())?.to_owned();
        groups.expand(to, &mut rewritten);
        rewritten.push_str(path.get(whole.end()..)?);
        Some(rewritten)
    })
}
