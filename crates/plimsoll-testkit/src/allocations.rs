//! Counts allocations and the memory they hold, so that a path can be held to none, and a parser to its input's size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes held. Signed, since a thread may free what another one has allocated.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// Bytes held at the last call of [`take_peak_of_this_thread`].
    static MARK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread; a test binary installs it by
/// `#[global_allocator]`.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

/// Allocations and reallocations of the calling thread so far.
pub fn allocations_of_this_thread() -> u64 {
    COUNT.get()
}

/// The most bytes that the calling thread held at once during `work`, beyond what it held before.
pub fn peak_bytes_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    let peak = PEAK.get() - before;
    (result, u64::try_from(peak).unwrap_or(0))
}

/// The most bytes that the calling thread held at once since the last call, beyond what it held then.
pub fn take_peak_of_this_thread() -> u64 {
    let peak = PEAK.get() - MARK.get();
    let held = HELD.get();
    MARK.set(held);
    PEAK.set(held);
    u64::try_from(peak).unwrap_or(0)
}

fn count(bytes: i64) {
    // During the end of a thread there is nothing left to count in.
    COUNT.try_with(|count| count.set(count.get() + 1)).ok();
    hold(bytes);
}

fn hold(bytes: i64) {
    let held = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        held.get()
    });
    if let Ok(held) = held {
        PEAK.try_with(|peak| peak.set(peak.get().max(held))).ok();
    }
}

/// An allocation is at most `isize::MAX` bytes, so the conversion loses nothing.
fn bytes(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[expect(
    unsafe_code,
    reason = "the trait asks for it; every call goes to the system's allocator"
)]
// SAFETY: each method passes its arguments on unchanged, so the caller's promises hold for `System`.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(bytes(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(bytes(layout.size()));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-bytes(layout.size()));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(bytes(size) - bytes(layout.size()));
        unsafe { System.realloc(pointer, layout, size) }
    }
}
