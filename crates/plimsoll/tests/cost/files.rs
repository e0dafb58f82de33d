//! Files: requests, rows, plans, profiles, sites, and those of other tools.

use std::path::Path;

use plimsoll_client::check::{Condition, Facts, Observed};
use plimsoll_formats::har::parse_recording;
use plimsoll_formats::mockoon::parse_environment;
use plimsoll_formats::site::{Dialect, parse_aliases, parse_header_rules, parse_redirects};
use plimsoll_formats::wiremock::parse_mappings;
use plimsoll_formats::{Format, Table, Template, csv_to_json, json5_to_json, parse};
use plimsoll_lab::matrix;
use plimsoll_lab::profile::pprof;
use plimsoll_model::{Threshold, parse_duration};
use plimsoll_site::crawl::{Robots, css_links, html_links, sitemap_links};
use url::Url;

use crate::{Case, case, nested, numbered, repeat, text};

pub(crate) const CASES: &[Case] = &[
    case(
        "requests: many URLs",
        |n| numbered("", "http://a/#", "\n", "", n),
        requests,
    ),
    case(
        "requests: many .http requests",
        |n| {
            numbered(
                "",
                "### r#\n@v# = x\nGET http://a/{{v#}}\na: b\n",
                "\n",
                "",
                n,
            )
        },
        requests,
    ),
    case(
        "requests: a curl command of many fields",
        |n| numbered("curl http://a/ ", "-H 'f#: x'", " ", "", n),
        requests,
    ),
    case(
        "requests: quotes of a curl command",
        |n| repeat("curl $'\\''\"", n),
        requests,
    ),
    case(
        "requests: a HAR of many entries",
        |n| {
            numbered(
                r#"{"log":{"entries":["#,
                r#"{"request":{"method":"GET","url":"http://a/#","headers":[]}}"#,
                ",",
                "]}}",
                n,
            )
        },
        requests,
    ),
    case(
        "requests: an OpenAPI document of many paths",
        |n| {
            numbered(
                r#"{"openapi":"3.1.0","info":{"title":"a","version":"1"},"paths":{"#,
                r#""/p#":{"get":{"responses":{}}}"#,
                ",",
                "}}",
                n,
            )
        },
        requests,
    ),
    case(
        "requests: a chain of references",
        |n| {
            numbered(
                r##"{"openapi":"3.1.0","info":{"title":"a","version":"1"},"paths":{"/a":{"get":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/s0"}}}},"responses":{}}}},"components":{"schemas":{"##,
                "\"s#\":{\"allOf\":[{\"$ref\":\"\\u0023/components/schemas/s1#\"}]}",
                ",",
                "}}}",
                n,
            )
        },
        requests,
    ),
    Case {
        bytes: 4 << 10,
        ..case("requests: nested JSON", |n| nested("[", "]", n), requests)
    },
    Case {
        bytes: 4 << 10,
        ..case(
            "requests: nested YAML",
            |n| nested("{a: ", "}", n),
            requests,
        )
    },
    case(
        "templates: places",
        |n| repeat("{{a}}", n),
        |it| drop(Template::parse(text(it))),
    ),
    case(
        "templates: open braces",
        |n| vec![b'{'; n],
        |it| drop(Template::parse(text(it))),
    ),
    case(
        "rows: CSV of many columns",
        |n| {
            let row = numbered("", "c#", ",", "\n", n / 2);
            [row.clone(), row].concat()
        },
        |it| drop(Table::parse(text(it))),
    ),
    case(
        "rows: CSV of many quotes",
        |n| [b"a,b\n".to_vec(), repeat("\"\"", n)].concat(),
        |it| drop(Table::parse(text(it))),
    ),
    case(
        "rows: objects of different keys",
        |n| numbered("[", "{\"k#\":1}", ",", "]", n),
        |it| drop(Table::parse(text(it))),
    ),
    case(
        "CSV to JSON",
        |n| {
            [
                numbered("", "c#", ",", "\n", n / 2),
                numbered("", "1\n", "", "", n / 2),
            ]
            .concat()
        },
        |it| drop(csv_to_json(text(it), "records")),
    ),
    case(
        "JSON5: comments",
        |n| [repeat("/**/", n), b"1".to_vec()].concat(),
        |it| drop(json5_to_json(text(it))),
    ),
    Case {
        bytes: 4 << 10,
        ..case(
            "JSON5: nested",
            |n| nested("[", "]", n),
            |it| drop(json5_to_json(text(it))),
        )
    },
    case(
        "redirects",
        |n| numbered("", "/a/:b#/* /c/:b#/:splat 301 Country=de", "\n", "", n),
        redirects,
    ),
    case(
        "redirects: one long line",
        |n| [b"/a".to_vec(), repeat(" b=:c", n)].concat(),
        redirects,
    ),
    case(
        "header rules",
        |n| numbered("/*\n", "  X-#: a", "\n", "", n),
        |it| {
            for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
                drop(parse_header_rules(text(it), dialect));
            }
        },
    ),
    case(
        "short links",
        |n| numbered("", "a# https://b/", "\n", "", n),
        |it| drop(parse_aliases(text(it))),
    ),
    case(
        "links: of a page",
        |n| numbered("<p>", "<a href=\"#\">", "", "", n),
        links,
    ),
    case("links: open tags", |n| repeat("<a ", n), links),
    case(
        "links: srcset",
        |n| numbered("<img srcset=\"", "#.png 1x", ", ", "\">", n),
        links,
    ),
    case(
        "links: of a style sheet",
        |n| repeat("/*@import url(", n),
        links,
    ),
    case(
        "links: of a sitemap",
        |n| repeat("<url><loc>http://a.example/</loc>", n),
        links,
    ),
    case(
        "links: robots.txt",
        |n| numbered("User-agent: *\n", "Disallow: /*a*#", "\n", "", n),
        links,
    ),
    case(
        "links: wild cards of robots.txt",
        |n| {
            [
                b"User-agent: *\nDisallow: /".to_vec(),
                repeat("*a", n),
                b"$\n".to_vec(),
            ]
            .concat()
        },
        links,
    ),
    case(
        "plans: many targets",
        |n| {
            numbered(
                "name = \"a\"\n",
                "[[target]]\nname = \"t#\"\nurl = \"http://127.0.0.1:{port}/\"\ncommand = \"x\"\n",
                "",
                "",
                n,
            )
        },
        plan,
    ),
    case(
        "plans: unknown keys",
        |n| numbered("", "key# = 1", "\n", "", n),
        plan,
    ),
    Case {
        bytes: 4 << 10,
        ..case(
            "plans: nested arrays",
            |n| [b"a = ".to_vec(), nested("[", "]", n)].concat(),
            plan,
        )
    },
    case(
        "pprof: nested messages",
        |n| [0x0a, 0x00].repeat(n / 2),
        |it| drop(pprof::decode(it)),
    ),
    case("pprof: a deep stack", deep_stack, |it| {
        drop(pprof::decode(it));
    }),
    case("conditions: nested", |n| nested("any(", ")", n), condition),
    case(
        "conditions: alternatives",
        |n| numbered("any(", "status == #", ", ", ")", n),
        condition,
    ),
    case(
        "thresholds",
        |n| {
            [
                b"http_req_duration:p(".to_vec(),
                vec![b'9'; n],
                b")<1ms".to_vec(),
            ]
            .concat()
        },
        |it| drop(Threshold::parse(text(it))),
    ),
    case(
        "durations",
        |n| repeat("1h", n),
        |it| drop(parse_duration(text(it))),
    ),
    case(
        "WireMock: many mappings",
        |n| {
            numbered(
                "{\"mappings\":[",
                "{\"request\":{\"url\":\"/#\"},\"response\":{}}",
                ",",
                "]}",
                n,
            )
        },
        foreign,
    ),
    case(
        "Mockoon: many routes",
        |n| {
            numbered(
                "{\"routes\":[",
                "{\"uuid\":\"#\",\"endpoint\":\"a#\",\"responses\":[]}",
                ",",
                "]}",
                n,
            )
        },
        foreign,
    ),
];

fn requests(input: &[u8]) {
    let mut read = |path: &str| Err(format!("cannot read {path}").into());
    for format in Format::ALL {
        drop(parse(format, text(input), &mut read));
    }
}

fn redirects(input: &[u8]) {
    for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
        drop(parse_redirects(text(input), dialect));
    }
}

fn links(input: &[u8]) {
    let page = Url::parse("http://a.example/d/page.html").unwrap();
    let text = text(input);
    drop(html_links(text, &page));
    drop(css_links(text, &page));
    drop(sitemap_links(text, &page));
    Robots::parse(text, "plimsoll").allows(&"/aaaaaaaaaaaaaaaaaaaaaaaa".repeat(8));
}

fn plan(input: &[u8]) {
    drop(matrix::compile(text(input), Path::new(""), "plimsoll"));
}

fn condition(input: &[u8]) {
    if let Ok(condition) = Condition::parse(text(input)) {
        let observed = Observed::new(Facts::default(), &[], b"{}", 2);
        condition.is_met(&observed);
    }
}

fn foreign(input: &[u8]) {
    drop(parse_recording(text(input)));
    drop(parse_environment(text(input)));
    drop(parse_mappings(text(input)));
}

/// A profile of one sample with a stack as deep as there is room for.
fn deep_stack(bytes: usize) -> Vec<u8> {
    let varint = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        bytes.push(u8::try_from(number).unwrap());
        bytes
    };
    let field = |tag: u8, content: &[u8]| [&[tag][..], &varint(content.len()), content].concat();
    let stack = vec![1_u8; bytes];
    [
        field(0x0a, &[0x08, 1, 0x10, 2]),
        field(0x12, &[field(0x0a, &stack), field(0x12, &[1])].concat()),
        field(0x22, &[0x08, 1]),
        field(0x32, b""),
        field(0x32, b"samples"),
        field(0x32, b"count"),
    ]
    .concat()
}
