//! Locations that keep clients out, beside others that would let them in.

use super::{check, imported};

/// The routes of these locations stand in this order.
fn check_order(locations: &str, lines: &[&str], notes: &[&str]) {
    check(
        &format!("server {{ listen 80; {locations} }}"),
        lines,
        notes,
    );
}

#[test]
fn expressions_within_a_prefix_are_for_its_paths_and_come_first() {
    check_order(
        r"
        location ~ \.php$ { proxy_pass http://127.0.0.1:1; }
        location /uploads/ {
            proxy_pass http://127.0.0.1:2;
            location ~ \.php$ { deny all; }
            location ~ /\. { deny all; }
        }
        location ^~ /files/ {
            proxy_pass http://127.0.0.1:3;
            location ~ \.php$ { return 403; }
        }
        location /open/ {
            proxy_pass http://127.0.0.1:4;
            location ~ \.txt$ { proxy_pass http://127.0.0.1:5; }
        }
        location /open/closed/ { deny all; }
        location / { return 404; }
        ",
        &[
            "regex = \"(?-i:/open/closed/.*)\"\nrespond = { status = 403",
            "regex = \"(?-i:/uploads/).*(?-i:\\\\.php)\"\nrespond = { status = 403",
            "regex = \"(?-i:/uploads)(?:/.*)?(?-i:/\\\\.).*\"\nrespond = { status = 403",
            "regex = \"(?-i:/files/).*(?-i:\\\\.php)\"\nrespond = { status = 403",
            "regex = \"(?-i:/files/.*)\"\nproxy",
            "regex = \"(?-i:/open/).*(?-i:\\\\.txt)\"\nproxy = { to = \"http://127.0.0.1:5\"",
            "regex = \".*(?-i:\\\\.php)\"\nproxy = { to = \"http://127.0.0.1:1\"",
            "regex = \"(?-i:/uploads/.*)\"\nproxy",
            "regex = \"(?-i:/open/.*)\"\nproxy = { to = \"http://127.0.0.1:4\"",
            "regex = \"(?-i:/.*)\"\nrespond = { status = 404",
        ],
        &[
            "location: locations within it stand beside it here",
            "location: locations within it stand beside it here",
            "location: locations within it stand beside it here",
        ],
    );
}

#[test]
fn an_expression_that_may_match_elsewhere_closes_more_or_is_left_out() {
    check_order(
        r"
        location /uploads/ {
            proxy_pass http://127.0.0.1:2;
            location ~ uploads/secret { deny all; }
            location ~ ^/[a-z]+/open { proxy_pass http://127.0.0.1:3; }
            location ~ ^/uploads/open { proxy_pass http://127.0.0.1:4; }
        }
        ",
        &[
            "regex = \".*(?-i:uploads/secret).*\"\nrespond = { status = 403",
            "regex = \"(?-i:/uploads/open).*\"\nproxy = { to = \"http://127.0.0.1:4\"",
            "regex = \"(?-i:/uploads/.*)\"\nproxy = { to = \"http://127.0.0.1:2\"",
        ],
        &[
            "location: locations within it stand beside it here",
            "location: left out: `^/[a-z]+/open` is not known to match below `/uploads/` alone",
        ],
    );
}

#[test]
fn the_longest_prefix_counts_also_beside_one_that_comes_before_expressions() {
    check_order(
        r"
        location ^~ /a/ { proxy_pass http://127.0.0.1:1; }
        location ^~ /a/b/ { deny all; }
        location /a/secret/ { deny all; }
        location /a/adm { deny all; }
        location ~ \.env$ { deny all; }
        location ~ \.png$ { proxy_pass http://127.0.0.1:2; }
        ",
        &[
            "regex = \".*(?-i:\\\\.env)\"\nrespond = { status = 403",
            "regex = \"(?-i:/a/secret/.*)\"\nrespond = { status = 403",
            "regex = \"(?-i:/a/adm.*)\"\nrespond = { status = 403",
            "regex = \"(?-i:/a/b/.*)\"\nrespond = { status = 403",
            "regex = \"(?-i:/a/.*)\"\nproxy",
            "regex = \".*(?-i:\\\\.png)\"\nproxy",
        ],
        &[],
    );
}

#[test]
fn case_counts_where_it_decides_who_is_let_in() {
    check_order(
        "location /Admin/ { proxy_pass http://127.0.0.1:1; } location /admin/ { deny all; }
        location = /Login { proxy_pass http://127.0.0.1:1; } location = /login { return 403; }",
        &[
            "regex = \"(?-i:/Login)\"\nproxy",
            "regex = \"(?-i:/login)\"\nrespond = { status = 403",
            "regex = \"(?-i:/Admin/.*)\"\nproxy",
            "regex = \"(?-i:/admin/.*)\"\nrespond = { status = 403",
        ],
        &[],
    );
    let opened =
        "auth_basic x; auth_basic_user_file p; location = /Ping { auth_basic off; return 200; }
        location / { proxy_pass http://127.0.0.1:1; }";
    let toml = imported(&format!("server {{ listen 80; {opened} }}")).toml;
    assert!(
        toml.contains("regex = \"(?-i:/Ping)\"\nrespond = { status = 200"),
        "{toml}"
    );
}

#[test]
fn rules_of_a_named_location_hold_for_those_whom_try_files_leads_there() {
    check_order(
        "root /srv; location / { try_files $uri @app; }
        location @app { deny all; proxy_pass http://127.0.0.1:1; }",
        &[
            "prefix = \"/\"\nfiles = { root = \"/srv\", index = [], trailing_slash = \"exact\" }\non_status = { 400 = { to = \"@app (nginx.conf:2)\", status = \"own\" }, 404 = { to = \"@app (nginx.conf:2)\", status = \"own\" }, 405 = ",
            "name = \"@app (nginx.conf:2)\"\ninternal = true\nrespond = { status = 403",
        ],
        &[],
    );
}

#[test]
fn a_named_location_that_leads_on_to_a_closed_one_is_closed() {
    check_order(
        "root /srv; location / { try_files $uri @on; }
        location @on { rewrite ^ /closed/x last; proxy_pass http://127.0.0.1:1; }
        location /closed/ { deny all; }",
        &["internal = true\nrespond = { status = 403"],
        &["location: responds with 403: it may lead to a location that keeps clients out"],
    );
}

#[test]
fn an_internal_location_is_nothing_to_clients_whatever_it_does() {
    for does in [
        "return 200 secret;",
        "return 301 /secret;",
        "if ($request_method = POST) { return 405; } return 200 secret;",
        "proxy_pass http://127.0.0.1:1;",
    ] {
        let imported = imported(&format!(
            "server {{ listen 80; location /deep {{ internal; {does} }} location / {{ return 200 open; }} }}"
        ));
        let routes = imported
            .toml
            .split("[[route]]")
            .filter(|it| it.contains("/deep"));
        let reached: Vec<_> = routes
            .filter(|it| !it.contains("internal = true"))
            .collect();
        assert!(!reached.is_empty(), "{}", imported.toml);
        assert!(
            reached
                .iter()
                .all(|it| it.contains("respond = { status = 404")),
            "{does}\n{}",
            imported.toml
        );
    }
}

#[test]
fn files_of_an_alias_are_found_behind_an_expression_and_pages_by_a_rewrite() {
    check_order(
        "root /srv; error_page 503 @down;
        location ^~ /static/ { alias /var/files/; }
        location ~ \\.php$ { return 403; }
        location @down { rewrite ^ /down.html break; }
        location /x/ { rewrite ^/x/(.*)$ /y/$1 last; }
        location / { proxy_pass http://127.0.0.1:1; }",
        &[
            "files = { root = \"/var/files/\", strip = \"/static/\" }",
            "regex = \"(?-i:/x/(.*))\"\nrewrite = { to = \"/y/{1}{query}\" }",
            "internal = true\nrespond = { file = \"/srv/down.html\", type = \"text/html; charset=utf-8\", optional = true }",
        ],
        &[],
    );
}

#[test]
fn a_location_that_changes_the_path_leads_to_another() {
    check_order(
        "root /srv;
        location = / { rewrite ^ /home.html; }
        location /v1/ { rewrite ^/v1/([a-z]+)/(.*)$ /$1.php?rest=$2 last; return 404; }
        location ~ ^/([^/]+)/css/(.*)$ { rewrite ^/([^/]+)/css/(.*)$ /css/$2?; }
        location /app/ { try_files $uri @app; }
        location @app { rewrite ^/(.*)$ /index.php/$1 last; }
        location ~ \\.php$ { proxy_pass http://127.0.0.1:1; }",
        &[
            "regex = \"(?-i:/)\"\nrewrite = { to = \"/home.html{query}\" }",
            "rewrite = { to = \"/css/{2}\" }",
            "regex = \"(?-i:/v1/([a-z]+)/(.*))\"\nrewrite = { to = \"/{1}.php?rest={2}{query}\" }",
            "rewrite = { to = \"/index.php{path}{query}\" }",
        ],
        &[],
    );
    // One that stays in its location looks for other files.
    check_order(
        "root /srv;
        location ~ ^/static/(a|b)/ { rewrite ^/static/(.*)$ /$1 break; try_files $uri @app; }
        location @app { proxy_pass http://127.0.0.1:1; }",
        &["regex = \"(?-i:/static/(a|b)/).*\"\nfiles = { root = \"/srv\", strip = \"/static/\""],
        &[],
    );
    check_order(
        "root /srv; location /old/ { rewrite ^/old/(.*) /new/$1 break; }",
        &["prefix = \"/old/\"\nfiles = { root = \"/srv/new\", optional = true }"],
        &[],
    );
    // What is left out is said: what another one changes before, what a server changes once, and groups of another expression.
    for (does, reason) in [
        (
            "location / { rewrite ^/a /b; rewrite ^/b /c; }",
            "rewrite: left out: paths are changed where",
        ),
        (
            "location ~ \\.x$ { rewrite ^/a/(.*) /b/$1; }",
            "rewrite: left out: it is within an expression of another form",
        ),
    ] {
        check_order(&format!("root /srv; {does}"), &[], &[reason]);
    }
}

#[test]
fn bytes_of_an_expression_are_the_characters_of_the_path() {
    check(
        r"
        server {
            listen 80;
            location ~ ^/caf\xc3\xa9 { return 403; }
            location ~ ^/[\xc3]x { deny all; }
            location = /one { proxy_pass http://10.0.0.1/two; }
            location / { proxy_pass http://10.0.0.1; }
        }
        ",
        &[
            "path = \"/one\"\nproxy = { to = \"http://10.0.0.1\", rewrite = { from = \"^/one$\", to = \"/two\" }",
            "regex = \"(?-i:/café).*\"\nrespond = { status = 403",
            "regex = \"/.*\"\nrespond = { status = 403",
        ],
        &[
            "location: paths that match `/.*` respond with 403: `^/[\\xc3]x` names bytes that are no characters",
        ],
    );
}
