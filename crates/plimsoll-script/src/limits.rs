//! Limits of a VM.

/// Bounds of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all its values, modules among them.
    pub memory: usize,
    /// Bytes of stack that JavaScript calls may use. Fibers run on stacks that are [`Limits::HEADROOM`] larger.
    pub stack: usize,
}

impl Limits {
    /// Bytes of stack for native functions beyond [`Limits::stack`].
    pub const HEADROOM: usize = 256 << 10;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 32 << 20,
            stack: 512 << 10,
        }
    }
}
