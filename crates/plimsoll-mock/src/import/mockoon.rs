//! Environments of Mockoon as rules.

mod endpoint;

mod lookahead;

use std::path::Path;
use std::sync::Arc;

use plimsoll_formats::mockoon::{
    DataBucket, Environment, MockoonBody, MockoonProxy, MockoonResponse, MockoonRoute, MockoonRule,
    parse_environment,
};
use plimsoll_formats::{Place, Remark};
use serde_json::Value;

use self::endpoint::{Endpoint, UnknownSegment};
use super::entry::{Entry, Table};
use super::when::{When, bare_test, test};
use super::{FileRemark, Importer, about, body, inside, is_about_connection, problem_of_callback};
use crate::request::KeptRequest;
use crate::store::collection::{Collection, CollectionError, CollectionOptions, MOST_BYTES};
use crate::template::handlebars::without_unknown_names;
use crate::template::{Chance, Dialect, Form, PlaceError, TextTemplate};

/// Why a route, or a response of it, is no rule.
#[derive(Debug, thiserror::Error)]
enum RouteError {
    #[error("is a CRUD route without a response")]
    NoResponse,
    #[error("is a CRUD route whose content is no data bucket")]
    NoBucket,
    #[error("there is no data `{0}`")]
    UnknownData(String),
    #[error("data `{id}` {cause}")]
    Data { id: String, cause: CollectionError },
    #[error(transparent)]
    Template(#[from] PlaceError),
    #[error(transparent)]
    Segment(#[from] UnknownSegment),
    #[error("the modifier of a rule is a template")]
    ModifierTemplate,
    #[error("`{0}` is not compared with a template here")]
    NotCompared(String),
    #[error("`{0}` is not known here with a template")]
    UnknownWithTemplate(String),
    #[error("`{operator}` of `{target}` is not known here")]
    UnknownOperator { operator: String, target: String },
    #[error("{cause} ({place})")]
    Rule {
        place: String,
        cause: Box<RouteError>,
    },
}

impl Importer {
    /// The routes of an environment.
    pub(super) fn mockoon(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let mut environment = parse_environment(&text).map_err(|reported| {
            reported
                .into_iter()
                .map(|it| about(path, it))
                .collect::<Vec<_>>()
        })?;
        for remark in std::mem::take(&mut environment.left_out) {
            self.note(path, remark);
        }
        for route in &environment.routes {
            if route.kind == "crud" {
                match crud(&environment, route) {
                    Ok(collection) => self
                        .imported
                        .draft
                        .more
                        .push(("[[collections]]", collection)),
                    Err(error) => {
                        let place = Place::Key(route.place.clone());
                        self.note(path, Remark::new(place, error.to_string()));
                    }
                }
                continue;
            }
            let mut notes = Notes::default();
            let directory = self.imported.directory.clone();
            let rules = Maker {
                environment: &environment,
                route,
                directory: &directory,
                notes: &mut notes,
            }
            .rules();
            for (key, message) in notes.0 {
                self.note(path, Remark::new(Place::Key(key), message));
            }
            for (place, rule) in rules {
                self.add(path, &Place::Key(place), rule);
            }
        }
        // Whatever looks up data, which takes less than reading each template again.
        if text.contains("data ") || text.contains("dataRaw ") {
            self.data(path, &environment);
        }
        if let Some(proxy) = &environment.proxy {
            let rule = passed_on(&environment, proxy);
            self.add(path, &Place::Key("proxyHost".to_owned()), rule);
        }
        Ok(())
    }

    /// The data that templates look up.
    fn data(&mut self, path: &Path, environment: &Environment) {
        for (number, bucket) in (1..).zip(&environment.data) {
            let text = match filled(bucket) {
                Ok(text) => text,
                Err(error) => {
                    let place = Place::Key(format!("data[{number}]"));
                    self.note(path, Remark::new(place, error.to_string()));
                    continue;
                }
            };
            let mut table = Table::new();
            table.push("id", bucket.id.as_str());
            table.push("name", bucket.name.as_str());
            table.push("value", text);
            self.imported.draft.more.push(("[[data]]", table));
        }
    }
}

/// The collection of a route that creates, reads, changes and deletes the objects of a data bucket.
fn crud(environment: &Environment, route: &MockoonRoute) -> Result<Table, RouteError> {
    let response = route.responses.iter().find(|it| it.is_default);
    let response = response.or(route.responses.first());
    let response = response.ok_or(RouteError::NoResponse)?;
    let MockoonBody::Data(id) = &response.body else {
        return Err(RouteError::NoBucket);
    };
    let mut buckets = environment.data.iter();
    let bucket = buckets.find(|bucket| bucket.id == *id);
    let bucket = bucket.ok_or_else(|| RouteError::UnknownData(id.clone()))?;
    let text = filled(bucket)?;
    let key = if response.key.is_empty() {
        "id"
    } else {
        &response.key
    };
    let parts = [
        environment.prefix.as_str(),
        route.endpoint.trim_end_matches('/'),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    let options = CollectionOptions {
        path: format!("/{}", parts.join("/")),
        id: key.to_owned(),
        most_bytes: MOST_BYTES,
        kept: None,
        source: None,
    };
    Collection::all_of(options, &text).map_err(|cause| RouteError::Data {
        id: id.clone(),
        cause,
    })?;
    let mut table = Table::new();
    table.push("path", format!("/{}", parts.join("/")));
    table.push("id", key);
    table.push("data", text);
    Ok(table)
}

/// The text of a data bucket, whose places are filled once, before any request.
fn filled(bucket: &DataBucket) -> Result<String, PlaceError> {
    if !bucket.value.contains("{{") {
        return Ok(bucket.value.clone());
    }
    let written = template(&bucket.value)?;
    Ok(written.fill(&KeptRequest::made("GET", "/").view()))
}

/// A template; names alone that are not known are nothing.
fn template(text: &str) -> Result<TextTemplate, PlaceError> {
    let (chance, data) = (Chance::default(), Arc::default());
    let (text, _) = without_unknown_names(text, Dialect::Mockoon);
    TextTemplate::foreign(&text, Dialect::Mockoon, Form::Text, &chance, &[], &data)
}

/// The rule for what no route answers, behind all others.
fn passed_on(environment: &Environment, proxy: &MockoonProxy) -> Table {
    let table = |fields: &[(String, String)]| {
        let mut table = Table::new();
        for (name, value) in fields.iter().filter(|(name, _)| !is_about_connection(name)) {
            table.remove(name);
            table.push(name.as_str(), value.as_str());
        }
        table
    };
    let mut to = Table::new();
    to.push("to", proxy.url.as_str());
    if proxy.strips_prefix && !environment.prefix.is_empty() {
        to.push("strip", format!("/{}", environment.prefix));
    }
    let headers = table(&proxy.request_headers);
    if !headers.is_empty() {
        to.push("headers", Entry::Table(headers));
    }
    let mut respond = Table::new();
    respond.push("proxy", Entry::Braces(to));
    let headers = table(&proxy.response_headers);
    if !headers.is_empty() {
        respond.push("headers", Entry::Table(headers));
    }
    if environment.latency > 0 {
        respond.push("delay", format!("{}ms", environment.latency));
    }
    rule(
        When::at_path(&["url_path"], test("starts_with", "/")),
        respond,
    )
}

/// Keys with what of them is not carried over.
#[derive(Default)]
struct Notes(Vec<(String, String)>);

/// Makes the rules of one route.
struct Maker<'m> {
    environment: &'m Environment,
    route: &'m MockoonRoute,
    directory: &'m Path,
    notes: &'m mut Notes,
}

impl Maker<'_> {
    fn note(&mut self, place: &str, message: impl Into<String>) {
        self.notes.0.push((place.to_owned(), message.into()));
    }

    fn rules(&mut self) -> Vec<(String, Table)> {
        let place = self.route.place.clone();
        if self.route.kind != "http" {
            let message = format!("is a route of the kind `{}`", self.route.kind);
            self.note(&place, message + ", which is not carried over");
            return Vec::new();
        }
        let endpoint = match self.endpoint() {
            Ok(endpoint) => endpoint,
            Err(error) => {
                self.note(&place, error.to_string());
                return Vec::new();
            }
        };
        let base = endpoint.when(&self.route.method);
        let responses: Vec<(String, &MockoonResponse)> = (1..)
            .zip(&self.route.responses)
            .map(|(number, it)| (format!("{place}.responses[{number}]"), it))
            .collect();
        if matches!(self.route.mode.as_str(), "SEQUENTIAL" | "RANDOM") {
            return self.in_turn(&place, base, &responses);
        }
        let mut rules = Vec::new();
        if self.route.mode != "DISABLE_RULES" {
            for (at, response) in &responses {
                if response.rules.is_empty() {
                    continue;
                }
                match self.conditions(&endpoint, at, response) {
                    Ok(conditions) => {
                        let mut when = base.clone();
                        when.and(conditions);
                        let respond = self.respond(at, response);
                        let callbacks = self.callbacks(at, response);
                        let rule = respond.map(|it| self.rule(when, it, callbacks));
                        rules.extend(rule.map(|it| (at.clone(), it)));
                    }
                    Err(reason) => {
                        self.note(at, format!("{reason}, so the response is left out"));
                    }
                }
            }
        }
        if self.route.mode != "FALLBACK" {
            let chosen = responses.iter().find(|(_, response)| response.is_default);
            if let Some((at, response)) = chosen.or(responses.first()) {
                let respond = self.respond(at, response);
                let callbacks = self.callbacks(at, response);
                let rule = respond.map(|it| self.rule(base, it, callbacks));
                rules.extend(rule.map(|it| (at.clone(), it)));
            }
        }
        rules
    }

    /// All responses, one after the other.
    fn in_turn(
        &mut self,
        place: &str,
        base: When,
        responses: &[(String, &MockoonResponse)],
    ) -> Vec<(String, Table)> {
        if self.route.mode == "RANDOM" {
            self.note(place, "the responses come in turn, not by chance");
        }
        if responses
            .iter()
            .any(|(_, response)| !response.callbacks.is_empty())
        {
            self.note(
                place,
                "nothing is called back by responses that come in turn",
            );
        }
        let replies = responses.iter();
        let replies = replies.filter_map(|(at, response)| self.respond(at, response));
        let replies: Vec<Entry> = replies.map(Entry::Braces).collect();
        if replies.is_empty() {
            return Vec::new();
        }
        let mut respond = Table::new();
        respond.push("sequence", Entry::List(replies));
        respond.push("then", "first");
        vec![(place.to_owned(), rule(base, respond))]
    }

    fn endpoint(&self) -> Result<Endpoint, UnknownSegment> {
        let parts = [self.environment.prefix.as_str(), &self.route.endpoint];
        let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        Endpoint::new(&format!("/{}", parts.join("/")))
    }

    fn conditions(
        &self,
        endpoint: &Endpoint,
        at: &str,
        response: &MockoonResponse,
    ) -> Result<When, RouteError> {
        let conditions = (1..).zip(&response.rules).map(|(number, rule)| {
            let condition = self.condition(endpoint, rule);
            condition.map_err(|cause| RouteError::Rule {
                place: format!("{at}.rules[{number}]"),
                cause: Box::new(cause),
            })
        });
        let conditions: Vec<When> = conditions.collect::<Result<_, _>>()?;
        Ok(if response.needs_one {
            When::any_of(conditions)
        } else {
            When::all_of(conditions)
        })
    }

    fn condition(&self, endpoint: &Endpoint, rule: &MockoonRule) -> Result<When, RouteError> {
        let is_template = ["templating", "global_var", "data_bucket"]
            .contains(&rule.target.as_str())
            || rule.value.contains("{{")
            || rule.modifier.contains("{{");
        let condition = if is_template {
            template_condition(rule)?
        } else {
            self.bare_condition(endpoint, rule)?
        };
        Ok(if rule.invert {
            When::not(condition)
        } else {
            condition
        })
    }

    fn bare_condition(&self, endpoint: &Endpoint, rule: &MockoonRule) -> Result<When, RouteError> {
        if matches!(rule.operator.as_str(), "regex" | "regex_i")
            && let Some((tests, rest)) = lookahead::split(&rule.value)
        {
            let with = |value: String| {
                let rule = MockoonRule {
                    value,
                    ..rule.clone()
                };
                self.bare_condition(endpoint, &rule)
            };
            let mut all = vec![with(rest)?];
            for test in tests {
                let condition = with(test.pattern)?;
                all.push(if test.is_negative {
                    When::not(condition)
                } else {
                    condition
                });
            }
            return Ok(When::all_of(all));
        }
        let modifier = rule.modifier.as_str();
        let unknown = || RouteError::UnknownOperator {
            operator: rule.operator.clone(),
            target: rule.target.clone(),
        };
        match (rule.target.as_str(), modifier) {
            ("query" | "header" | "cookie", name) if !name.is_empty() => {
                let place = match rule.target.as_str() {
                    "query" => "query",
                    "header" => "headers",
                    _ => "cookies",
                };
                text_condition(&[place, name], rule).ok_or_else(unknown)
            }
            ("body", "") if rule.operator == "valid_json_schema" => {
                let schema = self.bucket(&rule.value);
                let schema = schema.ok_or_else(|| RouteError::UnknownData(rule.value.clone()))?;
                let value = schema.value.as_str();
                Ok(When::at_path(&["body", "schema"], value))
            }
            ("body", "") if rule.operator == "equals" && rule.value.is_empty() => {
                Ok(no_text(&["body", "text"]))
            }
            ("body", "") => text_condition(&["body", "text"], rule).ok_or_else(unknown),
            ("body", path) => body_condition(path, rule).ok_or_else(unknown),
            ("params", name) => endpoint.param(name, rule).ok_or_else(unknown),
            ("path", "") => match rule.operator.as_str() {
                "equals" => Ok(When::at_path(&["raw_path"], rule.value.as_str())),
                "regex" => Ok(When::at_path(
                    &["raw_path"],
                    test("regex", rule.value.as_str()),
                )),
                _ => Err(unknown()),
            },
            ("request_number", _) => {
                let mut number = Table::new();
                number.push("scenario", self.counter());
                number.push(
                    "op",
                    if rule.operator == "equals" {
                        "equal"
                    } else {
                        "regex"
                    },
                );
                let value = match rule.operator.as_str() {
                    "equals" | "regex" => rule.value.clone(),
                    "regex_i" => format!("(?i){}", rule.value),
                    _ => return Err(unknown()),
                };
                number.push("value", value);
                Ok(When::at_path(&["number"], Entry::Braces(number)))
            }
            ("method", _) if rule.operator == "equals" => {
                let method = rule.value.to_ascii_uppercase();
                Ok(When::at_path(&["method"], method))
            }
            _ => Err(unknown()),
        }
    }

    /// The scenario that counts the requests of the route.
    fn counter(&self) -> String {
        format!("requests of {}", self.route.place)
    }

    /// Whether a rule of the route looks at how many requests there were.
    fn is_counted(&self) -> bool {
        let mut rules = self.route.responses.iter().flat_map(|it| &it.rules);
        rules.any(|rule| rule.target == "request_number")
    }

    /// A rule of the route.
    fn rule(&self, when: When, respond: Table, callbacks: Vec<Entry>) -> Table {
        let mut rule = rule(when, respond);
        if !callbacks.is_empty() {
            rule.push("callbacks", Entry::List(callbacks));
        }
        if self.is_counted() {
            let mut scenario = Table::new();
            scenario.push("name", self.counter());
            scenario.push("count", true);
            rule.push("scenario", Entry::Braces(scenario));
        }
        rule
    }

    /// What a response sends once it has been sent itself.
    fn callbacks(&mut self, at: &str, response: &MockoonResponse) -> Vec<Entry> {
        let mut callbacks = Vec::new();
        for (id, latency) in &response.callbacks {
            let environment = self.environment;
            let Some(callback) = environment.callbacks.iter().find(|it| it.id == *id) else {
                self.note(at, format!("there is no callback `{id}`"));
                continue;
            };
            let mut table = Table::new();
            table.push("url", callback.url.as_str());
            table.push("method", callback.method.as_str());
            let mut headers = Table::new();
            for (name, value) in &callback.headers {
                if !is_about_connection(name) {
                    headers.remove_field(name);
                    headers.push(name.as_str(), value.as_str());
                }
            }
            if !headers.is_empty() {
                table.push("headers", Entry::Braces(headers));
            }
            match &callback.body {
                MockoonBody::Text(text) if text.is_empty() => {}
                MockoonBody::Text(text) => table.push("text", text.as_str()),
                MockoonBody::Data(id) => match self.bucket(id) {
                    Some(bucket) => table.push("text", bucket.value.clone()),
                    None => self.note(at, format!("there is no data `{id}`")),
                },
                MockoonBody::File(_) => {
                    self.note(at, "the content of a callback is a file, which is not sent");
                }
            }
            if *latency > 0 {
                table.push("delay", format!("{latency}ms"));
            }
            if table.lines("").contains("{{") {
                table.push("template", "mockoon");
            }
            let callback = Entry::Braces(table);
            match problem_of_callback(&callback, self.directory) {
                None => callbacks.push(callback),
                Some(problem) => self.note(at, problem),
            }
        }
        callbacks
    }

    fn bucket(&self, id: &str) -> Option<&DataBucket> {
        let mut data = self.environment.data.iter();
        data.find(|bucket| bucket.id == id || bucket.name == id)
    }

    fn respond(&mut self, at: &str, response: &MockoonResponse) -> Option<Table> {
        let mut respond = Table::new();
        let mut has_places = false;
        let mut headers = Table::new();
        let fields = self.environment.headers.iter().chain(&response.headers);
        for (name, value) in fields {
            if is_about_connection(name) {
                self.note(
                    &format!("{at}.headers"),
                    format!("`{name}` is set by the server"),
                );
                continue;
            }
            has_places |= !response.is_plain && value.contains("{{");
            headers.remove_field(name);
            headers.push(name.as_str(), value.as_str());
        }
        let mut kind = headers.field("content-type").map(str::to_owned);
        if kind.is_none() && !matches!(response.body, MockoonBody::File(_)) {
            // As there, where Express sends it.
            headers.push("content-type", "text/html; charset=utf-8");
        }
        let mut text = match &response.body {
            MockoonBody::Text(text) => Some(text.clone()),
            MockoonBody::Data(id) => {
                if let Some(bucket) = self.bucket(id) {
                    Some(bucket.value.clone())
                } else {
                    self.note(at, format!("there is no data `{id}`"));
                    Some(String::new())
                }
            }
            MockoonBody::File(_) => None,
        };
        if !response.is_plain
            && let Some(text) = text.as_mut().filter(|text| text.contains("{{"))
            && let Err(reason) = template(text)
        {
            // Mockoon answers the same way, with the status of the response.
            self.note(at, format!("{reason}, so the response says so"));
            *text = format!("Error while serving the content: {reason}");
            headers.remove_field("content-type");
            headers.push("content-type", "text/plain");
            kind = Some("text/plain".to_owned());
        }
        let mut has_content = true;
        let may_have_content = !matches!(response.status, 204 | 205 | 304);
        match (text, &response.body) {
            (Some(text), _) if !may_have_content && !text.is_empty() => {
                let message = format!(
                    "the body is dropped: a response of status {} has none",
                    response.status
                );
                self.note(at, message);
                has_content = false;
            }
            (None, MockoonBody::File(_)) if !may_have_content => has_content = false,
            (Some(text), _) if text.is_empty() => has_content = false,
            (Some(text), _) => {
                let is_template = !response.is_plain && text.contains("{{");
                has_places |= is_template;
                let is_json = kind.as_deref().is_some_and(body::is_json);
                let is_whole = serde_json::from_str::<Value>(&text).is_ok();
                let key = if is_json && (is_whole || is_template) {
                    "json"
                } else {
                    "text"
                };
                respond.push(key, text);
            }
            (None, MockoonBody::File(name)) => {
                // Files are relative to the one of the environment.
                if let Err(reason) = inside(self.directory, name) {
                    self.note(at, format!("{reason}, so the response is left out"));
                    return None;
                }
                respond.push("file_path", name.as_str());
            }
            (None, _) => has_content = false,
        }
        if response.status != 200 || !has_content {
            respond.push("status", Entry::Whole(i64::from(response.status)));
        }
        if !headers.is_empty() {
            respond.push("headers", Entry::Table(headers));
        }
        if has_places {
            respond.push("template", "mockoon");
        }
        let latency = response.latency + self.environment.latency;
        if latency > 0 {
            respond.push("delay", format!("{latency}ms"));
        }
        Some(respond)
    }
}

fn rule(when: When, respond: Table) -> Table {
    let mut rule = Table::new();
    rule.push("when", Entry::Table(when.table()));
    rule.push("respond", Entry::Table(respond));
    rule
}

/// A rule with templates as a condition on what they come to.
fn template_condition(rule: &MockoonRule) -> Result<When, RouteError> {
    let left = match rule.target.as_str() {
        "templating" => rule.modifier.clone(),
        _ if rule.modifier.contains("{{") || rule.modifier.contains('\'') => {
            return Err(RouteError::ModifierTemplate);
        }
        "body" => format!("{{{{body '{}'}}}}", rule.modifier),
        "query" => format!("{{{{queryParam '{}'}}}}", rule.modifier),
        "header" => format!("{{{{header '{}'}}}}", rule.modifier),
        "cookie" => format!("{{{{cookie '{}'}}}}", rule.modifier),
        "method" => "{{method}}".to_owned(),
        "global_var" | "data_bucket" => {
            let helper = if rule.target == "global_var" {
                "getGlobalVar"
            } else {
                "data"
            };
            let (name, path) = rule
                .modifier
                .split_once('.')
                .unwrap_or((&rule.modifier, ""));
            format!("{{{{{helper} '{name}' '{path}'}}}}")
        }
        other => return Err(RouteError::NotCompared(other.to_owned())),
    };
    let mut test = Table::new();
    test.push("dialect", "mockoon");
    test.push("text", left);
    match rule.operator.as_str() {
        "equals" if rule.value.contains("{{") => test.push("same", rule.value.as_str()),
        "equals" => test.push("value", rule.value.as_str()),
        "regex" | "regex_i" if !rule.value.contains("{{") => {
            let flags = if rule.operator == "regex_i" {
                "(?i)"
            } else {
                ""
            };
            test.push("op", "regex");
            test.push("value", format!("{flags}{}", rule.value));
        }
        other => return Err(RouteError::UnknownWithTemplate(other.to_owned())),
    }
    let mut when = When::at_path(&["template"], Entry::Braces(test));
    // What is missing is equal to nothing, not even to an empty text.
    match rule.target.as_str() {
        "body" if !rule.modifier.is_empty() => {
            let path = json_path(&rule.modifier);
            let mut exists = vec![When::at_path(&path, bare_test("exists"))];
            exists.extend(
                form_name(&rule.modifier)
                    .map(|name| When::at_path(&["form", name], bare_test("exists"))),
            );
            when.and(When::any_of(exists));
        }
        "query" => when.ask(&["query", &rule.modifier], bare_test("exists")),
        "header" => when.ask(&["headers", &rule.modifier], bare_test("exists")),
        "cookie" => when.ask(&["cookies", &rule.modifier], bare_test("exists")),
        _ => {}
    }
    Ok(when)
}

/// A condition on a text that may be missing.
fn text_condition(path: &[&str], rule: &MockoonRule) -> Option<When> {
    let value = rule.value.as_str();
    Some(match rule.operator.as_str() {
        "equals" | "array_includes" => When::at_path(path, value),
        "regex" => When::at_path(path, test("regex", value)),
        "regex_i" => When::at_path(path, test("regex", format!("(?i){value}"))),
        "null" => no_text(path),
        _ => return None,
    })
}

/// A condition on a text that is missing or empty.
fn no_text(path: &[&str]) -> When {
    When::any_of(vec![
        When::at_path(path, bare_test("absent")),
        When::at_path(path, ""),
    ])
}

/// A condition on a value of the content, which is JSON or a form.
fn body_condition(modifier: &str, rule: &MockoonRule) -> Option<When> {
    let json = json_condition(modifier, rule)?;
    let form = form_name(modifier).and_then(|name| text_condition(&["form", name], rule));
    Some(match (form, rule.operator.as_str()) {
        (None, _) => json,
        // It is missing in both: content is at most one of the two.
        (Some(form), "null") => When::all_of(vec![json, form]),
        (Some(form), _) => When::any_of(vec![json, form]),
    })
}

/// The name of a form's field, if a modifier can be one.
fn form_name(modifier: &str) -> Option<&str> {
    let is_name = !modifier.is_empty() && !modifier.contains(['$', '.', '[', '\\']);
    is_name.then_some(modifier)
}

/// Where a modifier leads in content of JSON.
fn json_path(modifier: &str) -> [&str; 3] {
    if modifier.starts_with('$') {
        ["body", "jsonpath", modifier]
    } else {
        ["body", "json", modifier]
    }
}

/// A condition on a value of JSON.
fn json_condition(modifier: &str, rule: &MockoonRule) -> Option<When> {
    let path = json_path(modifier);
    let value = rule.value.as_str();
    Some(match rule.operator.as_str() {
        // There null is an empty text, and of a list one element is enough; each is compared as text.
        "equals" | "array_includes" => {
            let text = Value::from(value).to_string();
            let mut any = vec![
                When::at_path(&path, test("array_contains", value)),
                When::at_path(&path, test("array_contains", text)),
            ];
            if rule.operator == "equals" {
                any.insert(0, When::at_path(&path, value));
                if value.is_empty() {
                    any.push(When::at_path(&path, test("equal_typed", "null")));
                }
            }
            When::any_of(any)
        }
        "regex" => When::at_path(&path, test("regex", value)),
        "regex_i" => When::at_path(&path, test("regex", format!("(?i){value}"))),
        "null" => When::any_of(vec![
            When::not(When::at_path(&path, bare_test("exists"))),
            When::at_path(&path, test("equal_typed", "null")),
            When::at_path(&path, test("equal_string", "")),
        ]),
        "empty_array" => When::at_path(&path, test("array_length_equal", "0")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
