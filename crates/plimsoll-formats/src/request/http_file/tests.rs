use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::ReadError;

fn read(path: &str) -> Result<Vec<u8>, ReadError> {
    match path {
        "./body.json" => Ok(b"{\"literal\": \"{{x}}\"}".to_vec()),
        "./template.json" => Ok(b"{\"user\": \"{{user}}\"}".to_vec()),
        _ => Err(format!("cannot read {path}").into()),
    }
}

fn report(text: &str) -> String {
    crate::fixture::report(parse(text, &mut read))
}

#[test]
fn a_file_of_several_requests() {
    assert_snapshot!(report("\
@host = http://127.0.0.1:8080
@item={{host}}/items

### list them
# @weight 8
GET {{item}}
    ?page={{$randomInt 1 10}}
    &size=20
Accept: application/json

### add one
// @name add
POST {{item}}/{{id}} HTTP/1.1
Content-Type: application/json
# a remark among the fields
Authorization: Bearer {{token}}

{
  \"name\": \"{{name}}\"

}


###
{{host}}/plain
"), @r#"
    @host = http://127.0.0.1:8080
    @item = {{host}}/items
    GET {{item}}?page={{$random.integer(1, 10)}}&size=20:6 (list them) × 8
      Accept: application/json
    POST {{item}}/{{id}}:13 (add)
      Content-Type: application/json
      Authorization: Bearer {{token}}
      "{\n  \"name\": \"{{name}}\"\n\n}"
    - {{host}}/plain:25
    "#);
}

#[test]
fn bodies_by_their_content_type_and_from_files() {
    assert_snapshot!(report("\
POST http://a/
Content-Type: application/x-www-form-urlencoded

a=1
&b={{b}}
###
POST http://b/
Content-Type: multipart/form-data; boundary=x

--x
Content-Disposition: form-data; name=\"a\"

1
--x--
###
PUT http://c/

< ./body.json
###
PUT http://d/

<@ ./template.json
"), @r#"
    POST http://a/:1
      Content-Type: application/x-www-form-urlencoded
      "a=1&b={{b}}"
    POST http://b/:7
      Content-Type: multipart/form-data; boundary=x
      "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--"
    PUT http://c/:16
      "{\"literal\": \"{{x}}\"}"
    PUT http://d/:20
      "{\"user\": \"{{user}}\"}"
    "#);
}

#[test]
fn logins_are_encoded_as_editors_do() {
    let sent = |value: &str| report(&format!("GET http://a/\nAuthorization: {value}\n"));
    for value in ["Basic me:secret", "basic me secret", "Basic  me   secret"] {
        assert!(
            sent(value).contains("Basic bWU6c2VjcmV0"),
            "{}",
            sent(value)
        );
    }
    for value in [
        "Basic bWU6c2VjcmV0",
        "Bearer a.b",
        "Digest username=\"a\", realm=\"b\"",
    ] {
        let value_as_sent = value;
        assert!(sent(value).contains(value_as_sent), "{}", sent(value));
    }
    for (value, warning) in [
        ("Basic {{user}} {{password}}", "--basic-auth"),
        ("Digest me secret", "--digest"),
    ] {
        assert!(sent(value).contains(warning), "{}", sent(value));
    }
    let graphql = report("POST http://a/\nX-REQUEST-TYPE: GraphQL\n\nquery { a }\n");
    assert!(graphql.contains("JSON body"), "{graphql}");
}

#[test]
fn a_query_goes_on_in_indented_lines() {
    let report = report("GET http://a/f?\n    a=1&\n    b=2\nAccept: x\n");
    assert!(report.contains("GET http://a/f?a=1&b=2:1"), "{report}");
    assert!(report.contains("Accept: x"), "{report}");
}

#[test]
fn what_is_left_out_is_reported() {
    assert_snapshot!(report("\
# @no-redirect
< {%
  request.variables.set('a', 1)
%}
GET http://a/ HTTP/2
Content-Length: 5

> {%
  client.test('ok', function() {})
%}
"), @r#"
    GET http://a/:5
    :1 `@no-redirect`, which is for editors
    :2 a script that runs before the request
       hint: values are read in the form `client.global.set("name", response.body.key)`; for others write a script of k6: `plimsoll load --record FILE script.js` begins one
    :5 the protocol version; flags decide it
    :6 header `Content-Length`, which is set from the connection and the body
    :8 a script that handles the response
    "#);
}

#[test]
fn scripts_in_braces_are_left_out_and_places_may_go_over_lines() {
    assert_snapshot!(report("\
{{
  exports.token = { a: {} };
}}
POST http://a/{{token}}
Accept: */*
{{@request
  request.headers.date = 1;
}}

{\"color\": {{$random.choice(
  1,
  2
)}}, \"user\": {{
  user
}}}

{{+post
  console.log(response);
}}
"), @r#"
    POST http://a/{{token}}:4
      Accept: */*
      "{\"color\": {{$random.choice(1, 2)}}, \"user\": {{user}}}"
    :1 a script in `{{ … }}`
       hint: values are read in the form `client.global.set("name", response.body.key)`; for others write a script of k6: `plimsoll load --record FILE script.js` begins one
    :6 a script in `{{ … }}`
    :17 a script in `{{ … }}`
    "#);
    assert_snapshot!(
        report("GET http://b/{{$input Which one?}}"),
        @":1 `$input` is for editors: write `{{name}}` instead and give the value with `--var name=value`, or with `--var NAME` from the environment"
    );
}

#[test]
fn mistakes_are_reported_all_at_once() {
    assert_snapshot!(report("\
@a b
@c d = e
# @weight none
GET http://{{x
###
POST http://a/
no colon
na me: x

< ./missing
"), @"
    :1 a variable is written `@name = value`
    :2 `c d` is not the name of a variable
    :3 `@weight` takes a whole number above zero
    :4 `{{` is not closed by `}}`: {{x
    :7 `no colon` is not of the form `Name: value`; a body stands behind an empty line
    :8 `na me` is not the name of a header field
    :10 cannot read ./missing
    ");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(GET|###|#|@|<|>|\\{\\{|\\}\\}|%\\}|\\{%|a|:| |\n|=|/){0,40}") {
        drop(parse(&text, &mut read));
    }
}

#[test]
fn handlers_of_responses_give_values_to_variables() {
    let text = "\
POST http://a/login
> {% client.global.set(\"token\", response.body.token) %}

###
POST http://a/more

{\"token\": \"{{login.response.body.$.token}}\"}

> {%
  client.global.set(\"next\", response.headers.valueOf(\"Location\"));
  client.global.set(\"sum\", response.body.a + 1);
%}
";
    let file = parse(text, &mut read).unwrap();
    let sets: Vec<_> = file.requests.iter().map(|request| &request.sets).collect();
    let json = crate::ResponsePart::Json("$.token".to_owned());
    let field = crate::ResponsePart::Field("location".to_owned());
    let [token, next] =
        [("token", json), ("next", field)].map(|(name, part)| (name.to_owned(), part));
    assert_eq!(sets, [&vec![token], &vec![next]]);
    let body = file.requests[1].body.as_ref().unwrap();
    assert_eq!(body.responses().count(), 1);
    let left_out = &file.left_out[0];
    assert_eq!(
        (&left_out.place, left_out.message.as_str()),
        (
            &Place::Line(9),
            "`sum`, which a script computes from the response"
        )
    );
}

#[test]
fn remarks_are_not_sent_and_other_calls_are_named() {
    assert_snapshot!(report("\
/* The shop.
   POST http://no/ */
post http://a/items
Content-Type: application/json

// an item
{
  # its name
  \"name\": \"x\"
}

###
GET http://a/

# nothing is sent
###
PUT http://a/text
Content-Type: text/markdown

# heading
###
GET http://a/one

@page = 2
###
POST http://a/two

{}
GET http://a/three
###
GRPC a/Shop/List
"), @r##"
    @page = 2
    POST http://a/items:3
      Content-Type: application/json
      "{\n  \"name\": \"x\"\n}"
    GET http://a/:13
    PUT http://a/text:17
      Content-Type: text/markdown
      "# heading"
    GET http://a/one:22
    POST http://a/two:26
      "{}\nGET http://a/three"
    :29 the request `GET http://a/three`: without `###` before it, it is part of a body
    :31 `GRPC a/Shop/List`, which is no request of HTTP
       hint: `plimsoll load --grpc SERVICE/METHOD -d JSON URL` makes calls of gRPC
    "##);
}
