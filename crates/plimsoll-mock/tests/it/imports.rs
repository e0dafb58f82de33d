//! Files of other mock servers, served.

use std::path::{Path, PathBuf};

use plimsoll_mock::SharedMock;
use plimsoll_server::Notices;
use plimsoll_testkit::eventually;

use crate::mock::Served;

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name)
}

fn served(name: &str) -> Served {
    let shared = SharedMock::of_file(&example(name), &Notices::default())
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    Served::start(tempfile::tempdir().unwrap(), shared)
}

#[test]
fn mappings_of_wiremock_answer() {
    let served = served("wiremock");
    let answer = served.get("/products");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let controls = answer
        .head
        .lines()
        .filter(|it| it.to_ascii_lowercase().starts_with("cache-control: "));
    assert_eq!(controls.count(), 2, "{}", answer.head);
    let answer = served.get("/products/12");
    assert!(answer.text().contains("\"id\":\"12\""), "{}", answer.text());
    let answer = served.get("/products/00");
    assert_eq!(
        (answer.status, answer.text()),
        (404, "there is no such product\n")
    );
    let order = "{\"total\": 11, \"items\": [{\"id\": 2}, {\"id\": 1}]}";
    let fields = ["authorization: Basic YW5uOnNlY3JldA=="];
    let ask = || {
        served
            .ask("POST", "/orders?confirm=true", &fields, order)
            .status
    };
    assert_eq!((ask(), ask()), (201, 409));
}

#[test]
fn a_document_answers_and_refuses() {
    let served = served("openapi/petstore.yaml");
    let answer = served.get("/v1/pets/7");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (200, Some("application/json"))
    );
    assert!(answer.text().contains("\"name\":\"Rex\""));
    let fields = ["api-key: k", "content-type: application/json"];
    let answer = served.ask("POST", "/pets", &fields, "{\"name\": \"\"}");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (422, Some("application/json"))
    );
    // The content is the document's own.
    assert!(answer.text().contains("no such pet"), "{}", answer.text());
    let problem = answer.field("x-plimsoll-problem").unwrap_or_default();
    assert!(problem.contains("/name"), "{problem}");
    let answer = served.ask("PUT", "/pets/7", &fields, "{\"name\": \"\"}");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (422, Some("application/problem+json"))
    );
    assert!(answer.text().contains("\"/name\""), "{}", answer.text());
    assert_eq!(served.get("/nothing").status, 404);
}

#[test]
fn a_changed_document_answers_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.json");
    let document = |text: &str| {
        format!(
            "{{\"openapi\": \"3.1.0\", \"paths\": {{\"/a\": {{\"get\": {{\"responses\": {{\"200\": {{\"content\": {{\"text/plain\": {{\"example\": \"{text}\"}}}}}}}}}}}}}}}}"
        )
    };
    std::fs::write(&path, document("one")).unwrap();
    let shared = SharedMock::of_file(&path, &Notices::default()).unwrap();
    let served = Served::start(folder, shared);
    assert_eq!(served.get("/a").text(), "one");
    std::fs::write(&path, document("another")).unwrap();
    eventually(|| served.get("/a").text() == "another");
}
