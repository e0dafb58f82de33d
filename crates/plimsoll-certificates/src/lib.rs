//! Certificates that are kept current: ordered by ACME, renewed before they expire, with what authorities say of their
//! revocation (OCSP).
//!
//! A [`Keeper`] is a thread that orders what an [`AcmePlan`](plimsoll_server::AcmePlan) asks for, one certificate after
//! the other, and writes it to its file; what an [`OcspPlan`](plimsoll_server::config::OcspPlan) asks for it fetches beside that. Whoever serves by that file loads it again when it changes; the keeper itself
//! serves nothing.

mod acme;

mod events;

mod figures;

mod keeper;

mod kept;

mod responses;

mod schedule;

mod store;

mod transport;

pub use crate::figures::{AcmeFigures, OcspFigures};
pub use crate::keeper::{Keeper, Surroundings};
