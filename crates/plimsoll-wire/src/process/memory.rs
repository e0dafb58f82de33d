//! Free memory that goes back to the system.

/// Has the allocator give its free pages back, which it keeps otherwise when something lies behind them.
///
/// It looks through all of its memory: call it after a flood, not for every request.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_free_memory() {
    #[expect(unsafe_code, reason = "a function of the C library")]
    // SAFETY: it takes no pointer, and any thread may call it at any time (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Allocators of other systems decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_free_memory() {}
