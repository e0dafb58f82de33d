//! Mappings of WireMock as rules.

mod respond;

mod state;

use std::path::Path;

use crate::rules::condition::ANY;
use plimsoll_formats::wiremock::{
    FieldPlace, Mapping, MappingBody, MappingPart, MappingUrl, NumberOrder, Pattern, TimeOptions,
    TimeOrder, Webhook, parse_mapping,
};
use plimsoll_formats::{Place, Remark};
use serde_json::Value;

use self::respond::respond;
use super::entry::{Entry, Table};
use super::when::{When, bare_test, test, whole};
use super::{is_about_connection, problem_of_callback};
use crate::config;
use crate::rules::Rule;
use crate::rules::java_regex::{self, JavaRegexError};
use crate::rules::path::decoded;
use crate::store::states::States;

/// A mapping as a rule.
#[derive(Debug)]
pub struct Stub {
    /// Ready to answer.
    pub rule: Rule,
    /// The same as it stands in a file of rules.
    pub text: String,
    /// The parts of the mapping that it does not carry.
    pub left_out: Vec<Remark>,
}

/// The rule of one mapping; fails with what keeps it from being one.
///
/// - `files`: what `bodyFileName` is relative to, and must not lead out of.
/// - `states`: where the states of scenarios lie.
pub fn stub(mapping: Value, files: &Path, states: &States) -> Result<Stub, Vec<Remark>> {
    let (mapping, mut left_out) = parse_mapping(mapping)?;
    let mut notes = Vec::new();
    let table = rule(&mapping, files, &mut notes).map_err(|remark| vec![remark])?;
    left_out.append(&mut notes);
    let text = table.lines("[[rules]]");
    let rules = config::compile_rules(&text, files, states).map_err(|problems| {
        let remark = |problem: &config::FileProblem| Remark::whole(super::reason(problem));
        problems.iter().map(remark).collect::<Vec<_>>()
    })?;
    match rules.into_iter().next() {
        Some(rule) => Ok(Stub {
            rule,
            text,
            left_out,
        }),
        None => Err(vec![Remark::whole("became no rule")]),
    }
}

/// The rule of a mapping as TOML, and what of it that does not carry.
pub(super) fn rule(
    mapping: &Mapping,
    files: &Path,
    notes: &mut Vec<Remark>,
) -> Result<Table, Remark> {
    let mut rule = Table::new();
    if let Some(name) = &mapping.name {
        rule.push("id", name.as_str());
    }
    // There 1 is the highest and 5 what everything has; here the higher comes first, and everything has 0.
    if mapping.priority != 5 {
        rule.push("priority", Entry::Whole(5 - mapping.priority));
    }
    rule.push("when", Entry::Table(conditions(mapping)?.table()));
    let mut respond = respond(&mapping.response, files, notes)?;
    state::change(
        &mut respond,
        &mapping.state_changes,
        mapping.response.has_places,
    )?;
    let name = mapping.source.get("name").and_then(Value::as_str);
    let is_visible = |name: &&str| name.bytes().all(|it| (b' '..=b'~').contains(&it));
    if let (Some(name), None) = (name.filter(is_visible), &mapping.response.fault) {
        // A mapping may have a field of that name.
        respond
            .place(&["headers", "Matched-Stub-Name"], name.into())
            .ok();
    }
    rule.push("respond", Entry::Table(respond));
    let mut callbacks = Vec::new();
    for webhook in &mapping.webhooks {
        let callback = callback(webhook);
        match problem_of_callback(&callback, files) {
            None => callbacks.push(callback),
            Some(problem) => {
                let place = Place::Key("serveEventListeners".to_owned());
                notes.push(Remark::new(place, problem));
            }
        }
    }
    if !callbacks.is_empty() {
        rule.push("callbacks", Entry::List(callbacks));
    }
    if let Some((name, state, next)) = &mapping.scenario {
        let mut scenario = Table::new();
        scenario.push("name", name.as_str());
        if let Some(state) = state {
            scenario.push("state", state.as_str());
        }
        if let Some(next) = next {
            scenario.push("next", next.as_str());
        }
        rule.push("scenario", Entry::Braces(scenario));
    }
    Ok(rule)
}

/// A webhook as one of `callbacks`. Its templates know the request by another name.
fn callback(webhook: &Webhook) -> Entry {
    let text = |text: &str| text.replace("originalRequest", "request");
    let mut table = Table::new();
    table.push("url", text(&webhook.url));
    if webhook.method != "POST" {
        table.push("method", webhook.method.as_str());
    }
    let mut headers = Table::new();
    for (name, value) in webhook
        .fields
        .iter()
        .filter(|(name, _)| !is_about_connection(name))
    {
        headers.remove_field(name);
        headers.push(name.as_str(), text(value));
    }
    if !headers.is_empty() {
        table.push("headers", Entry::Braces(headers));
    }
    match &webhook.body {
        MappingBody::Empty | MappingBody::File(_) => {}
        MappingBody::Text(body) => table.push("text", text(body)),
        MappingBody::Json(value) => table.push("json", text(&value.to_string())),
        MappingBody::Base64(body) => table.push("base64", body.as_str()),
    }
    if let Some(delay) = webhook.delay {
        table.push("delay", respond::delay_entry(delay));
    }
    if table.lines("").contains("{{") {
        table.push("template", "wiremock");
        if !webhook.parameters.is_empty() {
            let parameters = Value::Object(webhook.parameters.clone());
            table.push("parameters", parameters.to_string());
        }
    }
    Entry::Braces(table)
}

fn conditions(mapping: &Mapping) -> Result<When, Remark> {
    let mut when = url(&mapping.url)?;
    let methods = |methods: &[String]| match methods {
        [method] => Entry::Text(method.to_ascii_uppercase()),
        methods => {
            let methods = methods.iter().map(|it| it.to_ascii_uppercase());
            Entry::List(methods.map(Entry::Text).collect())
        }
    };
    if mapping.methods.is_empty() {
        // Rules that name no method leave OPTIONS to cross-origin resource sharing; mappings do not.
        when.ask(&["method"], Entry::Text(ANY.to_owned()));
    } else {
        when.ask(&["method"], methods(&mapping.methods));
    }
    if !mapping.methods_not.is_empty() {
        when.and(When::not(When::at_path(
            &["method"],
            methods(&mapping.methods_not),
        )));
    }
    for field in &mapping.fields {
        let (key, theirs) = match field.place {
            FieldPlace::Header => ("headers", "headers"),
            FieldPlace::Query => ("query", "queryParameters"),
            FieldPlace::Cookie => ("cookies", "cookies"),
            FieldPlace::Form => ("form", "formParameters"),
            FieldPlace::Path => ("path", "pathParameters"),
            FieldPlace::Client => ("peer", "clientIp"),
            FieldPlace::Scheme => ("scheme", "scheme"),
            FieldPlace::Host => ("host", "host"),
            FieldPlace::Port => ("port", "port"),
        };
        let condition = match (field.place, &mapping.url) {
            (FieldPlace::Path, MappingUrl::PathTemplate(template)) => {
                path_parameter(template, &field.name, &field.pattern)
            }
            (FieldPlace::Path, _) => Err(PatternError::NoTemplate),
            (FieldPlace::Client | FieldPlace::Scheme | FieldPlace::Host | FieldPlace::Port, _) => {
                condition(Site::Whole(key), &field.pattern)
            }
            _ => condition(Site::Field(key, &field.name), &field.pattern),
        };
        let condition = condition.map_err(|error| {
            let place = Place::Key(format!("request.{theirs}.{}", field.name));
            Remark::new(place, error.to_string())
        })?;
        when.and(condition);
    }
    for (number, pattern) in (1..).zip(&mapping.bodies) {
        let condition = condition(Site::Body, pattern).map_err(|error| {
            let place = Place::Key(format!("request.bodyPatterns[{number}]"));
            Remark::new(place, error.to_string())
        })?;
        when.and(condition);
    }
    if !mapping.parts.is_empty() {
        let parts = (1..).zip(&mapping.parts).map(|(number, part)| {
            part_condition(part).map_err(|error| {
                let place = Place::Key(format!("request.multipartPatterns[{number}]"));
                Remark::new(place, error.to_string())
            })
        });
        let parts = parts.collect::<Result<_, _>>()?;
        when.and(When::at_path(&["multipart"], Entry::List(parts)));
    }
    if let Some(test) = &mapping.state_match {
        when.and(state::condition(test));
    }
    if when.is_empty() {
        when.ask(&["url_path"], test("starts_with", "/"));
    }
    Ok(when)
}

/// The condition on the parts of multipart content.
/// Why a pattern of a mapping cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum PatternError {
    #[error(transparent)]
    Regex(#[from] JavaRegexError),
    #[error("there is no `urlPathTemplate`")]
    NoTemplate,
    #[error("the template has no `{0}`")]
    NoPlace(String),
    /// What rules here do not compare.
    #[error("{0}")]
    Unsupported(&'static str),
}

fn part_condition(part: &MappingPart) -> Result<Entry, PatternError> {
    let mut table = Table::new();
    for (key, text) in [("name", &part.name), ("file_name", &part.file_name)] {
        if let Some(text) = text {
            table.push(key, text.as_str());
        }
    }
    if part.is_every {
        table.push("every", true);
    }
    let mut when = When::new();
    for field in &part.headers {
        when.and(condition(
            Site::Field("headers", &field.name),
            &field.pattern,
        )?);
    }
    for pattern in &part.bodies {
        when.and(condition(Site::Body, pattern)?);
    }
    table.extend(when.table());
    Ok(Entry::Braces(table))
}

fn url(url: &MappingUrl) -> Result<When, Remark> {
    let expression = |key: &str, pattern: &str| {
        let place = Place::Key(format!("request.{key}"));
        let translated = java_regex::translated_pattern(pattern);
        let translated = translated.map_err(|error| Remark::new(place, error.to_string()))?;
        Ok(test("regex", whole(&translated)))
    };
    let mut when = When::new();
    match url {
        MappingUrl::Any => {}
        MappingUrl::Equal(url) => {
            // Rules are found by their paths.
            let path = url.split('?').next().unwrap_or_default();
            when.ask(&["url_path"], decoded(path).as_ref());
            when.ask(&["url"], url.as_str());
        }
        MappingUrl::Matches(pattern) => when.ask(&["url"], expression("urlPattern", pattern)?),
        MappingUrl::Path(path) => {
            let normal = decoded(path);
            when.ask(&["url_path"], normal.as_ref());
            if normal != path.as_str() && !path.contains('%') {
                when.ask(&["raw_path"], path.as_str());
            }
        }
        MappingUrl::PathMatches(pattern) => {
            when.ask(&["raw_path"], expression("urlPathPattern", pattern)?);
        }
        MappingUrl::PathTemplate(template) => {
            when.ask(&["url_path"], test("pattern", template.as_str()));
        }
    }
    Ok(when)
}

/// The condition on what stands in a place of a template, as one on the whole path.
fn path_parameter(template: &str, name: &str, pattern: &Pattern) -> Result<When, PatternError> {
    let inner = match pattern {
        Pattern::Equal(text, false) => regex::escape(text),
        Pattern::Equal(text, true) => format!("(?i:{})", regex::escape(text)),
        Pattern::Contains(text) => format!("[^/]*{}[^/]*", regex::escape(text)),
        Pattern::Matches(pattern) => format!("(?:{})", java_regex::translated_pattern(pattern)?),
        Pattern::Anything => "[^/]+".to_owned(),
        Pattern::Not(inner) => return Ok(When::not(path_parameter(template, name, inner)?)),
        Pattern::Any(all) => {
            let all = all.iter().map(|it| path_parameter(template, name, it));
            return Ok(When::any_of(all.collect::<Result<_, _>>()?));
        }
        Pattern::All(all) => {
            let all = all.iter().map(|it| path_parameter(template, name, it));
            return Ok(When::all_of(all.collect::<Result<_, _>>()?));
        }
        _ => {
            return Err(PatternError::Unsupported(
                "a place of the path is compared as text only",
            ));
        }
    };
    let place = format!("{{{name}}}");
    let segments: Vec<&str> = template.split('/').collect();
    if !segments.contains(&place.as_str()) {
        return Err(PatternError::NoPlace(place));
    }
    let segments = segments.into_iter().map(|segment| match segment {
        segment if segment == place => inner.clone(),
        segment if segment.starts_with('{') && segment.ends_with('}') => "[^/]+".to_owned(),
        segment => regex::escape(segment),
    });
    let whole = segments.collect::<Vec<_>>().join("/");
    Ok(When::at_path(
        &["url_path"],
        test("regex", self::whole(&whole)),
    ))
}

/// The part of a request that a pattern is about.
#[derive(Clone, Copy)]
enum Site<'s> {
    /// A field: where, and its name.
    Field(&'s str, &'s str),
    /// What there is one of: the address of the client, or the scheme, host or port of the URL.
    Whole(&'s str),
    /// The content.
    Body,
    /// The values of a path in the content.
    JsonPath(&'s str),
    /// The results of an expression in the content.
    XPath(&'s str),
}

impl Site<'_> {
    fn ask(self, value: impl Into<Entry>) -> When {
        match self {
            Self::Field(place, name) => When::at_path(&[place, name], value),
            Self::Whole(key) => When::at_path(&[key], value),
            Self::Body => When::at_path(&["body", "text"], value),
            Self::JsonPath(path) if path.contains("[?") || path.contains(".[") => {
                When::at_path(&["body", "jayway", path], value)
            }
            Self::JsonPath(path) => When::at_path(&["body", "jsonpath", path], value),
            Self::XPath(path) => When::at_path(&["body", "xpath", path], value),
        }
    }
}

/// The condition that a pattern is; fails with the reason why it cannot be one.
fn condition(site: Site<'_>, pattern: &Pattern) -> Result<When, PatternError> {
    Ok(match pattern {
        Pattern::Anything => match site {
            Site::Body => When::new(),
            site => site.ask(bare_test("exists")),
        },
        Pattern::Absent if matches!(site, Site::XPath(_)) => {
            return Err(PatternError::Unsupported(
                "that XPath finds nothing is met by nothing there",
            ));
        }
        Pattern::Absent => site.ask(bare_test("absent")),
        Pattern::Equal(text, false) => site.ask(text.as_str()),
        Pattern::Equal(text, true) => {
            let pattern = format!("(?is){}", whole(&regex::escape(text)));
            site.ask(test("regex", pattern))
        }
        Pattern::Contains(text) => site.ask(test("contains", text.as_str())),
        Pattern::Matches(pattern) => site.ask(test(
            "regex",
            whole(&java_regex::translated_pattern(pattern)?),
        )),
        Pattern::Number(order, number) => {
            let operator = match order {
                NumberOrder::Equal => "equal_number",
                NumberOrder::Greater => "greater_than",
                NumberOrder::GreaterOrEqual => "greater_or_equal",
                NumberOrder::Less => "less_than",
                NumberOrder::LessOrEqual => "less_or_equal",
            };
            site.ask(test(operator, number.to_string()))
        }
        Pattern::EqualToJson {
            value,
            ignores_order,
            ignores_extra,
        } => match site {
            Site::Body => {
                let mut test = Table::new();
                test.push("value", value.to_string());
                for (key, flag) in [
                    ("ignore_order", *ignores_order),
                    ("ignore_extra", *ignores_extra),
                ] {
                    if flag {
                        test.push(key, true);
                    }
                }
                When::at_path(&["body", "equal_json"], Entry::Braces(test))
            }
            Site::JsonPath(_) => {
                let mut test = Table::new();
                test.push("op", "equal_json");
                test.push("value", value.to_string());
                for (key, flag) in [
                    ("ignore_order", *ignores_order),
                    ("ignore_extra", *ignores_extra),
                ] {
                    if flag {
                        test.push(key, true);
                    }
                }
                site.ask(Entry::Braces(test))
            }
            _ => {
                return Err(PatternError::Unsupported(
                    "JSON is compared so only with the whole content",
                ));
            }
        },
        Pattern::JsonPath(path, inner) => {
            let Site::Body = site else {
                return Err(PatternError::Unsupported(
                    "JSONPath looks only at the whole content",
                ));
            };
            // Without a root it is understood as below it.
            let path = if path.starts_with('$') {
                path.clone()
            } else {
                format!("$.{path}")
            };
            let site = Site::JsonPath(&path);
            match inner {
                None => site.ask(bare_test("exists")),
                Some(inner) => condition(site, inner)?,
            }
        }
        Pattern::JsonSchema(schema) => match site {
            Site::Body if schema.is_object() => {
                When::at_path(&["body", "schema"], schema.to_string())
            }
            _ => {
                return Err(PatternError::Unsupported(
                    "a JSON Schema is of the whole content, and an object",
                ));
            }
        },
        Pattern::EqualToXml(text, ignores_order) => {
            let Site::Body = site else {
                return Err(PatternError::Unsupported(
                    "XML is compared only with the whole content",
                ));
            };
            let mut equal = Table::new();
            equal.push("value", text.as_str());
            if *ignores_order {
                equal.push("ignore_order", true);
            }
            When::at_path(&["body", "equal_xml"], Entry::Braces(equal))
        }
        Pattern::XPath(path, namespaces, inner) => {
            let Site::Body = site else {
                return Err(PatternError::Unsupported(
                    "XPath looks only at the whole content",
                ));
            };
            let site = Site::XPath(path);
            let mut when = match inner {
                None => site.ask(bare_test("exists")),
                Some(inner) => condition(site, inner)?,
            };
            when.in_each(&["body", "xpath"], |when| {
                for (prefix, uri) in namespaces {
                    let path = ["body", "xpath_namespaces", prefix];
                    when.ask(&path, uri.as_str());
                }
            });
            // Expressions may use one prefix for different namespaces.
            if namespaces.is_empty() {
                when
            } else {
                When::apart(when)
            }
        }
        Pattern::Time(order, text, options) => match site {
            Site::JsonPath(_) => {
                return Err(PatternError::Unsupported(
                    "times are not compared where JSONPath finds them",
                ));
            }
            site => {
                let operator = match order {
                    TimeOrder::Before => "before",
                    TimeOrder::After => "after",
                    TimeOrder::Equal => "equal_time",
                };
                site.ask(time(operator, text, options))
            }
        },
        Pattern::Exactly(all) => {
            let Site::Field(..) = site else {
                return Err(PatternError::Unsupported(
                    "`hasExactly` counts fields and parameters only",
                ));
            };
            let mut conditions = conditions_of(site, all)?;
            conditions.push(site.ask(test("count", all.len().to_string())));
            When::all_of(conditions)
        }
        Pattern::All(all) => When::all_of(conditions_of(site, all)?),
        Pattern::Any(all) => When::any_of(conditions_of(site, all)?),
        Pattern::Not(inner) => match (site, &**inner) {
            // Of a field that must be there.
            (Site::Field(..), Pattern::Contains(text)) => {
                site.ask(test("not_contains", text.as_str()))
            }
            (Site::Field(..), Pattern::Matches(pattern)) => {
                site.ask(test("not_regex", whole(pattern)))
            }
            (site, inner) => When::not(condition(site, inner)?),
        },
    })
}

fn time(operator: &str, text: &str, options: &TimeOptions) -> Entry {
    let mut table = Table::new();
    table.push("op", operator);
    table.push("value", text);
    for (key, option) in [
        ("format", &options.format),
        ("truncate", &options.truncate),
        ("truncate_value", &options.truncate_value),
    ] {
        if let Some(option) = option {
            table.push(key, option.as_str());
        }
    }
    Entry::Braces(table)
}

fn conditions_of(site: Site<'_>, all: &[Pattern]) -> Result<Vec<When>, PatternError> {
    all.iter().map(|pattern| condition(site, pattern)).collect()
}

#[cfg(test)]
mod tests;
