use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::ReadError;

fn no_file(_: &str) -> Result<Vec<u8>, ReadError> {
    Err("no such file".into())
}

fn report(text: &str) -> String {
    crate::fixture::report(parse(text, &mut no_file))
}

const PETS: &str = r"
openapi: 3.0.3
servers:
  - url: https://{region}.example.org/v1
    variables: {region: {default: eu}}
security: [{key: []}]
paths:
  /pets:
    get:
      operationId: listPets
      tags: [pets, read]
      parameters:
        - {name: limit, in: query, required: true, schema: {type: integer, minimum: 10}}
        - {name: tag, in: query, example: [a b, c]}
        - {name: optional, in: query, schema: {type: string}}
        - {name: X-Trace, in: header, required: true, schema: {type: string, format: uuid}}
        - {name: session, in: cookie, required: true, schema: {type: string, minLength: 6}}
      responses: {200: {description: fine}}
    post:
      requestBody:
        content:
          text/csv: {}
          application/json: {schema: {$ref: '#/components/schemas/Pet'}}
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}, example: 7}
    delete: {tags: [write]}
    put:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, properties: {name: {type: string, example: 'a & b'}, age: {type: number, maximum: 0.5}}}
    patch:
      parameters: [{name: code, in: query, required: true, schema: {type: string, pattern: '^[A-Z]$'}}]
    head: {parameters: [{$ref: 'other.yaml#/x'}]}
  /broken/{what}:
    get: {}
    post: {requestBody: {content: {image/png: {}}}}
components:
  schemas:
    Pet:
      allOf:
        - {$ref: '#/components/schemas/Named'}
        - type: object
          required: [kind]
          properties:
            id: {type: integer, readOnly: true}
            kind: {type: string, enum: [cat, dog]}
            born: {type: string, format: date}
            friends: {type: array, items: {$ref: '#/components/schemas/Pet'}}
    Named: {type: object, properties: {name: {type: string, default: Tom}}}
";

#[test]
fn a_request_for_each_operation() {
    let file = parse(PETS, &mut no_file).unwrap();
    assert_eq!(file.base.as_deref(), Some("https://eu.example.org/v1"));
    assert_snapshot!(report(PETS), @r#"
    GET /pets?limit=10&tag=a%20b&tag=c, paths./pets.get (listPets) [pets read]
      X-Trace: 6f2b1a5e-3c44-4d0f-9b7a-2f8f5f0d9c11
      cookie: session=string
    POST /pets, paths./pets.post
      content-type: application/json
      "{\"name\":\"Tom\",\"kind\":\"cat\",\"born\":\"2024-01-31\",\"friends\":[{\"name\":\"Tom\",\"kind\":\"cat\",\"born\":\"2024-01-31\",\"friends\":[{\"kind\":\"cat\"}]}]}"
    PUT /pets/7, paths./pets/{id}.put
      content-type: application/x-www-form-urlencoded
      "name=a%20%26%20b&age=0.5"
    DELETE /pets/7, paths./pets/{id}.delete [write]
    PATCH /pets/7?code=A, paths./pets/{id}.patch
     refers to `other.yaml`, which cannot be read: no such file
    , paths./pets/{id}.head `other.yaml#/x` refers to nothing
    , paths./broken/{what}.get `{what}` in the path is not described
    , paths./broken/{what}.post `{what}` in the path is not described
     authentication, which the document asks for
       hint: give it by `-H` or `-a`
    "#);
}

#[test]
fn other_documents_are_refused() {
    for (text, expected) in [
        ("swagger: '1.2'", "is Swagger of a version other than 2.0"),
        (
            "openapi: 4.0.0",
            "is OpenAPI 4.0.0; plimsoll reads 3.0 to 3.2",
        ),
        ("{\"a\": 1}", "it has no `openapi`"),
        ("{\"a\": }", ":1 is not JSON"),
        ("a: [b", "is not YAML"),
    ] {
        assert!(report(text).contains(expected), "{text}: {}", report(text));
    }
}

#[test]
fn values_fit_their_schemas() {
    let root = Value::Null;
    let document = Document::new(&root);
    for (schema, value) in [
        (r#"{"type": "string", "maxLength": 2}"#, r#""st""#),
        (r#"{"type": ["null", "boolean"]}"#, "true"),
        (r#"{"type": "integer", "exclusiveMinimum": 5}"#, "6"),
        (
            r#"{"type": "integer", "minimum": 5, "exclusiveMinimum": true}"#,
            "6",
        ),
        (
            r#"{"type": "integer", "multipleOf": 7, "minimum": 8}"#,
            "14",
        ),
        (r#"{"type": "integer", "maximum": -3}"#, "-3"),
        (r#"{"type": "number", "minimum": -1, "maximum": 0}"#, "-1"),
        (
            r#"{"type": "array", "minItems": 2, "items": {"const": 1}}"#,
            "[1,1]",
        ),
        (
            r#"{"anyOf": [{"type": "string", "pattern": "(?=a)"}, {"type": "integer"}]}"#,
            "1",
        ),
        (r#"{"examples": [3]}"#, "3"),
        ("{}", r#""string""#),
    ] {
        let parsed = serde_json::from_str(schema).unwrap();
        let made = document.make(&parsed).map(|value| value.to_string());
        assert_eq!(made.as_deref(), Ok(value), "{schema}");
    }
    for schema in [
        r#"{"type": "integer", "minimum": 5, "maximum": 4}"#,
        r#"{"type": "text"}"#,
        r##"{"$ref": "#/missing"}"##,
        r#"{"type": "string", "minLength": 1000000}"#,
    ] {
        let parsed = serde_json::from_str(schema).unwrap();
        assert!(document.make(&parsed).is_err(), "{schema}");
    }
}

#[test]
fn a_schema_that_requires_itself_ends() {
    let root: Value = serde_json::from_str(
        r##"{"a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/a"}}},
             "b": {"$ref": "#/c"}, "c": {"$ref": "#/b"}}"##,
    )
    .unwrap();
    let document = Document::new(&root);
    for name in ["a", "b"] {
        assert!(document.make(&root[name]).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(openapi: 3.0.0\n|paths:\n|  /a:\n|    get:\n|      parameters:\n|&a |\\*a|[-\\[{}\\]:,] ?|x|'|\"|\n){0,20}") {
        drop(parse(&text, &mut no_file));
    }
}

#[test]
fn version_3_2_is_read_with_its_method() {
    let text = "openapi: 3.2.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'http://h'}]\n\
                paths:\n  /search:\n    query: {responses: {'200': {description: ok}}}\n";
    let file = parse(text, &mut no_file).unwrap();
    assert_eq!(file.requests.len(), 1);
    assert_eq!(file.requests[0].method.as_deref(), Some("QUERY"));
}

#[test]
fn webhooks_are_no_requests_to_the_service_and_named() {
    let text = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n\
                webhooks:\n  newPet:\n    post: {responses: {'200': {description: ok}}}\n";
    let file = parse(text, &mut no_file).unwrap();
    assert!(file.requests.is_empty());
    assert!(
        file.left_out[0]
            .message
            .contains("the service makes itself")
    );
    let remarks = crate::parse(crate::Format::OpenApi, text, &mut |_| Err("".into()));
    let remarks_text = format!("{:?}", remarks.unwrap_err());
    assert!(
        remarks_text.contains("holds no request") && remarks_text.contains("makes itself"),
        "{remarks_text}"
    );
}
