//! One `[upstream.NAME]`.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use plimsoll_client::Endpoint;
use plimsoll_client::forward::{PoolOptions, Speaks};
use plimsoll_server::config::{Table, Value, as_text};
use plimsoll_wire::tls::{IdentityFiles, Trust};

use crate::balance::Balance;
use crate::upstream::{
    Ejection, HealthCheck, KeySource, RetryCondition, RetryPolicy, ServerPlan, Timeouts,
    UpstreamOptions, UpstreamPlan,
};

/// The upstream; `None` if anything in its table is wrong.
pub(super) fn compile(name: &str, mut table: Table<'_>, directory: &Path) -> Option<UpstreamPlan> {
    let servers = table.take("servers");
    if servers.is_none() {
        table.missing("servers", "such as servers = [\"http://10.0.0.1:8080\"]");
    }
    let servers = servers.and_then(self::servers);
    let options = options(&mut table, directory);
    let (servers, options) = (servers?, options?);
    let plan = UpstreamPlan::new(name, servers, options);
    match plan {
        Ok(plan) => {
            table.finish();
            Some(plan)
        }
        Err(error) => {
            table.wrong(error, None);
            table.finish();
            None
        }
    }
}

/// URLs, or tables with `url` and `weight`.
fn servers(value: Value<'_>) -> Option<Vec<ServerPlan>> {
    let mut known = HashSet::new();
    let mut is_whole = true;
    let mut servers = Vec::new();
    let elements = value.elements();
    for element in elements {
        let server = server(element, &mut known);
        is_whole &= server.is_some();
        servers.extend(server);
    }
    is_whole.then_some(servers)
}

fn server(value: Value<'_>, known: &mut HashSet<String>) -> Option<ServerPlan> {
    if !value.is_table() {
        return endpoint(&value, known).map(|endpoint| ServerPlan {
            endpoint,
            weight: 1,
        });
    }
    let mut table = value.table()?;
    let url = table.take("url");
    if url.is_none() {
        table.missing("url", "such as url = \"http://10.0.0.1:8080\"");
    }
    let endpoint = url.and_then(|url| endpoint(&url, known));
    // 0 drains a server: it is kept, checked and shown, and gets no requests.
    let weight = table.count("weight", 0..=1000);
    table.finish();
    Some(ServerPlan {
        endpoint: endpoint?,
        weight: weight.map_or(1, |weight| u32::try_from(weight).unwrap_or(1)),
    })
}

/// The origin of a server.
fn endpoint(value: &Value<'_>, known: &mut HashSet<String>) -> Option<Endpoint> {
    let text = as_text(value)?;
    let endpoint = value.check(Endpoint::parse(text))?;
    if endpoint.path_and_query() != "/" {
        return value.wrong_with(
            "a server is a scheme, a host and a port, without a path",
            Some("change paths in the route: proxy = { to = NAME, path = \"/prefix\" }".into()),
        );
    }
    if endpoint.credentials().is_some() {
        return value.wrong_with(
            "the URL has a user, who would be lost",
            Some("set the field in the route: proxy = { to = NAME, headers = { authorization = … } }".into()),
        );
    }
    let origin = format!("{}://{}", endpoint.scheme(), endpoint.authority());
    if !known.insert(origin) {
        return value.wrong_with(
            "the server is given twice",
            Some("give it a weight: { url = …, weight = 2 }".into()),
        );
    }
    Some(endpoint)
}

/// What upstreams and inline targets of routes have in common.
pub(super) fn options(table: &mut Table<'_>, directory: &Path) -> Option<UpstreamOptions> {
    let mut options = UpstreamOptions::default();
    let mut is_whole = true;
    if let Some(value) = table.take("balance") {
        let kind = as_text(&value).and_then(|text| value.check(text.parse::<Balance>()));
        is_whole &= kind.is_some();
        options.balance = kind.unwrap_or_default();
    }
    if let Some(value) = table.take("by") {
        let key = as_text(&value).and_then(|text| value.check(text.parse::<KeySource>()));
        is_whole &= key.is_some();
        options.key = key.unwrap_or_default();
    }
    if let Some(value) = table.take("sticky") {
        let name = as_text(&value).and_then(|name| match HeaderName::from_bytes(name.as_bytes()) {
            Ok(_) => Some(name.to_owned()),
            Err(_) => value.wrong("is not a name that a cookie may have"),
        });
        is_whole &= name.is_some();
        options.sticky = name;
    }
    if let Some(value) = table.take("protocol") {
        let speaks = match as_text(&value) {
            Some("auto") => Some(Speaks::Negotiated),
            Some("http1") => Some(Speaks::Http1),
            Some("http2") => Some(Speaks::Http2),
            Some("http3") => Some(Speaks::Http3),
            Some(_) => value.wrong("is \"auto\", \"http1\", \"http2\" or \"http3\""),
            None => None,
        };
        is_whole &= speaks.is_some();
        options.pool.speaks = speaks.unwrap_or_default();
    }
    timeouts(table, &mut options.timeouts);
    pool(table, &mut options.pool);
    if let Some(mut tls) = table.table("tls") {
        let trust = trust(&mut tls, directory);
        is_whole &= trust.is_some();
        options.trust = trust.unwrap_or_default();
        options.identity = tls.text("cert").map(|certificate| IdentityFiles {
            certificate: directory.join(certificate),
            key: tls.text("key").map(|key| directory.join(key)),
        });
        tls.finish();
    }
    if let Some(value) = table.take("retry") {
        let policy = retry(value);
        is_whole &= policy.is_some();
        options.retry = policy.unwrap_or_default();
    }
    if let Some(value) = table.take("health") {
        let check = value.table_or_true().and_then(health);
        is_whole &= check.is_some();
        options.health = check;
    }
    if let Some(value) = table.take("eject") {
        let ejection = value.table_or_true().map(ejection);
        is_whole &= ejection.is_some();
        options.ejection = ejection;
    }
    options.slow_start = table.duration("slow_start").unwrap_or_default();
    if let Some(percent) = table.count("panic_threshold", 0..=100) {
        options.panic_threshold = percent as f64 / 100.0;
    }
    is_whole.then_some(options)
}

fn timeouts(table: &mut Table<'_>, timeouts: &mut Timeouts) {
    for (key, timeout) in [
        ("connect_timeout", &mut timeouts.connect),
        ("response_timeout", &mut timeouts.response),
        ("idle_timeout", &mut timeouts.idle),
    ] {
        if let Some(given) = table.duration(key) {
            *timeout = given;
        }
    }
}

fn pool(table: &mut Table<'_>, pool: &mut PoolOptions) {
    if let Some(connections) = table.count("connections", 1..=65_536) {
        pool.connections = connections;
    }
    if let Some(waiting) = table.count("queue", 0..=1_000_000) {
        pool.waiting = waiting;
    }
    if let Some(idle) = table.count("keep", 0..=65_536) {
        pool.idle = idle;
    }
    if let Some(time) = table.duration("keep_for") {
        pool.idle_timeout = time;
    }
    if let Some(time) = table.duration("lifetime") {
        pool.lifetime = time;
    }
}

fn trust(tls: &mut Table<'_>, directory: &Path) -> Option<Trust> {
    let ca = tls.text("ca");
    match (tls.boolean("insecure"), ca) {
        (Some(true), None) => Some(Trust::Anyone),
        (Some(true), Some(_)) => {
            tls.wrong(
                "`insecure` trusts every server, so `ca` has no effect",
                None,
            );
            None
        }
        (_, Some(file)) => Some(Trust::Only(directory.join(file))),
        (_, None) => Some(Trust::PublicRoots),
    }
}

/// `retry = 2`, `retry = false` or a table.
fn retry(value: Value<'_>) -> Option<RetryPolicy> {
    let mut policy = RetryPolicy::default();
    if value.is_false() {
        policy.retries = 0;
        return Some(policy);
    }
    let mut table = value.table()?;
    if let Some(retries) = table.count("retries", 0..=10) {
        policy.retries = u32::try_from(retries).unwrap_or_default();
    }
    let on = table.take("on").map(|value| {
        let texts = value.texts_with(|text| {
            text.parse::<RetryCondition>()
                .err()
                .map(|error| error.to_string())
        })?;
        Some(texts.iter().filter_map(|text| text.parse().ok()).collect())
    });
    if let Some(percent) = table.count("budget", 0..=100) {
        policy.budget = percent as f64 / 100.0;
    }
    table.finish();
    match on {
        None => {}
        Some(on) => policy.on = on?,
    }
    Some(policy)
}

fn health(mut table: Table<'_>) -> Option<HealthCheck> {
    let mut check = HealthCheck::default();
    let mut is_whole = true;
    if let Some(value) = table.take("path") {
        let path = as_text(&value).and_then(|path| {
            let is_path = path.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic());
            if is_path {
                Some(path.to_owned())
            } else {
                value.wrong("begins with a slash and has no blanks")
            }
        });
        is_whole &= path.is_some();
        check.path = path.unwrap_or_default();
    }
    for (key, time) in [
        ("interval", &mut check.interval),
        ("timeout", &mut check.timeout),
    ] {
        if let Some(given) = table.duration(key) {
            *time = given.max(Duration::from_millis(10));
        }
    }
    for (key, number) in [
        ("healthy", &mut check.healthy),
        ("unhealthy", &mut check.unhealthy),
    ] {
        if let Some(given) = table.count(key, 1..=100) {
            *number = u32::try_from(given).unwrap_or(1);
        }
    }
    if let Some(status) = table.count("status", 100..=599) {
        let status = u16::try_from(status).ok();
        check.status = status.and_then(|status| StatusCode::from_u16(status).ok());
    }
    table.finish();
    is_whole.then_some(check)
}

fn ejection(mut table: Table<'_>) -> Ejection {
    let mut ejection = Ejection::default();
    if let Some(failures) = table.count("failures", 1..=1000) {
        ejection.failures = u32::try_from(failures).unwrap_or(1);
    }
    if let Some(time) = table.duration("time") {
        ejection.time = time;
    }
    if let Some(percent) = table.count("most", 0..=100) {
        ejection.most = percent as f64 / 100.0;
    }
    table.finish();
    ejection
}
