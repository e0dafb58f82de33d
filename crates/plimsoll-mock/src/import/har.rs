//! Archives of browsers and proxies as rules.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_formats::har::parse_recording;
use plimsoll_formats::{Place, Remark};

use super::recorded::{Exchanges, FieldValue, RecordedReply, RequestParts};
use super::{FileRemark, Importer, about, body};
use crate::proxy::record::redact::Redaction;
use crate::request::KeptRequest;

impl Importer {
    /// The exchanges of an archive.
    pub(super) fn har(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let recording = parse_recording(&text).map_err(|reported| {
            reported
                .into_iter()
                .map(|it| about(path, it))
                .collect::<Vec<_>>()
        })?;
        for remark in recording.left_out {
            self.note(path, remark);
        }
        let redaction = Redaction::default();
        let mut hosts = BTreeSet::new();
        let mut exchanges = Exchanges::default();
        for exchange in recording.exchanges {
            let origin = exchange.origin;
            let headers = exchange.headers.into_iter().map(|(name, value)| {
                // A redirect within the same server becomes one within the mock.
                let own = value.strip_prefix(&origin).filter(|_| name == "location");
                let own = own.filter(|rest| rest.starts_with('/')).map(str::to_owned);
                (name, FieldValue::Text(own.unwrap_or(value)))
            });
            let reply = RecordedReply {
                status: exchange.status,
                headers: headers.collect(),
                kind: exchange.kind,
                body: exchange.body.into(),
                announced: None,
            };
            let mut request = KeptRequest::made(&exchange.method, &exchange.target);
            let kind = exchange.request_kind.map(String::into_bytes);
            let kind = kind.map(|kind| ("content-type".to_owned(), kind));
            request.fields.extend(kind);
            request.body = exchange.request_body.into();
            let asking = RequestParts::new(&request.view(), &redaction);
            exchanges.push(asking, reply);
            hosts.insert(origin);
        }
        if hosts.len() > 1 {
            let hosts: Vec<String> = hosts.into_iter().take(5).collect();
            let message = format!(
                "requests to several servers ({}) are answered by their paths alone",
                hosts.join(", ")
            );
            self.note(path, Remark::whole(message));
        }
        let rules = exchanges.rules(&redaction, &mut |respond, headers, kind, bytes, _| {
            body::push(respond, headers, kind, bytes);
        });
        for rule in rules {
            self.add(path, &Place::Whole, rule);
        }
        Ok(())
    }
}
