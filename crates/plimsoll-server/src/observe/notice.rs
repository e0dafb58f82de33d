//! Events while serving that a person should see.

use std::fmt;
use std::sync::Arc;

/// One such moment, to be shown at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Severity.
    pub severity: Severity,
    /// The file, URL or name that it is about, with the place in it if there is one.
    pub about: Option<String>,
    /// The event, without a full stop.
    pub message: String,
    /// A fix.
    pub hint: Option<String>,
}

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something was done.
    Note,
    /// Something was left out, or holds although it is old.
    Warning,
    /// Something is wrong and has to be mended.
    Error,
}

impl Notice {
    /// A notice about nothing in particular, and without a hint.
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            severity,
            about: None,
            message: message.into(),
            hint: None,
        }
    }

    /// The same, about this.
    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Self {
        Self {
            about: Some(about.into()),
            ..self
        }
    }
}

/// Receives notices. By default they are dropped.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&Notice) + Send + Sync>);

impl Notices {
    /// - `listener`: called by whichever thread it happens on, so it should not take long.
    pub fn new(listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Passes a notice on.
    pub fn report(&self, notice: &Notice) {
        (self.0)(notice);
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
