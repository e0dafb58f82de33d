use super::*;
use crate::asked::KeptRequest;

const TEXT: &str = r#"[
    { "id": 1, "name": "Ann", "age": 30, "home": { "city": "Cork" } },
    { "id": 2, "name": "Ben", "age": 9 },
    { "id": 3, "name": "Clara", "age": 100, "home": { "city": "Delft" } }
]"#;

fn people() -> Collection {
    Collection::new("/people".to_owned(), "id".to_owned(), TEXT, None).unwrap()
}

fn ask(collection: &Collection, method: &str, target: &str, body: &str) -> (u16, Value) {
    let mut request = KeptRequest::made(method, target);
    request.body = Bytes::copy_from_slice(body.as_bytes());
    let said = collection.answer(&request.asked()).unwrap();
    let json = serde_json::from_slice(&said.content).unwrap_or_default();
    (said.status.as_u16(), json)
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
        ("/people?name_like=a", vec![3]),
        ("/people?_q=BEN", vec![2]),
        ("/people?_sort=age", vec![2, 1, 3]),
        ("/people?_sort=-age", vec![3, 1, 2]),
        ("/people?_sort=home.city,-name", vec![1, 3, 2]),
        ("/people?_page=2&_per_page=2", vec![3]),
        ("/people?_start=1&_limit=1", vec![2]),
        ("/people?_page=99999999999999999999", vec![1, 2, 3]),
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
            .answer(&KeptRequest::made("GET", "/peoples").asked())
            .is_none()
    );
    assert!(
        people
            .answer(&KeptRequest::made("GET", "/people/1/x").asked())
            .is_none()
    );
}

#[test]
fn what_holds_no_collection_is_told() {
    let new = |text| Collection::new("/".to_owned(), "id".to_owned(), text, None).map(|_| ());
    assert!(matches!(new("{}"), Err(CollectionError::Array(_))));
    assert!(matches!(new("[1]"), Err(CollectionError::Array(_))));
    assert_eq!(new("[{}]"), Err(CollectionError::Id(1, "id".to_owned())));
    assert_eq!(
        new("[{\"id\":1},{\"id\":1}]"),
        Err(CollectionError::Id(2, "id".to_owned()))
    );
}
