//! Kinds for the web: HTTP and WebSockets.

use plimsoll_client::check::Condition;
use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::file::Context;
use crate::config::kinds::reach::{proxy, reach, reach_by};
use crate::config::kinds::{Kind, probe, target};
use crate::config::monitor::Defaults;
use crate::probe::{HttpOptions, HttpProbe, WebSocketProbe};

/// The `User-Agent` of checks.
pub(super) const AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

pub(super) fn http(
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
pub(super) fn plain_request(url: &str) -> HttpOptions {
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
pub(super) fn authorise(table: &mut Table<'_>, options: &mut HttpOptions) -> Option<()> {
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

pub(super) fn fields(table: &mut Table<'_>) -> Option<Vec<(String, String)>> {
    let Some(mut headers) = table.table("headers") else {
        return Some(Vec::new());
    };
    let fields = headers
        .rest_of_fields()
        .into_iter()
        .map(|(name, value)| Some((name, value.text()?)));
    fields.collect::<Vec<_>>().into_iter().collect()
}

pub(super) fn websocket(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<Kind> {
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
