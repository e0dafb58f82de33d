use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn report(text: &str) -> String {
    crate::fixture::report(parse(text))
}

const RECORDED: &str = r#"{"log": {"version": "1.2", "entries": [
  {"request": {"method": "GET", "url": "https://a.test/x?y={{z}}", "httpVersion": "h2", "headers": [
     {"name": ":authority", "value": "a.test"}, {"name": "Host", "value": "a.test"},
     {"name": "accept", "value": "*/*"}, {"name": "connection", "value": "keep-alive"}]},
   "response": {"status": 200}},
  {"request": {"method": "POST", "url": "https://a.test/form", "headers": [],
     "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [
       {"name": "a b", "value": "ü"}, {"name": "c", "value": "1"}]}},
   "response": {"status": 302}},
  {"request": {"method": "PUT", "url": "http://b.test/json", "headers": [
     {"name": "Content-Type", "value": "application/json"}, {"name": "Content-Length", "value": "7"}],
     "postData": {"mimeType": "application/json", "text": "eyJhIjoxfQ==", "encoding": "base64"}},
   "response": {"status": 200}},
  {"request": {"method": "GET", "url": "https://ads.test/", "headers": []}, "response": {"status": 0}},
  {"request": {"method": "GET", "url": "https://a.test/c", "headers": []},
   "response": {"status": 200}, "_fromCache": "disk"},
  {"request": {"method": "GET", "url": "wss://a.test/ws", "headers": []}, "response": {"status": 101}},
  {"request": {"method": "GET", "url": "data:text/plain,x", "headers": []}, "response": {"status": 200}}
]}}"#;

#[test]
fn requests_in_order_and_what_was_left_out() {
    assert_snapshot!(report(RECORDED), @r#"
    GET https://a.test/x?y={{z}}, entry 1
      accept: */*
    POST https://a.test/form, entry 2
      content-type: application/x-www-form-urlencoded
      "a%20b=%C3%BC&c=1"
    PUT http://b.test/json, entry 3
      Content-Type: application/json
      "{\"a\":1}"
     1 entry without an answer (blocked or aborted)
     1 entry that the browser took from its cache
     1 WebSocket connection
     1 entry that is neither http nor https
     1 pseudo header field of HTTP/2
     2 header fields that are set from the connection and the body
    "#);
}

#[test]
fn braces_of_a_recording_are_no_places_for_values() {
    let file = parse(RECORDED).unwrap();
    assert_eq!(file.requests[0].url.variables().count(), 0);
}

#[test]
fn mistakes_are_reported_all_at_once() {
    assert_snapshot!(report("{\n\"log\": }"), @":2 is not JSON: expected value at line 2 column 8");
    assert_snapshot!(report("{}"), @" is not a HAR file: there is no list `log.entries`");
    assert_snapshot!(report(r#"{"log": {"entries": [{}, {"request": {"method": "GET"}},
        {"request": {"method": "GE T", "url": "http://a/"}},
        {"request": {"method": "GET", "url": "http://a/", "headers": [{"name": "a", "value": "b\r\nc: d"}]}}]}}"#), @"
    , entry 1 has no `request`
    , entry 2 has no `request.method` or no `request.url`
    , entry 3 `GE T` is not a method
    , entry 4 header `a` has a name or a value that cannot be sent
    ");
}

proptest! {
    #[test]
    fn no_json_makes_it_panic(text in "(\\{|\\}|\\[|\\]|\"log\":|\"entries\":|\"request\":|\"url\":|\"a\"|,|0){0,30}") {
        drop(parse(&text));
    }
}
