//! Places of Handlebars, as WireMock and Mockoon write them, as the places of our templates.

/// Whose names the places have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    WireMock,
    Mockoon,
}

/// A text whose places are ours.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Converted {
    pub(crate) text: String,
    /// Whether it has any place.
    pub(crate) has_places: bool,
    /// The places that have no counterpart; nothing stands where they stood.
    pub(crate) unknown: Vec<String>,
}

/// Converts the places of a text.
pub(crate) fn convert(text: &str, dialect: Dialect) -> Converted {
    let mut converted = Converted::default();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        converted.text.push_str(before);
        // Three braces only say that nothing is to be escaped, which nothing is anyway.
        let (inner, after) = match behind.strip_prefix('{') {
            Some(behind) => match behind.split_once("}}}") {
                Some(parts) => parts,
                None => (behind, ""),
            },
            None => behind.split_once("}}").unwrap_or((behind, "")),
        };
        let words = words(inner.trim().trim_matches('~').trim());
        let place = match dialect {
            Dialect::WireMock => of_wiremock(&words),
            Dialect::Mockoon => of_mockoon(&words),
        };
        match place {
            Some(place) => {
                converted.has_places = true;
                converted.text.push_str("{{");
                converted.text.push_str(&place);
                converted.text.push_str("}}");
            }
            None if inner.trim_start().starts_with('!') => {}
            None => converted.unknown.push(format!("{{{{{}}}}}", inner.trim())),
        }
        rest = after;
    }
    converted.text.push_str(rest);
    converted
}

/// Words between blanks, where quotes keep blanks together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for character in text.chars() {
        match quote {
            Some(open) => {
                word.push(character);
                if character == open {
                    quote = None;
                }
            }
            None if character.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            None => {
                if matches!(character, '"' | '\'') {
                    quote = Some(character);
                }
                word.push(character);
            }
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A word without its quotes.
fn bare(word: &str) -> &str {
    let quotes = ['"', '\''];
    let inner = quotes.iter().find_map(|quote| {
        let inner = word.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inner)
    });
    inner.unwrap_or(word)
}

/// The value of `name=value` among words.
fn option<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    let value = |word: &'w String| word.strip_prefix(name)?.strip_prefix('=');
    words.iter().find_map(value).map(bare)
}

/// The rest of `request.headers.Name`, `request.headers.[Name]` or `request.headers.Name.0`: the first of that name.
fn name(rest: &str) -> Option<String> {
    let (name, index) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => match rest.split_once('.') {
            None => (rest, ""),
            Some((name, index)) => (name, index),
        },
    };
    let index = index.trim_start_matches('.').trim_matches(['[', ']']);
    let is_first = matches!(index, "" | "0" | "first");
    (is_first && is_name(name)).then(|| name.to_owned())
}

/// Whether it can stand in a place of ours.
fn is_name(text: &str) -> bool {
    let is_known = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(is_known)
}

/// A path of Jayway or lodash to one value, as keys with dots.
fn dotted(path: &str) -> Option<String> {
    let path = path.strip_prefix('$').unwrap_or(path);
    let path = path.replace("['", ".").replace("']", "");
    let path = path.replace("[\"", ".").replace("\"]", "");
    let path = path.replace('[', ".").replace(']', "");
    let path = path.strip_prefix('.').unwrap_or(&path);
    let is_single = is_name(path) && !path.starts_with('.') && !path.contains("..");
    is_single.then(|| path.to_owned())
}

fn of_wiremock(words: &[String]) -> Option<String> {
    let (first, options) = words.split_first()?;
    if let Some(place) = first.strip_prefix("request.") {
        return options.is_empty().then(|| of_request(place))?;
    }
    match first.as_str() {
        "jsonPath" if options.first()? == "request.body" => {
            let path = dotted(bare(options.get(1)?))?;
            Some(format!("request.json.{path}"))
        }
        "randomValue" => {
            let length: u32 = option(options, "length").unwrap_or("36").parse().ok()?;
            let kind = match option(options, "type")? {
                "UUID" => return Some("$uuid".to_owned()),
                "ALPHANUMERIC" => "alphanumeric",
                "ALPHABETIC" => "alphabetic",
                "NUMERIC" => "numeric",
                "HEXADECIMAL" => "hexadecimal",
                _ => return None,
            };
            (1..=4096)
                .contains(&length)
                .then(|| format!("$random.{kind}({length})"))
        }
        "randomInt" => {
            let lower: i64 = option(options, "lower").unwrap_or("0").parse().ok()?;
            let upper: i64 = option(options, "upper")
                .unwrap_or("2147483647")
                .parse()
                .ok()?;
            (lower < upper).then(|| format!("$random.integer({lower}, {upper})"))
        }
        "now" => match (options.len(), option(options, "format")) {
            (0, _) => Some("$isoTimestamp".to_owned()),
            (1, Some("epoch")) => Some("$timestampMs".to_owned()),
            (1, Some("unix")) => Some("$timestamp".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn of_request(place: &str) -> Option<String> {
    let (kind, rest) = match place.split_once('.') {
        None => (place, None),
        Some((kind, rest)) => (kind, Some(rest)),
    };
    let of = |ours: &str| Some(format!("request.{ours}.{}", name(rest?)?));
    match (kind, rest) {
        ("method" | "url" | "path" | "host" | "body", None) => Some(format!("request.{kind}")),
        ("clientIp", None) => Some("request.peer".to_owned()),
        ("path" | "pathSegments", Some(rest)) => {
            let inner = rest.trim_matches(['[', ']']);
            match inner.parse::<usize>() {
                Ok(number) => Some(format!("request.segment.{number}")),
                Err(_) if kind == "path" && is_name(inner) => Some(format!("request.path.{inner}")),
                Err(_) => None,
            }
        }
        ("query", _) => of("query"),
        ("headers", _) => of("header"),
        ("cookies", _) => of("cookie"),
        _ => None,
    }
}

fn of_mockoon(words: &[String]) -> Option<String> {
    let (first, options) = words.split_first()?;
    let argument = options.first().map(|word| bare(word));
    match (first.as_str(), argument) {
        ("method", None) => Some("request.method".to_owned()),
        ("ip", None) => Some("request.peer".to_owned()),
        ("hostname", None) => Some("request.host".to_owned()),
        ("body" | "bodyRaw", None) => Some("request.body".to_owned()),
        ("body", Some(path)) => Some(format!("request.json.{}", dotted(path)?)),
        ("queryParam" | "queryParamRaw", Some(name)) => {
            is_name(name).then(|| format!("request.query.{name}"))
        }
        ("header", Some(name)) => is_name(name).then(|| format!("request.header.{name}")),
        ("cookie", Some(name)) => is_name(name).then(|| format!("request.cookie.{name}")),
        ("urlParam", Some(name)) => is_name(name).then(|| format!("request.path.{name}")),
        ("uuid", None) => Some("$uuid".to_owned()),
        ("now", None) => Some("$isoTimestamp".to_owned()),
        ("int", Some(_)) => {
            let least: i64 = bare(options.first()?).parse().ok()?;
            let most: i64 = bare(options.get(1)?).parse().ok()?;
            let below = most.checked_add(1)?;
            (least < below).then(|| format!("$random.integer({least}, {below})"))
        }
        ("faker", Some(name)) => fake(name).map(|fake| format!("fake.{fake}")),
        ("firstName", None) => Some("fake.first_name".to_owned()),
        ("lastName", None) => Some("fake.last_name".to_owned()),
        ("email", None) => Some("fake.email".to_owned()),
        ("city", None) => Some("fake.city".to_owned()),
        ("country", None) => Some("fake.country".to_owned()),
        ("street", None) => Some("fake.street".to_owned()),
        ("phone", None) => Some("fake.phone".to_owned()),
        ("company", None) => Some("fake.company".to_owned()),
        ("ipv4", None) => Some("fake.ipv4".to_owned()),
        ("boolean", None) => Some("fake.boolean".to_owned()),
        _ => None,
    }
}

/// What of the Faker library has a counterpart.
fn fake(name: &str) -> Option<&'static str> {
    Some(match name {
        "person.firstName" | "name.firstName" => "first_name",
        "person.lastName" | "name.lastName" => "last_name",
        "person.fullName" | "name.fullName" => "name",
        "internet.email" => "email",
        "internet.userName" | "internet.username" => "user",
        "internet.ipv4" | "internet.ip" => "ipv4",
        "phone.number" => "phone",
        "location.street" | "location.streetAddress" | "address.street" => "street",
        "location.city" | "address.city" => "city",
        "location.country" | "address.country" => "country",
        "company.name" => "company",
        "lorem.word" => "word",
        "lorem.sentence" => "sentence",
        "datatype.boolean" => "boolean",
        "commerce.price" => "price",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_become_ours() {
        for (theirs, ours) in [
            ("a {{request.method}} b", "a {{request.method}} b"),
            ("{{{ request.body }}}", "{{request.body}}"),
            (
                "{{request.path.[1]}}/{{request.pathSegments.0}}",
                "{{request.segment.1}}/{{request.segment.0}}",
            ),
            ("{{request.path.id}}", "{{request.path.id}}"),
            (
                "{{request.query.a.[0]}}{{request.query.b.first}}",
                "{{request.query.a}}{{request.query.b}}",
            ),
            (
                "{{request.headers.[X-A]}}{{request.headers.Host}}",
                "{{request.header.X-A}}{{request.header.Host}}",
            ),
            (
                "{{jsonPath request.body '$.a.b[0]'}}",
                "{{request.json.a.b.0}}",
            ),
            (
                "{{randomValue length=5 type='ALPHANUMERIC'}}",
                "{{$random.alphanumeric(5)}}",
            ),
            ("{{randomValue type=\"UUID\"}}", "{{$uuid}}"),
            ("{{randomInt lower=1 upper=9}}", "{{$random.integer(1, 9)}}"),
            (
                "{{now}} {{now format='epoch'}}",
                "{{$isoTimestamp}} {{$timestampMs}}",
            ),
            ("{{! a remark }}x", "x"),
        ] {
            let converted = convert(theirs, Dialect::WireMock);
            assert_eq!(converted.text, ours, "{theirs}");
            assert!(converted.unknown.is_empty(), "{converted:?}");
        }
        for (theirs, ours) in [
            (
                "{{urlParam 'id'}} {{queryParam \"q\"}}",
                "{{request.path.id}} {{request.query.q}}",
            ),
            (
                "{{body 'a.b'}}{{header 'X'}}{{cookie 'c'}}",
                "{{request.json.a.b}}{{request.header.X}}{{request.cookie.c}}",
            ),
            (
                "{{int 1 6}} {{faker 'person.firstName'}}",
                "{{$random.integer(1, 7)}} {{fake.first_name}}",
            ),
        ] {
            assert_eq!(convert(theirs, Dialect::Mockoon).text, ours, "{theirs}");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        for text in [
            "{{#if a}}",
            "{{jsonPath request.body '$..a'}}",
            "{{request.query.a.[1]}}",
            "{{now offset='3 days'}}",
            "{{request.headers.x y}}",
        ] {
            let converted = convert(text, Dialect::WireMock);
            assert_eq!(
                (converted.text.as_str(), converted.unknown.len()),
                ("", 1),
                "{text}"
            );
            assert!(!converted.has_places);
        }
        assert_eq!(convert("a{{b", Dialect::WireMock).unknown, ["{{b}}"]);
    }

    proptest! {
        #[test]
        fn what_is_made_is_a_template(text in "([a }]|\\{\\{|\\}\\}|request|\\.|path|query|\\[|\\]|0|'|body|jsonPath |\\$){0,16}") {
            for dialect in [Dialect::WireMock, Dialect::Mockoon] {
                let converted = convert(&text, dialect);
                let parsed = plimsoll_formats::Template::parse(&converted.text);
                prop_assert!(parsed.is_ok(), "{text} became {}: {parsed:?}", converted.text);
            }
        }
    }
}
