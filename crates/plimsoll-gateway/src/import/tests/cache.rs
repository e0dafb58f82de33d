//! `proxy_cache` and what decides who gets a response of it.

use super::check;

#[test]
fn a_cache_keeps_its_lifetimes_and_stale_responses() {
    check(
        r"
        http {
            proxy_cache_path /var/cache keys_zone=assets:10m inactive=7d max_size=1g;
            server {
                listen 80;
                proxy_cache_key $scheme$proxy_host$request_uri;
                location /assets/ {
                    proxy_pass http://127.0.0.1:1;
                    proxy_cache assets;
                    proxy_cache_valid 200 302 1h30m;
                    proxy_cache_valid 404 1m;
                    proxy_cache_valid any 10s;
                    proxy_cache_valid 500 1h;
                    proxy_cache_use_stale error timeout updating http_502;
                    proxy_cache_background_update on;
                    proxy_cache_lock on;
                    proxy_cache_bypass $http_upgrade;
                }
                location /strict/ { proxy_cache other; proxy_pass http://127.0.0.1:2; }
                location /usual/ { proxy_cache other; proxy_cache_valid 5m; proxy_pass http://127.0.0.1:3; }
                location /off/ { proxy_cache off; proxy_cache_valid 5m; proxy_pass http://127.0.0.1:4; }
            }
        }
        ",
        &[
            "cache = { stale_while_revalidate = \"168h\", stale_if_error = \"168h\", default_lifetime = { 200 = \"5400000ms\", 302 = \"5400000ms\", 404 = \"1m\", \
             2xx = \"10s\", 3xx = \"10s\", 4xx = \"10s\", 5xx = \"10s\" }, max_object = \"16MiB\", disk = { dir = \"/var/cache\", size = \"1GiB\" } }",
            "cache = { default_lifetime = \"0s\" }",
            "cache = { default_lifetime = { 200 = \"5m\", 301 = \"5m\", 302 = \"5m\" } }",
            "prefix = \"/off/\"\nproxy = { to = \"http://127.0.0.1:4\", host = \"127.0.0.1:4\", forwarded = \"none\", max_request = \"1MiB\" }",
        ],
        &[
            "nginx.conf:19: proxy_cache: responses are kept in memory: there is no",
            "nginx.conf:20: proxy_cache: responses are kept in memory: there is no",
        ],
    );
}

#[test]
fn no_client_gets_what_another_one_was_sent() {
    check(
        r"
        server {
            listen 80;
            location = /check { internal; proxy_pass http://10.0.0.9; }
            location /a/ { proxy_cache z; proxy_no_cache $cookie_session; proxy_pass http://127.0.0.1:1; }
            location /b/ { proxy_cache z; proxy_cache_bypass $http_authorization; proxy_pass http://127.0.0.1:1; }
            location /c/ { proxy_cache z; proxy_cache_key $request_uri$cookie_user; proxy_pass http://127.0.0.1:1; }
            location /e/ { proxy_cache z; proxy_cache_key $host_group$uri; proxy_pass http://127.0.0.1:1; }
            location /d/ { proxy_cache z; auth_request /check; proxy_pass http://127.0.0.1:1; }
            location /f/ { proxy_cache z; proxy_no_cache $request_length; proxy_pass http://127.0.0.1:1; }
        }
        ",
        &[
            "no_store = [\"{cookie:session}\"] }",
            "bypass = [\"{header:authorization}\"] }",
            "key = \"{cookie:user}\" }",
        ],
        &[
            "nginx.conf:5: proxy_cache: responses are kept in memory",
            "nginx.conf:6: proxy_cache: responses are kept in memory",
            "nginx.conf:7: proxy_cache: responses are kept in memory",
            "nginx.conf:8: proxy_cache: left out: responses differ by `$host_group`",
            "nginx.conf:8: proxy_cache_key: each URL has a response of its own; nginx would send the same one for all queries of a path",
            "nginx.conf:9: proxy_cache: responses are kept in memory",
            "nginx.conf:9: auth_request: responses to authorized clients are cached only where they are `public`",
            "nginx.conf:10: proxy_cache: left out: `proxy_no_cache $request_length` excepts",
            "auth_request: the service gets the fields of the request",
        ],
    );
}

#[test]
fn what_bypasses_a_cache_is_apart_from_what_is_not_stored() {
    check(
        r"
        http {
            proxy_cache_path /var/cache keys_zone=z:10m;
            server {
                listen 80;
                proxy_cache z;
                location /a/ {
                    proxy_cache_bypass $http_upgrade $cookie_nocache $arg_nocache;
                    proxy_no_cache $arg_nocache $http_pragma;
                    proxy_cache_key $scheme$host$uri;
                    proxy_cache_use_stale updating http_404 error;
                    proxy_pass http://127.0.0.1:1;
                }
                location /b/ { proxy_cache_key one; proxy_pass http://127.0.0.1:1; }
                location /c/ { proxy_cache_key $uri$is_args$args; proxy_pass http://127.0.0.1:1; }
            }
        }
        ",
        &[
            "skip = [\"{query:nocache}\"], bypass = [\"{cookie:nocache}\"], no_store = [\"{header:pragma}\"]",
        ],
        &[
            "nginx.conf:10: proxy_cache_key: each URL has a response of its own; nginx would send the same one for all queries of a path",
            "nginx.conf:11: proxy_cache_use_stale: `updating` is left out",
            "nginx.conf:11: proxy_cache_use_stale: `http_404` is left out",
            "nginx.conf:14: proxy_cache_key: each URL has a response of its own; nginx would send the same one for all URLs",
        ],
    );
}
