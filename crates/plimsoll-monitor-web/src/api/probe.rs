//! `/probe`: one check of a target that the request names, as Prometheus's `blackbox_exporter` answers it.
//!
//! Names of modules and metrics are those of `blackbox_exporter`, where it has them. A client that may probe reaches what this
//! process reaches, so a token with the scope `write` is needed, and `allow_private = false` holds here too.

use std::time::Duration;

use axum::extract::{RawQuery, State};
use http::HeaderMap;
use plimsoll_model::{MetricsText, Phase};
use plimsoll_monitor::config::overlay;
use plimsoll_monitor::detect::status::Status;
use plimsoll_monitor::probe::reading::CheckResult;
use toml::{Table, Value};

use crate::answer::{Answer, ApiError, with_type};
use crate::api::metrics::Page;
use crate::api::query::Query;
use crate::state::Api;

/// Names of metrics; each once.
mod names {
    pub(super) const SUCCESS: &str = "probe_success";
    pub(super) const DURATION: &str = "probe_duration_seconds";
    pub(super) const LOOKUP: &str = "probe_dns_lookup_time_seconds";
    pub(super) const PHASES: &str = "probe_http_duration_seconds";
    pub(super) const STATUS: &str = "probe_http_status_code";
    pub(super) const TLS: &str = "probe_http_ssl";
    pub(super) const EXPIRY: &str = "probe_ssl_earliest_cert_expiry";
}

/// A module: its name, and what it makes of a target.
type Module = (&'static str, fn(&str) -> Table);

const MODULES: [Module; 7] = [
    ("http_2xx", |target| http(target, "GET")),
    ("http_post_2xx", |target| http(target, "POST")),
    ("tcp_connect", |target| plain("tcp", target)),
    ("tls_connect", |target| plain("tls", target)),
    ("ssh_banner", |target| plain("ssh", target)),
    ("icmp", |target| plain("icmp", target)),
    ("grpc", |target| plain("grpc", target)),
];

/// The phases of `blackbox_exporter`, and ours.
const PHASES: [(&str, Phase); 5] = [
    ("resolve", Phase::Dns),
    ("connect", Phase::Connect),
    ("tls", Phase::Tls),
    ("processing", Phase::Wait),
    ("transfer", Phase::Receive),
];

/// How long before the end of a scrape the answer is given, in seconds, as `blackbox_exporter` does.
const MARGIN: f64 = 0.5;

/// The longest probe, in seconds: that of any monitor without a timeout of its own.
const LONGEST: f64 = 10.0;

pub(super) async fn probe(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    fields: HeaderMap,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let target = query.take_text("target").unwrap_or_default();
    let module = query
        .take_text("module")
        .unwrap_or_else(|| "http_2xx".to_owned());
    query.finish()?;
    if target.is_empty() {
        return Err(ApiError::invalid("target", "is missing"));
    }
    let grounds = api.handle.board.grounds();
    // Those of the configuration may have the names of ours.
    let of_file = grounds.modules.get(&module);
    let built_in = MODULES.iter().find(|(name, _)| *name == module);
    let (mut table, is_http) = match (of_file, built_in) {
        (Some(module), _) => (module.definition(&target), module.is_http()),
        (None, Some((name, table))) => (table(&target), name.starts_with("http")),
        (None, None) => {
            let built_in = MODULES.iter().map(|(name, _)| *name);
            let mut names: Vec<_> = grounds.modules.names().chain(built_in).collect();
            names.sort_unstable();
            names.dedup();
            let message = format!("`{module}` is not one of {}", names.join(", "));
            return Err(ApiError::invalid("module", message));
        }
    };
    let most = table.get("timeout").and_then(Value::as_str);
    let most = most.and_then(|text| plimsoll_model::parse_duration(text).ok());
    table.insert("name".to_owned(), "probe".into());
    table.insert("timeout".to_owned(), timeout(&fields, most).into());
    let plan = match overlay::of_configuration(&table.to_string(), &grounds) {
        Ok(plan) => plan,
        Err(problems) => {
            let first = problems.first().map(ToString::to_string);
            return Err(ApiError::invalid("target", first.unwrap_or_default()));
        }
    };
    let result = api.handle.try_out(plan).await?;
    let content = page(&result, is_http).text();
    Ok(with_type(content, MetricsText::MEDIA_TYPE))
}

fn page(result: &CheckResult, is_http: bool) -> Page {
    let mut page = Page::default();
    let mut gauge = |name, help, labels: &[(&str, &str)], value| {
        page.add(name, "gauge", help, labels, value);
    };
    let is_up = matches!(result.status, Status::Up | Status::Degraded);
    let as_number = |holds: bool| f64::from(u8::from(holds));
    gauge(
        names::SUCCESS,
        "Whether the probe succeeded",
        &[],
        as_number(is_up),
    );
    gauge(
        names::DURATION,
        "How long the probe took, in seconds",
        &[],
        result.took.as_secs_f64(),
    );
    let seconds = |phase| result.phases.get(phase).unwrap_or_default().as_secs_f64();
    gauge(
        names::LOOKUP,
        "How long the name lookup took, in seconds",
        &[],
        seconds(Phase::Dns),
    );
    if is_http {
        for (name, phase) in PHASES {
            gauge(
                names::PHASES,
                "Duration of the phases of the request, in seconds",
                &[("phase", name)],
                seconds(phase),
            );
        }
        gauge(
            names::STATUS,
            "The status of the response; 0 without one",
            &[],
            f64::from(result.code.unwrap_or(0)),
        );
        gauge(
            names::TLS,
            "Whether TLS was used",
            &[],
            as_number(result.certificate_expires.is_some()),
        );
    }
    if let Some(expires) = result.certificate_expires {
        gauge(
            names::EXPIRY,
            "When the server's own certificate expires, in seconds since 1970",
            &[],
            expires.0 as f64 / 1000.0,
        );
    }
    page
}

fn http(target: &str, method: &str) -> Table {
    let url = if target.contains("://") {
        target.to_owned()
    } else {
        format!("http://{target}")
    };
    let mut request = Table::new();
    request.insert("url".to_owned(), url.into());
    request.insert("method".to_owned(), method.into());
    let mut table = Table::new();
    table.insert("http".to_owned(), Value::Table(request));
    table
}

fn plain(kind: &str, target: &str) -> Table {
    let mut table = Table::new();
    table.insert(kind.to_owned(), target.into());
    table
}

/// Shorter than the time that Prometheus waits, which it names.
///
/// - `most`: the timeout of the module.
fn timeout(fields: &HeaderMap, most: Option<Duration>) -> String {
    let named = fields.get("x-prometheus-scrape-timeout-seconds");
    let named = named.and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let longest = most.map_or(LONGEST, |most| most.as_secs_f64());
    let left = named.map_or(longest, |named| {
        (named - MARGIN).clamp(0.1, longest.max(0.1))
    });
    format!("{}ms", (left * 1000.0).round())
}
