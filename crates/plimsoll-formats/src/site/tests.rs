use proptest::prelude::*;

use super::*;

/// Entries as `show` writes them, then remarks with their lines.
fn report<T>(parsed: &Lenient<T>, show: impl Fn(&T) -> String) -> Vec<String> {
    let entries = parsed.entries.iter().map(show);
    let remarks = parsed.remarks.iter();
    let remarks = remarks.map(|remark| format!("{} {}", remark.place, remark.message));
    entries.chain(remarks).collect()
}

#[test]
fn short_links_are_kept_and_mistakes_numbered() {
    let text = "# links\r\n\ngh https://github.com/x\r\n/talk/ http://a.example/?q=1#f\n\
                one\na b c\n/ https://x.example\nrel /there\ngh https://b.example/\n\
                ü https://c.example/\nbad https://c.example/ü\nmail mailto:a@b.example\n";
    let parsed = parse_aliases(text);
    let reported = report(&parsed, |alias| format!("{} {}", alias.name, alias.url));
    assert_eq!(
        reported,
        [
            "talk http://a.example/?q=1#f",
            "gh https://b.example/",
            "ü https://c.example/",
            ":5 is not an alias and a URL",
            ":6 is not an alias and a URL",
            ":7 the alias is empty",
            ":8 `/there` is not a URL such as https://example.org/",
            ":11 the URL has a character that must be written as %XX",
            ":12 `mailto:a@b.example` is not a URL such as https://example.org/",
            ":3 `gh` is given again in line 9",
        ]
    );
}

fn redirects(text: &str, dialect: Dialect) -> Vec<String> {
    report(&parse_redirects(text, dialect), |rule| {
        let host = rule.host.as_deref().unwrap_or_default();
        let query: Vec<_> = rule
            .query
            .iter()
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        let force = if rule.is_forced { "!" } else { "" };
        format!(
            "{host}{}{} {} {}{force}",
            rule.from,
            query.concat(),
            rule.to,
            rule.status
        )
    })
}

#[test]
fn redirects_as_netlify_has_them() {
    let text = "# comment\n/news/* /blog/:splat # trailing\n/p/:id  /posts/:id 301\n/old /new 301!\n\
                /store id=:id /buy/:id 301\n/* /index.html 200\n/api/* https://api.example/:splat 200\n\
                /a /b 307\nhttps://Old.example/* https://new.example/:splat\n/app/* 200\n/x\n/y /z nope\n\
                /.netlify/x /y\nrelative /y\n/de/* /en/:splat 302 Country=de\n/*/x /y\n/gone /404.html 404\n";
    assert_eq!(
        redirects(text, Dialect::Netlify),
        [
            "/news/* /blog/:splat 301",
            "/p/:id /posts/:id 301",
            "/old /new 301!",
            "/store id=:id /buy/:id 301",
            "/* /index.html 200",
            "old.example/* https://new.example/:splat 301",
            "/app/* /app/:splat 200",
            "/gone /404.html 404",
            ":7 content of other servers is not fetched; redirect to them",
            ":8 307 is not supported by Netlify; use 302 or 308",
            ":11 has no target",
            ":12 `nope` is no status",
            ":13 paths below /.netlify are not to be redirected",
            ":14 `relative` is neither a path nor a URL",
            ":15 `Country=de`: rules for some visitors only are not applied",
            ":16 `*` stands for the rest, so nothing may follow it",
        ]
    );
}

#[test]
fn redirects_as_cloudflare_has_them() {
    let text = "/news/* /blog//:splat\nold /new#frag # trailing\n/a /b 307\n/p/:id /q/:id 301\n/after /x\n\
                /old /again\n/old2 /new 301!\n/store id=:id /buy/:id 301\n/* /index.html 200\n/*/b/* /c\n\
                https://a.example/x /y\n/u http://a.example/\n/v https://a.example/ 200\n/w https://a.example/\n";
    assert_eq!(
        redirects(text, Dialect::Cloudflare),
        [
            "/old /new#frag 302!",
            "/a /b 307!",
            "/after /x 302!",
            "/w https://a.example/ 302!",
            "/news/* /blog/:splat 302!",
            "/p/:id /q/:id 301!",
            ":7 `301!` is no status; there are 200, 301, 302, 303, 307 and 308",
            ":8 is not a path, a target and, if wanted, a status",
            ":9 leads to itself",
            ":10 has more than one `*`",
            ":11 `https://a.example/x`: only paths can be redirected",
            ":12 `http://a.example/` is neither a path nor a URL with https://",
            ":13 content of other servers is not fetched; redirect to them",
            ":6 `/old` has a rule already",
        ]
    );
    let many: Vec<_> = (0..150).map(|number| format!("/{number}/* /x")).collect();
    let parsed = parse_redirects(&many.join("\n"), Dialect::Cloudflare);
    assert_eq!((parsed.entries.len(), parsed.remarks.len()), (100, 50));
    let long = format!("/{} /b\n", "x".repeat(2000));
    assert_eq!(parse_redirects(&long, Dialect::Cloudflare).remarks.len(), 1);
}

fn headers(text: &str, dialect: Dialect) -> Vec<String> {
    report(&parse_header_rules(text, dialect), |rule| {
        let host = rule.host.as_deref().unwrap_or_default();
        format!("{host}{} {:?} -{:?}", rule.path, rule.fields, rule.unset)
    })
}

#[test]
fn header_rules_in_both_dialects() {
    let text = "X-Early: 1\n# all\n/*\n  X-Frame-Options: DENY\n  Link: </a>; rel=x\n  link: </b>\n\
                \n/a/:id\n  no colon\n  : empty\n  Empty:\n  Content-Length: 5\n  ! X-Frame-Options\n\
                https://Pages.example/*\n  x-host: 1\n/empty\n";
    assert_eq!(
        headers(text, Dialect::Cloudflare),
        [
            "/* [(\"x-frame-options\", \"DENY\"), (\"link\", \"</a>; rel=x, </b>\")] -[]",
            "/a/:id [] -[\"x-frame-options\"]",
            "pages.example/* [(\"x-host\", \"1\")] -[]",
            ":1 stands before any path",
            ":9 is neither a path nor a header field",
            ":10 `` is no name of a header field",
            ":11 `Empty` has no value",
            ":12 `content-length` is set by the server and cannot be given",
        ]
    );
    let netlify = headers(text, Dialect::Netlify);
    assert!(
        netlify.contains(&":13 is neither a path nor a header field".to_owned()),
        "{netlify:?}"
    );
    assert!(
        netlify.contains(&":14 is a path of any host".to_owned()),
        "{netlify:?}"
    );
}

proptest! {
    #[test]
    fn every_line_is_kept_or_reported_or_empty(lines in proptest::collection::vec("[ /a:*#!=0-9.h]{0,14}", 0..12)) {
        let text = lines.join("\n");
        let count = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
            let parsed = parse_redirects(&text, dialect);
            prop_assert_eq!(parsed.entries.len() + parsed.remarks.len(), count);
            parse_header_rules(&text, dialect);
        }
        parse_aliases(&text);
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}") {
        for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
            parse_redirects(&text, dialect);
            parse_header_rules(&text, dialect);
        }
        parse_aliases(&text);
    }
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_rule() {
    let redirects = parse_redirects("\u{feff}/a /b\n", Dialect::Netlify);
    assert_eq!(
        (redirects.entries[0].from.as_str(), redirects.remarks.len()),
        ("/a", 0)
    );
    let headers = parse_header_rules("\u{feff}/a\n x-a: b\n", Dialect::Netlify);
    assert_eq!(
        (headers.entries[0].path.as_str(), headers.remarks.len()),
        ("/a", 0)
    );
    let aliases = parse_aliases("\u{feff}a https://example.org/\n");
    assert_eq!(
        (aliases.entries[0].name.as_str(), aliases.remarks.len()),
        ("a", 0)
    );
}

#[test]
fn cookies_of_one_block_stay_apart() {
    let text = "/a\n Set-Cookie: a=1\n set-cookie: b=2\n x: 1\n x: 2\n";
    let rules = parse_header_rules(text, Dialect::Netlify);
    let fields: Vec<_> = rules.entries[0]
        .fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        fields,
        [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x", "1, 2")]
    );
}

#[test]
fn cloudflare_matches_paths_without_their_query() {
    let parsed = parse_redirects("/c?x=1 /d 301\n/://so;`me /x\n", Dialect::Cloudflare);
    let from: Vec<_> = parsed
        .entries
        .iter()
        .map(|rule| rule.from.as_str())
        .collect();
    assert_eq!(from, ["/c", "/:/so;`me"]);
    assert_eq!(parsed.remarks.len(), 1);
    assert!(parsed.remarks[0].message.contains("`?x=1` is ignored"));
}

#[test]
fn a_path_has_a_hundred_fields_at_most() {
    let fields: Vec<_> = (0..102).map(|number| format!(" x-{number}: a\n")).collect();
    let fields = fields.concat();
    let rules = parse_header_rules(&format!("/a\n{fields}"), Dialect::Netlify);
    assert_eq!(rules.entries[0].fields.len(), 100);
    assert_eq!(rules.remarks.len(), 2);
    assert!(rules.remarks[0].message.contains("100 fields already"));
}

#[test]
fn repeated_slashes_of_paths_are_one() {
    for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
        let parsed = parse_redirects("/a//b///c https://x.example//y 301", dialect);
        let shown: Vec<_> = parsed
            .entries
            .iter()
            .map(|rule| (rule.from.as_str(), rule.to.as_str()))
            .collect();
        assert_eq!(shown, [("/a/b/c", "https://x.example//y")]);
    }
}
