use plimsoll_formats::openapi::ParameterPlace;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parameter(name: &str, schema: Option<Value>) -> Parameter {
    Parameter {
        place: ParameterPlace::Query,
        name: name.to_owned(),
        is_required: false,
        schema,
        kind: None,
        list: None,
        is_deep: true,
        object: None,
    }
}

fn pairs(query: &str) -> Pairs {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

fn read(name: &str, query: &str, schema: Option<&Value>) -> Option<Value> {
    value(&parameter(name, schema.cloned()), &pairs(query), true)
}

/// The forms that clients write, by what they are in JSON.
#[test]
fn every_form_of_clients_is_read() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let flag = json!({ "type": "boolean" });
    let flag_or_number = json!({ "type": ["boolean", "integer"] });
    let flag_or_text = json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] });
    let prices = json!({ "type": "array", "items": { "type": "object", "properties": {
        "price": { "type": "string" }, "quantity": { "type": "integer" }, "on": { "type": "boolean" },
    } } });
    let metadata = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let range = json!({ "anyOf": [
        { "type": "object", "properties": { "gt": { "type": "integer" } } },
        { "type": "integer" },
    ] });
    let unset = json!({ "anyOf": [texts, { "type": "string", "enum": [""] }] });
    let nested = json!({ "type": "object", "properties": { "b": { "type": "object", "properties": {
        "c": { "type": "array", "items": { "type": "number" } },
    } } } });
    let recursive = json!({ "$ref": "#/$defs/t", "$defs": { "t": { "type": "object", "properties": {
        "and": { "type": "array", "items": { "$ref": "#/$defs/t" } }, "n": { "type": "integer" },
    } } } });
    for (form, query, schema, expected) in [
        ("PHP, Rails: a list", "x[]=1&x[]=2", &numbers, json!([1, 2])),
        (
            "Stripe, qs: numbered",
            "x[0]=1&x[1]=2",
            &numbers,
            json!([1, 2]),
        ),
        (
            "qs: numbered, in any order, with gaps",
            "x[5]=2&x[0]=1",
            &numbers,
            json!([1, 2]),
        ),
        (
            "more than ten",
            "x[10]=10&x[2]=2&x[1]=1&x[0]=0",
            &numbers,
            json!([0, 1, 2, 10]),
        ),
        ("repeated", "x=1&x=2", &numbers, json!([1, 2])),
        ("one alone", "x=1", &numbers, json!([1])),
        (
            "repeated with a number",
            "x[0]=1&x[0]=2",
            &numbers,
            json!([["1", "2"]]),
        ),
        ("no integer", "x[]=a", &numbers, json!(["a"])),
        ("Python: a boolean", "x=True", &flag, json!(true)),
        ("Go, PHP: a boolean", "x=0", &flag, json!(false)),
        ("no boolean", "x=yes", &flag, json!("yes")),
        (
            "a number before a boolean",
            "x=1",
            &flag_or_number,
            json!(1),
        ),
        ("a text before a boolean", "x=1", &flag_or_text, json!("1")),
        (
            "a boolean or a number",
            "x=true",
            &flag_or_number,
            json!(true),
        ),
        ("a text of digits", "x[]=1", &texts, json!(["1"])),
        (
            "Stripe: objects in a list",
            "x[0][price]=p&x[0][quantity]=2&x[1][price]=7",
            &prices,
            json!([{ "price": "p", "quantity": 2 }, { "price": "7" }]),
        ),
        (
            "Rails: objects in a list, by repeated keys",
            "x[][price]=p&x[][quantity]=2&x[][price]=q&x[][on]=true",
            &prices,
            json!([{ "price": "p", "quantity": 2 }, { "price": "q", "on": true }]),
        ),
        (
            "an object",
            "x[order]=6735&x[b]=true",
            &metadata,
            json!({ "order": "6735", "b": "true" }),
        ),
        (
            "keys of digits of an object",
            "x[0]=a&x[1]=b",
            &metadata,
            json!({ "0": "a", "1": "b" }),
        ),
        (
            "one of several: an object",
            "x[gt]=5",
            &range,
            json!({ "gt": 5 }),
        ),
        ("one of several: a number", "x=5", &range, json!(5)),
        ("one of several: a list", "x[]=a", &unset, json!(["a"])),
        ("one of several: nothing", "x=", &unset, json!("")),
        (
            "levels",
            "x[b][c][]=1.5&x[b][c][]=2",
            &nested,
            json!({ "b": { "c": [1.5, 2] } }),
        ),
        (
            "levels, with a wrong type",
            "x[b]=zz",
            &nested,
            json!({ "b": "zz" }),
        ),
        (
            "a schema of itself",
            "x[and][0][n]=1&x[and][1][and][0][n]=2",
            &recursive,
            json!({ "and": [{ "n": 1 }, { "and": [{ "n": 2 }] }] }),
        ),
    ] {
        assert_eq!(
            read("x", query, Some(schema)),
            Some(expected),
            "{form}: {query}"
        );
    }
    for (form, query, expected) in [
        ("a row of numbers", "x[0]=a&x[1]=b", json!(["a", "b"])),
        (
            "numbers that are no row",
            "x[1]=a&x[3]=b",
            json!({ "1": "a", "3": "b" }),
        ),
        ("numbers with zeros", "x[00]=a", json!({ "00": "a" })),
        ("a text, then keys", "x=1&x[a]=2", json!({ "a": "2" })),
        (
            "a list, then keys",
            "x[]=1&x[a]=2",
            json!({ "0": "1", "a": "2" }),
        ),
        ("keys, then a list", "x[0]=1&x[]=2", json!(["1", "2"])),
        ("lists of lists", "x[][]=1&x[][]=2", json!([["1"], ["2"]])),
    ] {
        assert_eq!(read("x", query, None), Some(expected), "{form}: {query}");
    }
    // A name that has its brackets in the document.
    for query in ["x[]=1&x[]=2", "x[0]=1&x[1]=2", "x=1&x=2"] {
        assert_eq!(
            read("x[]", query, Some(&numbers)),
            Some(json!([1, 2])),
            "{query}"
        );
    }
    for query in ["y[a]=1", "x[=1", "x[a]b=1", "[x]=1", "xx[a]=1"] {
        assert_eq!(read("x", query, None), None, "{query}");
    }
}

proptest! {
    /// Whatever `qs` writes is read back.
    #[test]
    fn what_qs_writes_is_read(value in values()) {
        let mut written = Vec::new();
        write("x", &value, &mut written);
        prop_assume!(!written.is_empty());
        prop_assert_eq!(read("x", &written.join("&"), None), Some(value));
    }

    #[test]
    fn no_form_is_too_strange(query in "(x(\\[[a0-9]{0,2}\\]?){0,40}=[a1]&){1,8}x=1") {
        read("x", &query, None);
        read("x", &query, Some(&json!({ "type": "array", "items": { "$ref": "#" } })));
    }
}

/// Objects and lists of texts, none of them empty, and no object that looks like a list.
fn values() -> impl Strategy<Value = Value> {
    let object = prop::collection::btree_map("[a-z]", "[a-z]{0,2}", 1..3);
    let leaf = object.prop_map(|object| json!(object));
    leaf.prop_recursive(3, 16, 3, |inner| {
        let texts = prop::collection::vec("[a-z]{1,2}", 1..4).prop_map(|texts| json!(texts));
        prop_oneof![
            texts,
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::Array),
            prop::collection::btree_map("[a-z]", inner, 1..3).prop_map(|object| json!(object)),
        ]
    })
}

/// As `qs.stringify` does, with numbers for places in lists.
fn write(name: &str, value: &Value, written: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                write(&format!("{name}[{key}]"), value, written);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                write(&format!("{name}[{at}]"), value, written);
            }
        }
        value => written.push(format!("{name}={}", value.as_str().unwrap_or_default())),
    }
}
