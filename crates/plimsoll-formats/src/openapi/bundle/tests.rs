use serde_json::json;

use super::super::parse_api;
use super::*;
use crate::ReadError;

const FILES: [(&str, &str); 6] = [
    (
        "resources/pet.yml",
        "parameters: [{$ref: 'shared.yml#/id'}]\n\
         responses:\n  200:\n    description: ok\n    content:\n      application/json: {schema: {$ref: '../schemas/Pet.json'}}\n",
    ),
    (
        "resources/shared.yml",
        "id: {name: id, in: path, required: true, schema: {$ref: '../api.yml#/components/schemas/Id'}}\n",
    ),
    (
        "schemas/Pet.json",
        r##"{"type": "object", "required": ["id", "tag"], "properties": {
            "id": {"$ref": "../api.yml#/components/schemas/Id"},
            "tag": {"$ref": "#/definitions/Tag%20name"}, "friend": {"$ref": "Pet.json"}},
            "definitions": {"Tag name": {"enum": ["a"]}}, "example": {"id": 7, "tag": "a", "$ref": "not/a/reference"}}"##,
    ),
    (
        "schemas/index.yml",
        "Id: {type: integer}\nPet: {$ref: Pet.json}\n",
    ),
    ("paths.yml", "/all: {$ref: 'resources/all.yml'}\n"),
    ("broken.yml", "a: [b"),
];

const ROOT: &str = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n  /pets/{id}:\n    get: {$ref: resources/pet.yml}\n\
                    components:\n  schemas: {$ref: './schemas/index.yml'}\n";

fn read_file(name: &str) -> Result<Vec<u8>, ReadError> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, text)| text.as_bytes().to_vec())
        .ok_or_else(|| "no such file".into())
}

#[test]
fn operations_in_other_files_are_read_with_their_parameters_and_schemas() {
    let api = parse_api(ROOT, "api.yml", &mut read_file).unwrap();
    assert_eq!(api.left_out, []);
    assert_eq!(
        api.files,
        [
            "resources/pet.yml",
            "schemas/index.yml",
            "resources/shared.yml",
            "schemas/Pet.json"
        ]
    );
    let operation = &api.operations[0];
    assert_eq!(operation.parameters[0].kind.as_deref(), Some("integer"));
    let content = &operation.responses[0].content[0];
    // Data is no reference, whatever its keys.
    let expected = json!({"id": 7, "tag": "a", "$ref": "not/a/reference"});
    assert_eq!(api.make(content, None), Ok(expected));
}

#[test]
fn containers_in_other_files_are_read() {
    let root = "openapi: 3.0.3\npaths: {$ref: paths.yml}\n";
    let mut read_file = |name: &str| {
        if name == "resources/all.yml" {
            return Ok(b"get: {responses: {204: {description: none}}}".to_vec());
        }
        read_file(name)
    };
    let api = parse_api(root, "api.yml", &mut read_file).unwrap();
    assert_eq!(api.operations[0].path, "/all");
}

#[test]
fn files_that_cannot_be_read_are_reported_each_once() {
    for (reference, reason) in [
        (
            "missing.yml#/a",
            "`missing.yml`, which cannot be read: no such file",
        ),
        ("broken.yml", "`broken.yml`, which is not YAML"),
        ("../up.yml", "`../up.yml`, which is outside the folder"),
        ("a/../../up.yml", "which is outside the folder"),
        ("/etc/passwd", "which is outside the folder"),
        ("%2e%2e/up.yml", "which is outside the folder"),
        ("c:\\up.yml", "which is outside the folder"),
    ] {
        let root = json!({"openapi": "3.0.3", "paths": {
            "/a": {"get": {"$ref": reference}}, "/b": {"get": {"$ref": reference}}}});
        let remarks = parse_api(&root.to_string(), "api.json", &mut read_file).unwrap_err();
        assert_eq!(remarks.len(), 1, "{reference}: {remarks:?}");
        assert!(
            remarks[0].message.contains(reason),
            "{reference}: {remarks:?}"
        );
    }
    let root =
        r#"{"openapi": "3.0.3", "paths": {"/a": {"get": {"$ref": "http://127.0.0.1:1/a.yml"}}}}"#;
    let api = parse_api(root, "api.json", &mut read_file).unwrap();
    assert!(api.left_out[0].message.contains("does not fetch"));
}

#[test]
fn files_are_bounded_and_those_that_refer_to_one_another_end() {
    // Each file names the next; the last name never comes.
    let mut reads = 0;
    let mut endless = |name: &str| {
        reads += 1;
        let number: u32 = name.trim_end_matches(".json").parse().unwrap();
        Ok(json!({"$ref": format!("{}.json", number + 1)})
            .to_string()
            .into_bytes())
    };
    let root = json!({"openapi": "3.0.3", "paths": {"/a": {"$ref": "0.json"}}});
    let remarks = parse_api(&root.to_string(), "api.json", &mut endless).unwrap_err();
    assert!(remarks[0].message.contains("limit of 5000"), "{remarks:?}");
    assert_eq!(reads, MOST_FILES);
    let mut ring = |name: &str| {
        let next = if name == "a.json" { "b.json" } else { "a.json" };
        Ok(json!({ "$ref": next }).to_string().into_bytes())
    };
    let root = json!({"openapi": "3.0.3", "paths": {"$ref": "a.json"}});
    let api = parse_api(&root.to_string(), "api.json", &mut ring).unwrap();
    assert!(api.operations.is_empty());
    let mut huge = |_: &str| Ok(vec![b' '; MOST_BYTES + 1]);
    let remarks = parse_api(&root.to_string(), "api.json", &mut huge).unwrap_err();
    assert!(remarks[0].message.contains("64 MiB"), "{remarks:?}");
}
