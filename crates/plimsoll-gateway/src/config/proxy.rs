//! `proxy = …` in a `[[route]]`.

use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use plimsoll_client::Endpoint;
use plimsoll_server::config::{Mounted, Table, Value, as_text};
use plimsoll_server::{Action, MakeAction, WorkerContext};

use super::{Upstreams, upstream};
use crate::forward::{Forward, ForwardPlan, Forwarded, HostPolicy};
use crate::upstream::{ServerPlan, Upstream, UpstreamOptions, UpstreamPlan};

/// A name or a URL, or a table with `to` and how requests are changed.
pub(super) fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let (upstream, plan) = if value.is_table() {
        of_table(value.table()?, mounted)?
    } else {
        let target = as_text(&value)?;
        let plan = ForwardPlan {
            base: base_of(target),
            ..ForwardPlan::default()
        };
        (upstream_of(&value, target, mounted, None)?, plan)
    };
    let plan = Arc::new(plan);
    Some(Arc::new(move |context: &WorkerContext| {
        let upstream = Upstream::of_worker(&upstream, context);
        Rc::new(Forward::new(Arc::clone(&plan), upstream)) as Rc<dyn Action>
    }))
}

fn of_table(
    mut table: Table<'_>,
    mounted: &Mounted<'_>,
) -> Option<(Arc<UpstreamPlan>, ForwardPlan)> {
    let Some(to) = table.take("to") else {
        table.missing("to", "the name of an upstream or a URL");
        return None;
    };
    let target = as_text(&to)?.to_owned();
    let upstream = upstream_of(&to, &target, mounted, Some(&mut table));
    let mut is_whole = true;
    let mut plan = ForwardPlan {
        base: base_of(&target),
        ..ForwardPlan::default()
    };
    if table.boolean("strip") == Some(true) {
        plan.strip = Some(mounted.prefix.trim_end_matches('/').to_owned());
    }
    if let Some(value) = table.take("path") {
        let base = as_text(&value).and_then(|path| {
            let is_path = path.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic());
            if is_path && !path.contains(['?', '#']) {
                Some(path.trim_end_matches('/').to_owned())
            } else {
                value.wrong("begins with a slash, without a query")
            }
        });
        is_whole &= base.is_some();
        plan.base = base.unwrap_or_default();
    }
    if let Some(value) = table.take("host") {
        let host = as_text(&value).and_then(|text| match text {
            "client" => Some(HostPolicy::Client),
            "server" => Some(HostPolicy::Server),
            name => match HeaderValue::from_str(name) {
                Ok(_) if !name.is_empty() && !name.contains(' ') => {
                    Some(HostPolicy::Name(name.to_owned()))
                }
                _ => value.wrong("is \"client\", \"server\" or a host"),
            },
        });
        is_whole &= host.is_some();
        plan.host = host.unwrap_or_default();
    }
    if let Some(value) = table.take("forwarded") {
        let forwarded = match as_text(&value) {
            Some("x") => Some(Forwarded::X),
            Some("rfc7239") => Some(Forwarded::Rfc7239),
            Some("both") => Some(Forwarded::Both),
            Some("none") => Some(Forwarded::None),
            Some(_) => value.wrong("is \"x\", \"rfc7239\", \"both\" or \"none\""),
            None => None,
        };
        is_whole &= forwarded.is_some();
        plan.forwarded = forwarded.unwrap_or_default();
    }
    if let Some(value) = table.take("trust") {
        let networks = value.texts_with(|text| {
            let parsed = text.parse::<IpNet>();
            parsed
                .err()
                .map(|_| format!("`{text}` is not a network such as 10.0.0.0/8"))
        });
        is_whole &= networks.is_some();
        let networks = networks.unwrap_or_default();
        plan.trusted = networks.iter().filter_map(|it| it.parse().ok()).collect();
    }
    if let Some(mut headers) = table.table("headers") {
        for (name, value) in headers.rest() {
            match field(&name, &value) {
                Some((name, Some(value))) => plan.set.push((name, value)),
                Some((name, None)) => plan.removed.push(name),
                None => is_whole = false,
            }
        }
    }
    table.finish();
    let upstream = upstream?;
    is_whole.then_some((upstream, plan))
}

/// A field to set, or with `false` to remove.
fn field(name: &str, value: &Value<'_>) -> Option<(HeaderName, Option<HeaderValue>)> {
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = value.check(header.map_err(|_| format!("`{name}` is not a field name")))?;
    if plimsoll_wire::http::FieldClass::of(header.as_str().as_bytes()).is_framing()
        || ["connection", "host"].contains(&header.as_str())
    {
        return value.wrong("is set by the gateway; `host` of the route sets the host");
    }
    if value.is_false() {
        return Some((header, None));
    }
    let text = as_text(value)?;
    let text = HeaderValue::from_str(text).map_err(|_| "contains a control character");
    Some((header, Some(value.check(text)?)))
}

/// The path of a URL, which comes before those of requests.
fn base_of(target: &str) -> String {
    let endpoint = is_url(target)
        .then(|| Endpoint::parse(target).ok())
        .flatten();
    endpoint.map_or(String::new(), |endpoint| {
        endpoint.path_and_query().trim_end_matches('/').to_owned()
    })
}

fn is_url(target: &str) -> bool {
    target.contains("://")
}

/// The upstream of that name, or one of its own for a URL.
///
/// - `table`: where the settings of that one are, if anywhere.
fn upstream_of(
    value: &Value<'_>,
    target: &str,
    mounted: &Mounted<'_>,
    table: Option<&mut Table<'_>>,
) -> Option<Arc<UpstreamPlan>> {
    if !is_url(target) {
        let upstreams = mounted.section::<Upstreams>("upstream").unwrap_or_default();
        if let Some(found) = upstreams.0.get(target) {
            return found.clone();
        }
        let known: Vec<_> = upstreams.0.keys().map(String::as_str).collect();
        let hint = if known.is_empty() {
            format!("define it by [upstream.{target}], or give a URL with http://")
        } else {
            format!("there are {}", known.join(", "))
        };
        return value.wrong_with(format!("there is no upstream `{target}`"), Some(hint));
    }
    let endpoint = value.check(Endpoint::parse(target))?;
    if endpoint.path_and_query().contains('?') {
        return value.wrong("has a query; that of each request is forwarded");
    }
    if endpoint.credentials().is_some() {
        return value.wrong("has a user; set `authorization` in `headers`");
    }
    let options = match table {
        Some(table) => upstream::options(table, mounted.directory)?,
        None => UpstreamOptions::default(),
    };
    let name = format!("{}://{}", endpoint.scheme(), endpoint.authority());
    let server = ServerPlan {
        endpoint,
        weight: 1,
    };
    let plan = value.check(UpstreamPlan::new(&name, vec![server], options))?;
    Some(Arc::new(plan))
}
