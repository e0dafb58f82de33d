//! Certificates that clients have to show for a route, where the listener lets them choose.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::place::{CertificatePart, Place, Values as _};

/// The certificates that are accepted of those that the listener has verified. Of each list that is not empty the
/// certificate has to have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRule {
    /// Names of owners (RFC 4514), such as `CN=ann,O=Example`.
    pub subjects: Vec<String>,
    /// Alternative names with their kinds, such as `URI:spiffe://example.org/shop`; one that ends with `*` is the
    /// beginning of others.
    pub names: Vec<String>,
    /// SHA-256 of the certificate, in lower-case hexadecimal digits.
    pub sha256: Vec<String>,
    /// The status for others.
    pub status: StatusCode,
}

impl CertificateRule {
    /// Whether the client of a request has shown such a certificate.
    fn admits(&self, request: &Request<'_>) -> bool {
        let shown = |part| {
            let mut value = Vec::new();
            let is_there = request.write(&Place::ClientCertificate(part), &mut value);
            is_there.then(|| String::from_utf8(value).unwrap_or_default())
        };
        let is_one_of = |wanted: &[String], part| {
            wanted.is_empty() || shown(part).is_some_and(|value| wanted.contains(&value))
        };
        let tls = request.connection().tls.as_ref();
        tls.is_some_and(|tls| !tls.client_certificates.is_empty())
            && is_one_of(&self.sha256, CertificatePart::Sha256)
            && is_one_of(&self.subjects, CertificatePart::Subject)
            && (self.names.is_empty()
                || shown(CertificatePart::AlternativeNames).is_some_and(|names| {
                    let mut names = names.split(',');
                    names.any(|name| self.names.iter().any(|wanted| is_name(wanted, name)))
                }))
    }
}

fn is_name(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    }
}

/// Lets another action answer those who have shown a certificate.
pub(super) struct Certified {
    rule: Arc<CertificateRule>,
    inner: Rc<dyn Action>,
}

impl Certified {
    pub(super) fn new(rule: Arc<CertificateRule>, inner: Rc<dyn Action>) -> Self {
        Self { rule, inner }
    }
}

impl Action for Certified {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if self.rule.admits(request) {
            return self.inner.handle(request);
        }
        let message = "a certificate is needed that is accepted here\n";
        Answer::now(Response::text(self.rule.status, message))
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}
