//! Replies beyond a text.

use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_testkit::eventually;

use crate::mock::Served;

fn served(respond: &str) -> Served {
    let rule = format!(
        "[[rules]]\nwhen.request.url_path = {{ op = \"pattern\", value = \"/users/{{id}}\" }}\n{respond}\n"
    );
    Served::rules(&rule)
}

#[test]
fn templates_are_filled_for_each_request() {
    let served = served(
        "respond = { template = true, json = '{ \"id\": \"{{request.path.id}}\", \"n\": {{$counter}}, \"name\": \"{{request.json.name}}\" }', \
         headers = { x-id = \"{{request.path.id}}\", x-plain = \"a\" } }",
    );
    let answer = served.ask("POST", "/users/7", &[], "{\"name\":\"A\\\"B\"}");
    assert_eq!(
        answer.text(),
        "{ \"id\": \"7\", \"n\": 1, \"name\": \"A\\\"B\" }"
    );
    assert_eq!(answer.field("x-id"), Some("7"));
    assert_eq!(answer.field("x-plain"), Some("a"));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(
        served.get("/users/8").text(),
        "{ \"id\": \"8\", \"n\": 2, \"name\": \"\" }"
    );
    // Input of a client cannot end a field.
    let answer = served.get("/users/a%0d%0ax-evil:%201");
    assert_eq!((answer.status, answer.field("x-evil")), (200, None));
    assert_eq!(answer.field("x-id"), Some("a  x-evil: 1"));
}

#[test]
fn sequences_stay_or_begin_anew() {
    let steps = "respond.sequence = [{ status = 503 }, { text = \"ok\" }]";
    let stays = served(steps);
    let statuses = |served: &Served| {
        (0..4)
            .map(|_| served.get("/users/1").status)
            .collect::<Vec<_>>()
    };
    assert_eq!(statuses(&stays), [503, 200, 200, 200]);
    let repeats = served(&format!("{steps}\nrespond.then = \"first\""));
    assert_eq!(statuses(&repeats), [503, 200, 503, 200]);
}

#[test]
fn redirects_lead_away() {
    let served =
        served("respond = { template = true, redirect = \"/people/{{request.path.id}}\" }");
    let answer = served.get("/users/9");
    assert_eq!(
        (answer.status, answer.field("location")),
        (302, Some("/people/9"))
    );
}

#[test]
fn faults_happen() {
    let fault = |name: &str| {
        let served = served(&format!(
            "respond = {{ text = \"0123456789\", fault = \"{name}\" }}"
        ));
        served.talk(b"GET /users/1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    };
    assert_eq!(fault("reset"), b"");
    assert_eq!(fault("empty"), b"");
    let garbage = fault("garbage");
    assert!(
        !garbage.is_empty() && !garbage.starts_with(b"HTTP/"),
        "{garbage:?}"
    );
    let text = |name| String::from_utf8(fault(name)).unwrap();
    let chunk = text("malformed_chunk");
    assert!(
        chunk.contains("transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nno length"),
        "{chunk}"
    );
    let half = text("half_body");
    assert!(
        half.contains("content-length: 10\r\n") && half.ends_with("\r\n\r\n01234"),
        "{half}"
    );
    let slow = text("slow_headers");
    assert!(
        slow.starts_with("HTTP/1.1 200 OK\r\n") && slow.ends_with("\r\n\r\n0123456789"),
        "{slow}"
    );
}

#[test]
fn delays_and_paces_hold_back_but_lose_nothing() {
    for respond in [
        "respond = { text = \"0123456789\", delay = \"5ms\" }",
        "respond = { text = \"0123456789\", delay = { uniform = [\"1ms\", \"5ms\"] } }",
        "respond = { text = \"0123456789\", delay = { lognormal = { median = \"2ms\", sigma = 0.5, max = \"9ms\" } }, seed = 1 }",
        "respond = { text = \"0123456789\", dribble = { chunks = 3, over = \"30ms\" } }",
        "respond = { text = \"0123456789\", bandwidth = \"100B\" }",
    ] {
        let served = served(respond);
        assert_eq!(served.get("/users/1").text(), "0123456789", "{respond}");
    }
}

#[test]
fn scenarios_go_on_and_reloads_keep_their_states() {
    let rules = r#"
[[rules]]
when.request.method = "POST"
respond.status = 201
scenario = { name = "cart", state = "Started", next = "full", session = "cookie:sid" }

[[rules]]
when.request.method = "GET"
respond.text = "full"
scenario = { name = "cart", state = "full", session = "cookie:sid" }

[[rules]]
when.request.method = "GET"
respond.text = "empty"
"#;
    let served = Served::rules(rules);
    let one = ["cookie: sid=1"];
    let get = |fields: &[&str]| served.ask("GET", "/", fields, "").text().to_owned();
    assert_eq!(get(&one), "empty");
    assert_eq!(served.ask("POST", "/", &one, "").status, 201);
    assert_eq!(
        (get(&one), get(&["cookie: sid=2"])),
        ("full".to_owned(), "empty".to_owned())
    );
    assert_eq!(served.ask("POST", "/", &one, "").status, 404);
    served.write("rules.toml", &rules.replace("\"empty\"", "\"none\""));
    eventually(|| get(&[]) == "none");
    assert_eq!(get(&one), "full");
}

#[test]
fn json_is_requested_by_path_and_schema() {
    let rules = r#"
[[rules]]
when.request.body.jsonpath."$.items[?@.price > 10].sku" = { op = "starts_with", value = "W" }
respond.text = "dear"

[[rules]]
when.request.body.schema = "order.json"
respond.text = "valid"
"#;
    let schema = r#"{ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } }"#;
    let served = Served::rules_with(rules, &[("order.json", schema)]);
    let post = |body: &str| {
        let answer = served.ask("POST", "/", &[], body);
        (answer.status, answer.text().to_owned())
    };
    let dear = "{\"items\":[{\"sku\":\"A\",\"price\":20},{\"sku\":\"W1\",\"price\":11}]}";
    assert_eq!(post(dear).1, "dear");
    assert_eq!(
        post("{\"id\":1,\"items\":[{\"sku\":\"W1\",\"price\":1}]}").1,
        "valid"
    );
    assert_eq!(post("{\"id\":\"1\"}").0, 404);
    assert_eq!(post("no JSON").0, 404);
}

#[test]
fn collections_are_changed_and_kept() {
    let rules = "[[collections]]\npath = \"/people\"\nfile = \"people.json\"\npersist = true\n";
    let served = Served::rules_with(
        rules,
        &[("people.json", "[{ \"id\": 1, \"name\": \"Ann\" }]")],
    );
    let made = served.ask("POST", "/people", &[], "{\"name\":\"Ben\"}");
    assert_eq!(
        (made.status, made.field("location")),
        (201, Some("/people/2"))
    );
    assert_eq!(
        served
            .ask("PATCH", "/people/1", &[], "{\"name\":\"Eve\"}")
            .status,
        200
    );
    let list = served.get("/people?_sort=-id");
    assert_eq!(list.field("x-total-count"), Some("2"));
    assert_eq!(
        list.text(),
        "[{\"id\":2,\"name\":\"Ben\"},{\"id\":1,\"name\":\"Eve\"}]"
    );
    // Acknowledged changes are on disk.
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(served.path("people.json")).unwrap())
            .unwrap();
    assert_eq!(kept[0]["name"], "Eve");
    assert_eq!(served.ask("DELETE", "/people/1", &[], "").status, 204);
    assert_eq!(served.get("/people/1").status, 404);
    assert_eq!(served.get("/other").status, 404);
}

#[test]
fn events_come_one_after_the_other() {
    let served = served(
        "respond = { template = true, events = [{ event = \"user\", id = \"1\", data = \"{{request.path.id}}\" }, \
         { data = \"a\\nb\", after = \"1ms\", retry = \"2s\" }] }",
    );
    let answer = served.get("/users/7");
    assert_eq!(answer.field("content-type"), Some("text/event-stream"));
    assert_eq!(
        answer.text(),
        "event: user\nid: 1\ndata: 7\n\nretry: 2000\ndata: a\ndata: b\n\n"
    );
}

#[test]
fn events_that_repeat_come_as_long_as_somebody_listens() {
    let served =
        served("respond = { events = [{ data = \"tick\", after = \"1ms\" }], repeat = true }");
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream
        .write_all(b"GET /users/1 HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    while seen.matches("data: tick").count() < 20 {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}

#[test]
fn what_nothing_matches_is_reported_the_nearest_rule() {
    let served = Served::rules(
        "[[rules]]\nid = \"orders\"\nwhen.request = { url_path = \"/orders\", method = \"POST\" }\nrespond.text = \"1\"\n",
    );
    let answer = served.get("/orders");
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.text(),
        "no rule matches GET \"/orders\"\nnearest is rule orders: method POST, found GET\n"
    );
}

#[test]
fn json_may_stand_in_rules_as_it_is() {
    let served = Served::rules(
        "[[rules]]\nwhen.request = { url_path = \"/a\", body.schema = { type = \"object\", required = [\"n\"] } }\n\
         respond.json = { a = 1, b = [true, \"x\"] }\n\
         [[rules]]\nwhen.request = { url_path = \"/b\", body.equal_json = { n = 1 } }\nrespond.json = [1, 2]\n",
    );
    let kind = ["content-type: application/json"];
    let answer = served.ask("POST", "/a", &kind, r#"{"n":1}"#);
    assert_eq!(answer.text(), r#"{"a":1,"b":[true,"x"]}"#);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(served.ask("POST", "/a", &kind, "{}").status, 404);
    assert_eq!(
        served.ask("POST", "/b", &kind, r#"{"n":1}"#).text(),
        "[1,2]"
    );
}

#[test]
fn numbers_keep_their_text_and_objects_their_order() {
    let served = Served::rules(
        "[[rules]]\nwhen.request.url_path = \"/echo\"\n\
         respond = { template = true, json = '{\"all\":{{request.json.all}}}' }\n",
    );
    let text = r#"{"all":{"z":1,"a":12345678901234567890123,"f":1.10}}"#;
    let kind = ["content-type: application/json"];
    assert_eq!(served.ask("POST", "/echo", &kind, text).text(), text);
}

#[test]
fn requests_for_options_reach_the_rules_that_name_them() {
    let served = Served::rules(
        "[[rules]]\nwhen.request = { url_path = \"/a\", method = \"OPTIONS\" }\nrespond.text = \"a\"\n\
         [[rules]]\nwhen.request = { url_path = \"/b\", method = \"ANY\" }\nrespond.text = \"b\"\n\
         [[rules]]\nwhen.request.url_path = \"/c\"\nrespond.text = \"c\"\n",
    );
    let ask = |target| served.ask("OPTIONS", target, &[], "");
    assert_eq!(ask("/a").text(), "a");
    assert_eq!(ask("/b").text(), "b");
    assert_eq!(ask("/c").status, 204);
    assert_eq!(served.get("/b").text(), "b");
}
