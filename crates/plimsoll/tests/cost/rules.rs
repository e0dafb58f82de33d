//! Rules of mocks: files of rules, and what requests make conditions do.

use std::path::Path;

use plimsoll_mock::{KeptRequest, RuleSet, config};

use crate::{Case, case, nested, numbered, repeat, text};

pub(crate) const CASES: &[Case] = &[
    case(
        "rules: many",
        |n| {
            numbered(
                "",
                "[[rules]]\nwhen.request.url_path = \"/#\"\nrespond.text = \"a\"\n",
                "",
                "",
                n,
            )
        },
        parsed,
    ),
    case(
        "rules: problems",
        |n| numbered("", "[[rules]]\nwhen.request.url_pth = \"/#\"\n", "", "", n),
        parsed,
    ),
    Case {
        bytes: 4 << 10,
        ..case(
            "rules: nested conditions",
            |n| {
                [
                    b"[[rules]]\nrespond.text = \"a\"\nwhen = ".to_vec(),
                    nested("{ not = ", "}", n),
                ]
                .concat()
            },
            parsed,
        )
    },
    case(
        "JSON: nested",
        |n| nested("[", "]", n),
        |it| found("request.body.json.\"a.b\" = \"x\"", JSON, it),
    ),
    case(
        "JSON: many keys",
        |n| numbered("{", "\"k#\":1", ",", "}", n),
        |it| found("request.body.json.\"a.b\" = \"x\"", JSON, it),
    ),
    case(
        "JSON path: descendants of descendants",
        |n| {
            [
                b"[".to_vec(),
                repeat("[[[[[[[[[[1]]]]]]]]]],", n),
                b"1]".to_vec(),
            ]
            .concat()
        },
        |it| found("request.body.jsonpath.\"$..*..*\" = \"x\"", JSON, it),
    ),
    case(
        "JSON path: a filter",
        |n| numbered("{\"a\":[", "{\"b\":#}", ",", "]}", n),
        |it| found("request.body.jsonpath.\"$..[?@.b==-1]\" = \"x\"", JSON, it),
    ),
    case(
        "equal_json: arrays in any order",
        |n| numbered("[", "#", ",", "]", n),
        equal_json,
    ),
    case(
        "schema",
        |n| numbered("{\"a\":[", "{\"b\":#}", ",", "]}", n),
        |it| {
            found(
                "request.body.schema = '{\"properties\":{\"a\":{\"items\":{\"required\":[\"c\"]}}}}'",
                JSON,
                it,
            );
        },
    ),
    case(
        "schema: unique items",
        |n| numbered("[", "{\"b\":#}", ",", "]", n),
        |it| found("request.body.schema = '{\"uniqueItems\":true}'", JSON, it),
    ),
    case(
        "XML: attributes",
        |n| numbered("<a ", "b#=\"\"", " ", "/>", n),
        |it| found("request.body.equal_xml = '<a b0=\"x\"/>'", XML, it),
    ),
    case(
        "XML: elements in any order",
        |n| numbered("<a>", "<b#/>", "", "</a>", n),
        equal_xml,
    ),
    case(
        "XML: nested elements",
        |n| nested("<a>", "</a>", n),
        equal_xml,
    ),
    case(
        "XPath: all of nested elements",
        |n| nested("<a>", "</a>", n),
        |it| found("request.body.xpath.\"//a\" = \"x\"", XML, it),
    ),
    case(
        "XPath: text of nested elements",
        |n| {
            let depth = n / 2 / "<a></a>".len();
            let text = "x".repeat(n / 2);
            format!("{}{text}{}", "<a>".repeat(depth), "</a>".repeat(depth)).into_bytes()
        },
        |it| found("request.body.xpath.\"//a\" = \"x\"", XML, it),
    ),
    case(
        "XPath: descendants of descendants",
        |n| nested("<a>", "</a>", n),
        |it| found("request.body.xpath.\"//a//a//b\" = \"x\"", XML, it),
    ),
    case(
        "XPath: attributes",
        |n| numbered("<a ", "b#=\"\"", " ", "/>", n),
        |it| found("request.body.xpath.\"//@b\" = \"x\"", XML, it),
    ),
    case(
        "XPath: siblings",
        |n| numbered("<a>", "<b/>", "", "</a>", n),
        |it| {
            found(
                "request.body.xpath.\"//b[following-sibling::c]\" = \"x\"",
                XML,
                it,
            );
        },
    ),
    case(
        "GraphQL: fields",
        |n| numbered("{", "f#", " ", "}", n),
        |it| found("request.graphql.fields = [\"x\"]", GRAPHQL, it),
    ),
    case(
        "GraphQL: nested fields",
        |n| nested("{a", "}", n),
        |it| found("request.graphql.fields = [\"x\"]", GRAPHQL, it),
    ),
    case(
        "GraphQL: fragments",
        |n| numbered("{...f0}", "fragment f# on A{...f1# ...f1#}", "", "", n),
        |it| found("request.graphql.fields = [\"x\"]", GRAPHQL, it),
    ),
    case(
        "GraphQL: open strings",
        |n| repeat("{a(b:\"", n),
        |it| found("request.graphql.fields = [\"x\"]", GRAPHQL, it),
    ),
    case(
        "text: a regular expression",
        |n| vec![b'a'; n],
        |it| {
            found(
                "request.body.text = { op = \"regex\", value = \"(a+)+b$\" }",
                PLAIN,
                it,
            );
        },
    ),
    case(
        "text: wild cards",
        |n| vec![b'a'; n],
        |it| {
            found(
                "request.body.text = { op = \"wild_card\", value = \"*a*a*a*a*b\" }",
                PLAIN,
                it,
            );
        },
    ),
    case(
        "form: many fields",
        |n| numbered("", "f#=x", "&", "", n),
        |it| found("request.form.x = \"x\"", FORM, it),
    ),
    case(
        "form: escapes",
        |n| repeat("%41%", n),
        |it| found("request.form.x = \"x\"", FORM, it),
    ),
    case(
        "multipart: many parts",
        |n| [repeat("--b\r\n\r\n\r\n", n), b"--b--".to_vec()].concat(),
        parts,
    ),
    case(
        "multipart: boundaries that are none",
        |n| {
            [
                b"--b\r\n\r\n".to_vec(),
                repeat("\r\n--bx", n),
                b"\r\n--b--".to_vec(),
            ]
            .concat()
        },
        parts,
    ),
    case(
        "multipart: long headers",
        |n| {
            [
                repeat("--b\r\na: b\r\nc: d\r\n", n),
                b"\r\n\r\n--b--".to_vec(),
            ]
            .concat()
        },
        parts,
    ),
    case(
        "multipart: JSON in parts",
        |n| {
            [
                repeat("--b\r\n\r\n[1,2,3,4,5,6,7,8,9,10]\r\n", n),
                b"--b--".to_vec(),
            ]
            .concat()
        },
        |it| {
            found(
                "request.multipart = { request.body.json.\"a\" = \"x\" }",
                MULTIPART,
                it,
            );
        },
    ),
    case(
        "query: many parameters",
        |n| numbered("/?", "f#=x", "&", "", n),
        |it| target("request.query.x = \"x\"", it),
    ),
    case(
        "path: dot segments",
        |n| [b"/".to_vec(), repeat("a/../", n)].concat(),
        |it| target("request.url_path = \"/x\"", it),
    ),
    case(
        "path: escapes",
        |n| [b"/".to_vec(), repeat("%2e%2e/", n)].concat(),
        |it| {
            target(
                "request.url_path = { op = \"pattern\", value = \"/a/{b...}\" }",
                it,
            );
        },
    ),
    case(
        "cookies: many",
        |n| numbered("", "c#=x", "; ", "", n),
        cookies,
    ),
];

const JSON: &str = "application/json";
const XML: &str = "application/xml";
const GRAPHQL: &str = "application/graphql";
const PLAIN: &str = "text/plain";
const MULTIPART: &str = "multipart/form-data; boundary=b";
const FORM: &str = "application/x-www-form-urlencoded";

/// Looks for the rule that answers a request with this XML.
pub(crate) fn with_xml(condition: &str, content: &[u8]) {
    found(condition, XML, content);
}

fn set(condition: &str) -> RuleSet {
    let rule = format!("[[rules]]\nwhen.{condition}\nrespond.text = \"a\"\n");
    config::parse(&rule, Path::new("/nonexistent")).unwrap_or_else(|problems| {
        panic!("{condition}: {problems:?}");
    })
}

fn parsed(input: &[u8]) {
    drop(config::parse(text(input), Path::new("/nonexistent")));
}

/// Looks for the rule that answers a request with this content.
fn found(condition: &str, media_type: &str, content: &[u8]) {
    let set = set(condition);
    let mut request = KeptRequest::made("POST", "/");
    let field = ("content-type".to_owned(), media_type.as_bytes().to_vec());
    request.fields.push(field);
    request.body = content.to_vec().into();
    set.find(&request.view());
}

fn parts(content: &[u8]) {
    found("request.multipart = { name = \"x\" }", MULTIPART, content);
}

fn equal_json(content: &[u8]) {
    let reversed: Vec<&str> = text(content).trim_matches(['[', ']']).rsplit(',').collect();
    let condition = format!(
        "request.body.equal_json = {{ value = '[{}]', ignore_order = true }}",
        reversed.join(",")
    );
    found(&condition, JSON, content);
}

fn equal_xml(content: &[u8]) {
    let condition = format!(
        "request.body.equal_xml = {{ value = '{}', ignore_order = true }}",
        text(content)
    );
    found(&condition, XML, content);
}

fn target(condition: &str, target: &[u8]) {
    let set = set(condition);
    let request = KeptRequest::made("GET", text(target));
    set.find(&request.view());
}

fn cookies(field: &[u8]) {
    let set = set("request.cookies.x = \"x\"");
    let mut request = KeptRequest::made("GET", "/");
    request.fields.push(("cookie".to_owned(), field.to_vec()));
    set.find(&request.view());
}
