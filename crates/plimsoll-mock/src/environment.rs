//! Variables of the environment, for templates of other mock servers that name them.
//!
//! Each dialect has a prefix that names must have, so that a template reads none that was not meant for it.

/// The value of a variable, if it is set and is UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "templates name the variables, so the binary cannot read them before"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
