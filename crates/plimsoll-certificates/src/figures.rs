//! Metrics of certificates.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use plimsoll_model::MetricsText;
use plimsoll_server::Figures;

/// Orders and certificates, by the first name of each certificate.
#[derive(Debug, Default)]
pub struct AcmeFigures(Mutex<BTreeMap<String, Figure>>);

#[derive(Debug, Default)]
struct Figure {
    issued: u64,
    failed: u64,
    expires: Option<SystemTime>,
}

impl AcmeFigures {
    /// An order has been carried out.
    pub(crate) fn issued(&self, name: &str) {
        self.change(name, |figure| figure.issued += 1);
    }

    /// An order has failed.
    pub(crate) fn failed(&self, name: &str) {
        self.change(name, |figure| figure.failed += 1);
    }

    /// Until when the certificate holds; absent if there is none.
    pub(crate) fn expires(&self, name: &str, at: Option<SystemTime>) {
        self.change(name, |figure| figure.expires = at);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Figure)) {
        let mut figures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(figures.entry(name.to_owned()).or_default());
    }
}

impl Figures for AcmeFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        const ORDERS: &str = "plimsoll_acme_orders_total";
        const EXPIRY: &str = "plimsoll_acme_expiry_timestamp_seconds";
        let figures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.family(ORDERS, "counter", "Orders of certificates, by outcome.");
        for (name, figure) in &*figures {
            for (outcome, count) in [("issued", figure.issued), ("failed", figure.failed)] {
                text.sample(
                    ORDERS,
                    &[("certificate", name), ("outcome", outcome)],
                    count,
                );
            }
        }
        text.family(
            EXPIRY,
            "gauge",
            "When a certificate expires, in seconds since 1970.",
        );
        for (name, figure) in &*figures {
            if let Some(seconds) = figure.expires.and_then(seconds) {
                text.sample(EXPIRY, &[("certificate", name)], seconds);
            }
        }
    }
}

/// Responses of OCSP, by the subject of each certificate.
#[derive(Debug, Default)]
pub struct OcspFigures(Mutex<BTreeMap<String, Fetches>>);

#[derive(Debug, Default)]
struct Fetches {
    fetched: u64,
    failed: u64,
    holds_until: Option<SystemTime>,
}

impl OcspFigures {
    /// A response has come.
    pub(crate) fn fetched(&self, subject: &str) {
        self.change(subject, |fetches| fetches.fetched += 1);
    }

    /// None has come, or one of no use.
    pub(crate) fn failed(&self, subject: &str) {
        self.change(subject, |fetches| fetches.failed += 1);
    }

    /// Until when the response holds; absent if there is none.
    pub(crate) fn holds_until(&self, subject: &str, at: Option<SystemTime>) {
        self.change(subject, |fetches| fetches.holds_until = at);
    }

    fn change(&self, subject: &str, change: impl FnOnce(&mut Fetches)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(all.entry(subject.to_owned()).or_default());
    }
}

impl Figures for OcspFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        const FETCHES: &str = "plimsoll_ocsp_fetches_total";
        const EXPIRY: &str = "plimsoll_ocsp_expiry_timestamp_seconds";
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.family(FETCHES, "counter", "OCSP requests, by outcome.");
        for (subject, fetches) in &*all {
            for (outcome, count) in [("fetched", fetches.fetched), ("failed", fetches.failed)] {
                text.sample(
                    FETCHES,
                    &[("certificate", subject), ("outcome", outcome)],
                    count,
                );
            }
        }
        text.family(
            EXPIRY,
            "gauge",
            "Until when a response of OCSP holds, in seconds since 1970.",
        );
        for (subject, fetches) in &*all {
            if let Some(seconds) = fetches.holds_until.and_then(seconds) {
                text.sample(EXPIRY, &[("certificate", subject)], seconds);
            }
        }
    }
}

fn seconds(at: SystemTime) -> Option<u64> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_certificate_has_its_figures() {
        let figures = AcmeFigures::default();
        figures.issued("a.example");
        figures.failed("b.example");
        figures.failed("b.example");
        figures.expires(
            "a.example",
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs(7)),
        );
        let mut text = MetricsText::default();
        figures.show(None, &mut text);
        for line in [
            "plimsoll_acme_orders_total{certificate=\"a.example\",outcome=\"issued\"} 1\n",
            "plimsoll_acme_orders_total{certificate=\"b.example\",outcome=\"failed\"} 2\n",
            "plimsoll_acme_expiry_timestamp_seconds{certificate=\"a.example\"} 7\n",
        ] {
            assert!(
                text.as_str().contains(line),
                "no {line} in {}",
                text.as_str()
            );
        }
        assert!(!text.as_str().contains("seconds{certificate=\"b.example\""));
    }
}
