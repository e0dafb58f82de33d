//! Habits of configurations that public projects ship.

use super::{check, imported};

#[test]
fn an_if_that_returns_has_fields_of_its_own() {
    check(
        "server { listen 80; location /a/ { add_header X-Own own; proxy_pass http://10.0.0.1;
            if ($request_method = OPTIONS) { add_header Access-Control-Allow-Origin * always; return 204; }
            if ($request_method = GET) { add_header X-If a; }
        } }",
        &[
            "method = \"OPTIONS\"\nrespond = { status = 204, body = \"\" }\nresponse_headers = { add = { Access-Control-Allow-Origin = \"*\" } }\n",
            "add = { X-Own = \"own\" }",
        ],
        &["nginx.conf:3: add_header: left out: an `if` decides by `return`, `set` and `rewrite` alone"],
    );
    let translated = imported(
        "server { listen 80; location /a/ { add_header X-Own own; proxy_pass http://10.0.0.1;
            if ($request_method = OPTIONS) { return 204; }
        } }",
    );
    let of_return =
        "body = \"\" }\nresponse_headers = { add = { X-Own = \"own\" }, errors = false }\n";
    assert!(translated.toml.contains(of_return), "{}", translated.toml);
    assert_eq!(translated.notes, []);
}

#[test]
fn files_that_have_no_name_of_the_request_are_not_looked_up_by_it() {
    let translated = imported(
        "server { listen 80; root /srv/private;
            location / { client_max_body_size 5m; try_files /dev/null @app; }
            location /b/ { try_files /sorry.html @app; }
            location @app { client_max_body_size 100k; proxy_pass http://10.0.0.1; }
        }",
    );
    assert!(!translated.toml.contains("files ="), "{}", translated.toml);
    assert!(translated.toml.contains("max_request = \"5MiB\""));
    let notes: Vec<_> = translated.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "nginx.conf:3: try_files: every request goes to `@app`: files before it are not looked for"
        ]
    );
}

#[test]
fn an_alias_of_an_expression_may_be_a_file_or_the_path_again() {
    check(
        r"server { listen 80;
            location ~ ^/favicon.ico$ { alias /srv/favicon.ico; }
            location ~ ^/(css|fonts(/v[0-9])?)/(.*)$ { alias /srv/app/$1/$3; }
            location ~ ^/(lib|lang)/(.*)$ { alias /srv/app/$2/$1; }
        }",
        &[
            "respond = { file = \"/srv/favicon.ico\", type = \"image/x-icon\", optional = true }\n",
            "(.*))\"\nfiles = { root = \"/srv/app\" }\n",
            "respond = { status = 404",
        ],
        &["nginx.conf:4: alias: responds with 404: a folder cannot depend on the request"],
    );
}

#[test]
fn variables_of_a_server_have_their_values_around_nested_locations() {
    check(
        "server { listen 80; set $public /srv/public; location / { root $public; location ~ ^/plugins/ { expires 1d; } } }",
        &[
            "regex = \"(?-i:/plugins/).*\"\nfiles = { root = \"/srv/public\" }",
            "regex = \"(?-i:/.*)\"\nfiles = { root = \"/srv/public\" }",
        ],
        &["location: locations within it stand beside it here"],
    );
    let twice = imported(
        "server { listen 80; set $public /srv/a; location / { root $public; location ~ ^/b/ { set $public /srv/b; } } }",
    );
    assert!(!twice.toml.contains("/b/).*\"\nfiles = { root = \"/srv/a\""));
}

#[test]
fn a_rewrite_may_begin_with_a_group_that_begins_with_a_slash() {
    check(
        "server { listen 80;
            location /a/ { rewrite ^/a(/.*)$ $1 break; proxy_pass http://10.0.0.1; }
            location /b/ { rewrite ^/b(/.*)?$ $1 break; proxy_pass http://10.0.0.1; }
        }",
        &["rewrite = [{ from = \"^/a/(.*)$\", to = \"/${1}\" }]"],
        &["nginx.conf:3: rewrite: left out"],
    );
}

#[test]
fn a_forwarded_scheme_or_host_that_is_written_down_is_sent() {
    check(
        "server { listen 80;
            location /a/ { proxy_set_header X-Forwarded-Proto https; proxy_set_header X-Forwarded-Host $host; proxy_pass http://10.0.0.1; }
            location /b/ { proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; proxy_set_header X-Forwarded-Host $http_x_forwarded_host/b; proxy_pass http://10.0.0.1; }
        }",
        &["forwarded = \"x\", headers = { X-Forwarded-Proto = \"https\", X-Forwarded-Host = \"{host}\" }"],
        &["nginx.conf:3: proxy_set_header: servers get the host of the request; nginx would send `$http_x_forwarded_host/b`"],
    );
}

#[test]
fn attributes_behind_a_path_of_cookies_are_rules() {
    check(
        "server { listen 80; location / { proxy_cookie_path / \"/; HttpOnly; SameSite=strict\"; proxy_cookie_path /b/ \"/; Odd\"; proxy_pass http://10.0.0.1; } }",
        &[
            "cookies = [{ http_only = true, same_site = \"strict\" }, { path = { from = \"^/\", to = \"/\" } }",
        ],
        &["proxy_cookie_path: left out"],
    );
}

#[test]
fn scripts_are_compressed_by_either_name_and_odd_fields_pass() {
    check(
        "ignore_invalid_headers off; server { listen 80; gzip on; gzip_types application/javascript; location / { proxy_pass http://10.0.0.1; } }",
        &[
            "underscores = \"allow\"\n",
            "types = [\"text/html\", \"application/javascript\", \"text/javascript\"]",
        ],
        &["ignore_invalid_headers: left out: a field with a wrong name is a 400"],
    );
}
