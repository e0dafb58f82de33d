//! From single results to confirmed outages and incidents: pure, `(state, input, now) → effects`.
//!
//! [`Detector`] confirms failures per region, applies the rule over regions, and drives one incident at a time through
//! open, recovering, reopened and resolved. It reads no clock and stores nothing: effects say what to record and send.

pub mod window;

pub mod uptime;

pub mod excluded;

pub mod timeline;

pub mod budget;

pub mod status;

mod policy;

mod region;

mod machine;

pub use crate::detect::machine::{
    Detector, Effect, Hold, Input, Notice, RegionView, Resolution, StepEffects,
};
pub use crate::detect::policy::{DetectPolicy, FlapRule, RegionRule};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod simulation;
