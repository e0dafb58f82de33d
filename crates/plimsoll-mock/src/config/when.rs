//! `when`: the conditions of a rule.

use std::sync::Arc;

use plimsoll_formats::json5_to_json;
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_schema::JsonSchema;
use serde_json_path::JsonPath;

use super::set::{self, Context};
use super::{graphql, grpc, part, source, template, xpath};
use crate::rules::condition::equal_json::EqualJson;
use crate::rules::condition::field::FieldTest;
use crate::rules::condition::jayway::JaywayPath;
use crate::rules::condition::json::{DottedPath, EQUAL_JSON, JsonTest, NumberOperator, OPERATORS};
use crate::rules::condition::pattern::PathPattern;
use crate::rules::condition::text::{TextOperator, TextTest};
use crate::rules::condition::time::{TimeOptions, TimeOrder, TimeTest};
use crate::rules::condition::{Condition, OriginPart};

/// `when`: all conditions of `request`, and others around it.
pub(super) fn compile(mut table: Table<'_>, context: &Context) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut is_whole = true;
    let had_request = table.has("request");
    if let Some(request) = table.take_value("request") {
        match request
            .table()
            .and_then(|request| self::request(request, context))
        {
            Some(of_request) => conditions.extend(of_request),
            None => is_whole = false,
        }
    }
    if let Some(value) = table.take_value("grpc") {
        let call = grpc::call(value, context);
        is_whole &= call.is_some();
        conditions.extend(call.into_iter().flatten());
    }
    if let Some(value) = table.take_value("all") {
        let all = alternatives(value, context);
        is_whole &= all.is_some();
        conditions.extend(all.into_iter().flatten());
    }
    if let Some(value) = table.take_value("any") {
        let all = alternatives(value, context);
        is_whole &= all.is_some();
        conditions.extend(all.map(Condition::Any));
    }
    if let Some(value) = table.take_value("not") {
        let none = alternatives(value, context);
        is_whole &= none.is_some();
        let none = none.into_iter().flatten();
        conditions.extend(none.map(|condition| Condition::Not(Box::new(condition))));
    }
    if conditions.is_empty() && is_whole {
        if had_request || table.is_empty() {
            let hint = "such as when.request.url_path = \"/\"";
            table.wrong("no condition", Some(hint.to_owned()));
        }
        is_whole = false;
    }
    table.finish();
    is_whole.then_some(conditions)
}

/// Tables like `when`, of which each is one condition.
fn alternatives(value: Value<'_>, context: &Context) -> Option<Vec<Condition>> {
    let conditions = value.elements().into_iter().map(|value| {
        let mut conditions = compile(value.table()?, context)?;
        Some(match conditions.len() {
            1 => conditions.pop()?,
            _ => Condition::All(conditions),
        })
    });
    // Every mistake is noted before it is known that there was one.
    conditions.collect::<Vec<_>>().into_iter().collect()
}

/// Makes the condition of one place in JSON.
type MakeJson = fn(String, Value<'_>) -> Option<Condition>;

/// Makes the condition of a text that is always there.
type MakeText = fn(TextTest) -> Condition;

/// Makes the condition of one name.
type Make = fn(String, FieldTest) -> Condition;

fn request(mut table: Table<'_>, context: &Context) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut is_whole = true;
    // The one of the path comes first: rules are found by it.
    if let Some(value) = table.take_value("url_path") {
        let path = path(value, context);
        is_whole &= path.is_some();
        conditions.extend(path);
    }
    let as_sent: [(&'static str, MakeText); 2] =
        [("raw_path", Condition::RawPath), ("url", Condition::Url)];
    for (key, make) in as_sent {
        if let Some(value) = table.take_value(key) {
            let test = text(value);
            is_whole &= test.is_some();
            conditions.extend(test.map(make));
        }
    }
    if let Some(value) = table.take_value("method") {
        let methods = methods(value);
        is_whole &= methods.is_some();
        conditions.extend(methods.map(Condition::Method));
    }
    let fields: [(&'static str, Make); 4] = [
        ("headers", Condition::Header),
        ("query", Condition::Query),
        ("cookies", Condition::Cookie),
        ("form", Condition::Form),
    ];
    for (key, make) in fields {
        let Some(mut table) = table.table(key) else {
            continue;
        };
        let fields = match key {
            "headers" => table.rest_of_fields(),
            _ => table.rest(),
        };
        for (name, value) in fields {
            let test = field(value);
            is_whole &= test.is_some();
            conditions.extend(test.map(|test| make(name, test)));
        }
    }
    if let Some(value) = table.take_value("graphql") {
        let operation = graphql::compile(value);
        is_whole &= operation.is_some();
        conditions.extend(operation);
    }
    if let Some(value) = table.take_value("peer") {
        let test = field(value);
        is_whole &= test.is_some();
        conditions.extend(test.map(Condition::Peer));
    }
    for part in OriginPart::ALL {
        if let Some(value) = table.take_value(part.name()) {
            let test = field(value);
            is_whole &= test.is_some();
            conditions.extend(test.map(|test| Condition::Origin(part, test)));
        }
    }
    if let Some(value) = table.take_value("number") {
        let number = set::number(value, context);
        is_whole &= number.is_some();
        conditions.extend(number);
    }
    if let Some(value) = table.take_value("template") {
        let of_templates = template::tests(value, context);
        is_whole &= of_templates.is_some();
        conditions.extend(of_templates.into_iter().flatten());
    }
    if let Some(value) = table.take_value("multipart") {
        let of_parts = part::tests(value, context);
        is_whole &= of_parts.is_some();
        conditions.extend(of_parts.into_iter().flatten());
    }
    if let Some(body) = table.table("body") {
        let of_body = self::body(body, context);
        is_whole &= of_body.is_some();
        conditions.extend(of_body.into_iter().flatten());
    }
    table.finish();
    is_whole.then_some(conditions)
}

/// Conditions on the content.
pub(super) fn body(mut body: Table<'_>, context: &Context) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut is_whole = true;
    let mut each = |table: Option<Table<'_>>, make: MakeJson| {
        for (path, value) in table.into_iter().flat_map(|mut table| table.rest()) {
            let condition = make(path, value);
            is_whole &= condition.is_some();
            conditions.extend(condition);
        }
    };
    each(body.table("json"), |path, value| {
        Some(Condition::Json(DottedPath::new(path), json_test(value)?))
    });
    each(body.table("jsonpath"), |path, value| {
        let parsed =
            JsonPath::parse(&path).map_err(|error| format!("`{path}` is no JSONPath: {error}"));
        let parsed = value.check(parsed)?;
        Some(Condition::JsonPath(Box::new(parsed), json_test(value)?))
    });
    each(body.table("jayway"), |path, value| {
        let parsed =
            JaywayPath::new(&path).map_err(|error| format!("`{path}` is no JSONPath: {error}"));
        let parsed = value.check(parsed)?;
        Some(Condition::Jayway(Box::new(parsed), json_test(value)?))
    });
    let of_xml = xpath::compile(&mut body);
    is_whole &= of_xml.is_some();
    conditions.extend(of_xml.into_iter().flatten());
    if let Some(value) = body.take_value("text") {
        let test = field(value);
        is_whole &= test.is_some();
        conditions.extend(test.map(Condition::Body));
    }
    if let Some(value) = body.take_value("equal_json") {
        let test = equal_json(value);
        is_whole &= test.is_some();
        conditions.extend(test);
    }
    if let Some(value) = body.take_value("schema") {
        let schema = schema(&value, context);
        is_whole &= schema.is_some();
        conditions.extend(schema);
    }
    body.finish();
    is_whole.then_some(conditions)
}

/// Value and operator.
type Parts<'i> = (Option<Value<'i>>, Option<Value<'i>>);

/// Value and operator, where a text alone is to be equal.
fn parts(value: Value<'_>) -> Option<Parts<'_>> {
    if !value.is_table() {
        as_text(&value)?;
        return Some((Some(value), None));
    }
    parts_of(value.table()?, &mut |_| ())
}

/// Value and operator of a table that may have more.
fn parts_of<'i>(mut table: Table<'i>, take: &mut dyn FnMut(&mut Table<'i>)) -> Option<Parts<'i>> {
    let parts = (table.take_value("value"), table.take_value("op"));
    if parts.0.is_none() && parts.1.is_none() {
        let hint = if table.is_empty() {
            "such as { value = \"a\" } or { op = \"exists\" }"
        } else {
            "a path with dots is one key, in quotes: \"user.name\" = { value = \"a\" }"
        };
        table.wrong("has neither `value` nor `op`", Some(hint.to_owned()));
        return None;
    }
    take(&mut table);
    table.finish();
    Some(parts)
}

/// An operator by its name.
enum Operator {
    Text(TextOperator),
    /// One that the caller knows.
    Other(String),
}

/// The operator that is named, of those for texts and `others`; that for equal texts if none is.
fn operator(op: Option<&Value<'_>>, others: &[&str]) -> Option<Operator> {
    let Some(value) = op else {
        return Some(Operator::Text(TextOperator::Equal));
    };
    let name = as_text(value)?;
    if others.contains(&name) {
        return Some(Operator::Other(name.to_owned()));
    }
    let known = TextOperator::ALL
        .into_iter()
        .find(|operator| operator.name() == name);
    if known.is_none() {
        let names = TextOperator::ALL.map(TextOperator::name);
        let names: Vec<&str> = names.iter().chain(others).copied().collect();
        return unknown(value, name, &names);
    }
    known.map(Operator::Text)
}

fn unknown<T>(value: &Value<'_>, name: &str, known: &[&str]) -> Option<T> {
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_ascii_lowercase();
    let meant = known.iter().find(|it| plain(it) == plain(name));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known are {}", known.join(", ")),
    };
    value.wrong_with(format!("`{name}` is no operator"), Some(hint))
}

fn path(value: Value<'_>, context: &Context) -> Option<Condition> {
    let (value, op) = parts(value)?;
    let operator = operator(op.as_ref(), &["pattern"])?;
    let Some(value) = value else {
        return op?.wrong("needs a `value`");
    };
    let text = as_text(&value)?;
    let behind_prefix = |text: &str| context.behind_prefix(text);
    let Operator::Text(operator) = operator else {
        return value
            .check(PathPattern::new(&behind_prefix(text)))
            .map(Condition::Pattern);
    };
    // A whole path or prefix is normalised and put behind the prefix of the set; parts and ends of paths
    // and regular expressions mean what they say.
    let is_path = matches!(
        operator,
        TextOperator::Equal
            | TextOperator::NotEqual
            | TextOperator::StartsWith
            | TextOperator::NotStartsWith
            | TextOperator::WildCard
    );
    let compared = if is_path {
        behind_prefix(text)
    } else {
        text.to_owned()
    };
    let compiled = TextTest::new(operator, compared).map_err(|error| regex_message(&error));
    value.check(compiled).map(Condition::Path)
}

/// Without the drawing of where it is, which is of several lines.
fn regex_message(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!(
        "is not a regular expression: {}",
        last.trim_start_matches("error: ")
    )
}

/// A method, or several of which one has to match.
fn methods(value: Value<'_>) -> Option<Vec<String>> {
    value.texts_with(|method| {
        let is_method = !method.is_empty()
            && method
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
        match method {
            "CONNECT" => Some("`CONNECT` opens a tunnel and is no request to answer".to_owned()),
            _ if !is_method => Some(format!("`{method}` is not a method, such as GET")),
            _ => None,
        }
    })
}

/// A JSON Schema, or a file that holds one; it may be JSON5.
fn schema(value: &Value<'_>, context: &Context) -> Option<Condition> {
    let inline;
    let given = if value.is_table() {
        inline = source::json_of(value).to_string();
        &inline
    } else {
        as_text(value)?
    };
    let (name, text) = if given.trim_start().starts_with('{') {
        ("it".to_owned(), given.to_owned())
    } else {
        let path = context.root.clone()?.join(given);
        context.others.borrow_mut().insert(path.clone());
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()));
        (path.display().to_string(), value.check(text)?)
    };
    let json = json5_to_json(&text).map_err(|error| error.to_string());
    let json = json.and_then(|json| serde_json::from_str(&json).map_err(|error| error.to_string()));
    let json: serde_json::Value =
        value.check(json.map_err(|error| format!("{name} is no JSON: {error}")))?;
    let schema =
        JsonSchema::new(&json).map_err(|error| format!("{name} is no JSON Schema: {error}"));
    Some(Condition::Schema(
        given.to_owned(),
        Arc::new(value.check(schema)?),
    ))
}

/// JSON, or `{ value, ignore_order, ignore_extra }`.
fn equal_json(value: Value<'_>) -> Option<Condition> {
    let is_inline = match value.to_toml() {
        toml::Value::Array(_) => true,
        toml::Value::Table(table) => !table.contains_key("value"),
        _ => false,
    };
    if is_inline {
        let text = source::json_of(&value).to_string();
        let equal = value.check(EqualJson::new(&text, false, false))?;
        return Some(Condition::EqualJson(Box::new(equal)));
    }
    let (value, ignores_order, ignores_extra) = if value.is_table() {
        let mut table = value.table()?;
        let ignores_order = table.boolean("ignore_order").unwrap_or(false);
        let ignores_extra = table.boolean("ignore_extra").unwrap_or(false);
        let value = table.take_value("value");
        if value.is_none() {
            table.missing("value", "the JSON that the content must be");
        }
        table.finish();
        (value?, ignores_order, ignores_extra)
    } else {
        (value, false, false)
    };
    let text = as_text(&value)?;
    let equal = value.check(EqualJson::new(text, ignores_order, ignores_extra))?;
    Some(Condition::EqualJson(Box::new(equal)))
}

/// A test of a text that is always there.
fn text(value: Value<'_>) -> Option<TextTest> {
    let (value, op) = parts(value)?;
    let Operator::Text(operator) = operator(op.as_ref(), &[])? else {
        return None;
    };
    let Some(value) = value else {
        return op?.wrong("needs a `value`");
    };
    let text = as_text(&value)?;
    value.check(TextTest::new(operator, text).map_err(|error| regex_message(&error)))
}

pub(super) fn field(value: Value<'_>) -> Option<FieldTest> {
    if value.is_table() {
        return field_of(value.table()?);
    }
    let text = as_text(&value)?;
    let compiled = TextTest::new(TextOperator::Equal, text).map_err(|error| regex_message(&error));
    value.check(compiled).map(FieldTest::Text)
}

/// The same from a separate table.
pub(super) fn field_of(table: Table<'_>) -> Option<FieldTest> {
    let mut options = [None, None, None];
    let (value, op) = parts_of(table, &mut |table| {
        options = ["format", "truncate", "truncate_value"].map(|key| table.take_value(key));
    })?;
    let others: Vec<&str> = ["exists", "absent", "count"]
        .into_iter()
        .chain(TimeOrder::ALL.map(TimeOrder::name))
        .chain(NumberOperator::ALL.map(NumberOperator::name))
        .collect();
    let operator = operator(op.as_ref(), &others)?;
    let order = TimeOrder::ALL
        .into_iter()
        .find(|it| matches!(&operator, Operator::Other(name) if it.name() == name));
    if let Some(option) = options.iter().flatten().next().filter(|_| order.is_none()) {
        return option.wrong("is for `before`, `after` and `equal_time` only");
    }
    let name = match operator {
        Operator::Text(operator) => {
            let text = needed(value.as_ref(), op.as_ref())?;
            let compiled = TextTest::new(operator, text).map_err(|error| regex_message(&error));
            return value?.check(compiled).map(FieldTest::Text);
        }
        Operator::Other(name) => name,
    };
    match name.as_str() {
        "exists" => return Some(FieldTest::Exists),
        "absent" => return Some(FieldTest::Absent),
        _ => {}
    }
    let text = needed(value.as_ref(), op.as_ref())?;
    let value = value.as_ref()?;
    if let Some(order) = order {
        let time = value.check(TimeTest::new(order, text))?;
        return time_options(&options).map(|options| FieldTest::Time(time.with(options)));
    }
    let mut numbers = NumberOperator::ALL.into_iter();
    if let Some(operator) = numbers.find(|it| it.name() == name) {
        let number = text.parse().map_err(|_| "must be a number, in quotes");
        let number = value.check(number)?;
        return Some(FieldTest::Number(operator, number));
    }
    let count = text.parse().map_err(|_| "must be a number, in quotes");
    value.check(count).map(FieldTest::Count)
}

/// The value of an operator that needs one.
fn needed<'v>(value: Option<&'v Value<'_>>, op: Option<&Value<'_>>) -> Option<&'v str> {
    match value {
        Some(value) => as_text(value),
        None => op?.wrong("needs a `value`"),
    }
}

fn time_options(options: &[Option<Value<'_>>; 3]) -> Option<TimeOptions> {
    let mut texts = [None; 3];
    for (text, option) in texts.iter_mut().zip(options) {
        if let Some(option) = option {
            *text = Some(as_text(option)?);
        }
    }
    let [format, truncate, truncate_value] = texts;
    let made = TimeOptions::new(format, truncate, truncate_value);
    match options.iter().flatten().next() {
        None => made.ok(),
        Some(option) => option.check(made),
    }
}

pub(super) fn json_test(value: Value<'_>) -> Option<JsonTest> {
    let mut flags = [None, None];
    let (value, op) = if value.is_table() {
        parts_of(value.table()?, &mut |table| {
            flags = ["ignore_order", "ignore_extra"].map(|key| table.take_value(key));
        })?
    } else {
        parts(value)?
    };
    let name = match &op {
        None => "equal",
        Some(op) => as_text(op)?,
    };
    if name == EQUAL_JSON {
        let [ignores_order, ignores_extra] = flags.map(|flag| flag.is_some_and(|it| it.is_true()));
        let text = needed(value.as_ref(), op.as_ref())?;
        let equal = value
            .as_ref()?
            .check(EqualJson::new(text, ignores_order, ignores_extra))?;
        return Some(JsonTest::EqualJson(Box::new(equal)));
    }
    if let Some(flag) = flags.iter().flatten().next() {
        return flag.wrong("is for `equal_json` only");
    }
    let text = match &value {
        Some(value) => as_text(value)?,
        None if name == "exists" || name == "absent" => "",
        None => {
            if JsonTest::new(name, "").is_some() {
                return op?.wrong("needs a `value`");
            }
            ""
        }
    };
    match (JsonTest::new(name, text), &op, &value) {
        (Some(Ok(compiled)), ..) => Some(compiled),
        (Some(Err(error)), _, Some(value)) => value.wrong(regex_message(&error)),
        (None, Some(op), _) => unknown(op, name, &[&OPERATORS[..], &[EQUAL_JSON]].concat()),
        _ => None,
    }
}
