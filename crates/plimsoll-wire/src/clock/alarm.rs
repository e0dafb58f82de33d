//! A timer finer than the runtime's.
//!
//! The runtime's own timers tick in milliseconds; a schedule of 5,000 starts a second has one every
//! 200 µs. Linux has timers of nanoseconds behind a file descriptor; elsewhere the runtime's must do.

#[cfg(target_os = "linux")]
#[path = "alarm/timerfd.rs"]
mod imp;

#[cfg(not(target_os = "linux"))]
#[path = "alarm/runtime.rs"]
mod imp;

pub use imp::Alarm;
