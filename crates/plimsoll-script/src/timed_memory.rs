//! The memory of one VM, which refuses large blocks once its script is out of time.
//!
//! The engine looks at the time at every ten thousandth jump or call only. A script that makes a large text at each of them
//! works for seconds between two looks, and one native function may copy for as long. So the time is looked at again whenever
//! so much memory was asked for that it took as long as thousands of statements.

use std::ptr;

use rquickjs::allocator::Allocator;

use crate::memory::SharedMemory;

/// Blocks that are counted, in bytes: filling a smaller one takes no longer than a statement.
const LARGE: usize = 4 * 1024;

/// Bytes of such blocks between two looks at the time.
const BETWEEN_LOOKS: usize = 1024 * 1024;

/// Memory that a VM shares with others, and whether its script is out of time.
pub(crate) struct TimedMemory {
    shared: SharedMemory,
    is_over: Box<dyn Fn() -> bool>,
    /// Bytes of large blocks since the last look.
    since: usize,
    /// What the last look found.
    refuses: bool,
}

impl TimedMemory {
    /// - `is_over`: whether the running script has to end.
    pub(crate) fn new(shared: SharedMemory, is_over: impl Fn() -> bool + 'static) -> Self {
        Self {
            shared,
            is_over: Box::new(is_over),
            since: 0,
            refuses: false,
        }
    }

    /// Whether a block of this size may be had now. Small ones always may, such as for the exception that says so.
    fn admits(&mut self, size: usize) -> bool {
        if size < LARGE {
            return true;
        }
        self.since = self.since.saturating_add(size);
        if self.refuses || self.since >= BETWEEN_LOOKS {
            self.since = 0;
            self.refuses = (self.is_over)();
        }
        !self.refuses
    }
}

// SAFETY: every block is one of the shared memory, unchanged; where none may be had, null is returned, which means just that.
unsafe impl Allocator for TimedMemory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.admits(size) {
            self.shared.alloc(size)
        } else {
            ptr::null_mut()
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if self.admits(count.saturating_mul(size)) {
            self.shared.calloc(count, size)
        } else {
            ptr::null_mut()
        }
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: the caller has it from this memory and uses it no more.
        unsafe { self.shared.dealloc(block) };
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        if self.admits(size) {
            // SAFETY: the caller has the block from this memory.
            unsafe { self.shared.realloc(block, size) }
        } else {
            ptr::null_mut()
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the caller has the block from this memory.
        unsafe { SharedMemory::usable_size(block) }
    }
}
