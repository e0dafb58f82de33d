//! The configuration of a listener of HTTP, as its connections use it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_wire::tls::OnDemandCertificates;
use tokio_rustls::TlsAcceptor;

use crate::action::Action;
use crate::message::request::Scheme;
use crate::protocol::http3::alternative::AltSvc;

/// The configuration that a listener gives to its connections; a reload replaces it.
pub(crate) struct Service {
    pub(crate) action: RefCell<Rc<dyn Action>>,
    pub(crate) tls: RefCell<Option<TlsAcceptor>>,
    pub(crate) http2: Cell<bool>,
    /// Value of `alt-svc` that announces HTTP/3.
    pub(crate) http3: RefCell<Option<Rc<AltSvc>>>,
    /// Certificates that handshakes wait for.
    pub(crate) on_demand: RefCell<Option<OnDemandCertificates>>,
}

impl Service {
    #[inline]
    pub(crate) fn action(&self) -> Rc<dyn Action> {
        Rc::clone(&self.action.borrow())
    }

    /// The advertised alternative service; only over TLS, since it could have been changed otherwise.
    pub(crate) fn alternative(&self, scheme: Scheme) -> Option<Rc<AltSvc>> {
        let alternative = self.http3.borrow().clone();
        alternative.filter(|_| scheme == Scheme::Https)
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
