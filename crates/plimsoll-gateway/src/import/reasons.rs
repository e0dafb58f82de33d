//! What nginx would have done by a directive that is left out, and what to write instead where there is something.

use super::fates::is_pattern_of;

/// Names of directives, or with a `*` their beginnings or ends; the first that fits counts.
const OF_HTTP: &[(&str, &str)] = &[
    // TLS with clients.
    (
        "ssl_protocols",
        "TLS 1.2 and 1.3 are spoken; nginx would speak those that are named",
    ),
    (
        "ssl_ciphers",
        "ciphers are those that rustls takes to be safe; nginx would offer these",
    ),
    (
        "ssl_conf_command",
        "it is for OpenSSL, which plimsoll does not have; nginx would pass it on",
    ),
    (
        "ssl_stapling*",
        "nginx would show the revocation status of the certificate: write `ocsp = true` beside `cert` and `key`",
    ),
    (
        "ssl_password_file",
        "nginx would decrypt keys by its lines: store the key without a password",
    ),
    (
        "ssl_verify_depth",
        "chains of client certificates may be of any length; nginx would refuse longer ones",
    ),
    (
        "ssl_early_data",
        "early data is not accepted, as it can be replayed; nginx would take it",
    ),
    (
        "ssl_handshake_timeout",
        "`limits.header_timeout` is the time for it; nginx would wait for this long",
    ),
    // What is sent to servers, and how.
    (
        "*_ignore_headers",
        "`X-Accel-Expires`, `Cache-Control`, `Expires`, `Set-Cookie` and `Vary` of servers always count; nginx would not obey these",
    ),
    (
        "*_pass_header",
        "fields for the proxy itself are not sent to clients; nginx would send this one",
    ),
    (
        "*_hide_header",
        "the field is sent to clients; nginx would keep it back: write `response_headers = { remove = [\"NAME\"] }`",
    ),
    (
        "*_bind",
        "connections to servers begin at any address of the machine; nginx would bind them to this one",
    ),
    (
        "proxy_method",
        "requests keep their method; nginx would send this one",
    ),
    (
        "proxy_set_body",
        "requests keep their content; nginx would send this text",
    ),
    (
        "*_force_ranges",
        "ranges are for servers to grant; nginx would cut them out of whole responses itself",
    ),
    (
        "*_ignore_client_abort",
        "the request ends with its client; nginx would let the server finish",
    ),
    (
        "*_limit_rate",
        "responses are read as fast as clients take them; nginx would read them this slowly: write `bandwidth` for clients",
    ),
    (
        "*_store",
        "nothing is written to files; nginx would keep a copy of each response for ever: write `cache = { disk = … }`",
    ),
    (
        "*_store_access",
        "nothing is written to files; nginx would give copies these permissions",
    ),
    (
        "*_send_timeout",
        "a server that does not read ends by `response_timeout`; nginx would have this time for it",
    ),
    (
        "*_next_upstream_timeout",
        "nginx would try no further server after this time: write `timeout` of the upstream for the whole request",
    ),
    (
        "grpc_connect_timeout",
        "nginx would wait for this long to connect: write `connect_timeout` of the upstream",
    ),
    (
        "*_next_upstream*",
        "nginx would try another server in these cases: write `retry = { on = […] }` of the upstream",
    ),
    (
        "*_ssl_protocols",
        "TLS 1.2 and 1.3 are spoken with servers; nginx would speak those that are named",
    ),
    (
        "*_ssl_ciphers",
        "ciphers are those that rustls takes to be safe; nginx would offer servers these",
    ),
    (
        "*_ssl_verify_depth",
        "chains of servers' certificates may be of any length; nginx would refuse longer ones",
    ),
    (
        "*_ssl_crl",
        "no list of revoked certificates is read; nginx would refuse servers that are on it",
    ),
    (
        "*_ssl_password_file",
        "nginx would decrypt keys by its lines: store the key without a password",
    ),
    (
        "*_ssl_conf_command",
        "it is for OpenSSL, which plimsoll does not have; nginx would pass it on",
    ),
    (
        "*_ssl_server_name",
        "servers are sent the name that they are reached by (SNI); nginx would send none",
    ),
    (
        "*_intercept_errors",
        "nginx would put its own pages in place of the server's errors: write `intercept_errors` and `on_status`",
    ),
    (
        "fastcgi_request_buffering",
        "content of unknown length is read before an application gets it; nginx would pass it on as it comes",
    ),
    (
        "uwsgi_request_buffering",
        "content of unknown length is read before an application gets it; nginx would pass it on as it comes",
    ),
    (
        "*_buffering",
        "responses are sent on as they come; nginx would take them off the server first",
    ),
    (
        "mirror_request_body",
        "copies have the content of requests; nginx would leave it out",
    ),
    (
        "client_body_in_file_only",
        "content is not written to files; nginx would, and leave it there",
    ),
    // Caches.
    (
        "proxy_cache_min_uses",
        "the first response is kept; nginx would wait for so many requests",
    ),
    (
        "proxy_cache_methods",
        "responses to GET are kept, for GET and HEAD; nginx would keep those to POST too",
    ),
    (
        "proxy_cache_lock",
        "requests for one response wait for the first of them; nginx would send all to the server",
    ),
    (
        "proxy_cache_revalidate",
        "old responses are validated; nginx would fetch them anew",
    ),
    (
        "proxy_cache_purge",
        "nginx would forget what this request names: write `[admin]`, which purges by URL",
    ),
    (
        "proxy_cache_convert_head",
        "HEAD is not turned into GET; nginx would do so to have something to keep",
    ),
    (
        "proxy_cache_max_range_offset",
        "parts far within a response are sent on alone; nginx would fetch the whole up to this place",
    ),
    (
        "slice",
        "responses are kept whole; nginx would fetch and keep parts of this length",
    ),
    (
        "*_no_cache",
        "responses of applications are not kept anyway",
    ),
    (
        "*_cache*",
        "responses of applications are not kept; nginx would keep them: write `proxy` with `cache` before a server of HTTP",
    ),
    // Fields and content of responses.
    (
        "types",
        "types of files are known by extension, and those of nginx's `mime.types` are as here; nginx would send these",
    ),
    (
        "charset",
        "texts are sent as `utf-8`, and not converted; nginx would name this character set",
    ),
    (
        "override_charset",
        "nginx would convert responses that name a character set",
    ),
    (
        "source_charset",
        "texts are not converted; nginx would convert them from this character set",
    ),
    (
        "gzip_static",
        "a compressed file is sent to clients that take it; nginx would send it to all",
    ),
    (
        "gzip_proxied",
        "requests that came through proxies (`Via`) get compressed responses too; nginx would compress those that are named",
    ),
    (
        "gzip_disable",
        "every client that accepts a coding gets it; nginx would compress nothing for these",
    ),
    (
        "gunzip*",
        "what is stored compressed is sent so; nginx would decompress it for clients that do not take it",
    ),
    (
        "brotli_static",
        "a compressed copy beside a file is sent to clients that take it; nginx would send it to all",
    ),
    (
        "brotli*",
        "nginx would compress by Brotli: write `compress = true`, which has `zstd`, `br` and `gzip`",
    ),
    (
        "zstd*",
        "nginx would compress by Zstandard: write `compress = true`, which has `zstd`, `br` and `gzip`",
    ),
    (
        "sub_filter*",
        "content is not changed on its way; nginx would replace texts in it",
    ),
    (
        "add_trailer",
        "responses get no trailers; nginx would send this one",
    ),
    (
        "more_set_headers",
        "the module headers-more would set a field: write `response_headers = { set = { … } }`",
    ),
    (
        "more_clear_headers",
        "the module headers-more would remove a field: write `response_headers = { remove = […] }`",
    ),
    (
        "add_before_body",
        "nginx would put the response of another path before the content",
    ),
    (
        "add_after_body",
        "nginx would put the response of another path behind the content",
    ),
    (
        "addition_types",
        "nothing is added to responses of any type",
    ),
    (
        "ssi*",
        "nginx would read the content for commands of server-side includes; here it is sent as it is",
    ),
    (
        "xslt_*",
        "nginx would transform XML by a stylesheet; here it is sent as it is",
    ),
    (
        "image_filter*",
        "nginx would change pictures; here they are sent as they are",
    ),
    (
        "etag",
        "files have a tag by time and length; nginx would send none",
    ),
    (
        "if_modified_since",
        "a file that has not changed since is a 304; nginx would compare times otherwise, or not at all",
    ),
    (
        "max_ranges",
        "up to 64 ranges of a file are sent; nginx would send so many",
    ),
    (
        "chunked_transfer_encoding",
        "content of unknown length is sent in chunks; nginx would end it by closing the connection",
    ),
    ("early_hints", "nginx would pass 103 of servers on only so"),
    // Files and paths.
    (
        "disable_symlinks",
        "links that lead out of the folder are not followed; nginx would follow none that this names",
    ),
    (
        "autoindex_exact_size",
        "lists of folders show sizes as they do here; nginx would write them so",
    ),
    (
        "autoindex_localtime",
        "lists of folders show times as they do here; nginx would write them so",
    ),
    (
        "autoindex_format",
        "lists of folders are HTML, or JSON for clients that want it; nginx would send this form to all",
    ),
    (
        "random_index",
        "nginx would send a file of the folder by chance",
    ),
    (
        "merge_slashes",
        "repeated slashes in paths count as one; nginx would keep them apart",
    ),
    (
        "absolute_redirect",
        "redirects name host and scheme only where they are written so; nginx would add or leave out both",
    ),
    (
        "port_in_redirect",
        "redirects have the host as the client named it; nginx would add or leave out the port",
    ),
    (
        "server_name_in_redirect",
        "redirects have the host as the client named it; nginx would send the name of the server",
    ),
    (
        "recursive_error_pages",
        "an error of an error page is sent as it is; nginx would look for a page for that too",
    ),
    (
        "post_action",
        "nginx would request this path after each response",
    ),
    (
        "break",
        "rewriting does not go on where nothing else is written; nginx would end it here",
    ),
    (
        "dav_*",
        "files are not written; nginx would take PUT, DELETE and the like",
    ),
    (
        "create_full_put_path",
        "files are not written; nginx would make the folders of PUT",
    ),
    (
        "mp4*",
        "a video is sent whole or in ranges; nginx would begin it at the time in `start`",
    ),
    (
        "flv",
        "a video is sent whole or in ranges; nginx would begin it at the byte in `start`",
    ),
    ("hls*", "nginx would cut videos into pieces of HLS"),
    // Clients and their connections.
    (
        "client_body_timeout",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "client_header_timeout",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "send_timeout",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "keepalive_timeout",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "large_client_header_buffers",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "http2_max_concurrent_streams",
        "`[limits]` are those of all listeners, and those of `http` alone are translated; nginx would use it here alone",
    ),
    (
        "keepalive_requests",
        "connections of clients end by `limits.idle_timeout` alone; nginx would close them after so many requests",
    ),
    (
        "keepalive_time",
        "connections of clients end by `limits.idle_timeout` alone; nginx would close them at this age",
    ),
    (
        "keepalive_disable",
        "connections are kept for every client; nginx would close those of these browsers",
    ),
    (
        "keepalive_min_timeout",
        "connections of clients end by `limits.idle_timeout` alone; nginx would not close them before this time",
    ),
    (
        "quic_retry",
        "connections are accepted at once; nginx would first validate the client's address by a Retry packet: write `http3 = { retry_key = \"FILE\" }` of the listener",
    ),
    (
        "http2_push*",
        "no browser takes pushed responses any more; nginx would send them",
    ),
    (
        "http2_*",
        "the limits of HTTP/2 are in `[limits]`; nginx would have this one",
    ),
    (
        "ignore_invalid_headers",
        "a field with a wrong name is a 400; nginx would leave it out or pass it on",
    ),
    (
        "limit_zone",
        "it is of nginx before 1.1.8; write `in_flight_limit`",
    ),
    // What becomes variables.
    (
        "geoip*",
        "there is no database of places; nginx would set variables by the client's address",
    ),
    (
        "valid_referers",
        "nginx would set `$invalid_referer` by it; routes have `header = { referer = … }`",
    ),
    (
        "secure_link*",
        "nginx would check a hash in the URL; a route for `jwt` in a parameter does the like",
    ),
    (
        "userid*",
        "nginx would give each client a cookie with a number",
    ),
    (
        "modern_browser*",
        "nginx would set variables by the browser; routes have `header = { user-agent = … }`",
    ),
    (
        "ancient_browser*",
        "nginx would set variables by the browser; routes have `header = { user-agent = … }`",
    ),
    // State and logs.
    (
        "stub_status",
        "nginx would show counts of connections here: write `[admin]`, which has `/metrics`",
    ),
    (
        "status",
        "nginx would show its state here: write `[admin]`, which has `/metrics`",
    ),
    (
        "status_zone",
        "nginx would count by this name; `/metrics` counts by route",
    ),
    (
        "vhost_traffic_status*",
        "the module would count traffic; `/metrics` of `[admin]` does",
    ),
    (
        "opentracing*",
        "the module would send spans: write `trace` and `[traces]`",
    ),
    (
        "otel_*",
        "the module would send spans: write `trace` and `[traces]`",
    ),
    // Names.
    (
        "resolver",
        "names of servers are looked up by the system; nginx would ask these: write `resolvers` of the upstream",
    ),
    (
        "resolver_timeout",
        "names of servers are looked up ahead of requests; nginx would wait for this long",
    ),
    // Of upstreams.
    (
        "sticky*",
        "nginx would keep a client at its server: write `sticky = \"NAME\"`, a cookie",
    ),
    (
        "least_time",
        "nginx would choose the fastest server: write `balance = \"p2c\"`",
    ),
    (
        "queue",
        "nginx would let requests wait for a server: write `queue`",
    ),
    (
        "state",
        "nginx would keep servers that were set at run time in this file: write `file`",
    ),
    (
        "ntlm",
        "connections to servers are shared by clients; nginx would tie each to one",
    ),
    ("check*", "the module would check servers: write `health`"),
    (
        "health_check*",
        "nginx would check servers: write `health` of the upstream",
    ),
    // Other protocols and languages.
    (
        "mail",
        "nginx would be a proxy for mail, which asks a service for the server of each user; `tcp` forwards connections as they are",
    ),
    (
        "rtmp",
        "the module would take video streams; `tcp` forwards connections as they are",
    ),
    (
        "memcached_*",
        "servers of memcached are not asked; nginx would send what they have",
    ),
    (
        "scgi_*",
        "applications are reached by HTTP, FastCGI and uwsgi; nginx would speak SCGI",
    ),
    (
        "lua_*",
        "there is no Lua; nginx would use it for programs in that language",
    ),
    (
        "*_by_lua*",
        "there is no Lua; nginx would run a program in that language here",
    ),
    (
        "js_*",
        "there is no njs; nginx would run a program in JavaScript here",
    ),
    (
        "perl*",
        "there is no Perl; nginx would run a program in that language here",
    ),
    (
        "passenger_*",
        "nginx would start the application itself: start it as a service, and write `proxy` to it",
    ),
    (
        "pagespeed",
        "the module would rewrite pages; here they are sent as they are",
    ),
];

/// The same for `stream`.
const OF_STREAM: &[(&str, &str)] = &[
    (
        "access_log",
        "each connection is a JSON line of `[log]`, where there is one; nginx would write its own format to this file",
    ),
    (
        "log_format",
        "lines for connections are JSON with everything that is known; nginx would write them so",
    ),
    (
        "proxy_responses",
        "a flow ends when nothing passes for `idle_timeout`; nginx would end it after so many replies",
    ),
    (
        "proxy_requests",
        "a flow ends when nothing passes for `idle_timeout`; nginx would begin another one after so many datagrams",
    ),
    (
        "proxy_next_upstream_timeout",
        "nginx would try no further server after this time; here `retry` counts them",
    ),
    (
        "proxy_upload_rate",
        "bytes pass as fast as servers take them; nginx would slow them down",
    ),
    (
        "proxy_download_rate",
        "bytes pass as fast as clients take them; nginx would slow them down",
    ),
    (
        "proxy_half_close",
        "each direction ends by itself, as with `on`; nginx would end both at once",
    ),
    (
        "proxy_bind",
        "connections to servers begin at any address of the machine; nginx would bind them to this one",
    ),
    (
        "proxy_session_drop",
        "a connection stays at a server that is taken out; nginx would close it",
    ),
    (
        "proxy_ssl_alpn",
        "no protocols are offered to servers; nginx would offer these",
    ),
    (
        "proxy_ssl_certificate_cache",
        "certificates do not depend on the connection; nginx would keep those that do for this long",
    ),
    (
        "limit_conn",
        "connections are not counted by keys; nginx would refuse those beyond: write `limits.connections_per_address`",
    ),
    (
        "limit_conn_*",
        "connections are not counted by keys; nginx would use this for it: write `limits.connections_per_address`",
    ),
    (
        "preread_*",
        "the first message is awaited for `limits.header_timeout`, in up to 64 KiB; nginx would use this for it",
    ),
    (
        "ssl_alpn",
        "protocols are those of `routes`; nginx would offer these",
    ),
    (
        "ssl_handshake_timeout",
        "`limits.header_timeout` is the time for it; nginx would wait for this long",
    ),
    (
        "server_name",
        "a listener of connections has no names; nginx would choose the server by the one that the client requests: write `routes` with `sni`",
    ),
    (
        "map",
        "only maps of `$ssl_preread_server_name` and `$ssl_preread_alpn_protocols` that `proxy_pass` goes by are read",
    ),
    (
        "geo",
        "servers are not chosen by addresses; nginx would set a variable by them",
    ),
    (
        "split_clients",
        "servers are not chosen by shares of clients; write `weight` of servers",
    ),
    (
        "set",
        "connections have no variables of their own; nginx would set this one",
    ),
    (
        "pass",
        "connections are not handed to another listener; nginx would do so",
    ),
    (
        "hash",
        "connections are distributed by the client's address, if by anything: `balance = \"ring_hash\"`; nginx would use this text",
    ),
    (
        "ssl_certificate*",
        "no listener of the server has TLS; nginx would show it there",
    ),
    (
        "set_real_ip_from",
        "no listener of the server has `proxy_protocol`; nginx would believe these addresses there",
    ),
];

/// The note about a directive of `http`, or outside of it, that is left out.
pub(super) fn of_http(name: &str) -> String {
    said(OF_HTTP, name)
}

/// The note about a directive of `stream` that is left out.
pub(super) fn of_stream(name: &str) -> String {
    let own = OF_STREAM
        .iter()
        .any(|(known, _)| is_pattern_of(known, name));
    said(if own { OF_STREAM } else { OF_HTTP }, name)
}

fn said(reasons: &[(&str, &str)], name: &str) -> String {
    let found = reasons.iter().find(|(known, _)| is_pattern_of(known, name));
    let reason = found.map_or("there is no counterpart", |(_, reason)| *reason);
    format!("left out: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_with_what_nginx_would_have_done() {
        for (name, part) in [
            ("ssl_protocols", "nginx would speak those"),
            (
                "fastcgi_next_upstream_timeout",
                "nginx would try no further",
            ),
            ("uwsgi_cache_valid", "nginx would keep them"),
            ("stub_status", "`[admin]`"),
            ("content_by_lua_block", "there is no Lua"),
        ] {
            let said = of_http(name);
            assert!(
                said.starts_with("left out: ") && said.contains(part),
                "{said}"
            );
        }
        assert_eq!(of_http("frobnicate"), "left out: there is no counterpart");
        assert!(of_stream("access_log").contains("JSON line"));
        assert!(of_stream("ssl_protocols").contains("TLS 1.2"));
        assert!(of_stream("proxy_ssl_password_file").contains("store the key without a password"));
    }

    #[test]
    fn no_reason_hides_behind_an_earlier_one() {
        for list in [OF_HTTP, OF_STREAM] {
            for (at, (name, _)) in list.iter().enumerate() {
                let sample = name.replace('*', "x");
                let first = list
                    .iter()
                    .position(|(known, _)| is_pattern_of(known, &sample));
                assert_eq!(first, Some(at), "{name}");
            }
        }
    }
}
