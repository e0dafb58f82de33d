use plimsoll_formats::site::{parse_header_rules, parse_redirects};

use super::*;

mod model;

fn compiled(redirects: &str, headers: &str, dialect: Dialect) -> (Rules, Vec<String>) {
    let (rules, mut of_redirects, of_headers) = Rules::compile(
        parse_redirects(redirects, dialect),
        parse_header_rules(headers, dialect),
        dialect,
    );
    let exists = |path: &str| dialect == Dialect::Netlify && FILES.contains(&path);
    of_redirects.extend(rules.doubts(&exists, &|| false));
    let remarks = of_redirects.iter().chain(&of_headers);
    let remarks = remarks.map(|remark| format!("{} {}", remark.place, remark.message));
    (rules, remarks.collect())
}

/// Paths that have a file.
const FILES: [&str; 2] = ["/index.html", "/en/x"];

fn outcome(redirects: &str, dialect: Dialect, target: &str, is_there: bool) -> Option<String> {
    let parsed = parse_redirects(redirects, dialect);
    let (rules, remarks, _) = Rules::compile(parsed, Lenient::default(), dialect);
    assert_eq!(remarks, Vec::new());
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let input = RuleInput {
        host: "a.example",
        path,
        query,
    };
    let outcome = rules.redirect(input, is_there)?;
    Some(format!("{} {}", outcome.status, outcome.to))
}

#[test]
fn the_two_dialects_answer_as_their_makers_do() {
    use Dialect::{Cloudflare, Netlify};

    for (rule, target, is_there, netlify, cloudflare) in [
        (
            "/news/* /blog/:splat",
            "/news/a/b?x=1",
            false,
            Some("301 /blog/a/b?x=1"),
            Some("302 /blog/a/b?x=1"),
        ),
        (
            "/news/* /blog/:splat",
            "/news",
            false,
            Some("301 /blog/"),
            None,
        ),
        (
            "/p/:id /posts/:id 301",
            "/p/7/",
            false,
            Some("301 /posts/7"),
            None,
        ),
        (
            "/p/:id /posts/:id 301",
            "/p/7",
            false,
            Some("301 /posts/7"),
            Some("301 /posts/7"),
        ),
        ("/p/:id /posts/:id 301", "/p/7/8", false, None, None),
        ("/old /new", "/old", true, None, Some("302 /new")),
        (
            "/old /new",
            "/old",
            false,
            Some("301 /new"),
            Some("302 /new"),
        ),
        ("/old /new", "/OLD", false, None, None),
        (
            "/old /new?a=b#c",
            "/old?x=1",
            false,
            Some("301 /new?a=b#c"),
            Some("302 /new?a=b#c"),
        ),
        (
            "/old /new#c",
            "/old?x=1",
            false,
            Some("301 /new?x=1#c"),
            Some("302 /new?x=1#c"),
        ),
        (
            "/a/* https://b.example/:splat 301",
            "/a/c d",
            false,
            Some("301 https://b.example/c%20d"),
            Some("301 https://b.example/c%20d"),
        ),
        (
            "/r/* /:splat 301",
            "/r//evil.example",
            false,
            Some("301 /evil.example"),
            Some("301 /evil.example"),
        ),
    ] {
        assert_eq!(
            outcome(rule, Netlify, target, is_there).as_deref(),
            netlify,
            "{rule} {target}"
        );
        assert_eq!(
            outcome(rule, Cloudflare, target, is_there).as_deref(),
            cloudflare,
            "{rule} {target}"
        );
    }
    for (rule, target, is_there, expected) in [
        ("/old /new 301!", "/old", true, Some("301 /new")),
        (
            "/store id=:id /buy/:id 301",
            "/store?id=3",
            false,
            Some("301 /buy/3"),
        ),
        ("/store id=:id /buy/:id 301", "/store", false, None),
        ("/store id=3 /buy 301", "/store?x=1&id=4", false, None),
        ("/* /index.html 200", "/any", false, Some("200 /index.html")),
        ("/* /index.html 200", "/any", true, None),
        (
            "https://A.example/* https://b.example/:splat",
            "/x",
            false,
            Some("301 https://b.example/x"),
        ),
        (
            "https://c.example/* https://b.example/:splat",
            "/x",
            false,
            None,
        ),
        ("/a/* /1/:splat\n/a/b /2", "/a/b", false, Some("301 /1/b")),
        ("/a/b /2\n/a/* /1/:splat", "/a/b", false, Some("301 /2")),
    ] {
        assert_eq!(
            outcome(rule, Netlify, target, is_there).as_deref(),
            expected,
            "{rule} {target}"
        );
    }
    let order = "/a/* /1/:splat\n/a/b /2";
    assert_eq!(
        outcome(order, Cloudflare, "/a/b", false).as_deref(),
        Some("302 /2")
    );
}

#[test]
fn circles_are_reported_and_kept() {
    let text =
        "/a /b\n/b /c\n/c /a\n/into /b\n/fine /end\n/grow/* /grow/x/:splat\n/* /index.html 301\n";
    let (rules, remarks) = compiled(text, "", Dialect::Netlify);
    assert_eq!(rules.redirects(), 7);
    let expected = [
        ":1 leads back to itself: /a → /b → /c → /a",
        ":2 leads back to itself: /b → /c → /a → /b",
        ":3 leads back to itself: /c → /a → /b → /c",
        ":4 leads into a circle: /into → /b → /c → /a → …",
        ":6 leads over more than 20 redirects: /grow/x → /grow/x/x → /grow/x/x/x → /grow/x/x/x/x → …",
    ];
    assert_eq!(remarks, expected);
    // A file at the target ends the chain.
    let (rules, remarks) = compiled("/* /en/:splat 302\n", "", Dialect::Netlify);
    assert_eq!((rules.redirects(), remarks), (1, Vec::new()));
    // Where rules come before files, the same rule never ends; the service redirects all the same.
    let (rules, remarks) = compiled("/x/* /x/index.html 301\n", "", Dialect::Cloudflare);
    assert_eq!((rules.redirects(), remarks.len()), (1, 1));
}

#[test]
fn rules_behind_one_that_takes_their_requests_are_reported() {
    for (text, dialect, expected) in [
        (
            "/a/* /1\n/a/b /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        (
            "/a/* /1\n/a/:x/* /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        (
            "/a/:x /1\n/a/:y /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        ("/a/:x /1\n/a/* /2\n", Dialect::Netlify, None),
        ("/a/b /1\n/a/:y /2\n", Dialect::Netlify, None),
        ("/a id=1 /1\n/a /2\n", Dialect::Netlify, None),
        (
            "/a id=:id /1\n/a id=2 /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        (
            "/a /1\n/a id=2 /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        ("https://h.example/a /1\n/a /2\n", Dialect::Netlify, None),
        (
            "/a /1\nhttps://h.example/a /2\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        ("/a /1\n/a /2 301!\n", Dialect::Netlify, None),
        (
            "/a /1 301!\n/a /2 301!\n",
            Dialect::Netlify,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
        (
            "/a/* /1\n/a/:x/b /2\n",
            Dialect::Cloudflare,
            Some(":2 is never used: line 1 takes all its requests"),
        ),
    ] {
        let (rules, remarks) = compiled(text, "", dialect);
        assert_eq!(rules.redirects(), 2, "{text}");
        assert_eq!(remarks.first().map(String::as_str), expected, "{text}");
    }
}

#[test]
fn many_doubts_are_reported_as_a_number() {
    let lines = (0..100).map(|number| format!("/a{number} /a{number}\n"));
    let (rules, remarks) = compiled(&lines.collect::<String>(), "", Dialect::Netlify);
    assert_eq!((rules.redirects(), remarks.len()), (100, 21));
    assert_eq!(remarks[20], " 80 more lines like these");
}

fn fields(headers: &str, dialect: Dialect, path: &str) -> String {
    let (rules, _) = compiled("", headers, dialect);
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", HeaderValue::from_static("no-cache"));
    let input = RuleInput {
        host: "a.example",
        path,
        query: None,
    };
    rules.apply(input, &mut fields);
    let shown = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    shown.collect::<Vec<_>>().join("; ")
}

#[test]
fn header_rules_apply_in_their_order() {
    use Dialect::{Cloudflare, Netlify};

    let text = "/*\n Cache-Control: max-age=1\n X-A: 1\n/docs/:page\n X-A: 2\n X-Page: :page\n";
    for dialect in [Netlify, Cloudflare] {
        assert_eq!(
            fields(text, dialect, "/x"),
            "cache-control: max-age=1; x-a: 1"
        );
        let both = "cache-control: max-age=1; x-a: 1; x-a: 2; x-page: start";
        assert_eq!(fields(text, dialect, "/docs/start"), both);
    }
    let text = "https://:project.pages.example/*\n x-robots-tag: noindex\n x-project: :project\n";
    let (rules, remarks) = compiled("", text, Cloudflare);
    assert_eq!(remarks, Vec::<String>::new());
    for (host, expected) in [
        ("one.PAGES.example", 2),
        ("a.b.pages.example", 0),
        ("pages.example", 0),
    ] {
        let mut fields = HeaderMap::new();
        rules.apply(
            RuleInput {
                host,
                path: "/x",
                query: None,
            },
            &mut fields,
        );
        assert_eq!(fields.len(), expected, "{host}");
        assert!(expected == 0 || fields["x-project"] == "one");
    }
    let text =
        "/a\n ! Cache-Control\nhttps://A.example/*\n x-host: 1\nhttps://b.example/*\n x-host: 2\n";
    assert_eq!(fields(text, Cloudflare, "/a"), "x-host: 1");
    assert_eq!(
        fields("/Docs/*/x\n x: 1\n", Netlify, "/docs/a/x/"),
        "cache-control: no-cache; x: 1"
    );
    assert_eq!(
        fields("/Docs/*/x\n x: 1\n", Cloudflare, "/docs/a/x"),
        "cache-control: no-cache"
    );
}
