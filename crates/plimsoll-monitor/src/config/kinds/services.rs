//! Kinds for services with protocols of their own: databases, brokers, directories, machines.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::file::Context;
use crate::config::kinds::network::tcp_target;
use crate::config::kinds::reach::reach;
use crate::config::kinds::web::{AGENT, authorise, fields, plain_request};
use crate::config::kinds::{Kind, file, of_this_machine, probe, target};
use crate::config::monitor::Defaults;
use crate::probe::{
    AmqpProbe, DockerHost, DockerProbe, GrpcCall, GrpcProbe, KafkaMechanism, KafkaProbe,
    LdapFilter, LdapProbe, LdapScope, LdapSearch, MqttProbe, MysqlProbe, NatsProbe, NtpProbe,
    ObjectId, PostgresProbe, PrometheusProbe, Reach, RedisProbe, SnmpProbe, SystemdProbe,
    TcpTarget, UnitState, is_container, is_unit,
};

/// The bus of the system.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";

/// Where container engines listen.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// The URL of a database, the keys about reaching it, and a query.
fn database<'i>(
    value: Value<'i>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<(Value<'i>, Option<String>, Reach)> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let query = table.as_mut().and_then(|table| table.text("query"));
    if let Some(table) = table {
        table.finish();
    }
    Some((url, query, reach?))
}

pub(super) fn postgres(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<Kind> {
    let (url, query, reach) = database(value, context, settings)?;
    let probed = url.check(PostgresProbe::new(as_text(&url)?, query, reach))?;
    Some(probe("postgres", probed))
}

pub(super) fn mysql(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, query, reach) = database(value, context, settings)?;
    let probed = url.check(MysqlProbe::new(as_text(&url)?, query, reach))?;
    Some(probe("mysql", probed))
}

pub(super) fn redis(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let mut command = Vec::new();
    if let Some(mut table) = table {
        if let Some(value) = table.take_value("command") {
            let words = value.elements();
            // One text is split at its spaces.
            command = match words.as_slice() {
                [one] => as_text(one)?
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
                several => {
                    let words = several.iter().map(|word| as_text(word).map(str::to_owned));
                    words.collect::<Option<_>>()?
                }
            };
        }
        table.finish();
    }
    let probed = url.check(RedisProbe::new(as_text(&url)?, command, reach?))?;
    Some(probe("redis", probed))
}

pub(super) fn mqtt(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let topic = table.as_mut().and_then(|table| table.text("topic"));
    if let Some(table) = table {
        table.finish();
    }
    let probed = url.check(MqttProbe::new(as_text(&url)?, topic, reach?))?;
    Some(probe("mqtt", probed))
}

pub(super) fn amqp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let queue = table.as_mut().and_then(|table| table.text("queue"));
    if let Some(table) = table {
        table.finish();
    }
    let probed = url.check(AmqpProbe::new(as_text(&url)?, queue, reach?))?;
    Some(probe("amqp", probed))
}

pub(super) fn kafka(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let (mut topic, mut mechanism) = (None, Some(KafkaMechanism::default()));
    if let Some(mut table) = table {
        topic = table.text("topic");
        if let Some(value) = table.take_value("mechanism") {
            mechanism = kafka_mechanism(&value);
        }
        table.finish();
    }
    let text = as_text(&url)?;
    let probed = url.check(KafkaProbe::new(text, topic, mechanism?, reach?))?;
    Some(probe("kafka", probed))
}

fn kafka_mechanism(value: &Value<'_>) -> Option<KafkaMechanism> {
    let name = as_text(value)?;
    let mut all = KafkaMechanism::ALL.into_iter();
    let found = all.find(|mechanism| mechanism.name() == name);
    if found.is_none() {
        let names = KafkaMechanism::ALL.map(KafkaMechanism::name).join("\", \"");
        return value.wrong(format!("`{name}` is not one of \"{names}\""));
    }
    found
}

pub(super) fn nats(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let token = table.as_mut().and_then(|table| table.text("auth_token"));
    if let Some(table) = table {
        table.finish();
    }
    let token = token.map(Secret::new);
    let probed = url.check(NatsProbe::new(as_text(&url)?, token, reach?))?;
    Some(probe("nats", probed))
}

pub(super) fn ldap(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    const EXAMPLE: &str = "must be a URL such as ldap://directory.example.org";

    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "", &url);
    let text = as_text(&url)?;
    let (is_tls, place) = match text.split_once("://") {
        Some(("ldap", place)) => (false, place),
        Some(("ldaps", place)) => (true, place),
        _ => return url.wrong(EXAMPLE),
    };
    let place = place.trim_end_matches('/');
    if place.contains(['/', '@', '?']) {
        return url.wrong("has a host and a port alone; write `bind`, `base` and `filter` as keys");
    }
    let port = if is_tls { 636 } else { 389 };
    let place = url.check(TcpTarget::parse(place, is_tls, port))?;
    let (mut starttls, mut login, mut search) = (false, Ok(None), Ok(None));
    if let Some(mut table) = table {
        starttls = table.boolean("starttls").unwrap_or(false);
        if starttls && is_tls {
            table.wrong("`starttls` has no effect on `ldaps://`", None);
        }
        login = self::login(&mut table);
        search = self::search(&mut table);
        table.finish();
    }
    Some(probe(
        "ldap",
        LdapProbe {
            target: place,
            starttls,
            login: login.ok()?,
            search: search.ok()?,
            reach: reach?,
        },
    ))
}

/// Something is wrong, and is among the problems of the file.
struct Noted;

/// The name and password of a bind.
fn login(table: &mut Table<'_>) -> Result<Option<(String, Secret)>, Noted> {
    match (table.text("bind"), table.text("password")) {
        (None, None) => Ok(None),
        (Some(name), Some(password)) => Ok(Some((name, Secret::new(password)))),
        (Some(_), None) => {
            // Servers accept a name without a password, as an anonymous bind (RFC 4513, section 5.1.2).
            table.missing("password", "the password of `bind`");
            Err(Noted)
        }
        (None, Some(_)) => {
            table.missing("bind", "the name whose `password` it is");
            Err(Noted)
        }
    }
}

fn search(table: &mut Table<'_>) -> Result<Option<LdapSearch>, Noted> {
    let filter = table.take_value("filter").map(|value| {
        let parsed = as_text(&value).map(LdapFilter::from_str);
        parsed.and_then(|parsed| value.check(parsed)).ok_or(Noted)
    });
    let scope = table
        .take_value("scope")
        .map(|value| match as_text(&value) {
            Some("base") => Ok(LdapScope::Base),
            Some("one") => Ok(LdapScope::One),
            Some("sub") => Ok(LdapScope::Sub),
            Some(other) => {
                value.wrong::<()>(format!("`{other}` is not \"base\", \"one\" or \"sub\""));
                Err(Noted)
            }
            None => Err(Noted),
        });
    let attributes = table.take_value("attributes");
    let attributes = attributes.map(|value| texts(value).ok_or(Noted));
    let Some(base) = table.text("base") else {
        if filter.is_none() && scope.is_none() && attributes.is_none() {
            return Ok(None);
        }
        table.missing("base", "the name of the entry at which the search begins");
        return Err(Noted);
    };
    Ok(Some(LdapSearch {
        base,
        scope: scope.unwrap_or(Ok(LdapScope::Sub))?,
        filter: filter.unwrap_or_else(|| Ok(LdapFilter::every()))?,
        attributes: attributes.unwrap_or(Ok(Vec::new()))?,
    }))
}

/// A text, or several.
fn texts(value: Value<'_>) -> Option<Vec<String>> {
    let all = value.elements();
    let texts = all.iter().map(|one| as_text(one).map(str::to_owned));
    texts.collect()
}

pub(super) fn snmp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    /// Of `sysUpTime`, which each agent has.
    const UPTIME: &str = "1.3.6.1.2.1.1.3.0";

    /// Objects of a request.
    const MOST: usize = 50;

    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let (mut community, mut objects) = ("public".to_owned(), vec![UPTIME.parse().ok()?]);
    if let Some(mut table) = table {
        community = table.text("community").unwrap_or(community);
        if let Some(value) = table.take_value("oid") {
            let parsed = value.elements();
            if parsed.is_empty() || parsed.len() > MOST {
                let message = format!("`oid` has one to {MOST} objects");
                table.wrong(&message, None);
            }
            let parsed = parsed
                .iter()
                .map(|one| one.check(ObjectId::from_str(as_text(one)?)));
            objects = parsed.collect::<Option<_>>()?;
        }
        table.finish();
    }
    Some(probe(
        "snmp",
        SnmpProbe {
            target: tcp_target(&place, false, Some(161))?,
            community: Secret::new(community),
            objects,
            reach: reach?,
        },
    ))
}

pub(super) fn ntp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    /// A server with more has no time (RFC 5905, section 7.3).
    const MOST_STRATUM: u8 = 15;

    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let (mut most_offset, mut most_stratum) = (Duration::from_secs(1), MOST_STRATUM);
    if let Some(mut table) = table {
        most_offset = table.duration("max_offset").unwrap_or(most_offset);
        if let Some(most) = table.count("max_stratum", 1..=usize::from(MOST_STRATUM)) {
            most_stratum = u8::try_from(most).unwrap_or(MOST_STRATUM);
        }
        table.finish();
    }
    Some(probe(
        "ntp",
        NtpProbe {
            target: tcp_target(&place, false, Some(123))?,
            most_offset,
            most_stratum,
            reach: reach?,
        },
    ))
}

pub(super) fn prometheus(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<Kind> {
    let (url, table) = target(value, "url")?;
    let Some(mut table) = table else {
        return url.wrong("needs a table with `url` and `query`");
    };
    let reach = reach(Some(&mut table), context, settings, "http/1.1", &url);
    let mut options = plain_request(as_text(&url)?);
    authorise(&mut table, &mut options)?;
    let query = table.text("query");
    if query.is_none() {
        table.missing("query", "a query of PromQL, such as `up == 0`");
    }
    table.finish();
    let probed = url.check(PrometheusProbe::new(options, &query?, reach?))?;
    Some(probe("prometheus", probed))
}

pub(super) fn docker(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "container")?;
    let reach = reach(table.as_mut(), context, settings, "http/1.1", &place);
    let name = as_text(&place)?;
    if !is_container(name) {
        return place.wrong("is neither a name nor a number of a container");
    }
    let mut host = Some(DockerHost::Socket(PathBuf::from(DOCKER_SOCKET)));
    if let Some(mut table) = table {
        if let Some(value) = table.take_value("host") {
            host = match as_text(&value)?.split_once("://") {
                Some(("unix", path)) if path.starts_with('/') => {
                    Some(DockerHost::Socket(PathBuf::from(path)))
                }
                Some(("tcp", rest)) => Some(DockerHost::Url(format!("http://{rest}"))),
                Some(("http" | "https", _)) => Some(DockerHost::Url(as_text(&value)?.to_owned())),
                _ => value.wrong(
                    "must be `unix:///run/podman/podman.sock`, `http://host:2375` or `https://host:2376`",
                ),
            };
        }
        table.finish();
    }
    let host = host?;
    if let DockerHost::Socket(_) = host {
        of_this_machine(&place, context, "is on the machine of the monitor")?;
    }
    let probed = place.check(DockerProbe::new(host, name, AGENT, reach?))?;
    Some(probe("docker", probed))
}

pub(super) fn systemd(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<Kind> {
    let (place, mut table) = target(value, "unit")?;
    of_this_machine(&place, context, "is on the machine of the monitor")?;
    let reach = reach(None, context, settings, "", &place);
    let unit = as_text(&place)?;
    if !is_unit(unit) {
        return place.wrong("is not the name of a unit with its type, such as `nginx.service`");
    }
    let mut states = Some(vec![
        UnitState::Active,
        UnitState::Reloading,
        UnitState::Activating,
    ]);
    let mut bus = PathBuf::from(SYSTEM_BUS);
    if let Some(table) = &mut table {
        if let Some(value) = table.take_value("states") {
            let named = value.elements().into_iter().map(|one| {
                let text = as_text(&one)?;
                UnitState::named(text).or_else(|| {
                    let known = UnitState::ALL.map(|(name, _)| name).join(", ");
                    one.wrong(format!("`{text}` is none of {known}"))
                })
            });
            states = named.collect();
        }
        bus = file(table, context, "bus").unwrap_or(bus);
    }
    if let Some(table) = table {
        table.finish();
    }
    Some(probe(
        "systemd",
        SystemdProbe::new(unit, states?, bus, reach?),
    ))
}

/// - `leaves_status`: whether conditions judge the status of a call.
pub(super) fn grpc(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
    leaves_status: bool,
) -> Option<Kind> {
    let (url, mut table) = target(value, "url")?;
    let reach = reach(table.as_mut(), context, settings, "h2", &url);
    let (mut headers, mut service, mut call) = (Vec::new(), String::new(), Ok(None));
    if let Some(mut table) = table {
        headers = fields(&mut table)?;
        let given = table.text("service");
        call = self::call(&mut table, context, leaves_status);
        if given.is_some() && matches!(call, Ok(Some(_))) {
            table.wrong(
                "`service` is of the health service, and `method` names another one",
                None,
            );
        }
        service = given.unwrap_or_default();
        table.finish();
    }
    let text = as_text(&url)?;
    let probed = match call.ok()? {
        Some(call) => GrpcProbe::calling(text, call, &headers, reach?),
        None => GrpcProbe::new(text, &service, &headers, true, reach?),
    };
    Some(probe("grpc", url.check(probed)?))
}

/// The call of a method, if there is one.
fn call(
    table: &mut Table<'_>,
    context: &Context,
    leaves_status: bool,
) -> Result<Option<GrpcCall>, Noted> {
    let method = table.take_value("method");
    let body = table.text("body");
    let text = table.take_value("proto");
    let path = file(table, context, "proto_file");
    let Some(method) = method else {
        if body.is_none() && text.is_none() && path.is_none() {
            return Ok(None);
        }
        table.missing("method", "what is called: `package.Service/Method`");
        return Err(Noted);
    };
    let described = match (text, path) {
        (None, None) => None,
        (None, Some(path)) => Some(method.check(GrpcCall::described_in(&path))),
        (Some(value), None) => {
            Some(as_text(&value).and_then(|text| value.check(GrpcCall::described_by(text))))
        }
        (Some(value), Some(_)) => Some(value.wrong("has no place beside `proto_file`")),
    };
    let described = described.map(|described| described.ok_or(Noted));
    let described = described.transpose()?;
    let body = body.as_deref().unwrap_or("{}");
    let call = as_text(&method)
        .map(|name| GrpcCall::new(name, body, described.as_ref(), leaves_status))
        .and_then(|call| method.check(call));
    call.map(Some).ok_or(Noted)
}
