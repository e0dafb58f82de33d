//! Certificates of clients: `ssl_verify_client` and its authority.

use super::Notes;
use super::scope::Scope;

/// `ssl_verify_client` with the authority whose certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificates {
    /// A server that requires a certificate and names no authority rejects every client.
    pub(super) ca: Option<String>,
    pub(super) required: bool,
}

impl ClientCertificates {
    /// `ssl_verify_client` with its authority.
    pub(super) fn of_server(scope: &Scope<'_>, notes: &mut Notes) -> Option<Self> {
        let verify = scope
            .last("ssl_verify_client")
            .filter(|it| it.argument(0) != "off")?;
        let ca = scope
            .last("ssl_client_certificate")
            .or_else(|| scope.last("ssl_trusted_certificate"));
        if verify.argument(0) == "optional_no_ca" {
            notes.add(
                verify,
                "certificates of other authorities are not accepted here",
            );
        }
        Some(Self {
            ca: ca.map(|it| it.argument(0).to_owned()),
            required: verify.argument(0) == "on",
        })
    }

    /// The certificates that clients are asked for, if all servers that want some want them of one authority. They are
    /// required if every server requires them; else routes do.
    pub(super) fn of_listener(all: &[Option<Self>]) -> Option<Self> {
        let mut wanted = all.iter().flatten();
        let ca = wanted.next()?.ca.clone()?;
        let mut others = wanted;
        if !others.all(|it| it.ca.as_ref() == Some(&ca)) {
            return None;
        }
        let mut all = all.iter();
        Some(Self {
            ca: Some(ca),
            required: all.all(|it| it.as_ref().is_some_and(|it| it.required)),
        })
    }
}
