//! Several conditions, and how a response meets them.

use plimsoll_model::Judgement;

use crate::check::{Condition, Extraction, Facts, Observer};

/// Conditions that a response must meet, all of them.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    conditions: Vec<Condition>,
    needs_body: bool,
    needs_certificate: bool,
    headers: Vec<String>,
}

impl Expectations {
    /// All of `conditions`.
    pub fn new(conditions: Vec<Condition>) -> Self {
        let mut headers = Vec::new();
        for condition in &conditions {
            condition.collect_headers(&mut headers);
        }
        headers.sort();
        headers.dedup();
        Self {
            needs_body: conditions.iter().any(Condition::needs_body),
            needs_certificate: conditions.iter().any(Condition::needs_certificate),
            headers,
            conditions,
        }
    }

    /// Whether there is nothing to judge.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The conditions in the order they were given.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Whether the peer's certificate must be read to judge.
    pub fn needs_certificate(&self) -> bool {
        self.needs_certificate
    }

    /// A sink that keeps what these conditions need.
    pub fn observer(&self) -> Observer {
        Observer::new(self.needs_body, self.headers.clone())
    }

    /// The same for what is extracted besides.
    pub fn observer_with(&self, extractions: &[Extraction]) -> Observer {
        let mut names = self.headers.clone();
        for name in extractions.iter().filter_map(Extraction::field) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        let needs_body = self.needs_body || extractions.iter().any(Extraction::needs_body);
        Observer::new(needs_body, names)
    }

    /// The positions of the conditions that a response does not meet.
    pub fn unmet<'a>(
        &'a self,
        observer: &'a Observer,
        facts: Facts,
    ) -> impl Iterator<Item = usize> + 'a {
        let response = observer.observed(facts);
        self.conditions
            .iter()
            .enumerate()
            .filter(move |(_, condition)| !condition.is_met(&response))
            .map(|(position, _)| position)
    }

    /// Every condition with what was found; for a person, so it allocates.
    ///
    /// - `facts`: `None` if there is no complete response; then nothing is judged.
    pub fn judge(&self, observer: &Observer, facts: Option<Facts>) -> Vec<Judgement> {
        let response = facts.map(|facts| observer.observed(facts));
        self.conditions
            .iter()
            .map(|condition| Judgement {
                condition: condition.text().to_owned(),
                met: response.as_ref().map(|seen| condition.is_met(seen)),
                observed: response.as_ref().and_then(|seen| condition.observe(seen)),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::h1::{ResponseHead, ResponseSink as _};

    use super::*;

    fn expectations(texts: &[&str]) -> Expectations {
        let conditions = texts.iter().map(|text| Condition::parse(text).unwrap());
        Expectations::new(conditions.collect())
    }

    fn respond(observer: &mut Observer, status: u16, fields: &[(&str, &str)], body: &str) {
        let headers: Vec<_> = fields
            .iter()
            .map(|(name, value)| httparse::Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        observer.head(&ResponseHead {
            status,
            reason: "",
            minor_version: 1,
            headers: &headers,
        });
        for piece in body.as_bytes().chunks(1) {
            observer.content(piece);
        }
    }

    fn status(status: u16) -> Facts {
        Facts {
            status,
            ..Facts::default()
        }
    }

    #[test]
    fn unmet_conditions_are_named_by_position() {
        let expectations = expectations(&["status == 200", "header.x exists", "body == 'ok'"]);
        let mut observer = expectations.observer();
        respond(&mut observer, 500, &[("X", "1")], "ok");
        let unmet: Vec<_> = expectations.unmet(&observer, status(500)).collect();
        assert_eq!(unmet, [0]);
    }

    #[test]
    fn fields_of_an_earlier_response_are_forgotten() {
        let expectations = expectations(&["header.a == '1'", "any(header.b exists)"]);
        let mut observer = expectations.observer();
        for (fields, expected) in [
            (vec![("a", "1"), ("b", "long")], vec![]),
            (vec![("B", "2")], vec![0]),
            (vec![], vec![0, 1]),
            (vec![("a", "1")], vec![1]),
        ] {
            respond(&mut observer, 200, &fields, "");
            let unmet: Vec<_> = expectations.unmet(&observer, status(200)).collect();
            assert_eq!(unmet, expected, "{fields:?}");
        }
    }

    #[test]
    fn judgements_report_what_was_found() {
        let expectations =
            expectations(&["status == 200", "body.json($.ok) == true", "not(ip == ::1)"]);
        let mut observer = expectations.observer();
        respond(&mut observer, 503, &[], "{\"ok\": false}");
        let judged: Vec<_> = expectations
            .judge(&observer, Some(status(503)))
            .into_iter()
            .map(|judgement| (judgement.met, judgement.observed))
            .collect();
        assert_eq!(
            judged,
            [
                (Some(false), Some("503".to_owned())),
                (Some(false), Some("false".to_owned())),
                (Some(true), None),
            ]
        );
        for judgement in expectations.judge(&observer, None) {
            assert_eq!((judgement.met, judgement.observed), (None, None));
        }
    }

    #[test]
    fn what_is_needed_is_found_in_every_depth() {
        assert!(expectations(&["not(any(status == 1, body.json($) exists))"]).needs_body);
        assert!(expectations(&["any(not(cert.days < 3))"]).needs_certificate());
        let plain = expectations(&["status == 200", "tls < 1s", "ip == ::1"]);
        assert!(!plain.needs_body && !plain.needs_certificate());
    }
}
