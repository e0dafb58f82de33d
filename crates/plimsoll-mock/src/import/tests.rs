use super::*;
use crate::config::MockFile;
use crate::request::KeptRequest;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn compiled(imported: &Imported) -> MockFile {
    imported
        .compile(Path::new("import"), &States::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Imports a text.
pub(super) fn imported(text: &str) -> Imported {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, text).unwrap();
    read(&path).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The status that a request is first answered with by rules; 0 if none answers.
pub(super) fn answered(imported: &Imported, request: &KeptRequest) -> u16 {
    let file = compiled(imported);
    let Some((set, rule)) = file.plan.find(&request.view()) else {
        return 0;
    };
    let reply = &file.plan.sets[set].rules()[rule].replies[0];
    reply.status.map_or(200, |status| status.as_u16())
}

/// The id of the rule that answers.
fn answers(file: &MockFile, request: &KeptRequest) -> Option<String> {
    let (set, rule) = file.plan.find(&request.view())?;
    file.plan.sets[set].rules()[rule].id.clone()
}

fn request(method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> KeptRequest {
    let mut request = KeptRequest::made(method, target);
    let fields = fields.iter();
    request.fields = fields
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    request.body = body.as_bytes().to_vec().into();
    request
}

#[test]
fn a_folder_of_wiremock_becomes_rules() {
    let imported = read(&example("wiremock")).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!((imported.kind, imported.rules), (ForeignKind::WireMock, 8));
    let reported: Vec<String> = imported.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].ends_with(
        "mappings/products.json, mappings[6].request.customMatcher: this condition is not known here, so the mapping is left out"
    ), "{reported:?}");
    let file = compiled(&imported);
    let json = [("accept", "application/json")];
    for (method, target, fields, expected) in [
        ("GET", "/products", &[][..], Some("all products")),
        ("POST", "/products", &[], None),
        ("GET", "/products/7", &[], Some("one product")),
        ("GET", "/products/07", &[], Some("no such product")),
        ("GET", "/products/7/x", &[], None),
        ("GET", "/search?q=ab", &json, Some("search")),
        ("GET", "/search?q=ab&page=1", &json, Some("search")),
        ("GET", "/search?q=ab&page=2", &json, None),
        ("GET", "/search?q=abC", &json, None),
        ("GET", "/search?q=ab", &[], None),
    ] {
        let request = request(method, target, fields, "");
        assert_eq!(
            answers(&file, &request).as_deref(),
            expected,
            "{method} {target}"
        );
    }
    let order = "{\"total\": 11, \"items\": [{\"id\": 2, \"n\": 1}, {\"id\": 1}]}";
    let authorized = [("Authorization", "Basic YW5uOnNlY3JldA==")];
    for (target, fields, body, expected) in [
        (
            "/orders?confirm=true",
            &authorized[..],
            order,
            Some("order"),
        ),
        ("/orders?confirm=false", &authorized, order, None),
        ("/orders?confirm=true", &[], order, None),
        (
            "/orders?confirm=true",
            &authorized,
            "{\"total\": 10, \"items\": [{\"id\": 2}, {\"id\": 1}]}",
            None,
        ),
    ] {
        let request = request("POST", target, fields, body);
        assert_eq!(
            answers(&file, &request).as_deref(),
            expected,
            "{target} {body}"
        );
    }
    let form = [("content-type", "multipart/form-data; boundary=b")];
    let part = |name: &str| {
        let head = format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"");
        format!("{head}\r\n\r\nx\r\n--b--")
    };
    for (name, expected) in [("file", Some("upload")), ("files", None)] {
        let request = request("POST", "/upload", &form, &part(name));
        assert_eq!(answers(&file, &request).as_deref(), expected, "{name}");
    }
    assert!(file.plan.folder.is_some());
}

#[test]
fn what_is_written_is_what_answers() {
    let imported = read(&example("wiremock")).unwrap();
    let directory = imported.directory().unwrap().to_owned();
    let text = imported.text(Some(&directory));
    let set = config::parse(&text, Path::new("/nonexistent"))
        .unwrap_or_else(|problems| panic!("{problems:?} in {text}"));
    assert_eq!(set.rules().len(), imported.rules);
    assert!(text.contains("respond_dir = "), "{text}");
    assert!(
        text.contains("when.request.url_path = \"/products\"\n"),
        "{text}"
    );
}

#[test]
fn what_is_known_by_no_reader_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = folder.path().join("file");
        fs::write(&path, text).unwrap();
        path
    };
    for (text, expected) in [
        ("{\"a\": 1}", "is nothing that is known here"),
        ("{", "is not JSON"),
        ("text", "is nothing that is known here"),
    ] {
        let reported = read(&file(text)).map(|_| ()).unwrap_err();
        assert!(
            reported[0].to_string().contains(expected),
            "{text}: {reported:?}"
        );
    }
    for text in ["swagger: '2.0'\n", "\"openapi\": 3.0.3\n"] {
        let read = read(&file(text)).unwrap();
        assert_eq!(read.kind, ForeignKind::OpenApi, "{text}");
    }
    let reported = read(folder.path()).map(|_| ()).unwrap_err();
    assert!(
        reported[0]
            .to_string()
            .contains("without a folder `mappings`")
    );
    assert!(read(Path::new("/nonexistent/x")).is_err());
    // Opened as if it were a file of rules, it is reported as well.
    let problems = config::open(&file("{\"a\": 1}")).map(|_| ()).unwrap_err();
    assert!(problems[0].to_string().contains("is nothing that is known"));
}

#[test]
fn an_archive_becomes_rules_without_its_secrets() {
    let imported = imported(
        r#"{"log": {"entries": [
        {"request": {"method": "GET", "url": "https://a.example/x?token=abc&page=1"}, "response": {"status": 200,
          "headers": [{"name": "Set-Cookie", "value": "sid=abc; Path=/"}, {"name": "ETag", "value": "1"}],
          "content": {"mimeType": "application/json", "text": "{\"access_token\": \"abc\", \"n\": 1}"}}},
        {"request": {"method": "GET", "url": "https://a.example/x"}, "response": {"status": 304, "content": {"mimeType": "text/css", "text": "a{}"}}},
        {"request": {"method": "POST", "url": "https://a.example/x"}, "response": {"status": 503, "content": {}}},
        {"request": {"method": "POST", "url": "https://a.example/x"}, "response": {"status": 303, "headers": [{"name": "location", "value": "https://a.example/y"}], "content": {}}},
        {"request": {"method": "GET", "url": "https://a.example/i.png"}, "response": {"status": 200, "content": {"mimeType": "image/png", "text": "AP8=", "encoding": "base64"}}}
    ]}}"#,
    );
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    let text = imported.text(None);
    assert!(!text.contains("abc"), "{text}");
    for expected in [
        "when.request.query.token = { op = \"exists\" }\n",
        "respond.headers.set-cookie = \"sid=REDACTED; Path=/\"\n",
        "respond.json = '{\"access_token\": \"REDACTED\", \"n\": 1}'\n",
        "respond.sequence = [{ status = 503 }, { status = 303, headers.location = \"/y\" }]\n",
        "respond.base64 = \"AP8=\"\n",
        "respond.headers.content-type = \"text/css\"\n",
    ] {
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
    for (method, target, expected) in [
        ("GET", "/x?page=1&token=other", 200),
        ("GET", "/x", 200),
        ("POST", "/x", 503),
        ("PUT", "/x", 0),
    ] {
        let request = request(method, target, &[], "");
        assert_eq!(answered(&imported, &request), expected, "{method} {target}");
    }
}

#[test]
fn a_file_of_json_server_becomes_collections() {
    let text = r#"{"posts": [{"id": 1, "title": "a"}], "comments": [], "profile": {"name": "x"}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.json");
    fs::write(&path, text).unwrap();
    let imported = read(&path).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(
        (imported.kind, imported.rules),
        (ForeignKind::JsonServer, 3)
    );
    assert_eq!(
        imported.text(None),
        "[[collections]]\npath = \"/\"\nfile = \"db.json\"\n"
    );
    let file = compiled(&imported);
    for (target, expected) in [
        ("/posts/1", 200),
        ("/posts", 200),
        ("/profile", 200),
        ("/posts/2", 404),
    ] {
        let request = request("GET", target, &[], "");
        let mut collections = file.plan.collections.iter();
        let response = collections.find_map(|it| it.answer(&request.view()));
        assert_eq!(
            response.map(|response| response.status.as_u16()),
            Some(expected),
            "{target}"
        );
    }
}
