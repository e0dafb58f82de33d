use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_server::Notices;
use tempfile::TempDir;

use super::*;
use crate::request::KeptRequest;

/// A script with modules beside it.
fn loaded(script: &str, operations: u64) -> (TempDir, RhaiMiddleware) {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("scripts");
    fs::create_dir_all(below.join("lib")).unwrap();
    fs::write(folder.path().join("outside.rhai"), "fn file() { \"o\" }").unwrap();
    fs::write(below.join("lib/names.rhai"), "fn file() { \"n\" }").unwrap();
    let file = below.join("script.rhai");
    fs::write(&file, script).unwrap();
    let middleware = RhaiMiddleware::load(&file, operations).unwrap();
    (folder, middleware)
}

fn input(target: &str, body: &str) -> MiddlewareInput {
    let mut request = KeptRequest::made("POST", target);
    request.body = body.to_owned().into();
    MiddlewareInput::new(&request.view()).unwrap()
}

fn called(script: &str, target: &str, body: &str) -> Result<Option<MiddlewareAnswer>, String> {
    let (_folder, middleware) = loaded(script, OPERATIONS);
    let called = middleware.call(&input(target, body), &Arc::default());
    called.map_err(|error| error.to_string())
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a script answers")]
fn file(path: &str) -> Option<MiddlewareAnswer> {
    Some(MiddlewareAnswer::File(path.to_owned()))
}

#[test]
fn a_returned_value_is_a_file_json_a_text_or_no_answer() {
    let json = Some(MiddlewareAnswer::Json("{\"a\": 1}".to_owned()));
    let text = Some(MiddlewareAnswer::Text("t".to_owned()));
    for (script, expected) in [
        ("return \"a.json\";", file("a.json")),
        ("\"a.json\"", file("a.json")),
        ("exit(\"a.json\")", file("a.json")),
        ("fn f() { exit(\"a.json\") } f(); \"b\"", file("a.json")),
        ("return #{ \"file_path\": \"a\" };", file("a")),
        (
            "return #{ \"file_path\": \"a\", \"text\": \"t\" };",
            file("a"),
        ),
        ("return #{ \"json\": \"{\\\"a\\\": 1}\" };", json),
        ("#{ text: `${\"t\"}` }", text),
        ("#{ text: 1 }", None),
        ("#{ status: 500 }", None),
        ("return;", None),
        ("", None),
        ("7", None),
        ("[\"a\"]", None),
        ("true", None),
    ] {
        assert_eq!(called(script, "/", ""), Ok(expected), "{script}");
    }
}

#[test]
fn scripts_see_the_path_as_it_was_sent_and_json() {
    for (target, path) in [
        ("/", "/"),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("//a", "//a"),
        ("/a%20b/C?x=1", "/a%20b/C"),
    ] {
        assert_eq!(called("url_path", target, ""), Ok(file(path)), "{target}");
    }
    let declared = "if is_def_var(\"body\") { \"yes\" } else { \"no\" }";
    for (body, expected) in [
        ("{}", "yes"),
        ("0", "yes"),
        ("null", "no"),
        ("", "no"),
        ("a=b", "no"),
    ] {
        assert_eq!(called(declared, "/", body), Ok(file(expected)), "{body}");
    }
    let body = "{ \"a\": [1, 1.5, 18446744073709551615, true, null, \"s\"], \"b\": { \"c\": -1 } }";
    for (script, expected) in [
        ("type_of(body.a[0])", "i64"),
        ("type_of(body.a[1])", "f64"),
        ("type_of(body.a[2])", "f64"),
        ("type_of(body.a[3])", "bool"),
        ("type_of(body.a[4])", "()"),
        ("body.a[5]", "s"),
        ("(body.b.c + body.a[0]).to_string()", "0"),
        ("body.missing ?? \"none\"", "none"),
        (
            "switch url_path { \"/p\" if body.b.c == -1 => \"yes\", _ => \"no\" }",
            "yes",
        ),
    ] {
        assert_eq!(called(script, "/p", body), Ok(file(expected)), "{script}");
    }
}

#[test]
fn a_script_within_its_limits_may_work() {
    let script =
        "let sum = 0; for n in 0..1000 { sum += n; } let text = \"\"; text.pad(1000, \"-\");
        text.replace(\"-\", \"+-\"); text.replace('+', \"\"); `${sum} ${text.len}`";
    assert_eq!(called(script, "/", ""), Ok(file("499500 1000")));
}

#[test]
fn a_script_that_takes_too_much_ends() {
    let many: Vec<_> = (0..300).map(|n| format!("let a{n} = {n}; ")).collect();
    let many = many.concat();
    let long = "let text = \"\"; text.pad(900_000, \"-\"); ";
    for (script, expected) in [
        ("loop {}", "operations"),
        ("fn f() { f() } f()", "overflow"),
        ("let text = \"--\"; loop { text += text; }", "too large"),
        ("let list = [1]; loop { list += list; }", "too large"),
        ("let list = []; list.pad(1_000_000, 0);", "too large"),
        (
            "let map = #{}; for n in 0..20_000 { map.set(`${n}`, n); }",
            "too large",
        ),
        (&format!("{long} text.replace(\"-\", \"--\");"), "too large"),
        (&format!("{long} text.replace('-', text);"), "too large"),
        (&format!("{long} text.replace(\"-\", text);"), "too large"),
        (&many, "variables"),
    ] {
        let (_folder, middleware) = loaded(script, 1_000_000);
        let called = middleware.call(&input("/", ""), &Arc::default());
        let error = called.expect_err(script);
        assert!(
            error.to_string().to_lowercase().contains(expected),
            "{script:.40}: {error}"
        );
    }
}

#[test]
fn a_script_ends_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    // Any number of operations.
    let engine = functions::engine(folder.path(), 0);
    let run = |time: u64, script: &str| {
        run::within_limits(Duration::from_millis(time), "s", &Arc::default(), || {
            engine.run(script).map_err(|error| error.to_string())
        })
    };
    for script in [
        "loop {}",
        "sleep(1000)",
        "sleep(1e30)",
        "loop { sleep(0.001) }",
    ] {
        let error = run(20, script).unwrap_err();
        assert!(error.contains("terminated"), "{script}: {error}");
    }
    let script = "sleep(0); sleep(-1); sleep(-1.5); sleep(0.001); let big = 0.0/0.0; sleep(big);";
    assert_eq!(run(60_000, script), Ok(()));
}

#[test]
fn modules_come_from_the_folder_of_the_script() {
    let script = |path: &str| format!("import \"{path}\" as m; m::file()");
    assert_eq!(called(&script("lib/names"), "/", ""), Ok(file("n")));
    for path in ["../outside", "lib/../../outside", "missing", "/etc/passwd"] {
        let error = called(&script(path), "/", "").unwrap_err();
        assert!(error.contains("Module not found"), "{path}: {error}");
    }
}

#[test]
fn errors_have_their_place() {
    let (_folder, middleware) = loaded("let a = 1;\na.missing()", OPERATIONS);
    let error = middleware
        .call(&input("/", ""), &Arc::default())
        .unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.rhai");
    fs::write(&path, "let a = 1;\nif a {").unwrap();
    let error = RhaiMiddleware::load(&path, OPERATIONS).unwrap_err();
    assert_eq!(error.place.unwrap().0, 2, "{error:?}");
    let error = RhaiMiddleware::load(Path::new("/missing.rhai"), OPERATIONS).unwrap_err();
    assert_eq!(error.place, None);
    fs::write(&path, b"\xff").unwrap();
    assert_eq!(
        RhaiMiddleware::load(&path, OPERATIONS).unwrap_err().place,
        None
    );
}

#[test]
fn a_script_that_fails_is_reported_and_the_next_one_answers() {
    let scripts = [
        "print(\"seen\"); throw \"broken\";",
        "()",
        "\"second\"",
        "\"third\"",
    ];
    let loaded: Vec<_> = scripts.map(|script| loaded(script, OPERATIONS)).into();
    let (_folders, middlewares): (Vec<_>, Vec<_>) = loaded.into_iter().unzip();
    let reported: Arc<Mutex<Vec<String>>> = Arc::default();
    let notices = {
        let reported = Arc::clone(&reported);
        Notices::new(move |notice: &Notice| {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.push(notice.message.clone());
        })
    };
    let notices = Arc::new(NoticeLimiter::new(&notices));
    let answer = first_answer(&middlewares, &input("/", ""), &notices);
    assert_eq!(
        answer,
        Some((2, MiddlewareAnswer::File("second".to_owned())))
    );
    let reported = reported.lock().unwrap();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(reported[0], "seen");
    assert!(reported[1].contains("broken"), "{reported:?}");
}

#[test]
fn longer_json_than_scripts_may_hold_is_refused() {
    let mut request = KeptRequest::made("POST", "/");
    request.body = format!("\"{}\"", "a".repeat(LONGEST_JSON)).into();
    MiddlewareInput::new(&request.view()).unwrap_err();
    // What is no JSON is not held at all.
    request.body = "a".repeat(LONGEST_JSON + 1).into();
    assert_eq!(MiddlewareInput::new(&request.view()).unwrap().body, None);
}
