//! Kinds for what lies below the web: ports, packets, certificates and names.

use std::sync::Mutex;
use std::time::Duration;

use plimsoll_model::document::{Table, Value, as_text};
use regex::Regex;
use url::Url;

use crate::config::file::Context;
use crate::config::kinds::reach::reach;
use crate::config::kinds::{Kind, probe, target};
use crate::config::monitor::Defaults;
use crate::probe::{
    DnsProbe, DnsRecord, DomainProbe, IcmpProbe, Reach, SshProbe, TalkProbe, TalkStep, TcpProbe,
    TcpTarget, TlsProbe, UdpProbe,
};

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

pub(super) fn tcp_target(
    place: &Value<'_>,
    is_tls: bool,
    default: Option<u16>,
) -> Option<TcpTarget> {
    let text = as_text(place)?;
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let target = place.check(TcpTarget::parse(text, is_tls, default.unwrap_or(0)))?;
    if target.endpoint().port() == 0 {
        return place.wrong("has no port; write `host:port`");
    }
    Some(target)
}

pub(super) fn tcp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
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

pub(super) fn udp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
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

pub(super) fn icmp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (target, _, reach) = port(value, false, Some(1), context, settings)?;
    Some(probe("icmp", IcmpProbe { target, reach }))
}

pub(super) fn ssh(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (target, _, reach) = port(value, false, Some(22), context, settings)?;
    Some(probe("ssh", SshProbe { target, reach }))
}

type Expiry = (Option<Duration>, Option<Duration>);

/// When a certificate is about to expire.
pub(super) fn expiry(table: Option<&mut Table<'_>>) -> Expiry {
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

pub(super) fn tls(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
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

pub(super) fn dns(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
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

pub(super) fn domain(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
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
