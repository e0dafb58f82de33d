//! Collections of Postman: each saved response answers the request that it was saved for, as mock servers of Postman do.
//!
//! Of several for one request, the one counts whose name or status the client asks for (`x-mock-response-name`,
//! `x-mock-response-code`), else the one with the most parameters that the request has, else the first success.

use std::path::Path;

use plimsoll_formats::Place;
use plimsoll_formats::postman::{PostmanExample, PostmanSegment, parse_collection};
use serde_json::Value;

use super::entry::{Entry, Table};
use super::when::{When, bare_test, test};
use super::{FileRemark, Importer, about, body, is_about_connection};

/// Variables of Postman that are made up, and what they are here.
const MADE_UP: [(&str, &str); 14] = [
    ("$guid", "$uuid"),
    ("$randomUUID", "$uuid"),
    ("$timestamp", "$timestamp"),
    ("$isoTimestamp", "$isoTimestamp"),
    ("$randomInt", "$random.integer(0, 1000)"),
    ("$randomFirstName", "fake.first_name"),
    ("$randomLastName", "fake.last_name"),
    ("$randomFullName", "fake.name"),
    ("$randomEmail", "fake.email"),
    ("$randomUserName", "fake.user"),
    ("$randomCity", "fake.city"),
    ("$randomCountry", "fake.country"),
    ("$randomCompanyName", "fake.company"),
    ("$randomWord", "fake.word"),
];

impl Importer {
    /// The examples of a collection.
    pub(super) fn postman(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let collection = parse_collection(&text).map_err(|reported| {
            let reported = reported.into_iter();
            reported.map(|it| about(path, it)).collect::<Vec<_>>()
        })?;
        for remark in collection.left_out {
            self.note(path, remark);
        }
        let mut examples = collection.examples;
        for example in &examples {
            for asks in [Asks::Name, Asks::Status] {
                if let Some(rule) = rule(example, asks) {
                    self.add(path, &Place::Key(example.place.clone()), rule);
                }
            }
        }
        // A stable order: of the same rank, the first in the file comes first.
        examples.sort_by_key(|example| {
            let is_success = (200..300).contains(&example.status);
            (usize::MAX - example.query.len(), !is_success)
        });
        for example in &examples {
            if let Some(rule) = rule(example, Asks::Nothing) {
                self.add(path, &Place::Key(example.place.clone()), rule);
            }
        }
        Ok(())
    }
}

/// What the client asks for besides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Name,
    Status,
    Nothing,
}

/// The rule of an example; nothing if its name cannot be requested.
fn rule(example: &PostmanExample, asks: Asks) -> Option<Table> {
    let mut when = path(&example.path);
    when.ask(&["method"], example.method.as_str());
    match asks {
        Asks::Name if example.name.is_empty() => return None,
        Asks::Name => when.ask(&["headers", "x-mock-response-name"], example.name.as_str()),
        Asks::Status => {
            let status = example.status.to_string();
            when.ask(&["headers", "x-mock-response-code"], status);
        }
        Asks::Nothing => {}
    }
    if asks == Asks::Nothing {
        for (name, value) in &example.query {
            let test = match value {
                Some(value) => Entry::Text(value.clone()),
                None => bare_test("exists"),
            };
            when.ask(&["query", name], test);
        }
    }
    let mut table = Table::new();
    table.push("when", Entry::Table(when.table()));
    table.push("respond", Entry::Table(respond(example)));
    Some(table)
}

fn path(segments: &[PostmanSegment]) -> When {
    let mut has_places = false;
    let mut path = String::new();
    let mut expression = String::from("^");
    let mut needs_expression = false;
    for segment in segments {
        path.push('/');
        expression.push('/');
        match segment {
            PostmanSegment::Text(text) => {
                needs_expression |= text.contains(['{', '}']);
                path.push_str(text);
                expression.push_str(&regex::escape(text));
            }
            PostmanSegment::Any(name) => {
                has_places = true;
                path.extend(["{", name, "}"]);
                expression.push_str("[^/]+");
            }
        }
    }
    if !has_places {
        let path = if path.is_empty() { "/" } else { &path };
        return When::at_path(&["url_path"], path);
    }
    if needs_expression {
        return When::at_path(&["url_path"], test("regex", expression + "$"));
    }
    When::at_path(&["url_path"], test("pattern", path))
}

fn respond(example: &PostmanExample) -> Table {
    let mut respond = Table::new();
    let mut headers = Table::new();
    let mut kind = None;
    for (name, value) in &example.headers {
        // Contents are saved decoded.
        let is_of_coding = name.eq_ignore_ascii_case("content-encoding");
        if name.eq_ignore_ascii_case("content-type") {
            kind = Some(value.clone());
        } else if !is_about_connection(name) && !is_of_coding {
            headers.push_field(name, Entry::Text(value.clone()));
        }
    }
    let has_content = !matches!(example.status, 204 | 205 | 304) && !example.body.is_empty();
    if example.status != 200 || !has_content {
        respond.push("status", Entry::Whole(i64::from(example.status)));
    }
    if has_content {
        let written = written(&example.body);
        // Bodies of JSON are often saved without their type.
        let is_json = serde_json::from_str::<Value>(&example.body)
            .is_ok_and(|it| it.is_object() || it.is_array());
        let kind = kind.or_else(|| is_json.then(|| "application/json".to_owned()));
        let content = written.as_deref().unwrap_or(&example.body);
        body::push(
            &mut respond,
            &mut headers,
            kind.as_deref(),
            content.as_bytes(),
        );
        if written.is_some() {
            respond.push("template", true);
        }
    }
    if !headers.is_empty() {
        respond.push("headers", Entry::Table(headers));
    }
    respond
}

/// Content with values that are random for each request; `None` if it has no such value, or other variables.
fn written(body: &str) -> Option<String> {
    if !body.contains("{{") {
        return None;
    }
    let mut made = body.to_owned();
    for (theirs, ours) in MADE_UP {
        made = made.replace(&format!("{{{{{theirs}}}}}"), &format!("{{\u{1}{ours}}}}}"));
    }
    if made == body || made.contains("{{") {
        return None;
    }
    Some(made.replace("{\u{1}", "{{"))
}

#[cfg(test)]
mod tests {
    use crate::import::ForeignKind;
    use crate::import::tests::{answered, imported};
    use crate::request::KeptRequest;

    #[test]
    fn examples_answer_as_those_of_postman_do() {
        let collection = r#"{"info": {"name": "c", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
          "item": [
            {"name": "one", "request": {"method": "GET", "url": "{{base}}/users/:id"}, "response": [
              {"name": "missing", "code": 404, "body": "{}"},
              {"name": "found", "code": 200, "body": "{\"id\": \"{{$guid}}\"}"},
              {"name": "full", "code": 203, "originalRequest": {"method": "GET", "url": "{{base}}/users/:id?full=yes"}, "body": "{}"}]},
            {"name": "top", "request": {"method": "DELETE", "url": {"raw": "{{base}}", "host": ["{{base}}"]}}, "response": [{"code": 204, "body": ""}]}]}"#;
        let imported = imported(collection);
        assert_eq!(imported.kind, ForeignKind::Postman);
        assert_eq!(imported.left_out, []);
        for (method, target, field, expected) in [
            ("GET", "/users/7", None, 200),
            ("GET", "/users/7?full=yes", None, 203),
            ("GET", "/users/7?full=no", None, 200),
            (
                "GET",
                "/users/7",
                Some(("x-mock-response-code", "404")),
                404,
            ),
            (
                "GET",
                "/users/7",
                Some(("x-mock-response-name", "full")),
                203,
            ),
            ("GET", "/users", None, 0),
            ("POST", "/users/7", None, 0),
            ("DELETE", "/", None, 204),
        ] {
            let mut request = KeptRequest::made(method, target);
            let fields = field.into_iter();
            request.fields = fields
                .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
                .collect();
            assert_eq!(
                answered(&imported, &request),
                expected,
                "{method} {target} {field:?}"
            );
        }
        let text = imported.text(None);
        assert!(
            text.contains("respond.json = '{\"id\": \"{{$uuid}}\"}'\nrespond.template = true"),
            "{text}"
        );
    }
}
