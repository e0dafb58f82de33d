//! Helpers of Mockoon.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use handlebars::HelperResult;
use handlebars::template::TemplateElement;
use serde_json::Value;

use super::call::{Call, HelperError, number, of_number};
use super::faker;
use super::helpers::{Block, Entry, Scene, failed, shown};
use super::wiremock::{capitalized, found};
use crate::environment;
use crate::template::dates;
use crate::template::uuid;

pub(super) const HELPERS: [Entry; 66] = [
    ("newline", Block::None, |_| Ok("\n".into())),
    ("method", Block::None, |call| {
        Ok(call.request("method").clone())
    }),
    ("ip", Block::None, |call| {
        Ok(call.request("clientIp").clone())
    }),
    ("hostname", Block::None, |call| {
        Ok(call.request("host").clone())
    }),
    ("baseUrl", Block::None, |call| {
        Ok(call.request("baseUrl").clone())
    }),
    ("body", Block::None, body),
    ("bodyRaw", Block::None, body),
    ("queryParam", Block::None, |call| {
        Ok(looked_up(call, "query"))
    }),
    ("queryParamRaw", Block::None, |call| {
        Ok(looked_up(call, "query"))
    }),
    ("header", Block::None, |call| Ok(looked_up(call, "headers"))),
    ("cookie", Block::None, |call| Ok(looked_up(call, "cookies"))),
    ("urlParam", Block::None, |call| {
        let value = call.request("path").get(call.text(0)).cloned();
        Ok(value
            .filter(|it| !it.is_null())
            .unwrap_or_else(|| otherwise(call, 1)))
    }),
    ("getVar", Block::None, |call| {
        let value = call.model.get(call.text(0)).cloned();
        Ok(value.unwrap_or_else(|| otherwise(call, 1)))
    }),
    ("setGlobalVar", Block::None, |call| {
        let value = call.argument(1).cloned().unwrap_or_default();
        call.data.globals().set(&call.text(0), value)?;
        Ok(Value::Null)
    }),
    ("getGlobalVar", Block::None, |call| {
        let value = call.data.globals().get(&call.text(0));
        let path = call.argument(1).map(shown).filter(|it| !it.is_empty());
        let value = match (value, path) {
            (Some(value), Some(path)) => at_path(&value, &path)?,
            (value, _) => value,
        };
        Ok(value.unwrap_or_else(|| otherwise(call, 2)))
    }),
    ("getEnvVar", Block::None, |call| {
        let name = call.text(0);
        let name = match name.strip_prefix(ENVIRONMENT) {
            Some(_) => name,
            None => format!("{ENVIRONMENT}{name}"),
        };
        let value = environment::variable(&name);
        Ok(value.map_or_else(|| otherwise(call, 1), Value::from))
    }),
    ("someOf", Block::None, |call| {
        let items = call.argument(0).and_then(Value::as_array);
        let mut items = items.cloned().ok_or("needs a list")?;
        let (least, most) = (call.number(1)?, call.number(2)?);
        call.with(|rng| rng.shuffle(&mut items));
        let count = call
            .with(|rng| rng.f64() * (most - least + 1.0) + least)
            .floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within bounds"
        )]
        items.truncate(count.clamp(0.0, 1e6) as usize);
        let texts: Vec<String> = items.iter().map(shown).collect();
        Ok(match call.argument(3) {
            Some(Value::Bool(true)) => Value::Array(items).to_string(),
            _ => texts.join(","),
        }
        .into())
    }),
    ("uuid", Block::None, |call| Ok(call.with(uuid).into())),
    ("guid", Block::None, |call| Ok(call.with(uuid).into())),
    ("objectId", Block::None, |call| {
        Ok(call
            .with(|rng| format!("{:024x}", rng.u128(..) >> 32))
            .into())
    }),
    ("now", Block::None, |call| {
        let now = dates::now();
        Ok(match call.argument(0) {
            Some(format) => dates::formatted(&now, &shown(format))?,
            None => dates::formatted(&now, DATE_FORMAT)?,
        }
        .into())
    }),
    ("date", Block::None, date_between),
    ("dateFormat", Block::None, |call| {
        let time = dates::parsed(&call.text(0))?;
        Ok(dates::formatted(&time, &call.text(1))?.into())
    }),
    ("dateTimeShift", Block::None, date_time_shift),
    ("int", Block::None, |call| {
        let (least, most) = bounds(call, 0.0, 100.0)?;
        Ok(of_number(
            call.with(|rng| rng.f64() * (most - least + 1.0) + least)
                .floor(),
        ))
    }),
    ("float", Block::None, |call| {
        let (least, most) = bounds(call, 0.0, 1.0)?;
        Ok(of_number(
            call.with(fastrand::Rng::f64) * (most - least) + least,
        ))
    }),
    ("boolean", Block::None, |call| {
        Ok(call.with(fastrand::Rng::bool).into())
    }),
    ("oneOf", Block::None, |call| {
        let mut items = call.items();
        if items.is_empty() {
            return Ok(Value::Null);
        }
        let at = call.with(|rng| rng.usize(..items.len()));
        Ok(items.swap_remove(at))
    }),
    ("array", Block::None, |call| {
        Ok(Value::Array(
            call.arguments.iter().map(|it| (*it).clone()).collect(),
        ))
    }),
    ("concat", Block::None, |call| {
        let texts: Vec<String> = call.arguments.iter().map(|it| shown(it)).collect();
        Ok(texts.concat().into())
    }),
    ("add", Block::None, |call| {
        folded(call, |one, other| one + other)
    }),
    ("subtract", Block::None, |call| {
        folded(call, |one, other| one - other)
    }),
    ("multiply", Block::None, |call| {
        folded(call, |one, other| one * other)
    }),
    ("divide", Block::None, |call| {
        folded(call, |one, other| one / other)
    }),
    ("modulo", Block::None, |call| {
        folded(call, |one, other| one % other)
    }),
    ("ceil", Block::None, |call| {
        Ok(of_number(call.number(0)?.ceil()))
    }),
    ("floor", Block::None, |call| {
        Ok(of_number(call.number(0)?.floor()))
    }),
    ("round", Block::None, |call| {
        Ok(of_number(call.number(0)?.round()))
    }),
    ("toFixed", Block::None, |call| {
        let digits = call.number(1).unwrap_or(0.0).clamp(0.0, 20.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within bounds"
        )]
        let digits = digits as usize;
        Ok(format!("{:.digits$}", call.number(0)?).into())
    }),
    ("parseInt", Block::None, |call| {
        Ok(of_number(call.number(0)?.trunc()))
    }),
    ("lowercase", Block::Text, |call| {
        Ok(call.text(0).to_lowercase().into())
    }),
    ("uppercase", Block::Text, |call| {
        Ok(call.text(0).to_uppercase().into())
    }),
    ("capitalize", Block::Text, |call| {
        Ok(capitalized(&call.text(0)).into())
    }),
    ("includes", Block::Condition, |call| {
        Ok(match call.argument(0) {
            Some(Value::Array(items)) => items.iter().any(|it| shown(it) == call.text(1)),
            _ => call.text(0).contains(&call.text(1)),
        }
        .into())
    }),
    ("split", Block::None, |call| {
        let separator = call.argument(1).map_or_else(|| " ".to_owned(), shown);
        Ok(call
            .text(0)
            .split(separator.as_str())
            .map(Value::from)
            .collect())
    }),
    ("join", Block::None, |call| {
        let separator = call.argument(1).map_or_else(|| ", ".to_owned(), shown);
        let items = call
            .argument(0)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let items: Vec<String> = items.iter().map(shown).collect();
        Ok(items.join(&separator).into())
    }),
    ("indexOf", Block::None, |call| {
        let found = match call.argument(0) {
            Some(Value::Array(items)) => items.iter().position(|it| shown(it) == call.text(1)),
            _ => call.text(0).find(&call.text(1)),
        };
        Ok(found.map_or_else(|| Value::from(-1), Value::from))
    }),
    ("len", Block::None, |call| {
        Ok(match call.argument(0) {
            Some(Value::Array(items)) => items.len(),
            _ => call.text(0).chars().count(),
        }
        .into())
    }),
    ("base64", Block::Text, |call| {
        Ok(STANDARD.encode(call.text(0)).into())
    }),
    ("base64Decode", Block::Text, |call| {
        let bytes = STANDARD
            .decode(call.text(0).trim())
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    }),
    ("stringify", Block::None, |call| {
        let value = call.argument(0).cloned().unwrap_or_default();
        serde_json::to_string_pretty(&value)
            .map(Value::from)
            .map_err(|error| error.to_string())
            .map_err(HelperError::from)
    }),
    ("jsonParse", Block::None, |call| {
        serde_json::from_str(&call.text(0))
            .map_err(|error| error.to_string())
            .map_err(HelperError::from)
    }),
    ("data", Block::None, data),
    ("dataRaw", Block::None, data),
    ("faker", Block::None, faker::run),
    ("firstName", Block::None, faker::short),
    ("lastName", Block::None, faker::short),
    ("email", Block::None, faker::short),
    ("city", Block::None, faker::short),
    ("country", Block::None, faker::short),
    ("street", Block::None, faker::short),
    ("phone", Block::None, faker::short),
    ("company", Block::None, faker::short),
    ("ipv4", Block::None, faker::short),
    ("lorem", Block::None, |call| Ok(faker::words(call, 0, 7))),
    ("title", Block::None, |call| {
        Ok(call
            .with(|rng| ["Mr", "Mrs", "Miss", "Dr"][rng.usize(..4)])
            .into())
    }),
];

/// What the names of variables of the environment begin with, as in Mockoon.
const ENVIRONMENT: &str = "MOCKOON_";

/// The value for something missing: an argument, or nothing.
fn otherwise(call: &Call<'_>, at: usize) -> Value {
    call.argument(at).cloned().unwrap_or_default()
}

/// A value at a path of the content; without a path all of it, and a default if it is not there.
fn body(call: &Call<'_>) -> Result<Value, HelperError> {
    let Some(path) = call.argument(0).map(shown).filter(|it| !it.is_empty()) else {
        return Ok(call.request("body").clone());
    };
    let form = call.request("formData").get(&path).and_then(|it| it.get(0));
    let value = match form {
        Some(value) => Some(value.clone()),
        None => at_path(call.request("json"), &path)?,
    };
    Ok(value.unwrap_or_else(|| otherwise(call, 1)))
}

/// A value of data, or what a path finds in it.
fn data(call: &Call<'_>) -> Result<Value, HelperError> {
    let Some(value) = call.data.find(&call.text(0)) else {
        return Ok(Value::Null);
    };
    match call.argument(1).map(shown).filter(|it| !it.is_empty()) {
        None => Ok(value.clone()),
        Some(path) => at_path(value, &path).map(Option::unwrap_or_default),
    }
}

/// A parameter, field or cookie, or its default.
fn looked_up(call: &Call<'_>, kind: &str) -> Value {
    let mut name = call.text(0);
    if name.is_empty() {
        return call.request(&format!("{kind}Last")).clone();
    }
    if kind == "headers" {
        name.make_ascii_lowercase();
    }
    let value = match call.request(kind).get(&name) {
        Some(Value::Array(values)) if values.len() == 1 => values.first().cloned(),
        other => other.cloned(),
    };
    value.unwrap_or_else(|| otherwise(call, 1))
}

/// By a path of JSONPath, or by keys with dots between them.
fn at_path(json: &Value, path: &str) -> Result<Option<Value>, HelperError> {
    if path.starts_with('$') {
        return found(json, path);
    }
    let path = path.replace('[', ".").replace(']', "");
    let mut value = json;
    for key in path.split('.').filter(|key| !key.is_empty()) {
        let next = match value {
            Value::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
            value => value.get(key),
        };
        match next {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value.clone()).filter(|it| !it.is_null()))
}

fn bounds(call: &Call<'_>, least: f64, most: f64) -> Result<(f64, f64), HelperError> {
    let given = |at: usize, usual: f64| match call.argument(at) {
        Some(value) => number(value).ok_or_else(|| format!("`{}` is no number", shown(value))),
        None => Ok(usual),
    };
    let (least, most) = (given(0, least)?, given(1, most)?);
    if least > most {
        return Err("the first number is above the second".into());
    }
    Ok((least, most))
}

fn folded(call: &Call<'_>, join: fn(f64, f64) -> f64) -> Result<Value, HelperError> {
    let items = call.items();
    let mut numbers = items.iter().filter_map(number);
    let first = numbers.next().ok_or("there is no number")?;
    Ok(of_number(numbers.fold(first, join)))
}

/// A time by chance between two, by a format.
fn date_between(call: &Call<'_>) -> Result<Value, HelperError> {
    // A year alone is its beginning.
    let of = |text: String| match text.len() {
        4 => dates::parsed(&format!("{text}-01-01")),
        _ => dates::parsed(&text),
    };
    let (from, to) = (of(call.text(0))?, of(call.text(1))?);
    let seconds = to.timestamp().as_second() - from.timestamp().as_second();
    let offset = call.with(|rng| rng.i64(0..=seconds.max(0)));
    let time = dates::moved(&from, &format!("{offset} seconds"))?;
    let format = call.argument(2).map(shown);
    let format = format.unwrap_or_else(|| DATE_FORMAT.to_owned());
    dates::formatted(&time, &format)
        .map(Value::from)
        .map_err(HelperError::from)
}

/// As Mockoon writes dates unless a format is given.
const DATE_FORMAT: &str = "yyyy-MM-dd'T'HH:mm:ss.SSSxxx";

fn date_time_shift(call: &Call<'_>) -> Result<Value, HelperError> {
    let mut time = match call.option_text("date") {
        Some(date) => dates::parsed(&date)?,
        None => dates::now(),
    };
    for unit in ["years", "months", "days", "hours", "minutes", "seconds"] {
        if let Some(count) = call.option_text(unit) {
            time = dates::moved(&time, &format!("{count} {unit}"))?;
        }
    }
    let format = call.option_text("format");
    let format = format.unwrap_or_else(|| DATE_FORMAT.to_owned());
    Ok(dates::formatted(&time, &format)?.into())
}

/// A block is repeated this often at most.
const MOST_REPEATS: i64 = 10_000;

/// `{{#repeat 3}}`, or `{{#repeat 2 5 comma=false}}`: the block so often, with a comma and a line feed behind each one, and
/// without the comma behind the last.
pub(super) fn repeat(scene: &mut Scene<'_, '_, '_>) -> HelperResult {
    #[expect(clippy::cast_possible_truncation, reason = "it is bounded below")]
    let count = |at: usize| scene.argument(at).and_then(number).map(|it| it as i64);
    let least = count(0)
        .ok_or_else(|| failed("repeat", "needs a number"))?
        .max(0);
    let most = count(1).unwrap_or(least).max(least);
    if most > MOST_REPEATS {
        return Err(failed("repeat", "repeats more than 10,000 times"));
    }
    let times = scene.chance.with(|rng| rng.i64(least..=most));
    let has_commas = scene.option("comma") != Some(&Value::Bool(false));
    let Some(template) = scene.helper.template() else {
        return Ok(());
    };
    for number in 0..times {
        let is_last = number + 1 == times;
        if let Some(block) = scene.render.block_mut() {
            block.set_local_var("index", Value::from(number));
            block.set_local_var("total", Value::from(times));
            block.set_local_var("first", Value::from(number == 0));
            block.set_local_var("last", Value::from(is_last));
        }
        if !has_commas {
            scene.write(Some(template))?;
            continue;
        }
        let text = scene.rendered(template)?;
        let text = text.trim_end();
        let bare = text.strip_suffix(',').unwrap_or(text);
        scene.output.write(bare)?;
        scene.output.write(match (is_last, text.is_empty()) {
            (true, _) => "\n",
            (false, true) => "",
            (false, false) => ",\n",
        })?;
    }
    Ok(())
}

/// `{{#switch x}}{{#case 'a'}}…{{/case}}{{#default}}…{{/default}}{{/switch}}`
pub(super) fn switch(scene: &mut Scene<'_, '_, '_>) -> HelperResult {
    let wanted = scene.argument(0).map(shown).unwrap_or_default();
    let elements = scene.helper.template().map(|it| &it.elements);
    let mut default = None;
    for element in elements.into_iter().flatten() {
        let TemplateElement::HelperBlock(case) = element else {
            continue;
        };
        let name = case.name.as_name().unwrap_or_default();
        let Some(template) = &case.template else {
            continue;
        };
        if name == "default" {
            default = Some(template);
            continue;
        }
        for value in &case.params {
            let value = value.expand(scene.registry, scene.context, scene.render)?;
            if shown(value.value()) == wanted {
                return scene.write(Some(template));
            }
        }
    }
    scene.write(default)
}
