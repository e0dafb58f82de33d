//! Mappings of WireMock as rules.

use std::path::Path;

use plimsoll_formats::wiremock::{
    FieldPlace, Mapping, MappingBody, MappingDelay, MappingResponse, MappingUrl, NumberOrder,
    Pattern, parse_mapping,
};
use plimsoll_formats::{Place, Remark};
use serde_json::Value;

use super::entry::{Entry, Table};
use super::handlebars::{Converted, Dialect, convert};
use super::when::{When, bare_test, test, whole};
use super::{body, is_about_connection};
use crate::config;
use crate::path::decoded;
use crate::rules::Rule;
use crate::states::States;

/// A mapping as a rule.
#[derive(Debug)]
pub struct Stub {
    /// Ready to answer.
    pub rule: Rule,
    /// The same as it stands in a file of rules.
    pub text: String,
    /// What of the mapping it does not carry.
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
    let respond = respond(&mapping.response, files, notes)?;
    rule.push("respond", Entry::Table(respond));
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

fn conditions(mapping: &Mapping) -> Result<When, Remark> {
    let mut when = url(&mapping.url);
    let methods = |methods: &[String]| match methods {
        [method] => Entry::Text(method.to_ascii_uppercase()),
        methods => {
            let methods = methods.iter().map(|it| it.to_ascii_uppercase());
            Entry::List(methods.map(Entry::Text).collect())
        }
    };
    if !mapping.methods.is_empty() {
        when.ask(&["method"], methods(&mapping.methods));
    }
    if !mapping.methods_not.is_empty() {
        when.and(When::not(When::of(
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
        };
        let site = Site::Field(key, &field.name);
        let condition = condition(site, &field.pattern).map_err(|reason| {
            let place = Place::Key(format!("request.{theirs}.{}", field.name));
            Remark::new(place, reason)
        })?;
        when.and(condition);
    }
    for (number, pattern) in (1..).zip(&mapping.bodies) {
        let condition = condition(Site::Body, pattern).map_err(|reason| {
            let place = Place::Key(format!("request.bodyPatterns[{number}]"));
            Remark::new(place, reason)
        })?;
        when.and(condition);
    }
    if when.is_empty() {
        when.ask(&["url_path"], test("starts_with", "/"));
    }
    Ok(when)
}

fn url(url: &MappingUrl) -> When {
    let mut when = When::new();
    match url {
        MappingUrl::Any => {}
        MappingUrl::Equal(url) => {
            // Rules are found by their paths.
            let path = url.split('?').next().unwrap_or_default();
            when.ask(&["url_path"], decoded(path).as_ref());
            when.ask(&["url"], url.as_str());
        }
        MappingUrl::Matches(pattern) => when.ask(&["url"], test("regex", whole(pattern))),
        MappingUrl::Path(path) => {
            let normal = decoded(path);
            when.ask(&["url_path"], normal.as_ref());
            if normal != path.as_str() && !path.contains('%') {
                when.ask(&["raw_path"], path.as_str());
            }
        }
        MappingUrl::PathMatches(pattern) => {
            when.ask(&["raw_path"], test("regex", whole(pattern)));
        }
        MappingUrl::PathTemplate(template) => {
            when.ask(&["url_path"], test("pattern", template.as_str()));
        }
    }
    when
}

/// What a pattern looks at.
#[derive(Clone, Copy)]
enum Site<'s> {
    /// A field: where, and its name.
    Field(&'s str, &'s str),
    /// The content.
    Body,
    /// The values of a path in the content.
    JsonPath(&'s str),
}

impl Site<'_> {
    fn ask(self, value: impl Into<Entry>) -> When {
        match self {
            Self::Field(place, name) => When::of(&[place, name], value),
            Self::Body => When::of(&["body", "text"], value),
            Self::JsonPath(path) => When::of(&["body", "jsonpath", path], value),
        }
    }
}

/// The condition that a pattern is; fails with the reason why it cannot be one.
fn condition(site: Site<'_>, pattern: &Pattern) -> Result<When, String> {
    Ok(match pattern {
        Pattern::Anything => match site {
            Site::Body => When::new(),
            site => site.ask(bare_test("exists")),
        },
        Pattern::Absent => site.ask(bare_test("absent")),
        Pattern::Equal(text, false) => site.ask(text.as_str()),
        Pattern::Equal(text, true) => {
            let pattern = format!("(?is){}", whole(&regex::escape(text)));
            site.ask(test("regex", pattern))
        }
        Pattern::Contains(text) => site.ask(test("contains", text.as_str())),
        Pattern::Matches(pattern) => site.ask(test("regex", whole(pattern))),
        Pattern::Number(order, number) => {
            let Site::JsonPath(_) = site else {
                return Err("numbers are compared only where JSONPath finds them".to_owned());
            };
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
                When::of(&["body", "equal_json"], Entry::Braces(test))
            }
            Site::JsonPath(_) if !ignores_order && !ignores_extra => {
                site.ask(test("equal_typed", value.to_string()))
            }
            _ => return Err("JSON is compared so only with the whole content".to_owned()),
        },
        Pattern::JsonPath(path, inner) => {
            let Site::Body = site else {
                return Err("JSONPath looks only at the whole content".to_owned());
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
            Site::Body if schema.is_object() => When::of(&["body", "schema"], schema.to_string()),
            _ => return Err("a JSON Schema is of the whole content, and an object".to_owned()),
        },
        Pattern::EqualToXml(_) | Pattern::XPath(..) => {
            return Err("XML is not looked at here, so the mapping is left out".to_owned());
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

fn conditions_of(site: Site<'_>, all: &[Pattern]) -> Result<Vec<When>, String> {
    all.iter().map(|pattern| condition(site, pattern)).collect()
}

/// What is left out of texts, and whether there are places.
struct Texts<'n> {
    has_places: bool,
    are_used: bool,
    notes: &'n mut Vec<Remark>,
}

impl Texts<'_> {
    fn convert(&mut self, key: &str, text: &str) -> String {
        if !self.has_places {
            return text.to_owned();
        }
        let Converted {
            text,
            has_places,
            unknown,
        } = convert(text, Dialect::WireMock);
        self.are_used |= has_places;
        for place in unknown {
            let message = format!("`{place}` is not known here, nothing stands in its place");
            let place = Place::Key(format!("response.{key}"));
            self.notes.push(Remark::new(place, message));
        }
        text
    }

    fn convert_all(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.convert(key, text)),
            Value::Array(all) => {
                Value::Array(all.iter().map(|it| self.convert_all(key, it)).collect())
            }
            Value::Object(all) => {
                let pairs = all.iter();
                let pairs =
                    pairs.map(|(name, it)| (self.convert(key, name), self.convert_all(key, it)));
                Value::Object(pairs.collect())
            }
            value => value.clone(),
        }
    }
}

fn respond(
    response: &MappingResponse,
    files: &Path,
    notes: &mut Vec<Remark>,
) -> Result<Table, Remark> {
    if response.proxy.is_some() {
        let place = Place::Key("response.proxyBaseUrl".to_owned());
        let message = "nothing is passed on here, so the mapping is left out";
        return Err(Remark::new(place, message));
    }
    let mut respond = Table::new();
    if let Some(fault) = &response.fault {
        let ours = match fault.as_str() {
            "CONNECTION_RESET_BY_PEER" => "reset",
            "EMPTY_RESPONSE" => "empty",
            "MALFORMED_RESPONSE_CHUNK" => "malformed_chunk",
            "RANDOM_DATA_THEN_CLOSE" => "garbage",
            other => {
                let place = Place::Key("response.fault".to_owned());
                return Err(Remark::new(place, format!("there is no fault `{other}`")));
            }
        };
        respond.push("fault", ours);
        delay(response, &mut respond, notes);
        return Ok(respond);
    }
    let mut texts = Texts {
        has_places: response.has_places,
        are_used: false,
        notes,
    };
    if response.status != 200 || response.body == MappingBody::Empty {
        respond.push("status", Entry::Whole(i64::from(response.status)));
    }
    headers(response, &mut respond, &mut texts);
    match &response.body {
        MappingBody::Empty => {}
        MappingBody::Text(text) => {
            let text = texts.convert("body", text);
            respond.push("text", text);
        }
        MappingBody::Json(value) => {
            let value = texts.convert_all("jsonBody", value);
            respond.push("json", pretty(&value));
        }
        MappingBody::Base64(text) => respond.push("base64", text.as_str()),
        MappingBody::File(name) if !response.has_places && response.dribble.is_none() => {
            respond.push("file_path", name.as_str());
        }
        MappingBody::File(name) => {
            let place = Place::Key("response.bodyFileName".to_owned());
            let bytes = super::inside(files, name).map_err(|reason| Remark::new(place, reason))?;
            match String::from_utf8(bytes) {
                Ok(text) => {
                    let text = texts.convert("bodyFileName", &text);
                    let is_typed = response
                        .fields
                        .iter()
                        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                    if name.to_ascii_lowercase().ends_with(".json") && !is_typed {
                        let kind = "application/json".into();
                        // Nothing stands there yet.
                        respond.place(&["headers", "content-type"], kind).ok();
                    }
                    respond.push("text", text);
                }
                Err(error) => respond.push("base64", body::encoded(error.as_bytes())),
            }
        }
    }
    if texts.are_used {
        respond.push("template", true);
    }
    delay(response, &mut respond, notes);
    if let Some((chunks, over)) = response.dribble {
        let dribble = Entry::braces([
            ("chunks", Entry::Whole(i64::from(chunks))),
            ("over", format!("{over}ms").into()),
        ]);
        respond.push("dribble", dribble);
    }
    Ok(respond)
}

/// Enough of an object on one line, so that rules stay readable.
fn pretty(value: &Value) -> String {
    let short = value.to_string();
    if short.len() <= 80 {
        return short;
    }
    serde_json::to_string_pretty(value).unwrap_or(short)
}

fn headers(response: &MappingResponse, respond: &mut Table, texts: &mut Texts<'_>) {
    let mut headers = Table::new();
    for (name, value) in &response.fields {
        if is_about_connection(name) {
            let place = Place::Key(format!("response.headers.{name}"));
            let message = "is set by the server";
            texts.notes.push(Remark::new(place, message));
            continue;
        }
        let value = Entry::Text(texts.convert(&format!("headers.{name}"), value));
        match headers.value_mut(name) {
            None => headers.push(name.as_str(), value),
            Some(Entry::List(values)) => values.push(value),
            Some(first) => *first = Entry::List(vec![first.clone(), value]),
        }
    }
    if !headers.is_empty() {
        respond.push("headers", Entry::Table(headers));
    }
}

fn delay(response: &MappingResponse, respond: &mut Table, notes: &mut Vec<Remark>) {
    let fixed: u64 = response
        .delays
        .iter()
        .map(|delay| match delay {
            MappingDelay::Fixed(fixed) => *fixed,
            _ => 0,
        })
        .sum();
    let random = response
        .delays
        .iter()
        .find(|delay| !matches!(delay, MappingDelay::Fixed(_)));
    let milliseconds = |number: u64| Entry::Text(format!("{number}ms"));
    let delay = match random {
        None if fixed == 0 => return,
        None | Some(MappingDelay::Fixed(_)) => milliseconds(fixed),
        // The two are added.
        Some(MappingDelay::Uniform(least, most)) => {
            let bounds = [least, most].map(|it| milliseconds(it + fixed));
            Entry::braces([("uniform", Entry::List(bounds.to_vec()))])
        }
        Some(MappingDelay::LogNormal(median, sigma, most)) => {
            if fixed > 0 {
                let place = Place::Key("response.fixedDelayMilliseconds".to_owned());
                let message = "is not added to a log-normal delay here";
                notes.push(Remark::new(place, message));
            }
            let mut table = Table::new();
            table.push("median", format!("{median}ms"));
            table.push("sigma", Entry::Real(*sigma));
            if let Some(most) = most {
                table.push("max", format!("{most}ms"));
            }
            Entry::braces([("lognormal", Entry::Braces(table))])
        }
    };
    respond.push("delay", delay);
}

#[cfg(test)]
mod tests;
