//! Responses of WireMock's mappings.

use std::path::Path;

use plimsoll_formats::wiremock::{MappingBody, MappingDelay, MappingProxy, MappingResponse};
use plimsoll_formats::{Place, Remark};

use crate::import::entry::{Entry, Table};
use crate::import::{body, inside, is_about_connection};

/// Whether texts are templates, and whether any of them is one.
struct Texts<'n> {
    has_places: bool,
    are_used: bool,
    notes: &'n mut Vec<Remark>,
}

impl Texts<'_> {
    fn look(&mut self, text: &str) {
        self.are_used |= self.has_places && text.contains("{{");
    }
}

/// Translates a response, and lists the parts that it does not carry.
pub(super) fn respond(
    response: &MappingResponse,
    files: &Path,
    notes: &mut Vec<Remark>,
) -> Result<Table, Remark> {
    let mut respond = Table::new();
    if let Some(proxy) = &response.proxy {
        let mut texts = Texts {
            has_places: response.has_places,
            are_used: false,
            notes,
        };
        proxied(proxy, &mut respond, &mut texts)?;
        headers(response, &mut respond, &mut texts);
        if texts.are_used {
            respond.push("template", "wiremock");
        }
        delay(response, &mut respond, notes);
        return Ok(respond);
    }
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
    let has_content = !matches!(response.status, 204 | 205 | 304);
    match &response.body {
        MappingBody::Empty => {}
        _ if !has_content => {
            let message = format!(
                "is dropped: a response of status {} has none",
                response.status
            );
            let place = Place::Key("response.body".to_owned());
            texts.notes.push(Remark::new(place, message));
        }
        MappingBody::Text(text) => {
            texts.look(text);
            respond.push("text", text.as_str());
        }
        MappingBody::Json(value) => {
            // Tests compare it with what WireMock sends, which has no spaces.
            let text = value.to_string();
            texts.look(&text);
            respond.push("json", text);
        }
        MappingBody::Base64(text) => respond.push("base64", text.as_str()),
        MappingBody::File(name) if !response.has_places && response.dribble.is_none() => {
            respond.push("file_path", name.as_str());
        }
        MappingBody::File(name) if response.has_places && name.contains("{{") => {
            texts.look(name);
            let place = Place::Key("response.bodyFileName".to_owned());
            let message = "is made for each request; what the file holds is sent as it is";
            texts.notes.push(Remark::new(place, message));
            respond.push("file_path", name.as_str());
        }
        MappingBody::File(name) => {
            let place = Place::Key("response.bodyFileName".to_owned());
            let bytes =
                inside(files, name).map_err(|error| Remark::new(place, error.to_string()))?;
            match String::from_utf8(bytes) {
                Ok(text) => {
                    texts.look(&text);
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
        respond.push("template", "wiremock");
        if let Some(parameters) = &response.parameters {
            respond.push("parameters", parameters.to_string());
        }
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

/// A real server that answers.
fn proxied(proxy: &MappingProxy, respond: &mut Table, texts: &mut Texts<'_>) -> Result<(), Remark> {
    if texts.has_places && proxy.url.contains("{{") {
        let place = Place::Key("response.proxyBaseUrl".to_owned());
        return Err(Remark::new(
            place,
            "has places, which no URL of a proxy has here",
        ));
    }
    let mut table = Table::new();
    table.push("to", proxy.url.as_str());
    if let Some(prefix) = &proxy.strip {
        table.push("strip", prefix.as_str());
    }
    if !proxy.without.is_empty() {
        let names = proxy.without.iter().cloned().map(Entry::Text);
        table.push("without", Entry::List(names.collect()));
    }
    let mut headers = Table::new();
    for (name, value) in &proxy.fields {
        if is_about_connection(name) || name.eq_ignore_ascii_case("host") {
            let place = format!("response.additionalProxyRequestHeaders.{name}");
            let message = "is set by the proxy";
            texts.notes.push(Remark::new(Place::Key(place), message));
        } else {
            headers.push(name.as_str(), value.as_str());
        }
    }
    if !headers.is_empty() {
        table.push("headers", Entry::Table(headers));
    }
    respond.push("proxy", Entry::Braces(table));
    Ok(())
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
        texts.look(value);
        headers.push_field(name, Entry::Text(value.clone()));
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
            delay_entry(MappingDelay::Uniform(least + fixed, most + fixed))
        }
        Some(random) => {
            if fixed > 0 {
                let place = Place::Key("response.fixedDelayMilliseconds".to_owned());
                let message = "is not added to a log-normal delay here";
                notes.push(Remark::new(place, message));
            }
            delay_entry(*random)
        }
    };
    respond.push("delay", delay);
}

/// A delay as rules have it.
pub(super) fn delay_entry(delay: MappingDelay) -> Entry {
    let milliseconds = |number: u64| Entry::Text(format!("{number}ms"));
    match delay {
        MappingDelay::Fixed(time) => milliseconds(time),
        MappingDelay::Uniform(least, most) => {
            let bounds = vec![milliseconds(least), milliseconds(most)];
            Entry::braces([("uniform", Entry::List(bounds))])
        }
        MappingDelay::LogNormal(median, sigma, most) => {
            let mut table = Table::new();
            table.push("median", format!("{median}ms"));
            table.push("sigma", Entry::Real(sigma));
            if let Some(most) = most {
                table.push("max", format!("{most}ms"));
            }
            Entry::braces([("lognormal", Entry::Braces(table))])
        }
    }
}
