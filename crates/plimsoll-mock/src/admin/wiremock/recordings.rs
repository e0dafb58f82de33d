//! Recordings: what real servers answer becomes mappings.
//!
//! While one is under way, a mapping passes every request on. What comes back is kept where that of every proxy is
//! ([`ProxiedExchanges`]), so that a recording is made of exchanges since it was started, and a snapshot of all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use plimsoll_model::parse_byte_size;
use serde_json::{Map, Value, json};

use super::mappings::{add, remove};
use super::{INVALID, done, json_of, not_here, refused, unreadable};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::import::mapping::{random_id, with_id};
use crate::import::mapping_folder::MappingFolder;
use crate::proxy::record::exchange::KeptExchange;
use crate::proxy::record::mapping::{ContentMatch, MappingOptions, in_turn, mapping};
use crate::proxy::record::proxied::{ProxiedExchanges, ProxiedSince};
use crate::rules::condition::Condition;

/// There is no recording to stop.
const NOT_RECORDING: u32 = 30;

/// Whether something is recorded, and how.
#[derive(Debug, Default)]
pub(crate) struct Recordings(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    NeverStarted,
    Recording {
        options: Box<RecordingOptions>,
        /// The number of the last exchange before it.
        since: u64,
        /// The id of the mapping that passes requests on, if there is one.
        proxy: Option<String>,
    },
    Stopped,
}

/// What of the exchanges becomes mappings, and how.
#[derive(Debug)]
struct RecordingOptions {
    target: Option<String>,
    filter: Vec<Condition>,
    mappings: MappingOptions,
    /// Contents that are longer have files of their own: texts, and others.
    longest: Option<[u64; 2]>,
    only_ids: bool,
    persists: bool,
    repeats: bool,
}

impl Recordings {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdminOfMock {
    pub(super) fn recording_status(&self) -> AdminResponse {
        let status = match *self.recordings.lock() {
            State::NeverStarted => "NeverStarted",
            State::Recording { .. } => "Recording",
            State::Stopped => "Stopped",
        };
        AdminResponse::json(StatusCode::OK, json!({ "status": status }))
    }

    pub(super) fn start_recording(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let proxied = self.exchanges()?;
        let options = self.recording_options(call)?;
        let mut state = self.recordings.lock();
        // As there, the first one goes on.
        if let State::Recording { .. } = *state {
            return Ok(done());
        }
        let since = proxied.last();
        let proxy = match &options.target {
            None => None,
            Some(target) => Some(self.pass_all_on(target)?),
        };
        *state = State::Recording {
            options: Box::new(options),
            since,
            proxy,
        };
        Ok(done())
    }

    pub(super) fn stop_recording(&self) -> Result<AdminResponse, AdminResponse> {
        let proxied = self.exchanges()?;
        let mut state = self.recordings.lock();
        let before = std::mem::take(&mut *state);
        let State::Recording {
            options,
            since,
            proxy,
        } = before
        else {
            *state = before;
            let error = json!({ "code": NOT_RECORDING, "title": "Not currently recording." });
            return Err(refused(StatusCode::BAD_REQUEST, &error));
        };
        *state = State::Stopped;
        if let Some(id) = proxy {
            self.shared.change(|layers| {
                remove(layers, |(_, mapping)| mapping["id"] == id.as_str());
            });
        }
        self.recorded(&options, &proxied.since(since))
    }

    pub(super) fn snapshot(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let proxied = self.exchanges()?;
        let options = self.recording_options(call)?;
        self.recorded(&options, &proxied.since(0))
    }

    fn exchanges(&self) -> Result<&Arc<ProxiedExchanges>, AdminResponse> {
        let none = || not_here("requests are not kept: `journal` of the mock is 0");
        self.shared.proxied().ok_or_else(none)
    }

    /// Passes every request on from now; the id of the mapping that does is returned.
    fn pass_all_on(&self, target: &str) -> Result<String, AdminResponse> {
        let id = random_id();
        let mapping = json!({
            "id": id,
            "request": { "method": "ANY" },
            // Contents are recorded as they are, not compressed.
            "response": { "proxyBaseUrl": target, "removeProxyRequestHeaders": ["accept-encoding"] },
        });
        let rule = self.rule_of(with_id(mapping, |_| id.clone()), "/targetBaseUrl")?;
        self.shared.change(|layers| add(layers, rule))?;
        Ok(id)
    }

    /// Adds the mappings of exchanges, and shows them.
    fn recorded(
        &self,
        options: &RecordingOptions,
        proxied: &ProxiedSince,
    ) -> Result<AdminResponse, AdminResponse> {
        let is_wanted = |exchange: &&Arc<KeptExchange>| {
            let request = exchange.request.view();
            options.filter.iter().all(|it| it.is_met_by(&request))
        };
        let exchanges = proxied.exchanges.iter().filter(is_wanted);
        let made = exchanges.map(|exchange| mapping(exchange, &options.mappings));
        let folder = self.shared.plan().1.mappings.clone();
        let folder = folder.as_deref().filter(|_| options.persists);
        let (mut mappings, mut rules) = (Vec::new(), Vec::new());
        for mapping in in_turn(made.collect(), options.repeats) {
            let mut mapping = with_id(mapping, |_| random_id());
            if let Some(folder) = folder {
                mapping["persistent"] = json!(true);
                extract(&mut mapping, options.longest, folder)?;
            }
            if let Ok(rule) = self.rule_of(mapping.clone(), "/mappings") {
                rules.push(rule);
                mappings.push(mapping);
            } else {
                let request = &mapping["request"];
                self.shared
                    .warn(format!("a recorded request cannot be matched: {request}"));
            }
        }
        self.shared.change(|layers| {
            // The last one is the newest.
            rules.into_iter().try_for_each(|rule| add(layers, rule))
        })?;
        if let Some(folder) = folder {
            let mut mappings = mappings.iter();
            let saved = mappings.try_for_each(|mapping| folder.save(mapping));
            saved.map_err(|error| super::not_saved(&error))?;
        }
        if proxied.dropped > 0 {
            let count = proxied.dropped;
            self.shared.warn(format!(
                "the recording lacks its first {count} exchanges, which had to make room for later ones"
            ));
        }
        // The newest first, as mappings are listed.
        mappings.reverse();
        let document = if options.only_ids {
            let ids: Vec<_> = mappings.iter().map(|mapping| &mapping["id"]).collect();
            json!({ "ids": ids })
        } else {
            json!({ "mappings": mappings })
        };
        Ok(AdminResponse::json(StatusCode::OK, document))
    }

    /// Without content, everything is by default.
    fn recording_options(&self, call: &Call) -> Result<RecordingOptions, AdminResponse> {
        let given = if call.content.is_empty() {
            Map::new()
        } else {
            match json_of(call)? {
                Value::Object(given) => given,
                _ => return Err(unreadable("must be an object")),
            }
        };
        let mut options = RecordingOptions {
            target: None,
            filter: Vec::new(),
            mappings: MappingOptions::default(),
            longest: None,
            only_ids: false,
            persists: true,
            repeats: true,
        };
        for (key, value) in given {
            if value.is_null() {
                continue;
            }
            let flag = || {
                // WireMock takes texts too.
                let text = value.as_str().and_then(|text| text.parse().ok());
                let flag = value.as_bool().or(text);
                flag.ok_or_else(|| wrong_type(&key, "true or false"))
            };
            match key.as_str() {
                "targetBaseUrl" => {
                    let text = value.as_str().ok_or_else(|| wrong_type(&key, "a text"))?;
                    options.target = Some(text.to_owned()).filter(|it| !it.is_empty());
                }
                "filters" => options.filter = self.recording_filter(value)?,
                "captureHeaders" => {
                    let Value::Object(fields) = value else {
                        return Err(wrong_type(&key, "an object of names"));
                    };
                    let fields = fields.into_iter().map(|(name, how)| {
                        let ignores_case = how["caseInsensitive"] == Value::Bool(true);
                        (name, ignores_case)
                    });
                    options.mappings.captured = fields.collect();
                }
                // WireMock's Java client writes the second name, its documentation has the first.
                "requestBodyPattern" | "requestBodyPatternFactory" => {
                    options.mappings.content = content_match(&value)?;
                }
                "extractBodyCriteria" => {
                    let [text, other] = ["textSizeThreshold", "binarySizeThreshold"].map(|key| {
                        threshold(&value[key])
                            .map_err(|()| wrong_type(key, "a size, such as 2048 or \"10 kB\""))
                    });
                    options.longest = Some([text?, other?]);
                }
                "outputFormat" => {
                    options.only_ids = match value.as_str().map(str::to_ascii_uppercase).as_deref()
                    {
                        Some("FULL") => false,
                        Some("IDS") => true,
                        _ => return Err(wrong_type(&key, "FULL or IDS")),
                    };
                }
                "persist" => options.persists = flag()?,
                "repeatsAsScenarios" => options.repeats = flag()?,
                "transformers" if value.as_array().is_some_and(Vec::is_empty) => {}
                // They are for transformers.
                "transformerParameters" => {}
                "captureAllHeaders" if value == Value::Bool(false) => {}
                "transformers" | "captureAllHeaders" => {
                    return Err(not_here(&format!("`{key}` is not known here")));
                }
                _ => return Err(unreadable_key(&key, "is not known")),
            }
        }
        Ok(options)
    }

    /// The conditions that a request pattern is.
    fn recording_filter(&self, value: Value) -> Result<Vec<Condition>, AdminResponse> {
        let Value::Object(mut pattern) = value else {
            return Err(wrong_type("filters", "a request pattern"));
        };
        for (key, what) in [
            (
                "allowNonProxied",
                "what real servers answered is recorded, and nothing else",
            ),
            ("ids", "exchanges are found by their requests, not by ids"),
        ] {
            let is_given = pattern.remove(key).is_some_and(|value| {
                !matches!(value, Value::Null | Value::Bool(false))
                    && value.as_array().is_none_or(|ids| !ids.is_empty())
            });
            if is_given {
                return Err(not_here(&format!("`filters.{key}`: {what}")));
            }
        }
        self.conditions_of(&Value::Object(pattern))
    }
}

fn wrong_type(key: &str, expected: &str) -> AdminResponse {
    unreadable_key(key, &format!("must be {expected}"))
}

/// A key of the options is wrong.
fn unreadable_key(key: &str, detail: &str) -> AdminResponse {
    let error = json!({
        "code": INVALID,
        "source": { "pointer": format!("/{}", key.replace('.', "/")) },
        "title": "Error parsing JSON",
        "detail": format!("`{key}` {detail}"),
    });
    refused(StatusCode::UNPROCESSABLE_ENTITY, &error)
}

fn content_match(value: &Value) -> Result<ContentMatch, AdminResponse> {
    let flag = |key: &str, usual: bool| value[key].as_bool().unwrap_or(usual);
    Ok(match value["matcher"].as_str() {
        None | Some("auto") => ContentMatch::Automatic {
            ignores_order: flag("ignoreArrayOrder", true),
            ignores_extra: flag("ignoreExtraElements", true),
            ignores_case: flag("caseInsensitive", false),
        },
        Some("equalToJson") => ContentMatch::Json {
            ignores_order: flag("ignoreArrayOrder", false),
            ignores_extra: flag("ignoreExtraElements", false),
        },
        Some("equalToXml") => ContentMatch::Xml,
        Some("equalTo") => ContentMatch::Text {
            ignores_case: flag("caseInsensitive", false),
        },
        Some(_) => {
            let expected = "auto, equalTo, equalToJson or equalToXml";
            return Err(wrong_type("requestBodyPattern.matcher", expected));
        }
    })
}

/// A number of bytes, as a number or a text; none is more than there is.
fn threshold(value: &Value) -> Result<u64, ()> {
    match value {
        Value::Null => Ok(u64::MAX),
        Value::Number(number) => number.as_u64().ok_or(()),
        // Their units are binary, whatever their case.
        Value::String(text) => {
            let text = text.trim().to_ascii_lowercase();
            let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
            let unit = match text.strip_prefix(digits).unwrap_or_default() {
                "" | "b" => "B",
                "k" | "kb" => "KiB",
                "m" | "mb" => "MiB",
                "g" | "gb" => "GiB",
                _ => return Err(()),
            };
            let size = parse_byte_size(&format!("{}{unit}", digits.trim()));
            size.map(|size| size.0).map_err(|_| ())
        }
        _ => Err(()),
    }
}

/// Puts long content of a response into a file of its own.
fn extract(
    mapping: &mut Value,
    longest: Option<[u64; 2]>,
    folder: &MappingFolder,
) -> Result<(), AdminResponse> {
    let Some([text, other]) = longest else {
        return Ok(());
    };
    let response = &mapping["response"];
    let (key, content) = match (&response["body"], &response["base64Body"]) {
        (Value::String(body), _) if body.len() as u64 > text => ("body", body.clone().into_bytes()),
        (_, Value::String(encoded)) => {
            let decoded = crate::import::body::decoded(encoded).unwrap_or_default();
            if decoded.len() as u64 <= other {
                return Ok(());
            }
            ("base64Body", decoded)
        }
        _ => return Ok(()),
    };
    let kind = response["headers"]["content-type"]
        .as_str()
        .unwrap_or_default();
    let mut extension = crate::import::body::extension(kind, &content);
    if matches!(extension, "bin" | "txt") {
        extension = extension_of_path(&mapping["request"]).unwrap_or(extension);
    }
    let extension = extension.to_owned();
    let name = folder.save_content(mapping, &extension, &content);
    let name = name.map_err(|error| super::not_saved(&error))?;
    if let Value::Object(response) = &mut mapping["response"] {
        response.remove(key);
        response.insert("bodyFileName".to_owned(), json!(name));
    }
    Ok(())
}

/// The extension of the last name of a path. JSON5 and CSV would be sent as JSON.
fn extension_of_path(request: &Value) -> Option<&str> {
    let url = request["url"].as_str().or(request["urlPath"].as_str())?;
    let path = url.split('?').next().unwrap_or_default();
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    let is_plain = extension.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_sent_as_it_is = !["csv", "json5"].contains(&extension.to_ascii_lowercase().as_str());
    (is_plain && (1..=5).contains(&extension.len()) && is_sent_as_it_is).then_some(extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_the_kind_of_content_that_has_none() {
        for (request, expected) in [
            (json!({ "url": "/a/image.png?size=1.gif" }), Some("png")),
            (json!({ "urlPath": "/a.tar.gz" }), Some("gz")),
            (json!({ "url": "/v1.2/users" }), None),
            (json!({ "url": "/a." }), None),
            (json!({ "url": "/a.CSV" }), None),
            (json!({ "url": "/a.very-odd" }), None),
            (json!({ "url": "/" }), None),
            (json!({}), None),
        ] {
            assert_eq!(extension_of_path(&request), expected, "{request}");
        }
    }

    #[test]
    fn sizes_are_read_as_wiremock_writes_them() {
        for (given, expected) in [
            (json!(null), Ok(u64::MAX)),
            (json!(300), Ok(300)),
            (json!("2048"), Ok(2048)),
            (json!("10 kb"), Ok(10 << 10)),
            (json!("1 MB"), Ok(1 << 20)),
            (json!("1 xb"), Err(())),
            (json!(true), Err(())),
        ] {
            assert_eq!(threshold(&given), expected, "{given}");
        }
    }
}
