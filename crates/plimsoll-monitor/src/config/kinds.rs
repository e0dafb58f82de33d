//! The kinds of monitors in TOML: each is a key whose value is a target, or a table with more.

mod mail;
mod services;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::tz::TimeZone;
use plimsoll_client::check::Condition;
use plimsoll_client::{AddressFamily, Proxy};
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_model::{Secret, parse_duration};
use plimsoll_wire::tls::{IdentityFiles, Trust};
use regex::Regex;
use url::Url;

use crate::config::file::Context;
use crate::config::maintenance::zone;
use crate::config::monitor::Defaults;
use crate::config::plan::{CompositePlan, EveryOrCron, HeartbeatPlan, What};
use crate::probe::{
    DnsProbe, DnsRecord, DomainProbe, HttpOptions, HttpProbe, IcmpProbe, Probe, Reach,
    ReachOptions, SshProbe, SuppliedKind, TalkProbe, TalkStep, TcpProbe, TcpTarget, TlsProbe,
    UdpProbe, WebSocketProbe,
};
use crate::token::of_url;

/// Every kind, by its key.
pub(super) const KINDS: [&str; 29] = [
    "http",
    "tcp",
    "tls",
    "udp",
    "dns",
    "icmp",
    "starttls",
    "smtp",
    "websocket",
    "grpc",
    "ssh",
    "postgres",
    "mysql",
    "redis",
    "mqtt",
    "amqp",
    "kafka",
    "nats",
    "ldap",
    "snmp",
    "ntp",
    "prometheus",
    "docker",
    "systemd",
    "domain",
    "heartbeat",
    "all_of",
    "any_of",
    "manual",
];

/// Whether a key of a definition is that of a kind.
pub(crate) fn is_kind(key: &str) -> bool {
    KINDS.contains(&key)
}

/// The `User-Agent` of checks.
const AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// A compiled kind.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) what: What,
    /// The conditions if none are given.
    pub(super) expect: Vec<Condition>,
}

/// Settings by which ways to reach targets are shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ReachKey {
    timeout: Duration,
    ca: Option<PathBuf>,
    insecure: bool,
    identity: Option<(PathBuf, Option<PathBuf>)>,
    server_name: Option<String>,
    family: AddressFamily,
    name_servers: Vec<SocketAddr>,
    alpn: &'static str,
    proxy: Option<String>,
}

/// The kind of a monitor, and the names of its members.
pub(super) fn compile<'i>(
    table: &mut Table<'i>,
    context: &mut Context,
    settings: &Defaults,
    expect: Option<&[Condition]>,
) -> Option<(Kind, Vec<Value<'i>>)> {
    let supplied = context.supplied;
    let keys = || {
        KINDS
            .into_iter()
            .chain(supplied.iter().map(|kind| kind.key))
    };
    let given: Vec<_> = keys()
        .filter_map(|key| Some((key, table.take_value(key)?)))
        .collect();
    let mut given = given.into_iter();
    let Some((key, value)) = given.next() else {
        let keys: Vec<_> = keys().collect();
        let hint = format!("one of {} says what is monitored", keys.join(", "));
        table.wrong("there is no target", Some(hint));
        return None;
    };
    if let Some((other, value)) = given.next() {
        value.wrong::<()>(format!(
            "a monitor has one kind, and this one has `{key}` and `{other}`"
        ));
        return None;
    }
    if let "all_of" | "any_of" = key {
        let members = value.elements();
        let composite = CompositePlan {
            members: Vec::new(),
            least_up: if key == "all_of" { members.len() } else { 1 },
        };
        let kind = Kind {
            name: "composite",
            what: What::Composite(composite),
            expect: Vec::new(),
        };
        return Some((kind, members));
    }
    let needs_body = expect.is_some_and(|all| all.iter().any(Condition::needs_body));
    let kind = match key {
        "http" => http(value, context, settings, needs_body),
        "tcp" => tcp(value, context, settings),
        "tls" => tls(value, context, settings),
        "udp" => udp(value, context, settings),
        "dns" => dns(value, context, settings),
        "icmp" => icmp(value, context, settings),
        "starttls" => mail::starttls(value, context, settings),
        "smtp" => mail::smtp(value, context, settings),
        "websocket" => websocket(value, context, settings),
        "grpc" => {
            let leaves_status = expect.is_some_and(|all| all.iter().any(Condition::needs_grpc));
            services::grpc(value, context, settings, leaves_status)
        }
        "ssh" => ssh(value, context, settings),
        "postgres" => services::postgres(value, context, settings),
        "mysql" => services::mysql(value, context, settings),
        "redis" => services::redis(value, context, settings),
        "mqtt" => services::mqtt(value, context, settings),
        "amqp" => services::amqp(value, context, settings),
        "kafka" => services::kafka(value, context, settings),
        "nats" => services::nats(value, context, settings),
        "ldap" => services::ldap(value, context, settings),
        "snmp" => services::snmp(value, context, settings),
        "ntp" => services::ntp(value, context, settings),
        "prometheus" => services::prometheus(value, context, settings),
        "docker" => services::docker(value, context, settings),
        "systemd" => services::systemd(value, context, settings),
        "domain" => domain(value, context, settings),
        "heartbeat" => heartbeat(value),
        "manual" => manual(&value),
        key => supplied
            .iter()
            .find(|kind| kind.key == key)
            .and_then(|kind| of_file(&value, *kind, context, settings)),
    };
    Some((kind?, Vec::new()))
}

/// A target, and the table that it stands in unless it stands alone.
fn target<'i>(value: Value<'i>, key: &'static str) -> Option<(Value<'i>, Option<Table<'i>>)> {
    if !value.is_table() {
        return Some((value, None));
    }
    let mut table = value.table()?;
    if let Some(target) = table.take_value(key) {
        Some((target, Some(table)))
    } else {
        table.missing(key, "what is monitored");
        None
    }
}

/// Takes the keys about reaching a target.
fn reach(
    table: Option<&mut Table<'_>>,
    context: &mut Context,
    settings: &Defaults,
    alpn: &'static str,
    place: &Value<'_>,
) -> Option<Reach> {
    reach_by(table, context, settings, alpn, place, None)
}

/// The same through a proxy, whose URL was checked.
fn reach_by(
    table: Option<&mut Table<'_>>,
    context: &mut Context,
    settings: &Defaults,
    alpn: &'static str,
    place: &Value<'_>,
    proxy: Option<String>,
) -> Option<Reach> {
    let mut key = ReachKey {
        timeout: settings.timeout,
        ca: None,
        insecure: false,
        identity: None,
        server_name: None,
        family: AddressFamily::Any,
        name_servers: Vec::new(),
        alpn,
        proxy,
    };
    if let Some(table) = table {
        key.ca = file(table, context, "ca");
        key.insecure = table.boolean("insecure").unwrap_or(false);
        if key.insecure && key.ca.is_some() {
            table.wrong("`ca` has no effect beside `insecure`", None);
            return None;
        }
        let certificate = file(table, context, "cert");
        let private = file(table, context, "key");
        key.identity = certificate.map(|certificate| (certificate, private));
        key.server_name = table.text("server_name");
        if let Some(value) = table.take_value("family") {
            key.family = match as_text(&value)? {
                "ipv4" => AddressFamily::Ipv4,
                "ipv6" => AddressFamily::Ipv6,
                other => return value.wrong(format!("`{other}` is not \"ipv4\" or \"ipv6\"")),
            };
        }
        if let Some(value) = table.take_value("name_server") {
            let text = as_text(&value)?;
            let address = text
                .parse()
                .or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, 53)));
            let wrong = |_| format!("`{text}` is not an address such as 1.1.1.1 or 1.1.1.1:53");
            key.name_servers = vec![value.check(address.map_err(wrong))?];
        }
    }
    if let Some(known) = context.reaches.get(&key) {
        return Some(known.clone());
    }
    let options = ReachOptions {
        timeout: key.timeout,
        trust: trust(&key),
        identity: key
            .identity
            .clone()
            .map(|(certificate, key)| IdentityFiles { certificate, key }),
        server_name: key.server_name.clone(),
        family: key.family,
        name_servers: key.name_servers.clone(),
        filter: context.filter.clone(),
        alpn: match alpn {
            "" => Vec::new(),
            protocol => vec![protocol.as_bytes().to_vec()],
        },
        proxy: key.proxy.as_ref().and_then(|proxy| proxy.parse().ok()),
    };
    let reach = place.check(Reach::new(options))?;
    context.reaches.insert(key, reach.clone());
    Some(reach)
}

/// The URL of a proxy, as written. It resolves the names of targets itself, where plimsoll does not see the addresses,
/// so no limit on addresses holds there.
#[expect(
    clippy::option_option,
    reason = "the outer one says that there was a problem, as for all that is compiled"
)]
fn proxy(table: &mut Table<'_>, context: &Context) -> Option<Option<String>> {
    let Some(value) = table.take_value("proxy") else {
        return Some(None);
    };
    of_this_machine(&value, context, "leads through a proxy")?;
    if context.filter.is_some() {
        let hint = "allow private addresses, or check from a place that needs no proxy";
        return value.wrong_with(
            "cannot be used where monitors may only reach public addresses",
            Some(hint.to_owned()),
        );
    }
    let text = as_text(&value)?;
    if !text.contains("://") {
        return value.wrong("must be a URL such as http://proxy.example.org:3128");
    }
    value.check(text.parse::<Proxy>())?;
    Some(Some(text.to_owned()))
}

/// A file of this machine, which only the configuration file may name.
fn file(table: &mut Table<'_>, context: &Context, key: &'static str) -> Option<PathBuf> {
    let value = table.take_value(key)?;
    of_this_machine(
        &value,
        context,
        "names a file of the machine of the monitor",
    )?;
    Some(context.file(&value.text()?))
}

/// Nothing unless the configuration file defines the monitor, and no agent checks it.
fn of_this_machine(value: &Value<'_>, context: &Context, what: &str) -> Option<()> {
    if context.may_name_files {
        return Some(());
    }
    let hint = "define this monitor in the configuration file, and check it from there";
    value.wrong_with(what, Some(hint.to_owned()))
}

fn trust(key: &ReachKey) -> Trust {
    match (&key.ca, key.insecure) {
        (_, true) => Trust::Anyone,
        (Some(file), false) => Trust::Only(file.clone()),
        (None, false) => Trust::PublicRoots,
    }
}

fn probe(name: &'static str, probe: impl Probe + 'static) -> Kind {
    Kind {
        name,
        what: What::Probe(Arc::new(probe)),
        expect: Vec::new(),
    }
}

fn http(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
    needs_body: bool,
) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let is_http2 = table
        .as_mut()
        .and_then(|table| table.boolean("http2"))
        .unwrap_or(false);
    let alpn = if is_http2 { "h2" } else { "http/1.1" };
    let proxy = match table.as_mut() {
        Some(table) => proxy(table, context)?,
        None => None,
    };
    let reach = reach_by(table.as_mut(), context, settings, alpn, &url, proxy);
    let mut options = HttpOptions {
        redirects: 10,
        keeps_body: needs_body,
        http2: is_http2,
        ..plain_request(as_text(&url)?)
    };
    if let Some(mut table) = table {
        if let Some(method) = table.text("method") {
            options.method = method.to_ascii_uppercase();
        }
        options.body = table.text("body").map(String::into_bytes);
        if let Some(redirects) = table.count("redirects", 0..=50) {
            options.redirects = u32::try_from(redirects).unwrap_or(10);
        }
        authorise(&mut table, &mut options)?;
        table.finish();
    }
    let probed = url.check(HttpProbe::new(options, reach?))?;
    let is_success = ["status >= 200", "status <= 299"].map(Condition::parse);
    let expect = is_success.into_iter().filter_map(Result::ok).collect();
    Some(Kind {
        expect,
        ..probe("http", probed)
    })
}

/// A request without anything else than its URL.
fn plain_request(url: &str) -> HttpOptions {
    HttpOptions {
        url: url.to_owned(),
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        basic_auth: None,
        redirects: 0,
        keeps_body: true,
        http2: false,
        agent: AGENT.to_owned(),
    }
}

/// Takes `headers`, `bearer` and `basic`.
fn authorise(table: &mut Table<'_>, options: &mut HttpOptions) -> Option<()> {
    options.fields = fields(table)?;
    if let Some(token) = table.text("bearer") {
        let field = ("authorization".to_owned(), format!("Bearer {token}"));
        options.fields.push(field);
    }
    if let Some(value) = table.take_value("basic") {
        let text = as_text(&value)?;
        options.basic_auth = match text.split_once(':') {
            Some((user, password)) => Some((user.to_owned(), Secret::new(password))),
            None => return value.wrong("is `user:password`"),
        };
    }
    Some(())
}

fn fields(table: &mut Table<'_>) -> Option<Vec<(String, String)>> {
    let Some(mut headers) = table.table("headers") else {
        return Some(Vec::new());
    };
    let fields = headers
        .rest_of_fields()
        .into_iter()
        .map(|(name, value)| Some((name, value.text()?)));
    fields.collect::<Vec<_>>().into_iter().collect()
}

/// `host:port`, the keys about reaching it, and what is sent.
fn port(
    value: Value<'_>,
    is_tls: bool,
    default: Option<u16>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<(TcpTarget, Option<Vec<u8>>, Reach)> {
    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let send = table.as_mut().and_then(|table| table.text("send"));
    if let Some(table) = table {
        table.finish();
    }
    Some((
        tcp_target(&place, is_tls, default)?,
        send.map(String::into_bytes),
        reach?,
    ))
}

fn tcp_target(place: &Value<'_>, is_tls: bool, default: Option<u16>) -> Option<TcpTarget> {
    let text = as_text(place)?;
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let target = place.check(TcpTarget::parse(text, is_tls, default.unwrap_or(0)))?;
    if target.endpoint().port() == 0 {
        return place.wrong("has no port; write `host:port`");
    }
    Some(target)
}

fn tcp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let (mut send, mut is_tls, mut talk) = (None, false, None);
    if let Some(mut table) = table {
        send = table.text("send").map(String::into_bytes);
        is_tls = table.boolean("tls").unwrap_or(false);
        talk = match table.take_value("talk") {
            None => None,
            Some(value) if send.is_some() => {
                return value.wrong("has no place beside `send`; write that as a step");
            }
            Some(value) => Some(steps(value)?),
        };
        table.finish();
    }
    let (target, reach) = (tcp_target(&place, is_tls, None)?, reach?);
    Some(match talk {
        Some(steps) => probe(
            "tcp",
            TalkProbe {
                target,
                steps,
                reach,
            },
        ),
        None => probe(
            "tcp",
            TcpProbe {
                target,
                send,
                reach,
            },
        ),
    })
}

/// The steps of a conversation.
fn steps(value: Value<'_>) -> Option<Vec<TalkStep>> {
    let steps = value.elements().into_iter().map(|value| {
        let mut table = value.table()?;
        let expect = match table.take_value("expect") {
            None => None,
            Some(value) => Some(value.check(Regex::new(as_text(&value)?))?),
        };
        let step = TalkStep {
            expect,
            send: table.text("send"),
            starttls: table.boolean("starttls").unwrap_or(false),
        };
        if step.expect.is_none() && step.send.is_none() && !step.starttls {
            table.wrong("a step has `expect`, `send` or `starttls`", None);
        }
        table.finish();
        Some(step)
    });
    steps.collect::<Vec<_>>().into_iter().collect()
}

fn udp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    if !value.is_table() {
        return value.wrong("needs a table with `to` and `send`: UDP answers only to what is sent");
    }
    let (target, send, reach) = port(value, false, None, context, settings)?;
    let send = send.or_else(|| Some(Vec::new()));
    Some(probe(
        "udp",
        UdpProbe {
            target,
            send,
            reach,
        },
    ))
}

fn icmp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (target, _, reach) = port(value, false, Some(1), context, settings)?;
    Some(probe("icmp", IcmpProbe { target, reach }))
}

fn ssh(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (target, _, reach) = port(value, false, Some(22), context, settings)?;
    Some(probe("ssh", SshProbe { target, reach }))
}

type Expiry = (Option<Duration>, Option<Duration>);

/// When a certificate is about to expire.
fn expiry(table: Option<&mut Table<'_>>) -> Expiry {
    const DAY: Duration = Duration::from_hours(24);

    let mut expiry = (Some(30 * DAY), Some(7 * DAY));
    if let Some(table) = table {
        let mut within = |key, into: &mut Option<Duration>| {
            if let Some(duration) = table.duration(key) {
                *into = Some(duration);
            }
        };
        within("warn_within", &mut expiry.0);
        within("critical_within", &mut expiry.1);
    }
    expiry
}

fn tls(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let (warn_within, critical_within) = expiry(table.as_mut());
    if let Some(table) = table {
        table.finish();
    }
    Some(probe(
        "tls",
        TlsProbe {
            target: tcp_target(&place, true, Some(443))?,
            warn_within,
            critical_within,
            reach: reach?,
        },
    ))
}

fn dns(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "name")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let mut kind = "A".to_owned();
    let (mut server, mut requires_validation) = (None, false);
    if let Some(mut table) = table {
        kind = table.text("type").unwrap_or(kind);
        requires_validation = table.boolean("dnssec").unwrap_or(false);
        if let Some(value) = table.take_value("server") {
            server = Some(value.check(TcpTarget::parse(as_text(&value)?, false, 53))?);
        }
        table.finish();
    }
    let record = place.check(DnsRecord::parse(as_text(&place)?, &kind))?;
    Some(probe(
        "dns",
        DnsProbe {
            server,
            record,
            requires_validation,
            requires_answer: true,
            last_only: false,
            reach: reach?,
        },
    ))
}

fn domain(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "name")?;
    let reach = reach(table.as_mut(), context, settings, "http/1.1", &place);
    let (warn_within, critical_within) = expiry(table.as_mut());
    let (mut rdap, mut whois) = (None, None);
    if let Some(mut table) = table {
        if let Some(value) = table.take_value("rdap") {
            rdap = Some(value.check(Url::parse(as_text(&value)?))?);
        }
        if let Some(value) = table.take_value("whois") {
            whois = Some(value.check(TcpTarget::parse(as_text(&value)?, false, 43))?);
        }
        table.finish();
    }
    let name = as_text(&place)?.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name.contains('.')
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it));
    if !is_name {
        return place
            .wrong("is not a domain such as `example.org`; write other scripts in Punycode");
    }
    Some(probe(
        "domain",
        DomainProbe {
            domain: name,
            rdap,
            whois,
            warn_within: warn_within.unwrap_or_default(),
            critical_within: critical_within.unwrap_or_default(),
            reach: reach?,
            last: Mutex::default(),
        },
    ))
}

fn websocket(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "http/1.1", &url);
    let (mut headers, mut send) = (Vec::new(), None);
    if let Some(mut table) = table {
        headers = fields(&mut table)?;
        send = table.text("send").map(String::into_bytes);
        table.finish();
    }
    let probed = url.check(WebSocketProbe::new(as_text(&url)?, &headers, send, reach?))?;
    Some(probe("websocket", probed))
}

fn heartbeat(value: Value<'_>) -> Option<Kind> {
    let mut table = value.table()?;
    let token = if let Some(value) = table.take_value("token") {
        Some(of_url(&value)?)
    } else {
        table.missing(
            "token",
            "what makes the URL of the heartbeat secret, such as a UUID",
        );
        None
    };
    let slug = match table.take_value("slug") {
        None => Some(None),
        Some(value) => slug(&value).map(Some),
    };
    let grace = table.duration("grace").unwrap_or(Duration::from_mins(1));
    let most_runtime = table.duration("max_runtime");
    let zone = table
        .take_value("zone")
        .map_or(Some(TimeZone::UTC), |value| zone(&value));
    let due = match (table.take_value("every"), table.take_value("cron")) {
        (Some(value), None) => {
            let period = value.check(parse_duration(as_text(&value)?))?;
            if period < Duration::from_secs(1) {
                return value.wrong("must be at least 1s");
            }
            Some(EveryOrCron::Every(period))
        }
        (None, Some(value)) => {
            let cron = value.check(as_text(&value)?.parse())?;
            Some(EveryOrCron::Cron(cron, zone?))
        }
        _ => {
            table.wrong(
                "either `every` or `cron` says when a heartbeat is due",
                None,
            );
            None
        }
    };
    table.finish();
    Some(Kind {
        name: "heartbeat",
        what: What::Heartbeat(HeartbeatPlan {
            token: token?,
            slug: slug?,
            due: due?,
            grace,
            most_runtime,
        }),
        expect: Vec::new(),
    })
}

/// A name in the URL of a heartbeat.
fn slug(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if text.is_empty() || !text.chars().all(is_plain) {
        return value.wrong("must be made of lower-case letters, digits, hyphens and underscores");
    }
    Some(text.to_owned())
}

/// A kind that the program supplies, by its file.
fn of_file(
    value: &Value<'_>,
    kind: SuppliedKind,
    context: &Context,
    settings: &Defaults,
) -> Option<Kind> {
    let file = as_text(value)?;
    of_this_machine(value, context, "names a file of the machine of the monitor")?;
    let path = context.file(file);
    let filter = context.filter.clone();
    let probe = value.check((kind.compile)(&path, settings.timeout, filter))?;
    Some(Kind {
        name: kind.key,
        what: What::Probe(probe),
        expect: Vec::new(),
    })
}

fn manual(value: &Value<'_>) -> Option<Kind> {
    if !value.is_true() {
        return value.wrong("is `true`");
    }
    Some(Kind {
        name: "manual",
        what: What::Manual,
        expect: Vec::new(),
    })
}
