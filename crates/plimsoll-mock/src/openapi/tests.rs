use proptest::prelude::*;

use super::*;
use crate::request::KeptRequest;

const PETSTORE: &str = include_str!("../../../../examples/openapi/petstore.yaml");

fn petstore(options: OpenApiOptions) -> OpenApi {
    let made = OpenApi::new(Path::new("petstore.yaml"), PETSTORE, "/", options);
    let (openapi, left_out) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(left_out.is_empty(), "{left_out:?}");
    openapi
}

const USUAL: OpenApiOptions = OpenApiOptions {
    validates: true,
    is_dynamic: false,
    seed: 7,
};

fn ask(
    openapi: &OpenApi,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> (u16, Value, StoredResponse) {
    let mut request = KeptRequest::made(method, target);
    let fields = fields.iter();
    request.fields = fields
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    request.body = body.as_bytes().to_vec().into();
    let response = openapi.answer(&request.view()).unwrap();
    let value = serde_json::from_slice(&response.content).unwrap_or_default();
    (response.status.as_u16(), value, response)
}

const KEY: (&str, &str) = ("api-key", "k");
const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn what_is_allowed_is_answered_by_examples_and_schemas() {
    let openapi = petstore(USUAL);
    assert_eq!(openapi.operations(), 15);
    let (status, value, response) = ask(&openapi, "GET", "/pets?limit=5&tags=a&tags=b", &[], "");
    assert_eq!((status, value.as_array().map(Vec::len)), (200, Some(2)));
    assert!(
        response
            .fields
            .iter()
            .any(|(name, value)| name == "x-next" && value == "/pets?page=2")
    );
    for target in ["/v1/pets/9", "/pets/9"] {
        let (status, value, _) = ask(&openapi, "GET", target, &[], "");
        assert_eq!(
            (status, &value["id"], &value["name"]),
            (200, &json!(7), &json!("Rex"))
        );
    }
    let (status, ..) = ask(
        &openapi,
        "GET",
        "/pets/findByStatus?status=sold,pending",
        &[],
        "",
    );
    assert_eq!(status, 200);
    let (status, _, response) = ask(&openapi, "DELETE", "/pets/1", &[KEY], "");
    assert_eq!((status, response.content.len()), (204, 0));
    let (status, ..) = ask(&openapi, "HEAD", "/pets", &[], "");
    assert_eq!(status, 200);
    let form = [KEY, ("content-type", "application/x-www-form-urlencoded")];
    let (status, ..) = ask(
        &openapi,
        "POST",
        "/store/orders",
        &form,
        "petId=1&quantity=2&complete=true",
    );
    assert_eq!(status, 201);
    let bearer = ("authorization", "Bearer x");
    let (status, ..) = ask(
        &openapi,
        "POST",
        "/pets",
        &[bearer, JSON],
        "{\"name\": \"A\", \"born\": null, \"friends\": [{\"name\": \"B\"}]}",
    );
    assert_eq!(status, 201);
    let request = KeptRequest::made("GET", "/nothing");
    assert!(openapi.answer(&request.view()).is_none());
}

#[test]
fn clients_say_which_answer_they_would_like() {
    let openapi = petstore(USUAL);
    let with = |fields: &[(&str, &str)], target: &str| ask(&openapi, "GET", target, fields, "");
    let (status, value, _) = with(&[("Prefer", "code=404")], "/pets/1");
    assert_eq!((status, &value["code"]), (404, &json!(404)));
    let (status, value, _) = with(&[("prefer", "example=none")], "/pets");
    assert_eq!((status, value), (200, json!([])));
    assert_eq!(with(&[("prefer", "example=other")], "/pets").0, 404);
    assert_eq!(with(&[("prefer", "code=418")], "/pets/1").0, 404);
    assert_eq!(with(&[], "/pets/1?__code=404").0, 404);
    assert_eq!(with(&[], "/pets?__example=none").1, json!([]));
    assert_eq!(with(&[("prefer", "code=503")], "/pets").0, 503);
    let (_, one, _) = with(&[("prefer", "dynamic=true")], "/pets/1");
    let (_, again, _) = with(&[("prefer", "dynamic=true")], "/pets/1");
    let (_, other, _) = with(&[("prefer", "dynamic=true")], "/pets/2");
    assert_eq!(one, again);
    assert_ne!(one, other);
    let (status, _, response) = with(&[("accept", "text/plain")], "/pets/1");
    assert_eq!(
        (status, &response.content[..]),
        (200, &b"Rex, available"[..])
    );
    assert_eq!(
        with(
            &[("accept", "text/*;q=0.5, application/json;q=0.4")],
            "/pets/1"
        )
        .2
        .content,
        "Rex, available"
    );
    assert_eq!(with(&[("accept", "image/png")], "/pets/1").0, 406);
}

#[test]
fn what_is_not_allowed_is_a_problem_with_its_places() {
    let openapi = petstore(USUAL);
    for (method, target, fields, body, status, place) in [
        ("GET", "/pets?limit=0", &[][..], "", 422, "query limit "),
        ("GET", "/pets?limit=x", &[], "", 422, "query limit "),
        ("GET", "/pets?status=lost", &[], "", 422, "query status "),
        (
            "GET",
            "/pets/findByStatus?status=sold,lost",
            &[],
            "",
            422,
            "query status /1",
        ),
        ("GET", "/pets/findByStatus", &[], "", 422, "query status "),
        ("GET", "/pets/x", &[], "", 422, "path petId "),
        (
            "POST",
            "/pets",
            &[KEY, JSON],
            "{\"name\": \"\", \"weight\": 0}",
            422,
            "body  /name, body  /weight",
        ),
        ("POST", "/pets", &[KEY, JSON], "{", 422, "body  "),
        ("POST", "/pets", &[KEY], "", 422, "body  "),
        (
            "POST",
            "/pets",
            &[KEY, ("content-type", "text/plain")],
            "x",
            415,
            "",
        ),
        ("POST", "/pets", &[JSON], "{\"name\": \"A\"}", 401, ""),
        (
            "POST",
            "/pets",
            &[("authorization", "Basic x"), JSON],
            "{\"name\": \"A\"}",
            401,
            "",
        ),
        (
            "POST",
            "/store/orders",
            &[KEY, JSON],
            "{\"petId\": 1, \"quantity\": 11, \"x\": 1}",
            400,
            "body  , body  /quantity",
        ),
        ("GET", "/store/orders/7", &[KEY], "", 422, "path orderId "),
        (
            "POST",
            "/users",
            &[KEY, JSON],
            "{\"username\": \"ab\", \"email\": \"x\"}",
            422,
            "body  /email",
        ),
        ("PATCH", "/pets", &[], "", 405, ""),
    ] {
        let (found, value, response) = ask(&openapi, method, target, fields, body);
        assert_eq!(found, status, "{method} {target} {value}");
        let own = response
            .fields
            .iter()
            .find(|(name, _)| name == "x-plimsoll-problem");
        if let Some((_, problem)) = own {
            // The document has content for that status.
            assert_eq!(value["code"], json!(404), "{value}");
            let first: Vec<&str> = place
                .split(',')
                .next()
                .unwrap_or_default()
                .split(' ')
                .collect();
            let problem = problem.to_str().unwrap();
            assert!(
                first.iter().all(|word| problem.contains(word)),
                "{place}: {problem}"
            );
            continue;
        }
        assert_eq!(
            value["status"].as_u64(),
            Some(u64::from(status)),
            "{method} {target} {value}"
        );
        let is_problem = |(name, value): &(HeaderName, HeaderValue)| {
            name == CONTENT_TYPE && value == "application/problem+json"
        };
        assert!(response.fields.iter().any(is_problem));
        let errors = value["errors"].as_array().cloned().unwrap_or_default();
        let mut places: Vec<String> = errors
            .iter()
            .map(|it| {
                let text = |key: &str| it[key].as_str().unwrap_or_default();
                format!("{} {} {}", text("in"), text("name"), text("pointer"))
            })
            .collect();
        places.sort();
        assert_eq!(places.join(", "), place, "{method} {target} {value}");
    }
    let lenient = petstore(OpenApiOptions {
        validates: false,
        ..USUAL
    });
    assert_eq!(ask(&lenient, "POST", "/pets", &[], "x").0, 201);
}

const FORMS: &str = r#"{
  "openapi": "3.0.3", "info": {"title": "t", "version": "1"},
  "paths": {
    "/form": {"post": {"requestBody": {"content": {"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "integer"}},
          "csv": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "home": {"type": "object", "properties": {"no": {"type": "integer"}}}}},
        "encoding": {"csv": {"style": "form", "explode": false}, "home": {"style": "deepObject"}}}}},
      "responses": {"200": {"description": ""}}}},
    "/parts": {"post": {"requestBody": {"content": {"multipart/form-data": {
        "schema": {"type": "object", "required": ["meta", "file"], "properties": {"meta": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
          "ids": {"type": "array", "items": {"type": "integer"}}, "file": {"type": "string", "format": "binary"}}},
        "encoding": {"file": {"contentType": "image/png, image/jpeg"}}}}},
      "responses": {"200": {"description": ""}}}},
    "/bare": {"post": {"responses": {"200": {"description": ""}}}},
    "/own": {"get": {"security": [{"k": []}, {"b": []}], "parameters": [{"name": "n", "in": "query", "required": true, "schema": {"type": "integer"}}],
      "responses": {"200": {"description": ""}, "401": {"description": "", "content": {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}},
        "422": {"description": "", "content": {"application/json": {"examples": {"a": {"value": "a"}, "b": {"value": "b"}}}}}}}},
    "/errors": {"get": {"responses": {"5XX": {"description": ""}, "404": {"description": ""}}}}
  },
  "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "key"}, "b": {"type": "http", "scheme": "basic"}}}
}"#;

#[test]
fn forms_are_validated_field_by_field() {
    let made = OpenApi::new(Path::new("forms.json"), FORMS, "/", USUAL);
    let (openapi, left_out) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(left_out.is_empty(), "{left_out:?}");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (body, expected) in [
        ("id=1", ""),
        ("id=x", "/id"),
        ("tags=1", ""),
        ("id=1&tags=1&tags=2&csv=a,b&home[no]=3", ""),
        ("id=1&tags=1&tags=x", "/tags/1"),
        ("id=1&csv=a,c", "/csv/1"),
        ("id=1&home[no]=x", "/home/no"),
        ("id=1&id=2", ""),
        ("id=1&other=x&other=y", ""),
    ] {
        let (status, value, _) = ask(&openapi, "POST", "/form", &form, body);
        let pointer = value["errors"][0]["pointer"].as_str();
        let is_missing = body == "tags=1";
        assert_eq!(
            status == 200,
            expected.is_empty() && !is_missing,
            "{body} {value}"
        );
        assert_eq!(pointer.unwrap_or_default(), expected, "{body} {value}");
    }
    let parts = [("content-type", "multipart/form-data; boundary=b")];
    let part = |head: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    };
    let meta = part("name=meta", "{\"n\": 1}");
    let file = part(
        "name=file; filename=a.png\r\nContent-Type: image/png",
        "\u{1}PNG",
    );
    for (parts_of, expected) in [
        (meta.clone() + &file, Some("")),
        (meta.clone(), Some("")),
        (
            meta.clone() + &file.replace("image/png", "text/html"),
            Some("/file"),
        ),
        (meta.replace("1}", "\"x\"}") + &file, Some("/meta/n")),
        (
            meta.replace("name=meta", "name=meta\r\ncontent-type: application/json")
                .replace("1}", "")
                + &file,
            Some("/meta"),
        ),
        (
            meta.clone() + &file + &part("name=ids", "1") + &part("name=ids", "2"),
            None,
        ),
        (meta.clone() + &file + &part("name=ids", "1"), None),
        (meta + &file + &part("name=ids", "x"), Some("/ids/0")),
    ] {
        let body = parts_of.clone() + "--b--\r\n";
        let (status, value, _) = ask(&openapi, "POST", "/parts", &parts, &body);
        let has_all = parts_of.contains("name=file") && parts_of.contains("name=meta");
        let is_right = has_all && matches!(expected, None | Some(""));
        assert_eq!(
            status,
            if is_right { 200 } else { 422 },
            "{parts_of} {value}"
        );
        let pointer = value["errors"][0]["pointer"].as_str().unwrap_or_default();
        assert_eq!(pointer, expected.unwrap_or_default(), "{parts_of} {value}");
    }
    let (status, value, _) = ask(&openapi, "POST", "/parts", &parts, "--b");
    assert_eq!(status, 422, "{value}");
    assert_eq!(ask(&openapi, "POST", "/bare", &[], "").0, 200);
    assert_eq!(ask(&openapi, "POST", "/bare", &[], "x").0, 415);
}

#[test]
fn refusals_have_the_content_that_the_document_gives_them() {
    let (openapi, _) = OpenApi::new(Path::new("forms.json"), FORMS, "/", USUAL).unwrap();
    let get = |target: &str, fields: &[(&str, &str)]| ask(&openapi, "GET", target, fields, "");
    let (status, value, response) = get("/own?n=1", &[]);
    assert_eq!((status, value), (401, json!({"error": "string"})));
    let field = |response: &StoredResponse, name: &str| {
        let found = response.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    };
    let challenge = field(&response, "www-authenticate");
    assert_eq!(challenge.as_deref(), Some("Basic realm=\"*\""));
    let (status, value, response) = get("/own?key=k&n=x", &[]);
    assert_eq!((status, value), (422, json!("a")));
    let problem = field(&response, "x-plimsoll-problem").unwrap();
    assert!(problem.contains("query n"), "{problem}");
    let (status, value, _) = get("/own?key=k&n=x", &[("prefer", "example=b")]);
    assert_eq!((status, value), (422, json!("b")));
    assert_eq!(get("/own?key=k&n=x", &[("prefer", "example=c")]).0, 422);
    let both = [("prefer", "code=422, example=c")];
    assert_eq!(get("/own?key=k&n=x", &both).0, 404);
    // Credentials of Basic are a name and a password.
    assert_eq!(get("/own?n=1", &[("authorization", "Basic YTpi")]).0, 200);
    assert_eq!(get("/own?n=1", &[("authorization", "Basic abc123")]).0, 401);
    // Without a success the first response is the one.
    assert_eq!(get("/errors", &[]).0, 500);
}

proptest! {
    #[test]
    fn values_made_by_chance_are_allowed_as_requests(seed in 0u64..1 << 40) {
        let openapi = petstore(OpenApiOptions { is_dynamic: true, seed, ..USUAL });
        for (get, post) in [("/pets/1", "/pets"), ("/users/ann", "/users")] {
            let (status, value, _) = ask(&openapi, "GET", get, &[KEY], "");
            prop_assert_eq!(status, 200);
            let (status, problem, _) = ask(&openapi, "POST", post, &[KEY, JSON], &value.to_string());
            prop_assert_eq!(status, 201, "{} of {}", problem, value);
        }
    }
}

const PATHS: &str = r##"{
  "openapi": "3.0.3", "info": {"title": "t", "version": "1"},
  "paths": {
    "/p/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[a-z]+/[a-z]+$"}}],
      "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "string", "pattern": "^(0|[1-9][0-9]*)$"}}}}}}},
    "/o/{x}/{a}": {"delete": {"parameters": [{"name": "x", "in": "path", "required": true, "schema": {"type": "string"}}, {"name": "a", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"204": {"description": ""}}}},
    "/o/{x}/{b}": {"get": {"parameters": [{"name": "x", "in": "path", "required": true, "schema": {"type": "string"}}, {"name": "b", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"200": {"description": ""}}}},
    "/exploded": {"get": {"parameters": [{"name": "f", "in": "query", "required": true, "schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "t": {"type": "string"}}}}], "responses": {"200": {"description": ""}}}},
    "/commas": {"get": {"parameters": [{"name": "f", "in": "query", "explode": false, "required": true, "schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}], "responses": {"200": {"description": ""}}}},
    "/chain": {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/D"}}}}}}}
  },
  "components": {"schemas": {
    "A": {"properties": {"d": {"$ref": "#/components/schemas/B"}}, "type": "object"},
    "B": {"allOf": [{"$ref": "#/components/schemas/C"}, {"description": "more"}]},
    "C": {"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}]},
    "D": {"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "object", "required": ["d"],
      "properties": {"d": {"allOf": [{"$ref": "#/components/schemas/B"}]}}}}}}}}}
  }}
}"##;

#[test]
fn paths_and_objects_in_parameters_are_understood_as_documents_write_them() {
    let made = OpenApi::new(Path::new("paths.json"), PATHS, "/", USUAL);
    let (openapi, left_out) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(left_out.is_empty(), "{left_out:?}");
    let status = |method, target| ask(&openapi, method, target, &[], "").0;
    for (method, target, expected) in [
        ("GET", "/p/group%2Fproj", 200),
        ("GET", "/p/group%2fproj", 200),
        ("GET", "/p/group", 422),
        ("GET", "/o/1/2", 200),
        ("DELETE", "/o/1/2", 204),
        ("PUT", "/o/1/2", 405),
        ("GET", "/exploded?n=1&t=x", 200),
        ("GET", "/exploded?n=x", 422),
        ("GET", "/exploded", 422),
        ("GET", "/commas?f=n,1", 200),
        ("GET", "/commas?f=n,x", 422),
    ] {
        assert_eq!(status(method, target), expected, "{method} {target}");
    }
    assert_eq!(ask(&openapi, "GET", "/p/a%2Fb", &[], "").1, "0");
    // A schema that requires nothing is an object all the same, not a text.
    let (_, chain, _) = ask(&openapi, "GET", "/chain", &[], "");
    assert!(chain["a"]["b"]["c"]["d"].is_object(), "{chain}");
}

#[test]
fn documents_in_several_files_answer_and_links_out_of_their_folder_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let api = folder.path().join("api");
    std::fs::create_dir_all(api.join("resources")).unwrap();
    let root = "openapi: 3.0.3\npaths:\n  /pets: {get: {$ref: resources/pets.yml}}\n";
    let pets = "responses: {200: {description: ok, content: {application/json: {schema: {$ref: 'pet.json'}}}}}";
    let file = api.join("api.yml");
    std::fs::write(&file, root).unwrap();
    std::fs::write(api.join("resources/pets.yml"), pets).unwrap();
    std::fs::write(api.join("resources/pet.json"), r#"{"example": "Rex"}"#).unwrap();
    let (openapi, left_out) = OpenApi::new(&file, root, "/", USUAL).unwrap();
    assert_eq!(left_out, []);
    let (status, value, _) = ask(&openapi, "GET", "/pets", &[], "");
    assert_eq!((status, value), (200, json!("Rex")));
    let files: Vec<_> = openapi.files().collect();
    assert_eq!(
        files,
        [
            file.clone(),
            api.join("resources/pets.yml"),
            api.join("resources/pet.json")
        ]
    );

    let secret = folder.path().join("secret.json");
    std::fs::write(&secret, "{}").unwrap();
    std::fs::remove_file(api.join("resources/pet.json")).unwrap();
    std::os::unix::fs::symlink(&secret, api.join("resources/pet.json")).unwrap();
    let remarks = OpenApi::new(&file, root, "/", USUAL).unwrap_err();
    assert!(
        remarks[0].message.contains("leads out of the folder"),
        "{remarks:?}"
    );
}

#[test]
fn xml_is_made_by_the_schema_for_clients_that_accept_it() {
    let text = "openapi: 3.0.3\npaths:\n  /pet:\n    get:\n      responses:\n        200:\n          description: ok\n          content:\n\
                \x20           application/json: {schema: {$ref: '#/components/schemas/Pet'}}\n\
                \x20           application/xml: {schema: {$ref: '#/components/schemas/Pet'}}\n  \
                /only: {get: {responses: {200: {description: ok, content: {text/xml: {example: {a: 1}}}}}}}\n  \
                /written: {get: {responses: {200: {description: ok, content: {application/pet+xml: {example: '<pet/>'}}}}}}\n\
                components: {schemas: {Pet: {type: object, properties: {id: {type: integer, xml: {attribute: true}}, name: {type: string}}}}}\n";
    let (openapi, _) = OpenApi::new(Path::new("pets.yml"), text, "/", USUAL).unwrap();
    let content = |path, fields: &[(&str, &str)]| {
        let (status, _, response) = ask(&openapi, "GET", path, fields, "");
        assert_eq!(status, 200);
        String::from_utf8(response.content.to_vec()).unwrap()
    };
    let declaration = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    assert_eq!(content("/pet", &[]), r#"{"id":1,"name":"string"}"#);
    assert_eq!(
        content("/pet", &[("accept", "application/xml")]),
        format!(r#"{declaration}<Pet id="1"><name>string</name></Pet>"#)
    );
    assert_eq!(
        content("/only", &[]),
        format!("{declaration}<root><a>1</a></root>")
    );
    assert_eq!(content("/written", &[]), "<pet/>");
}

#[test]
fn challenges_have_the_parts_that_clients_need() {
    for (scheme, challenge) in [
        ("basic", "Basic realm=\"*\""),
        ("Digest", "Digest realm=\"*\", nonce=\"abc123\""),
        ("bearer", "bearer"),
    ] {
        let text = format!(
            "openapi: 3.0.3\npaths: {{/a: {{get: {{security: [{{k: []}}], responses: {{200: {{description: ok}}}}}}}}}}\n\
             components: {{securitySchemes: {{k: {{type: http, scheme: {scheme}}}}}}}\n"
        );
        let (openapi, _) = OpenApi::new(Path::new("a.yml"), &text, "/", USUAL).unwrap();
        let (status, _, response) = ask(&openapi, "GET", "/a", &[], "");
        let found = response
            .fields
            .iter()
            .find(|(name, _)| *name == WWW_AUTHENTICATE);
        assert_eq!(
            (status, found.unwrap().1.to_str().unwrap()),
            (401, challenge)
        );
    }
}

#[test]
fn contents_are_judged_by_their_own_schemas() {
    let text = r#"{"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {
      "200": {"content": {"application/json": {"schema": {"type": "object", "required": ["n", "secret"], "properties": {"n": {"type": "integer"}, "secret": {"type": "string", "writeOnly": true}}}}}},
      "201": {"content": {"application/json": {"schema": {"type": "integer"}, "example": "x"}, "text/plain": {"schema": {"type": "integer"}, "example": "x"}}},
      "202": {"content": {"application/json": {"schema": {"type": "object", "properties": {"n": {"type": "integer", "example": "x"}}}}}},
      "203": {"content": {"application/json": {"schema": {"type": "string", "pattern": "(?=a)"}}}},
      "206": {"content": {"application/json": {"schema": {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}}}}}}}}}"#;
    let (openapi, _) = OpenApi::new(Path::new("a.json"), text, "/", USUAL).unwrap();
    let fit = openapi.fit();
    assert_eq!(fit.judged, 5);
    let shown: Vec<_> = fit
        .unfit
        .iter()
        .map(|it| (it.response.as_str(), it.is_documents))
        .collect();
    assert_eq!(
        shown,
        [
            ("GET /a 201 application/json", true),
            ("GET /a 202 application/json", true),
            ("GET /a 203 application/json", false),
            ("GET /a 206 application/json", true),
        ],
        "{fit:?}"
    );
}

const SHOP: &str = r##"{
  "openapi": "3.1.0", "info": {"title": "t", "version": "1"},
  "paths": {
    "/charges": {
      "get": {"parameters": [
          {"name": "expand", "in": "query", "style": "deepObject", "explode": true, "schema": {"type": "array", "items": {"type": "string", "maxLength": 5}}},
          {"name": "created", "in": "query", "style": "deepObject", "explode": true, "schema": {"anyOf": [
            {"type": "object", "properties": {"gt": {"type": "integer"}}, "additionalProperties": false}, {"type": "integer"}]}}],
        "responses": {"200": {"description": ""}, "default": {"description": "", "content": {"application/json": {"schema": {
          "type": "object", "required": ["error"], "properties": {"error": {"type": "string", "const": "bad"}}}}}}}},
      "post": {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "additionalProperties": false, "properties": {
          "items": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"price": {"type": "string"}, "quantity": {"type": "integer"}}}},
          "metadata": {"type": "object", "additionalProperties": {"type": "string"}}, "expand": {"type": "array", "items": {"type": "string"}},
          "ship": {"type": "object", "properties": {"to": {"type": "object", "properties": {"zip": {"type": "integer"}}}}}}},
          "encoding": {"items": {"style": "deepObject"}, "metadata": {"style": "deepObject"}, "ship": {"style": "deepObject"}}}}},
        "responses": {"default": {"description": "the charge"}}}},
    "/attach": {"get": {"responses": {"101": {"description": ""}, "400": {"description": "", "content": {"application/json": {"example": {}}}}}}},
    "/tree": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}},
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "string", "format": "decimal"}}}}}}}
  },
  "components": {"schemas": {"Tree": {"$id": "https://example.org/tree", "$recursiveAnchor": true, "type": "object",
    "properties": {"n": {"type": "integer"}, "kids": {"type": "array", "items": {"$recursiveRef": "#"}}}}}}
}"##;

#[test]
fn brackets_are_validated_at_every_depth() {
    let made = OpenApi::new(Path::new("shop.json"), SHOP, "/", USUAL);
    let (openapi, left_out) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(left_out.is_empty(), "{left_out:?}");
    for (target, expected) in [
        ("/charges?expand[]=a&expand[]=b", 200),
        ("/charges?expand[0]=a", 200),
        ("/charges?expand=a", 200),
        ("/charges?expand[]=toolong", 422),
        ("/charges?created[gt]=5", 200),
        ("/charges?created=5", 200),
        ("/charges?created[gt]=x", 422),
        ("/charges?created[other]=5", 422),
    ] {
        let (status, value, _) = ask(&openapi, "GET", target, &[], "");
        assert_eq!(status, expected, "{target} {value}");
        // The rejection is the document's own.
        assert_eq!(value["error"] == "bad", expected == 422, "{target} {value}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (body, expected) in [
        (
            "items[0][price]=p&items[0][quantity]=2&items[1][price]=q",
            200,
        ),
        ("items[][price]=p&items[][quantity]=2&items[][price]=q", 200),
        ("items[0][quantity]=x", 422),
        ("items[0][other]=x", 422),
        ("metadata[order]=6735&expand[]=x", 200),
        ("expand[0]=x", 200),
        ("metadata[a][b]=zz", 422),
        ("ship[to][zip]=1", 200),
        ("ship[to][zip]=x", 422),
        ("other[a]=1", 422),
    ] {
        let (status, value, _) = ask(&openapi, "POST", "/charges", &form, body);
        assert_eq!(status, expected, "{body} {value}");
        // Here `default` is the success.
        assert_eq!(
            value.get("errors").is_some(),
            expected == 422,
            "{body} {value}"
        );
    }
}

#[test]
fn a_recursive_schema_is_validated_and_a_change_of_protocols_is_not_made() {
    let made = OpenApi::new(Path::new("shop.json"), SHOP, "/", USUAL);
    let (openapi, _) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(ask(&openapi, "GET", "/attach", &[], "").0, 501);
    let (status, value, _) = ask(
        &openapi,
        "POST",
        "/tree",
        &[JSON],
        r#"{"kids":[{"n":1,"kids":[]}]}"#,
    );
    assert_eq!((status, value), (200, json!("1.5")));
    let wrong = r#"{"kids":[{"kids":[{"n":"x"}]}]}"#;
    let (status, value, _) = ask(&openapi, "POST", "/tree", &[JSON], wrong);
    assert_eq!(
        (status, &value["errors"][0]["pointer"]),
        (422, &json!("/kids/0/kids/0/n"))
    );
}

#[test]
fn booleans_and_dates_are_read_as_clients_write_them() {
    const DOCUMENT: &str = r##"{
      "openapi": "3.0.3", "info": {"title": "t", "version": "1"},
      "paths": {"/a/{on}": {"post": {
        "parameters": [
          {"name": "on", "in": "path", "required": true, "schema": {"type": "boolean"}},
          {"name": "all", "in": "query", "schema": {"type": "boolean"}},
          {"name": "since", "in": "query", "schema": {"type": "string", "format": "date-time"}},
          {"name": "x-on", "in": "header", "schema": {"type": "boolean"}}],
        "requestBody": {"content": {
          "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/B"}},
          "application/json": {"schema": {"$ref": "#/components/schemas/B"}}}},
        "responses": {"200": {"description": ""}}}}},
      "components": {"schemas": {"B": {"type": "object", "properties": {
        "on": {"type": "boolean"}, "at": {"type": "string", "format": "date-time"}}}}}
    }"##;
    let made = OpenApi::new(Path::new("a.json"), DOCUMENT, "/", USUAL);
    let (openapi, _) = made.unwrap_or_else(|errors| panic!("{errors:?}"));
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (target, field, body, expected) in [
        ("/a/true", ("x-on", "false"), "", ""),
        ("/a/True?all=0", ("x-on", "1"), "", ""),
        ("/a/2", ("x-on", "1"), "", "on"),
        ("/a/1?all=yes", ("x-on", "1"), "", "all"),
        ("/a/1?all=", ("x-on", "1"), "", "all"),
        ("/a/1", ("x-on", "no"), "", "x-on"),
        ("/a/1?since=2026-01-02", ("x-on", "1"), "", ""),
        ("/a/1?since=2026-01-02T03:04:05Z", ("x-on", "1"), "", ""),
        ("/a/1?since=yesterday", ("x-on", "1"), "", "since"),
        ("/a/1", form, "on=False&at=2026-01-02", ""),
        ("/a/1", form, "on=maybe", "/on"),
        ("/a/1", form, "at=now", "/at"),
        // JSON has types of its own.
        (
            "/a/1",
            JSON,
            "{\"on\": true, \"at\": \"2026-01-02T03:04:05Z\"}",
            "",
        ),
        ("/a/1", JSON, "{\"on\": 1}", "/on"),
        ("/a/1", JSON, "{\"on\": \"true\"}", "/on"),
        ("/a/1", JSON, "{\"at\": \"2026-01-02\"}", "/at"),
    ] {
        let (status, value, _) = ask(&openapi, "POST", target, &[field], body);
        let error = &value["errors"][0];
        let named = error["name"].as_str().or(error["pointer"].as_str());
        let found = named.unwrap_or_default();
        assert_eq!(found, expected, "{target} {field:?} {body} {value}");
        assert_eq!(status == 200, expected.is_empty(), "{target} {body}");
    }
}
