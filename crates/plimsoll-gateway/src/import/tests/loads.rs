//! Whatever the import writes loads, as `up --check` finds out: `imported` compiles every translation.

use std::fs;
use std::path::Path;

use super::{check, import_nginx, imported};

#[test]
fn every_configuration_of_the_repository_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        root.join("fuzz/seeds/nginx"),
        root.join("crates/plimsoll/tests/it/nginx_import"),
        root.join("examples"),
    ];
    let mut count = 0;
    for folder in folders {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_nginx = path.extension().is_none_or(|it| it == "conf") && path.is_file();
            let text = fs::read_to_string(&path);
            let mut include = |_: &str| Err("there are no files here".into());
            let is_whole = |text: &String| import_nginx("n", text, &mut include).is_ok();
            if let Some(text) = text.ok().filter(|_| is_nginx).filter(is_whole) {
                imported(&text);
                count += 1;
            }
        }
    }
    assert!(count > 15, "{count}");
}

#[test]
fn odd_values_load() {
    let odd = [
        "0",
        "-1",
        "99999999999999999999",
        "99999999999999g",
        "x y",
        "\"\"",
        "$x",
        "~(",
        "/a%23b",
        "/..",
        "ü",
        "\"a\\nb\"",
        "unix:",
        "[::1",
        ":::",
        "1y",
        "off",
        "http_404",
        "*",
    ];
    let names = [
        "listen",
        "server_name",
        "ssl_certificate",
        "client_body_timeout",
        "client_max_body_size",
        "return",
        "root",
        "alias",
        "index",
        "expires",
        "add_header X-A",
        "add_header Date",
        "gzip on; gzip_min_length",
        "gzip on; gzip_types",
        "error_page 502",
        "allow",
        "deny",
        "auth_basic",
        "auth_request",
        "proxy_set_header",
        "proxy_set_header Content-Length",
        "proxy_set_header Host",
        "proxy_hide_header",
        "proxy_redirect /",
        "proxy_cookie_path /",
        "proxy_read_timeout",
        "proxy_next_upstream",
        "proxy_ssl_name",
        "proxy_pass",
        "proxy_pass http://",
        "proxy_pass http://u/",
        "rewrite ^/a",
        "limit_except",
        "set_real_ip_from",
        "try_files $uri",
        "large_client_header_buffers 4",
        "keepalive_timeout",
        "proxy_cache_valid 200",
        "if ($http_a =",
        "mirror",
    ];
    for (at, name) in names.into_iter().enumerate() {
        for (number, value) in odd.into_iter().enumerate() {
            let directive = match name {
                "limit_except" => format!("limit_except {value} {{ deny all; }}"),
                name if name.starts_with("if") => format!("{name} {value}) {{ return {value}; }}"),
                name => format!("{name} {value};"),
            };
            let upstream = format!(
                "upstream u {{ server {value}; server 10.0.0.1 weight={value} max_fails={value}; keepalive {value}; hash {value}; }}"
            );
            // At one of the three levels, and over all names and values at each.
            let (http, server, location) = match (at + number) % 3 {
                0 => (&*directive, "", ""),
                1 => ("", &*directive, ""),
                _ => ("", "", &*directive),
            };
            imported(&format!(
                "http {{ {http} {upstream} server {{ {server} location {value} {{ {location} proxy_pass http://u; }} \
                 location ~ {value} {{ return 200; }} location / {{ {location} root /srv; }} }} }}"
            ));
        }
    }
}

#[test]
fn what_up_refused_is_translated_otherwise() {
    check(
        r#"
        upstream twice { server 10.0.0.1:80; server 10.0.0.1 weight=2; server 10.0.0.2; }
        server {
            listen 127.0.0.1:8080;
            location = /ask { internal; proxy_pass http://10.0.0.9/ask; proxy_pass_request_body off; proxy_set_header Content-Length ""; }
            location /app/ { auth_request /ask; proxy_pass http://twice; proxy_set_header Content-Length ""; }
            location = /favicon.ico { alias /srv/icons/favicon.ico; }
            location = /about { alias /srv/about.html; }
            location /a%23b/ { proxy_pass http://10.0.0.3; }
        }
        "#,
        &[
            "path = \"/favicon.ico\"\nfiles = { root = \"/srv/icons\", optional = true }",
            "path = \"/about\"\nfiles = { root = \"/srv\", strip = \"/about\", index = [\"about.html\"], trailing_slash = \"ignore\", optional = true }",
            "prefix = \"/a%2523b/\"\nproxy = ",
            "[upstream.twice]\nservers = [{ url = \"http://10.0.0.1:80\", weight = 3 }, \"http://10.0.0.2\"]\n",
            "eject = { failures = 1, time = \"10s\" }",
        ],
        &[
            "auth_request: the service gets the fields of the request",
            "proxy_set_header: `Content-Length` is left out: the gateway sets it by itself",
        ],
    );
}

#[test]
fn passwords_that_are_not_known_here_close_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwords");
    fs::write(&file, "ann:rqXexS6ZhobKA\n").unwrap();
    check(
        &format!(
            "server {{ listen 8080; location / {{ auth_basic x; auth_basic_user_file {}; proxy_pass http://10.0.0.1; }} }}",
            file.display()
        ),
        &["respond = { status = 501, body = \"not translated\\n\" }"],
        &["location: responds with 501: route[1].basic_auth.file"],
    );
}
