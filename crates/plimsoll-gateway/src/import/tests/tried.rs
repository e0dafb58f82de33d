//! What `try_files` ends with.

use super::check;

#[test]
fn an_error_other_than_404_is_the_one_that_is_said() {
    check(
        r"
        server {
            listen 8080;
            root /srv;
            error_page 503 @sorry;
            location /a/ { try_files $uri =410; }
            location /b/ { try_files $uri =503; }
            location /c/ { try_files $uri =200; }
            location @sorry { return 200 sorry; }
        }
        ",
        &[
            "prefix = \"/a/\"",
            "on_status = { 503 = \"@sorry (nginx.conf:9)\", 400 = { to = \"=410 (nginx.conf:6)\", status = \"own\" }, 404 = { to = \"=410 (nginx.conf:6)\", status = \"own\" } }",
            "prefix = \"/b/\"",
            "on_status = { 503 = \"@sorry (nginx.conf:9)\", 400 = { to = \"@sorry (nginx.conf:9)\", status = 503 }, 404 = { to = \"@sorry (nginx.conf:9)\", status = 503 }, 405 = { to = \"@sorry (nginx.conf:9)\", status = 503 } }",
            "name = \"=410 (nginx.conf:6)\"\ninternal = true\nrespond = { status = 410 }\n",
        ],
        &["nginx.conf:8: try_files: what is not there gets a 404; nginx would respond with `=200`"],
    );
}

#[test]
fn a_file_before_the_error_is_for_what_has_none_of_its_own() {
    check(
        r"
        server {
            listen 8080;
            root /srv;
            location / { try_files $uri $uri/ /index.html =404; }
            location /b/ { try_files /sorry.html $uri @app; }
            location @app { proxy_pass http://10.0.0.1; }
        }
        ",
        &[
            "prefix = \"/b/\"",
            "prefix = \"/\"\nfiles = { root = \"/srv\", trailing_slash = \"folders\" }\non_status = { 404 = { to = \"/index.html\", status = \"own\" } }\n",
        ],
        &[
            "nginx.conf:6: try_files: `/sorry.html` is not looked for; nginx would send it for every path",
        ],
    );
}
