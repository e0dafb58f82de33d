use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, VARY};
use http::{HeaderMap, StatusCode};

use super::*;
use crate::cache::Lifetimes;
use crate::cache::freshness::Times;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn request(accept: &str) -> FieldList {
    let mut fields = FieldList::new();
    fields.push(b"Accept", accept.as_bytes());
    fields
}

fn entry(seen: &FieldList, content: &str) -> Entry {
    let mut fields = HeaderMap::new();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    fields.insert(VARY, HeaderValue::from_static("Accept"));
    let times = Times {
        requested: now(),
        received: now(),
    };
    let content = Content::Memory(Bytes::from(content.to_owned()));
    let defaults = Lifetimes::default();
    let request = (&HeaderMap::new(), seen);
    Entry::new(request, StatusCode::OK, &fields, content, times, &defaults).unwrap()
}

fn content(store: &Store, key: &str, request: &FieldList) -> Option<Bytes> {
    match store.find(key, &|| request, now()) {
        Found::Entry(entry) => entry.content.read().ok(),
        Found::NotStored | Found::OtherVariants | Found::Nothing => None,
    }
}

#[test]
fn variants_stand_beside_each_other_and_are_replaced_by_their_own() {
    let store = Store::new(1 << 20, None);
    let key = Key::from("http://a/");
    let (html, json) = (request("text/html"), request("application/json"));
    for (fields, text) in [(&html, "old"), (&json, "json"), (&html, "new")] {
        store.insert(&key, fields, entry(fields, text));
    }
    assert_eq!(content(&store, &key, &html).unwrap(), "new");
    assert_eq!(content(&store, &key, &json).unwrap(), "json");
    assert_eq!(content(&store, &key, &request("*/*")), None);
    store.remove(&key);
    assert_eq!(content(&store, &key, &json), None);
    assert_eq!((store.state().entries, store.state().bytes), (0, 0));
}

#[test]
fn a_key_has_a_bounded_number_of_variants() {
    let store = Store::new(1 << 20, None);
    let key = Key::from("http://a/");
    let requests: Vec<_> = (0..=MOST_VARIANTS)
        .map(|it| request(&it.to_string()))
        .collect();
    for fields in &requests {
        store.insert(&key, fields, entry(fields, "x"));
    }
    assert_eq!(content(&store, &key, &requests[0]), None);
    assert!(content(&store, &key, &requests[1]).is_some());
    assert!(content(&store, &key, &requests[MOST_VARIANTS]).is_some());
}

#[test]
fn memory_is_bounded_and_what_was_used_last_stays() {
    let store = Store::new(40_000, None);
    let fields = request("*/*");
    let text = "x".repeat(1000);
    for number in 0..500 {
        let key = Key::from(format!("http://a/{number}"));
        store.insert(&key, &fields, entry(&fields, &text));
        assert!(content(&store, &key, &fields).is_some());
        assert!(content(&store, "http://a/0", &fields).is_some(), "{number}");
        assert!(store.state().bytes <= 40_000);
    }
    assert!(store.state().entries > 10);
    assert_eq!(content(&store, "http://a/1", &fields), None);
    // One that is larger than everything pushes nothing out but what it replaces.
    let (entries, key) = (store.state().entries, Key::from("http://a/0"));
    store.insert(&key, &fields, entry(&fields, &"x".repeat(100_000)));
    assert_eq!(content(&store, &key, &fields), None);
    assert_eq!(store.state().entries, entries - 1);
}

#[test]
fn what_is_not_stored_is_remembered_for_a_while() {
    let store = Store::new(1 << 20, None);
    let key = Key::from("http://a/");
    let fields = request("*/*");
    store.note_not_stored(&key, now());
    assert!(matches!(
        store.find(&key, &|| &fields, now()),
        Found::NotStored
    ));
    let later = now() + REMEMBERED;
    assert!(matches!(
        store.find(&key, &|| &fields, later),
        Found::Nothing
    ));
    store.insert(&key, &fields, entry(&fields, "x"));
    store.note_not_stored(&key, now());
    assert!(content(&store, &key, &fields).is_some());
}

#[test]
fn one_request_fetches_and_others_wait_for_it() {
    let store = Arc::new(Store::new(1 << 20, None));
    let key = Key::from("http://a/");
    let Turn::Fetch(flight) = store.turn(&key) else {
        panic!("nothing is under way");
    };
    let Turn::Wait(waiting) = store.turn(&key) else {
        panic!("one is under way");
    };
    assert!(waiting.has_changed().is_ok());
    drop(flight);
    assert!(waiting.has_changed().is_err());
    assert!(matches!(store.turn(&key), Turn::Fetch(_)));
}

#[test]
fn what_is_purged_is_gone_and_the_rest_stays() {
    let store = Store::new(1 << 20, None);
    let html = request("text/html");
    let fill = || {
        for url in ["http://a/x", "http://a/x/y?z", "http://a/z", "http://b/x"] {
            store.insert(&Key::from(url), &html, entry(&html, url));
        }
        store.note_not_stored(&Key::from("http://a/x/private"), now());
    };
    let kept = |url: &str| content(&store, url, &html).is_some();
    fill();
    assert_eq!(store.state().entries, 4);
    assert_eq!(store.purge("http://a/x", false), 1);
    assert_eq!(store.state().entries, 3);
    assert!(!kept("http://a/x") && kept("http://a/x/y?z"));
    assert_eq!(store.purge("http://a/x", false), 0);
    fill();
    assert_eq!(store.purge("http://a/x", true), 2);
    assert!(!kept("http://a/x") && !kept("http://a/x/y?z"));
    assert!(kept("http://a/z") && kept("http://b/x"));
    assert_eq!(store.purge("", true), 2);
    assert_eq!((store.state().entries, store.state().bytes), (0, 0));
}
