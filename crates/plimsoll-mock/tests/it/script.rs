//! Functions of JavaScript that answer.

use std::fs;
use std::sync::{Arc, Mutex};

use plimsoll_mock::{SharedMock, config};
use plimsoll_server::{Notices, Severity};
use plimsoll_testkit::eventually;
use plimsoll_testkit::http::request;

use crate::mock::{self, Served};

const RULE: &str =
    "[[rules]]\nwhen.request.url_path = { op = \"pattern\", value = \"/users/{id}\" }\n";

/// A rule whose script may take a second.
fn rule(javascript: &str) -> String {
    format!("{RULE}respond.javascript = {{ time = \"10s\", text = '''{javascript}''' }}\n")
}

fn served(javascript: &str) -> Served {
    Served::rules(&rule(javascript))
}

#[test]
fn scripts_see_the_request() {
    let served = served(
        "export default (it) => ({ all: [it.method, it.path, it.url, it.params.id, it.query.a, it.queryAll.a, it.query.none ?? null,
         it.headers['x-a'], it.cookies.sid, it.json?.name ?? null, it.form.f ?? null, it.body, it.secure, it.peer] })",
    );
    let fields = [
        "X-A: 1",
        "x-a: 2",
        "cookie: sid=s; b=c",
        "content-type: application/json",
    ];
    let answer = served.ask("POST", "/users/7?a=1&a=2", &fields, "{\"name\":\"n\"}");
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(
        answer.text(),
        "{\"all\":[\"POST\",\"/users/7\",\"/users/7?a=1&a=2\",\"7\",\"1\",[\"1\",\"2\"],null,\"1, 2\",\"s\",\"n\",null,\"{\\\"name\\\":\\\"n\\\"}\",false,\"127.0.0.1\"]}"
    );
    let form = ["content-type: application/x-www-form-urlencoded"];
    let answer = served.ask("PUT", "/users/7", &form, "f=x+y");
    assert!(
        answer.text().contains(",null,\"x y\",\"f=x+y\","),
        "{}",
        answer.text()
    );
}

#[test]
fn every_kind_of_answer_is_sent() {
    let served = served(
        "const answers = {
           text: () => 'hello', object: () => ({ status: 'ok' }), array: () => [1], nothing: () => {}, number: () => 7,
           response: () => ({ status: 201, headers: { 'x-a': ['1', '2'], 'content-type': 'text/csv' }, body: 'a,b' }),
           body: () => ({ body: { status: 500 } }), empty: () => ({ status: 204 }), bytes: () => ({ base64: 'AP8=' }),
           later: async () => { await null; return { body: 'later' } }, never: () => null };
         export default (it) => answers[it.params.id]()",
    );
    for (name, status, kind, body) in [
        (
            "text",
            200,
            Some("text/plain; charset=utf-8"),
            &b"hello"[..],
        ),
        (
            "object",
            200,
            Some("application/json"),
            b"{\"status\":\"ok\"}",
        ),
        ("array", 200, Some("application/json"), b"[1]"),
        ("number", 200, Some("application/json"), b"7"),
        ("never", 200, Some("application/json"), b"null"),
        ("nothing", 200, None, b""),
        ("response", 201, Some("text/csv"), b"a,b"),
        ("body", 200, Some("application/json"), b"{\"status\":500}"),
        ("empty", 204, None, b""),
        ("bytes", 200, Some("application/octet-stream"), b"\x00\xff"),
        ("later", 200, Some("text/plain; charset=utf-8"), b"later"),
    ] {
        let answer = served.get(&format!("/users/{name}"));
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (status, body),
            "{name}"
        );
        assert_eq!(answer.field("content-type"), kind, "{name}");
        let own = answer.head.matches("x-a: ").count();
        assert_eq!(own, if name == "response" { 2 } else { 0 }, "{name}");
        assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
    }
}

#[test]
fn mistakes_are_answered_and_reported() {
    let folder = mock::files(&[(
        "handler.js",
        "export default (request) => {\n  if (request.params.id === '1') console.warn('one', { a: 1 });\n  else missing.name();\n}",
    )]);
    let file = folder.path().join("rules.toml");
    fs::write(
        &file,
        format!("{RULE}respond.javascript = \"handler.js\"\n"),
    )
    .unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&reported);
    let notices = Notices::new(move |notice| hears.lock().unwrap().push(notice.clone()));
    let shared = SharedMock::of_file(&file, &notices).unwrap();
    let served = Served::start(folder, shared);
    assert_eq!(served.get("/users/1").status, 200);
    let answer = served.get("/users/2");
    assert_eq!(answer.status, 500);
    let expected = "handler.js:3:8: ReferenceError: missing is not defined";
    assert_eq!(answer.text(), format!("{expected}\n"));
    let reported = reported.lock().unwrap();
    let first = (
        reported[0].severity,
        reported[0].about.as_deref(),
        reported[0].message.as_str(),
    );
    assert_eq!(
        first,
        (Severity::Warning, Some("handler.js"), "one {\"a\":1}")
    );
    assert_eq!(
        (reported[1].severity, reported[1].message.as_str()),
        (Severity::Error, expected)
    );
}

#[test]
fn what_does_not_end_is_ended_and_holds_up_no_reader_else() {
    let rules = format!(
        "{RULE}respond.javascript = {{ text = 'export default (it) => {{ while (it.params.id === \"0\"); return it.params.id }}' }}\n\
         [[rules]]\nwhen.request.url_path = \"/text\"\nrespond.text = \"text\"\n"
    );
    let served = Served::rules(&rules);
    let address = served.address();
    let stuck = std::thread::spawn(move || request(address, "GET", "/users/0", &["host: a"], ""));
    // The engine has as many workers as the machine has cores; each of them may get the request.
    while !stuck.is_finished() {
        assert_eq!(served.get("/text").text(), "text");
    }
    let answer = stuck.join().unwrap();
    let expected = "a function of JavaScript: took longer than 100ms\n";
    assert_eq!((answer.status, answer.text()), (500, expected));
    assert_eq!(served.get("/users/1").text(), "1");
}

#[test]
fn what_cannot_even_be_ended_is_left_behind() {
    let served = Served::rules(&format!(
        "{RULE}respond.javascript = {{ text = 'export default (it) => it.params.id === \"0\" ? \"a\".repeat(1e6).indexOf(\"a\".repeat(5e5) + \"b\") : it.params.id' }}\n"
    ));
    let answer = served.get("/users/0");
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().contains("does not end and cannot be ended"),
        "{}",
        answer.text()
    );
    assert_eq!(served.get("/users/1").text(), "1");
}

#[test]
fn memory_has_a_bound_and_the_next_request_is_answered() {
    let served = served(
        "export default (it) => { const all = []; while (it.params.id === '0') all.push('x'.repeat(100000) + all.length); return 'ok' }",
    );
    let answer = served.get("/users/0");
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().contains("wanted more than 32 MiB of memory"),
        "{}",
        answer.text()
    );
    assert_eq!(served.get("/users/1").text(), "ok");
}

#[test]
fn what_is_kept_is_everybodys_and_lasts() {
    let javascript = "export default (it, { store }) => {
        if (it.params.id === 'get') return [store.get('n') ?? null, store.get('last'), store.keys('la')];
        store.set('last', { id: it.params.id });
        return String(store.add('n')); }";
    let served = served(javascript);
    for number in 1..=20 {
        assert_eq!(served.get("/users/x").text(), number.to_string());
    }
    // Rules that are loaded again have what was kept.
    served.write(
        "rules.toml",
        &rule(javascript).replace("String(", "'n' + String("),
    );
    eventually(|| served.get("/users/y").text().starts_with('n'));
    let kept = served.get("/users/get");
    assert!(
        kept.text().ends_with(",{\"id\":\"y\"},[\"last\"]]"),
        "{}",
        kept.text()
    );
    served.shared.plan().1.states.reset();
    assert_eq!(served.get("/users/get").text(), "[null,null,[]]");
}

#[test]
fn scripts_know_states_and_change_them() {
    let served = Served::rules(&format!(
        "{}scenario = {{ name = \"cart\", session = \"header:x-client\" }}\n",
        rule("export default (it, context) => ({ state: it.params.id, body: context.state })")
    ));
    let ask = |id: &str, client: &str| {
        let field = format!("x-client: {client}");
        let answer = served.ask("GET", &format!("/users/{id}"), &[&field], "");
        answer.text().to_owned()
    };
    assert_eq!(ask("full", "a"), "Started");
    assert_eq!(ask("paid", "a"), "full");
    assert_eq!(ask("x", "a"), "paid");
    assert_eq!(ask("x", "b"), "Started");
}

#[test]
fn chance_is_that_of_the_seed() {
    let rules = format!(
        "{RULE}respond.seed = 7\nrespond.javascript = {{ time = \"10s\", text = '''export default (it, context) =>
         [Math.random(), context.integer(1, 6), context.uuid(), context.fake('name'), context.now > 1e12]''' }}\n"
    );
    let (one, other) = (Served::rules(&rules), Served::rules(&rules));
    let first = one.get("/users/1");
    assert_eq!(first.text(), other.get("/users/1").text());
    assert!(first.text().ends_with(",true]"), "{}", first.text());
    assert_ne!(first.text(), one.get("/users/1").text());
}

#[test]
fn files_are_loaded_again_and_never_sent() {
    let root = "[service]\nrule_sets = [\"rules.toml\"]\nfallback_respond_dir = \"./\"\n";
    let rules = format!("{RULE}respond.javascript = \"scripts/handler.js\"\n");
    let folder = mock::files(&[
        ("apimock.toml", root),
        ("rules.toml", &rules),
        (
            "scripts/handler.js",
            "import { a } from './lib.js'; export default () => a",
        ),
        ("scripts/lib.js", "export const a = 'one'"),
        ("other.js", "1"),
    ]);
    let file = folder.path().join("apimock.toml");
    let shared = SharedMock::of_file(&file, &Notices::default()).unwrap();
    let served = Served::start(folder, shared);
    assert_eq!(served.get("/users/1").text(), "one");
    for (path, status) in [
        ("/scripts/handler.js", 404),
        ("/scripts/lib.js", 404),
        ("/other.js", 200),
    ] {
        assert_eq!(served.get(path).status, status, "{path}");
    }
    served.write("scripts/lib.js", "export const a = 'two'");
    eventually(|| served.get("/users/1").text() == "two");
}

#[test]
fn mistakes_are_found_before_anybody_asks() {
    for (respond, expected) in [
        ("javascript = \"none.js\"", "there is no file"),
        ("javascript = \"../secret.js\"", "lies outside of"),
        ("javascript = \"bad.js\"", "bad.js:2:"),
        (
            "javascript = { text = 'export const a = 1' }",
            "respond.javascript.text:1:1: has no function",
        ),
        (
            "javascript = { text = 'for (;;); export default () => 1' }",
            "took longer than 2s",
        ),
        (
            "javascript = { text = \"import a from 'node:fs'; export default a\" }",
            "is no file",
        ),
        (
            "javascript = { time = \"1s\" }",
            "must have one of `file` and `text`",
        ),
        (
            "javascript = { file = \"good.js\", time = \"1h\" }",
            "at most 30s",
        ),
        (
            "javascript = { file = \"good.js\", tme = \"1s\" }",
            "unknown key",
        ),
        (
            "text = \"a\"\nrespond.javascript = \"good.js\"",
            "more than one of",
        ),
        (
            "fault = \"reset\"\nrespond.javascript = \"good.js\"",
            "`fault` cannot be given beside",
        ),
    ] {
        let folder = mock::files(&[
            ("in/bad.js", "const a = 1;\nexport default () => {"),
            ("in/good.js", "export default () => 1"),
            ("secret.js", "export default () => 1"),
        ]);
        let file = folder.path().join("in/rules.toml");
        fs::write(&file, format!("{RULE}respond.{respond}\n")).unwrap();
        let problems = config::load(&file).unwrap_err();
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let is_reported = reported.iter().any(|it| it.contains(expected));
        assert!(is_reported, "no {expected} in {reported:?}");
        assert!(reported[0].contains("rules.toml:"), "{reported:?}");
    }
}
