//! The public roots: Mozilla's programme, as compiled in, and this system's.

use std::sync::{Arc, OnceLock};

use rustls::RootCertStore;

/// Loaded at the first call and shared from then on, since reading the system's takes long.
///
/// Certificates of the system that cannot be read or parsed are left out: one odd file of an
/// administrator should not stop a test against a server that never needed it.
pub(crate) fn public() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS
        .get_or_init(|| {
            let mut roots = RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(roots)
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_once_and_never_empty() {
        let roots = public();
        assert!(roots.len() >= webpki_roots::TLS_SERVER_ROOTS.len());
        assert!(Arc::ptr_eq(&roots, &public()));
    }
}
