//! How much a runtime may take.

/// Bounds of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all its values, modules among them.
    pub memory: usize,
    /// Bytes of the stack of its thread that calls may use; the thread must have some more.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 32 << 20,
            stack: 512 << 10,
        }
    }
}
