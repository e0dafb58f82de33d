//! What becomes of each directive of nginx, in one list: no directive that the parser sees goes without an answer.
//!
//! A name that a translator reads is [`Fate::Read`] at the levels where it does; what makes no difference to clients and
//! servers is [`Fate::Harmless`]. All others are noted by [`report`], and those that keep somebody out close the paths
//! where they hold.

use super::Notes;
use super::nginx::Directive;
use super::reasons;

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
    ("worker_shutdown_timeout", &[Level::Main]),
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
    ("http2", OF_SERVERS),
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
    ("proxy_buffering", ANY),
    ("proxy_buffers", ANY),
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

/// Why directives change nothing that a client or a server could tell, with their names, or with a `*` the beginnings or ends
/// of these.
pub(super) const HARMLESS: &[(&str, &[&str])] = &[
    (
        "processes, their user and their modules are those of plimsoll",
        &[
            "user",
            "worker_*",
            "pid",
            "events",
            "load_module",
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
        ],
    ),
    (
        "`include` is followed where it names files; one that names none says nothing",
        &["include"],
    ),
    (
        "errors go to the log of plimsoll itself",
        &[
            "error_log",
            "log_not_found",
            "log_subrequest",
            "open_log_file_cache",
            "limit_req_log_level",
            "limit_conn_log_level",
            "rewrite_log",
            "uninitialized_variable_warn",
        ],
    ),
    (
        "memory and system calls need no settings",
        &[
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
            "client_body_in_single_buffer",
            "client_header_buffer_size",
            "gzip_buffers",
            "proxy_buffer_size",
            "proxy_busy_buffers_size",
            "proxy_temp_*",
            "proxy_max_temp_file_size",
            "fastcgi_temp_*",
            "fastcgi_buffers",
            "fastcgi_buffer_size",
            "fastcgi_busy_buffers_size",
            "fastcgi_max_temp_file_size",
            "uwsgi_temp_*",
            "uwsgi_buffers",
            "uwsgi_buffer_size",
            "uwsgi_busy_buffers_size",
            "uwsgi_max_temp_file_size",
            "scgi_temp_path",
            "proxy_send_lowat",
            "proxy_headers_hash_*",
            "grpc_buffer_size",
        ],
    ),
    (
        "how connections are kept alive and closed below HTTP is not seen in what is sent",
        &[
            "lingering_*",
            "reset_timedout_connection",
            "*_socket_keepalive",
            "fastcgi_keep_conn",
            "proxy_ssl_session_reuse",
            "grpc_ssl_session_reuse",
            "fastcgi_ssl_session_reuse",
        ],
    ),
    (
        "browsers that it is for are gone",
        &["msie_padding", "msie_refresh"],
    ),
    (
        "any level, and `Vary` beside what is compressed, is what a client that accepts the coding can read",
        &["gzip_comp_level", "gzip_http_version", "gzip_vary"],
    ),
    (
        "what rustls chooses is safe, and clients agree on it",
        &[
            "ssl_session_*",
            "ssl_buffer_size",
            "ssl_dhparam",
            "ssl_ecdh_curve",
            "ssl_prefer_server_ciphers",
        ],
    ),
    (
        "all versions of HTTP are spoken, by clients that want them",
        &["http3"],
    ),
    (
        "how packets of QUIC are sent, and which connection IDs they have, does not change responses",
        &[
            "quic_active_connection_id_limit",
            "quic_bpf",
            "quic_gso",
            "quic_host_key",
            "quic_mtu",
            "quic_stream_buffer_size",
        ],
    ),
    (
        "no version of a server is in the field `server`",
        &["server_tokens"],
    ),
    (
        "a lock for one response ends by itself",
        &["proxy_cache_lock_*"],
    ),
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
    } else if is_harmless(name) || is_as_here(directive) {
        Fate::Harmless
    } else if is_withholding(directive) {
        Fate::Withholds
    } else if is_off && is_one_of(name, WITHHOLDS) {
        Fate::Harmless
    } else {
        Fate::LeftOut
    }
}

/// Whether directives of that name change nothing, with any arguments.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|(_, names)| is_one_of(name, names))
}

/// Whether a directive has the value that plimsoll has anyway.
pub(super) fn is_as_here(directive: &Directive) -> bool {
    let mut values = directive.arguments.iter().map(String::as_str);
    match directive.name.as_str() {
        // As it comes, and not read ahead.
        "fastcgi_buffering"
        | "uwsgi_buffering"
        | "scgi_buffering"
        | "client_body_in_file_only"
        | "quic_retry"
        | "recursive_error_pages"
        | "server_name_in_redirect" => values.all(|it| it == "off"),
        // Applications get all of the content in either case.
        "fastcgi_request_buffering" | "uwsgi_request_buffering" => values.all(|it| it == "on"),
        "proxy_ssl_server_name"
        | "grpc_ssl_server_name"
        | "proxy_cache_lock"
        | "proxy_cache_revalidate"
        | "brotli_static"
        | "etag"
        | "merge_slashes"
        | "chunked_transfer_encoding"
        | "mirror_request_body"
        | "proxy_half_close" => values.all(|it| it == "on"),
        "proxy_cache_min_uses" => values.all(|it| it == "1"),
        "gzip_proxied" => values.all(|it| it == "any"),
        // Old versions of a browser that is gone.
        "gzip_disable" => values.all(|it| it == "msie6"),
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
    patterns.iter().any(|pattern| is_pattern_of(pattern, name))
}

/// Whether a pattern is for a name: that name itself, or with a `*` at either end a part of it.
pub(super) fn is_pattern_of(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => pattern == name,
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (Some(rest), Some(_)) => name.contains(rest.trim_end_matches('*')),
    }
}

/// Notes each directive of a block that nothing else reads, and of the blocks within it.
pub(super) fn report(block: &[Directive], level: Level, notes: &mut Notes) {
    for directive in block {
        // Of an `if` that returns they are fields of what it returns.
        let is_of_return = level == Level::If
            && directive.name == "add_header"
            && block.iter().any(|it| it.name == "return");
        match fate(directive, level) {
            Fate::Harmless => {}
            Fate::LeftOut if is_of_return => {}
            Fate::Withholds if level == Level::If || level == Level::LimitExcept => {
                notes.left_out_of_nginx(directive);
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

fn why_left_out(directive: &Directive, level: Level) -> String {
    let is_read = READ.iter().any(|(known, _)| *known == directive.name);
    if level == Level::If && is_read {
        return "left out: an `if` decides by `return`, `set` and `rewrite` alone; nginx would do this where its condition holds".to_owned();
    }
    reasons::of_http(&directive.name)
}
