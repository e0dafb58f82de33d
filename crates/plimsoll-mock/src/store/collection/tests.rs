use super::*;
use crate::request::KeptRequest;

const TEXT: &str = r#"[
    { "id": 1, "name": "Ann", "age": 30, "home": { "city": "Cork" } },
    { "id": 2, "name": "Ben", "age": 9 },
    { "id": 3, "name": "Clara", "age": 100, "home": { "city": "Delft" } }
]"#;

fn people() -> Collection {
    collections("/people", TEXT, MOST_BYTES).unwrap().remove(0)
}

fn collections(
    path: &str,
    text: &str,
    most_bytes: u64,
) -> Result<Vec<Collection>, CollectionError> {
    let options = CollectionOptions {
        path: path.to_owned(),
        id: "id".to_owned(),
        most_bytes,
        kept: None,
        source: None,
    };
    Collection::all_of(options, text)
}

fn ask(collection: &Collection, method: &str, target: &str, body: &str) -> (u16, Value) {
    let mut request = KeptRequest::made(method, target);
    request.body = Bytes::copy_from_slice(body.as_bytes());
    let response = collection.answer(&request.view()).unwrap();
    let json = serde_json::from_slice(&response.content).unwrap_or_default();
    (response.status.as_u16(), json)
}

fn ids(target: &str) -> Vec<u64> {
    let (status, list) = ask(&people(), "GET", target, "");
    assert_eq!(status, 200);
    list.as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_u64().unwrap())
        .collect()
}

#[test]
fn lists_are_filtered_sorted_and_cut() {
    for (target, expected) in [
        ("/people", vec![1, 2, 3]),
        ("/people?name=Ben", vec![2]),
        ("/people?home.city=Cork", vec![1]),
        ("/people?age_gte=30", vec![1, 3]),
        ("/people?age_gt=30", vec![3]),
        ("/people?age_lt=30&name_ne=Ann", vec![2]),
        ("/people?age_lte=30", vec![1, 2]),
        ("/people?name_like=a", vec![1, 3]),
        ("/people?_q=BEN", vec![2]),
        // Names of keys are not searched.
        ("/people?q=city", vec![]),
        ("/people?none_ne=a", vec![]),
        ("/people?none:ne=a", vec![1, 2, 3]),
        ("/people?_sort=age", vec![2, 1, 3]),
        ("/people?_sort=-age", vec![3, 1, 2]),
        ("/people?_sort=home.city,-name", vec![1, 3, 2]),
        ("/people?_page=2&_per_page=2", vec![3]),
        ("/people?_start=1&_limit=1", vec![2]),
        ("/people?_page=99999999999999999999", vec![]),
        ("/people?_start=1&_end=2", vec![2]),
        ("/people?_page=2&_limit=2", vec![3]),
        ("/people?_sort=age&_order=desc", vec![3, 1, 2]),
        ("/people?_sort=home.city&_order=desc", vec![3, 1, 2]),
        ("/people?age:gt=30", vec![3]),
        ("/people?age:in=9,100", vec![2, 3]),
        ("/people?name:startsWith=B", vec![2]),
        ("/people?id=1&id=2", vec![1, 2]),
        ("/people?id_ne=1&id_ne=2", vec![3]),
        ("/people?age=30.0", vec![1]),
        ("/people?name_like=^a", vec![1]),
        ("/people?nothing=1", vec![]),
    ] {
        assert_eq!(ids(target), expected, "{target}");
    }
}

#[test]
fn objects_are_made_changed_and_deleted() {
    let people = people();
    assert_eq!(ask(&people, "GET", "/people/2", "").1["name"], "Ben");
    assert_eq!(ask(&people, "GET", "/people/9", "").0, 404);
    let (status, made) = ask(&people, "POST", "/people", "{\"name\":\"Dan\"}");
    assert_eq!((status, &made["id"]), (201, &Value::from(4)));
    assert_eq!(ask(&people, "POST", "/people", "{\"id\":4}").0, 409);
    assert_eq!(ask(&people, "POST", "/people", "{\"id\":[]}").0, 422);
    assert_eq!(ask(&people, "POST", "/people", "[]").0, 400);
    let (status, changed) = ask(
        &people,
        "PATCH",
        "/people/1",
        "{\"age\":null,\"home\":{\"zip\":7},\"id\":9}",
    );
    assert_eq!(status, 200);
    assert_eq!(
        changed,
        serde_json::json!({ "id": 1, "name": "Ann", "home": { "city": "Cork", "zip": 7 } })
    );
    assert_eq!(
        ask(&people, "PUT", "/people/1", "{\"a\":1}").1,
        serde_json::json!({ "id": 1, "a": 1 })
    );
    assert_eq!(ask(&people, "DELETE", "/people/1", "").0, 204);
    assert_eq!(ask(&people, "DELETE", "/people/1", "").0, 404);
    assert_eq!(ask(&people, "PUT", "/people", "{}").0, 405);
    assert!(
        people
            .answer(&KeptRequest::made("GET", "/peoples").view())
            .is_none()
    );
    assert!(
        people
            .answer(&KeptRequest::made("GET", "/people/1/x").view())
            .is_none()
    );
}

#[test]
fn what_holds_no_collection_is_reported() {
    let new = |text| collections("/all", text, MOST_BYTES).map(|_| ());
    assert!(matches!(new("{}"), Err(CollectionError::Array(_))));
    assert!(matches!(new("1"), Err(CollectionError::Array(_))));
    assert!(matches!(new("[1"), Err(CollectionError::Array(_))));
}

#[test]
fn rows_may_be_anything() {
    let text = r#"{
        "ok": [{"id": 1, "n": 2}],
        "bad": [{"a": 1}, "x", null, [1], {"id": 3}, {"id": 3, "a": 2}, {"id": null}],
        "version": 3, "nothing": null
    }"#;
    let all = collections("/", text, MOST_BYTES).unwrap();
    let ask = |method, target: &str, body| {
        let known = all
            .iter()
            .find(|it| it.covers(target.split('?').next().unwrap()));
        known.map(|it| ask(it, method, target, body))
    };
    let whole = serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(ask("GET", "/bad", "").unwrap(), (200, whole["bad"].clone()));
    assert_eq!(ask("GET", "/version", "").unwrap(), (200, Value::from(3)));
    assert_eq!(ask("GET", "/nothing", "").unwrap(), (200, Value::Null));
    for (target, expected) in [
        ("/bad/3", serde_json::json!({ "id": 3 })),
        ("/bad?a=1", serde_json::json!([{ "a": 1 }])),
        ("/bad?q=X", serde_json::json!(["x"])),
        (
            "/bad?_sort=a&_limit=2",
            serde_json::json!([{ "a": 1 }, { "id": 3, "a": 2 }]),
        ),
        ("/bad?_embed=ok&_start=1&_end=2", serde_json::json!(["x"])),
    ] {
        assert_eq!(ask("GET", target, "").unwrap(), (200, expected), "{target}");
    }
    assert_eq!(ask("GET", "/bad/x", "").unwrap().0, 404);
    assert_eq!(ask("POST", "/bad", "{}").unwrap().1["id"], 4);
    assert_eq!(ask("PUT", "/version", r#"{"a":1}"#).unwrap().0, 200);
}

#[test]
fn what_belongs_to_a_deleted_object_is_deleted_with_it() {
    let all = collections("/", BLOG, MOST_BYTES).unwrap();
    let before = all[0].bytes().0;
    assert_eq!(ask(&all[0], "DELETE", "/posts/1", "").0, 204);
    assert_eq!(
        ask(&all[1], "GET", "/comments", "").1,
        Value::Array(Vec::new())
    );
    assert_eq!(ask(&all[2], "GET", "/users/7", "").0, 200);
    assert!(all[0].bytes().0 < before - 60);
}

#[test]
fn what_has_no_value_is_neither_above_nor_below() {
    let text =
        r#"[{"id":1,"age":null},{"id":2,"age":30},{"id":3},{"id":4,"age":"old"},{"id":5,"age":9}]"#;
    let all = collections("/all", text, MOST_BYTES).unwrap().remove(0);
    for (target, expected) in [
        ("/all?age_gte=26", "[2]"),
        ("/all?age_lt=26", "[5]"),
        ("/all?age:gt=8", "[2,5]"),
        ("/all?_sort=age", "[5,2,4,1,3]"),
        ("/all?_sort=-age", "[4,2,5,1,3]"),
    ] {
        let found = ask(&all, "GET", target, "").1;
        let ids: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["id"])
            .collect();
        assert_eq!(serde_json::to_string(&ids).unwrap(), expected, "{target}");
    }
    let text = r#"[{"id":1,"n":"10"},{"id":2,"n":9},{"id":3,"n":"9","done":false},{"id":4,"n":"a","done":true}]"#;
    let mixed = collections("/all", text, MOST_BYTES).unwrap().remove(0);
    for (target, expected) in [
        ("/all?_sort=n", vec![2, 1, 3, 4]),
        ("/all?q=e", vec![4]),
        ("/all?q=10", vec![1]),
    ] {
        let found = ask(&mixed, "GET", target, "").1;
        let ids = found.as_array().unwrap().iter().map(|it| it["id"].as_i64());
        assert_eq!(ids.flatten().collect::<Vec<_>>(), expected, "{target}");
    }
    // One name that is a text does not make new ones texts.
    let text = r#"[{"id":1},{"id":"x"}]"#;
    let mixed = collections("/all", text, MOST_BYTES).unwrap().remove(0);
    assert_eq!(ask(&mixed, "POST", "/all", "{}").1["id"], 2);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for target in [
        "/people?_page=abc",
        "/people?_page=0",
        "/people?_per_page=0",
        "/people?_limit=-1",
        "/people?_start=",
        "/people?_sort=age&_order=up",
    ] {
        let (status, response) = ask(&people(), "GET", target, "");
        assert_eq!(status, 400, "{target}");
        assert!(
            response["error"].as_str().unwrap().starts_with("`_"),
            "{response}"
        );
    }
}

#[test]
fn pages_lead_to_each_other() {
    let people = people();
    let request = KeptRequest::made("GET", "/people?_limit=1&_page=2&age_gt=1");
    let response = people.answer(&request.view()).unwrap();
    let link = response
        .fields
        .iter()
        .find(|(name, _)| name == "link")
        .unwrap();
    let text = link.1.to_str().unwrap();
    assert_eq!(
        text.split(", ").collect::<Vec<_>>(),
        [
            "<http://localhost/people?_page=1&_limit=1&age_gt=1>; rel=\"first\"",
            "<http://localhost/people?_page=1&_limit=1&age_gt=1>; rel=\"prev\"",
            "<http://localhost/people?_page=3&_limit=1&age_gt=1>; rel=\"next\"",
            "<http://localhost/people?_page=3&_limit=1&age_gt=1>; rel=\"last\"",
        ]
    );
}

const BLOG: &str = r#"{
    "posts": [{ "id": 1, "title": "a", "userId": 7 }, { "id": 2, "title": "b", "userId": 8 }],
    "comments": [{ "id": 1, "postId": 1, "text": "x" }, { "id": 2, "postId": 1, "text": "y" }],
    "users": [{ "id": 7, "name": "Ann" }],
    "profile": { "name": "blog" }
}"#;

#[test]
fn a_file_holds_several_lists_that_belong_together() {
    let all = collections("/api", BLOG, MOST_BYTES).unwrap();
    let paths: Vec<_> = all.iter().map(Collection::path).collect();
    assert_eq!(
        paths,
        ["/api/posts", "/api/comments", "/api/users", "/api/profile"]
    );
    let ask = |method, target: &str, body| {
        let mut request = KeptRequest::made(method, target);
        request.body = Bytes::copy_from_slice(str::as_bytes(body));
        let response = all
            .iter()
            .find_map(|it| it.answer(&request.view()))
            .unwrap();
        let json: Value = serde_json::from_slice(&response.content).unwrap_or_default();
        (response.status.as_u16(), json)
    };
    let texts = |json: &Value| -> Vec<String> {
        let all = json.as_array().unwrap().iter();
        all.map(|it| it["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        texts(&ask("GET", "/api/posts/1/comments?_sort=-text", "").1),
        ["y", "x"]
    );
    assert_eq!(ask("GET", "/api/posts/9/comments", "").0, 404);
    let (status, made) = ask("POST", "/api/posts/2/comments", r#"{"text":"z"}"#);
    assert_eq!(
        (status, &made["postId"], &made["id"]),
        (201, &Value::from(2), &Value::from(3))
    );
    let (_, posts) = ask("GET", "/api/posts?_embed=comments", "");
    assert_eq!(texts(&posts[0]["comments"]), ["x", "y"]);
    assert_eq!(texts(&posts[1]["comments"]), ["z"]);
    let (_, post) = ask("GET", "/api/posts/1?_expand=user&_embed=comments", "");
    assert_eq!(
        (
            &post["user"]["name"],
            post["comments"].as_array().unwrap().len()
        ),
        (&Value::from("Ann"), 2)
    );
    assert_eq!(
        ask("GET", "/api/posts/1?_embed=user", "").1["user"]["id"],
        7
    );
    assert_eq!(ask("GET", "/api/profile", "").1["name"], "blog");
    assert_eq!(
        ask("PATCH", "/api/profile", r#"{"x":1}"#).1.to_string(),
        r#"{"name":"blog","x":1}"#
    );
    assert!(
        !all.iter()
            .any(|it| it.covers("/api/posts/1/likes") || it.covers("/api/profile/1"))
    );
}

#[test]
fn what_finds_no_room_is_refused_and_counted() {
    let people = collections("/people", TEXT, 1_000).unwrap().remove(0);
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(700));
    assert_eq!(ask(&people, "POST", "/people", &large).0, 201);
    let (status, response) = ask(&people, "POST", "/people", &large);
    assert_eq!(status, 507);
    assert!(
        response["error"].as_str().unwrap().contains("max_size"),
        "{response}"
    );
    assert_eq!(ask(&people, "PUT", "/people/1", &large).0, 507);
    assert_eq!(people.refused(), 2);
    let (bytes, most) = people.bytes();
    assert!(bytes > 700 && bytes <= most);
    // Deleting makes room.
    assert_eq!(ask(&people, "DELETE", "/people/4", "").0, 204);
    assert_eq!(ask(&people, "POST", "/people", &large).0, 201);
    assert!(collections("/people", TEXT, 50).is_err());
}

#[test]
fn a_file_that_is_kept_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db.json");
    std::fs::write(&file, BLOG).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let options = CollectionOptions {
        path: "/".to_owned(),
        id: "id".to_owned(),
        most_bytes: MOST_BYTES,
        kept: Some(file.clone()),
        source: Some(file.clone()),
    };
    let all = Collection::all_of(options, BLOG).unwrap();
    let mut request = KeptRequest::made("DELETE", "/comments/1");
    let response = all
        .iter()
        .find_map(|it| it.answer(&request.view()))
        .unwrap();
    response.written.unwrap().write().unwrap();
    request.method = "GET".to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["comments"].as_array().unwrap().len(), 1);
    let keys: Vec<_> = kept.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["posts", "comments", "users", "profile"]);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
