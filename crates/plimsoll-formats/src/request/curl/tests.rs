use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::ReadError;

fn read(path: &str) -> Result<Vec<u8>, ReadError> {
    match path {
        "body.txt" => Ok(b"two\r\nlines & more\n".to_vec()),
        "headers.txt" => Ok(b"X-One: 1\r\nX-Two: 2\n".to_vec()),
        _ => Err(format!("cannot read {path}").into()),
    }
}

fn report(text: &str) -> String {
    crate::fixture::report(parse(text, &mut read))
}

#[test]
fn as_copied_from_a_browser() {
    assert_snapshot!(report(r#"
curl 'https://example.org/api/items?q=a%20b' \
  -H 'accept: application/json, text/plain, */*' \
  -H 'authority: example.org' \
  -H $'x-note: it\'s \u00e9\x21' \
  -H 'content-type: application/json' \
  -H 'content-length: 17' \
  -b 'session=abc; theme=dark' \
  --data-raw $'{"a":"b\\nc","d":1}' \
  --compressed ;
curl 'https://example.org/next' -X 'OPTIONS' -H ':authority: example.org'
"#), @r#"
    POST https://example.org/api/items?q=a%20b:2
      accept: application/json, text/plain, */*
      authority: example.org
      x-note: it's é!
      content-type: application/json
      cookie: session=abc; theme=dark
      accept-encoding: deflate, gzip, br, zstd
      "{\"a\":\"b\\nc\",\"d\":1}"
    OPTIONS https://example.org/next:11
      accept: */*
    :7 header `content-length`, which is set from the connection and the body
    :11 header `:authority: example.org`, a pseudo header field of HTTP/2
    "#);
}

#[test]
fn bodies() {
    assert_snapshot!(report("\
curl -d a=1 -d @body.txt http://h/
curl --data-binary @body.txt -H 'Content-Type: text/plain' http://h/
curl --data-urlencode 'q=a b&c' --data-urlencode '=x y' --data-urlencode n@body.txt http://h/
curl -G -d a=1 --data-urlencode 'b=ü' 'http://h/?z=0#frag'
curl --json '{\"a\":' --json '1}' http://h/
curl -F a=1 -F 'b=@body.txt;type=text/x' http://h/
curl -T body.txt http://h/up
curl -I http://h/ -H 'Accept:' -A ''
curl -sSXDELETE http://h/1 http://h/2 -u me:secret
curl http://h/a --next -X PUT --url h:81/b --url-query 'q=a b'
"), @r#"
    POST http://h/:1
      content-type: application/x-www-form-urlencoded
      accept: */*
      "a=1&twolines & more"
    POST http://h/:2
      Content-Type: text/plain
      accept: */*
      "two\r\nlines & more\n"
    POST http://h/:3
      content-type: application/x-www-form-urlencoded
      accept: */*
      "q=a%20b%26c&x%20y&n=two%0D%0Alines%20%26%20more%0A"
    GET http://h/?z=0&a=1&b=%C3%BC:4
      accept: */*
    POST http://h/:5
      content-type: application/json
      accept: application/json
      "{\"a\":1}"
    POST http://h/:6
      content-type: multipart/form-data; boundary=------------------------0000000000000000
      accept: */*
      "--------------------------0000000000000000\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--------------------------0000000000000000\r\nContent-Disposition: form-data; name=\"b\"; filename=\"body.txt\"\r\nContent-Type: text/x\r\n\r\ntwo\r\nlines & more\n\r\n--------------------------0000000000000000--\r\n"
    PUT http://h/up:7
      accept: */*
      "two\r\nlines & more\n"
    HEAD http://h/:8
    DELETE http://h/1:9
      authorization: Basic bWU6c2VjcmV0
      accept: */*
    DELETE http://h/2:9
      authorization: Basic bWU6c2VjcmV0
      accept: */*
    GET http://h/a:10
      accept: */*
    PUT h:81/b?q=a%20b:10
      accept: */*
    "#);
}

#[test]
fn what_a_request_cannot_carry_is_named() {
    assert_snapshot!(report("\
$ curl -kL --http2 -m5 -x http://p:1 -b jar.txt -U u:p http://h/ -o out.json 2>/dev/null | jq .
"), @"
    GET http://h/:1
      accept: */*
    :1 where the output goes
    :1 `-k`
       hint: give `-k` to plimsoll
    :1 `-L`
       hint: redirects are not followed
    :1 `--http2`
       hint: the protocol is chosen by plimsoll's own flags
    :1 `-m 5`
       hint: give `--timeout` to plimsoll
    :1 `-x http://p:1`
       hint: give `-x` to plimsoll
    :1 `-b jar.txt`, a file of cookies
       hint: write the cookies as `name=value`
    :1 `-U`
       hint: write user and password into the URL of `-x`
    ");
}

#[test]
fn mistakes_are_reported_all_at_once() {
    assert_snapshot!(report("\
wget http://h/
curl --heade 'a: b' http://h/ -?
curl
curl -u me http://h/
curl 'http://h/{a,b}' 'http://[::1]/' -H
curl -d @missing -F a=b http://h/ --max-time=5
curl -d a -F a=b http://h/
"), @"
    :1 `wget` is not a command of curl
    :2 curl's option `--heade` is not known here
       hint: did you mean `--head`?
    :2 curl's option `-?` is not known here
    :3 the command has no URL
    :4 `-u` has no password, for which curl would ask
    :5 `-H` has no value behind it
    :5 curl would make several URLs of `http://h/{a,b}`
       hint: write each of them, or `-g` if the braces or brackets are meant
    :6 cannot read missing
    :6 curl's option `--max-time=5` is not known here
       hint: curl takes the value of an option as the next word
    :7 the command has several bodies: one of `-d`, `-F` and `-T` is meant
    ");
    for (text, expected) in [
        ("curl 'http://h/", "a quote ' is not closed"),
        ("curl -u \"me:$PASSWORD\" http://h/", "encoded as a whole"),
        (
            "curl --data-urlencode \"a=$A\" http://h/",
            "write its value",
        ),
        ("curl -X $METHOD http://h/", "write its value"),
        ("curl http://h/$1", "in the place of `$1`"),
        ("curl $(cat url)", "in the place of `$(cat`"),
        ("curl ^\n  http://h/", "cURL (bash)"),
    ] {
        assert!(report(text).contains(expected), "{text}: {}", report(text));
    }
}

#[test]
fn variables_of_the_shell_are_places() {
    let text = "curl -H \"Authorization: Bearer $TOKEN\" -d \"{\\\"id\\\": ${ID}}\" \
                \"$BASE/users/$USER_ID!\" -H 'x: $NOT'";
    let file = parse(text, &mut |_| Err("no file".into())).unwrap();
    let request = &file.requests[0];
    assert_eq!(request.url.to_string(), "{{BASE}}/users/{{USER_ID}}!");
    let header = |name: &str| {
        let found = request.headers.iter().find(|(known, _)| known == name);
        found.unwrap().1.to_string()
    };
    assert_eq!(header("Authorization"), "Bearer {{TOKEN}}");
    assert_eq!(header("x"), "$NOT");
    let body = request.body.as_ref().unwrap();
    assert_eq!(body.to_string(), "{\"id\": {{ID}}}");
    let variables: Vec<&str> = body.variables().collect();
    assert_eq!(variables, ["ID"]);
}

#[test]
fn every_option_has_one_name() {
    for (index, option) in options::OPTIONS.iter().enumerate() {
        for other in &options::OPTIONS[..index] {
            assert_ne!(option.long, other.long);
            assert!(
                option.short.is_none() || option.short != other.short,
                "{option:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(curl |-d |-H |--json |'|\"|\\$|\\\\|@|http://h/|\n|a|:|=|;|\\||\\{|\\[){0,30}") {
        drop(parse(&text, &mut read));
    }

    /// Text in a shell's quotes is kept as it is.
    #[test]
    fn quoted_words_arrive(value in "[^']{0,40}") {
        let command = format!("curl --data-raw '{value}' http://h/");
        let file = parse(&command, &mut read).unwrap();
        let body = file.requests[0].body.as_ref().unwrap();
        prop_assert_eq!(body.as_text(), Some(value.as_bytes()));
    }
}
