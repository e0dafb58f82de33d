//! What becomes of each directive of nginx, in one list: no directive that the parser sees goes without an answer.
//!
//! A name that a translator reads is [`Fate::Read`] at the levels where it does; what makes no difference to clients and
//! servers is [`Fate::Harmless`]. All others are noted by [`report`], and those that keep somebody out close the paths
//! where they hold.

use super::Notes;
use super::nginx::Directive;

/// Where a directive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Outside of `http`.
    Main,
    Http,
    Server,
    Location,
    /// An `if` of a server or a location.
    If,
    LimitExcept,
}

/// What becomes of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A translator reads it, and says what it leaves out.
    Read,
    /// Buffers, processes, caches of descriptors: plimsoll decides by itself.
    Harmless,
    /// It lets in fewer than all, and there is no counterpart: the path is closed.
    Withholds,
    /// There is no counterpart.
    LeftOut,
}

const HTTP: &[Level] = &[Level::Http];
const SERVER: &[Level] = &[Level::Server];
const LOCATION: &[Level] = &[Level::Location];
const CONDITION: &[Level] = &[Level::If];
/// Inherited from `http` and servers.
const ANY: &[Level] = &[Level::Http, Level::Server, Level::Location];
const OF_SERVERS: &[Level] = &[Level::Http, Level::Server];
const OF_REWRITES: &[Level] = &[Level::Server, Level::Location];

/// Names with the levels at which translators read them. The table of tests has an example for each.
pub(super) const READ: &[(&str, &[Level])] = &[
    ("http", &[Level::Main]),
    ("server", HTTP),
    ("upstream", HTTP),
    ("map", HTTP),
    ("geo", HTTP),
    ("split_clients", HTTP),
    ("log_format", HTTP),
    ("access_log", ANY),
    ("default_type", ANY),
    ("stream", &[Level::Main, Level::Http]),
    ("location", OF_REWRITES),
    ("listen", SERVER),
    ("server_name", SERVER),
    ("ssl", SERVER),
    ("ssl_certificate", OF_SERVERS),
    ("ssl_certificate_key", OF_SERVERS),
    ("ssl_verify_client", OF_SERVERS),
    ("ssl_client_certificate", OF_SERVERS),
    ("ssl_trusted_certificate", OF_SERVERS),
    ("client_body_timeout", HTTP),
    ("client_header_timeout", HTTP),
    ("send_timeout", HTTP),
    ("keepalive_timeout", HTTP),
    ("large_client_header_buffers", HTTP),
    ("http2_max_concurrent_streams", HTTP),
    ("underscores_in_headers", OF_SERVERS),
    ("return", OF_REWRITES),
    ("return", CONDITION),
    ("set", OF_REWRITES),
    ("set", CONDITION),
    ("if", OF_REWRITES),
    ("rewrite", OF_REWRITES),
    ("try_files", OF_REWRITES),
    ("internal", LOCATION),
    ("limit_except", LOCATION),
    ("deny", &[Level::LimitExcept]),
    ("alias", LOCATION),
    ("proxy_pass", LOCATION),
    ("grpc_pass", LOCATION),
    ("fastcgi_pass", LOCATION),
    ("uwsgi_pass", LOCATION),
    ("scgi_pass", LOCATION),
    ("memcached_pass", LOCATION),
    ("root", ANY),
    ("autoindex", ANY),
    ("index", ANY),
    ("expires", ANY),
    ("add_header", ANY),
    ("gzip", ANY),
    ("gzip_min_length", ANY),
    ("gzip_types", ANY),
    ("error_page", ANY),
    ("allow", ANY),
    ("deny", ANY),
    ("satisfy", ANY),
    ("auth_basic", ANY),
    ("auth_basic_user_file", ANY),
    ("auth_request", ANY),
    ("auth_request_set", ANY),
    ("mirror", ANY),
    ("limit_req", ANY),
    ("limit_req_zone", HTTP),
    ("limit_req_status", ANY),
    ("limit_req_dry_run", ANY),
    ("limit_conn", ANY),
    ("limit_conn_zone", HTTP),
    ("limit_conn_status", ANY),
    ("limit_conn_dry_run", ANY),
    ("limit_rate", ANY),
    ("limit_rate_after", ANY),
    ("set_real_ip_from", ANY),
    ("real_ip_header", ANY),
    ("real_ip_recursive", HTTP),
    ("client_max_body_size", ANY),
    ("fastcgi_pass_request_headers", ANY),
    ("fastcgi_pass_request_body", ANY),
    ("fastcgi_param", ANY),
    ("fastcgi_index", ANY),
    ("fastcgi_split_path_info", LOCATION),
    ("fastcgi_connect_timeout", ANY),
    ("fastcgi_read_timeout", ANY),
    ("fastcgi_intercept_errors", ANY),
    ("uwsgi_pass_request_headers", ANY),
    ("uwsgi_pass_request_body", ANY),
    ("uwsgi_param", ANY),
    ("uwsgi_modifier1", ANY),
    ("uwsgi_modifier2", ANY),
    ("uwsgi_connect_timeout", ANY),
    ("uwsgi_read_timeout", ANY),
    ("uwsgi_intercept_errors", ANY),
    ("proxy_set_header", ANY),
    ("grpc_set_header", ANY),
    ("proxy_hide_header", ANY),
    ("proxy_redirect", ANY),
    ("proxy_cookie_domain", ANY),
    ("proxy_cookie_path", ANY),
    ("proxy_cookie_flags", ANY),
    ("proxy_pass_request_headers", ANY),
    ("proxy_pass_request_body", ANY),
    ("proxy_http_version", ANY),
    ("proxy_request_buffering", ANY),
    ("charset_types", ANY),
    ("proxy_intercept_errors", ANY),
    ("proxy_connect_timeout", ANY),
    ("proxy_read_timeout", ANY),
    ("proxy_send_timeout", ANY),
    ("grpc_read_timeout", ANY),
    ("proxy_next_upstream", ANY),
    ("proxy_next_upstream_tries", ANY),
    ("proxy_ssl_verify", ANY),
    ("proxy_ssl_trusted_certificate", ANY),
    ("proxy_ssl_certificate", ANY),
    ("proxy_ssl_certificate_key", ANY),
    ("proxy_ssl_name", ANY),
    ("grpc_ssl_name", ANY),
    ("proxy_cache", ANY),
    ("proxy_cache_background_update", ANY),
    ("proxy_cache_bypass", ANY),
    ("proxy_cache_key", ANY),
    ("proxy_cache_path", HTTP),
    ("proxy_cache_use_stale", ANY),
    ("proxy_cache_valid", ANY),
    ("proxy_no_cache", ANY),
];

/// Names, or with a `*` their beginnings, of what changes nothing that a client or a server could tell.
const HARMLESS: &[&str] = &[
    // Processes, logs of errors and modules.
    "user",
    "worker_*",
    "pid",
    "events",
    "error_log",
    "load_module",
    "include",
    "daemon",
    "master_process",
    "thread_pool",
    "pcre_jit",
    "env",
    "lock_file",
    "timer_resolution",
    "accept_mutex*",
    "debug_points",
    "multi_accept",
    "log_not_found",
    "log_subrequest",
    "open_log_file_cache",
    // Memory and system calls.
    "sendfile*",
    "tcp_nopush",
    "tcp_nodelay",
    "aio*",
    "directio*",
    "output_buffers",
    "postpone_output",
    "open_file_cache*",
    "read_ahead",
    "*_hash_max_size",
    "*_hash_bucket_size",
    "request_pool_size",
    "connection_pool_size",
    "client_body_buffer_size",
    "client_body_temp_path",
    "client_body_in_file_only",
    "client_body_in_single_buffer",
    "client_header_buffer_size",
    "lingering_*",
    "reset_timedout_connection",
    "msie_padding",
    "gzip_buffers",
    "gzip_comp_level",
    "gzip_disable",
    "gzip_http_version",
    "gzip_proxied",
    "gzip_vary",
    "proxy_buffers",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_busy_buffers_size",
    "proxy_temp_*",
    "fastcgi_temp_*",
    "fastcgi_buffers",
    "fastcgi_buffer_size",
    "fastcgi_buffering",
    "fastcgi_busy_buffers_size",
    "fastcgi_max_temp_file_size",
    "fastcgi_keep_conn",
    "fastcgi_send_timeout",
    "fastcgi_socket_keepalive",
    "fastcgi_request_buffering",
    "uwsgi_temp_*",
    "uwsgi_buffers",
    "uwsgi_buffer_size",
    "uwsgi_buffering",
    "uwsgi_busy_buffers_size",
    "uwsgi_max_temp_file_size",
    "uwsgi_send_timeout",
    "uwsgi_socket_keepalive",
    "uwsgi_request_buffering",
    "scgi_temp_path",
    "proxy_max_temp_file_size",
    "proxy_socket_keepalive",
    "proxy_send_lowat",
    "proxy_headers_hash_*",
    "proxy_cache_lock*",
    "proxy_cache_min_uses",
    "proxy_cache_revalidate",
    "proxy_ssl_server_name",
    "grpc_ssl_server_name",
    "proxy_ssl_session_reuse",
    "grpc_buffer_size",
    // Of TLS what rustls chooses well.
    "ssl_session_*",
    "ssl_buffer_size",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "ssl_prefer_server_ciphers",
    // Known by themselves: all versions of HTTP, no name of a version in `server`.
    "server_tokens",
    "http2",
    "http3",
    "quic_*",
];

/// Names, or with a `*` their beginnings, of what lets in fewer than all.
const WITHHOLDS: &[&str] = &[
    "access_by_lua*",
    "auth_*",
    "js_access",
    "jwt_*",
    "modsecurity",
    "oidc_*",
    "rewrite_by_lua*",
    "SecRulesEnabled",
    "DeniedUrl",
    "shib_request*",
    "ssl_crl",
    "ssl_reject_handshake",
    "ssl_ocsp",
    "access_rules",
    "spnego*",
];

/// What becomes of a directive at its place.
pub(super) fn fate(directive: &Directive, level: Level) -> Fate {
    let name = directive.name.as_str();
    let is_read = |(known, levels): &(&str, &[Level])| *known == name && levels.contains(&level);
    // `off` turns off what there is not.
    let is_off = matches!(directive.arguments.as_slice(), [only] if only == "off");
    if READ.iter().any(is_read) {
        Fate::Read
    } else if is_one_of(name, HARMLESS) || is_as_here(directive) {
        Fate::Harmless
    } else if is_withholding(directive) {
        Fate::Withholds
    } else if is_off && is_one_of(name, WITHHOLDS) {
        Fate::Harmless
    } else {
        Fate::LeftOut
    }
}

/// Whether a directive has the value that plimsoll has anyway.
fn is_as_here(directive: &Directive) -> bool {
    let mut values = directive.arguments.iter().map(String::as_str);
    match directive.name.as_str() {
        // Those that nginx brings along, by extension.
        "types" => directive
            .block
            .iter()
            .all(|it| it.file.ends_with("mime.types") && !it.file.is_empty()),
        "charset" => values.all(|it| it.eq_ignore_ascii_case("utf-8")),
        "gzip_static" => values.all(|it| it == "on"),
        "proxy_cache_methods" => values.all(|it| matches!(it, "GET" | "HEAD")),
        "proxy_pass_header" => values.all(|it| {
            let passed = ["server", "date"];
            passed.contains(&it.to_ascii_lowercase().as_str())
        }),
        _ => false,
    }
}

/// Ends of names of settings that restrict no client.
const SETTINGS: [&str; 8] = [
    "_cache", "_delay", "_file", "_key", "_leeway", "_size", "_timeout", "_type",
];

/// Whether a directive lets in fewer than all and has no counterpart.
pub(super) fn is_withholding(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    let is_off = matches!(directive.arguments.as_slice(), [only] if only == "off");
    let is_read = READ.iter().any(|(known, _)| *known == name);
    let is_setting = SETTINGS.iter().any(|it| name.ends_with(it));
    !is_off && !is_read && !is_setting && is_one_of(name, WITHHOLDS)
}

fn is_one_of(name: &str, patterns: &[&str]) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.split_once('*') {
            None => *pattern == name,
            Some((before, after)) => name.starts_with(before) && name.ends_with(after),
        })
}

/// Notes each directive of a block that nothing else reads, and of the blocks within it.
pub(super) fn report(block: &[Directive], level: Level, notes: &mut Notes) {
    for directive in block {
        match fate(directive, level) {
            Fate::Harmless => {}
            Fate::Withholds if level == Level::If || level == Level::LimitExcept => {
                notes.left_out(directive);
            }
            Fate::Withholds => notes.add(
                directive,
                "there is no counterpart: paths where it holds respond with 403",
            ),
            Fate::LeftOut => notes.add(directive, why_left_out(directive, level)),
            Fate::Read => {
                if let Some(within) = within(directive) {
                    report(&directive.block, within, notes);
                }
            }
        }
    }
}

/// The level of the directives of a block; that of `upstream`, `stream` and maps is for those who translate them.
pub(super) fn within(directive: &Directive) -> Option<Level> {
    Some(match directive.name.as_str() {
        "http" => Level::Http,
        "server" => Level::Server,
        "location" => Level::Location,
        "if" => Level::If,
        "limit_except" => Level::LimitExcept,
        _ => return None,
    })
}

fn why_left_out(directive: &Directive, level: Level) -> &'static str {
    match directive.name.as_str() {
        "client_body_timeout"
        | "client_header_timeout"
        | "send_timeout"
        | "keepalive_timeout"
        | "large_client_header_buffers"
        | "http2_max_concurrent_streams"
            if level != Level::Main =>
        {
            "left out: `[limits]` are those of all listeners, and those of `http` alone are translated"
        }
        "types" => {
            "left out: types of files are known by extension, and those of nginx's `mime.types` are as here"
        }
        "charset" => {
            "left out: texts are sent as `utf-8`, and not converted; nginx would name this character set"
        }
        "gzip_static" => {
            "left out: a compressed file is sent to clients that take it; nginx would send it to all"
        }
        "proxy_cache_methods" => {
            "left out: responses to GET are kept, for GET and HEAD; nginx would keep those to POST too"
        }
        "proxy_pass_header" => {
            "left out: fields for the proxy itself, such as `X-Accel-Redirect`, are not sent to clients; nginx would send this one"
        }
        "sub_filter" | "sub_filter_once" | "sub_filter_types" | "sub_filter_last_modified" => {
            "left out: content is not changed on its way; nginx would replace texts in it"
        }
        "keepalive_requests" | "keepalive_time" => {
            "left out: connections of clients end by `limits.idle_timeout` alone"
        }
        _ => "left out: there is no counterpart",
    }
}
