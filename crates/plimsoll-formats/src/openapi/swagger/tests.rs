use insta::assert_snapshot;

use super::super::{Credential, ListStyle, ParameterPlace, parse_api};
use super::*;
use crate::ReadError;

const PETS: &str = r"
swagger: '2.0'
host: api.example.org
basePath: /v1
schemes: [https, http]
consumes: [application/json]
produces: [application/json, application/xml]
securityDefinitions:
  basic: {type: basic}
  key: {type: apiKey, in: header, name: X-Key}
security: [{basic: []}, {key: []}]
parameters:
  Limit: {name: limit, in: query, type: integer, minimum: 10, required: true}
responses:
  Missing: {description: missing, schema: {$ref: '#/definitions/Problem'}}
paths:
  /pets:
    parameters: [{$ref: '#/parameters/Limit'}]
    get:
      operationId: listPets
      parameters:
        - {name: tags, in: query, type: array, items: {type: string, enum: [a, b]}, collectionFormat: pipes, required: true}
      responses:
        200:
          description: fine
          headers: {X-Count: {type: integer, minimum: 3}}
          schema: {type: array, items: {$ref: '#/definitions/Pet'}}
          examples: {application/json: [{name: Rex}]}
        404: {$ref: '#/responses/Missing'}
    post:
      parameters:
        - {name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}
      responses: {201: {description: made}}
  /upload:
    post:
      consumes: [multipart/form-data]
      parameters:
        - {name: title, in: formData, type: string, required: true}
        - {name: picture, in: formData, type: file}
      responses: {204: {description: none}}
definitions:
  Pet: {type: object, required: [name], discriminator: kind, properties: {name: {type: string}, born: {type: string, x-nullable: true}, friend: {$ref: '#/definitions/Pet'}}}
  Problem: {type: object, properties: {type: {type: string, enum: [file]}}}
";

fn no_file(_: &str) -> Result<Vec<u8>, ReadError> {
    Err("no such file".into())
}

#[test]
fn swagger_documents_are_read_as_openapi() {
    let api = parse_api(PETS, "pets.yml", &mut no_file).unwrap();
    assert_eq!(api.left_out, []);
    assert_eq!(api.bases, ["/v1"]);
    let [get, post, upload] = &api.operations[..] else {
        panic!("{:?}", api.operations);
    };
    assert_eq!(
        get.security[1],
        [Credential::Key(ParameterPlace::Header, "X-Key".to_owned())]
    );
    assert_eq!(get.parameters[0].list, Some(ListStyle::Joined('|')));
    assert_eq!(
        (
            get.parameters[1].name.as_str(),
            get.parameters[1].kind.as_deref()
        ),
        ("limit", Some("integer"))
    );
    let fine = &get.responses[0];
    assert_eq!(fine.headers, [("x-count".to_owned(), "3".to_owned())]);
    let kinds = fine.content.iter().map(|it| it.kind.as_str());
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["application/json", "application/xml"]
    );
    assert_eq!(fine.content[0].examples[0].1, json!([{"name": "Rex"}]));
    let problem = api.make(&get.responses[1].content[0], None);
    assert_eq!(problem, Ok(json!({"type": "file"})));
    let body = post.body.as_ref().unwrap();
    assert!(body.is_required);
    let schema = body.content[0].schema.as_ref().unwrap();
    let pet = &schema["definitions"]["Pet"];
    assert_eq!(pet["properties"]["born"]["type"], json!(["string", "null"]));
    let form = upload.body.as_ref().unwrap();
    assert_eq!(form.content[0].kind, "multipart/form-data");
    assert_eq!(
        form.content[0].schema.as_ref().unwrap()["required"],
        json!(["title"])
    );
}

#[test]
fn swagger_documents_are_requests_too() {
    assert_snapshot!(crate::fixture::report(super::super::parse(PETS, &mut no_file)), @r#"
    GET /pets?tags=a&limit=10, paths./pets.get (listPets)
    POST /pets?limit=10, paths./pets.post
      content-type: application/json
      "{\"name\":\"string\",\"born\":\"string\",\"friend\":{\"name\":\"string\",\"born\":\"string\",\"friend\":{\"name\":\"string\",\"born\":\"string\",\"friend\":{\"name\":\"string\",\"born\":\"string\",\"friend\":{\"name\":\"string\"}}}}}"
    POST /upload, paths./upload.post
      content-type: multipart/form-data; boundary=------------------------0000000000000000
      "--------------------------0000000000000000\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nstring\r\n--------------------------0000000000000000\r\nContent-Disposition: form-data; name=\"picture\"\r\n\r\nstring\r\n--------------------------0000000000000000--\r\n"
     authentication, which the document asks for
       hint: give it by `-H` or `-a`
    "#);
}

#[test]
fn swagger_in_several_files_is_read() {
    let root = "swagger: '2.0'\npaths: {/a: {$ref: 'a.yml#/item'}}\n";
    let mut read_file = |name: &str| {
        assert_eq!(name, "a.yml");
        Ok(b"item: {get: {responses: {200: {description: ok, schema: {$ref: '#/Text'}}}}}\nText: {type: string, maxLength: 2}".to_vec())
    };
    let api = parse_api(root, "api.yml", &mut read_file).unwrap();
    let made = api.make(&api.operations[0].responses[0].content[0], None);
    assert_eq!(made, Ok(json!("st")));
}

#[test]
fn versions_are_numbers_or_texts() {
    for (text, is_known) in [
        ("swagger: 2.0", true),
        ("swagger: '2.0'", true),
        ("{\"swagger\": \"2.0\"}", true),
        ("swagger: '1.2'", false),
    ] {
        let read = parse_api(text, "a.yml", &mut no_file);
        assert_eq!(read.is_ok(), is_known, "{text}");
    }
}

#[test]
fn an_example_for_every_media_type_is_one_of_each() {
    let text = r#"{"swagger": "2.0", "produces": ["text/plain", "text/html"], "paths": {"/a": {"get": {"responses": {
        "200": {"schema": {"type": "string"}, "examples": {"*/*": "hello"}}}}}}}"#;
    let api = parse_api(text, "a.json", &mut no_file).unwrap();
    let content = &api.operations[0].responses[0].content;
    let shown: Vec<_> = content
        .iter()
        .map(|it| (it.kind.as_str(), &it.examples[0].1))
        .collect();
    let hello = json!("hello");
    assert_eq!(shown, [("text/plain", &hello), ("text/html", &hello)]);
}
