//! No directive goes without an answer: it changes the translation, or has a note, or is known to make no difference.

use super::imported;
use crate::import::fates::{HARMLESS, Level, READ};

/// A directive that is read, with a value that is not nginx's default, and what has to be around it.
const EXAMPLES: &[(&str, &str)] = &[
    ("default_type", "default_type text/html; return 200 a;"),
    ("listen", "listen 8081;"),
    ("server_name", "server_name other.test;"),
    ("ssl", "ssl on;"),
    ("http2", "http2 off;"),
    (
        "ssl_certificate",
        "ssl_certificate /c.pem; ssl_certificate_key /k.pem;",
    ),
    (
        "ssl_certificate_key",
        "ssl_certificate /c.pem; ssl_certificate_key /k.pem;",
    ),
    (
        "ssl_verify_client",
        "ssl_verify_client on; ssl_client_certificate /ca.pem;",
    ),
    (
        "ssl_client_certificate",
        "ssl_verify_client on; ssl_client_certificate /ca.pem;",
    ),
    (
        "ssl_trusted_certificate",
        "ssl_verify_client on; ssl_trusted_certificate /ca.pem;",
    ),
    ("client_body_timeout", "client_body_timeout 7s;"),
    ("client_header_timeout", "client_header_timeout 7s;"),
    ("send_timeout", "send_timeout 7s;"),
    ("keepalive_timeout", "keepalive_timeout 7s;"),
    (
        "large_client_header_buffers",
        "large_client_header_buffers 4 16k;",
    ),
    (
        "http2_max_concurrent_streams",
        "http2_max_concurrent_streams 7;",
    ),
    ("underscores_in_headers", "underscores_in_headers on;"),
    ("return", "return 410;"),
    ("set", "set $x $request_id;"),
    ("if", "if ($http_x) { return 410; }"),
    ("rewrite", "rewrite ^/a$ /b permanent;"),
    ("try_files", "root /srv; try_files $uri /index.html;"),
    ("internal", "internal;"),
    ("limit_except", "limit_except GET { deny all; }"),
    ("alias", "alias /srv/;"),
    ("root", "root /srv;"),
    ("autoindex", "root /srv; autoindex on;"),
    ("index", "root /srv; index start.html;"),
    ("expires", "expires 1h;"),
    ("add_header", "add_header X-A b;"),
    ("gzip", "gzip on;"),
    ("gzip_min_length", "gzip on; gzip_min_length 500;"),
    ("gzip_types", "gzip on; gzip_types text/css;"),
    ("error_page", "error_page 502 /50x.html;"),
    ("allow", "allow 10.0.0.1; deny all;"),
    ("deny", "deny all;"),
    (
        "satisfy",
        "satisfy any; allow 10.0.0.1; deny all; auth_basic x; auth_basic_user_file /p;",
    ),
    ("auth_basic", "auth_basic x; auth_basic_user_file /p;"),
    (
        "auth_basic_user_file",
        "auth_basic x; auth_basic_user_file /p;",
    ),
    ("auth_request", "auth_request /none;"),
    (
        "auth_request_set",
        "auth_request /ask; auth_request_set $u $upstream_http_x_user;",
    ),
    ("mirror", "mirror /copy;"),
    ("limit_req", "limit_req zone=z;"),
    (
        "limit_req_dry_run",
        "limit_req zone=z; limit_req_dry_run on;",
    ),
    ("limit_conn", "limit_conn c 1;"),
    (
        "limit_conn_status",
        "limit_conn c 1; limit_conn_status 429;",
    ),
    (
        "limit_conn_dry_run",
        "limit_conn c 1; limit_conn_dry_run on;",
    ),
    ("limit_rate", "limit_rate 1m;"),
    ("limit_rate_after", "limit_rate 1m; limit_rate_after 2m;"),
    (
        "limit_req_status",
        "limit_req zone=z; limit_req_status 429;",
    ),
    (
        "set_real_ip_from",
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
    ),
    (
        "real_ip_header",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
    ),
    (
        "real_ip_recursive",
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on;",
    ),
    ("client_max_body_size", "client_max_body_size 7m;"),
    ("proxy_set_header", "proxy_set_header X-A b;"),
    ("grpc_set_header", "grpc_set_header X-A b;"),
    ("proxy_hide_header", "proxy_hide_header X-A;"),
    ("proxy_redirect", "proxy_redirect http://a/ /;"),
    ("proxy_cookie_domain", "proxy_cookie_domain a.test b.test;"),
    ("proxy_cookie_flags", "proxy_cookie_flags one secure;"),
    ("proxy_cookie_path", "proxy_cookie_path /a/ /b/;"),
    (
        "proxy_pass_request_headers",
        "proxy_pass_request_headers off;",
    ),
    ("proxy_pass_request_body", "proxy_pass_request_body off;"),
    ("proxy_http_version", "proxy_http_version 2;"),
    ("proxy_request_buffering", "proxy_request_buffering on;"),
    ("proxy_buffering", "proxy_buffering on;"),
    ("proxy_buffers", "proxy_buffers 16 8k;"),
    ("charset_types", "charset utf-8; charset_types text/css;"),
    (
        "proxy_intercept_errors",
        "root /elsewhere; error_page 502 /50x.html; proxy_intercept_errors on;",
    ),
    ("proxy_connect_timeout", "proxy_connect_timeout 7s;"),
    ("proxy_read_timeout", "proxy_read_timeout 7s;"),
    ("proxy_send_timeout", "proxy_send_timeout 7s;"),
    ("grpc_read_timeout", "grpc_read_timeout 7s;"),
    ("proxy_next_upstream", "proxy_next_upstream off;"),
    ("proxy_next_upstream_tries", "proxy_next_upstream_tries 5;"),
    ("proxy_ssl_verify", "proxy_ssl_verify on;"),
    (
        "proxy_ssl_trusted_certificate",
        "proxy_ssl_verify on; proxy_ssl_trusted_certificate /ca.pem;",
    ),
    (
        "proxy_ssl_certificate",
        "proxy_ssl_certificate /c.pem; proxy_ssl_certificate_key /k.pem;",
    ),
    (
        "proxy_ssl_certificate_key",
        "proxy_ssl_certificate /c.pem; proxy_ssl_certificate_key /k.pem;",
    ),
    ("proxy_ssl_name", "proxy_ssl_name a.test;"),
    ("grpc_ssl_name", "grpc_ssl_name a.test;"),
    ("proxy_cache", "proxy_cache z;"),
    (
        "proxy_cache_background_update",
        "proxy_cache z; proxy_cache_use_stale updating; proxy_cache_background_update on;",
    ),
    (
        "proxy_cache_bypass",
        "proxy_cache z; proxy_cache_bypass $cookie_a;",
    ),
    (
        "proxy_cache_key",
        "proxy_cache z; proxy_cache_key $cookie_a;",
    ),
    (
        "proxy_cache_path",
        "proxy_cache_path /c keys_zone=z:1m inactive=7m; proxy_cache z; proxy_cache_use_stale error;",
    ),
    (
        "proxy_cache_use_stale",
        "proxy_cache z; proxy_cache_use_stale error;",
    ),
    ("proxy_cache_valid", "proxy_cache z; proxy_cache_valid 7m;"),
    (
        "log_format",
        "log_format own \"$remote_addr $status\"; access_log /var/log/own.log own;",
    ),
    ("access_log", "access_log /var/log/own.log;"),
    (
        "fastcgi_pass_request_headers",
        "fastcgi_pass_request_headers off;",
    ),
    (
        "fastcgi_pass_request_body",
        "fastcgi_pass_request_body off;",
    ),
    ("fastcgi_param", "fastcgi_param APP_ENV prod;"),
    ("fastcgi_index", "fastcgi_index main.php;"),
    (
        "fastcgi_split_path_info",
        "fastcgi_split_path_info ^(.+\\.php5)(/.+)$;",
    ),
    ("fastcgi_connect_timeout", "fastcgi_connect_timeout 7s;"),
    ("fastcgi_read_timeout", "fastcgi_read_timeout 7s;"),
    (
        "fastcgi_intercept_errors",
        "error_page 502 /e.html; fastcgi_intercept_errors on;",
    ),
    (
        "uwsgi_pass_request_headers",
        "uwsgi_pass_request_headers off;",
    ),
    ("uwsgi_pass_request_body", "uwsgi_pass_request_body off;"),
    ("uwsgi_param", "uwsgi_param APP_ENV prod;"),
    ("uwsgi_modifier1", "uwsgi_modifier1 30;"),
    ("uwsgi_modifier2", "uwsgi_modifier2 1;"),
    ("uwsgi_connect_timeout", "uwsgi_connect_timeout 7s;"),
    ("uwsgi_read_timeout", "uwsgi_read_timeout 7s;"),
    (
        "uwsgi_intercept_errors",
        "error_page 502 /e.html; uwsgi_intercept_errors on;",
    ),
    ("proxy_no_cache", "proxy_cache z; proxy_no_cache $cookie_a;"),
];

/// Names that open blocks, stand for the action of a location or stand outside of `http`, which other tests have.
const STRUCTURE: [&str; 17] = [
    "http",
    "worker_shutdown_timeout",
    "server",
    "upstream",
    "map",
    "geo",
    "split_clients",
    "stream",
    "location",
    "limit_req_zone",
    "limit_conn_zone",
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
];

fn configuration(http: &str, server: &str, location: &str) -> String {
    format!(
        "http {{ limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s; limit_conn_zone $binary_remote_addr zone=c:1m; {http}
         server {{ listen 8080; listen 8443 ssl; server_name a.test; {server}
         location = /ask {{ internal; proxy_pass http://10.0.0.9/ask; }}
         location /x/ {{ {location} proxy_pass https://10.0.0.1; }}
         location /p/ {{ root /base; {location} fastcgi_pass 10.0.0.2:9000; }}
         location /u/ {{ {location} uwsgi_pass 10.0.0.3:9000; }}
         location /f/ {{ root /base; {location} }} }} }}"
    )
}

/// Without one directive of the example, so that what it adds is seen.
fn without(example: &str, name: &str) -> String {
    let kept = example.split_inclusive(';');
    let kept = kept.filter(|it| {
        !it.trim_start().starts_with(&format!("{name} ")) && it.trim() != format!("{name};")
    });
    kept.collect()
}

#[test]
fn every_directive_that_is_read_changes_the_translation_or_has_a_note() {
    let mut silent = Vec::new();
    for (name, levels) in READ {
        if STRUCTURE.contains(name) {
            continue;
        }
        let (_, example) = EXAMPLES
            .iter()
            .find(|(known, _)| known == name)
            .unwrap_or_else(|| panic!("`{name}` has no example"));
        let rest = if example.contains('{') {
            String::new()
        } else {
            without(example, name)
        };
        for level in *levels {
            let at = |text: &str| match level {
                Level::Http => configuration(text, "", ""),
                Level::Server => configuration("", text, ""),
                Level::Location => configuration("", "", text),
                Level::Main | Level::If | Level::LimitExcept => String::new(),
            };
            if at("").is_empty() {
                continue;
            }
            if imported(&at(example)) == imported(&at(&rest)) {
                silent.push(format!("{name} at {level:?}"));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn what_makes_no_difference_is_read_by_nobody_and_has_a_reason() {
    let without = imported(&configuration("", "", ""));
    for (reason, names) in HARMLESS {
        assert!(!reason.is_empty(), "{names:?}");
        // Files are included as they are parsed.
        for name in names.iter().filter(|it| **it != "include") {
            assert!(READ.iter().all(|(read, _)| read != name), "{name}");
            let name = name.replace('*', "x");
            let text = format!("{name} 7;");
            assert_eq!(imported(&configuration(&text, "", "")), without, "{name}");
        }
    }
}

#[test]
fn a_value_that_holds_anyway_has_no_note_but_another_one_has() {
    let without = imported(&configuration("", "", ""));
    for (name, same, other) in [
        ("fastcgi_buffering", "off", "on"),
        ("client_body_in_file_only", "off", "clean"),
        ("proxy_ssl_server_name", "on", "off"),
        ("proxy_cache_lock", "on", "off"),
        ("fastcgi_request_buffering", "on", "off"),
        ("uwsgi_request_buffering", "on", "off"),
        ("proxy_cache_revalidate", "on", "off"),
        ("proxy_cache_min_uses", "1", "3"),
        ("proxy_cache_methods", "GET", "POST"),
        ("gzip_proxied", "any", "expired"),
        ("gzip_disable", "msie6", "curl"),
        ("gzip_static", "on", "always"),
        ("merge_slashes", "on", "off"),
        ("quic_retry", "off", "on"),
        ("chunked_transfer_encoding", "on", "off"),
    ] {
        let same = imported(&configuration(&format!("{name} {same};"), "", ""));
        assert_eq!(same, without, "{name}");
        let other = imported(&configuration(&format!("{name} {other};"), "", ""));
        let own = other.notes.iter().find(|it| it.message.starts_with(name));
        assert!(
            own.is_some_and(|it| it.message.contains("nginx would")),
            "{name}"
        );
    }
}

#[test]
fn what_is_carried_over_in_part_has_a_note() {
    for (http, location, note) in [
        (
            "log_format own \"$bytes_sent\"; access_log /var/log/own.log own;",
            "",
            "log_format: `$bytes_sent` is the content alone; nginx would count the head",
        ),
        (
            "log_format own \"${upstream_response_time}\"; access_log /var/log/own.log own;",
            "",
            "log_format: `$upstream_response_time` is the time to the head",
        ),
        (
            "upstream app { server 10.0.0.5; } server { listen 82; location / { proxy_pass http://app; } \
             location /slow/ { proxy_connect_timeout 9s; proxy_pass http://app; } }",
            "",
            "proxy_pass: `connect_timeout`, `retry`, `protocol` and `tls` of `app` are those of the first",
        ),
        (
            "server { listen 82; location / { root /srv; set_real_ip_from 10.0.0.0/8; set_real_ip_from proxy.test; } }",
            "",
            "set_real_ip_from: left out: the client is whom the listener knows; nginx would",
        ),
        (
            "server { listen 82; location / { set_real_ip_from proxy.test; proxy_pass http://10.0.0.5; } }",
            "",
            "set_real_ip_from: left out: it is not a network; nginx would",
        ),
        (
            "upstream app { server 10.0.0.5 max_fails=3; server 10.0.0.6 max_fails=3; }",
            "",
            "upstream: a server is left out after 3 failures in a row; nginx would count those of 10s",
        ),
        (
            "server { listen 8080; http2 off; }",
            "",
            "http2: left out: another server of the listener speaks HTTP/2",
        ),
        (
            "access_log /var/log/own.log combined gzip=5;",
            "",
            "access_log: `gzip` is left out",
        ),
        (
            "upstream app { random two least_time=header; server 10.0.0.5; }",
            "",
            "random: of two servers the one with fewer requests",
        ),
        (
            "",
            "if ($http_a) { proxy_read_timeout 9s; }",
            "proxy_read_timeout: left out: an `if` decides by `return`, `set` and `rewrite` alone",
        ),
    ] {
        let imported = imported(&configuration(http, "", location));
        let shown: Vec<_> = imported.notes.iter().map(|it| &it.message).collect();
        assert!(
            shown.iter().any(|it| it.starts_with(note)),
            "{note}\n{shown:#?}"
        );
    }
}

#[test]
fn a_directive_that_nothing_reads_has_a_note_at_every_level() {
    for (http, server, location) in [
        ("frobnicate on;", "", ""),
        ("", "frobnicate on;", ""),
        ("", "", "frobnicate on;"),
        ("", "", "if ($http_a) { frobnicate on; }"),
        ("", "", "limit_except GET { frobnicate on; deny all; }"),
        ("", "location @named { frobnicate on; }", ""),
        ("", "", "location /x/y/ { frobnicate on; }"),
    ] {
        let imported = imported(&configuration(http, server, location));
        let has_note = |it: &super::ImportNote| it.message.starts_with("frobnicate: left out");
        assert!(
            imported.notes.iter().any(has_note),
            "{http}{server}{location}"
        );
    }
}

#[test]
fn what_keeps_clients_out_and_has_no_counterpart_closes_its_paths() {
    for guard in [
        "auth_jwt \"x\";",
        "access_by_lua_block { x; }",
        "modsecurity on;",
        "if ($bad_bot) { return 444; }",
        "if ($remote_addr ~ ^10\\.) { return 403; }",
        "if ($invalid_referer) { return 403; }",
        "if ($host !~* ^(a|b)\\.test$) { return 444; }",
        "proxy_pass_request_headers off;",
        "proxy_pass_request_body off;",
    ] {
        for at in ["http", "server", "location"] {
            let is_of_location = guard.starts_with("if");
            let text = match at {
                "http" if is_of_location => continue,
                "http" => configuration(guard, "", ""),
                "server" => configuration("", guard, ""),
                _ if guard.contains("$host") => continue,
                _ => configuration("", "", guard),
            };
            let imported = imported(&text);
            let routes = imported.toml.split("[[route]]");
            // What is said of proxies holds for no application.
            let is_application = |it: &str| it.contains("protocol = \"");
            let holds = |it: &&str| !guard.starts_with("proxy_") || !is_application(it);
            let mut open = routes
                .filter(holds)
                .filter(|it| it.contains("proxy = ") && !it.contains("internal = true"));
            assert!(open.next().is_none(), "{guard} at {at}:\n{}", imported.toml);
            assert!(!imported.notes.is_empty(), "{guard}");
        }
    }
    // Settings of what is not turned on close nothing, and are noted.
    let imported = imported(&configuration(
        "auth_jwt_key_file /k; auth_delay 1s; auth_jwt off;",
        "",
        "",
    ));
    assert!(imported.toml.contains("proxy = "), "{}", imported.toml);
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
    // A location that cannot be matched here as nginx does keeps its clients out of the others.
    let text = configuration("", "location ~ /\\.(?!well-known) { deny all; }", "");
    let imported = super::imported(&text);
    let closed = "regex = \".*(?-i:/\\\\.).*\"\nrespond = { status = 403";
    assert!(imported.toml.contains(closed), "{}", imported.toml);
}
