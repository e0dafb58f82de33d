//! Systems whose kernel cannot restrict the files of a process.

use std::convert::Infallible;

use super::Confinement;

/// Whether files are restricted.
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(super) fn restrict(_confinement: &Confinement) -> Result<bool, Infallible> {
    Ok(false)
}
