//! Systems without network namespaces.

use super::NetworkError;

pub(super) fn enter_own(_settings: &[(&str, &str)]) -> Result<(), NetworkError> {
    Err(NetworkError::Unsupported)
}

/// Those of RFC 6335, section 6: 49152 to 65535.
pub(super) fn ephemeral_ports() -> usize {
    16_384
}
