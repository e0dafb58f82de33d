use std::path::Path;

use serde_json::json;

use super::*;
use crate::config;
use crate::request::KeptRequest;
use crate::store::states::States;

const FILE: &str = r#"
prefix.url_path = "/api"
[[rules]]
id = "first"
when.request.url_path = "/a"
respond.text = "1"
[[rules]]
when.request.url_path = "/b"
respond.text = "2"
"#;

fn layers() -> Layers {
    let mut set = config::parse(FILE, Path::new(".")).unwrap();
    set.name_rules(1);
    Layers::new(Arc::new(MockPlan::of_sets(vec![set])))
}

/// The key of the rule that answers.
fn answering(layers: &Layers, path: &str) -> Option<String> {
    let plan = layers.plan();
    let request = KeptRequest::made("GET", path);
    let (set, rule) = plan.find(&request.view())?;
    Some(plan.sets[set].rules()[rule].key.clone())
}

fn rule(path: &str) -> Value {
    json!({ "when": { "request": { "url_path": path } }, "respond": { "text": "x" } })
}

fn added(path: &str) -> Rule {
    Insertion::alone(None, &States::default())
        .rule(&rule(path))
        .unwrap()
}

#[test]
fn what_was_added_last_is_requested_first_and_a_reset_forgets_it() {
    let mut layers = layers();
    assert_eq!(answering(&layers, "/api/a").as_deref(), Some("first"));
    assert_eq!(answering(&layers, "/api/b").as_deref(), Some("1.2"));
    assert_eq!(layers.add(vec![added("/api/a")]).unwrap(), ["added-1"]);
    assert_eq!(layers.add(vec![added("/api/a")]).unwrap(), ["added-2"]);
    assert_eq!(answering(&layers, "/api/a").as_deref(), Some("added-2"));
    layers.remove("added-2").unwrap();
    assert_eq!(answering(&layers, "/api/a").as_deref(), Some("added-1"));
    layers.reset();
    assert_eq!(answering(&layers, "/api/a").as_deref(), Some("first"));
    // The earlier name is not found any more.
    assert_eq!(layers.add(vec![added("/x")]).unwrap(), ["added-3"]);
}

#[test]
fn rules_of_files_are_changed_and_removed_until_the_files_change() {
    let mut layers = layers();
    layers.change("1.2", &rule("/c")).unwrap();
    assert_eq!(answering(&layers, "/api/b"), None);
    assert_eq!(answering(&layers, "/api/c").as_deref(), Some("1.2"));
    assert!(layers.is_changed("1.2") && !layers.is_changed("first"));
    layers.remove("first").unwrap();
    assert_eq!(answering(&layers, "/api/a"), None);
    let unknown = Err(ChangeError::Unknown("first".to_owned()));
    assert_eq!(layers.remove("first"), unknown);
    assert_eq!(layers.change("first", &rule("/a")), unknown);
    assert!(layers.remove("nothing").is_err());
    let files = self::layers().plan();
    layers.replace(files);
    assert_eq!(answering(&layers, "/api/a").as_deref(), Some("first"));
}

#[test]
fn a_name_is_of_one_rule() {
    let mut layers = layers();
    let mut rule = added("/x");
    rule.id = Some("first".to_owned());
    let taken = ChangeError::Taken("first".to_owned());
    assert_eq!(layers.add(vec![rule]), Err(taken));
    let other = json!({
        "id": "other", "when": { "request": { "url_path": "/" } }, "respond": {}
    });
    let changed = layers.change("first", &other);
    assert!(matches!(changed, Err(ChangeError::Wrong(_))), "{changed:?}");
}

/// A rule that was made of a mapping of WireMock.
fn mapped(name: &str) -> Rule {
    let mut rule = added("/m");
    let mapping = json!({ "id": "76ada7b0-49ae-4229-91c4-396a36f18e09", "name": name });
    rule.id = mapping["id"].as_str().map(str::to_owned);
    rule.mapping = Some(Arc::new(mapping));
    rule
}

fn files_of(rules: Vec<Rule>) -> Arc<MockPlan> {
    let mut set = RuleSet::new(PathBuf::from("m"), None, Strategy::FirstMatch, rules);
    set.name_rules(1);
    Arc::new(MockPlan::of_sets(vec![set]))
}

/// Names of the mappings, in the order in which they are tried.
fn names(layers: &Layers) -> Vec<String> {
    let plan = layers.plan();
    let rules = plan.sets.iter().flat_map(|set| set.rules());
    let mappings = rules.filter_map(|rule| rule.mapping.clone());
    mappings
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_saved_mapping_is_there_once_until_its_file_is_edited() {
    let mut layers = Layers::new(files_of(Vec::new()));
    layers.add(vec![mapped("own")]).unwrap();
    // It was saved, and is read again.
    layers.replace(files_of(vec![mapped("own")]));
    assert_eq!(names(&layers), ["own"]);
    // A change at run time outlives a change of other files.
    let key = mapped("own").id.unwrap();
    layers.put(&key, mapped("changed")).unwrap();
    layers.replace(files_of(vec![mapped("own"), added("/other")]));
    assert_eq!(names(&layers), ["changed"]);
    layers.replace(files_of(vec![mapped("edited")]));
    assert_eq!(names(&layers), ["edited"]);
    // What is removed is not there in its file either.
    layers.replace(files_of(Vec::new()));
    layers.add(vec![mapped("own")]).unwrap();
    layers.replace(files_of(vec![mapped("own")]));
    layers.remove(&key).unwrap();
    assert_eq!(names(&layers), Vec::<String>::new());
}
