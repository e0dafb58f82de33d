use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ReadError;

fn no_file(_: &str) -> Result<Vec<u8>, ReadError> {
    Err("no such file".into())
}

const PETS: &str = r"
openapi: 3.0.3
servers: [{url: 'https://x.example/v1/'}, {url: /api}, {url: 'https://y.example'}]
security: [{key: []}, {basic: []}]
paths:
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
      - {name: tags, in: query, explode: false, schema: {type: array, items: {$ref: '#/components/schemas/Tag'}}}
    get:
      security: []
      parameters: [{name: Accept, in: header}, {$ref: '#/nothing'}]
      responses:
        2xx:
          headers: {X-Rate: {schema: {type: integer, minimum: 7}}}
          content:
            application/json:
              schema: {$ref: '#/components/schemas/Pet'}
              example: {name: A}
              examples: {b: {value: {name: B}}}
    put:
      requestBody:
        required: true
        content:
          Application/JSON; charset=utf-8: {schema: {$ref: '#/components/schemas/Pet'}}
      responses: {}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    basic: {type: http, scheme: Basic}
  schemas:
    Tag: {type: string, nullable: true, enum: [a, b]}
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: x, minLength: 1}
        age: {type: integer, minimum: 0, exclusiveMinimum: true}
        example: {type: boolean}
        friend: {nullable: true, allOf: [{$ref: '#/components/schemas/Pet'}]}
";

#[test]
fn a_document_is_taken_apart() {
    let api = parse_api(PETS, "pets.yaml", &mut no_file).unwrap();
    assert_eq!(api.bases, ["/v1", "/api"]);
    let [get, put] = api.operations.as_slice() else {
        panic!("{:?}", api.operations);
    };
    assert_eq!(
        (get.method.as_str(), get.path.as_str()),
        ("GET", "/pets/{id}")
    );
    assert!(get.security.is_empty());
    assert_eq!(put.security.len(), 2);
    assert_eq!(
        put.security[1],
        [Credential::Authorization("basic".to_owned())]
    );
    let names: Vec<&str> = get.parameters.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["id", "tags"]);
    assert_eq!(get.parameters[0].kind.as_deref(), Some("integer"));
    assert_eq!(get.parameters[1].list, Some(ListStyle::Joined(',')));
    assert_eq!(get.parameters[1].kind.as_deref(), Some("string"));
    let response = &get.responses[0];
    assert_eq!(response.code, "2XX");
    assert_eq!(response.headers, [("x-rate".to_owned(), "7".to_owned())]);
    let examples = &response.content[0].examples;
    assert_eq!(examples[0], (Some("b".to_owned()), json!({"name": "B"})));
    assert_eq!(examples[1], (None, json!({"name": "A"})));
    let body = put.body.as_ref().unwrap();
    assert_eq!(
        (body.is_required, body.content[0].kind.as_str()),
        (true, "application/json")
    );
    assert_eq!(api.left_out.len(), 1, "{:?}", api.left_out);
}

#[test]
fn schemas_of_requests_stand_alone_in_the_words_of_2020() {
    let api = parse_api(PETS, "pets.yaml", &mut no_file).unwrap();
    let schema = api.operations[1].body.as_ref().unwrap().content[0]
        .schema
        .clone();
    let schema = schema.unwrap();
    let pet = &schema["components"]["schemas"]["Pet"];
    assert_eq!(schema["$ref"], "#/components/schemas/Pet");
    assert_eq!(pet["required"], json!(["name"]));
    assert_eq!(
        pet["properties"]["age"],
        json!({"type": "integer", "exclusiveMinimum": 0})
    );
    assert_eq!(pet["properties"]["example"], json!({"type": "boolean"}));
    assert_eq!(
        pet["properties"]["name"],
        json!({"type": "string", "minLength": 1})
    );
    assert_eq!(
        pet["properties"]["friend"]["anyOf"][1],
        json!({"type": "null"})
    );
    let tags = api.operations[0].parameters[1].schema.as_ref().unwrap();
    assert_eq!(
        tags["components"]["schemas"]["Tag"],
        json!({"type": ["string", "null"], "enum": ["a", "b", null]})
    );
}

#[test]
fn values_are_made_by_chance_or_always_the_same() {
    let api = parse_api(PETS, "pets.yaml", &mut no_file).unwrap();
    let content = &api.operations[0].responses[0].content[0];
    let mut number = 0u64;
    let mut chance = |below: u64| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (number >> 33) % below.max(1)
    };
    let one = api.make(content, Some(&mut chance)).unwrap();
    let other = api.make(content, Some(&mut chance)).unwrap();
    assert_ne!(one, other);
    assert!(one["name"].is_string() && one["id"].is_i64(), "{one}");
    assert_eq!(api.make(content, None), api.make(content, None));
}

proptest! {
    #[test]
    fn made_values_are_within_their_bounds(least in -100i64..100, width in 0i64..100, numbers in proptest::collection::vec(0u64..u64::MAX, 1..40)) {
        let text = json!({"openapi": "3.1.0", "paths": {"/": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {
            "type": "array", "minItems": 1, "maxItems": 3,
            "items": {"oneOf": [
                {"type": "integer", "minimum": least, "maximum": least + width},
                {"type": "string", "minLength": 2, "maxLength": 5},
                {"type": "number", "minimum": least, "maximum": least + width},
                {"type": "string", "format": "date-time"}
            ]}
        }}}}}}}}});
        let api = parse_api(&text.to_string(), "a.json", &mut no_file).unwrap();
        let content = &api.operations[0].responses[0].content[0];
        let mut numbers = numbers.into_iter().cycle();
        let made = api.make(content, Some(&mut |below| numbers.next().unwrap_or_default() % below.max(1))).unwrap();
        let items = made.as_array().unwrap();
        prop_assert!((1..=3).contains(&items.len()));
        for item in items {
            if let Some(number) = item.as_f64() { prop_assert!(number >= least as f64 && number <= (least + width) as f64, "{item}") } else {
                let text = item.as_str().unwrap();
                prop_assert!((2..=5).contains(&text.len()) || text.len() == 20, "{text}");
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(openapi: 3.0.0\n|paths:\n|  /a:\n|    get:\n|      parameters:\n|      responses:\n|\\$ref: '#/paths'|&a |\\*a|[-\\[{}\\]:,] ?|x|'|\"|\n){0,20}") {
        drop(parse_api(&text, "a.yaml", &mut no_file));
    }
}

#[test]
fn fields_of_forms_are_written_as_their_encodings_say() {
    let text = json!({"openapi": "3.1.0", "paths": {"/": {"post": {"requestBody": {"content": {
        "application/x-www-form-urlencoded": {
            "schema": {"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {"type": "object"}, "c": {"type": "array"}}}]},
            "encoding": {"b": {"style": "deepObject"}, "c": {"style": "pipeDelimited", "explode": false}},
        },
        "multipart/form-data": {
            "schema": {"properties": {"file": {"type": "string"}, "meta": {"type": "object"}}},
            "encoding": {"file": {"contentType": "image/png, Image/JPEG"}},
        },
        "application/json": {"schema": {"properties": {"a": {}}}},
    }}, "responses": {}}}}, "components": {"schemas": {"A": {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}}}});
    let api = parse_api(&text.to_string(), "a.json", &mut no_file).unwrap();
    let content = &api.operations[0].body.as_ref().unwrap().content;
    let form = &content[0].fields;
    let names: Vec<&str> = form.iter().map(|it| it.parameter.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(form[0].parameter.list, Some(ListStyle::Repeated));
    assert_eq!(form[0].parameter.kind.as_deref(), Some("integer"));
    assert!(form[1].parameter.is_deep && form[1].parameter.object.is_none());
    assert_eq!(form[2].parameter.list, Some(ListStyle::Joined('|')));
    let parts = &content[1].fields;
    assert_eq!(parts[0].kinds, ["image/png", "image/jpeg"]);
    // A part that is an object is JSON.
    assert_eq!(parts[1].parameter.kind.as_deref(), Some("object"));
    assert!(parts[1].parameter.object.is_none());
    assert!(content[2].fields.is_empty());
}

#[test]
fn extensions_of_schemas_are_data() {
    let text = json!({"openapi": "3.1.0", "paths": {"/": {"post": {
        "requestBody": {"content": {"application/json": {"schema": {"type": "object", "x-policy": {"$ref": "#/none"}, "properties": {"x-a": {"type": "integer"}}}}}},
        "x-other": [{"$ref": "none.yml"}], "responses": {}}}}});
    let api = parse_api(&text.to_string(), "a.json", &mut no_file).unwrap();
    assert_eq!(api.left_out, []);
    let schema = api.operations[0].body.as_ref().unwrap().content[0]
        .schema
        .clone();
    assert_eq!(
        schema,
        Some(json!({"type": "object", "properties": {"x-a": {"type": "integer"}}}))
    );
}

#[test]
fn a_reference_among_the_names_of_properties_describes_nothing() {
    let text = json!({"openapi": "3.1.0", "paths": {"/": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {
        "properties": {"$ref": "#/components/schemas/A", "a": {"type": "integer"}}}}}}}}}}, "components": {"schemas": {"A": {}}}});
    let api = parse_api(&text.to_string(), "a.json", &mut no_file).unwrap();
    let content = &api.operations[0].responses[0].content[0];
    assert_eq!(api.make(content, None), Ok(json!({"a": 1})));
    assert_eq!(
        api.schema_of(content),
        Some(Ok(json!({"properties": {"a": {"type": "integer"}}})))
    );
}

#[test]
fn requests_of_the_service_are_taken_apart() {
    let text = r"
openapi: 3.1.0
paths:
  /orders:
    post:
      responses: {}
      callbacks:
        x-own: {}
        paid: {$ref: '#/components/callbacks/paid'}
webhooks:
  restock: {$ref: '#/components/pathItems/restock'}
  gone: {$ref: '#/nothing'}
components:
  callbacks:
    paid:
      x-own: 1
      '{$request.body#/url}':
        parameters: [{name: X-Id, in: header, example: 7}]
        put: {requestBody: {content: {text/plain: {example: a}}}}
        post: {}
  pathItems:
    restock: {post: {}}
";
    let api = parse_api(text, "a.yaml", &mut no_file).unwrap();
    let shown = |request: &ServiceRequest| {
        let ServiceRequest {
            name, method, url, ..
        } = request;
        format!("{name} {method} {url}")
    };
    let callbacks = &api.operations[0].callbacks;
    let of_operation: Vec<_> = callbacks.iter().map(shown).collect();
    assert_eq!(
        of_operation,
        [
            "paid PUT {$request.body#/url}",
            "paid POST {$request.body#/url}"
        ]
    );
    assert_eq!(callbacks[0].headers, [("x-id".to_owned(), "7".to_owned())]);
    assert_eq!(callbacks[0].content[0].kind, "text/plain");
    let webhooks: Vec<_> = api.webhooks.iter().map(shown).collect();
    assert_eq!(webhooks, ["restock POST "]);
    assert_eq!(api.left_out.len(), 1, "{:?}", api.left_out);
}
