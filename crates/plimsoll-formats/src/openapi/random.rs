//! Values that fit schemas, each time others: what is chosen is chosen by numbers that the caller gives.

use serde_json::{Map, Value, json};

use super::flat::Flattening;
use super::schema::{Document, Unsupported, is_object, is_schema, undescribed};

/// Beyond this depth only what is required is made, and lists are as short as they may be.
const DEEPEST_OPTIONAL: u32 = 3;

/// The depth to which references and nested schemas are followed.
const DEEPEST: u32 = 24;

/// Lists and texts are not made longer.
const LONGEST: u64 = 4096;

/// Makes values by chance.
pub(super) struct Dice<'d, 'a> {
    document: &'d Document<'a>,
    /// A number below the given one, which is not 0.
    below: &'d mut dyn FnMut(u64) -> u64,
}

impl<'d, 'a> Dice<'d, 'a> {
    pub(super) fn new(document: &'d Document<'a>, below: &'d mut dyn FnMut(u64) -> u64) -> Self {
        Self { document, below }
    }

    /// A value that fits `schema`, whatever examples it has.
    pub(super) fn make(&mut self, schema: &Value) -> Result<Value, Unsupported> {
        self.make_within(schema, 0)
    }

    fn make_within(&mut self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        if depth > DEEPEST {
            return Err(Unsupported("the schema requires itself".to_owned()));
        }
        let document = self.document;
        let below = &mut *self.below;
        let mut flattening = Flattening {
            document,
            takes_examples: false,
            pick: &mut |alternatives| chosen(below, alternatives.len()),
        };
        let flat = flattening.flat(schema)?;
        let schema = flat.as_ref();
        if let Some(value) = schema.get("const") {
            return Ok(value.clone());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return Ok(self.one_of(values).cloned().unwrap_or_default());
        }
        let kind = super::schema::kind(schema);
        if is_object(schema) {
            return self.object(schema, depth);
        }
        match kind {
            Some("array") => self.array(schema, depth),
            Some("string") => self.string(schema),
            Some("integer") => Ok(self.number(schema, true)),
            Some("number") => Ok(self.number(schema, false)),
            Some("boolean") => Ok(Value::Bool((self.below)(2) == 0)),
            _ => document.make(schema),
        }
    }

    fn one_of<'v>(&mut self, all: &'v [Value]) -> Option<&'v Value> {
        all.get(chosen(self.below, all.len()))
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        let mut whole = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        for (name, property) in properties.filter(|(_, property)| is_schema(property)) {
            if self.document.leaves_out(self.document.resolve(property)?) {
                continue;
            }
            if is_required(name) {
                let value = self.make_within(property, depth + 1);
                let value = value
                    .map_err(|Unsupported(reason)| Unsupported(format!("`{name}`: {reason}")))?;
                whole.insert(name.clone(), value);
            } else if depth < DEEPEST_OPTIONAL
                && let Ok(value) = self.make_within(property, depth + 1)
            {
                whole.insert(name.clone(), value);
            }
        }
        for name in undescribed(schema) {
            let value = match schema.get("additionalProperties") {
                Some(more @ Value::Object(_)) => self.make_within(more, depth + 1)?,
                _ => self.string(&json!({}))?,
            };
            whole.insert(name.to_owned(), value);
        }
        Ok(Value::Object(whole))
    }

    fn array(&mut self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minItems").unwrap_or(0);
        if least > LONGEST {
            return Err(Unsupported(format!("a list of {least} items is too long")));
        }
        let Some(items) = schema.get("items") else {
            return Ok(json!([]));
        };
        let count = if depth >= DEEPEST_OPTIONAL {
            least
        } else {
            let most = bound("maxItems").unwrap_or(u64::MAX).min(least.max(1) + 2);
            let fewest = least.max(1).min(most);
            fewest + (self.below)(most - fewest + 1)
        };
        let mut all = Vec::new();
        for _ in 0..count {
            match self.make_within(items, depth + 1) {
                Ok(item) => all.push(item),
                Err(_) if all.len() as u64 >= least => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok(Value::Array(all))
    }

    fn string(&mut self, schema: &Value) -> Result<Value, Unsupported> {
        let mut digits = |count: u32| (self.below)(10u64.pow(count));
        let format = schema.get("format").and_then(Value::as_str);
        let made = match format {
            Some("date-time") => {
                let (day, hour, minute) = (digits(2) % 28 + 1, digits(2) % 24, digits(2) % 60);
                format!(
                    "2024-{:02}-{day:02}T{hour:02}:{minute:02}:00Z",
                    digits(2) % 12 + 1
                )
            }
            Some("date") => format!("2024-{:02}-{:02}", digits(2) % 12 + 1, digits(2) % 28 + 1),
            Some("time") => format!("{:02}:{:02}:00Z", digits(2) % 24, digits(2) % 60),
            Some("uuid") => {
                let mut hex = |digits: u32| (self.below)(1 << (4 * digits));
                let (first, second, third, fourth) = (hex(8), hex(4), hex(3), hex(3));
                format!(
                    "{first:08x}-{second:04x}-4{third:03x}-a{fourth:03x}-{:012x}",
                    hex(12)
                )
            }
            Some("email" | "idn-email") => format!("user{}@example.org", digits(4)),
            Some("uri" | "url" | "iri") => format!("https://example.org/{}", digits(4)),
            Some("ipv4") => format!("192.0.2.{}", digits(2) + 1),
            Some("ipv6") => format!("2001:db8::{:x}", digits(4) + 1),
            Some("hostname" | "idn-hostname") => format!("host{}.example.org", digits(4)),
            Some(_) => return self.document.make(schema),
            None if schema.get("pattern").is_some() => return self.document.make(schema),
            None => return self.text(schema),
        };
        Ok(json!(made))
    }

    fn text(&mut self, schema: &Value) -> Result<Value, Unsupported> {
        const WORDS: [&str; 12] = [
            "amber", "birch", "copper", "delta", "ember", "fjord", "grove", "harbour", "inlet",
            "juniper", "keel", "lantern",
        ];
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minLength").unwrap_or(0);
        let most = bound("maxLength").unwrap_or(u64::MAX);
        if least > LONGEST {
            return Err(Unsupported(format!(
                "a text of {least} characters is too long"
            )));
        }
        let mut text = String::new();
        while text.is_empty() || (text.len() as u64) < least {
            if !text.is_empty() {
                text.push(' ');
            }
            let word = usize::try_from((self.below)(WORDS.len() as u64)).unwrap_or_default();
            text.push_str(WORDS.get(word).copied().unwrap_or_default());
        }
        // All of its characters are one byte long.
        text.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(json!(text))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds are small, or it may be cut"
    )]
    fn number(&mut self, schema: &Value, is_whole: bool) -> Value {
        let Ok(fixed) = self.document.make(schema) else {
            return Value::Null;
        };
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let has_others = [
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "example",
        ];
        if has_others.iter().any(|key| schema.get(*key).is_some()) {
            return fixed;
        }
        let least = bound("minimum").unwrap_or(0.0);
        let most = bound("maximum").unwrap_or(least + 1000.0);
        if !(least.abs() < 9e15 && most.abs() < 9e15 && least <= most) {
            return fixed;
        }
        if is_whole {
            let (least, most) = (least.ceil() as i64, most.floor() as i64);
            let count = most.abs_diff(least).saturating_add(1);
            let step = i64::try_from((self.below)(count)).unwrap_or_default();
            return if least <= most {
                json!(least.saturating_add(step))
            } else {
                fixed
            };
        }
        let hundredths = ((most - least) * 100.0).floor();
        if hundredths < 1.0 {
            return json!(least);
        }
        let steps = (hundredths.min(1e9) as i64).cast_unsigned() + 1;
        let step = (self.below)(steps) as f64;
        json!((least + step / 100.0).min(most))
    }
}

/// A number below a count by chance; 0 if there is nothing to choose from.
fn chosen(below: &mut dyn FnMut(u64) -> u64, count: usize) -> usize {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let chosen = if count == 0 { 0 } else { below(count) };
    usize::try_from(chosen).unwrap_or_default()
}
