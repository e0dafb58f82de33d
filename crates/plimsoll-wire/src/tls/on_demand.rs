//! Certificates of names that are not known in advance: each is ordered when a client first requests it.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plimsoll_model::Certificate;
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use crate::tls::server::{AwaitedCertificate, Certified, ServerTlsError};

/// Decides whether a host name, in lower case, belongs to a service of this process.
pub type PermitsName = dyn Fn(&str) -> bool + Send + Sync;

/// Certificates by name; shared between the listeners, the services that permit names, and the ACME client.
///
/// A name without a service is never ordered, so clients cannot make the process order certificates for names of
/// their choice.
#[derive(Debug, Clone)]
pub struct OnDemandCertificates(Arc<Shared>);

/// Names are permitted as long as this is kept.
#[must_use]
pub struct NamePermission(#[expect(dead_code, reason = "kept alive only")] Arc<PermitsName>);

struct Shared {
    state: Mutex<State>,
    /// Counts requested names and certificates that came or went.
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    permissions: Vec<Weak<PermitsName>>,
    certificates: HashMap<String, Arc<CertifiedKey>>,
    /// Permitted names that a client has requested.
    requested: BTreeSet<String>,
    /// Those of them whose order has failed, until the next attempt.
    failed: BTreeSet<String>,
}

/// Names for which certificates are kept at most. A process that serves more domains than this is split long before.
const MOST_NAMES: usize = 100_000;

impl Default for OnDemandCertificates {
    fn default() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            version: watch::Sender::new(0),
        }))
    }
}

impl OnDemandCertificates {
    /// Permits the names for which `permits` returns true, until the permission is dropped.
    ///
    /// - `permits`: called during handshakes, so it must not block.
    pub fn permit(&self, permits: impl Fn(&str) -> bool + Send + Sync + 'static) -> NamePermission {
        let permits: Arc<PermitsName> = Arc::new(permits);
        let mut state = self.state();
        state.permissions.retain(|known| known.strong_count() > 0);
        state.permissions.push(Arc::downgrade(&permits));
        NamePermission(permits)
    }

    /// Whether a service of this process has that name.
    pub fn permits(&self, name: &str) -> bool {
        // Called without the lock: a permission may take locks of its own.
        let permissions = self.state().permissions.clone();
        let mut permissions = permissions.iter().filter_map(Weak::upgrade);
        permissions.any(|permits| permits(name))
    }

    /// The certificate for a permitted name, if there is one; if not, it is requested.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        if !self.permits(name) {
            return None;
        }
        let mut state = self.state();
        let known = state.certificates.get(name).cloned();
        if known.is_none()
            && state.requested.len() < MOST_NAMES
            && state.requested.insert(name.to_owned())
        {
            drop(state);
            self.change();
        }
        known
    }

    /// Waits for the certificate of a permitted name, which is requested if there is none. Returns at once if the name is
    /// not permitted or its order has failed.
    ///
    /// - `name`: in any case.
    pub async fn prepared(&self, name: &str) {
        let name = name.to_ascii_lowercase();
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            let is_ready = self.certificate(&name).is_some() || !self.permits(&name);
            if is_ready || self.state().failed.contains(&name) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Names that clients have requested, whether or not their certificates are there.
    pub fn requested(&self) -> Vec<String> {
        self.state().requested.iter().cloned().collect()
    }

    /// Changes when a name is requested.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Shows the certificate in this file, with its key, to clients that request `name`.
    pub fn show(&self, name: &str, file: &Path) -> Result<Certificate, ServerTlsError> {
        let awaited = AwaitedCertificate {
            names: vec![name.to_owned()],
            file: file.to_owned(),
            ocsp: None,
        };
        let certificate = awaited.load()?;
        let key = Certified::load(&awaited.files())?.shown();
        let mut state = self.state();
        state.failed.remove(name);
        if let Some(key) = key {
            state.certificates.insert(name.to_owned(), key);
        }
        drop(state);
        self.change();
        Ok(certificate)
    }

    /// Lets clients that wait for the certificate of `name` go on without it.
    pub fn fail(&self, name: &str) {
        self.state().failed.insert(name.to_owned());
        self.change();
    }

    /// Has clients wait again for the certificate of `name`, which is being ordered.
    pub fn order(&self, name: &str) {
        self.state().failed.remove(name);
    }

    /// Forgets a name that no service has any more.
    pub fn forget(&self, name: &str) {
        let mut state = self.state();
        state.certificates.remove(name);
        state.requested.remove(name);
        state.failed.remove(name);
    }

    fn change(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemandCertificates")
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for NamePermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamePermission")
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::{Authority, MaterialFiles};

    use super::*;

    #[test]
    fn only_permitted_names_are_requested_and_shown() {
        let (files, authority) = (MaterialFiles::new(), Authority::new());
        let leaf = authority.issue(&["a.example"]);
        let file = files.write("a.pem", &(leaf.pem().to_owned() + leaf.key_pem()));
        let on_demand = OnDemandCertificates::default();
        let permission = on_demand.permit(|name| name == "a.example");
        assert!(on_demand.certificate("b.example").is_none());
        assert!(on_demand.certificate("a.example").is_none());
        assert!(on_demand.certificate("a.example").is_none());
        assert_eq!(on_demand.requested(), ["a.example"]);
        assert!(on_demand.show("a.example", &files.path("none")).is_err());
        assert!(on_demand.certificate("a.example").is_none());
        let shown = on_demand.show("a.example", &file).unwrap();
        assert_eq!(shown.names, ["a.example"]);
        assert!(on_demand.certificate("a.example").is_some());
        drop(permission);
        assert!(on_demand.certificate("a.example").is_none());
        on_demand.forget("a.example");
        assert!(on_demand.requested().is_empty());
    }

    #[tokio::test]
    async fn a_client_waits_until_the_order_has_ended() {
        let (files, authority) = (MaterialFiles::new(), Authority::new());
        let leaf = authority.issue(&["a.example"]);
        let file = files.write("a.pem", &(leaf.pem().to_owned() + leaf.key_pem()));
        let on_demand = OnDemandCertificates::default();
        // Nothing to wait for.
        on_demand.prepared("a.example").await;
        let _permission = on_demand.permit(|name| name.ends_with(".example"));
        let keeper = on_demand.clone();
        tokio::join!(on_demand.prepared("A.example"), async {
            assert_eq!(keeper.requested(), ["a.example"]);
            keeper.show("a.example", &file).unwrap();
        });
        tokio::join!(on_demand.prepared("b.example"), async {
            keeper.fail("b.example");
        });
        on_demand.prepared("b.example").await;
    }
}
