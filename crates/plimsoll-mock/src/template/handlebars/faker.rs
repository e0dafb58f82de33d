//! The supported part of the Faker library: `{{faker 'number.int' min=1 max=6}}`.

use handlebars::template::{HelperTemplate, Parameter};
use serde_json::Value;

use super::call::{Call, HelperError, Run, number, of_number};
use crate::template::dates;
use crate::template::fake::Fake;
use crate::template::uuid;

/// The most words, characters or elements of one value.
const MOST: f64 = 1_000.0;

/// Those that take arguments, behind the name.
const WITH_ARGUMENTS: [(&str, Run); 36] = [
    ("number.int", integer),
    ("datatype.number", integer),
    ("random.number", integer),
    ("number.float", float),
    ("datatype.float", float),
    ("finance.amount", |call| {
        let amount = number(&float_between(call, 0.0, 1_000.0, 2.0)?).unwrap_or(0.0);
        Ok(format!("{amount:.2}").into())
    }),
    ("location.latitude", |call| {
        float_between(call, -90.0, 90.0, 4.0)
    }),
    ("location.longitude", |call| {
        float_between(call, -180.0, 180.0, 4.0)
    }),
    ("string.uuid", |call| Ok(call.with(uuid).into())),
    ("datatype.uuid", |call| Ok(call.with(uuid).into())),
    ("string.alpha", |call| Ok(characters(call, LETTERS))),
    ("string.alphanumeric", |call| {
        Ok(characters(call, &format!("{LETTERS}{DIGITS}")))
    }),
    ("string.numeric", |call| Ok(characters(call, DIGITS))),
    ("string.hexadecimal", |call| {
        Ok(characters(call, "0123456789abcdef"))
    }),
    ("internet.password", |call| {
        Ok(characters(call, &format!("{LETTERS}{DIGITS}")))
    }),
    ("lorem.words", |call| Ok(words(call, 1, 3))),
    ("lorem.sentences", |call| Ok(sentences(call, 3))),
    ("lorem.paragraph", |call| Ok(sentences(call, 3))),
    ("helpers.arrayElement", |call| {
        let items = items(call)?;
        let at = call.with(|rng| rng.usize(..items.len().max(1)));
        Ok(items.get(at).cloned().unwrap_or_default())
    }),
    ("helpers.arrayElements", |call| {
        let mut items = items(call)?.clone();
        call.with(|rng| rng.shuffle(&mut items));
        let count = match call.argument(2) {
            Some(count) => bounded(number(count).unwrap_or(0.0)),
            None => call.with(|rng| rng.usize(..=items.len())),
        };
        items.truncate(count);
        Ok(Value::Array(items))
    }),
    ("date.past", |call| date(call, "years", -1.0, 0.0)),
    ("date.future", |call| date(call, "years", 0.0, 1.0)),
    ("date.recent", |call| date(call, "days", -1.0, 0.0)),
    ("date.anytime", |call| date(call, "years", -1.0, 1.0)),
    ("date.birthdate", |call| date(call, "years", -80.0, -18.0)),
    ("date.soon", |call| date(call, "days", 0.0, 1.0)),
    ("datatype.boolean", |call| {
        let share = call.option("probability").and_then(number).unwrap_or(0.5);
        Ok((call.with(fastrand::Rng::f64) < share).into())
    }),
    ("internet.url", |call| Ok(url(call))),
    ("image.avatar", |call| Ok(url(call))),
    ("image.url", |call| Ok(url(call))),
    ("image.imageUrl", |call| Ok(url(call))),
    ("location.zipCode", |call| Ok(digits(call))),
    ("address.zipCode", |call| Ok(digits(call))),
    ("finance.accountNumber", |call| Ok(digits(call))),
    ("finance.creditCardNumber", |call| Ok(digits(call))),
    ("finance.pin", |call| Ok(digits(call))),
];

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

/// The helper `faker`.
pub(super) fn run(call: &Call<'_>) -> Result<Value, HelperError> {
    let name = call.text(0);
    let known = WITH_ARGUMENTS.iter().find(|(known, _)| *known == name);
    if let Some((_, run)) = known {
        return run(call);
    }
    let known = named(&name).ok_or_else(|| format!("`{name}` is not known here"))?;
    Ok(made(call, known))
}

/// Helpers that make something up by their own names.
pub(super) fn short(call: &Call<'_>) -> Result<Value, HelperError> {
    let fake = match call.name {
        "firstName" => Fake::FirstName,
        "lastName" => Fake::LastName,
        "email" => Fake::Email,
        "city" => Fake::City,
        "country" => Fake::Country,
        "street" => Fake::Street,
        "phone" => Fake::Phone,
        "company" => Fake::Company,
        "ipv4" => Fake::Ipv4,
        other => return Err(format!("`{other}` is not known here").into()),
    };
    Ok(made(call, fake))
}

/// Whether a call of `faker` is known, as far as its template says.
pub(super) fn check(helper: &HelperTemplate) -> Result<(), HelperError> {
    let Some(Parameter::Literal(Value::String(name))) = helper.params.first() else {
        return Ok(());
    };
    let takes_arguments = WITH_ARGUMENTS.iter().any(|(known, _)| known == name);
    if takes_arguments || named(name).is_some() {
        return Ok(());
    }
    Err(format!("`faker '{name}'` is not known here").into())
}

/// Something made up.
fn made(call: &Call<'_>, fake: Fake) -> Value {
    let text = call.with(|rng| fake.make(rng));
    match fake {
        Fake::Boolean => (text == "true").into(),
        _ => text.into(),
    }
}

/// As many words as an argument says.
pub(super) fn words(call: &Call<'_>, at: usize, usual: u32) -> Value {
    let count = bounded(call.number(at).unwrap_or(usual.into()));
    let words = (0..count).map(|_| call.with(|rng| Fake::Word.make(rng)));
    words.collect::<Vec<_>>().join(" ").into()
}

fn sentences(call: &Call<'_>, usual: u32) -> Value {
    let count = bounded(call.number(1).unwrap_or(usual.into()));
    let sentences = (0..count).map(|_| call.with(|rng| Fake::Sentence.make(rng)));
    sentences.collect::<Vec<_>>().join(" ").into()
}

fn integer(call: &Call<'_>) -> Result<Value, HelperError> {
    let (least, most) = bounds(call, 0.0, 99_999.0)?;
    let chosen = call.with(|rng| rng.f64() * (most - least + 1.0) + least);
    Ok(of_number(chosen.floor().min(most)))
}

fn float(call: &Call<'_>) -> Result<Value, HelperError> {
    float_between(call, 0.0, 1.0, 10.0)
}

fn float_between(
    call: &Call<'_>,
    least: f64,
    most: f64,
    digits: f64,
) -> Result<Value, HelperError> {
    let (least, most) = bounds(call, least, most)?;
    let given = ["fractionDigits", "dec", "precision"];
    let mut given = given
        .iter()
        .filter_map(|name| call.option(name).and_then(number));
    // A precision is a step, such as 0.01.
    let digits = match given.next() {
        Some(step) if step > 0.0 && step < 1.0 => -step.log10().floor(),
        Some(digits) => digits,
        None => digits,
    };
    let scale = 10_f64.powf(digits.clamp(0.0, 15.0).trunc());
    let chosen = call.with(fastrand::Rng::f64) * (most - least) + least;
    Ok(of_number(
        ((chosen * scale).round() / scale).clamp(least, most),
    ))
}

/// `min` and `max`, or the greatest number alone.
fn bounds(call: &Call<'_>, least: f64, most: f64) -> Result<(f64, f64), HelperError> {
    let of = |name: &str, usual: f64| match call.option(name) {
        None => Ok(usual),
        Some(value) => number(value).ok_or_else(|| format!("`{name}` is no number")),
    };
    let alone = call.argument(1).and_then(number);
    let (least, most) = (of("min", least)?, of("max", alone.unwrap_or(most))?);
    if least > most {
        return Err("`min` is above `max`".into());
    }
    Ok((least, most))
}

fn characters(call: &Call<'_>, alphabet: &str) -> Value {
    let given = call.option("length").or(call.argument(1));
    let count = bounded(given.and_then(number).unwrap_or(10.0));
    let alphabet: Vec<char> = alphabet.chars().collect();
    let text: String = call.with(|rng| {
        let one = |_| alphabet[rng.usize(..alphabet.len())];
        (0..count).map(one).collect()
    });
    text.into()
}

fn digits(call: &Call<'_>) -> Value {
    let count = match call.text(0).as_str() {
        "finance.pin" => 4,
        "finance.accountNumber" => 8,
        "finance.creditCardNumber" => 16,
        _ => 5,
    };
    let text: String = call.with(|rng| (0..count).map(|_| rng.digit(10)).collect());
    text.into()
}

fn url(call: &Call<'_>) -> Value {
    let word = call.with(|rng| Fake::Word.make(rng));
    format!("https://{word}.example/").into()
}

fn items<'c>(call: &Call<'c>) -> Result<&'c Vec<Value>, HelperError> {
    let items = call.argument(1).and_then(Value::as_array);
    items
        .ok_or_else(|| format!("`{}` needs an array", call.text(0)))
        .map_err(HelperError::from)
}

/// A time within so many units from now.
fn date(call: &Call<'_>, unit: &str, least: f64, most: f64) -> Result<Value, HelperError> {
    let count = call.option(unit).and_then(number).unwrap_or(1.0).abs();
    let seconds = count
        * if unit == "years" {
            31_536_000.0
        } else {
            86_400.0
        };
    let share = call.with(fastrand::Rng::f64) * (most - least) + least;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "parts of a second do not matter"
    )]
    let offset = (share * seconds) as i64;
    let time = dates::moved(&dates::now(), &format!("{offset} seconds"))?;
    dates::formatted(&time, dates::OF_JAVASCRIPT)
        .map(Value::from)
        .map_err(HelperError::from)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within bounds"
)]
fn bounded(count: f64) -> usize {
    count.clamp(0.0, MOST) as usize
}

/// Those that are made up without arguments.
fn named(name: &str) -> Option<Fake> {
    Some(match name {
        "person.firstName" | "name.firstName" => Fake::FirstName,
        "person.lastName" | "name.lastName" => Fake::LastName,
        "person.fullName" | "name.fullName" | "name.findName" => Fake::Name,
        "internet.email" => Fake::Email,
        "internet.userName" | "internet.username" => Fake::User,
        "internet.ipv4" | "internet.ip" => Fake::Ipv4,
        "phone.number" | "phone.phoneNumber" => Fake::Phone,
        "location.street"
        | "location.streetAddress"
        | "address.street"
        | "address.streetAddress"
        | "address.streetName" => Fake::Street,
        "location.city" | "address.city" => Fake::City,
        "location.country" | "address.country" => Fake::Country,
        "company.name" | "company.companyName" => Fake::Company,
        "lorem.word" | "word.noun" => Fake::Word,
        "lorem.sentence"
        | "lorem.text"
        | "lorem.lines"
        | "lorem.paragraphs"
        | "hacker.phrase"
        | "company.catchPhrase"
        | "company.buzzPhrase"
        | "commerce.productDescription"
        | "food.description"
        | "git.commitMessage" => Fake::Sentence,
        "commerce.price" => Fake::Price,
        // The rest of the library is mostly words.
        name if name
            .split_once('.')
            .is_some_and(|(module, _)| WORDS.contains(&module)) =>
        {
            Fake::Word
        }
        _ => return None,
    })
}

/// The library's modules whose values are words.
const WORDS: [&str; 17] = [
    "airline", "animal", "book", "color", "commerce", "company", "database", "finance", "food",
    "git", "hacker", "location", "music", "person", "science", "vehicle", "word",
];
