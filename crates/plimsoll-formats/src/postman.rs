//! Collections of Postman: requests with their saved responses.
//!
//! Source: the JSON schema of collections, version 2.1, of which that of 2.0 differs in that URLs may be texts.

use serde_json::Value;

use crate::{Place, Remark};

/// A saved response, with the request that it was for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PostmanExample {
    /// Its position in the file.
    pub place: String,
    /// Its name.
    pub name: String,
    /// The method of the request, in capitals.
    pub method: String,
    /// Segments of the path.
    pub path: Vec<PostmanSegment>,
    /// Parameters of the query; one without a value may have any.
    pub query: Vec<(String, Option<String>)>,
    /// From 200 to 599.
    pub status: u16,
    /// Fields of the response.
    pub headers: Vec<(String, String)>,
    /// Its content.
    pub body: String,
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostmanSegment {
    /// This text.
    Text(String),
    /// Any text, by a name.
    Any(String),
}

/// The examples of a collection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PostmanCollection {
    /// In the order of the file.
    pub examples: Vec<PostmanExample>,
    /// Parts of the collection that are left out.
    pub left_out: Vec<Remark>,
}

/// Folders are not looked into deeper.
const DEEPEST: usize = 32;

/// True if a value is a collection, of version 2.
pub fn is_collection(root: &Value) -> bool {
    let schema = root.pointer("/info/schema").and_then(Value::as_str);
    let is_named = schema.is_some_and(|schema| schema.contains("/collection/v2"));
    root.get("item").is_some_and(Value::is_array) && (is_named || root.get("info").is_some())
}

/// Reads a collection.
pub fn parse_collection(text: &str) -> Result<PostmanCollection, Vec<Remark>> {
    let text = text.trim_start_matches('\u{feff}');
    let root: Value = serde_json::from_str(text)
        .map_err(|error| vec![Remark::line(error.line(), format!("is not JSON: {error}"))])?;
    if !is_collection(&root) {
        let message = "is no collection of Postman: there is no list `item`";
        return Err(vec![Remark::whole(message)]);
    }
    let mut reader = Reader {
        variables: variables(&root),
        collection: PostmanCollection::default(),
    };
    reader.items(&root, "item", DEEPEST);
    Ok(reader.collection)
}

struct Reader {
    /// Variables of the collection with their values.
    variables: Vec<(String, String)>,
    collection: PostmanCollection,
}

/// A response whose status no server sends.
#[derive(Debug, thiserror::Error)]
#[error("has no status from 200 to 599")]
struct NoStatus;

impl Reader {
    /// - `at`: the place of the list.
    fn items(&mut self, parent: &Value, at: &str, levels: usize) {
        let items = parent.get("item").and_then(Value::as_array);
        for (number, item) in (1..).zip(items.into_iter().flatten()) {
            let place = format!("{at}[{number}]");
            if item.get("item").is_some() {
                match levels.checked_sub(1) {
                    Some(levels) => self.items(item, &format!("{place}.item"), levels),
                    None => self.left_out(&place, "is nested too deeply"),
                }
                continue;
            }
            let Some(request) = item.get("request") else {
                self.left_out(&place, "is neither a folder nor a request");
                continue;
            };
            let responses = item.get("response").and_then(Value::as_array);
            let responses = responses.map_or(&[][..], Vec::as_slice);
            if responses.is_empty() {
                self.left_out(&place, "has no example, so nothing answers it");
            }
            for (number, response) in (1..).zip(responses) {
                let place = format!("{place}.response[{number}]");
                let request = response.get("originalRequest").unwrap_or(request);
                match self.example(&place, request, response) {
                    Ok(example) => self.collection.examples.push(example),
                    Err(error) => self.left_out(&place, error.to_string()),
                }
            }
        }
    }

    fn left_out(&mut self, at: &str, message: impl Into<String>) {
        let place = Place::Key(at.to_owned());
        self.collection.left_out.push(Remark::new(place, message));
    }

    fn example(
        &self,
        place: &str,
        request: &Value,
        response: &Value,
    ) -> Result<PostmanExample, NoStatus> {
        let status = response.get("code").and_then(Value::as_u64).unwrap_or(200);
        let status = u16::try_from(status)
            .ok()
            .filter(|it| (200..=599).contains(it));
        // A request may be its URL alone.
        let url = request.get("url").unwrap_or(request);
        let (path, query) = self.url(url);
        Ok(PostmanExample {
            place: place.to_owned(),
            name: text_of(response, "name"),
            method: match text_of(request, "method").as_str() {
                "" => "GET".to_owned(),
                method => method.to_ascii_uppercase(),
            },
            path,
            query,
            status: status.ok_or(NoStatus)?,
            headers: pairs(response.get("header")),
            body: self.filled(&text_of(response, "body")),
        })
    }

    /// The path and the query of a URL.
    fn url(&self, url: &Value) -> (Vec<PostmanSegment>, Vec<(String, Option<String>)>) {
        let segments: Vec<String> = match url.get("path") {
            Some(Value::Array(segments)) => {
                let text = |segment: &Value| match segment {
                    Value::String(text) => text.clone(),
                    other => text_of(other, "value"),
                };
                segments.iter().map(text).collect()
            }
            Some(Value::String(path)) => split_path(path),
            _ => split_path(&path_of(raw(url))),
        };
        let query = if let Some(Value::Array(query)) = url.get("query") {
            let enabled = query
                .iter()
                .filter(|it| it.get("disabled") != Some(&Value::Bool(true)));
            let pairs = enabled.map(|it| {
                let value = it.get("value").and_then(Value::as_str);
                (self.filled(&text_of(it, "key")), self.known(value))
            });
            pairs.collect()
        } else {
            let raw = raw(url).split('#').next().unwrap_or_default();
            let query = raw.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter(|pair| !pair.is_empty());
            let pairs = pairs.map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (self.filled(name), self.known(Some(value)))
            });
            pairs.collect()
        };
        let segments = segments.into_iter().map(|segment| self.segment(&segment));
        (segments.collect(), query)
    }

    fn segment(&self, segment: &str) -> PostmanSegment {
        let filled = self.filled(segment);
        let name = filled.strip_prefix(':').map(str::to_owned);
        let has_places = filled.contains("{{");
        if name.is_none() && !has_places {
            return PostmanSegment::Text(filled);
        }
        let is_name = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
        let name: String = name.unwrap_or(filled).chars().filter(is_name).collect();
        PostmanSegment::Any(if name.is_empty() {
            "any".to_owned()
        } else {
            name
        })
    }

    /// A value, unless it is made of variables that the collection does not know.
    fn known(&self, value: Option<&str>) -> Option<String> {
        let filled = self.filled(value?);
        (!filled.is_empty() && !filled.contains("{{")).then_some(filled)
    }

    /// A text with the values of variables of the collection; others stay as they are.
    fn filled(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.variables {
            if filled.contains("{{") {
                filled = filled.replace(&format!("{{{{{name}}}}}"), value);
            }
        }
        filled
    }
}

/// The text of a URL.
fn raw(url: &Value) -> &str {
    let raw = url.as_str().or_else(|| url.get("raw")?.as_str());
    raw.unwrap_or_default()
}

/// The path of a URL, whose server may be a variable.
fn path_of(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.find('/').unwrap_or(rest.len());
    rest.get(at..).unwrap_or_default().to_owned()
}

fn split_path(path: &str) -> Vec<String> {
    let path = path.trim_start_matches('/');
    if path.is_empty() {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

fn text_of(of: &Value, key: &str) -> String {
    match of.get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// Names with values; those that are disabled are left out.
fn pairs(list: Option<&Value>) -> Vec<(String, String)> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let enabled = list.filter(|it| it.get("disabled") != Some(&Value::Bool(true)));
    let pairs = enabled.map(|it| (text_of(it, "key"), text_of(it, "value")));
    pairs
        .filter(|(name, _)| crate::request::is_token(name))
        .collect()
}

fn variables(root: &Value) -> Vec<(String, String)> {
    let list = root.get("variable").and_then(Value::as_array);
    let variables = list.into_iter().flatten().filter_map(|it| {
        let name = it.get("key").or_else(|| it.get("id"))?.as_str()?;
        let value = match it.get("value")? {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        // Without a value it is set elsewhere.
        (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value))
    });
    variables.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_are_found_in_folders() {
        let text = r#"{"info": {"name": "c", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
          "variable": [{"key": "baseUrl", "value": "https://a.example"}, {"key": "v", "value": "v1"}, {"key": "unset", "value": ""}],
          "item": [
            {"name": "folder", "item": [{"name": "one", "request": {"method": "get", "url": "{{baseUrl}}/{{v}}/users/:id?x=1&y={{unset}}"},
              "response": [{"name": "ok", "code": 201, "header": [{"key": "A", "value": "1"}, {"key": "B", "value": "2", "disabled": true}], "body": "{{v}} {{unset}}"},
                {"name": "other", "code": 100}]}]},
            {"name": "bare", "request": "https://a.example/x"},
            {"name": "parts", "request": {"url": {"raw": "ignored", "path": ["a", {"value": "b"}, "{{unset}}"], "query": [{"key": "q", "value": "1", "disabled": true}]}},
              "response": [{"originalRequest": {"method": "POST", "url": {"path": ["c"], "query": [{"key": "q", "value": null}]}}, "body": null}]}]}"#;
        let collection = parse_collection(text).unwrap();
        let any = |name: &str| PostmanSegment::Any(name.to_owned());
        let plain = |text: &str| PostmanSegment::Text(text.to_owned());
        let [first, second] = collection.examples.as_slice() else {
            panic!("{collection:?}");
        };
        assert_eq!(first.path, [plain("v1"), plain("users"), any("id")]);
        assert_eq!(
            first.query,
            [
                ("x".to_owned(), Some("1".to_owned())),
                ("y".to_owned(), None)
            ]
        );
        assert_eq!((first.status, first.headers.len()), (201, 1));
        assert_eq!(
            (first.method.as_str(), first.body.as_str()),
            ("GET", "v1 {{unset}}")
        );
        assert_eq!(
            (second.method.as_str(), second.path.clone()),
            ("POST", vec![plain("c")])
        );
        assert_eq!(second.query, [("q".to_owned(), None)]);
        assert_eq!(collection.left_out.len(), 2, "{:?}", collection.left_out);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\{|\\}|\\[|\\]|,|\"info\":|\"item\":|\"request\":|\"response\":|\"url\":|\"path\":|\"\\{\\{a/?\"|1){0,20}") {
            drop(parse_collection(&text));
        }
    }
}
