//! `plimsoll mock`: serving, validating, explaining.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use plimsoll_testkit::{MaterialFiles, eventually};
use serde_json::Value;

use crate::plimsoll::{command, plimsoll};
use crate::served::Served;

pub(crate) fn mock(arguments: &[&str]) -> Served {
    Served::start(&[&["mock", "--listen", "127.0.0.1:0"], arguments].concat())
}

fn shop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop")
}

#[test]
fn the_shop_is_served_as_its_readme_says() {
    let folder = shop();
    let shop = folder.to_string_lossy();
    let served = mock(&[&shop, "--threads", "1"]);
    assert!(served.answers("/", &["body contains \"shop\""]));
    assert!(served.answers("/products", &["body contains \"Teapot\"", "status == 200"]));
    assert!(served.answers("/orders/7", &["body contains \"sent\""]));
    assert!(served.answers("/nothing", &["status == 404"]));
    let rules = folder.join("rules.toml");
    let rules = rules.to_string_lossy();
    let served = mock(&[&rules, "--tls"]);
    assert!(served.url.starts_with("https://"), "{}", served.url);
    assert!(served.answers("/orders", &["status == 200"]));
    let output = plimsoll(&["mock", &rules, "--print-config"]).exits(0);
    assert!(
        output.stdout.contains("address = \"127.0.0.1:8080\""),
        "{output}"
    );
}

#[test]
fn the_starter_is_written_once_and_has_no_mistakes() {
    let files = MaterialFiles::new();
    let folder = files.path(".");
    let folder = folder.to_string_lossy();
    plimsoll(&["mock", "--init", &folder]).exits(0);
    let output = plimsoll(&["mock", "--init", &folder]).exits(3);
    assert!(output.stderr.contains("nothing was written"), "{output}");
    let file = files.path("apimock.toml");
    let file = file.to_string_lossy();
    let output = plimsoll(&["mock", "validate", &file]).exits(0);
    assert!(
        output.stdout.contains("no mistakes; 4 rules in 1 set"),
        "{output}"
    );
    let output = plimsoll(&["mock", &file, "--print-config"]).exits(0);
    assert!(
        output.stdout.contains("address = \"127.0.0.1:3001\""),
        "{output}"
    );
}

#[test]
fn mistakes_are_reported_with_their_places_and_codes() {
    let files = MaterialFiles::new();
    let path = files.write(
        "rules.toml",
        "[[rules]]\nwhen.request.url_paht = \"/\"\nrespond.status = 20\n",
    );
    let path = path.to_string_lossy();
    let output = plimsoll(&["mock", "validate", &path]).exits(1);
    for expected in [
        "rules.toml:2:14: rules[1].when.request.url_paht: unknown key",
        "hint: did you mean `url_path`?",
        "rules.toml:3:18: rules[1].respond.status: must be a whole number",
    ] {
        assert!(
            output.stderr.contains(expected),
            "no `{expected}` in {output}"
        );
    }
    plimsoll(&["mock", &path]).exits(2);
    plimsoll(&["mock", "validate", "/nonexistent.toml"]).exits(2);
    plimsoll(&["mock", &path, "--no-cors"]).exits(2);
}

#[test]
fn a_match_is_explained_rule_by_rule() {
    let rules = shop().join("rules.toml");
    let rules = rules.to_string_lossy();
    let ask = [
        "mock",
        "match-test",
        "/orders",
        &rules,
        "-d",
        "{\"amount\": 20}",
    ];
    let output = plimsoll(&ask).exits(0);
    assert!(
        output
            .stdout
            .contains("yes rules[1]: 401, 35 bytes of application/json"),
        "{output}"
    );
    assert!(output.stdout.contains("answered by rules[1]"), "{output}");
    let with_key = [&ask[..], &["-H", "x-api-key: k", "--json"]].concat();
    let explained = plimsoll(&with_key).exits(0).json();
    let schema = include_str!("../../../../schemas/mock-match.v1.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::validate(&schema, &explained).unwrap();
    assert_eq!(explained["answer"]["rule"], 2, "{explained}");
    assert_eq!(
        explained["sets"][0]["rules"][0]["unmet"][0]["condition"],
        "header x-api-key absent"
    );
    assert_eq!(
        explained["sets"][0]["rules"][0]["unmet"][0]["found"],
        "\"k\""
    );
    let output = plimsoll(&["mock", "match-test", "/nothing", &rules]).exits(1);
    assert!(
        output.stdout.contains("answered by nothing: 404"),
        "{output}"
    );
    let output = plimsoll(&["mock", "match-test", "/products", &rules]).exits(0);
    assert!(output.stdout.contains("products.csv"), "{output}");
}

#[test]
fn an_answer_is_shown_without_being_served() {
    let files = MaterialFiles::new();
    let rules = r#"
[[rules]]
when.request.url_path = "/a"
respond = { text = "for {{request.query.who}}", template = true, headers.x-a = "1", status = 201 }
[[rules]]
when.request = { url_path = "/b", method = "POST", headers.x-key = "k", body.text = "content" }
respond.fault = "half_body"
"#;
    let path = files.write("rules.toml", rules);
    let path = path.to_string_lossy();
    let output = plimsoll(&["mock", "get", "/a?who=ann", &path]).exits(0);
    assert!(output.stdout.starts_with("201 Created\n"), "{output}");
    assert!(output.stdout.contains("\nx-a: 1\n"), "{output}");
    assert!(output.stdout.ends_with("\n\nfor ann\n"), "{output}");
    let output = plimsoll(&["mock", "get", "/c", &path, "--why"]).exits(1);
    assert!(
        output.stdout.contains("answered by nothing: 404"),
        "{output}"
    );
    assert!(output.stdout.contains("\n404 Not Found\n"), "{output}");
    let ask = [
        "mock", "get", "/b", &path, "-H", "x-key: k", "-d", "content",
    ];
    let output = plimsoll(&ask).exits(1);
    assert!(
        output.stderr.contains("the answer is not whole"),
        "{output}"
    );
    plimsoll(&["mock", "get", "/a b", &path]).exits(2);
}

#[test]
fn bad_changes_are_reported_and_change_nothing() {
    let files = MaterialFiles::new();
    let rule = "[[rules]]\nwhen.request.url_path = \"/\"\nrespond.text = \"one\"\n";
    let path = files.write("rules.toml", rule);
    let mut served = mock(&[&path.to_string_lossy()]);
    assert!(served.answers("/", &["body == one"]));
    let mut output = BufReader::new(served.child.stderr.take().unwrap()).lines();
    fs::write(&path, "[[rules]]\nnonsense = 1\n").unwrap();
    let reported = output.find(|line| line.as_ref().unwrap().contains("its old rules answer"));
    assert!(reported.is_some());
    assert!(served.answers("/", &["body == one"]));
    fs::write(&path, rule.replace("one", "two")).unwrap();
    eventually(|| served.answers("/", &["body == two"]));
}

#[test]
fn every_version_of_http_is_spoken() {
    let folder = shop();
    let folder = folder.to_string_lossy();
    let is_answered = |served: &Served, flags: &[&str]| {
        let url = format!("{}products", served.url);
        let conditions = ["--insecure", "--expect", "status == 200"];
        plimsoll(&[&["check", &url], &conditions[..], flags].concat()).exits(0);
    };
    is_answered(&mock(&[&folder]), &["--http2"]);
    is_answered(&mock(&[&folder, "--tls"]), &["--http2"]);
    let files = MaterialFiles::new();
    let configuration = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = [{{ self_signed = true }}]\nhttp3 = true\n\
         [[route]]\nmock = {{ dir = {folder:?} }}\n"
    );
    let file = files.write("plimsoll.toml", &configuration);
    let served = Served::start(&["up", &file.to_string_lossy()]);
    is_answered(&served, &["--http3"]);
}

#[test]
fn the_admin_port_reports_what_was_requested() {
    let folder = shop();
    let folder = folder.to_string_lossy();
    let arguments = [
        "mock",
        &folder,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ];
    let (served, [admin]) = Served::with_more(&mut command(&arguments));
    assert!(served.answers("/products", &["status == 200"]));
    let requests = format!("{admin}mock/requests");
    let expected = ["--expect", "body contains \"products.csv\""];
    plimsoll(&[&["check", &requests], &expected[..]].concat()).exits(0);
    let none = [&arguments[..], &["--journal", "0"]].concat();
    let (_served, [admin]) = Served::with_more(&mut command(&none));
    let requests = format!("{admin}mock/requests");
    plimsoll(&["check", &requests, "--expect", "status == 409"]).exits(0);
    let schema = plimsoll(&["schema", "mock-admin"]).exits(0).json();
    assert_eq!(schema["title"], "The admin API of plimsoll mock");
}

#[test]
fn mappings_of_wiremock_answer_and_become_rules() {
    let folder = shop().join("../wiremock");
    let folder = folder.to_string_lossy();
    let served = mock(&["--import", &folder]);
    assert!(served.answers("/products", &["status == 200", "body contains \"Teapot\""]));
    assert!(served.answers(
        "/products/00",
        &["status == 404", "body contains \"no such\""]
    ));
    assert!(served.answers("/products/12", &["status == 200", "body contains \"12\""]));
    // A file of contents answers where no mapping does.
    assert!(served.answers("/missing.txt", &["status == 200"]));
    let files = MaterialFiles::new();
    let out = files.path("rules.toml");
    let out = out.to_string_lossy();
    let output = plimsoll(&["mock", "import", &folder, "-o", &out]).exits(0);
    assert!(
        output.stdout.contains("wrote 8 rules of WireMock"),
        "{output}"
    );
    let note = "mappings[6].request.customMatcher: this condition is not known here";
    assert!(output.stderr.contains(note), "{output}");
    let output = plimsoll(&["mock", "validate", &out]).exits(0);
    assert!(output.stdout.contains("no mistakes; 8 rules"), "{output}");
    let output = plimsoll(&["mock", "match-test", "/products", &out]).exits(0);
    assert!(output.stdout.contains("all products"), "{output}");
    plimsoll(&["mock", "import", &folder, "-o", &out]).exits(3);
    plimsoll(&["mock", "import", "/nonexistent"]).exits(2);
    let printed = plimsoll(&["mock", "import", &folder]).exits(0);
    assert!(
        printed.stdout.starts_with("strategy = \"priority\""),
        "{printed}"
    );
}

#[test]
fn a_document_answers_and_becomes_a_table() {
    let document = shop().join("../openapi/petstore.yaml");
    let document = document.to_string_lossy();
    let served = mock(&["--import", &document]);
    assert!(served.answers("/v1/pets/1", &["status == 200", "body contains \"Rex\""]));
    assert!(served.answers(
        "/pets?limit=0",
        &[
            "status == 422",
            "header.x-plimsoll-problem contains \"limit\""
        ]
    ));
    let files = MaterialFiles::new();
    let out = files.path("rules.toml");
    let out = out.to_string_lossy();
    let output = plimsoll(&["mock", "import", &document, "-o", &out]).exits(0);
    assert!(
        output.stdout.contains("wrote 15 operations of OpenAPI"),
        "{output}"
    );
    let output = plimsoll(&["mock", "match-test", "/pets/1", &out, "--json"]).exits(0);
    assert!(output.stdout.contains("\"openapi\""), "{output}");
}

#[test]
fn a_rule_is_set_from_the_command_line() {
    let files = MaterialFiles::new();
    let rules = "# Of a shop.\n[[rules]]\nid = \"a\" # the first\nwhen.request.url_path = \"/a\"\nrespond.text = \"old\"\n";
    let set = files.write("rules.toml", rules);
    files.write(
        "apimock.toml",
        "[service]\nrule_sets = [\"rules.toml\"]\nfallback_respond_dir = \".\"\n",
    );
    let root = set.with_file_name("apimock.toml");
    let root = root.to_string_lossy();
    let run = |arguments: &[&str]| plimsoll(&[&["mock", "set", "rule", &root], arguments].concat());
    let output = run(&[
        "--rule",
        "a",
        "--json",
        "{\"b\":1}",
        "--status",
        "201",
        "--dry-run",
    ])
    .exits(0);
    assert_eq!(
        output.stdout,
        format!(
            "{}: rules[1] would change\n- respond.text = \"old\"\n+ respond.status = 201\n+ respond.json = '{{\"b\":1}}'\n",
            set.display()
        )
    );
    assert_eq!(fs::read_to_string(&set).unwrap(), rules);
    run(&["--rule", "1", "--text", "new"]).exits(0);
    let changed = rules.replace("old", "new");
    assert_eq!(fs::read_to_string(&set).unwrap(), changed);
    run(&["--path", "/b", "--delay", "1ms", "--status", "204"]).exits(0);
    let added = "\n[[rules]]\nwhen.request.url_path = \"/b\"\nrespond.status = 204\nrespond.delay = \"1ms\"\n";
    assert_eq!(fs::read_to_string(&set).unwrap(), changed.clone() + added);
    // A mistake is reported with its place, and not written.
    let output = run(&["--rule", "a", "--status", "99"]).exits(1);
    assert!(output.stderr.contains("respond.status"), "{output}");
    assert!(output.stderr.contains("rules.toml:"), "{output}");
    run(&["--rule", "c", "--status", "200"]).exits(2);
    run(&["--rule", "a"]).exits(2);
    run(&["--rule", "a", "--rule-set", "2", "--status", "200"]).exits(2);
    assert_eq!(fs::read_to_string(&set).unwrap(), changed + added);
    let left: Vec<_> = fs::read_dir(set.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

const DOCUMENT: &str = r"
openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /pets/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {'200': {description: ok, content: {application/json: {example: {id: 1}}}}}
";

#[test]
fn a_document_answers_what_it_does_not_allow_without_validation() {
    let files = MaterialFiles::new();
    let document = files.write("pets.yaml", DOCUMENT);
    let document = document.to_string_lossy();
    let served = mock(&["--import", &document]);
    assert!(served.answers("/pets/x", &["status == 422"]));
    let served = mock(&["--import", &document, "--no-validate"]);
    assert!(served.answers("/pets/x", &["status == 200", "body == '{\"id\":1}'"]));
    let folder = files.path(".");
    let folder = folder.to_string_lossy();
    for flag in [&["--no-validate"][..], &["--callbacks", "localhost"]] {
        let arguments = [&["mock", &folder][..], flag].concat();
        let output = plimsoll(&arguments).exits(2);
        assert!(output.stderr.contains(flag[0]), "{output}");
    }
    let output = plimsoll(&["mock", "--import", &document, "--callbacks", "http://a"]).exits(2);
    assert!(output.stderr.contains("is no host"), "{output}");
}

#[test]
fn what_would_be_mocked_is_printed() {
    let files = MaterialFiles::new();
    let document = files.write("pets.yaml", DOCUMENT);
    let document = document.to_string_lossy();
    let output = plimsoll(&["mock", "--import", &document, "--check"]).exits(0);
    for expected in [
        "pets.yaml: 1 operations",
        "  GET /pets/{id}",
        "would listen on http://127.0.0.1:8080/",
    ] {
        assert!(
            output.stdout.contains(expected),
            "no `{expected}` in {output}"
        );
    }
    let shop = shop();
    let rules = shop.join("rules.toml");
    for (what, expected) in [(&shop, "folder "), (&rules, "rules: ")] {
        let output = plimsoll(&["mock", &what.to_string_lossy(), "--check"]).exits(0);
        assert!(output.stdout.starts_with(expected), "{output}");
    }
    let wrong = files.write("rules.toml", "[[rules]]\nrespond.status = 20\n");
    plimsoll(&["mock", &wrong.to_string_lossy(), "--validate"]).exits(2);
}

/// Kubernetes mounts a `ConfigMap` as links into a hidden folder.
#[test]
fn a_mounted_config_map_is_served() {
    let files = MaterialFiles::new();
    fs::create_dir_all(files.path("map/..2026")).unwrap();
    files.write("map/..2026/orders.json", "[7]");
    files.write("secret.json", "{}");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, files.path(&format!("map/{name}"))).unwrap();
    };
    link("..2026", "..data");
    link("..data/orders.json", "orders.json");
    link("../secret.json", "out.json");
    let served = mock(&[&files.path("map").to_string_lossy()]);
    assert!(served.answers("/orders", &["status == 200", "body == '[7]'"]));
    assert!(served.answers("/out", &["status == 404"]));
    assert!(served.answers("/..data/orders", &["status == 404"]));
}
