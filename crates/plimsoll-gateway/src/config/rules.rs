//! Rules of a route's `proxy` beyond what a server sees: limits, pages, faults, other upstreams.

use std::fs;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use plimsoll_client::forward::Speaks;
use plimsoll_server::StatusPattern;
use plimsoll_server::config::{Mounted, Table, Value, as_text};
use plimsoll_wire::http::NormalPath;
use regex::Regex;

use super::proxy::upstream_of;
use crate::forward::{
    ErrorPage, ErrorPages, Fault, ForwardPlan, FrameLimits, Rewrite, Upgrades, WebSocketPlan,
    WebSockets,
};
use crate::upstream::UpstreamPlan;

/// Limits, pages, faults and rewrites; false if anything is wrong.
pub(super) fn compile(
    table: &mut Table<'_>,
    mounted: &Mounted<'_>,
    plan: &mut ForwardPlan,
) -> bool {
    let mut is_whole = true;
    plan.request_limit = table.bytes("max_request");
    plan.request_buffer = table.bytes("buffer_request");
    plan.response_buffer = table.bytes("buffer_response");
    plan.response_limit = table.bytes("max_response");
    if let Some(value) = table.take_value("rewrite") {
        let rewrites = rewrites(value);
        is_whole &= rewrites.is_some();
        plan.rewrites = rewrites.unwrap_or_default();
    }
    if let Some(pages) = table.table("error_pages") {
        let pages = error_pages(pages, mounted);
        is_whole &= pages.is_some();
        plan.error_pages = pages.unwrap_or_default();
    }
    let intercepts = table.boolean("intercept_errors").unwrap_or(false);
    let has_pages = !plan.error_pages.pages.is_empty() || mounted.leads_on;
    if intercepts && !has_pages && is_whole {
        table.wrong(
            "`intercept_errors` has no pages to send",
            Some(
                "give error_pages = { 5xx = { file = \"error.html\" } }, or the route `on_status`"
                    .to_owned(),
            ),
        );
        is_whole = false;
    }
    plan.intercepts = intercepts;
    plan.error_pages.intercepts = intercepts;
    plan.hands_over = table.boolean("accel_redirect").unwrap_or(false);
    if plan.hands_over {
        mounted.hands_over();
    }
    plan.grpc_health = table.boolean("grpc_health").unwrap_or(false);
    plan.grpc_timeout = table.duration("grpc_timeout");
    if let Some(value) = table.take_value("websocket") {
        let websocket = websocket(value);
        is_whole &= websocket.is_some();
        plan.websocket = websocket.unwrap_or_default();
    }
    if let Some(value) = table.take_value("upgrades") {
        let has_limits = table.was_given("websocket") && plan.websocket != WebSockets::Rejected;
        let upgrades = upgrades(value, plan);
        is_whole &= upgrades.is_some();
        if has_limits && plan.websocket == WebSockets::Rejected {
            let hint = "upgrades = [\"websocket\", …]";
            table.wrong("`websocket` is not among `upgrades`", Some(hint.to_owned()));
            is_whole = false;
        }
        plan.upgrades = upgrades.unwrap_or_default();
    }
    if let Some(value) = table.take_value("fault") {
        let fault = value.table().and_then(fault);
        is_whole &= fault.is_some();
        plan.fault = fault;
    }
    is_whole
}

/// `{ from, to }` or an array of them.
fn rewrites(value: Value<'_>) -> Option<Vec<Rewrite>> {
    let values = if value.is_table() {
        vec![value]
    } else {
        value.elements()
    };
    let rewrites: Vec<_> = values.into_iter().map(rewrite).collect();
    rewrites.into_iter().collect()
}

fn rewrite(value: Value<'_>) -> Option<Rewrite> {
    let mut table = value.table()?;
    let from = table.take_value("from");
    if from.is_none() {
        table.missing(
            "from",
            "a regular expression, such as from = \"^/v1/(.*)$\"",
        );
    }
    let from = from.and_then(|value| {
        let parsed = Regex::new(as_text(&value)?);
        value.check(parsed.map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            format!("is not a regular expression: {reason}")
        }))
    });
    let to = table.take_value("to");
    if to.is_none() {
        table.missing("to", "what replaces it, such as to = \"/$1\"");
    }
    let to = to.and_then(|value| {
        let text = as_text(&value)?.to_owned();
        let is_text = text.bytes().all(|it| it.is_ascii_graphic() && it != b'#');
        if !is_text {
            return value
                .wrong("contains a blank, `#` or a character beyond ASCII: escape it by %");
        }
        let path = text.split('?').next().unwrap_or_default();
        if !path.contains('$') && NormalPath::parse(path).is_err() {
            return value.wrong("begins with a slash and has no `..`");
        }
        Some(text)
    });
    table.finish();
    let (from, to) = (from?, to?);
    Some(Rewrite { from, to })
}

/// `false`, `true`, or a table with limits.
fn websocket(value: Value<'_>) -> Option<WebSockets> {
    if value.is_false() {
        return Some(WebSockets::Rejected);
    }
    let mut table = value.table_or_true()?;
    let default = WebSocketPlan::default();
    let plan = WebSocketPlan {
        idle_timeout: table
            .duration("idle_timeout")
            .unwrap_or(default.idle_timeout),
        limits: FrameLimits {
            message: table.bytes("max_message"),
            pings: table
                .count("pings", 1..=1_000_000)
                .and_then(|pings| u32::try_from(pings).ok()),
        },
        is_followed: true,
    };
    if plan.idle_timeout.is_zero() {
        table.wrong("`idle_timeout` must be above zero", None);
        return None;
    }
    table.finish();
    Some(WebSockets::Forwarded(plan))
}

/// `"any"`, or names of protocols, `websocket` among them if WebSockets are to be forwarded.
fn upgrades(value: Value<'_>, plan: &mut ForwardPlan) -> Option<Upgrades> {
    let is_rejected = plan.websocket == WebSockets::Rejected;
    if value.as_str() == Some("any") {
        return Some(Upgrades::Any);
    }
    let mut names = Vec::new();
    let mut is_whole = true;
    for value in value.elements() {
        let name = as_text(&value).and_then(|name| match name {
            "any" => value.wrong("stands alone: upgrades = \"any\""),
            _ if !Upgrades::is_name(name) => {
                value.wrong(format!("`{name}` is not the name of a protocol, such as \"tcp\" or \"SPDY/3.1\""))
            }
            _ if Upgrades::carries_requests(name) => value.wrong_with(
                format!("`{name}` carries requests, which would reach the server past all routes and rules"),
                Some("leave it out; protocol = \"http2\" of the upstream speaks HTTP/2 to the servers".to_owned()),
            ),
            _ if is_rejected && name.eq_ignore_ascii_case("websocket") => {
                value.wrong("`websocket = false` says otherwise")
            }
            name => Some(name.to_owned()),
        });
        is_whole &= name.is_some();
        names.extend(name);
    }
    let is_websocket = |name: &String| name.eq_ignore_ascii_case("websocket");
    if is_whole && !names.iter().any(is_websocket) {
        plan.websocket = WebSockets::Rejected;
    }
    names.retain(|name| !is_websocket(name));
    is_whole.then_some(Upgrades::Named(names))
}

/// Pages by status: `{ 502 = { file = "502.html" }, 5xx = { body = "…", type = "text/plain" } }`.
fn error_pages(mut table: Table<'_>, mounted: &Mounted<'_>) -> Option<ErrorPages> {
    let mut pages = Vec::new();
    let mut is_whole = true;
    for (name, value) in table.rest() {
        let status = StatusPattern::parse(&name).filter(|it| !it.has_redirects());
        let status = value.check(status.ok_or_else(|| {
            format!("`{name}` is not a status from 400 to 599, \"4xx\" or \"5xx\"")
        }));
        let page = value.table().and_then(|table| error_page(table, mounted));
        match status.zip(page) {
            Some(page) => pages.push(page),
            None => is_whole = false,
        }
    }
    is_whole.then(|| ErrorPages {
        pages,
        intercepts: false,
    })
}

fn error_page(mut table: Table<'_>, mounted: &Mounted<'_>) -> Option<ErrorPage> {
    let body = table.text("body");
    let file = table.take_value("file");
    let is_html = file.is_some();
    let content = match (body, file) {
        (Some(_), Some(file)) => file.wrong("`body` is given too"),
        (Some(body), None) => Some(Bytes::from(body)),
        (None, Some(file)) => mounted.paths.read(&file).and_then(|path| {
            let read = fs::read(&path);
            let read = read.map_err(|error| format!("cannot read {}: {error}", path.display()));
            file.check(read).map(Bytes::from)
        }),
        (None, None) => {
            table.missing("body", "the text of the page, or `file`");
            None
        }
    };
    let default = if is_html {
        "text/html; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let content_type = match table.take_value("type") {
        None => Some(HeaderValue::from_static(default)),
        Some(value) => as_text(&value).and_then(|text| {
            value.check(HeaderValue::from_str(text).map_err(|_| "contains a control character"))
        }),
    };
    let status = table.count("status", 200..=599);
    table.finish();
    let status = status.and_then(|status| u16::try_from(status).ok());
    Some(ErrorPage {
        content: content?,
        content_type: content_type?,
        status: status.and_then(|status| StatusCode::from_u16(status).ok()),
    })
}

fn fault(mut table: Table<'_>) -> Option<Fault> {
    let delay = table.duration("delay");
    let delay_share = share(&mut table, "delay_share");
    let abort = table.count("abort", 400..=599);
    let abort_share = share(&mut table, "abort_share");
    let is_empty = delay.is_none() && abort.is_none();
    if is_empty && !table.was_given("delay") && !table.was_given("abort") {
        table.missing("delay", "such as delay = \"200ms\", or abort = 503");
    }
    table.finish();
    let abort = abort.and_then(|status| u16::try_from(status).ok());
    (!is_empty).then(|| Fault {
        delay,
        delay_share,
        abort: abort.and_then(|status| StatusCode::from_u16(status).ok()),
        abort_share,
    })
}

/// A percentage; all unless given.
fn share(table: &mut Table<'_>, key: &'static str) -> u32 {
    let share = table.count(key, 0..=100);
    share.map_or(100, |share| u32::try_from(share).unwrap_or(100))
}

type Shares = Vec<(u32, Arc<UpstreamPlan>)>;

/// `split = { canary = 5 }` and `split_cookie`.
pub(super) fn split(
    table: &mut Table<'_>,
    mounted: &Mounted<'_>,
) -> Option<(Shares, Option<String>)> {
    let mut is_whole = true;
    let mut shares = Vec::new();
    if let Some(mut split) = table.table("split") {
        let mut sum = 0;
        for (name, value) in split.rest() {
            let share = value.to_toml().as_integer();
            let share = share
                .and_then(|it| u32::try_from(it).ok())
                .filter(|it| *it <= 100);
            let Some(share) = share else {
                value.wrong::<()>("is a percentage of requests from 0 to 100");
                is_whole = false;
                continue;
            };
            sum += share;
            if sum > 100 {
                value.wrong::<()>("is with those before it more than 100 percent");
                is_whole = false;
            }
            match upstream_of(&value, &name, &mounted.as_guard(), None) {
                Some(upstream) => shares.push((share, upstream)),
                None => is_whole = false,
            }
        }
    }
    let cookie = table.take_value("split_cookie").map(|value| {
        let name = as_text(&value)?;
        let is_name = HeaderName::from_bytes(name.as_bytes()).is_ok();
        if is_name {
            Some(name.to_owned())
        } else {
            value.wrong("is not a name that a cookie may have")
        }
    });
    let cookie = match cookie {
        None => None,
        Some(cookie) => Some(cookie?),
    };
    is_whole.then_some((shares, cookie))
}

/// The name of an upstream or a URL, or a table with `to` and `share`.
pub(super) fn mirror(value: Value<'_>, mounted: &Mounted<'_>) -> Option<(u32, Arc<UpstreamPlan>)> {
    if !value.is_table() {
        let to = as_text(&value)?;
        let upstream = upstream_of(&value, to, &mounted.as_guard(), None)?;
        if is_application(&upstream) {
            return value.wrong(NO_COPIES);
        }
        return Some((100, upstream));
    }
    let mut table = value.table()?;
    let share = share(&mut table, "share");
    let upstream = to(&mut table, mounted);
    if upstream.as_ref().is_some_and(|it| is_application(it)) {
        table.wrong(NO_COPIES, None);
        return None;
    }
    table.finish();
    Some((share, upstream?))
}

/// Copies have no parameters.
const NO_COPIES: &str = "servers that speak FastCGI or uwsgi get no copies of requests";

pub(super) fn is_application(upstream: &UpstreamPlan) -> bool {
    matches!(upstream.speaks(), Speaks::FastCgi | Speaks::Uwsgi)
}

/// The upstream of `to`.
fn to(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<Arc<UpstreamPlan>> {
    let Some(value) = table.take_value("to") else {
        table.missing("to", "the name of an upstream or a URL");
        return None;
    };
    let target = as_text(&value)?.to_owned();
    upstream_of(&value, &target, &mounted.as_guard(), None)
}
