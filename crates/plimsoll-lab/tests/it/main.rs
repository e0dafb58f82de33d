//! Comparisons of real processes over loopback.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod compare;
#[cfg(target_os = "linux")]
mod profile;
mod schema;

mod soak;
