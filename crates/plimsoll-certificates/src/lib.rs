//! Certificates that are kept current: ordered by ACME, renewed before they expire.
//!
//! A [`Keeper`] is a thread that orders what an [`AcmePlan`](plimsoll_server::AcmePlan) asks for, one certificate after
//! the other, and writes it to its file. Whoever serves by that file loads it again when it changes; the keeper itself
//! serves nothing.

mod acme;

mod events;

mod figures;

mod keeper;

mod kept;

mod schedule;

mod store;

mod transport;

pub use crate::figures::AcmeFigures;
pub use crate::keeper::{Keeper, Surroundings};
