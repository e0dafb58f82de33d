//! A request to stop, passed from a signal handler to whatever waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that, once raised, makes an experiment stop its processes and return.
///
/// It is looked at every [`Interrupt::LATENCY_MS`] milliseconds while a trial runs.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// How long a raised flag may go unnoticed, in milliseconds.
    pub const LATENCY_MS: u64 = 50;

    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Raises it; it is never lowered.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
