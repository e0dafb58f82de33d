//! Calls of gRPC that rules answer: what files may say, and which requests are calls.

use std::fs;

use plimsoll_mock::{KeptRequest, config};

use crate::mock;

/// The set of `tests/data/echo.proto` in the crate of the binary.
const SET: &[u8] = include_bytes!("../../../plimsoll/tests/data/echo.binpb");

/// Rules beside the set.
fn load(rules: &str) -> Result<plimsoll_mock::MockPlan, Vec<String>> {
    let folder = mock::files(&[("rules.toml", rules)]);
    fs::write(folder.path().join("echo.binpb"), SET).unwrap();
    fs::write(folder.path().join("bad.binpb"), "no set").unwrap();
    let plan = config::load(&folder.path().join("rules.toml"));
    plan.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

const GRPC: &str = "grpc = { descriptors = \"echo.binpb\" }\n[[rules]]\n";

#[test]
fn messages_are_looked_at_as_json() {
    let plan = load(&format!(
        "{GRPC}when.grpc = {{ method = \"plimsoll.test.Echo/Say\", json.text = {{ op = \"contains\", value = \"a\" }} }}\nrespond.grpc.json = '{{}}'\n\
         [[rules]]\nwhen.grpc = \"plimsoll.test.Echo/Say\"\nrespond.grpc.status = \"NOT_FOUND\"\n"
    ))
    .unwrap();
    assert_eq!(plan.files.len(), 2);
    let found = |path: &str, kind: &str, body: &[u8]| {
        let mut request = KeptRequest::made("POST", path);
        request.fields = vec![("content-type".to_owned(), kind.as_bytes().to_owned())];
        request.body = body.to_vec().into();
        plan.find(&request.view())
    };
    let say = "/plimsoll.test.Echo/Say";
    // A message with the text "ab", and one without.
    let frame = b"\0\0\0\0\x04\x0a\x02ab";
    assert_eq!(found(say, "application/grpc", frame), Some((0, 0)));
    assert_eq!(
        found(say, "application/grpc+proto", b"\0\0\0\0\0"),
        Some((0, 1))
    );
    for (path, kind, body) in [
        (say, "application/json", &frame[..]),
        (say, "application/grpc+json", frame),
        (say, "application/grpc", b""),
        (say, "application/grpc", b"\0\0\0\0\x04\x0a"),
        (say, "application/grpc", b"\x01\0\0\0\0"),
        (say, "application/grpc", b"\0\0\0\0\x01\xff"),
        (say, "application/grpc", b"\0\0\0\0\0\0\0\0\0\0"),
        ("/plimsoll.test.Echo/Chat", "application/grpc", frame),
    ] {
        assert_eq!(found(path, kind, body), None, "{path} {kind} {body:?}");
    }
}

#[test]
fn mistakes_are_reported() {
    let rule =
        |when: &str, respond: &str| format!("{GRPC}when.grpc = {when}\nrespond.grpc = {respond}\n");
    let say = "\"plimsoll.test.Echo/Say\"";
    for (rules, expected) in [
        (
            rule("\"plimsoll.test.Ecco/Say\"", "{ json = '{}' }"),
            "there is no service plimsoll.test.Ecco",
        ),
        (
            rule("\"plimsoll.test.Echo/Sya\"", "{ json = '{}' }"),
            "has no method Sya",
        ),
        (rule("\"Say\"", "{ json = '{}' }"), "is not of the form"),
        (
            rule("\"plimsoll.test.Echo/Gather\"", "{ json = '{}' }"),
            "takes a stream of messages",
        ),
        (
            rule(say, "{ json = '{ \"txt\": 1 }' }"),
            "is not a plimsoll.test.Line: unrecognized field name 'txt'",
        ),
        (
            rule(say, "{ json = ['{}', '{}'] }"),
            "answers with one message",
        ),
        (rule(say, "{}"), "`json` is missing"),
        (
            rule(say, "{ status = \"NOTFOUND\" }"),
            "`NOTFOUND` is no status",
        ),
        (
            rule(say, "{ json = '{}', trailers = { grpc-status = \"1\" } }"),
            "is set by",
        ),
        (
            rule("{ json.text = \"a\" }", "{ json = '{}' }"),
            "`method` is missing",
        ),
        (
            rule(
                "{ method = \"plimsoll.test.Echo/Say\", txt = \"a\" }",
                "{ json = '{}' }",
            ),
            "unknown key",
        ),
        (
            format!("{GRPC}when.request.url_path = \"/\"\nrespond.grpc.json = '{{}}'\n"),
            "the rule asks for no call",
        ),
        (
            "[[rules]]\nwhen.grpc = \"a.B/C\"\nrespond.grpc.json = '{}'\n".to_owned(),
            "there are no descriptors",
        ),
        (
            "grpc.descriptors = \"none.binpb\"\nrules = []".to_owned(),
            "cannot read",
        ),
        (
            "grpc.descriptors = \"bad.binpb\"\nrules = []".to_owned(),
            "is not a descriptor set",
        ),
    ] {
        let reported = load(&rules).unwrap_err();
        let is_reported = reported.iter().any(|it| it.contains(expected));
        assert!(is_reported, "no {expected} in {reported:?}");
    }
}
