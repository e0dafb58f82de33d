//! Timers that go off when they are due.

/// Has sleeps of the calling thread end when they are over, not up to 50 µs later, as the system does
/// to let several timers share a wake-up (`PR_SET_TIMERSLACK` of prctl(2)).
///
/// False where that cannot be had: short sleeps are longer than they should be there.
pub fn give_up_on_this_thread() -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN)).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
