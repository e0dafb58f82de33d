//! Samples of a virtual user: those of its script, its requests and its iterations.

use std::borrow::Cow;
use std::cell::RefMut;
use std::time::Duration;

use plimsoll_load::scenario::{MetricId, Sinks, Tag};

use super::UserState;
use crate::options::duration::millis;
use crate::protocol::http::{HttpRequest, Timings};

/// One exchange, to be measured.
pub(crate) struct Hop<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) url: &'a str,
    pub(crate) method: &'a str,
    pub(crate) status: u16,
    pub(crate) timings: Timings,
    pub(crate) protocol: &'static str,
    pub(crate) tls_version: &'a str,
    pub(crate) peer: Option<std::net::IpAddr>,
    pub(crate) error: Option<&'a str>,
    pub(crate) error_code: u16,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// The challenge of an authentication, which is no failure.
    pub(crate) is_challenge: bool,
}

impl UserState {
    /// The sinks of the worker, whose next samples get the metadata of this user.
    fn sinks(&self) -> RefMut<'_, Sinks> {
        let mut sinks = self.worker.sinks.borrow_mut();
        if sinks.keeps_points() {
            let on = self.shared.system_tags;
            let mut metadata = self.metadata.borrow().clone();
            if on.vu {
                metadata.push(("vu".to_owned(), self.number.to_string()));
            }
            if on.iter && self.id.is_some() {
                let (_, own) = self.iteration.get();
                metadata.push(("iter".to_owned(), own.to_string()));
            }
            metadata.sort();
            sinks.set_metadata((!metadata.is_empty()).then(|| metadata.into()));
        }
        sinks
    }

    /// Adds a sample with the tags of the virtual user and these.
    pub(crate) fn add(&self, id: MetricId, value: f64, more: &[(String, String)]) {
        let tags = self.tags.borrow();
        let group = self.group.borrow();
        let mut all: Vec<Tag<'_>> = tags.iter().map(borrowed).collect();
        if self.shared.system_tags.group {
            all.push((Cow::Borrowed("group"), Cow::Borrowed(&group)));
        }
        all.extend(more.iter().map(borrowed));
        let mut sinks = self.sinks();
        sinks.add(id, value, &all, self.at());
    }

    /// Adds a sample with these tags only, among which those of the virtual user are.
    pub(crate) fn add_with(&self, id: MetricId, value: f64, tags: &[(String, String)]) {
        let tags: Vec<Tag<'_>> = tags.iter().map(borrowed).collect();
        let mut sinks = self.sinks();
        sinks.add(id, value, &tags, self.at());
    }

    pub(crate) fn count_check(&self, name: &str, is_passed: bool, tags: Vec<(String, String)>) {
        let group = self.group.borrow().clone();
        let mut checks = self.worker.checks.borrow_mut();
        checks.count(&group, name, is_passed);
        drop(checks);
        let mut tags = tags;
        if self.shared.system_tags.check {
            tags.push(("check".to_owned(), name.to_owned()));
        }
        let value = f64::from(u8::from(is_passed));
        self.add(self.shared.built_in.checks, value, &tags);
    }

    /// Bytes for `data_sent` and `data_received` of the iteration.
    pub(crate) fn count_bytes(&self, sent: u64, received: u64) {
        self.sent.set(self.sent.get() + sent);
        self.received.set(self.received.get() + received);
    }

    /// Adds the samples of one exchange.
    pub(crate) fn measure_exchange(&self, hop: &Hop<'_>) {
        let on = self.shared.system_tags;
        let request = hop.request;
        let mut tags: Vec<Tag<'_>> = request.tags.iter().map(borrowed).collect();
        // These two are there whatever their values are.
        let name = request.name();
        if on.url {
            tags.push(("url".into(), name.unwrap_or(hop.url).into()));
        }
        if on.name && name.is_none() {
            tags.push(("name".into(), hop.url.into()));
        }
        let mut tag = |is_on: bool, name, value| push_tag(&mut tags, is_on, name, value);
        tag(on.method, "method", hop.method.into());
        tag(on.status, "status", hop.status.to_string().into());
        tag(on.proto, "proto", hop.protocol.into());
        tag(on.tls_version, "tls_version", hop.tls_version.into());
        if let Some(peer) = hop.peer {
            tag(on.ip, "ip", peer.to_string().into());
        }
        tag(on.error, "error", hop.error.unwrap_or_default().into());
        if hop.error_code != 0 {
            tag(
                on.error_code,
                "error_code",
                hop.error_code.to_string().into(),
            );
        }
        let is_expected = request.is_expected(hop.status);
        let is_expected = is_expected.map(|is| (is && hop.error.is_none()) || hop.is_challenge);
        if let Some(is_expected) = is_expected {
            tag(
                on.expected_response,
                "expected_response",
                is_expected.to_string().into(),
            );
        }
        let metrics = &self.shared.built_in;
        let timings = hop.timings;
        let at = self.at();
        let mut sinks = self.sinks();
        let mut add = |id, value| sinks.add(id, value, &tags, at);
        add(metrics.http_reqs, 1.0);
        if let Some(is_expected) = is_expected {
            add(metrics.http_req_failed, f64::from(u8::from(!is_expected)));
        }
        for (id, duration) in [
            (metrics.http_req_duration, timings.duration()),
            (metrics.http_req_blocked, timings.blocked),
            (metrics.http_req_connecting, timings.connecting),
            (metrics.http_req_tls_handshaking, timings.tls_handshaking),
            (metrics.http_req_sending, timings.sending),
            (metrics.http_req_waiting, timings.waiting),
            (metrics.http_req_receiving, timings.receiving),
        ] {
            add(id, millis(duration));
        }
        drop(sinks);
        self.count_bytes(hop.sent, hop.received);
    }

    /// Adds the samples of an iteration, or of what takes its place in setup and teardown.
    pub(crate) fn end_iteration(&self, took: Option<Duration>) {
        // A script that ends the run has no code behind that which would leave its groups.
        while self.has_aborted.get() && self.leave_group() {}
        let metrics = &self.shared.built_in;
        self.add(metrics.data_sent, self.sent.take() as f64, &[]);
        self.add(metrics.data_received, self.received.take() as f64, &[]);
        if let Some(took) = took {
            self.add(metrics.iterations, 1.0, &[]);
            self.add(metrics.iteration_duration, millis(took), &[]);
        }
    }
}

fn push_tag<'a>(tags: &mut Vec<Tag<'a>>, is_on: bool, name: &'static str, value: Cow<'a, str>) {
    if is_on && !value.is_empty() {
        tags.push((Cow::Borrowed(name), value));
    }
}

fn borrowed(tag: &(String, String)) -> Tag<'_> {
    (Cow::Borrowed(&tag.0), Cow::Borrowed(&tag.1))
}
