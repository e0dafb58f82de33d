//! One `[upstream.NAME]`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http::HeaderName;
use plimsoll_client::forward::{PoolOptions, Speaks};
use plimsoll_server::Notices;
use plimsoll_server::config::{ConfigProblem, NamedPaths, SectionContext, Table, Value, as_text};
use plimsoll_wire::tls::{IdentityFiles, Trust};

use super::health::health;
use super::{servers, sources};
use crate::balance::Balance;
use crate::upstream::{
    Bounds, BreakerPlan, ConcurrencyPlan, Discovery, Ejection, KeySource, Limit, RetryCondition,
    RetryPolicy, ServerFile, ServerScheme, Timeouts, Transport, UpstreamOptions, UpstreamPlan,
};

/// The upstream; `None` if anything in its table is wrong.
pub(super) fn compile(
    name: &str,
    mut table: Table<'_>,
    context: &SectionContext<'_>,
) -> Option<UpstreamPlan> {
    let file = table.take_value("file");
    let servers = table.take_value("servers");
    let mut discovery = Discovery::Fixed;
    let mut listed = sources::KEYS
        .into_iter()
        .filter_map(|key| Some((key, table.take_value(key)?)));
    let source = listed.next();
    let others: Vec<_> = listed.map(|(_, other)| other).collect();
    for other in others
        .iter()
        .chain(file.iter().filter(|_| source.is_some()))
    {
        other.wrong::<()>("another key says already where the servers are listed");
    }
    let servers = match (servers, file) {
        (servers, _) if source.is_some() => {
            if let Some(servers) = servers {
                servers.wrong::<()>("another key says already where the servers are listed");
            }
            let source =
                source.and_then(|(key, value)| sources::compile(key, value, context.paths));
            source.map(|source| {
                discovery = source;
                Vec::new()
            })
        }
        (Some(_), Some(file)) => file.wrong("`servers` are given too"),
        (Some(servers), None) => servers::compile(servers),
        (None, Some(file)) => context.paths.read(&file).and_then(|path| {
            let read = servers::read(&path).map_err(|problems| first(&path, &problems));
            discovery = Discovery::File(ServerFile {
                path,
                read: servers::read,
            });
            file.check(read)
        }),
        (None, None) => {
            table.missing("servers", "such as servers = [\"http://10.0.0.1:8080\"]");
            None
        }
    };
    let transport = servers.as_ref().and_then(|it| it.first());
    let transport = transport.map(|it| it.transport);
    let of_source = discovery.scheme().map(ServerScheme::transport);
    let transport = transport.or(of_source).unwrap_or_default();
    let options = options(&mut table, context.paths, context.notices, transport);
    if transport != Transport::Http {
        for key in OF_REQUESTS {
            if table.was_given(key) {
                let scheme = transport.scheme().unwrap_or_default();
                let message =
                    format!("`{key}` is for requests, which servers of {scheme}:// do not get");
                table.wrong(message, None);
            }
        }
    }
    if table.boolean("dns") == Some(true) {
        if discovery == Discovery::Fixed {
            discovery = Discovery::Dns;
        } else {
            table.wrong("only `servers` are looked up: `dns` has no effect", None);
        }
    }
    let (Some(servers), Some(mut options)) = (servers, options) else {
        table.finish();
        return None;
    };
    options.discovery = discovery;
    if !servers.is_empty() && servers.iter().all(|server| server.is_backup) {
        let hint = "leave `backup` out, or add the servers that they stand in for";
        table.wrong("all servers are backups", Some(hint.to_owned()));
    }
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

/// Keys that mean something for HTTP alone.
const OF_REQUESTS: [&str; 14] = [
    "sticky",
    "protocol",
    "response_timeout",
    "idle_timeout",
    "timeout",
    "connections",
    "queue",
    "keep",
    "keep_for",
    "lifetime",
    "max_requests",
    "hedge",
    "concurrency",
    "breaker",
];

fn first(path: &Path, problems: &[ConfigProblem]) -> String {
    let first = problems.first();
    let (line, problem) = first.map_or((1, String::new()), |it| (it.line, it.to_string()));
    format!("{}:{line}: {problem}", path.display())
}

/// Datagrams of one client belong together.
pub(super) fn default_balance(transport: Transport) -> Balance {
    match transport {
        Transport::Udp => Balance::Maglev,
        Transport::Http | Transport::Tcp => Balance::default(),
    }
}

/// Options that upstreams and inline targets of routes share.
pub(super) fn options(
    table: &mut Table<'_>,
    paths: &NamedPaths<'_>,
    notices: &Notices,
    transport: Transport,
) -> Option<UpstreamOptions> {
    let mut options = UpstreamOptions {
        balance: default_balance(transport),
        notices: notices.clone(),
        zone: table.text("zone"),
        ..UpstreamOptions::default()
    };
    let mut is_whole = true;
    if let Some(value) = table.take_value("balance") {
        let kind = as_text(&value).and_then(|text| value.check(text.parse::<Balance>()));
        is_whole &= kind.is_some();
        options.balance = kind.unwrap_or_default();
    }
    if let Some(value) = table.take_value("by") {
        let key = as_text(&value).and_then(|text| value.check(text.parse::<KeySource>()));
        is_whole &= key.is_some();
        options.key = key.unwrap_or_default();
    }
    if let Some(value) = table.take_value("sticky") {
        let name = as_text(&value).and_then(|name| match HeaderName::from_bytes(name.as_bytes()) {
            Ok(_) => Some(name.to_owned()),
            Err(_) => value.wrong("is not a name that a cookie may have"),
        });
        is_whole &= name.is_some();
        options.sticky = name;
    }
    if let Some(value) = table.take_value("protocol") {
        let speaks = match as_text(&value) {
            Some("auto") => Some(Speaks::Negotiated),
            Some("http1") => Some(Speaks::Http1),
            Some("http2") => Some(Speaks::Http2),
            Some("http3") => Some(Speaks::Http3),
            Some("fastcgi") => Some(Speaks::FastCgi),
            Some("uwsgi") => Some(Speaks::Uwsgi),
            Some(_) => value
                .wrong("is \"auto\", \"http1\", \"http2\", \"http3\", \"fastcgi\" or \"uwsgi\""),
            None => None,
        };
        is_whole &= speaks.is_some();
        options.pool.speaks = speaks.unwrap_or_default();
    }
    timeouts(table, &mut options.timeouts);
    pool(table, &mut options.pool);
    // A process of PHP serves one connection, idle or not: kept ones would keep others out.
    if options.pool.speaks == Speaks::FastCgi && !table.was_given("keep") {
        options.pool.idle = 0;
    }
    if options.pool.speaks == Speaks::Uwsgi {
        if table.was_given("keep") {
            table.wrong(
                "`keep` is for connections that servers keep open, and those of uwsgi end with each response",
                None,
            );
            is_whole = false;
        }
        options.pool.idle = 0;
    }
    if let Some(mut tls) = table.table("tls") {
        let trust = trust(&mut tls, paths);
        is_whole &= trust.is_some();
        options.trust = trust.unwrap_or_default();
        let mut file = |key| {
            let value = tls.take_value(key)?;
            let file = paths.read(&value);
            is_whole &= file.is_some();
            file
        };
        let (certificate, key) = (file("cert"), file("key"));
        options.identity = certificate.map(|certificate| IdentityFiles { certificate, key });
        options.server_name = tls.text("server_name");
        tls.finish();
    }
    if let Some(value) = table.take_value("retry") {
        let policy = retry(value);
        is_whole &= policy.is_some();
        options.retry = policy.unwrap_or_default();
    }
    if let Some(value) = table.take_value("resolvers") {
        let resolvers = value.texts_with(|text| {
            let parsed = text.parse::<SocketAddr>();
            parsed
                .err()
                .map(|_| format!("`{text}` is not an address with a port, such as 10.0.0.2:53"))
        });
        is_whole &= resolvers.is_some();
        let resolvers = resolvers.unwrap_or_default();
        options.resolvers = resolvers.iter().filter_map(|it| it.parse().ok()).collect();
    }
    options.hedge = table.duration("hedge");
    if let Some(value) = table.take_value("concurrency") {
        let concurrency = concurrency(value);
        is_whole &= concurrency.is_some();
        options.concurrency = concurrency;
    }
    if let Some(value) = table.take_value("breaker") {
        let breaker = value.table_or_true().map(breaker);
        is_whole &= breaker.is_some();
        options.breaker = breaker;
    }
    if let Some(value) = table.take_value("health") {
        let check = value.table_or_true().and_then(|it| health(it, transport));
        is_whole &= check.is_some();
        options.health = check;
    }
    if let Some(value) = table.take_value("eject") {
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
    timeouts.total = table.duration("timeout");
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
    if let Some(requests) = table.count("max_requests", 1..=1_000_000_000) {
        pool.exchanges = requests as u64;
    }
}

fn trust(tls: &mut Table<'_>, paths: &NamedPaths<'_>) -> Option<Trust> {
    let ca = tls.take_value("ca");
    match (tls.boolean("insecure"), ca) {
        (Some(true), None) => Some(Trust::Anyone),
        (Some(true), Some(_)) => {
            tls.wrong(
                "`insecure` trusts every server, so `ca` has no effect",
                None,
            );
            None
        }
        (_, Some(file)) => paths.read(&file).map(Trust::Only),
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
    let on = table.take_value("on").map(|value| {
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

/// A number of requests, or a table with `requests` or `adaptive`.
fn concurrency(value: Value<'_>) -> Option<ConcurrencyPlan> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut plan = ConcurrencyPlan {
        limit: Limit::Adaptive(Bounds::default()),
        queue: 100,
        wait: Duration::from_secs(1),
    };
    if !value.is_table() {
        let count = value.to_toml().as_integer();
        let count = count.and_then(|count| u32::try_from(count).ok());
        let Some(count) = count.filter(|count| *count > 0) else {
            return value
                .wrong("is a number of requests, or a table with `requests` or `adaptive = true`");
        };
        plan.limit = Limit::Fixed(count);
        return Some(plan);
    }
    let mut table = value.table()?;
    let requests = table.count("requests", 1..=1_000_000);
    let is_adaptive = table.boolean("adaptive").unwrap_or(false);
    let mut bounds = Bounds::default();
    for (key, bound) in [("min", &mut bounds.least), ("max", &mut bounds.most)] {
        if let Some(count) = table.count(key, 1..=1_000_000) {
            *bound = number(count);
        }
    }
    if let Some(queue) = table.count("queue", 0..=1_000_000) {
        plan.queue = queue;
    }
    if let Some(wait) = table.duration("wait") {
        plan.wait = wait;
    }
    let has_bounds = table.was_given("min") || table.was_given("max");
    let is_whole = match requests {
        Some(_) if is_adaptive || has_bounds => {
            let hint = "give `requests`, or `adaptive = true` with `min` and `max`";
            table.wrong("a limit is fixed or adaptive", Some(hint.to_owned()));
            false
        }
        None if !is_adaptive && !table.was_given("requests") => {
            table.missing("requests", "such as requests = 100, or adaptive = true");
            false
        }
        _ if bounds.least > bounds.most => {
            table.wrong("`min` is above `max`", None);
            false
        }
        _ => true,
    };
    table.finish();
    plan.limit = requests.map_or(Limit::Adaptive(bounds), |it| Limit::Fixed(number(it)));
    is_whole.then_some(plan)
}

fn breaker(mut table: Table<'_>) -> BreakerPlan {
    let mut plan = BreakerPlan::default();
    if let Some(percent) = table.count("failures", 1..=100) {
        plan.failures = percent as f64 / 100.0;
    }
    for (key, number) in [
        ("requests", &mut plan.requests),
        ("probes", &mut plan.probes),
    ] {
        if let Some(given) = table.count(key, 1..=100_000) {
            *number = u32::try_from(given).unwrap_or(1);
        }
    }
    for (key, time) in [("window", &mut plan.window), ("open", &mut plan.open)] {
        if let Some(given) = table.duration(key) {
            *time = given.max(Duration::from_millis(10));
        }
    }
    table.finish();
    plan
}
