//! Cookies of servers, and fields that are there more than once.

use super::check;

#[test]
fn cookies_of_servers_are_changed_by_rules_of_all_three_directives() {
    check(
        r"
        server {
            listen 80;
            set $other example.org;
            proxy_cookie_domain .app.test example.org;
            proxy_cookie_domain ~\.(?P<name>[a-z]+\.test)$ $name;
            proxy_cookie_domain $host x;
            proxy_cookie_path /in/ /$http_x_base/;
            proxy_cookie_path ~*^/two/(.+) /$1;
            proxy_cookie_flags ~^s secure httponly samesite=strict;
            proxy_cookie_flags one nosecure nosamesite;
            proxy_cookie_flags two partitioned;
            location / { proxy_pass http://127.0.0.1:1; }
            location /off/ { proxy_cookie_domain off; proxy_cookie_path off; proxy_cookie_flags off; proxy_pass http://127.0.0.1:1; }
        }
        ",
        &[
            "prefix = \"/off/\"\nproxy",
            "response_headers = { rewrite = [{ name = \"location\", from = \"^http://127\\\\.0\\\\.0\\\\.1:1/\", to = \"/\" }] }\n",
            "prefix = \"/\"\nproxy",
            "cookies = [{ domain = { from = \"(?i)^\\\\.?app\\\\.test$\", to = \"example.org\" } }, { domain = { from = \"(?i)^.*?\\\\.(?P<name>[a-z]+\\\\.test)$\", to = \"{name}\" } }, \
             { path = { from = \"^/in/\", to = \"/{header:x-base}/\" } }, { path = { from = \"(?i)^/two/(.+).*$\", to = \"/{1}\" } }, \
             { cookie = \"(?i)^s\", secure = true, http_only = true, same_site = \"strict\" }, { cookie = \"(?i)^one$\", secure = false, same_site = false }]",
        ],
        &[
            "proxy_cookie_domain: left out: what is replaced cannot depend on the request",
            "proxy_cookie_flags: left out: `partitioned` is no flag",
        ],
    );
}

#[test]
fn fields_are_added_beside_those_of_a_server_and_of_their_own_name() {
    check(
        r#"
        server {
            listen 80;
            root /srv;
            add_header Set-Cookie "a=1";
            add_header Set-Cookie "b=$host";
            add_header Cache-Control private;
            location /app/ { proxy_pass http://127.0.0.1:1; }
            location / { expires 1h; }
        }
        "#,
        &[
            "prefix = \"/app/\"\nproxy",
            "add = { Set-Cookie = [\"a=1\", \"b={host}\"], Cache-Control = \"private\" }, errors = false",
            "prefix = \"/\"\nfiles = { root = \"/srv\" }\nresponse_headers = { set = { Cache-Control = \"max-age=3600, private\" }, add = { Set-Cookie = [",
        ],
        &[],
    );
}

#[test]
fn what_hides_or_changes_fields_of_a_server_holds_for_errors_too() {
    check(
        r#"
        server {
            listen 80;
            proxy_hide_header X-Secret;
            add_header X-Frame-Options DENY always;
            add_header X-Version 1;
            add_header X-Empty "";
            location / { proxy_pass http://127.0.0.1:1; }
        }
        "#,
        &[
            "remove = [\"X-Secret\"], add = { X-Version = \"1\" }, always = { X-Frame-Options = \"DENY\" }, errors = false }",
        ],
        &[],
    );
}
