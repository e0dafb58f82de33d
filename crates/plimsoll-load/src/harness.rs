//! The harness of `plimsoll loadtest`: very many workers, each of which makes one check after the
//! other with the check of the monitor.
//!
//! A [`HarnessPlan`] goes in and a [`HarnessOutcome`] comes out of [`run`], for the workers of one
//! process. It starts no origins and no processes.

mod interval;

mod plan;

mod run;

mod worker;

pub use self::interval::{found_in, interval_of};
pub use self::plan::HarnessPlan;
pub use self::run::{HarnessOutcome, HarnessTick, run};
