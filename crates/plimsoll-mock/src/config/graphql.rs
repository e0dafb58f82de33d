//! `request.graphql`: what a request asks for by GraphQL.

use plimsoll_model::document::Value;

use super::when::field;
use crate::rules::condition::Condition;
use crate::rules::condition::graphql::{Kind, OperationTest};

/// `{ operation, name, fields }`, of which one must be given.
pub(super) fn compile(value: Value<'_>) -> Option<Condition> {
    let mut table = value.table()?;
    let kind = |name: &str| Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kinds = match table.take_value("operation") {
        None => Some(Vec::new()),
        Some(value) => value.texts_with(|name| {
            let known = Kind::ALL.map(Kind::name).join(", ");
            kind(name)
                .is_none()
                .then(|| format!("`{name}` is none of {known}"))
        }),
    };
    let name = match table.take_value("name") {
        None => Some(None),
        Some(value) => field(value).map(Some),
    };
    let fields = match table.take_value("fields") {
        None => Some(Vec::new()),
        Some(value) => value.texts_with(|_| None),
    };
    if !["operation", "name", "fields"]
        .iter()
        .any(|key| table.was_given(key))
    {
        let hint = "such as graphql = { operation = \"query\", name = \"Items\" }";
        table.wrong("no condition", Some(hint.to_owned()));
        table.finish();
        return None;
    }
    table.finish();
    Some(Condition::GraphQl(Box::new(OperationTest {
        kinds: kinds?.iter().filter_map(|name| kind(name)).collect(),
        name: name?,
        fields: fields?,
    })))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;
    use crate::request::KeptRequest;

    const RULES: &str = r#"
[[rules]]
id = "add"
when.request.graphql = { operation = "mutation", name = { op = "starts_with", value = "Add" }, fields = ["addItem"] }
respond.text = "added"

[[rules]]
id = "xml"
when.request.body.xpath."//o:item[@sku='a']" = "1"
when.request.body.xpath."count(//o:item)" = { op = "not_equal", value = "1" }
when.request.body.xpath_namespaces = { o = "urn:order" }
respond.text = "ordered"
"#;

    fn answering(body: &str) -> Option<String> {
        let set = parse(RULES, Path::new(".")).unwrap();
        let mut request = KeptRequest::made("POST", "/");
        request.body = body.as_bytes().to_vec().into();
        let number = set.find(&request.view())?;
        set.rules()[number].id.clone()
    }

    #[test]
    fn operations_and_expressions_choose_rules() {
        let add = r#"{"query":"mutation AddOne { addItem { id } }"}"#;
        assert_eq!(answering(add).as_deref(), Some("add"));
        assert_eq!(answering(&add.replace("AddOne", "One")), None);
        let order = r#"<order xmlns="urn:order"><item sku="a">1</item><item/></order>"#;
        assert_eq!(answering(order).as_deref(), Some("xml"));
        assert_eq!(answering(&order.replace("<item/>", "")), None);
        assert_eq!(answering(&order.replace("urn:order", "urn:other")), None);
    }

    #[test]
    fn mistakes_are_reported() {
        for (wrong, expected) in [
            ("graphql = {}", "no condition"),
            ("graphql.operation = \"read\"", "`read` is none of query"),
            ("graphql.fields = [1]", "text in quotes"),
            ("body.xpath.\"//a[\" = \"1\"", "is no XPath"),
            ("body.xpath.\"//a:b\" = \"1\"", "the prefix `a`"),
            ("body.xpath_namespaces.a = 1", "text in quotes"),
        ] {
            let rule = format!("[[rules]]\nrespond.text = \"a\"\nwhen.request.{wrong}\n");
            let problems = parse(&rule, Path::new(".")).unwrap_err();
            let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
            assert!(
                reported.iter().any(|it| it.contains(expected)),
                "{wrong}: {reported:?}"
            );
        }
    }
}
