//! Helpers of WireMock.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use regex::Regex;
use serde_json::{Map, Value};

use super::call::{Call, HelperError, of_number};
use super::helpers::{Block, Entry, shown};
use crate::environment;
use crate::request::{Pairs, pairs};
use crate::rules::condition::jayway::JaywayPath;
use crate::rules::condition::xpath::{self, RequestBudget, XPath};
use crate::rules::java_regex;
use crate::template::dates::{self, Truncation};
use crate::template::fake::Fake;
use crate::template::uuid;

pub(super) const HELPERS: [Entry; 44] = [
    ("now", Block::None, |call| date(call, None)),
    ("date", Block::None, |call| date(call, call.argument(0))),
    ("parseDate", Block::None, parse_date),
    ("truncateDate", Block::None, |call| {
        let truncation = Truncation::named(&call.text(1))?;
        let time = truncation.truncated(&dates::parsed(&call.text(0))?);
        dates::iso(&time.ok_or("leads beyond all dates")?)
            .map(Value::from)
            .map_err(HelperError::from)
    }),
    ("jsonPath", Block::None, json_path),
    ("xPath", Block::None, |call| x_path(call, "")),
    ("soapXPath", Block::None, |call| {
        x_path(call, "/*[local-name()='Envelope']/*[local-name()='Body']")
    }),
    ("regexExtract", Block::None, regex_extract),
    ("randomValue", Block::None, random_value),
    ("randomInt", Block::None, random_int),
    ("randomDecimal", Block::None, random_decimal),
    ("pickRandom", Block::None, pick_random),
    ("base64", Block::Text, base64),
    ("urlEncode", Block::Text, |call| Ok(url_encode(call))),
    ("formData", Block::Text, |call| Ok(form_data(call))),
    ("size", Block::None, |call| Ok(size(call))),
    ("join", Block::None, join),
    ("arrayJoin", Block::None, |call| {
        let separator = call.text(0);
        let items = call
            .argument(1)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let items: Vec<String> = items.iter().map(shown).collect();
        Ok(items.join(&separator).into())
    }),
    ("array", Block::None, |call| {
        Ok(Value::Array(
            call.arguments.iter().map(|it| (*it).clone()).collect(),
        ))
    }),
    ("range", Block::None, range),
    ("parseJson", Block::Text, |call| {
        serde_json::from_str(&call.text(0))
            .map_err(|error| error.to_string())
            .map_err(HelperError::from)
    }),
    ("toJson", Block::None, |call| {
        Ok(call
            .argument(0)
            .map(ToString::to_string)
            .unwrap_or_default()
            .into())
    }),
    ("math", Block::None, math),
    ("contains", Block::Condition, |call| {
        Ok(match call.argument(0) {
            Some(Value::Array(items)) => {
                let wanted = call.text(1);
                items.iter().any(|it| shown(it) == wanted).into()
            }
            _ => call.text(0).contains(&call.text(1)).into(),
        })
    }),
    ("matches", Block::Condition, |call| {
        let pattern = java_regex::translated(&call.text(1))?;
        let pattern = Regex::new(&format!("^(?:{pattern})$"));
        let pattern = pattern.map_err(|error| error.to_string())?;
        Ok(pattern.is_match(&call.text(0)).into())
    }),
    ("capitalize", Block::Text, |call| {
        let text = call.text(0);
        let words: Vec<String> = text.split(' ').map(capitalized).collect();
        Ok(words.join(" ").into())
    }),
    ("capitalizeFirst", Block::Text, |call| {
        Ok(capitalized(&call.text(0)).into())
    }),
    ("cut", Block::None, |call| {
        Ok(call.text(0).replace(&call.text(1), "").into())
    }),
    ("defaultIfEmpty", Block::None, |call| {
        let text = call.text(0);
        Ok(if text.is_empty() { call.text(1) } else { text }.into())
    }),
    ("substring", Block::None, |call| {
        let text: Vec<char> = call.text(0).chars().collect();
        let at = |number: usize| call.number(number).map(|it| bounded(it).min(text.len()));
        let start = at(1)?;
        let end = if call.argument(2).is_some() {
            at(2)?
        } else {
            text.len()
        };
        Ok(text
            .get(start..end.max(start))
            .unwrap_or_default()
            .iter()
            .collect::<String>()
            .into())
    }),
    ("ljust", Block::None, |call| justified(call, true)),
    ("rjust", Block::None, |call| justified(call, false)),
    ("yesno", Block::None, |call| {
        let text = match call.argument(0) {
            Some(Value::Bool(true)) => call.option_text("yes").unwrap_or_else(|| "yes".to_owned()),
            Some(_) => call.option_text("no").unwrap_or_else(|| "no".to_owned()),
            None => call
                .option_text("maybe")
                .unwrap_or_else(|| "maybe".to_owned()),
        };
        Ok(text.into())
    }),
    ("stripTags", Block::Text, |call| {
        let tags = Regex::new("<[^>]*>").map_err(|error| error.to_string())?;
        Ok(tags.replace_all(&call.text(0), "").into_owned().into())
    }),
    ("isOdd", Block::Condition, |call| {
        Ok((call.number(0)? % 2.0 != 0.0).into())
    }),
    ("isEven", Block::Condition, |call| {
        Ok((call.number(0)? % 2.0 == 0.0).into())
    }),
    ("stripes", Block::None, |call| {
        let at = if call.number(0)? % 2.0 == 0.0 { 1 } else { 2 };
        Ok(call.text(at).into())
    }),
    ("stringFormat", Block::None, string_format),
    ("slugify", Block::Text, |call| {
        let other = Regex::new("[^a-z0-9]+").map_err(|error| error.to_string())?;
        let text = call.text(0).to_lowercase();
        Ok(other.replace_all(&text, "-").trim_matches('-').into())
    }),
    ("hostname", Block::None, |call| {
        Ok(call.request("host").clone())
    }),
    ("len", Block::None, |call| Ok(size(call))),
    ("systemValue", Block::None, system_value),
    ("random", Block::None, random),
    ("jwt", Block::None, super::jwt::token),
];

/// Variables of the environment that templates may read, in any case, as in WireMock.
const READABLE: &str = "wiremock";

/// `{{systemValue type='ENVIRONMENT' key='WIREMOCK_HOST' default='x'}}`; there are no properties of a Java machine.
fn system_value(call: &Call<'_>) -> Result<Value, HelperError> {
    let key = call.option_text("key").ok_or("needs a `key`")?;
    let is_environment = call.option_text("type").as_deref() != Some("PROPERTY");
    if !key.to_ascii_lowercase().starts_with(READABLE) {
        return Err(format!("access to {key} is denied: names begin with `{READABLE}`").into());
    }
    let value = environment::variable(&key).filter(|_| is_environment);
    Ok(value.map_or_else(|| default(call), Value::from))
}

/// Values of WireMock's extension for Faker, by its names without underscores and in small letters.
const FAKED: [(&str, Fake); 24] = [
    ("name.firstname", Fake::FirstName),
    ("name.lastname", Fake::LastName),
    ("name.fullname", Fake::Name),
    ("name.name", Fake::Name),
    ("name.username", Fake::User),
    ("internet.emailaddress", Fake::Email),
    ("internet.safeemailaddress", Fake::Email),
    ("internet.username", Fake::User),
    ("internet.ipv4address", Fake::Ipv4),
    ("phonenumber.phonenumber", Fake::Phone),
    ("phonenumber.cellphone", Fake::Phone),
    ("address.streetaddress", Fake::Street),
    ("address.streetname", Fake::Street),
    ("address.city", Fake::City),
    ("address.cityname", Fake::City),
    ("address.country", Fake::Country),
    ("company.name", Fake::Company),
    ("lorem.word", Fake::Word),
    ("lorem.sentence", Fake::Sentence),
    ("bool.bool", Fake::Boolean),
    ("commerce.price", Fake::Price),
    ("commerce.productname", Fake::Word),
    ("color.name", Fake::Word),
    ("date.birthday", Fake::Date),
];

/// `{{random 'Name.first_name'}}`
fn random(call: &Call<'_>) -> Result<Value, HelperError> {
    let name = call.text(0);
    let key = name.replace('_', "").to_ascii_lowercase();
    if key == "internet.uuid" {
        return Ok(call.with(uuid).into());
    }
    let known = FAKED.iter().find(|(known, _)| *known == key);
    let (_, fake) = known.ok_or_else(|| format!("`{name}` is not known here"))?;
    Ok(call.with(|rng| fake.make(rng)).into())
}

fn date(call: &Call<'_>, given: Option<&Value>) -> Result<Value, HelperError> {
    let mut time = match given {
        Some(value) => dates::parsed(&shown(value))?,
        None => dates::now(),
    };
    if let Some(offset) = call.option_text("offset") {
        time = dates::moved(&time, &offset)?;
    }
    if let Some(zone) = call.option_text("timezone") {
        time = dates::in_zone(&time, &zone)?;
    }
    let text = match call.option_text("format") {
        Some(format) => dates::formatted(&time, &format)?,
        None => dates::iso(&time)?,
    };
    Ok(text.into())
}

fn parse_date(call: &Call<'_>) -> Result<Value, HelperError> {
    let text = call.text(0);
    let time = match call.option_text("format") {
        Some(format) => dates::parsed_by(&text, &format)
            .ok_or_else(|| format!("`{text}` is no date of the format `{format}`"))?,
        None => dates::parsed(&text)?,
    };
    dates::iso(&time)
        .map(Value::from)
        .map_err(HelperError::from)
}

fn json_path(call: &Call<'_>) -> Result<Value, HelperError> {
    let parsed;
    let json = match call.argument(0) {
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(json) => {
                parsed = json;
                &parsed
            }
            Err(_) => return Ok(default(call)),
        },
        Some(value) => value,
        None => return Ok(default(call)),
    };
    let path = call.text(1);
    found(json, &path).map(|it| it.unwrap_or_else(|| default(call)))
}

/// The result of a path: one value, or a list if it may lead to several.
pub(super) fn found(json: &Value, path: &str) -> Result<Option<Value>, HelperError> {
    let path = if path.starts_with('$') {
        path.to_owned()
    } else {
        format!("$.{path}")
    };
    let parsed = JaywayPath::new(&path);
    let parsed = parsed.map_err(|error| format!("`{path}` is no JSONPath: {error}"))?;
    let mut all = parsed.query(json);
    let is_single = !["..", "*", "?", ":", ","]
        .iter()
        .any(|it| path.contains(it));
    if is_single {
        return Ok((!all.is_empty()).then(|| all.swap_remove(0)));
    }
    Ok(Some(Value::Array(all)))
}

fn default(call: &Call<'_>) -> Value {
    call.option("default").cloned().unwrap_or_default()
}

fn x_path(call: &Call<'_>, before: &str) -> Result<Value, HelperError> {
    let text = call.text(0);
    let Ok(document) = xpath::document(text.trim_start().as_bytes()) else {
        return Ok(default(call));
    };
    let expression = format!("{before}{}", call.text(1));
    let expression = XPath::new(&expression, &[]).map_err(|error| error.to_string())?;
    // WireMock's helpers read XML without namespaces: `/a/b` finds the elements whatever their default is.
    let expression = expression.ignoring_namespaces();
    let values = expression.values(&document, &RequestBudget::default());
    let first = values
        .map_err(|error| error.to_string())?
        .into_iter()
        .next();
    Ok(first.map_or_else(|| default(call), Value::from))
}

fn regex_extract(call: &Call<'_>) -> Result<Value, HelperError> {
    let pattern = java_regex::translated(&call.text(1))?;
    let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
    let text = call.text(0);
    let Some(found) = pattern.captures(&text) else {
        return match call.option("default") {
            Some(default) => Ok(default.clone()),
            None => Err(format!("nothing matched {pattern}").into()),
        };
    };
    // With a name for them, the groups; else the whole.
    if call.argument(2).is_some() {
        let groups = found.iter().skip(1);
        return Ok(groups.map(|it| it.map(|it| it.as_str())).collect());
    }
    Ok(found.get(0).map(|it| it.as_str()).into())
}

fn random_value(call: &Call<'_>) -> Result<Value, HelperError> {
    const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
    let kind = call.option_text("type").unwrap_or_default();
    if kind == "UUID" {
        return Ok(call.with(uuid).into());
    }
    let is_upper = call.flag("uppercase");
    let letters = if is_upper {
        LOWER.to_uppercase()
    } else {
        LOWER.to_owned()
    };
    let alphabet = match kind.as_str() {
        "ALPHANUMERIC" => letters + "0123456789",
        "ALPHABETIC" => letters,
        "NUMERIC" => "0123456789".to_owned(),
        "HEXADECIMAL" if is_upper => "0123456789ABCDEF".to_owned(),
        "HEXADECIMAL" => "0123456789abcdef".to_owned(),
        "ALPHANUMERIC_AND_SYMBOLS" => letters + "0123456789!#$%&()*+,-./:;=?@[]^_{|}~",
        other => return Err(format!("there is no type `{other}`").into()),
    };
    let length = match call.option("length") {
        Some(length) => super::call::number(length).ok_or("`length` is no number")?,
        None => 36.0,
    };
    let alphabet: Vec<char> = alphabet.chars().collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within bounds"
    )]
    let count = length.clamp(0.0, 65_536.0) as usize;
    let text: String = call.with(|rng| {
        let one = |_| alphabet[rng.usize(..alphabet.len())];
        (0..count).map(one).collect()
    });
    Ok(text.into())
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are whole")]
fn random_int(call: &Call<'_>) -> Result<Value, HelperError> {
    let bound = |name: &str, usual: i64| match call.option(name) {
        Some(value) => super::call::number(value)
            .map(|it| it as i64)
            .ok_or_else(|| format!("`{name}` is no number")),
        None => Ok(usual),
    };
    let lower = bound("lower", 0)?;
    let upper = bound("upper", i64::from(i32::MAX))?;
    if lower >= upper {
        return Err("`lower` is not below `upper`".into());
    }
    Ok(call.with(|rng| rng.i64(lower..upper)).into())
}

fn random_decimal(call: &Call<'_>) -> Result<Value, HelperError> {
    let bound = |name: &str, usual: f64| match call.option(name) {
        Some(value) => super::call::number(value).ok_or_else(|| format!("`{name}` is no number")),
        None => Ok(usual),
    };
    let (lower, upper) = (bound("lower", 0.0)?, bound("upper", 1.0)?);
    Ok(of_number(
        lower + call.with(fastrand::Rng::f64) * (upper - lower),
    ))
}

fn pick_random(call: &Call<'_>) -> Result<Value, HelperError> {
    let mut items = call.items();
    if items.is_empty() {
        return Err("there is nothing to pick from".into());
    }
    let at = call.with(|rng| rng.usize(..items.len()));
    Ok(items.swap_remove(at))
}

fn base64(call: &Call<'_>) -> Result<Value, HelperError> {
    let text = call.text(0);
    if call.flag("decode") {
        let bytes = STANDARD_NO_PAD.decode(text.trim().trim_end_matches('='));
        let bytes = bytes.map_err(|error| error.to_string())?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned().into());
    }
    let has_padding = call.option_text("padding").as_deref() != Some("false");
    Ok(if has_padding {
        STANDARD.encode(text)
    } else {
        STANDARD_NO_PAD.encode(text)
    }
    .into())
}

/// Characters that are not escaped in forms (WHATWG URL, section 5.2).
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'*')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b' ');

fn url_encode(call: &Call<'_>) -> Value {
    let text = call.text(0);
    if call.flag("decode") {
        let text = text.replace('+', " ");
        return percent_decode_str(&text)
            .decode_utf8_lossy()
            .into_owned()
            .into();
    }
    utf8_percent_encode(&text, KEPT)
        .to_string()
        .replace(' ', "+")
        .into()
}

fn form_data(call: &Call<'_>) -> Value {
    let text = call.text(0);
    // Values stay as they are unless they are to be decoded; names always are.
    let fields: Pairs = if call.flag("urlDecode") {
        pairs(text.as_bytes())
    } else {
        let fields = text.split('&').filter(|field| !field.is_empty());
        fields
            .map(|field| {
                let (name, value) = field.split_once('=').unwrap_or((field, ""));
                (name.to_owned(), value.to_owned())
            })
            .collect()
    };
    let mut form = Map::new();
    for (name, value) in fields {
        let value = Value::from(value);
        match form.get_mut(&name) {
            None => {
                form.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(form)
}

fn size(call: &Call<'_>) -> Value {
    match call.argument(0) {
        None => 0,
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(entries)) => entries.len(),
        Some(value) => shown(value).chars().count(),
    }
    .into()
}

fn join(call: &Call<'_>) -> Result<Value, HelperError> {
    let (items, separator) = match call.arguments.as_slice() {
        [Value::Array(items), separator, ..] => (items.clone(), shown(separator)),
        [items @ .., separator] => {
            let items = items.iter().map(|it| (*it).clone()).collect();
            (items, shown(separator))
        }
        [] => return Err("there is nothing to join".into()),
    };
    let items: Vec<String> = items.iter().map(shown).collect();
    Ok(items.join(&separator).into())
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are whole")]
fn range(call: &Call<'_>) -> Result<Value, HelperError> {
    let (from, to) = (call.number(0)? as i64, call.number(1)? as i64);
    if to.saturating_sub(from) > 100_000 {
        return Err("has more than 100,000 numbers".into());
    }
    Ok((from..=to).map(Value::from).collect())
}

fn math(call: &Call<'_>) -> Result<Value, HelperError> {
    let (one, other) = (call.number(0)?, call.number(2)?);
    Ok(of_number(match call.text(1).as_str() {
        "+" => one + other,
        "-" => one - other,
        "*" | "x" => one * other,
        "/" => one / other,
        "%" => one % other,
        other => return Err(format!("there is no operator `{other}`").into()),
    }))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within bounds"
)]
fn justified(call: &Call<'_>, is_left: bool) -> Result<Value, HelperError> {
    let text = call.text(0);
    let size = match call.option("size") {
        Some(size) => super::call::number(size).ok_or("`size` is no number")?,
        None => call.number(1)?,
    };
    let pad = call.option_text("pad").unwrap_or_else(|| " ".to_owned());
    let missing = (size.clamp(0.0, 65_536.0) as usize).saturating_sub(text.chars().count());
    let pad = pad.repeat(missing);
    Ok(if is_left { text + &pad } else { pad + &text }.into())
}

/// `%s` and `%d` only.
fn string_format(call: &Call<'_>) -> Result<Value, HelperError> {
    let format = call.text(0);
    let mut text = String::new();
    let mut at = 1;
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('%') => text.push('%'),
            Some('s' | 'd') => {
                text.push_str(&call.text(at));
                at += 1;
            }
            _ => return Err(format!("`{format}` has more than %s and %d").into()),
        }
    }
    Ok(text.into())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within bounds"
)]
fn bounded(number: f64) -> usize {
    number.clamp(0.0, 65_536.0) as usize
}

pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next();
    first
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(characters)
        .collect()
}
