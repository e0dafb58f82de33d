use std::fs;

use tempfile::TempDir;

use super::*;
use crate::reply::ReplyKind;
use crate::request::KeptRequest;
use crate::template::content::Content;

/// A folder with a root file and one of rules.
fn folder(root: &str, rules: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("apimock.toml"), root).unwrap();
    fs::write(folder.path().join("rules.toml"), rules).unwrap();
    folder
}

const ROOT: &str = "[service]\nrule_sets = [\"rules.toml\"]\nfallback_respond_dir = \"files\"\n";

fn load_in(folder: &TempDir) -> Result<MockFile, Vec<FileProblem>> {
    fs::create_dir_all(folder.path().join("files")).unwrap();
    open(&folder.path().join("apimock.toml"))
}

/// The number of the rule that answers a request, from 0.
fn answers(rules: &str, request: &KeptRequest) -> Option<usize> {
    let folder = folder(ROOT, rules);
    let plan = load_in(&folder)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .plan;
    let (_, rule) = plan.find(&request.view())?;
    Some(rule)
}

/// The problems of rules, each as it is shown, without the folder.
fn problems(rules: &str) -> Vec<String> {
    let folder = folder(ROOT, rules);
    let problems = load_in(&folder).map(|_| ()).unwrap_err();
    let place = format!("{}/", folder.path().display());
    problems
        .iter()
        .map(|it| it.to_string().replace(&place, ""))
        .collect()
}

#[test]
fn every_key_of_a_root_file_is_known() {
    let root = r#"
[listener]
ip_address = "127.0.0.1"
port = 3991

[listener.tls]
cert = "cert.pem"
key = "key.pem"
port = 3992
handshake_timeout_seconds = 3
max_connections = 8

[log]
verbose = { header = true, body = true }

[service]
strategy = "round_robin"
rule_sets = ["rules.toml"]
middlewares = []
fallback_respond_dir = "files"
cors_allow_credentials_origins = ["https://app.example.test"]
max_request_body_bytes = 1024
middleware_max_operations = 5000

[file_tree_view]
show_hidden = true
builtin_excludes = false
extra_excludes = ["*.bak"]
include = ["*.json"]
respect_gitignore = true
"#;
    let folder = folder(root, "rules = []\n");
    let file = load_in(&folder).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(file.listener.address, Some(("127.0.0.1".to_owned(), 3991)));
    let tls = file.listener.tls.unwrap();
    assert_eq!((tls.port, tls.connections), (Some(3992), Some(8)));
    assert_eq!(file.plan.body_limit, 1024);
    assert_eq!(
        file.plan.sets[0].strategy(),
        crate::rules::Strategy::RoundRobin
    );
    assert_eq!(file.plan.files.len(), 2);
}

#[test]
fn every_key_of_a_set_is_known() {
    let rules = r#"
strategy = { weighted_random = { seed = 7 } }

[prefix]
url_path = "/api"
respond_dir = "responses"

[default]
delay_response_milliseconds = 1500

[guard]

[[rules]]
priority = 10
weight = 3
when.request.url_path = "/slow"
respond.text = "slow"

[[rules]]
weight = 5
when.request.url_path = { value = "/orders", op = "equal" }
when.request.method = "POST"
when.request.headers.x-api-key = { op = "exists" }
when.request.headers.x-token = { op = "equal", value = "t" }
when.request.body.json."customer.tier" = { op = "equal", value = "gold" }
respond = { json = '{ok:true}', status = 201, headers = { x-extra = "1" }, delay_response_milliseconds = 0 }

[[rules]]
priority = -1
weight = 9
when.request.url_path = "/data"
respond = { file_path = "data.csv", csv_records_key = "rows" }
"#;
    let folder = folder(ROOT, rules);
    fs::create_dir(folder.path().join("responses")).unwrap();
    fs::write(folder.path().join("responses/data.csv"), "a\n1\n").unwrap();
    let plan = load_in(&folder)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .plan;
    let rules = plan.sets[0].rules();
    assert_eq!((rules[0].priority, rules[0].weight), (10, 3));
    assert_eq!(
        rules[0].replies[0].delay,
        crate::fault::delay::Delay::Fixed(std::time::Duration::from_millis(1500))
    );
    assert_eq!(
        rules[1].replies[0].delay,
        crate::fault::delay::Delay::default()
    );
    let ReplyKind::Content(Content::Bytes(_, json)) = &rules[1].replies[0].kind else {
        panic!("{rules:?}");
    };
    assert_eq!(json, "{\"ok\":true}");
    assert!(matches!(&rules[2].replies[0].kind, ReplyKind::File(file) if file.records == "rows"));
    let mut request = KeptRequest::made("post", "/api/orders/");
    request.body = bytes::Bytes::from_static(b"{\"customer\":{\"tier\":\"gold\"}}");
    request.fields = vec![
        ("X-Api-Key".to_owned(), Vec::new()),
        ("x-token".to_owned(), b"t".to_vec()),
    ];
    assert_eq!(plan.find(&request.view()), Some((0, 1)));
    assert_eq!(
        plan.find(&KeptRequest::made("GET", "/api/data").view()),
        Some((0, 2))
    );
}

#[test]
fn only_whole_paths_and_beginnings_are_put_behind_the_prefix() {
    let rules = |op: &str, value: &str| {
        format!(
            "[prefix]\nurl_path = \"api/\"\n[[rules]]\nwhen.request.url_path = {{ op = \"{op}\", value = '{value}' }}\nrespond.status = 200\n"
        )
    };
    for (op, value, met, unmet) in [
        ("equal", "x/", "/api/x", "/api/x/y"),
        ("equal", "", "/api", "/api/x"),
        ("not_equal", "x", "/api/y", "/api/x"),
        ("starts_with", "/x", "/api/xy", "/api/y"),
        ("not_starts_with", "/x", "/api/y", "/api/xy"),
        ("wild_card", "*/z?", "/api/a/b/zz", "/api/a/z"),
        ("ends_with", ".zip", "/api/a.zip", "/api/a.zap"),
        ("not_ends_with", ".zip", "/api/a.zap", "/api/a.zip"),
        ("contains", "pi/x", "/api/x", "/api/y"),
        ("not_contains", "x", "/api/y", "/api/x"),
        ("regex", "^/api/[0-9]+$", "/api/12", "/api/1x"),
        ("not_regex", "(?i)^/API/É$", "/api/e", "/api/é"),
    ] {
        let rules = rules(op, value);
        let of = |target: &str| answers(&rules, &KeptRequest::made("GET", target));
        assert_eq!((of(met), of(unmet)), (Some(0), None), "{op} {value}");
        assert_eq!(of("/x"), None);
    }
}

#[test]
fn more_than_the_source_has_can_be_requested() {
    let rules = r#"
[[rules]]
when.request.url_path = "/a"
when.request.method = ["PUT", "HEAD"]
respond.status = 200

[[rules]]
when.request.query.page = "2"
when.not.request.headers.x-token.op = "exists"
respond.status = 200

[[rules]]
when.any = [
    { request.cookies.session = { op = "starts_with", value = "s" } },
    { request.form.name = "ann", request.method = "POST" },
]
respond.status = 200
"#;
    let mut request = KeptRequest::made("head", "/a");
    assert_eq!(answers(rules, &request), Some(0));
    request = KeptRequest::made("GET", "/b?page=1&page=2");
    assert_eq!(answers(rules, &request), Some(1));
    request.fields.push(("X-Token".to_owned(), Vec::new()));
    assert_eq!(answers(rules, &request), None);
    request
        .fields
        .push(("cookie".to_owned(), b"session=s1".to_vec()));
    assert_eq!(answers(rules, &request), Some(2));
    request = KeptRequest::made("POST", "/");
    request.fields.push((
        "content-type".to_owned(),
        b"application/x-www-form-urlencoded".to_vec(),
    ));
    request.body = bytes::Bytes::from_static(b"name=ann");
    assert_eq!(answers(rules, &request), Some(2));
}

#[test]
fn parts_numbers_and_templates_are_conditions() {
    let rules = r#"
[[rules]]
when.request.multipart = [
    { name = "file", file_name = { op = "ends_with", value = ".txt" }, request.body.text = "x" },
    { every = true, request.headers.content-type = { op = "absent" } },
]
respond.status = 200

[[rules]]
when.request.headers.x-n = { op = "greater_than", value = "5" }
respond.status = 200

[[rules]]
when.request.template = [{ text = "{{request.method}}{{request.query.a}}", value = "GET1" }, { text = "{{request.query.b}}", same = "{{request.header.c}}" }]
respond.status = 200

[[rules]]
when.request.number = { scenario = "visits", op = "less_or_equal", value = "1" }
respond.status = 200
scenario = { name = "visits", count = true }
"#;
    let mut request = KeptRequest::made("POST", "/");
    let form = b"multipart/form-data; boundary=b".to_vec();
    request.fields.push(("content-type".to_owned(), form));
    let part = "--b\r\ncontent-disposition: form-data; name=file; filename=a.txt\r\n\r\nx\r\n--b--";
    request.body = part.into();
    assert_eq!(answers(rules, &request), Some(0));
    request.body = part.replace("a.txt", "a.png").into();
    assert_eq!(answers(rules, &request), Some(3));
    let mut request = KeptRequest::made("GET", "/?a=1&b=2");
    request.fields = vec![("x-n".to_owned(), b"6".to_vec())];
    assert_eq!(answers(rules, &request), Some(1));
    request.fields = vec![
        ("x-n".to_owned(), b"5".to_vec()),
        ("c".to_owned(), b"2".to_vec()),
    ];
    assert_eq!(answers(rules, &request), Some(2));
    request.fields.clear();
    assert_eq!(answers(rules, &request), Some(3));
    for (wrong, expected) in [
        ("request.multipart = [{}]", "no condition"),
        ("request.multipart = { nam = \"x\" }", "nam"),
        ("request.number = { value = \"1\" }", "scenario"),
        ("request.template = { value = \"1\" }", "text"),
        (
            "request.template = { text = \"{{x}}\", value = \"1\" }",
            "x",
        ),
        (
            "request.headers.x = { op = \"less_than\", value = \"a\" }",
            "must be a number",
        ),
        (
            "request.headers.x = { value = \"a\", format = \"unix\" }",
            "only",
        ),
    ] {
        let rules = format!("[[rules]]\nwhen.{wrong}\nrespond.status = 200\n");
        let problems = parse(&rules, Path::new("/nonexistent")).unwrap_err();
        let reported = format!("{problems:?}");
        assert!(reported.contains(expected), "no {expected} in {reported}");
    }
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let rules = r#"
strategy = "fist_match"
[[rules]]
id = "a"
when.request.url_path = { op = "regex", value = "(" }
respond.text = "x"
[[rules]]
id = "a"
when.request.urlpath = "/"
respond = { text = "x", status = 204 }
[[rules]]
when.request.method = "OPTIONS"
respond = { text = "x", json = "{}" }
[[rules]]
when.request.headers.x = { op = "equals", value = "1" }
respond = { json = "{", status = 999 }
[[rules]]
when.request.url_path = "/"
respond.file_path = "missing.json"
[[rules]]
when.request.body.json.user.name = { value = "1" }
respond.headers.date = "today"
[[rules]]
when = {}
respond.file_path = "../apimock.toml"
[[rules]]
when.request.headers = { X-A = { value = "1" }, x-a = { value = "2" } }
respond = { status = 200, headers = { X-B = "1", x-b = "2" } }
[[rules]]
when.request.url_path = { op = "starts_with", value = "/" }
respond.proxy = { to = "http://127.0.0.1:9", headers = { X-C = "1", x-c = "2" } }
"#;
    let reported = problems(rules);
    for expected in [
        "rules.toml:2:12: strategy: `fist_match` is no strategy",
        "rules.toml:5:49: rules[1].when.request.url_path.value: is not a regular expression: unclosed group",
        "rules.toml:8:6: rules[2].id: another rule is called `a`",
        "rules.toml:9:14: rules[2].when.request.urlpath: unknown key",
        "rules[2].respond: a response of that status has no content",
        "rules[3].respond: more than one of file_path, text, json, base64, events",
        "rules[4].when.request.headers.x.op: `equals` is no operator",
        "rules[4].respond.json: is no JSON:",
        "rules[4].respond.status: must be a whole number from 200 to 599",
        "rules[5].respond.file_path: there is no file",
        "rules[6].when.request.body.json.user: has neither `value` nor `op`",
        "rules[6].respond.headers.date: is set by the server and cannot be given",
        "rules[6].respond: nothing to answer",
        "rules[7].when: no condition",
        "rules[7].respond.file_path:",
        "rules[8].when.request.headers.x-a: `X-A` and `x-a` are the same header field",
        "rules[8].respond.headers.x-b: `X-B` and `x-b` are the same header field",
        "rules[9].respond.proxy.headers.x-c: `X-C` and `x-c` are the same header field",
    ] {
        let is_reported = reported.iter().any(|problem| problem.contains(expected));
        assert!(is_reported, "no `{expected}` in {reported:#?}");
    }
}

#[test]
fn an_empty_table_is_no_condition_anywhere() {
    for place in [
        "url_path",
        "raw_path",
        "url",
        "headers.x",
        "query.x",
        "cookies.x",
        "form.x",
        "peer",
        "body.text",
        "body.json.a",
        "body.jsonpath.'$.a'",
        "body.jayway.'$.a'",
        "body.xpath.'/a'",
    ] {
        let rules =
            format!("[[rules]]\nwhen.request.{place} = {{}}\nrespond = {{ status = 200 }}\n");
        let reported = problems(&rules);
        let is_reported = |problem: &String| problem.contains("has neither `value` nor `op`");
        assert!(reported.iter().any(is_reported), "{place}: {reported:?}");
    }
}

#[test]
fn missing_files_are_refused_by_name() {
    let root = "[service]\nrule_sets = [\"none.toml\"]\nmiddlewares = [\"mw.rhai\"]\nfallback_respond_dir = \"none\"\nx = 1\n";
    let folder = folder(root, "");
    let problems = load_in(&folder).map(|_| ()).unwrap_err();
    let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let reported = reported.join("\n");
    for expected in [
        "there is no file",
        "middlewares[1]: there is no file",
        "cannot serve",
        "service.x: unknown key",
    ] {
        assert!(reported.contains(expected), "no `{expected}` in {reported}");
    }
    let error = open(Path::new("/nonexistent/apimock.toml"))
        .map(|_| ())
        .unwrap_err();
    assert!(error[0].unreadable.is_some());
}

#[test]
fn mistakes_in_answers_are_reported() {
    let rules = r#"
[[rules]]
when.request.url_path = { op = "pattern", value = "/a{b}" }
respond = { text = "x", fault = "resett", delay = "5x" }
[[rules]]
when.request.url_path = { op = "pattern", value = "/{id}" }
respond = { template = true, text = "{{request.path.no}}", dribble = { chunks = 2 }, bandwidth = "1KiB" }
[[rules]]
when.request.body.jsonpath."$[" = { op = "exists" }
respond.sequence = []
[[rules]]
when.request.body.schema = "none.json"
respond = { template = true, json = '{ "a": {{request.method}} {{request.method}} }' }
[[rules]]
when.request.url_path = "/"
respond = { text = "x", delay = { uniform = ["9ms", "1ms"] } }
scenario = { name = "s", session = "ip" }
[[rules]]
when.request.url_path = "/"
respond = { events = [{ data = "x" }], repeat = true }
[[rules]]
when.request.url_path = "/"
respond = { events = [{ event = "a\nb" }], bandwidth = "1KiB" }
"#;
    let reported = problems(rules);
    for expected in [
        "rules[1].when.request.url_path.value: `a{b}` is neither text nor a place",
        "rules[1].respond.fault: `resett` is no fault",
        "rules[1].respond.delay:",
        "rules[2].respond.text: there is no `{{request.path.no}}`",
        "rules[2].respond.dribble: `over` is missing",
        "rules[2].respond: both `bandwidth` and `dribble`",
        "is no JSONPath",
        "rules[3].respond: the sequence is empty",
        "rules[4].when.request.body.schema: cannot read",
        "rules[4].respond.json: is no JSON, even with numbers in its places",
        "rules[5].respond.delay: `uniform` takes the least and the most",
        "rules[5].scenario: neither `state` nor `next`",
        "rules[5].scenario.session: `ip` is none of",
        "rules[6].respond: events that repeat would never pause",
        "rules[7].respond.events[1].event: must be of one line",
        "rules[7].respond.events[1]: `data` is missing",
        "rules[7].respond: `bandwidth` cannot be given beside `events`",
    ] {
        let is_reported = reported.iter().any(|problem| problem.contains(expected));
        assert!(is_reported, "no `{expected}` in {reported:#?}");
    }
}

#[test]
fn the_key_of_a_listener_is_not_served_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["cert.pem", "key.pem"] {
        fs::write(path(name), "x").unwrap();
    }
    let root = format!(
        "[listener]\nip_address = \"127.0.0.1\"\nport = 3443\n[listener.tls]\ncert = {:?}\nkey = {:?}\n\
         [service]\nfallback_respond_dir = {:?}\n",
        path("cert.pem"),
        path("key.pem"),
        folder.path()
    );
    fs::write(path("apimock.toml"), root).unwrap();
    let file = open(&path("apimock.toml")).unwrap_or_else(|problems| panic!("{problems:?}"));
    let served = file.plan.folder.unwrap();
    assert!(served.find("/cert.pem").is_some());
    assert_eq!(served.find("/key.pem"), None);
    assert_eq!(served.find("/apimock.toml"), None);
}

#[test]
fn hints_name_the_cause_and_what_was_meant() {
    let reported = problems(
        r#"
[[rules]]
when.request.url_path = { op = "startswith", value = "/" }
respond.staus = 200
[[rules]]
when.request.url_path = "/"
respond.body = "x"
"#,
    );
    let reported = reported.join("\n");
    for expected in ["unknown key", "`startswith` is no operator"] {
        assert!(reported.contains(expected), "no `{expected}` in {reported}");
    }
    assert!(!reported.contains("nothing to answer"), "{reported}");
    let reported = problems("[[rule]]\nwhen.request.url_path = \"/\"\nrespond.text = \"x\"\n");
    assert!(
        reported.iter().all(|it| !it.contains("service")),
        "{reported:?}"
    );
    assert!(
        reported.iter().any(|it| it.contains("rule: unknown key")),
        "{reported:?}"
    );
}

#[test]
fn a_table_or_a_list_where_text_is_expected_gets_a_hint() {
    let root = tempfile::tempdir().unwrap();
    for (value, hint) in [
        ("{ a = 1 }", Some("this is a table")),
        ("[1]", Some("this is a list")),
        ("1", None),
    ] {
        let text = format!("[[rules]]\nwhen.request.url_path = \"/\"\nrespond.text = {value}\n");
        let problems = parse(&text, root.path()).map(|_| ()).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = problems[0].problem.as_ref().unwrap();
        assert_eq!(problem.message, "must be text in quotes");
        let given = problem.hint.as_deref();
        let starts = given.map(|given| hint.is_some_and(|hint| given.starts_with(hint)));
        assert_eq!(starts, hint.map(|_| true), "{value}: {given:?}");
    }
}
