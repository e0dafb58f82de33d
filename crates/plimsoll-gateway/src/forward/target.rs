//! The path that a server sees.

use plimsoll_server::Request;
use plimsoll_wire::http::below;

use super::ForwardPlan;

/// Path and query as they were sent, behind the base and without the stripped prefix; `None` if the path does not
/// begin with that prefix, which a route prevents.
pub(super) fn target(plan: &ForwardPlan, request: &Request<'_>) -> Option<String> {
    if request.path == "*" {
        return Some("*".to_owned());
    }
    let path = match &plan.strip {
        Some(prefix) => below(request.path, prefix)?,
        None => request.path,
    };
    let query = request.query.map_or(0, |query| query.len() + 1);
    let mut target = String::with_capacity(plan.base.len() + path.len() + query + 1);
    target.push_str(&plan.base);
    if !path.starts_with('/') {
        target.push('/');
    }
    target.push_str(path);
    if let Some(query) = request.query {
        target.push('?');
        target.push_str(query);
    }
    Some(target)
}
