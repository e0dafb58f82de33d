//! `proxy = …` in a `[[route]]`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use plimsoll_client::forward::Speaks;
use plimsoll_server::config::template;
use plimsoll_server::config::{GuardContext, Mounted, Table, Value, as_text, networks};
use plimsoll_server::{Action, MakeAction, Moment, Template, WorkerContext};

use super::traces::Traces;
use super::{Upstreams, auth, cache, fastcgi, rules, servers, upstream, uwsgi};
use crate::cache::{CachePlan, Cached};
use crate::forward::{
    self, ApplicationPlan, Forward, ForwardPlan, Forwarded, HostPolicy, RouteFigures,
    RouteTimeouts, UwsgiPlan,
};
use crate::traces::{Exporter, TracesPlan};
use crate::upstream::{
    Discovery, Durations, ServerPlan, Transport, Upstream, UpstreamOptions, UpstreamPlan,
};

/// A name or a URL, or a table with `to` and how requests are changed.
pub(super) fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let proxy = if value.is_table() {
        // A cache that was filled by other rules would send what they allow no more.
        let text = value.to_toml().to_string();
        of_table(value.table()?, mounted, &text)?
    } else {
        let target = as_text(&value)?;
        let main = upstream_of(&value, target, &mounted.as_guard(), None)?;
        let application = match main.speaks() {
            Speaks::FastCgi => {
                return value.wrong_with(NO_SCRIPTS, Some(scripts_hint(target)));
            }
            Speaks::Uwsgi => Some(ApplicationPlan::Uwsgi(UwsgiPlan::default())),
            _ => None,
        };
        let plan = ForwardPlan {
            base: base_of(target),
            application,
            ..ForwardPlan::default()
        };
        ProxyPlan::new(main, plan)
    };
    for name in proxy.forward.own_fields() {
        mounted.owns(name);
    }
    let traces = mounted.section::<Traces>("traces");
    let proxy = Arc::new(ProxyPlan {
        traces: traces.and_then(|it| it.0.clone()),
        ..proxy
    });
    let name = mounted.name.to_owned();
    Some(Arc::new(move |context: &WorkerContext| {
        let figures = context.metrics().figures::<RouteFigures>();
        let durations = figures.add_route(&name, &proxy.forward, proxy.targets());
        let upstreams = proxy.upstreams(context, durations);
        let forward = Rc::new(Forward::new(Arc::clone(&proxy.forward), upstreams));
        match &proxy.cache {
            None => forward as Rc<dyn Action>,
            Some(plan) => Rc::new(Cached::new(plan.clone(), forward)),
        }
    }))
}

/// A route's `proxy`, of which each worker makes its own.
struct ProxyPlan {
    forward: Arc<ForwardPlan>,
    main: Arc<UpstreamPlan>,
    /// What names the upstream of a request, and those that it may name.
    named: Option<(Template, BTreeMap<String, Arc<UpstreamPlan>>)>,
    /// Percentages of requests that go elsewhere.
    others: Vec<(u32, Arc<UpstreamPlan>)>,
    split_cookie: Option<String>,
    authorize: Option<Arc<UpstreamPlan>>,
    mirror: Option<(u32, Arc<UpstreamPlan>)>,
    cache: Option<CachePlan>,
    traces: Option<Arc<TracesPlan>>,
}

impl ProxyPlan {
    fn new(main: Arc<UpstreamPlan>, forward: ForwardPlan) -> Self {
        Self {
            forward: Arc::new(forward),
            main,
            named: None,
            others: Vec::new(),
            split_cookie: None,
            authorize: None,
            mirror: None,
            cache: None,
            traces: None,
        }
    }

    /// Destination of requests, for display.
    fn targets(&self) -> Vec<String> {
        let others = self.others.iter();
        let others = others.map(|(share, it)| format!("{} ({share} %)", it.name));
        let mirror = self.mirror.iter();
        let mirror = mirror.map(|(share, it)| format!("copies to {} ({share} %)", it.name));
        let authorize = self.authorize.iter();
        let authorize = authorize.map(|it| format!("authorized by {}", it.name));
        let main = match &self.named {
            None => vec![self.main.name.clone()],
            Some((_, named)) => named.values().map(|it| it.name.clone()).collect(),
        };
        main.into_iter()
            .chain(others)
            .chain(mirror)
            .chain(authorize)
            .collect()
    }

    fn upstreams(&self, context: &WorkerContext, durations: Arc<Durations>) -> forward::Upstreams {
        let of_worker = |plan| Upstream::of_worker(plan, context);
        let others = self.others.iter();
        forward::Upstreams {
            drain: context.drain().clone(),
            durations,
            main: of_worker(&self.main),
            named: self.named.as_ref().map(|(template, upstreams)| {
                let upstreams = upstreams.iter();
                let upstreams =
                    upstreams.map(|(name, it)| (name.clone().into_bytes(), of_worker(it)));
                (template.clone(), upstreams.collect())
            }),
            others: others.map(|(share, it)| (*share, of_worker(it))).collect(),
            split_cookie: self.split_cookie.clone(),
            authorize: self
                .authorize
                .as_ref()
                .map(|it| (of_worker(it), context.worker())),
            exporter: self
                .traces
                .as_ref()
                .map(|plan| Exporter::of_worker(plan, context)),
            mirror: self
                .mirror
                .as_ref()
                .map(|(share, it)| (*share, of_worker(it))),
        }
    }
}

/// - `text`: the table as it is written.
fn of_table(mut table: Table<'_>, mounted: &Mounted<'_>, text: &str) -> Option<ProxyPlan> {
    let Some(to) = table.take_value("to") else {
        table.missing("to", "the name of an upstream or a URL");
        return None;
    };
    let target = as_text(&to)?.to_owned();
    let named = target.contains('{').then(|| named(&to, mounted));
    let main = match &named {
        None => upstream_of(&to, &target, &mounted.as_guard(), Some(&mut table)),
        Some(named) => {
            let mut upstreams = named.iter().flat_map(|(_, upstreams)| upstreams.values());
            upstreams.next().cloned()
        }
    };
    let mut plan = ForwardPlan {
        base: base_of(&target),
        ..ForwardPlan::default()
    };
    if !is_url(&target) {
        plan.timeouts = RouteTimeouts {
            response: table.duration("response_timeout"),
            idle: table.duration("idle_timeout"),
            total: table.duration("timeout"),
        };
    }
    let mut is_whole = request(&mut table, mounted, &mut plan);
    if let Some(value) = table.take_value("fastcgi") {
        let fastcgi = fastcgi::compile(value, mounted);
        is_whole &= fastcgi.is_some();
        plan.application = fastcgi.map(ApplicationPlan::FastCgi);
    }
    if let Some(value) = table.take_value("uwsgi") {
        let uwsgi = uwsgi::compile(value, mounted);
        is_whole &= uwsgi.is_some();
        if plan.application.is_some() {
            table.wrong("`fastcgi` and `uwsgi` do not go together", None);
            is_whole = false;
        }
        plan.application = uwsgi.map(ApplicationPlan::Uwsgi);
    }
    is_whole &= rules::compile(&mut table, mounted, &mut plan);
    let mut split = rules::split(&mut table, mounted);
    if named.is_some() && split.as_ref().is_some_and(|(others, _)| !others.is_empty()) {
        table.wrong(
            "`split` does not go with places in `to`",
            Some("give the map a value with shares of its own".to_owned()),
        );
        split = None;
    }
    let mirror = table
        .take_value("mirror")
        .map(|it| rules::mirror(it, mounted));
    let authorize = table.take_value("auth").map(|value| {
        let mut table = value.table()?;
        let authorize = auth::authorize(&mut table, &mounted.as_guard());
        table.finish();
        authorize
    });
    let cache = table
        .take_value("cache")
        .filter(|value| !value.is_false())
        .map(|value| {
            // The cache stands before both.
            if authorize.is_some() {
                let hint = "give `auth` to the route, where it stands before the cache";
                let message =
                    "responses would be sent from the cache without authorization by `auth`";
                return value.wrong_with(message, Some(hint.to_owned()));
            }
            if split.as_ref().is_some_and(|(others, _)| !others.is_empty()) {
                let hint = "split by routes with conditions, or cache in the servers";
                let message = "the cache would mix responses of the upstreams of `split`";
                return value.wrong_with(message, Some(hint.to_owned()));
            }
            let upstream = main.as_ref().map_or("", |it| it.identity());
            let identity = format!("{} {text} {upstream}", mounted.identity);
            Some(cache::compile(value.table_or_true()?, mounted, &identity))
        });
    let upstreams = named
        .iter()
        .flatten()
        .flat_map(|(_, upstreams)| upstreams.values());
    let upstreams = upstreams.chain(&main);
    let others = split.iter().flat_map(|(others, _)| others);
    let upstreams = upstreams.chain(others.map(|(_, it)| it));
    is_whole = is_whole && application(&mut table, &mut plan, upstreams, &target);
    table.finish();
    let cache = match cache {
        None => None,
        Some(cache) => Some(cache?),
    };
    let (others, split_cookie) = split?;
    let authorize = match authorize {
        None => None,
        Some(authorize) => {
            let (authorize, upstream) = authorize?;
            plan.authorize = Some(authorize);
            Some(upstream)
        }
    };
    let mirror = match mirror {
        None => None,
        Some(mirror) => Some(mirror?),
    };
    let main = main?;
    let named = match named {
        None => None,
        Some(named) => Some(named?),
    };
    is_whole.then(|| ProxyPlan {
        named,
        others,
        split_cookie,
        authorize,
        mirror,
        cache,
        ..ProxyPlan::new(main, plan)
    })
}

/// A text that names the upstream of a request, with those that it may name: all of the file, or the values of its map.
fn named(
    value: &Value<'_>,
    mounted: &Mounted<'_>,
) -> Option<(Template, BTreeMap<String, Arc<UpstreamPlan>>)> {
    let template = template(value, mounted.maps, Moment::Request)?;
    let names = template.constants().unwrap_or_else(|| {
        let upstreams = mounted.section::<Upstreams>("upstream").unwrap_or_default();
        let is_http = |plan: &Option<Arc<UpstreamPlan>>| {
            let plan = plan.as_ref();
            plan.is_none_or(|it| it.transport().scheme().is_none())
        };
        let named = upstreams.0.iter().filter(|(_, plan)| is_http(plan));
        named.map(|(name, _)| name.clone()).collect()
    });
    let mut upstreams = BTreeMap::new();
    for name in names {
        // No upstream is named by an empty text: such requests get a 502.
        if name.is_empty() || name.ends_with("://") {
            continue;
        }
        if !base_of(&name).is_empty() {
            let hint = "give the path by `path` of the route";
            let message = format!("`{name}` has a path, which is that of the request here");
            return value.wrong_with(message, Some(hint.to_owned()));
        }
        let plan = upstream_of(value, &name, &mounted.as_guard(), None)?;
        upstreams.insert(name, plan);
    }
    if upstreams.is_empty() {
        return value.wrong("names no upstream, whatever the request is");
    }
    Some((template, upstreams))
}

/// Compiles the changes of requests on their way to a server; false if anything is wrong.
fn request(table: &mut Table<'_>, mounted: &Mounted<'_>, plan: &mut ForwardPlan) -> bool {
    let mut is_whole = true;
    if table.boolean("strip") == Some(true) {
        plan.strip = Some(mounted.prefix.trim_end_matches('/').to_owned());
    }
    if let Some(value) = table.take_value("path") {
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
    if let Some(value) = table.take_value("host") {
        let host = as_text(&value).and_then(|text| match text {
            "client" => Some(HostPolicy::Client),
            "{host}" => Some(HostPolicy::ClientName),
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
    if let Some(value) = table.take_value("forwarded") {
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
    if let Some(value) = table.take_value("trust") {
        let networks = networks(value);
        is_whole &= networks.is_some();
        plan.trusted = networks.unwrap_or_default();
    }
    is_whole &= headers(table, &mounted.as_guard(), plan);
    is_whole
}

/// Compiles `headers`: fields to set, with places or without, and to remove; false if anything is wrong.
pub(super) fn headers(
    table: &mut Table<'_>,
    context: &GuardContext<'_>,
    plan: &mut ForwardPlan,
) -> bool {
    let Some(mut headers) = table.table("headers") else {
        return true;
    };
    let mut is_whole = true;
    for (name, value) in headers.rest_of_fields() {
        let Some((name, field)) = field(&name, &value) else {
            is_whole = false;
            continue;
        };
        let Some(field) = field else {
            plan.removed.push(name);
            continue;
        };
        match template(&value, context.maps, Moment::Request) {
            Some(text) if text.as_text().is_some() => plan.set.push((name, field)),
            Some(template) => plan.templates.push((name, template)),
            None => is_whole = false,
        }
    }
    is_whole
}

/// A field to set, or with `false` to remove.
fn field(name: &str, value: &Value<'_>) -> Option<(HeaderName, Option<HeaderValue>)> {
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = value.check(header.map_err(|_| format!("`{name}` is not a field name")))?;
    if plimsoll_wire::http::FieldClass::from_name(header.as_str().as_bytes()).is_framing()
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

/// Compares what a route has for applications with what its servers speak; false if both do not go together. Of uwsgi it has to have
/// nothing.
fn application<'a>(
    table: &mut Table<'_>,
    plan: &mut ForwardPlan,
    upstreams: impl Iterator<Item = &'a Arc<UpstreamPlan>> + Clone,
    target: &str,
) -> bool {
    let mut spoken = upstreams.map(|it| it.speaks());
    if plan.application.is_none() && spoken.clone().any(|it| it == Speaks::FastCgi) {
        table.wrong(NO_SCRIPTS, Some(scripts_hint(target)));
        return false;
    }
    if plan.application.is_none() && spoken.clone().any(|it| it == Speaks::Uwsgi) {
        plan.application = Some(ApplicationPlan::Uwsgi(UwsgiPlan::default()));
    }
    let Some(application) = &plan.application else {
        return true;
    };
    let (name, speaks) = match application {
        ApplicationPlan::FastCgi(_) => ("fastcgi", Speaks::FastCgi),
        ApplicationPlan::Uwsgi(_) => ("uwsgi", Speaks::Uwsgi),
    };
    let is_spoken = spoken.all(|it| it == speaks);
    if !is_spoken {
        let hint = format!(
            "add protocol = \"{name}\" to each upstream of the route, or beside `to` with a URL"
        );
        table.wrong(format!("`{name}` is for servers that speak it"), Some(hint));
    }
    is_spoken
}

/// A route to an application behind FastCGI has to say where its scripts are.
const NO_SCRIPTS: &str =
    "the servers speak FastCGI, and `fastcgi` with the folder of their scripts is missing";

fn scripts_hint(target: &str) -> String {
    format!("proxy = {{ to = \"{target}\", fastcgi = \"/var/www/html\" }}")
}

/// The path of a URL, which comes before those of requests.
pub(super) fn base_of(target: &str) -> String {
    let endpoint = is_url(target)
        .then(|| servers::http_endpoint(target).ok())
        .flatten();
    endpoint.map_or(String::new(), |endpoint| {
        endpoint.path_and_query().trim_end_matches('/').to_owned()
    })
}

/// Path and query of a URL, `/` for the name of an upstream.
pub(super) fn path_of(target: &str) -> String {
    let endpoint = is_url(target)
        .then(|| servers::http_endpoint(target).ok())
        .flatten();
    endpoint.map_or("/".to_owned(), |it| it.path_and_query().to_owned())
}

/// Whether a target is a server rather than the name of an upstream.
fn is_url(target: &str) -> bool {
    target.contains("://") || target.starts_with(servers::UNIX_SOCKET)
}

/// The upstream of that name, or one of its own for a URL.
///
/// - `table`: where the settings of that one are, if anywhere.
pub(super) fn upstream_of(
    value: &Value<'_>,
    target: &str,
    context: &GuardContext<'_>,
    table: Option<&mut Table<'_>>,
) -> Option<Arc<UpstreamPlan>> {
    if !is_url(target) {
        let upstreams = context.section::<Upstreams>("upstream").unwrap_or_default();
        if let Some(found) = upstreams.0.get(target) {
            let scheme = found.as_ref().and_then(|it| it.transport().scheme());
            if let Some(scheme) = scheme {
                let message =
                    format!("`{target}` has servers of {scheme}://, which get no requests");
                let hint =
                    format!("forward to them from a [[listen]] with {scheme} = \"{target}\"");
                return value.wrong_with(message, Some(hint));
            }
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
    let endpoint = value.check(servers::http_endpoint(target))?;
    if endpoint.path_and_query().contains('?') {
        return value.wrong("has a query; that of each request is forwarded");
    }
    if endpoint.credentials().is_some() {
        return value.wrong("has a user; set `authorization` in `headers`");
    }
    let options = match table {
        Some(table) => {
            let is_looked_up = table.boolean("dns") == Some(true);
            let options =
                upstream::options(table, context.paths, context.notices, Transport::Http)?;
            UpstreamOptions {
                discovery: if is_looked_up {
                    Discovery::Dns
                } else {
                    Discovery::Fixed
                },
                ..options
            }
        }
        None => UpstreamOptions::default(),
    };
    let server = ServerPlan::new(Transport::Http, endpoint);
    let plan = value.check(UpstreamPlan::new(&server.name(), vec![server], options))?;
    Some(Arc::new(plan))
}
