//! Tests of operations of GraphQL, as clients send them over HTTP: in JSON, as `application/graphql`, or in the query.
//!
//! Source: GraphQL specification, October 2021, section 2; GraphQL over HTTP, sections 5 and 6.

use std::collections::{HashMap, HashSet};
use std::fmt;

use apollo_parser::Parser;
use apollo_parser::cst::{
    Definition, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
};

use super::field::FieldTest;
use crate::request::{RequestView, values};

/// Longer documents do not match: the largest generated queries have some 100 KiB.
const LONGEST: usize = 256 << 10;

/// Nor are those with more words and signs, or with more sets of fields in each other.
const MOST_TOKENS: usize = 20_000;
const DEEPEST: usize = 100;

/// The types of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Query,
    /// It changes.
    Mutation,
    /// It is a stream of events.
    Subscription,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Query, Self::Mutation, Self::Subscription];

    /// As documents and files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        }
    }
}

/// The operation that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The type of the operation.
    pub kind: Kind,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The fields at its top, by their names and not their aliases; those of fragments too.
    pub fields: Vec<String>,
}

/// A test of an operation; all parts that are given must be met.
#[derive(Debug, Clone, Default)]
pub struct OperationTest {
    /// One of these, if there are any.
    pub kinds: Vec<Kind>,
    /// Its name.
    pub name: Option<FieldTest>,
    /// All of these are at its top.
    pub fields: Vec<String>,
}

impl OperationTest {
    /// Whether an operation meets it.
    pub fn is_met_by(&self, operation: &Operation) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&operation.kind);
        let is_named = self
            .name
            .as_ref()
            .is_none_or(|test| test.is_met_by_any(operation.name.as_deref().into_iter()));
        is_kind && is_named && self.fields.iter().all(|it| operation.fields.contains(it))
    }
}

impl fmt::Display for OperationTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
        let mut parts = Vec::new();
        if !kinds.is_empty() {
            parts.push(kinds.join(" or "));
        }
        if let Some(test) = &self.name {
            parts.push(format!("name {test}"));
        }
        if !self.fields.is_empty() {
            parts.push(format!("fields {}", self.fields.join(", ")));
        }
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        write!(f, " {{ {} }}", self.fields.join(", "))
    }
}

/// The operation that a request asks for, if it does.
pub(crate) fn operation(request: &RequestView<'_>) -> Option<Operation> {
    if request.body.is_empty() {
        let query = values(request.parameters(), "query").next()?;
        let name = values(request.parameters(), "operationName").next();
        return parsed(query, name);
    }
    let kind = request.header_text("content-type").unwrap_or_default();
    if kind.to_ascii_lowercase().starts_with("application/graphql") && request.json().is_none() {
        return parsed(std::str::from_utf8(request.body).ok()?, None);
    }
    let json = request.json()?;
    let name = json.get("operationName").and_then(|name| name.as_str());
    parsed(json.get("query")?.as_str()?, name)
}

/// The operation of a document with that name; without a name, its only one.
fn parsed(text: &str, wanted: Option<&str>) -> Option<Operation> {
    if text.len() > LONGEST {
        return None;
    }
    let tree = Parser::new(text)
        .recursion_limit(DEEPEST)
        .token_limit(MOST_TOKENS)
        .parse();
    if tree.errors().len() > 0 {
        return None;
    }
    let definitions: Vec<_> = tree.document().definitions().collect();
    let operations = definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::OperationDefinition(operation) => Some(operation),
            _ => None,
        });
    let name = |operation: &OperationDefinition| Some(operation.name()?.text().to_string());
    let wanted = wanted.filter(|name| !name.is_empty());
    let mut matching = operations.filter(|it| wanted.is_none() || name(it).as_deref() == wanted);
    let operation = matching.next()?;
    if matching.next().is_some() {
        return None;
    }
    let kind = match operation.operation_type() {
        Some(kind) if kind.mutation_token().is_some() => Kind::Mutation,
        Some(kind) if kind.subscription_token().is_some() => Kind::Subscription,
        // A set of fields alone is a query.
        Some(_) | None => Kind::Query,
    };
    let mut collector = Collector::from_definitions(&definitions);
    collector.collect(operation.selection_set().as_ref());
    Some(Operation {
        kind,
        name: name(operation),
        fields: collector.fields,
    })
}

/// Gathers the names of fields of a set, and of the fragments in it.
#[derive(Default)]
struct Collector<'d> {
    fragments: HashMap<String, &'d FragmentDefinition>,
    /// Each is looked at but once, so that none that names itself is without end.
    seen_fragments: HashSet<String>,
    seen_fields: HashSet<String>,
    fields: Vec<String>,
}

impl<'d> Collector<'d> {
    fn from_definitions(definitions: &'d [Definition]) -> Self {
        let mut fragments = HashMap::new();
        for definition in definitions {
            if let Definition::FragmentDefinition(fragment) = definition
                && let Some(name) = fragment.fragment_name().and_then(|it| it.name())
            {
                fragments.entry(name.text().to_string()).or_insert(fragment);
            }
        }
        Self {
            fragments,
            ..Self::default()
        }
    }

    fn collect(&mut self, set: Option<&SelectionSet>) {
        for selection in set.into_iter().flat_map(SelectionSet::selections) {
            match selection {
                Selection::Field(field) => {
                    let name = field.name().map(|name| name.text().to_string());
                    let new = name.filter(|name| self.seen_fields.insert(name.clone()));
                    self.fields.extend(new);
                }
                Selection::InlineFragment(fragment) => {
                    self.collect(fragment.selection_set().as_ref());
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name().and_then(|it| it.name());
                    let name = name.map(|name| name.text().to_string());
                    let Some(name) = name.filter(|it| self.seen_fragments.insert(it.clone()))
                    else {
                        continue;
                    };
                    let fragment = self.fragments.get(&name);
                    let set = fragment.and_then(|it| it.selection_set());
                    self.collect(set.as_ref());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::KeptRequest;

    fn operation_of_body(body: &str) -> Option<Operation> {
        let mut request = KeptRequest::made("POST", "/graphql");
        request.body = body.as_bytes().to_vec().into();
        operation(&request.view())
    }

    fn document(text: &str) -> Option<Operation> {
        operation_of_body(&serde_json::json!({ "query": text }).to_string())
    }

    #[test]
    fn operations_are_found_wherever_they_stand() {
        let found = document("mutation Add($id: ID!) { added: addItem(id: $id) { id } total }");
        let expected = Operation {
            kind: Kind::Mutation,
            name: Some("Add".to_owned()),
            fields: vec!["addItem".to_owned(), "total".to_owned()],
        };
        assert_eq!(found.as_ref(), Some(&expected));
        assert_eq!(expected.to_string(), "mutation Add { addItem, total }");
        assert_eq!(document("{ a }").unwrap().kind, Kind::Query);
        let two = r#"{"query":"query A { a } query B { b }","operationName":"B"}"#;
        assert_eq!(operation_of_body(two).unwrap().fields, ["b"]);
        assert_eq!(document("query A { a } query B { b }"), None);

        let target = "/graphql?query=subscription%20S%20%7B%20s%20%7D&operationName=S";
        let request = KeptRequest::made("GET", target);
        assert_eq!(operation(&request.view()).unwrap().kind, Kind::Subscription);
        let mut request = KeptRequest::made("POST", "/");
        let field = ("content-type".to_owned(), b"application/graphql".to_vec());
        request.fields.push(field);
        request.body = "{ plain }".into();
        assert_eq!(operation(&request.view()).unwrap().fields, ["plain"]);
    }

    #[test]
    fn fragments_belong_to_the_set_that_they_stand_in() {
        let text = "query Q { a ...F ... on T { b } } fragment F on T { c ...G } fragment G on T { d ...F }";
        let mut fields = document(text).unwrap().fields;
        fields.sort();
        assert_eq!(fields, ["a", "b", "c", "d"]);
    }

    #[test]
    fn fields_are_named_once_in_their_order() {
        // Within the limit on words, and far too many to compare each with all others.
        let names: Vec<String> = (0..9_000).map(|it| format!("f{it}")).collect();
        let text = format!("{{ {} f0 f1 }}", names.join(" "));
        assert_eq!(document(&text).unwrap().fields, names);
        // As many fragments, each spread once.
        let fragments = (0..1_000)
            .map(|it| format!("fragment F{it} on T {{ f{it} }} "))
            .collect::<Vec<_>>()
            .concat();
        let spreads = (0..1_000)
            .map(|it| format!("...F{it} "))
            .collect::<Vec<_>>()
            .concat();
        let found = document(&format!("{{ {spreads} }} {fragments}")).unwrap();
        assert_eq!(found.fields, names[..1_000]);
    }

    #[test]
    fn what_is_none_has_no_operation() {
        for text in [
            "",
            "{",
            "query",
            "type A { a: Int }",
            "fragment F on T { a }",
        ] {
            assert_eq!(document(text), None, "{text}");
        }
        assert_eq!(operation_of_body("{}"), None);
        assert_eq!(operation_of_body("[1]"), None);
        assert_eq!(operation_of_body("{\"query\":1}"), None);
        let deep = "{a".repeat(5000) + &"}".repeat(5000);
        assert_eq!(document(&deep), None);
        let long = format!("{{ {} }}", "a ".repeat(30_000));
        assert_eq!(document(&long), None);
    }

    #[test]
    fn every_part_that_is_given_counts() {
        let operation = document("query Items { items shops }").unwrap();
        let test = |kinds: &[Kind], fields: &[&str]| OperationTest {
            kinds: kinds.to_vec(),
            name: None,
            fields: fields.iter().map(ToString::to_string).collect(),
        };
        assert!(test(&[], &["shops"]).is_met_by(&operation));
        assert!(test(&[Kind::Mutation, Kind::Query], &[]).is_met_by(&operation));
        assert!(!test(&[Kind::Mutation], &[]).is_met_by(&operation));
        assert!(!test(&[], &["items", "users"]).is_met_by(&operation));
    }
}
