//! A k6 script that makes the requests of a file: a recording of a browser, a description of an API, `.http` files, curl commands.

mod date;

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use plimsoll_formats::{
    FileRequest, Generator, Part, RequestFile, ResponsePart, ResponseValue, Template,
};

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// A script in JavaScript for plimsoll and k6.
///
/// Requests follow one another in the order of the file, each within a group if it has a name. Variables that the file gives a value are
/// constants; the others are read from `__ENV`.
///
/// - `source`: where the requests are from, for the comment at the top.
pub fn script_of(file: &RequestFile, source: &str) -> String {
    let mut script = Writer::default();
    let source: String = source.chars().filter(|it| !it.is_control()).collect();
    script.line(&format!("// Requests of {source}."));
    let of_responses = variables_of_responses(file);
    let constant = |name: &str| !of_responses.contains_key(name);
    let known: Vec<&str> = file
        .variables
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| constant(name))
        .collect();
    let requests: Vec<_> = file
        .requests
        .iter()
        .map(|request| filled(request, &of_responses))
        .collect();
    let mut body = Writer {
        referred: requests.iter().flat_map(referred).collect(),
        ..Writer::default()
    };
    for (position, request) in requests.iter().enumerate() {
        if position > 0 {
            body.line("");
        }
        body.request(request, file.base.as_deref(), &known);
    }
    let mut constants = Writer::default();
    if let Some(base) = &file.base {
        let base = literal(base.as_bytes());
        constants.line(&format!("const BASE = __ENV.BASE || {base};"));
    }
    let constants_of_file = file.variables.iter().filter(|(name, _)| constant(name));
    for (name, value) in constants_of_file {
        let value = constants.expression(value, &known);
        constants.line(&format!("const {} = {value};", identifier(name)));
    }
    let helpers = [&body.helpers, &constants.helpers];
    let needs = |helper: Helper| helpers.iter().any(|it| it.contains(&helper));
    script.line("import http from \"k6/http\";");
    script.line("import { check, group } from \"k6\";");
    if needs(Helper::Binary) {
        script.line("import encoding from \"k6/encoding\";");
    }
    if needs(Helper::Counter) {
        script.line("import exec from \"k6/execution\";");
    }
    script.line("");
    script.line("export const options = {");
    script.line("  vus: 1,");
    script.line("  iterations: 1,");
    script.line("  thresholds: { http_req_failed: [\"rate<0.01\"] },");
    script.line("};");
    script.line("");
    for (helper, text) in HELPERS {
        if needs(helper) {
            script.line(text);
            script.line("");
        }
    }
    if !constants.text.is_empty() {
        script.text.push_str(&constants.text);
        script.line("");
    }
    script.line("// Redirects were recorded as requests of their own, so none is followed.");
    script.line("const EXPECTED = http.expectedStatuses({ min: 200, max: 399 });");
    script.line("");
    script.line("export default function () {");
    if !body.referred.is_empty() {
        script.line("  const responses = {};");
    }
    script.text.push_str(&body.text);
    script.line("}");
    script.text
}

/// Variables whose values come from responses: those that handlers set, and those that contain such a place.
fn variables_of_responses(file: &RequestFile) -> HashMap<String, Template> {
    let mut variables = HashMap::new();
    for request in &file.requests {
        for (name, part) in &request.sets {
            let value = ResponseValue {
                request: key(request),
                part: part.clone(),
            };
            variables.insert(name.clone(), Template::from(Part::Response(value)));
        }
    }
    for (name, value) in &file.variables {
        let needs_response = value.responses().next().is_some()
            || value.variables().any(|name| variables.contains_key(name));
        if needs_response {
            variables.insert(name.clone(), value.clone());
        }
    }
    variables
}

/// The request with the values of `variables` in their places.
fn filled(request: &FileRequest, variables: &HashMap<String, Template>) -> FileRequest {
    let mut filled = request.clone();
    let fill = |template: &mut Template| {
        let result = template.fill(&|name| variables.get(name).cloned(), &|_| true);
        // One that contains itself stays as it is.
        if let Ok(result) = result {
            *template = result;
        }
    };
    fill(&mut filled.url);
    for (_, value) in &mut filled.headers {
        fill(value);
    }
    if let Some(body) = &mut filled.body {
        fill(body);
    }
    filled
}

/// Names of the requests whose responses `request` needs.
fn referred(request: &FileRequest) -> Vec<String> {
    let headers = request.headers.iter().map(|(_, value)| value);
    let texts = std::iter::once(&request.url)
        .chain(headers)
        .chain(&request.body);
    let values = texts.flat_map(Template::responses);
    values.map(|value| value.request.clone()).collect()
}

/// The name by which a request is referred to.
fn key(request: &FileRequest) -> String {
    match &request.name {
        Some(name) => name.clone(),
        None => format!("request{}", request.place),
    }
}

/// The imports and helpers of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Helper {
    Uuid,
    Integer,
    Characters,
    Counter,
    Binary,
}

const HELPERS: [(Helper, &str); 4] = [
    (Helper::Uuid, "const uuid = () => crypto.randomUUID();"),
    (
        Helper::Integer,
        "const between = (least, below) => least + Math.floor(Math.random() * (below - least));",
    ),
    (
        Helper::Characters,
        "const characters = (alphabet, count) => Array.from({ length: count }, () => alphabet[Math.floor(Math.random() * alphabet.length)]).join(\"\");",
    ),
    (
        Helper::Counter,
        "const counter = (first, step) => first + exec.scenario.iterationInTest * step;",
    ),
];

#[derive(Debug, Default)]
struct Writer {
    text: String,
    /// Names of requests whose responses later ones need.
    referred: Vec<String>,
    helpers: Vec<Helper>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn request(&mut self, request: &FileRequest, base: Option<&str>, known: &[&str]) {
        let has_group = request.name.as_deref().is_some_and(|name| !name.is_empty());
        let indent = if has_group { "    " } else { "  " };
        if let (true, Some(name)) = (has_group, &request.name) {
            // `::` separates groups.
            let name = literal(name.replace("::", ": ").as_bytes());
            self.line(&format!("  group({name}, () => {{"));
        }
        let method = request.method.as_deref().unwrap_or("GET");
        let key = key(request);
        let kept = if self.referred.contains(&key) {
            format!("responses[{}] = ", literal(key.as_bytes()))
        } else {
            String::new()
        };
        let url = self.url(&request.url, base, known);
        let body = match &request.body {
            Some(body) => self.body(body, known),
            None => "null".to_owned(),
        };
        self.line(&format!(
            "{indent}check({kept}http.request({}, {url}, {body}, {{",
            literal(method.as_bytes())
        ));
        if !request.headers.is_empty() {
            self.line(&format!("{indent}  headers: {{"));
            // Fields of one name are one value; cookies have a separator of their own.
            let mut fields: Vec<(&str, Vec<String>)> = Vec::new();
            for (name, value) in &request.headers {
                let value = self.expression(value, known);
                match fields
                    .iter_mut()
                    .find(|(other, _)| other.eq_ignore_ascii_case(name))
                {
                    Some((_, values)) => values.push(value),
                    None => fields.push((name, vec![value])),
                }
            }
            for (name, values) in fields {
                let separator = if name.eq_ignore_ascii_case("cookie") {
                    " + \"; \" + "
                } else {
                    " + \", \" + "
                };
                let name = literal(name.as_bytes());
                self.line(&format!("{indent}    {name}: {},", values.join(separator)));
            }
            self.line(&format!("{indent}  }},"));
        }
        self.line(&format!("{indent}  redirects: 0,"));
        self.line(&format!("{indent}  responseCallback: EXPECTED,"));
        self.line(&format!(
            "{indent}}}), {{ \"status below 400\": (it) => it.status > 0 && it.status < 400 }});"
        ));
        if has_group {
            self.line("  });");
        }
    }

    /// A URL; a path alone is behind the base.
    fn url(&mut self, url: &Template, base: Option<&str>, known: &[&str]) -> String {
        let written = self.expression(url, known);
        let is_path =
            matches!(url.parts().first(), Some(Part::Text(text)) if text.starts_with(b"/"));
        match (is_path, base) {
            (true, Some(_)) => format!("BASE + {written}"),
            (true, None) => format!("__ENV.BASE + {written}"),
            (false, _) => written,
        }
    }

    fn body(&mut self, body: &Template, known: &[&str]) -> String {
        let is_text = body
            .parts()
            .iter()
            .all(|part| !matches!(part, Part::Text(text) if std::str::from_utf8(text).is_err()));
        if is_text {
            return self.expression(body, known);
        }
        self.needs(Helper::Binary);
        let bytes: Vec<u8> = body
            .parts()
            .iter()
            .flat_map(|part| match part {
                Part::Text(text) => text.clone(),
                // Values within other bytes stay as they are written.
                Part::Variable(name) => format!("{{{{{name}}}}}").into_bytes(),
                Part::Generator(_) | Part::Response(_) => Vec::new(),
            })
            .collect();
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        format!("encoding.b64decode(\"{encoded}\")")
    }

    /// An expression of JavaScript whose value is the text.
    fn expression(&mut self, template: &Template, known: &[&str]) -> String {
        if template.parts().is_empty() {
            return "\"\"".to_owned();
        }
        if let [Part::Text(text)] = template.parts() {
            return literal(text);
        }
        let mut made = String::from("`");
        for part in template.parts() {
            match part {
                Part::Text(text) => made.push_str(&within_template(text)),
                Part::Variable(name) if known.contains(&name.as_str()) => {
                    write!(made, "${{{}}}", identifier(name)).expect(IN_MEMORY);
                }
                Part::Variable(name) => {
                    let name = literal(name.as_bytes());
                    write!(made, "${{__ENV[{name}]}}").expect(IN_MEMORY);
                }
                Part::Response(value) => {
                    let value = response_value(value);
                    write!(made, "${{{value}}}").expect(IN_MEMORY);
                }
                Part::Generator(generator) => {
                    let value = self.generator(generator);
                    write!(made, "${{{value}}}").expect(IN_MEMORY);
                }
            }
        }
        made.push('`');
        made
    }

    fn generator(&mut self, generator: &Generator) -> String {
        match generator {
            Generator::Counter { first, step } => {
                self.needs(Helper::Counter);
                format!("counter({first}, {step})")
            }
            Generator::Uuid => {
                self.needs(Helper::Uuid);
                "uuid()".to_owned()
            }
            Generator::Integer { least, below } => {
                self.needs(Helper::Integer);
                format!("between({least}, {below})")
            }
            Generator::Float { least, below } => {
                self.needs(Helper::Integer);
                format!("(between({least}, {below}) / 1e6).toFixed(6)")
            }
            Generator::Characters { alphabet, count } => {
                self.needs(Helper::Characters);
                format!("characters({}, {count})", literal(alphabet))
            }
            Generator::Choice(texts) => {
                self.needs(Helper::Integer);
                let list: Vec<_> = texts.iter().map(|text| literal(text.as_bytes())).collect();
                format!("[{}][between(0, {})]", list.join(", "), texts.len())
            }
            Generator::Timestamp => "Math.floor(Date.now() / 1000)".to_owned(),
            Generator::TimestampMillis => "Date.now()".to_owned(),
            Generator::IsoTimestamp => "new Date().toISOString()".to_owned(),
            Generator::Date(date) => date::expression(date),
        }
    }

    fn needs(&mut self, helper: Helper) {
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }
}

/// A value of an earlier response.
fn response_value(value: &ResponseValue) -> String {
    let response = format!("responses[{}]", literal(value.request.as_bytes()));
    match &value.part {
        ResponsePart::Body => format!("{response}.body"),
        ResponsePart::Field(name) => {
            // As k6 writes the names of fields.
            let mut words = name.split('-').map(|word| {
                let (first, rest) = word.split_at(word.len().min(1));
                format!("{}{rest}", first.to_ascii_uppercase())
            });
            let first = words.next().unwrap_or_default();
            let name = words.fold(first, |name, word| format!("{name}-{word}"));
            format!("{response}.headers[{}]", literal(name.as_bytes()))
        }
        ResponsePart::Json(path) => {
            // k6's paths are those of gjson: keys and indexes separated by dots.
            let path = path.trim_start_matches(['$', '.']);
            let path = path
                .replace("['", ".")
                .replace("[\"", ".")
                .replace('[', ".");
            let path = path.replace("']", "").replace("\"]", "").replace(']', "");
            format!(
                "{response}.json({})",
                literal(path.trim_start_matches('.').as_bytes())
            )
        }
    }
}

/// A literal of JavaScript; JSON is one, but for two line separators that JSON leaves as they are, which ES2019 allows.
fn literal(text: &[u8]) -> String {
    serde_json::Value::String(String::from_utf8_lossy(text).into_owned()).to_string()
}

/// Text between the backticks of a template.
fn within_template(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut made = String::new();
    for character in text.chars() {
        match character {
            '`' | '\\' => {
                made.push('\\');
                made.push(character);
            }
            '$' => made.push_str("\\$"),
            // A line feed and a tab stay what they are. A carriage return would become a line feed, and the engine takes no text
            // with a NUL in it.
            control if control.is_control() && !matches!(control, '\n' | '\t') => {
                write!(made, "\\u{{{:x}}}", u32::from(control)).expect(IN_MEMORY);
            }
            other => made.push(other),
        }
    }
    made
}

/// A name for a constant.
fn identifier(name: &str) -> String {
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '_'
        }
    };
    format!("v_{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use plimsoll_formats::{Format, parse};
    use proptest::prelude::*;

    use super::*;
    use crate::{Script, ScriptText};

    fn parsed(format: Format, text: &str) -> RequestFile {
        parse(format, text, &mut |name| Err(format!("no {name}").into())).unwrap()
    }

    /// The script is valid.
    fn compiled(file: &RequestFile) -> String {
        let script = script_of(file, "a file\nthrow 1");
        let text = ScriptText::Given {
            text: script.clone(),
            directory: "/".into(),
        };
        Script::load(&text).unwrap_or_else(|error| panic!("{error}\n{script}"));
        script
    }

    #[test]
    fn values_of_responses_are_taken_from_those_responses() {
        let text = "\
@auth = Bearer {{login.response.body.$.data[0].token}}

### login
POST http://h/login

> {% client.global.set(\"id\", response.body.id) %}

###
GET http://h/{{id}}?{{login.response.headers.x-page}}
Authorization: {{auth}}
";
        let file = parsed(Format::Http, text);
        let script = compiled(&file);
        for line in [
            "  const responses = {};",
            "    check(responses[\"login\"] = http.request(\"POST\", \"http://h/login\", null, {",
            "  check(http.request(\"GET\", `http://h/${responses[\"login\"].json(\"id\")}?${responses[\"login\"].headers[\"X-Page\"]}`, null, {",
            "    \"Authorization\": `Bearer ${responses[\"login\"].json(\"data.0.token\")}`,",
        ] {
            assert!(script.contains(line), "{line}\n{script}");
        }
    }

    #[test]
    fn requests_become_calls_with_their_fields_and_bodies() {
        let http = "@host = http://127.0.0.1:1\n### first `one` ${x}\nPOST {{host}}/a?b={{$uuid}}&c={{given}}\nContent-Type: application/json\nX-A: 1\nX-A: 2\n\n{ \"a\": \"`${b}\\\\ {{$randomInt}}\" }\n### second\nGET {{host}}/\n";
        let script = compiled(&parsed(Format::Http, http));
        for expected in [
            "// Requests of a filethrow 1.\n",
            "const v_host = \"http://127.0.0.1:1\";",
            "  group(\"first `one` ${x}\", () => {",
            "check(http.request(\"POST\", `${v_host}/a?b=${uuid()}&c=${__ENV[\"given\"]}`, `{ \"a\": \"\\`\\${b}",
            "      \"X-A\": \"1\" + \", \" + \"2\",",
            "const uuid = () => crypto.randomUUID();",
        ] {
            assert!(script.contains(expected), "{expected}\n{script}");
        }
    }

    #[test]
    fn paths_are_behind_the_server_of_the_description() {
        let text = r#"{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"http://127.0.0.1:2/v1"}],
            "paths":{"/pets/{id}":{"get":{"operationId":"pet","parameters":[{"name":"id","in":"path","required":true,"example":7}],"responses":{}}}}}"#;
        let script = compiled(&parsed(Format::OpenApi, text));
        assert!(
            script.contains("const BASE = __ENV.BASE || \"http://127.0.0.1:2/v1\";"),
            "{script}"
        );
        assert!(
            script.contains("http.request(\"GET\", BASE + \"/pets/7\", null, {"),
            "{script}"
        );
    }

    #[test]
    fn control_characters_between_backticks_are_escaped() {
        assert_eq!(
            within_template(b"a\0\r\n\t\x7f`$"),
            "a\\u{0}\\u{d}\n\t\\u{7f}\\`\\$"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_valid_script(name in ".*", url in "/.*", value in ".*", body in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut request = FileRequest::new(plimsoll_formats::Place::Whole, Template::literal(url));
            request.name = Some(name);
            request.headers.push(("x".to_owned(), Template::literal(value.clone())));
            let mut mixed = Template::literal(body);
            mixed.push(Template::parse("{{v}}").unwrap());
            request.body = Some(mixed);
            let file = RequestFile { requests: vec![request], variables: vec![("v".to_owned(), Template::literal(value))], ..RequestFile::default() };
            compiled(&file);
        }
    }
}
