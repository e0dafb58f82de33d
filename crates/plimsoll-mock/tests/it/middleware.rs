//! Scripts of Rhai that answer before the rules, as apimock has them.

use plimsoll_mock::{SharedMock, config};
use plimsoll_server::Notices;
use plimsoll_testkit::eventually;

use crate::mock::{self, Served};

const ROOT: &str = "[service]\nmiddlewares = [\"scripts/first.rhai\", \"scripts/second.rhai\"]\n\
    rule_sets = [\"rules.toml\"]\nfallback_respond_dir = \"files\"\n";

const RULES: &str = "[[rules]]\nwhen.request.url_path = { op = \"starts_with\", value = \"/rule\" }\nrespond.text = \"rule\"\n";

const FIRST: &str = r#"
    const STOCK = "data/stock.json";

    fn refused(reason) {
        exit(#{ "json": `{ reason: "${reason}" }` });
    }

    if url_path == "/stock" {
        return STOCK;
    }
    if url_path.starts_with("/file/") {
        url_path.crop(6);
        return #{ "file_path": url_path };
    }
    switch url_path {
        "/plain" => #{ "text": "plain text" },
        "/broken" => #{ "json": "{ broken" },
        "/fails" => missing_function(),
        "/rule/orders" if is_def_var("body") => {
            if body.amount > 100 {
                refused("too many");
            }
        },
        _ => ()
    }
"#;

const SECOND: &str = "if url_path == \"/fails\" { #{ text: \"second\" } }";

fn served() -> Served {
    let folder = mock::files(&[
        ("apimock.toml", ROOT),
        ("rules.toml", RULES),
        ("scripts/first.rhai", FIRST),
        ("scripts/second.rhai", SECOND),
        ("scripts/data/stock.json", "{ \"apples\": 3 }"),
        ("scripts/data/list.json5", "[1, 2,]"),
        ("scripts/data/.hidden", "hidden"),
        ("files/page.json", "{}"),
        ("secret.txt", "secret"),
    ]);
    let file = folder.path().join("apimock.toml");
    let shared = SharedMock::of_file(&file, &Notices::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    Served::start(folder, shared)
}

#[test]
fn middlewares_answer_before_rules_and_files() {
    let served = served();
    let text = Some("text/plain; charset=utf-8");
    let json = Some("application/json");
    for (target, status, kind, body) in [
        ("/stock", 200, json, "{ \"apples\": 3 }"),
        ("/stock/?a=b", 200, json, "{ \"apples\": 3 }"),
        ("/plain", 200, text, "plain text"),
        ("/fails", 200, text, "second"),
        ("/file/data/stock.json", 200, json, "{ \"apples\": 3 }"),
        ("/file/data/stock", 200, json, "{ \"apples\": 3 }"),
        ("/file/data/list", 200, json, "[1,2]"),
        ("/rule/orders", 200, text, "rule"),
        ("/page", 200, json, "{}"),
    ] {
        // The second time the file is in the cache.
        for _ in 0..2 {
            let answer = served.get(target);
            let found = (answer.status, answer.field("content-type"), answer.text());
            assert_eq!(found, (status, kind, body), "{target}");
        }
    }
    assert_eq!(served.get("/none").status, 404);
    let broken = served.get("/broken");
    assert_eq!(broken.status, 500);
    assert!(
        broken.text().starts_with("first.rhai: "),
        "{}",
        broken.text()
    );
}

#[test]
fn middlewares_see_json() {
    let served = served();
    let json = ["content-type: application/json"];
    for (fields, body, expected) in [
        (
            &json[..],
            "{ \"amount\": 101 }",
            "{\"reason\":\"too many\"}",
        ),
        (&[][..], "{ \"amount\": 101 }", "{\"reason\":\"too many\"}"),
        (&json[..], "{ \"amount\": 100 }", "rule"),
        (&[][..], "amount=101", "rule"),
        (&[][..], "", "rule"),
        // A middleware that fails does not answer.
        (&json[..], "{ \"amount\": [] }", "rule"),
    ] {
        let answer = served.ask("POST", "/rule/orders", fields, body);
        assert_eq!((answer.status, answer.text()), (200, expected), "{body}");
    }
    let answer = served.ask("POST", "/stock", &json, "{ \"amount\": ");
    assert_eq!(answer.status, 400);
    let preflight = [
        "origin: http://a.example",
        "access-control-request-method: GET",
    ];
    assert_eq!(served.ask("OPTIONS", "/stock", &preflight, "").status, 204);
}

#[test]
fn middlewares_send_files_of_their_folder_alone() {
    let served = served();
    let inside = served
        .path("scripts/data/stock.json")
        .canonicalize()
        .unwrap();
    let outside = served.path("secret.txt").canonicalize().unwrap();
    let answer = served.get(&format!("/file/{}", inside.display()));
    assert_eq!(answer.status, 200);
    let outside = outside.display().to_string();
    for path in [
        outside.as_str(),
        "data/../../secret.txt",
        "/etc/hostname",
        "data/.hidden",
        "first.rhai",
        "missing.json",
    ] {
        let answer = served.get(&format!("/file/{path}"));
        assert_eq!((answer.status, answer.text()), (404, ""), "{path}");
    }
}

#[test]
fn changed_middlewares_and_their_files_hold() {
    let served = served();
    assert_eq!(served.get("/stock").text(), "{ \"apples\": 3 }");
    served.write("scripts/data/stock.json", "{ \"apples\": 2 }");
    eventually(|| served.get("/stock").text().contains('2'));
    served.write("scripts/second.rhai", "#{ text: \"all\" }");
    eventually(|| served.get("/none").text() == "all");
    // An error keeps the old one.
    served.write("scripts/second.rhai", "#{ text: ");
    let file = served.path("apimock.toml");
    let problems = config::load(&file).map(drop).unwrap_err();
    let problem = problems[0].to_string();
    assert!(problem.contains("scripts/second.rhai:1:"), "{problem}");
    assert_eq!(served.get("/none").text(), "all");
}

#[test]
fn a_script_without_end_holds_up_nothing_else() {
    let folder = mock::files(&[
        (
            "apimock.toml",
            "[service]\nmiddlewares = [\"m.rhai\"]\nmiddleware_max_operations = 100_000\nfallback_respond_dir = \"files\"\n",
        ),
        ("m.rhai", "if url_path == \"/loop\" { loop {} }"),
        ("files/page.json", "{}"),
    ]);
    let file = folder.path().join("apimock.toml");
    let shared = SharedMock::of_file(&file, &Notices::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let served = Served::start(folder, shared);
    assert_eq!(served.get("/loop").status, 404);
    assert_eq!(served.get("/page").text(), "{}");
}
