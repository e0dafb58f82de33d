//! Counts allocations, so that a path that must not allocate can be held to it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread; a test binary installs it by
/// `#[global_allocator]`.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

/// Allocations and reallocations of the calling thread so far.
pub fn allocations_of_this_thread() -> u64 {
    COUNT.get()
}

fn count() {
    // During the end of a thread there is nothing left to count in, and nobody who asks.
    COUNT.try_with(|count| count.set(count.get() + 1)).ok();
}

#[expect(
    unsafe_code,
    reason = "the trait asks for it; every call goes to the system's allocator"
)]
// SAFETY: each method passes its arguments on unchanged, so the caller's promises hold for `System`.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}
