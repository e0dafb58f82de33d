//! Settings that a `[[listen]]` and a `[[route]]` share.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};

use crate::config::Context;
use crate::config::address::networks;
use crate::config::document::{Table, Value, as_text};
use crate::config::guards::{basic_auth, certificate_rule, guards};
use crate::config::map::template;
use crate::config::route::{field, not_of_server, placed_field};
use crate::middleware::{
    Addresses, AttributeRewrite, Bandwidth, Coding, Compress, CookieRule, Cors, FieldRewrite,
    FieldValue, HeaderRules, InFlightLimit, InFlightPlan, LimitKey, Middleware, OriginPattern,
    Origins, RateLimit, RatePlan, RequestIds, SameSite, SecurityHeaders, Trace,
};
use crate::place::location::LocationTemplate;
use crate::place::{Maps, Moment};

/// Clients that a limit keeps apart by default.
const CLIENTS: usize = 100_000;

/// The longest content that is kept for places.
const MOST_READ: u64 = 1024 * 1024;

/// Where layers are: at a listener or a route.
pub(super) struct Placement<'p> {
    /// `listener` or `route`, which clients see of limits.
    pub(super) name: &'static str,
    /// What the listener or the route is called in metrics.
    pub(super) called: &'p str,
    /// By which state that survives a reload is found.
    pub(super) identity: &'p str,
    /// The prefix of the paths.
    pub(super) prefix: &'p str,
}

/// Takes the keys of all layers out of `table`.
pub(super) fn compile(
    table: &mut Table<'_>,
    context: &Context<'_>,
    placement: &Placement<'_>,
) -> Middleware {
    let (place, identity) = (placement.name, placement.identity);
    let guards = guards(table, context, placement);
    let read_content = read_content(table);
    let mut layer = |key| table.take_value(key);
    let request_id = layer("request_id");
    let trace = layer("trace");
    let response_headers = layer("response_headers");
    let security = layer("security_headers");
    let cors_value = layer("cors");
    let addresses_value = layer("addresses");
    let limit = layer("rate_limit");
    let in_flight = layer("in_flight_limit");
    let certificate = layer("client_certificate");
    let auth = layer("basic_auth");
    let bandwidth_value = layer("bandwidth");
    let satisfy = layer("satisfy");
    let request_headers = layer("request_headers");
    let compress_value = layer("compress");
    Middleware {
        request_id: request_id
            .and_then(Value::table_or_true)
            .and_then(request_ids)
            .map(Arc::new),
        trace: trace.and_then(Value::table_or_true).map(tracing),
        response_headers: response_headers
            .and_then(|it| response_rules(it, &context.maps))
            .map(Arc::new),
        security_headers: security
            .and_then(Value::table_or_true)
            .map(security_headers)
            .map(Arc::new),
        cors: cors_value.and_then(cors).map(Arc::new),
        addresses: addresses_value.and_then(addresses).map(Arc::new),
        rate_limit: limit
            .and_then(|value| limits(value, |value| rate_limit(value, context, place, identity))),
        in_flight_limit: in_flight
            .and_then(|value| limits(value, |value| in_flight_limit(value, context, identity))),
        client_certificate: certificate
            .and_then(|value| certificate_rule(value, context))
            .map(Arc::new),
        basic_auth: auth
            .and_then(|value| basic_auth(value, context))
            .map(Arc::new),
        guards,
        request_headers: request_headers
            .and_then(|it| request_rules(it, &context.maps))
            .map(Arc::new),
        any_suffices: satisfy.is_some_and(|value| match value.as_str() {
            Some("any") => true,
            Some("all") => false,
            _ => value.wrong::<()>("is \"all\" or \"any\"").is_some(),
        }),
        read_content,
        bandwidth: bandwidth_value.and_then(bandwidth),
        compress: compress_value
            .and_then(Value::table_or_true)
            .map(compress)
            .map(Arc::new),
    }
}

fn request_ids(mut table: Table<'_>) -> Option<RequestIds> {
    let accept = table.boolean("accept").unwrap_or(false);
    let name = match table.take_value("field") {
        None => Some(HeaderName::from_static("x-request-id")),
        Some(value) => as_text(&value).and_then(|text| name(text, &value)),
    };
    table.finish();
    Some(RequestIds {
        field: name?,
        accept,
    })
}

fn tracing(mut table: Table<'_>) -> Trace {
    let accept = table.boolean("accept").unwrap_or(true);
    let sampled = table.count("sampled", 0..=100).unwrap_or(100);
    table.finish();
    Trace {
        accept,
        sampled: u8::try_from(sampled).unwrap_or(100),
    }
}

fn response_rules(value: Value<'_>, maps: &Maps) -> Option<HeaderRules> {
    let mut table = value.table()?;
    let errors = table.boolean("errors").unwrap_or(true);
    let rewrites = table.tables("rewrite").into_iter();
    let rewrite: Vec<_> = rewrites
        .filter_map(|rule| field_rewrite(rule, maps))
        .collect();
    let always = added(&mut table, "always", maps, Moment::Response);
    let cookies = table.tables("cookies").into_iter();
    let cookies: Vec<_> = cookies.filter_map(|rule| cookie_rule(rule, maps)).collect();
    Some(HeaderRules {
        rewrite,
        cookies,
        always,
        skip_errors: !errors,
        ..rules(table, maps, Moment::Response)
    })
}

/// One rule that replaces a part of a response's field.
fn field_rewrite(mut table: Table<'_>, maps: &Maps) -> Option<FieldRewrite> {
    let named = table.take_value("name");
    if named.is_none() {
        table.missing("name", "such as name = \"location\"");
    }
    let (from, to) = from_and_to(&mut table, maps);
    table.finish();
    let name = named.and_then(|value| {
        let name = name(as_text(&value)?, &value)?;
        not_of_server(name, &value)
    });
    Some(FieldRewrite {
        name: name?,
        to: to?,
        from: from?,
    })
}

/// A regular expression, and what replaces what it matches.
fn from_and_to(
    table: &mut Table<'_>,
    maps: &Maps,
) -> (Option<regex::Regex>, Option<LocationTemplate>) {
    let mut needed = |key, example: &str| {
        let value = table.take_value(key);
        if value.is_none() {
            table.missing(key, example);
        }
        value
    };
    let from = needed("from", "such as from = \"^http://10.0.0.1:8080/\"");
    let to = needed("to", "such as to = \"/app/\"");
    let from = from.and_then(|value| expression(&value));
    let to = to.and_then(|value| {
        let text = as_text(&value)?;
        value.check(LocationTemplate::parse(text, from.as_ref(), maps))
    });
    (from, to)
}

fn expression(value: &Value<'_>) -> Option<regex::Regex> {
    let text = as_text(value)?;
    let regex = regex::Regex::new(text);
    value.check(regex.map_err(|_| format!("`{text}` is not a regular expression")))
}

/// One rule for cookies that a response sets.
fn cookie_rule(mut table: Table<'_>, maps: &Maps) -> Option<CookieRule> {
    let cookie = match table.take_value("cookie") {
        None => Some(None),
        Some(value) => expression(&value).map(Some),
    };
    let mut attribute = |key| match table.table(key) {
        None => Some(None),
        Some(table) => attribute_rewrite(table, maps).map(Some),
    };
    let (domain, path) = (attribute("domain"), attribute("path"));
    let (secure, http_only) = (table.boolean("secure"), table.boolean("http_only"));
    let same_site = match table.take_value("same_site") {
        None => Some(None),
        Some(value) => same_site(&value).map(Some),
    };
    table.finish();
    Some(CookieRule {
        cookie: cookie?,
        domain: domain?,
        path: path?,
        secure,
        http_only,
        same_site: same_site?,
    })
}

fn attribute_rewrite(mut table: Table<'_>, maps: &Maps) -> Option<AttributeRewrite> {
    let (from, to) = from_and_to(&mut table, maps);
    table.finish();
    Some(AttributeRewrite {
        from: from?,
        to: to?,
    })
}

fn same_site(value: &Value<'_>) -> Option<SameSite> {
    if value.is_false() {
        return Some(SameSite::Absent);
    }
    match as_text(value)?.to_ascii_lowercase().as_str() {
        "strict" => Some(SameSite::Strict),
        "lax" => Some(SameSite::Lax),
        "none" => Some(SameSite::None),
        other => value.wrong(format!(
            "`{other}` is not known; there are strict, lax, none and false"
        )),
    }
}

fn request_rules(value: Value<'_>, maps: &Maps) -> Option<HeaderRules> {
    value
        .table()
        .map(|table| rules(table, maps, Moment::Request))
}

/// - `moment`: when values with places are filled.
fn rules(mut table: Table<'_>, maps: &Maps, moment: Moment) -> HeaderRules {
    let mut fields = |key| -> Vec<_> {
        let Some(mut table) = table.table(key) else {
            return Vec::new();
        };
        let fields = table.rest_of_fields();
        fields
            .into_iter()
            .filter_map(|(name, value)| placed_field(&name, &value, maps, moment))
            .collect()
    };
    let set = fields("set");
    let add = added(&mut table, "add", maps, moment);
    let remove = table
        .take_value("remove")
        .and_then(names)
        .unwrap_or_default();
    table.finish();
    HeaderRules {
        rewrite: Vec::new(),
        cookies: Vec::new(),
        always: Vec::new(),
        remove,
        set,
        add,
        skip_errors: false,
    }
}

/// Fields that are added, each with one value or an array of them.
fn added(
    table: &mut Table<'_>,
    key: &'static str,
    maps: &Maps,
    moment: Moment,
) -> Vec<(HeaderName, FieldValue)> {
    let Some(mut table) = table.table(key) else {
        return Vec::new();
    };
    let fields = table.rest_of_fields().into_iter();
    let fields = fields.flat_map(|(name, value)| {
        let values = match value.as_str() {
            Some(_) => vec![value],
            None => value.elements(),
        };
        values.into_iter().map(move |value| (name.clone(), value))
    });
    let fields = fields.filter_map(|(name, value)| placed_field(&name, &value, maps, moment));
    fields.collect()
}

fn name(text: &str, value: &Value<'_>) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes());
    value.check(name.map_err(|_| format!("`{text}` is not the name of a header field")))
}

fn names(value: Value<'_>) -> Option<Vec<HeaderName>> {
    let texts = value.texts_with(|text| {
        HeaderName::from_bytes(text.as_bytes())
            .err()
            .map(|_| format!("`{text}` is not the name of a header field"))
    })?;
    let names = texts
        .iter()
        .map(|text| HeaderName::from_bytes(text.as_bytes()));
    names.collect::<Result<_, _>>().ok()
}

/// The preset, of which a table changes values or, by `false`, leaves fields out.
fn security_headers(mut table: Table<'_>) -> SecurityHeaders {
    let mut headers = SecurityHeaders::default();
    for (name, value) in table.rest_of_fields() {
        let known = name.to_ascii_lowercase();
        if !SecurityHeaders::names().any(|name| name == known) {
            let names: Vec<_> = SecurityHeaders::names().collect();
            let hint = format!(
                "there are {}; others are set by `response_headers`",
                names.join(", ")
            );
            value.wrong_with::<()>("is no field of the preset", Some(hint));
            continue;
        }
        if value.is_false() {
            headers = headers.with(&known, None);
        } else if let Some((_, value)) = field(&name, &value) {
            headers = headers.with(&known, Some(value));
        }
    }
    headers
}

fn cors(value: Value<'_>) -> Option<Cors> {
    let mut table = value.table()?;
    let origins = match table.take_value("origins") {
        None => {
            table.missing(
                "origins",
                "such as origins = [\"https://example.org\"], or \"*\"",
            );
            None
        }
        Some(value) => value.texts_with(|text| {
            let is_origin = OriginPattern::parse(text).is_some();
            (text != "*" && !is_origin).then(|| {
                format!(
                    "`{text}` is not an origin, such as https://example.org:8443 or https://*.example.org, without a path"
                )
            })
        }),
    };
    let mut list = |key: &'static str| {
        let names = table.take_value(key).and_then(names)?;
        let names: Vec<_> = names.iter().map(HeaderName::as_str).collect();
        HeaderValue::try_from(names.join(", ")).ok()
    };
    let (headers, expose) = (list("headers"), list("expose"));
    let methods = table.take_value("methods").and_then(|value| {
        let methods = value.texts_with(|text| {
            let is_method = !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
            (!is_method).then(|| format!("`{text}` is not a method, such as PUT"))
        })?;
        HeaderValue::try_from(methods.join(", ")).ok()
    });
    let credentials = table.boolean("credentials").unwrap_or(false);
    let max_age = table.duration("max_age");
    let is_any = origins
        .as_ref()
        .is_some_and(|origins| origins.iter().any(|origin| origin == "*"));
    if is_any && credentials {
        let hint = "name the origins, or leave `credentials` out".to_owned();
        table.wrong("browsers do not send credentials to `*`", Some(hint));
    }
    table.finish();
    Some(Cors {
        origins: if is_any {
            Origins::Any
        } else {
            let origins = origins?;
            let patterns = origins.iter().filter_map(|it| OriginPattern::parse(it));
            Origins::Only(patterns.collect())
        },
        methods,
        headers,
        expose,
        credentials,
        max_age: max_age.map(|age| age.as_secs()),
    })
}

/// Networks that are let in or kept out; one list is needed.
pub fn addresses(value: Value<'_>) -> Option<Addresses> {
    let mut table = value.table()?;
    let (allow, deny) = (table.take_value("allow"), table.take_value("deny"));
    if allow.is_none() && deny.is_none() {
        table.missing(
            "allow",
            "such as allow = [\"10.0.0.0/8\"], or deny = [\"192.0.2.7\"]",
        );
    }
    let mut list = |key: &str, value: Option<Value<'_>>| {
        let Some(value) = value else {
            return Some(Vec::new());
        };
        let networks = networks(value)?;
        if networks.is_empty() {
            // Without networks everybody would be let in.
            table.wrong(format!("`{key}` names no network"), None);
        }
        Some(networks)
    };
    let (allow, deny) = (list("allow", allow), list("deny", deny));
    table.finish();
    Some(Addresses::new(&allow?, &deny?))
}

/// A limit, or an array of them.
fn limits<T>(
    value: Value<'_>,
    limit: impl FnMut(Value<'_>) -> Option<Arc<T>>,
) -> Option<Arc<[Arc<T>]>> {
    let values = if value.is_table() {
        vec![value]
    } else {
        value.elements()
    };
    let limits: Vec<_> = values.into_iter().map(limit).collect();
    limits.into_iter().collect()
}

/// The limit that was there before, if it says the same.
fn rate_limit(
    value: Value<'_>,
    context: &Context<'_>,
    place: &'static str,
    identity: &str,
) -> Option<Arc<RateLimit>> {
    let mut table = value.table()?;
    let requests = table.count("requests", 1..=10_000_000);
    if requests.is_none() && !table.was_given("requests") {
        table.missing("requests", "such as requests = 100, per = \"1m\"");
    }
    let per = table.duration("per").unwrap_or(Duration::from_secs(1));
    if per.is_zero() {
        table.wrong("`per` must be longer than nothing", None);
    }
    let burst = table.count("burst", 1..=10_000_000);
    let at_once = table.count("at_once", 1..=10_000_000);
    let refusal = refusal(&mut table, StatusCode::TOO_MANY_REQUESTS);
    let clients = table.count("clients", 1..=10_000_000).unwrap_or(CLIENTS);
    let key = limit_key(&mut table, context);
    table.finish();
    let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
    let plan = RatePlan {
        name: place,
        key: key?,
        requests: number(requests?),
        window: per,
        burst: burst.map(number),
        at_once: at_once.map(number),
        status: refusal,
        clients,
    };
    let identity = format!("{identity} {plan:?}");
    let states = &context.compiler.states;
    Some(states.state(&identity, || RateLimit::new(plan.clone())))
}

/// The limit that was there before, if it says the same.
fn in_flight_limit(
    value: Value<'_>,
    context: &Context<'_>,
    identity: &str,
) -> Option<Arc<InFlightLimit>> {
    let mut table = value.table()?;
    let requests = table.count("requests", 1..=10_000_000);
    if requests.is_none() && !table.was_given("requests") {
        table.missing("requests", "such as requests = 10");
    }
    let refusal = refusal(&mut table, StatusCode::SERVICE_UNAVAILABLE);
    let key = limit_key(&mut table, context);
    table.finish();
    let plan = InFlightPlan {
        key: key?,
        requests: u32::try_from(requests?).unwrap_or(u32::MAX),
        status: refusal,
    };
    let identity = format!("{identity} {plan:?}");
    let states = &context.compiler.states;
    Some(states.state(&identity, || InFlightLimit::new(plan.clone())))
}

/// The status of what is beyond a limit.
pub(super) fn refusal(table: &mut Table<'_>, usual: StatusCode) -> StatusCode {
    let status = table.count("status", 400..=599);
    let status = status.and_then(|it| u16::try_from(it).ok());
    let status = status.and_then(|it| StatusCode::from_u16(it).ok());
    status.unwrap_or(usual)
}

/// What distinguishes clients: their address, if nothing is given.
fn limit_key(table: &mut Table<'_>, context: &Context<'_>) -> Option<LimitKey> {
    let Some(value) = table.take_value("key") else {
        return Some(LimitKey::Address);
    };
    match as_text(&value)? {
        "address" => Some(LimitKey::Address),
        "all" => Some(LimitKey::All),
        text if text.contains('{') => {
            template(&value, &context.maps, Moment::Request).map(LimitKey::Template)
        }
        text => match text.strip_prefix("header:") {
            Some(text) => name(text.trim(), &value).map(LimitKey::Header),
            None => value.wrong(format!(
                "`{text}` is not known; there are address, all, header:NAME and texts with places, such as {{cookie:id}}"
            )),
        },
    }
}

/// `"16KiB"`; each request in flight may hold so much.
fn read_content(table: &mut Table<'_>) -> Option<usize> {
    let most = table.bytes("read_content")?;
    if most == 0 || most > MOST_READ {
        table.wrong("`read_content` is 1 byte to 1 MiB", None);
        return None;
    }
    usize::try_from(most).ok()
}

/// `{ rate = "1MiB", after = "10MiB" }`.
fn bandwidth(value: Value<'_>) -> Option<Bandwidth> {
    let mut table = value.table()?;
    let rate = table.bytes("rate");
    match rate {
        None if !table.was_given("rate") => {
            table.missing("rate", "bytes per second, such as rate = \"1MiB\"");
        }
        Some(0) => table.wrong("`rate` must be more than nothing", None),
        _ => {}
    }
    let after = table.bytes("after").unwrap_or(0);
    table.finish();
    Some(Bandwidth { rate: rate?, after })
}

fn compress(mut table: Table<'_>) -> Compress {
    let mut compress = Compress::default();
    if let Some(value) = table.take_value("codings") {
        let coding = |text: &str| Coding::ALL.into_iter().find(|it| it.name() == text);
        let codings = value.texts_with(|text| {
            coding(text)
                .is_none()
                .then(|| format!("`{text}` is not known; there are zstd, br and gzip"))
        });
        if let Some(codings) = codings {
            compress.codings = codings.iter().filter_map(|text| coding(text)).collect();
        }
    }
    if let Some(value) = table.take_value("types") {
        let types = value.texts_with(|text| {
            let is_type =
                text.matches('*').count() <= 1 && (text.contains('/') || text.starts_with('*'));
            (!is_type).then(|| {
                format!("`{text}` is not a media type, such as text/html, text/* or *+json")
            })
        });
        compress.types = types.unwrap_or_default();
    }
    if let Some(least) = table.bytes("least") {
        compress.least = least;
    }
    table.finish();
    compress
}
