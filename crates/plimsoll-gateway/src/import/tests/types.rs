//! Types of content, and what the tables of the documents say that there is not.

use std::fs;

use super::{check, imported};
use crate::import::fates::READ;

/// A site with directives of `http` and of its location.
fn site(http: &str, location: &str) -> String {
    format!("http {{ {http} server {{ listen 80; location / {{ {location} }} }} }}")
}

#[test]
fn texts_have_the_type_that_nginx_would_send() {
    for (http, location, expected) in [
        (
            "",
            "return 200 ok;",
            "respond = { status = 200, body = \"ok\" }",
        ),
        (
            "default_type application/octet-stream;",
            "default_type application/json; return 200 '[]';",
            "respond = { status = 200, body = \"[]\", type = \"application/json\" }",
        ),
        (
            "charset utf-8;",
            "default_type text/html; return 200 '<p>';",
            "respond = { status = 200, body = \"<p>\", type = \"text/html; charset=utf-8\" }",
        ),
        (
            "",
            "default_type text/html; return 200 'for $host';",
            "type = \"text/html\" }",
        ),
        (
            "",
            "default_type text/html; return 404;",
            "respond = { status = 404, body = \"\" }",
        ),
    ] {
        let text = site(http, location);
        let imported = imported(&text);
        assert!(
            imported.toml.contains(expected),
            "{text}\n{}",
            imported.toml
        );
        assert_eq!(imported.notes, [], "{text}");
    }
}

#[test]
fn what_changes_content_and_has_no_counterpart_has_a_note() {
    let files = "root /a;";
    for (http, note) in [
        ("default_type application/octet-stream;", None),
        (
            "default_type text/html;",
            Some("would send them as `text/html`"),
        ),
        ("charset utf-8;", None),
        (
            "charset koi8-r;",
            Some("nginx would name this character set"),
        ),
        (
            "types { text/x-a a; }",
            Some("types of files are known by extension"),
        ),
        ("gzip_static on;", None),
        ("gzip_static always;", Some("nginx would send it to all")),
        ("proxy_cache_methods GET HEAD;", None),
        ("proxy_cache_methods GET POST;", Some("those to POST too")),
        ("proxy_pass_header Server;", None),
        (
            "proxy_pass_header X-Accel-Expires;",
            Some("nginx would send this one"),
        ),
        ("sub_filter a b;", Some("nginx would replace texts")),
    ] {
        let imported = imported(&site(http, files));
        let notes: Vec<_> = imported.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), usize::from(note.is_some()), "{http} {notes:?}");
        assert!(
            note.is_none_or(|it| notes.iter().any(|note| note.contains(it))),
            "{notes:?}"
        );
    }
}

/// The table for people says of no directive that there is nothing like it, while a translator reads it.
#[test]
fn the_table_for_people_denies_nothing_that_is_translated() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/migration.md");
    let text = fs::read_to_string(file).unwrap();
    let tables = text.split("### ").filter(|it| it.starts_with("nginx "));
    let rows = tables
        .flat_map(str::lines)
        .filter_map(|it| it.split_once(" | none"));
    let denied = rows.flat_map(|(left, _)| left.split('`').skip(1).step_by(2));
    let names: Vec<_> = denied
        .filter_map(|it| it.split([' ', ';']).next())
        .collect();
    assert!(names.contains(&"ssl_ciphers"), "{names:?}");
    // Read to close the path.
    let closing = [
        "scgi_pass",
        "proxy_pass_request_headers",
        "proxy_pass_request_body",
    ];
    let wrong = names
        .iter()
        .filter(|name| READ.iter().any(|(known, _)| known == *name) && !closing.contains(name));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn servers_that_name_no_character_set_get_that_of_the_file() {
    check(
        "http { server { listen 80; charset utf-8;
            location /a/ { proxy_pass http://127.0.0.1:1; }
            location /b/ { uwsgi_pass 127.0.0.1:2; charset_types text/css; }
            location /c/ { proxy_pass http://127.0.0.1:1/; proxy_redirect http://a.test/ /; charset off; }
            location /d/ { root /srv; }
        } }",
        &[
            "prefix = \"/a/\"",
            r#"{ name = "content-type", from = "^(text/html|text/xml|text/plain|text/vnd\\.wap\\.wml|application/javascript|application/rss\\+xml)$", to = "{1};charset=utf-8" }] }"#,
            "prefix = \"/b/\"",
            r#"response_headers = { rewrite = [{ name = "content-type", from = "^(text/html|text/css)$", to = "{1};charset=utf-8" }] }"#,
            "prefix = \"/c/\"",
            "to = \"/\" }] }\n",
            "prefix = \"/d/\"\nfiles = { root = \"/srv/d\", optional = true }\n",
        ],
        &["nginx.conf:4: charset: left out"],
    );
}
