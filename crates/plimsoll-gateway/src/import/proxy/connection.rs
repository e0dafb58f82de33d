//! How servers are reached: times, buffers, retries and TLS.

use plimsoll_model::document::toml_string;

use crate::import::Notes;
use crate::import::scope::Scope;
use crate::import::toml::Keys;
use crate::import::upstreams::{bytes, duration};

/// The timeouts of a location, which a route may have of its own.
pub(super) fn timeouts(scope: &Scope<'_>, notes: &mut Notes) -> Keys {
    let mut keys = Keys::default();
    let time_of = |name: &str| scope.last(name).and_then(|it| duration(it.argument(0)));
    let send = scope.last("proxy_send_timeout");
    if let Some(send) =
        send.filter(|_| time_of("proxy_send_timeout") != time_of("proxy_read_timeout"))
    {
        notes.add(
            send,
            "left out: `response_timeout` is the time for both directions",
        );
    }
    for name in ["proxy_read_timeout", "grpc_read_timeout"] {
        if let Some(time) = scope.last(name).and_then(|it| duration(it.argument(0))) {
            keys.text("response_timeout", &time);
            keys.text("idle_timeout", &time);
        }
    }
    keys
}

/// Bytes of a response that are read ahead, where the file says so.
pub(super) fn buffered_response(scope: &Scope<'_>) -> Option<u64> {
    /// Eight buffers of 8 KiB, as nginx has them.
    const USUAL: u64 = 64 * 1024;
    let buffering = scope.last("proxy_buffering");
    let buffers = scope.last("proxy_buffers");
    if buffering.is_some_and(|it| it.argument(0) != "on") {
        return None;
    }
    let buffers = buffers.and_then(|it| {
        let count = it.argument(0).parse::<u64>().ok()?;
        count.checked_mul(bytes(it.argument(1))?)
    });
    buffers
        .filter(|it| *it > 0)
        .or_else(|| buffering.map(|_| USUAL))
}

/// The time to connect, retries and TLS, which belong to the upstream.
pub(super) fn connection(scope: &Scope<'_>, notes: &mut Notes) -> Keys {
    let mut keys = Keys::default();
    let connect = scope.last("proxy_connect_timeout");
    if let Some(time) = connect.and_then(|it| duration(it.argument(0))) {
        keys.text("connect_timeout", &time);
    }
    if let Some(retry) = retry(scope, notes) {
        keys.set("retry", retry);
    }
    let tls = tls_to_servers(scope, is_https(scope), notes);
    if !tls.is_empty() {
        keys.set("tls", tls.inline());
    }
    keys
}

/// The table `tls` of an upstream.
///
/// - `is_used`: servers are reached over TLS.
pub(in crate::import) fn tls_to_servers(
    scope: &Scope<'_>,
    is_used: bool,
    notes: &mut Notes,
) -> Keys {
    let is_verified = scope.is("proxy_ssl_verify", "on");
    let file = scope.last("proxy_ssl_trusted_certificate");
    let name = scope.last("proxy_ssl_name");
    let name = name.or_else(|| scope.last("grpc_ssl_name"));
    let identity = scope.last("proxy_ssl_certificate");
    let identity = identity.zip(scope.last("proxy_ssl_certificate_key"));
    // An empty one takes back that of a block around it.
    let identity = identity.filter(|(file, _)| !file.argument(0).is_empty());
    let mut tls = Keys::default();
    if !is_used {
        return tls;
    }
    // nginx does not verify servers unless it is to.
    match file {
        Some(file) if is_verified => tls.text("ca", file.argument(0)),
        _ if !is_verified => tls.set("insecure", "true"),
        _ => {}
    }
    if let Some(directive) = name {
        match directive.argument(0) {
            name if name.contains('$') => notes.add(
                directive,
                "left out: the name of the server depends on the request",
            ),
            name => tls.text("server_name", name),
        }
    }
    if let Some((file, key)) = identity {
        if file.argument(0).contains('$') || key.argument(0).contains('$') {
            notes.add(file, "left out: the certificate depends on the request");
        } else {
            tls.text("cert", file.argument(0));
            tls.text("key", key.argument(0));
        }
    }
    tls
}

/// The key `retry` of an upstream, if a directive limits the retries on other servers.
fn retry(scope: &Scope<'_>, notes: &mut Notes) -> Option<String> {
    let directive = scope.last("proxy_next_upstream");
    let limit = scope.last("proxy_next_upstream_tries");
    let given = directive.map(|it| it.arguments.as_slice());
    // As nginx has it.
    let usual = ["error".to_owned(), "timeout".to_owned()];
    let given = match (given, limit) {
        (None, None) => return None,
        (given, _) => given.unwrap_or(&usual),
    };
    let conditions = given.iter().filter_map(|it| match it.as_str() {
        "error" => Some("\"connect\", \"reset\"".to_owned()),
        "timeout" => Some("\"timeout\"".to_owned()),
        it => it
            .strip_prefix("http_")
            .filter(|it| is_error(it))
            .map(toml_string),
    });
    let conditions: Vec<_> = conditions.collect();
    if let Some(directive) = directive {
        for other in given {
            let is_condition = ["error", "timeout", "off"].contains(&other.as_str());
            if other == "non_idempotent" {
                notes.add(
                    directive,
                    "`non_idempotent` is left out: such requests are sent once; nginx would repeat them",
                );
            } else if !is_condition && !other.strip_prefix("http_").is_some_and(is_error) {
                notes.add(
                    directive,
                    format!("`{other}` is left out: nginx would try another server for this too"),
                );
            }
        }
    }
    let tries = limit.and_then(|it| it.argument(0).parse::<u32>().ok());
    let tries = tries.unwrap_or(2);
    if given.first().is_some_and(|it| it == "off") || tries == 1 {
        return Some("false".to_owned());
    }
    let retries = tries.saturating_sub(1).clamp(1, 10);
    let on = conditions.join(", ");
    (!conditions.is_empty()).then(|| format!("{{ retries = {retries}, on = [{on}] }}"))
}

/// Whether a status is one for which requests are repeated.
fn is_error(status: &str) -> bool {
    status.len() == 3
        && status
            .parse()
            .is_ok_and(|it: u16| (400..=599).contains(&it))
}

fn is_https(scope: &Scope<'_>) -> bool {
    let pass = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass"));
    pass.is_some_and(|it| {
        it.argument(0).starts_with("https://") || it.argument(0).starts_with("grpcs://")
    })
}
