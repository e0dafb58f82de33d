use super::*;

mod access;

mod cache;

mod cookies;

mod every_directive;

mod expressgateway;

mod habits;

mod uwsgi;

mod listeners;

mod loads;

mod maps;

mod precedence;

mod rate_limit;

mod stream;

mod variables;

pub(super) mod translation;

mod tried;

mod types;

use self::translation::{check_translation, loaded};

fn imported(text: &str) -> Imported {
    let mut include = |_: &str| Err("there are no files here".into());
    let imported = import_nginx("nginx.conf", text, &mut include).unwrap();
    loaded(imported)
}

/// The translation has these lines, and its notes contain these texts.
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    check_translation(&imported(text), lines, notes);
}

#[test]
fn an_upstream_a_server_and_its_locations() {
    check(
        r"
        user www-data;
        events { worker_connections 1024; }
        http {
            upstream app { least_conn; server 10.0.0.1:8080 weight=2; server 10.0.0.2:8080 max_fails=3; server 10.0.0.3 backup; keepalive 16; }
            server {
                listen 80;
                server_name example.org www.example.org;
                location / {
                    proxy_pass http://app;
                    proxy_set_header Host $host;
                    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                    proxy_read_timeout 90s;
                    client_max_body_size 10m;
                }
                location /api/ { proxy_pass http://127.0.0.1:9000/v1/; }
            }
        }
        ",
        &[
            "[[listen]]\naddress = \":80\"\n",
            "host = \"example.org\"\nprefix = \"/api/\"\nproxy = { to = \"http://127.0.0.1:9000\", strip = true, path = \"/v1\", host = \"127.0.0.1:9000\", forwarded = \"none\", max_request = \"1MiB\" }",
            "host = \"example.org\"\nprefix = \"/\"\nproxy = { to = \"app\", response_timeout = \"90s\", idle_timeout = \"90s\", host = \"{host}\", forwarded = \"x\", max_request = \"10MiB\" }",
            "host = \"www.example.org\"",
            "[[route]]\nprefix = \"/api/\"",
            "[upstream.app]\nservers = [{ url = \"http://10.0.0.1:8080\", weight = 2 }, \"http://10.0.0.2:8080\", { url = \"http://10.0.0.3\", backup = true }]\n",
            "balance = \"least_requests\"\nkeep = 16\neject = { failures = 1, time = \"10s\" }\n",
        ],
        &["upstream: failures are counted for all servers alike: after 1 in a row"],
    );
}

#[test]
fn locations_keep_the_precedence_of_nginx() {
    check(
        r"
        server {
            listen 127.0.0.1:8080;
            location = /health { return 200 ok; }
            location ^~ /static/ { root /srv/www; }
            location ~ \.php$ { proxy_pass http://127.0.0.1:9001; }
            location ~* ^/IMAGES/ { proxy_pass http://127.0.0.1:9002; }
            location /shop { proxy_pass http://127.0.0.1:9003/store; }
            location / { proxy_pass http://127.0.0.1:9004; }
        }
        ",
        &[
            "address = \"127.0.0.1:8080\"",
            "path = \"/health\"\nrespond = { status = 200, body = \"ok\" }",
            "prefix = \"/static/\"\nfiles = { root = \"/srv/www/static\", optional = true }",
            "regex = \".*(?-i:\\\\.php)\"\nproxy = { to = \"http://127.0.0.1:9001\"",
            "regex = \"(?i:/IMAGES/).*\"\nproxy = { to = \"http://127.0.0.1:9002\"",
            "regex = \"(?-i:/shop.*)\"\nproxy = { to = \"http://127.0.0.1:9003\", rewrite = { from = \"^/shop\", to = \"/store\" }",
            "regex = \"(?-i:/.*)\"\nproxy = { to = \"http://127.0.0.1:9004\"",
        ],
        &[],
    );
}

#[test]
fn tls_redirects_and_defaults() {
    check(
        r"
        server { listen 80 default_server; listen [::]:80 default_server; server_name _; return 301 https://$host$request_uri; }
        server {
            listen 443 ssl http2; listen [::]:443 ssl http2;
            server_name .example.org;
            ssl_certificate /etc/cert.pem; ssl_certificate_key /etc/key.pem;
            location /old { return 302 https://example.com$uri; }
            location = /gone { return 410; }
        }
        ",
        &[
            "address = \":443\"\ntls = { cert = \"/etc/cert.pem\", key = \"/etc/key.pem\" }",
            "address = \":80\"\nredirect_https = { status = 301 }",
            "host = \"example.org\"\npath = \"/gone\"\nrespond = { status = 410, body = \"\" }",
            "regex = \"(?-i:/old.*)\"\nredirect = { to = \"https://example.com{path}\", status = 302 }",
            "regex = \"/.*\"\nrespond = { status = 404",
            "host = \"*.example.org\"",
        ],
        &[],
    );
}

#[test]
fn a_location_inherits_from_those_around_it_but_does_not_forward_for_them() {
    check(
        r#"
        server {
            listen 80;
            location / { return 301 https://$host$request_uri; }
            location /.well-known/acme-challenge/ { root /srv/acme; }
        }
        server {
            listen 443 ssl;
            root /srv/www;
            location / {
                proxy_set_header Host $host;
                proxy_set_header Proxy "";
                proxy_pass http://127.0.0.1:3000;
                location ~ ^/assets/ { add_header Cache-Control "public"; }
                location /inner/ { proxy_pass http://127.0.0.1:3001; }
            }
        }
        "#,
        &[
            "address = \":443\"\ntls = { self_signed = true }",
            "address = \":80\"\nredirect_https = { status = 301 }",
            "regex = \"(?-i:/assets/).*\"\nfiles = { root = \"/srv/www\" }\nresponse_headers = { set = { Cache-Control = \"public\" }, errors = false }",
            "regex = \"(?-i:/inner/.*)\"\nproxy = { to = \"http://127.0.0.1:3001\", host = \"{host}\", forwarded = \"none\", headers = { Proxy = false }",
            "regex = \"(?-i:/.*)\"\nproxy = { to = \"http://127.0.0.1:3000\", host = \"{host}\"",
        ],
        &[
            "nginx.conf:5: location: left out: the listener redirects every request",
            "nginx.conf:10: location: locations within it stand beside it here",
        ],
    );
}

#[test]
fn whatever_has_no_counterpart_is_reported_with_its_place() {
    check(
        r"
        http {
            lua_shared_dict x 1m;
            upstream u { server unix:/run/x.sock weight=2; server 10.0.0.1; sticky cookie id; }
            server {
                location / {
                    proxy_pass http://u;
                    proxy_set_header X-Id $request_length;
                    proxy_set_header X-Request-Id $request_id;
                    proxy_cache zone;
                }
                location /scgi { scgi_pass 127.0.0.1:9000; }
                location /var { proxy_pass http://$backend; }
                location ~ (?=x) { return 200; }
            }
        }
        stream { server { listen 53; } }
        ",
        &[
            "status = 501",
            "status = 502",
            "request_id = { field = \"x-request-id\" }",
            "[upstream.u]\nservers = [{ url = \"unix:/run/x.sock\", weight = 2 }, \"http://10.0.0.1\"]",
        ],
        &[
            "nginx.conf:3: lua_shared_dict: left out",
            "nginx.conf:4: sticky: left out",
            "nginx.conf:8: proxy_set_header: servers get no `X-Id`: `$request_length` has no counterpart",
            "nginx.conf:10: proxy_cache: responses are kept in memory",
            "nginx.conf:12: scgi_pass: responds with 501",
            "nginx.conf:13: proxy_pass: responds with 502",
            "nginx.conf:14: location: left out: `(?=x)` is not a regular expression here",
            "nginx.conf:17: server: left out: it neither forwards nor returns a text",
        ],
    );
}

#[test]
fn applications_behind_fastcgi_keep_their_scripts_and_parameters() {
    check(
        "
        http {
            upstream php { server unix:/run/php/php-fpm.sock; }
            server {
                listen 80; root /var/www/html/; index index.php; client_max_body_size 64m;
                fastcgi_param QUERY_STRING $query_string;
                location / { try_files $uri $uri/ /index.php?$args; }
                location ~ \\.php$ {
                    fastcgi_split_path_info ^(.+\\.php)(/.+)$;
                    fastcgi_pass php;
                    fastcgi_index index.php;
                    fastcgi_read_timeout 300;
                    fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                    fastcgi_param PATH_INFO $fastcgi_path_info;
                    fastcgi_param APP_ENV prod;
                    fastcgi_param X $request_length;
                }
                location /front { fastcgi_pass 127.0.0.1:9000; fastcgi_param SCRIPT_FILENAME /srv/app/public/index.php; }
                location /other { fastcgi_pass 127.0.0.1:9000; fastcgi_param SCRIPT_FILENAME /srv$fastcgi_script_name; }
            }
        }
        ",
        &[
            "proxy = { to = \"php\", response_timeout = \"300s\", idle_timeout = \"300s\", fastcgi = { index = \"index.php\", root = \"/var/www/html\", parameters = { APP_ENV = \"prod\" } }, max_request = \"64MiB\" }",
            "proxy = { to = \"http://127.0.0.1:9000\", protocol = \"fastcgi\", fastcgi = { script = \"/index.php\", split = \"\", root = \"/srv/app/public\" }, max_request = \"64MiB\" }",
            "fastcgi = { split = \"\", root = \"/srv\" }",
            // The text of a script is not for clients.
            "files = { root = \"/var/www/html\", trailing_slash = \"folders\" }\non_status = { 400 = { to = \"@/index.php (nginx.conf:8)\", status = \"own\" }, 404",
            "name = \"@/index.php (nginx.conf:8)\"\ninternal = true\nproxy = { to = \"php\", response_timeout = \"300s\", idle_timeout = \"300s\", fastcgi = { index = \"index.php\", root = \"/var/www/html\", parameters = { APP_ENV = \"prod\" }, script = \"/index.php\", folders = true }",
            "[upstream.php]\nservers = [\"unix:/run/php/php-fpm.sock\"]\nprotocol = \"fastcgi\"",
        ],
        &["nginx.conf:16: fastcgi_param: left out: `$request_length` has no counterpart, so `X` is not sent"],
    );
}

#[test]
fn groups_that_are_the_rest_of_a_path_name_files() {
    check(
        "http { server { listen 80; root /srv;
            location ~ ^/wp-content/(.*)$ { alias /var/lib/content/$1; }
            location ~ ^/media/(?<file>.+\\.(png|jpg))$ { alias /srv/pictures/$file; }
            location ~ ^/a\\.b/(.*)$ { alias /srv/ab/${1}; }
            location ~ ^/two/(.*)/(.*)$ { alias /srv/two/$1; }
            location ~ ^/any./(.*)$ { alias /srv/any/$1; }
            location ~* ^/case/(.*)$ { alias /srv/case/$1; }
            location ~ ^/end/(.*)$ { alias /srv/end/$1.html; }
            location ~ ^/bare/(?:.*)$ { alias /srv/bare/$1; }
        } }",
        &[
            "regex = \"(?-i:/wp-content/(.*))\"\nfiles = { root = \"/var/lib/content/\", strip = \"/wp-content/\" }",
            "files = { root = \"/srv/pictures/\", strip = \"/media/\" }",
            "files = { root = \"/srv/ab/\", strip = \"/a.b/\" }",
        ],
        &[
            "nginx.conf:5: alias: responds with 404: a folder cannot depend on the request",
            "nginx.conf:6: alias: responds with 404",
            "nginx.conf:7: alias: responds with 404",
            "nginx.conf:8: alias: responds with 404",
            "nginx.conf:9: alias: responds with 404",
        ],
    );
}

#[test]
fn what_files_try_says_which_slashes_lead_on() {
    check(
        "http { server { listen 80; root /srv;
            location /a/ { try_files $uri $uri/ @app; }
            location /b/ { index index.html; try_files $uri @app; }
            location /c/ { try_files $uri $uri/index.html @app; }
            location /d/ { try_files $uri $uri/ =404; }
            location @app { proxy_pass http://127.0.0.1:1; }
        } }",
        &[
            "root = \"/srv/a\", optional = true, trailing_slash = \"folders\" }",
            "root = \"/srv/b\", optional = true, index = [], trailing_slash = \"exact\" }",
            "root = \"/srv/c\", optional = true }",
            "root = \"/srv/d\", optional = true }",
        ],
        &[],
    );
}

#[test]
fn texts_of_scripts_are_never_files() {
    let imported = imported(
        "http { server { listen 80; root /srv; index index.php index.html;
            location /pma/ { alias /usr/share/pma/; location ~ \\.php$ { fastcgi_pass 127.0.0.1:9000; try_files $uri =404; } }
            location ^~ /blog/ { alias /srv/blog/; location ~ \\.php$ { fastcgi_pass 127.0.0.1:9000; } }
            location / { try_files $uri /index.php$is_args$args; }
            location ~ ^/index\\.php(/|$) { fastcgi_pass 127.0.0.1:9000; internal; }
        } }",
    );
    let toml = &imported.toml;
    assert!(
        !toml.contains("\"index.php\"]") && !toml.contains("[\"index.php\""),
        "{toml}"
    );
    let scripts = toml
        .find("/pma/.*(?-i:\\\\.php)")
        .or_else(|| toml.find("must_exist = true"));
    let files = toml.find("/usr/share/pma").expect("the files are there");
    assert!(scripts.is_some_and(|it| it < files), "{toml}");
    assert!(!toml.contains("prefix = \"/pma"), "{toml}");
    assert!(toml.contains("script = \"/index.php\""), "{toml}");
}

#[test]
fn words_with_quotes_stay_texts() {
    check(
        "server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_next_upstream http_5\"0]; } }",
        &["proxy = { to = \"http://127.0.0.1:1\""],
        &["proxy_next_upstream: `http_5\"0]` is left out"],
    );
}

#[test]
fn rewrites_headers_and_layers() {
    check(
        r#"
        server {
            listen 8080;
            gzip on;
            add_header X-Frame-Options DENY always;
            location /app/ {
                rewrite ^/app/(.*)x$ /$1y break;
                rewrite ^/a /b permanent;
                proxy_pass https://10.0.0.1;
                proxy_hide_header X-Powered-By;
                proxy_set_header Accept-Encoding "";
                proxy_set_header X-Tenant "a \"b\"";
                proxy_next_upstream error timeout http_503;
                proxy_next_upstream_tries 3;
                proxy_ssl_name shop.test;
                auth_basic "Keep out"; auth_basic_user_file /etc/htpasswd;
            }
        }
        "#,
        &[
            "rewrite = [{ from = \"^/app/(.*)x$\", to = \"/${1}y\" }]",
            "headers = { Accept-Encoding = false, X-Tenant = \"a \\\"b\\\"\" }",
            "retry = { retries = 2, on = [\"connect\", \"reset\", \"timeout\", \"503\"] }, tls = { insecure = true, server_name = \"shop.test\" }",
            "response_headers = { rewrite = [{ name = \"location\", from = \"^https://10\\\\.0\\\\.0\\\\.1/\", to = \"/\" }], remove = [\"X-Powered-By\"], add = { X-Frame-Options = \"DENY\" } }",
            "basic_auth = { realm = \"Keep out\", file = \"/etc/htpasswd\" }\ncompress = { least = \"20B\" }",
        ],
        &["rewrite: left out"],
    );
}

#[test]
fn conditions_become_routes_and_variables_their_values() {
    check(
        r#"
        upstream ui { server 10.0.0.1:1; }
        server {
            listen 80;
            set $host_of api;
            location / {
                set $target "http://ui";
                if ($http_accept = "application/json; profile=\"x\"") { set $target "http://10.0.0.2"; }
                if ($request_method ~ ^(POST|PUT)$) { set $target http://10.0.0.3; add_header X y; }
                if ($arg_old) { return 410; }
                if ($http_x_old) { return 410 gone; }
                proxy_pass $target;
                proxy_set_header X-Of ${host_of}-$host_offset;
            }
            location /swag/ {
                set $upstream_app cloud; set $upstream_port 443; set $upstream_proto https;
                proxy_pass $upstream_proto://$upstream_app:$upstream_port;
            }
            location /rand { set $x $request_id; proxy_pass http://ui; }
        }
        "#,
        &[
            "path = \"/swag\"\nredirect = { to = \"{path}/{query}\", status = 301 }",
            "regex = \"(?-i:/swag/.*)\"\nproxy = { to = \"https://cloud:443\"",
            "regex = \"(?-i:/rand.*)\"",
            "regex = \"(?-i:/.*)\"\nquery = { old = true }\nrespond = { status = 410, body = \"\" }",
            "regex = \"(?-i:/.*)\"\nheader = { x-old = true }\nrespond = { status = 410, body = \"gone\" }",
            "regex = \"(?-i:/.*)\"\nmethod = [\"POST\", \"PUT\"]\nproxy = { to = \"http://10.0.0.3\"",
            "regex = \"(?-i:/.*)\"\nheader = { accept = \"application/json; profile=\\\"x\\\"\" }\nproxy = { to = \"http://10.0.0.2\"",
            "regex = \"(?-i:/.*)\"\nproxy = { to = \"ui\"",
        ],
        &[
            "nginx.conf:9: add_header: left out",
            "proxy_set_header: servers get no `X-Of`: `api-$host_offset` has no counterpart",
            "set: left out: `$request_id` depends on the request",
        ],
    );
}

#[test]
fn redirects_of_certbot_are_redirects() {
    check(
        r#"
        server {
            listen 443 ssl;
            server_name example.org www.example.org;
            if ($host = www.example.org) { return 301 https://example.org$request_uri; }
            location / { proxy_pass http://127.0.0.1:3000; }
        }
        server {
            if ($host = example.org) { return 301 https://$host$request_uri; }
            if ($host = www.example.org) { return 301 https://$host$request_uri; }
            listen 80; server_name example.org www.example.org;
            return 404;
        }
        server {
            listen 8080; listen 8443 ssl;
            server_name both.example.org;
            if ($scheme != "https") { return 301 https://$host$request_uri; }
            location / { proxy_pass http://127.0.0.1:3001; }
        }
        "#,
        &[
            "address = \":443\"",
            "address = \":80\"\nredirect_https = { status = 301 }",
            "address = \":8080\"\nredirect_https = { status = 301 }",
            "address = \":8443\"\nname = \":8443\"\ntls",
            "host = \"www.example.org\"\nprefix = \"/\"\nredirect = { to = \"https://example.org{path}{query}\", status = 301 }",
            "host = \"example.org\"\nprefix = \"/\"\nproxy = { to = \"http://127.0.0.1:3000\"",
            "host = \"both.example.org\"\nprefix = \"/\"\nproxy = { to = \"http://127.0.0.1:3001\"",
        ],
        &[],
    );
}

#[test]
fn included_files_stand_in_the_place_of_their_directive() {
    let mut include = |name: &str| match name {
        "conf.d/*.conf" => Ok(vec![(
            "conf.d/a.conf".to_owned(),
            "server { listen 81; frobnicate on; }".to_owned(),
        )]),
        _ => Err(format!("{name}: no such file").into()),
    };
    let text = "http { include conf.d/*.conf; }";
    let imported = import_nginx("nginx.conf", text, &mut include).unwrap();
    assert!(
        imported.toml.contains("address = \":81\""),
        "{}",
        imported.toml
    );
    assert_eq!(
        imported.notes[0].to_string(),
        "conf.d/a.conf:1: frobnicate: left out: there is no counterpart"
    );
    let error = import_nginx("nginx.conf", "\ninclude none;", &mut include).unwrap_err();
    assert_eq!(error.to_string(), "nginx.conf:2: none: no such file");
}

#[test]
fn errors_of_syntax_have_their_place() {
    let mut include = |_: &str| Ok(Vec::new());
    for (text, expected) in [
        ("http {\n server {", "n:2: the block is not closed"),
        ("a b", "n:1: the directive does not end with `;`"),
        ("\n}", "n:2: there is no block to close"),
        (";", "n:1: there is no directive before this"),
        ("a \"b", "n:1: the quote is not closed"),
        ("a { b }", "n:1: the directive does not end with `;`"),
    ] {
        let error = import_nginx("n", text, &mut include).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text:?}");
    }
    // Deep nesting is an error and not a crash.
    let deep = "a {".repeat(100_000);
    assert!(import_nginx("n", &deep, &mut include).is_err());
}

#[test]
fn redirects_by_groups_come_before_what_else_a_location_does() {
    check(
        r"
        server {
            listen 127.0.0.1:8080;
            rewrite ^/legacy/(\w+)\.php$ /pages/$1 permanent;
            location ~ ^/users/(?<user>[a-z]+)/(\d+)$ { return 301 /people/$user?id=$2; }
            location /old/ {
                rewrite ^/old/(.*)$ https://new.test/$1? redirect;
                proxy_pass http://10.0.0.1:8080;
            }
            location /all/ { rewrite ^(.*)$ https://new.test$1 permanent; }
        }
        ",
        &[
            "regex = \"(?-i:/legacy/(\\\\w+)\\\\.php)\"\nredirect = { to = \"/pages/{1}{query}\", status = 301 }",
            "regex = \"(?-i:/users/(?<user>[a-z]+)/(\\\\d+))\"\nredirect = { to = \"/people/{user}?id={2}\", status = 301 }",
            "regex = \"(?-i:/old/(.*))\"\nredirect = { to = \"https://new.test/{1}\", status = 302 }",
            "regex = \"(?-i:/old/.*)\"\nproxy = ",
            "regex = \"((?-i:/all/.*))\"\nredirect = { to = \"https://new.test{1}{query}\", status = 301 }",
        ],
        &[],
    );
}

#[test]
fn redirects_that_cannot_be_translated_are_reported() {
    check(
        r"
        server {
            listen 127.0.0.1:8080;
            location /a/ {
                rewrite ^/(.+)/x$ /y/$1 permanent;
                rewrite ^/a/(.*)$ /$geo/$1 permanent;
                rewrite ^/a/(?=x) /z permanent;
                proxy_pass http://10.0.0.1:8080;
                proxy_redirect http://$upstream_host/ /;
            }
            location /b/ {
                rewrite ^/b/(.*)$ /c/$1 last;
                rewrite ^/c/(.*)$ /d/$1 permanent;
                proxy_pass http://10.0.0.1:8080;
            }
        }
        ",
        &["regex = \"(?-i:/a/.*)\""],
        &[
            "it matches paths that do not begin with `/a/`",
            "`/$geo/$1` has a variable without a counterpart",
            "is not a regular expression here",
            "proxy_redirect: left out",
            "another `rewrite` changes the path before it",
            "the location is not chosen again",
        ],
    );
}

#[test]
fn locations_of_servers_are_rewritten() {
    let text = r"
        upstream app { server 10.0.0.1:8080; }
        server {
            listen 127.0.0.1:8080;
            location /a/ { proxy_pass http://10.0.0.1:8080/x/; add_header X-A b always; }
            location /b/ { proxy_pass http://10.0.0.1:8080; proxy_redirect off; }
            location /c/ { proxy_pass http://app; proxy_redirect ~*^http://([a-z]+)\.internal/ https://$host/c/$1/; }
            location /d/ { proxy_pass http://app; proxy_set_header Host $host; }
            location /e/ { proxy_pass http://app; }
        }
        ";
    check(
        text,
        &[
            "prefix = \"/a/\"\n",
            "response_headers = { rewrite = [{ name = \"location\", from = \"^http://10\\\\.0\\\\.0\\\\.1:8080/x/\", to = \"/a/\" }], add = { X-A = \"b\" } }",
            "prefix = \"/c/\"\n",
            "response_headers = { rewrite = [{ name = \"location\", from = \"(?i)^http://([a-z]+)\\\\.internal/.*$\", to = \"https://{host}/c/{1}/\" }] }",
            "prefix = \"/e/\"\n",
            "response_headers = { rewrite = [{ name = \"location\", from = \"^http://app/\", to = \"/\" }] }",
        ],
        &[],
    );
    // Not of the server whose redirects stay, nor of one that does not know the name of its upstream.
    assert_eq!(imported(text).toml.matches("rewrite = [").count(), 3);
}

#[test]
fn fields_that_a_response_has_once_are_replaced() {
    check(
        r#"
        server {
            listen 80;
            location /none { root /a; add_header Last-Modified ""; add_header ETag ""; add_header X-A ""; }
            location /own { root /b; add_header last-modified "Mon, 28 Sep 1970 06:00:00 GMT"; expires 1h; }
        }
        "#,
        &[
            "/none",
            "response_headers = { remove = [\"Last-Modified\", \"ETag\"] }",
            "/own",
            "response_headers = { set = { last-modified = \"Mon, 28 Sep 1970 06:00:00 GMT\", Cache-Control = \"max-age=3600\" }, errors = false }",
        ],
        &[],
    );
}

#[test]
fn an_empty_certificate_takes_back_the_one_around_it() {
    let imported = imported(
        r#"
        server {
            listen 80;
            proxy_ssl_certificate /c.pem;
            proxy_ssl_certificate_key /k.pem;
            location /with/ { proxy_pass https://10.0.0.1; }
            location /without/ { proxy_pass https://10.0.0.1; proxy_ssl_certificate ""; proxy_ssl_certificate_key ""; }
        }
        "#,
    );
    let certificates = imported.toml.matches("cert = \"/c.pem\"").count();
    assert_eq!(certificates, 1, "{}", imported.toml);
    assert!(!imported.toml.contains("cert = \"\""), "{}", imported.toml);
}

#[test]
fn a_protocol_that_a_field_names_is_one_to_upgrade_to() {
    let upgrades = |value: &str| {
        let text = format!(
            "server {{ listen 80; location / {{ proxy_pass http://10.0.0.1; proxy_set_header Upgrade {value}; proxy_set_header Connection Upgrade; }} }}"
        );
        let toml = imported(&text).toml;
        let (_, rest) = toml.split_once("upgrades = ")?;
        rest.split_once([',', '}'])
            .map(|(it, _)| it.trim().to_owned())
    };
    assert_eq!(upgrades("foo").as_deref(), Some("[\"foo\"]"));
    assert_eq!(upgrades("SPDY/3.1").as_deref(), Some("[\"SPDY/3.1\"]"));
    assert_eq!(upgrades("$http_upgrade").as_deref(), Some("\"any\""));
    assert_eq!(upgrades("h2c"), None);
    assert_eq!(upgrades("$arg_x"), None);
}
