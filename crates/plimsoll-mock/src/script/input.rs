//! A request as scripts see it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Script;
use crate::asked::{Asked, Pairs};

/// What the prelude makes a request and a context of.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Input<'i> {
    method: &'i str,
    path: &'i str,
    url: String,
    host: &'i str,
    peer: String,
    secure: bool,
    headers: BTreeMap<String, String>,
    query: &'i Pairs,
    form: &'i Pairs,
    cookies: &'i Pairs,
    params: BTreeMap<&'i str, &'i str>,
    body: String,
    state: Option<String>,
}

/// The same as JSON.
pub(super) fn of(script: &Script, asked: &Asked<'_>, state: Option<String>) -> String {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in asked.headers() {
        let value = String::from_utf8_lossy(value);
        headers
            .entry(name.to_ascii_lowercase())
            // RFC 9110, section 5.3
            .and_modify(|all| {
                all.push_str(if name.eq_ignore_ascii_case("cookie") {
                    "; "
                } else {
                    ", "
                });
                all.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    let segment = |number: usize| asked.path.split('/').nth(number + 1);
    let params = script.names.iter();
    let params = params.filter_map(|(name, number)| Some((name.as_str(), segment(*number)?)));
    let input = Input {
        method: asked.method,
        path: &asked.path,
        url: asked.own_url().into_owned(),
        host: asked.authority,
        peer: asked.peer.ip().to_string(),
        secure: asked.is_tls,
        headers,
        query: asked.parameters(),
        form: asked.form(),
        cookies: asked.cookies(),
        params: params.collect(),
        body: String::from_utf8_lossy(asked.body).into_owned(),
        state,
    };
    serde_json::to_string(&input).expect("it consists of texts")
}
