//! Suites of Gatus: endpoints that are checked one after the other, with values that later ones take from earlier ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{LOOKS, get, wait};
use crate::Failure;

/// What a suite is about, and its endpoints as YAML: `URL` is the server's.
const SUITES: [(&str, &str); 16] = [
    (
        "a value of the first in the second",
        "{name: a, url: URL, store: {who: '[BODY].name'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[BODY].name == [CONTEXT].who']}",
    ),
    (
        "another value than the second has",
        "{name: a, url: URL, store: {who: '[BODY].status'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[BODY].name == [CONTEXT].who']}",
    ),
    (
        "a value of the file",
        "{name: a, url: URL, conditions: ['[BODY].status == [CONTEXT].want', '[BODY].n == [CONTEXT].number']}",
    ),
    (
        "a value of the file that is not the answer's",
        "{name: a, url: URL, conditions: ['[BODY].name == [CONTEXT].want']}",
    ),
    (
        "a stored value takes the place of one of the file",
        "{name: a, url: URL, store: {want: '[BODY].name'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[BODY].name == [CONTEXT].want']}",
    ),
    (
        "a number within the answer",
        "{name: a, url: URL, store: {id: '[BODY].data[0].id'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[CONTEXT].id == 1', '[CONTEXT].id < 2']}",
    ),
    (
        "the status, stored",
        "{name: a, url: URL, store: {code: '[STATUS]'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[CONTEXT].code == 200']}",
    ),
    (
        "a value that nothing gives",
        "{name: a, url: URL, conditions: ['[BODY].name == [CONTEXT].none']}",
    ),
    (
        "a value that the answer lacks",
        "{name: a, url: URL, store: {x: '[BODY].none'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[CONTEXT].x == [CONTEXT].x']}",
    ),
    (
        "the first fails, the second would pass",
        "{name: a, url: URL, conditions: ['[STATUS] == 201']},
         {name: b, url: URL, conditions: ['[STATUS] == 200']}",
    ),
    (
        "the first fails, the second runs always",
        "{name: a, url: URL, conditions: ['[STATUS] == 201']},
         {name: b, url: URL, always-run: true, conditions: ['[STATUS] == 200']}",
    ),
    (
        "what runs always fails",
        "{name: a, url: URL, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, always-run: true, conditions: ['[STATUS] == 201']}",
    ),
    (
        "a value in the URL",
        "{name: a, url: URL, store: {who: '[BODY].name'}, conditions: ['[STATUS] == 200']},
         {name: b, url: 'URL[CONTEXT].who', conditions: ['[STATUS] == 200']}",
    ),
    (
        "a value in a header field and in the body",
        "{name: a, url: URL, store: {who: '[BODY].name'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, method: POST, headers: {x-who: '[CONTEXT].who'}, body: '[CONTEXT].who', conditions: ['[STATUS] == 200']}",
    ),
    (
        "what fails stores nothing",
        "{name: a, url: URL, store: {who: '[BODY].name'}, conditions: ['[STATUS] == 201']},
         {name: b, url: URL, always-run: true, conditions: ['[BODY].name == [CONTEXT].who']}",
    ),
    (
        "a function of a stored value",
        "{name: a, url: URL, store: {who: '[BODY].name'}, conditions: ['[STATUS] == 200']},
         {name: b, url: URL, conditions: ['[CONTEXT].who == pat(j*)', '[CONTEXT].who == any(jane, john)']}",
    ),
];

/// The beginning of the keys of suites.
const KEY: &str = "_suite-";

/// The suites as a part of a configuration.
pub(super) fn configuration(origin: u16) -> String {
    let mut text = "suites:\n".to_owned();
    for (number, (about, endpoints)) in SUITES.iter().enumerate() {
        // To Gatus names of endpoints are different in all suites.
        let endpoints = endpoints
            .replace("URL", &format!("http://127.0.0.1:{origin}/"))
            .replace("{name: ", &format!("{{name: s{number:02}-"));
        let written = write!(
            text,
            "# {about}\n- name: suite-{number:02}\n  interval: 1s\n  context: {{want: UP, number: 12}}\n  endpoints: [{endpoints}]\n"
        );
        written.expect("writing to memory does not fail");
    }
    text
}

/// Whether each suite passed, by its key, once all have run.
///
/// - `path`: where the program has them: Gatus apart, plimsoll among the endpoints.
pub(super) fn read(port: u16, path: &str) -> Result<BTreeMap<String, bool>, Failure> {
    for _ in 0..LOOKS {
        let found = get(port, path).unwrap_or_default();
        let suites = found.as_array().into_iter().flatten();
        let verdicts = suites.filter_map(|suite| {
            let key = suite["key"].as_str().filter(|key| key.starts_with(KEY))?;
            let last = suite["results"].as_array()?.last()?;
            Some((key.to_owned(), last["success"].as_bool()?))
        });
        let verdicts: BTreeMap<_, _> = verdicts.collect();
        if verdicts.len() == SUITES.len() {
            return Ok(verdicts);
        }
        wait();
    }
    Err(format!("not every suite of port {port} has a result").into())
}

/// Prints the suites of which both do not say the same, and returns how many there are.
pub(super) fn differences(ours: &BTreeMap<String, bool>, theirs: &BTreeMap<String, bool>) -> usize {
    let about = |key: &str| {
        let number = key.strip_prefix(KEY).and_then(|number| number.parse().ok());
        number
            .and_then(|number: usize| SUITES.get(number))
            .map_or("", |(about, _)| about)
    };
    let mut differ = 0;
    for (key, theirs) in theirs {
        let ours = ours.get(key);
        if ours != Some(theirs) {
            differ += 1;
            println!("{key}, {}: Gatus {theirs}, plimsoll {ours:?}", about(key));
        }
    }
    println!("{} suites, {differ} verdicts differ", theirs.len());
    differ
}
