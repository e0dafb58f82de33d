use serde_json::json;

use super::*;

#[test]
fn a_merge_patch_changes_removes_and_keeps() {
    let text =
        "name = \"web\"\ninterval = \"30s\"\n[http]\nurl = \"http://a/\"\nmethod = \"HEAD\"\n";
    let patch = json!({ "interval": null, "http": { "url": "http://b/" }, "confirm": 3 });
    let table = patched(text, &patch).unwrap();
    let expected: toml::Table = toml::from_str(
        "name = \"web\"\nconfirm = 3\n[http]\nurl = \"http://b/\"\nmethod = \"HEAD\"\n",
    )
    .unwrap();
    assert_eq!(table, expected);
}

#[test]
fn json_becomes_the_same_toml() {
    let value = json!({ "name": "a \"b\"\n", "http": "http://a/", "tags": ["x", "y"], "no_data": false, "none": null });
    let table = table_of(&value).unwrap();
    let again: toml::Table = toml::from_str(&table.to_string()).unwrap();
    assert_eq!(table, again);
    assert!(!table.contains_key("none"));
    assert!(table_of(&json!([1])).is_err());
    assert!(table_of(&json!({ "n": 18_446_744_073_709_551_615_u64 })).is_ok());
}

proptest::proptest! {
    /// Accepted definitions come back unchanged, whatever their texts are.
    #[test]
    fn texts_survive_toml(text in ".*") {
        let value = json!({ "name": text, "http": { "url": text } });
        let written = table_of(&value).unwrap().to_string();
        let read: toml::Table = toml::from_str(&written).unwrap();
        proptest::prop_assert_eq!(serde_json::to_value(read).unwrap(), value);
    }
}
