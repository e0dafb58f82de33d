//! Samples of a virtual user: those of its script, its requests and its iterations.

use std::borrow::Cow;
use std::cell::RefMut;
use std::time::Duration;

use plimsoll_load::scenario::{MetricId, Sinks, Tag};

use super::UserState;
use crate::options::duration::millis;
use crate::protocol::http::{Address, HttpRequest, Timings};

/// One exchange, to be measured.
pub(crate) struct Hop<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) address: &'a Address,
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
        let mut sinks = self.sinks();
        let mut all: Vec<Tag<'_>> = wanted(&sinks, &tags).collect();
        if self.shared.system_tags.group && sinks.wants_tag("group") {
            all.push((Cow::Borrowed("group"), Cow::Borrowed(&group)));
        }
        all.extend(wanted(&sinks, more));
        sinks.add(id, value, &all, self.at());
    }

    /// Adds a sample with these tags only, among which those of the virtual user are.
    pub(crate) fn add_with(&self, id: MetricId, value: f64, tags: &[(String, String)]) {
        let mut sinks = self.sinks();
        let tags: Vec<Tag<'_>> = wanted(&sinks, tags).collect();
        sinks.add(id, value, &tags, self.at());
    }

    pub(crate) fn count_check(&self, name: &str, is_passed: bool, tags: Vec<(String, String)>) {
        let mut checks = self.worker.checks.borrow_mut();
        checks.count(&self.group.borrow(), name, is_passed);
        drop(checks);
        let mut tags = tags;
        if self.shared.system_tags.check && self.sinks().wants_tag("check") {
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
    pub(crate) fn measure_exchange<'a>(&self, hop: &'a Hop<'_>) {
        let on = self.shared.system_tags;
        let request = hop.request;
        let mut sinks = self.sinks();
        let mut tags: Vec<Tag<'_>> = wanted(&sinks, &request.tags).collect();
        // These two are there whatever their values are.
        let name = request.name();
        let has_url = on.url && sinks.wants_tag("url");
        let has_name = on.name && name.is_none() && sinks.wants_tag("name");
        if has_url || has_name {
            let shown = hop.address.masked();
            if has_url {
                let url = name.map_or_else(|| shown.clone(), str::to_owned);
                tags.push(("url".into(), url.into()));
            }
            if has_name {
                tags.push(("name".into(), shown.into()));
            }
        }
        let mut tag = |is_on: bool, name: &'static str, value: &dyn Fn() -> Cow<'a, str>| {
            if !is_on || !sinks.wants_tag(name) {
                return;
            }
            let value = value();
            if !value.is_empty() {
                tags.push((Cow::Borrowed(name), value));
            }
        };
        tag(on.method, "method", &|| hop.method.into());
        tag(on.status, "status", &|| hop.status.to_string().into());
        tag(on.proto, "proto", &|| hop.protocol.into());
        tag(on.tls_version, "tls_version", &|| hop.tls_version.into());
        if let Some(peer) = hop.peer {
            tag(on.ip, "ip", &|| peer.to_string().into());
        }
        tag(on.error, "error", &|| hop.error.unwrap_or_default().into());
        if hop.error_code != 0 {
            tag(on.error_code, "error_code", &|| {
                hop.error_code.to_string().into()
            });
        }
        let is_expected = request.is_expected(hop.status);
        let is_expected = is_expected.map(|is| (is && hop.error.is_none()) || hop.is_challenge);
        if let Some(is_expected) = is_expected {
            let shown = if is_expected { "true" } else { "false" };
            tag(on.expected_response, "expected_response", &|| shown.into());
        }
        let metrics = &self.shared.built_in;
        let timings = hop.timings;
        let at = self.at();
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

/// Those tags that make a difference.
fn wanted<'a>(sinks: &Sinks, tags: &'a [(String, String)]) -> impl Iterator<Item = Tag<'a>> {
    let tags = tags.iter().filter(|(name, _)| sinks.wants_tag(name));
    tags.map(|(name, value)| (Cow::Borrowed(name.as_str()), Cow::Borrowed(value.as_str())))
}
