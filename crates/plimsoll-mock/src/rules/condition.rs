//! Conditions of rules on requests.

pub mod call;

pub mod equal_json;

pub mod equal_xml;

pub mod field;

pub mod graphql;

pub mod jayway;

pub mod json;

pub mod part;

pub mod pattern;

pub mod template;

pub mod text;

pub mod time;

mod value;

pub mod xpath;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plimsoll_schema::JsonSchema;
use serde_json_path::JsonPath;

use crate::request::{RequestView, values};

use self::call::CallTest;
use self::equal_json::EqualJson;
use self::equal_xml::EqualXml;
use self::field::FieldTest;
use self::graphql::OperationTest;

use crate::rules::Lookup;
use crate::store::states::Scenario;

use self::jayway::JaywayPath;
use self::json::{DottedPath, JsonTest};
use self::part::PartTest;
use self::pattern::PathPattern;
use self::template::TemplateTest;
use self::text::TextTest;
use self::xpath::XPath;

/// In place of a method: every one, OPTIONS too.
pub const ANY: &str = "ANY";

/// One condition.
#[derive(Debug, Clone)]
pub enum Condition {
    /// Of the path, decoded and normalised.
    Path(TextTest),
    /// Of the path, some of whose segments may be any.
    Pattern(PathPattern),
    /// Of the path as it was sent.
    RawPath(TextTest),
    /// Of path and query as they were sent.
    Url(TextTest),
    /// One of these methods, whatever the case; none of them if negated.
    Method(Vec<String>),
    /// Of the fields of that name.
    Header(String, FieldTest),
    /// Of the parameters of that name.
    Query(String, FieldTest),
    /// Of the cookies of that name.
    Cookie(String, FieldTest),
    /// Of the fields of that name in a form.
    Form(String, FieldTest),
    /// Of the content as text.
    Body(FieldTest),
    /// The content is JSON equal to this.
    EqualJson(Box<EqualJson>),
    /// Of a value in the content, which must be JSON.
    Json(DottedPath, JsonTest),
    /// Of the values at a path of RFC 9535 in the content, which must be JSON: of any, and with a negated operator of all.
    JsonPath(Box<JsonPath>, JsonTest),
    /// The same at a path as Jayway reads it.
    Jayway(Box<JaywayPath>, JsonTest),
    /// The content is JSON that a schema, of the file of that name, accepts.
    Schema(String, Arc<JsonSchema>),
    /// Of what an expression finds in the content, which must be XML.
    XPath(Box<XPath>, FieldTest),
    /// The content is XML equal to this.
    EqualXml(Box<EqualXml>),
    /// Of the parts of multipart content.
    Part(Box<PartTest>),
    /// Of an operation of GraphQL.
    GraphQl(Box<OperationTest>),
    /// Of a call of gRPC.
    Call(Box<CallTest>),
    /// A scenario is in a state.
    State(Scenario, String),
    /// Of the address of the client.
    Peer(FieldTest),
    /// Of the scheme, host or port of the URL.
    Origin(OriginPart, FieldTest),
    /// Of the number of the request in a scenario that counts.
    Number(Scenario, FieldTest),
    /// Of what a template comes to.
    Template(Box<TemplateTest>),
    /// All of them.
    All(Vec<Self>),
    /// At least one of them.
    Any(Vec<Self>),
    /// Not this one.
    Not(Box<Self>),
}

/// A part of the URL before its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginPart {
    /// `http` or `https`
    Scheme,
    /// The host, in lower case and without its port.
    Host,
    /// The port, that of the scheme if none is given.
    Port,
}

impl OriginPart {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scheme, Self::Host, Self::Port];

    /// As files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Host => "host",
            Self::Port => "port",
        }
    }

    fn read<'r>(self, request: &'r RequestView<'_>) -> Cow<'r, str> {
        match self {
            Self::Scheme => request.scheme().into(),
            Self::Host => request.host().to_ascii_lowercase().into(),
            Self::Port => request.port().to_string().into(),
        }
    }
}

impl Condition {
    /// Index key of rules whose first condition it is.
    pub fn lookup(&self) -> Lookup<'_> {
        match self {
            Self::Path(test) => Lookup::from_test(test),
            Self::Pattern(pattern) => Lookup::Starts(pattern.beginning()),
            _ => Lookup::Other,
        }
    }

    /// Whether it names the method OPTIONS, whose requests only rules that do so answer.
    pub fn names_options(&self) -> bool {
        match self {
            Self::Method(methods) => methods.iter().any(|it| it == ANY || it == "OPTIONS"),
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().any(Self::names_options)
            }
            Self::Not(condition) => match &**condition {
                Self::Method(_) => !condition.names_options(),
                other => other.names_options(),
            },
            _ => false,
        }
    }

    /// Whether it looks at content as text, so that content that is not what it claims may meet it.
    pub fn reads_text(&self) -> bool {
        match self {
            Self::Body(_) => true,
            Self::Part(test) => test.conditions.iter().any(Self::reads_text),
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().any(Self::reads_text)
            }
            Self::Not(condition) => condition.reads_text(),
            _ => false,
        }
    }

    /// Whether it parses content as XML, which may take many times longer than other conditions.
    pub(crate) fn reads_xml(&self) -> bool {
        match self {
            Self::XPath(..) | Self::EqualXml(_) => true,
            Self::Part(test) => test.conditions.iter().any(Self::reads_xml),
            Self::All(conditions) | Self::Any(conditions) => conditions.iter().any(Self::reads_xml),
            Self::Not(condition) => condition.reads_xml(),
            _ => false,
        }
    }

    /// Whether a request meets it; not if that takes more than its limits.
    #[inline]
    pub fn is_met_by(&self, request: &RequestView<'_>) -> bool {
        self.judge(request) == Some(true)
    }

    /// Whether a request meets it; absent if that takes more than its limits, so that its negation is not met either.
    pub(crate) fn judge(&self, request: &RequestView<'_>) -> Option<bool> {
        Some(match self {
            Self::Path(test) => test.is_met_by(&request.path),
            Self::Pattern(pattern) => pattern.matches(&request.path),
            Self::RawPath(test) => test.is_met_by(request.own_path()),
            Self::Url(test) => test.is_met_by(&request.own_url()),
            Self::Body(test) => test.is_met_by_bytes(body(request).into_iter()),
            Self::EqualJson(test) => {
                return request.json().map_or(Some(false), |json| test.judge(json));
            }
            Self::JsonPath(path, test) => request
                .json()
                .is_some_and(|json| test.is_met_by_all(&path.query(json).all())),
            Self::Jayway(path, test) => request.json().is_some_and(|json| {
                let found = path.query(json);
                test.is_met_by_all(&found.iter().collect::<Vec<_>>())
            }),
            Self::Schema(_, schema) => request.json().is_some_and(|json| schema.is_valid(json)),
            Self::XPath(path, test) => {
                let xml = match request.xml() {
                    Ok(xml) => xml,
                    Err(error) => return (!error.is_limit()).then_some(false),
                };
                let found = path.values(xml, request.xml_budget()).ok()?;
                test.is_met_by_any(found.iter().map(String::as_str))
            }
            Self::EqualXml(test) => match request.xml() {
                Ok(xml) => test.is_met_by(xml, request.xml_sums()),
                Err(error) => return (!error.is_limit()).then_some(false),
            },
            Self::Part(test) => return test.judge(request),
            Self::GraphQl(test) => request.operation().is_some_and(|it| test.is_met_by(it)),
            Self::Call(test) => return test.judge(request),
            Self::State(scenario, state) => scenario.is_in(state, request),
            Self::Origin(part, test) => test.is_met_by_any([&*part.read(request)].into_iter()),
            Self::Peer(test) => {
                let address = request.peer.ip().to_canonical().to_string();
                test.is_met_by_any([address.as_str()].into_iter())
            }
            Self::Number(scenario, test) => {
                let number = scenario.number(request).to_string();
                test.is_met_by_any([number.as_str()].into_iter())
            }
            Self::Template(test) => test.is_met_by(request),
            Self::Method(methods) => methods
                .iter()
                .any(|method| method == ANY || method.eq_ignore_ascii_case(request.method)),
            Self::Header(name, test) => test.is_met_by_bytes(request.header_values(name)),
            Self::Query(name, test) => test.is_met_by_any(values(request.parameters(), name)),
            Self::Cookie(name, test) => test.is_met_by_any(values(request.cookies(), name)),
            Self::Form(name, test) => test.is_met_by_any(values(request.form(), name)),
            Self::Json(path, test) => request
                .json()
                .is_some_and(|json| test.is_met_by(path.find(json))),
            Self::All(conditions) => return all(conditions.iter().map(|it| it.judge(request))),
            Self::Any(conditions) => return any(conditions.iter().map(|it| it.judge(request))),
            Self::Not(condition) => return condition.judge(request).map(|is_met| !is_met),
        })
    }

    /// The value in a request that the condition is about, for people.
    pub fn found(&self, request: &RequestView<'_>) -> String {
        let joined = |values: Vec<String>| {
            if values.is_empty() {
                "nothing".to_owned()
            } else {
                values.join(", ")
            }
        };
        let of_bytes = |value: &[u8]| shown(&String::from_utf8_lossy(value));
        let of = |pairs, name: &str| joined(values(pairs, name).map(shown).collect());
        match self {
            Self::Path(_) | Self::Pattern(_) => shown(&request.path),
            Self::JsonPath(path, _) => match request.json() {
                None => no_json(request),
                Some(json) => {
                    let values = path.query(json).all();
                    cut(&joined(values.iter().map(ToString::to_string).collect()))
                }
            },
            Self::Jayway(path, _) => match request.json() {
                None => no_json(request),
                Some(json) => cut(&joined(
                    path.query(json).iter().map(ToString::to_string).collect(),
                )),
            },
            Self::Schema(_, schema) => match request.json() {
                None => no_json(request),
                Some(json) => match schema.mistakes(json, 1).first() {
                    None => "content that it accepts".to_owned(),
                    Some(it) => cut(&format!("at `{}`: {}", it.pointer, it.message)),
                },
            },
            Self::XPath(path, _) => match request.xml() {
                Err(error) => format!("content that is {error}"),
                Ok(xml) => match path.values(xml, request.xml_budget()) {
                    Err(error) => error.to_string(),
                    Ok(values) => cut(&joined(values.iter().map(|it| shown(it)).collect())),
                },
            },
            Self::EqualXml(_) => match request.xml() {
                Err(error) => format!("content that is {error}"),
                Ok(xml) => cut(xml.input_text()),
            },
            Self::GraphQl(_) => request.operation().map_or_else(
                || "no operation of GraphQL".to_owned(),
                |operation| cut(&operation.to_string()),
            ),
            Self::Part(_) => cut(&PartTest::found(request)),
            Self::Call(call) => call.found(request),
            Self::State(scenario, _) => shown(&scenario.state(request)),
            Self::Peer(_) => request.peer.ip().to_string(),
            Self::Origin(part, _) => shown(&part.read(request)),
            Self::Number(scenario, _) => scenario.number(request).to_string(),
            Self::Template(test) => cut(&test.found(request)),
            Self::RawPath(_) => shown(request.own_path()),
            Self::Url(_) => shown(&request.own_url()),
            Self::Body(_) => joined(body(request).into_iter().map(of_bytes).collect()),
            Self::EqualJson(_) => request
                .json()
                .map_or_else(|| no_json(request), |json| cut(&json.to_string())),
            Self::Method(_) => request.method.to_owned(),
            Self::Header(name, _) => joined(request.header_values(name).map(of_bytes).collect()),
            Self::Query(name, _) => of(request.parameters(), name),
            Self::Cookie(name, _) => of(request.cookies(), name),
            Self::Form(name, _) => of(request.form(), name),
            Self::Json(path, _) => match request.json() {
                None => no_json(request),
                Some(json) => path
                    .find(json)
                    .map_or_else(|| "nothing".to_owned(), |value| cut(&value.to_string())),
            },
            Self::All(conditions) | Self::Any(conditions) => {
                let unmet = conditions.iter().filter(|it| !it.is_met_by(request));
                let found: Vec<_> = unmet.map(|it| it.found(request)).collect();
                found.join("; ")
            }
            Self::Not(condition) => condition.found(request),
        }
    }
}

/// As files would say it, more or less.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, name: &str, conditions: &[Self]| {
            write!(f, "{name}(")?;
            for (at, condition) in conditions.iter().enumerate() {
                if at > 0 {
                    f.write_str(", ")?;
                }
                condition.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Path(test) => write!(f, "url_path {test}"),
            Self::Pattern(pattern) => write!(f, "url_path pattern {:?}", pattern.to_string()),
            Self::JsonPath(path, test) => write!(f, "body.jsonpath {path} {test}"),
            Self::Jayway(path, test) => write!(f, "body.jayway {path} {test}"),
            Self::RawPath(test) => write!(f, "raw_path {test}"),
            Self::Url(test) => write!(f, "url {test}"),
            Self::Body(test) => write!(f, "body.text {test}"),
            Self::EqualJson(test) => write!(f, "body.equal_json {test}"),
            Self::Schema(file, _) => write!(f, "body.schema {file}"),
            Self::XPath(path, test) => write!(f, "body.xpath {path} {test}"),
            Self::EqualXml(test) => write!(f, "body.equal_xml {test}"),
            Self::Part(test) => write!(f, "multipart {test}"),
            Self::GraphQl(test) => write!(f, "graphql {test}"),
            Self::Call(test) => write!(f, "grpc {test}"),
            Self::State(scenario, state) => write!(f, "scenario {scenario} is {state:?}"),
            Self::Peer(test) => write!(f, "peer {test}"),
            Self::Origin(part, test) => write!(f, "{} {test}", part.name()),
            Self::Number(scenario, test) => write!(f, "scenario {scenario} number {test}"),
            Self::Template(test) => write!(f, "template {test}"),
            Self::Method(methods) => write!(f, "method {}", methods.join(" or ")),
            Self::Header(name, test) => write!(f, "header {name} {test}"),
            Self::Query(name, test) => write!(f, "query {name} {test}"),
            Self::Cookie(name, test) => write!(f, "cookie {name} {test}"),
            Self::Form(name, test) => write!(f, "form {name} {test}"),
            Self::Json(path, test) => write!(f, "body.json {path} {test}"),
            Self::All(conditions) => joined(f, "all", conditions),
            Self::Any(conditions) => joined(f, "any", conditions),
            Self::Not(condition) => write!(f, "not({condition})"),
        }
    }
}

/// Whether all hold; if none fails but one is unknown, that is unknown.
fn all(judgements: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(judgements.map(|it| it.map(|holds| !holds))).map(|fails| !fails)
}

/// Whether one holds; if none does but one is unknown, that is unknown.
fn any(judgements: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut found = Some(false);
    for judgement in judgements {
        match judgement {
            Some(true) => return Some(true),
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

/// The content, if there is any.
fn body<'a>(request: &RequestView<'a>) -> Option<&'a [u8]> {
    Some(request.body).filter(|body| !body.is_empty())
}

/// Why content is no JSON, such as that it is nested too deeply.
fn no_json(request: &RequestView<'_>) -> String {
    if request.body.is_empty() {
        return "no content".to_owned();
    }
    let error = serde_json::from_slice::<serde_json::Value>(request.body).err();
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    format!("content that is no JSON{error}")
}

fn shown(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// Enough of a text to recognise it.
fn cut(text: &str) -> String {
    // Some two lines of a terminal.
    const LONGEST: usize = 200;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
