//! `proxy_pass` with a variable, whose values name the servers.

use plimsoll_server::Moment;

use super::maps;
use super::scope::Scope;
use super::upstreams::{Upstreams, is_server};

/// The servers that a variable may name.
pub(super) struct Chosen {
    /// The text with a place that names one of them.
    pub(super) to: String,
    /// Upstreams of the file, or servers.
    pub(super) servers: Vec<String>,
    /// The variable has their whole URLs.
    pub(super) are_urls: bool,
}

/// What `http://$variable` may lead to, if a map gives the variable values that are all known: the names of upstreams, or servers; and
/// `$variable` alone if they are URLs of servers.
///
/// - `scheme`: what stands before the variable.
pub(super) fn chosen(
    authority: &str,
    scheme: Option<&str>,
    scope: &Scope<'_>,
    upstreams: &Upstreams,
) -> Option<Chosen> {
    let map = maps::defining(authority, scope)?;
    let text = maps::translated(map, scope, Moment::Request, 1).ok()?;
    let mut servers = text.values?;
    servers.retain(|it| !it.is_empty());
    servers.sort();
    servers.dedup();
    let place = format!("{{map:{}}}", authority.trim_start_matches('$'));
    let Some(scheme) = scheme else {
        let of_url = |url: &String| {
            // Servers of `https` have keys of their own, which an upstream has.
            let server = url.strip_prefix("http://")?;
            let is_known =
                is_server(server) && !server.starts_with("unix:") && !upstreams.has(server);
            is_known.then(|| server.to_owned())
        };
        let servers: Option<Vec<String>> = servers.iter().map(of_url).collect();
        let servers = servers.filter(|it| !it.is_empty())?;
        return Some(Chosen {
            to: place,
            servers,
            are_urls: true,
        });
    };
    let are_upstreams = !servers.is_empty() && servers.iter().all(|it| upstreams.has(it));
    let are_servers = !servers.is_empty()
        && servers
            .iter()
            .all(|it| !upstreams.has(it) && is_server(it) && !it.starts_with("unix:"));
    let to = if are_upstreams {
        place
    } else if are_servers {
        format!("{scheme}://{place}")
    } else {
        return None;
    };
    Some(Chosen {
        to,
        servers,
        are_urls: false,
    })
}
