//! Certificates that are kept current: ordered by ACME, renewed before they expire, with their revocation status
//! (OCSP).
//!
//! A [`Keeper`] is a thread that orders the certificates of each [`AcmePlan`](plimsoll_server::AcmePlan), one after the
//! other, and writes them to their files; beside that it fetches the responses of each
//! [`OcspPlan`](plimsoll_server::config::OcspPlan). The server loads a file again when it changes; the keeper
//! itself serves nothing.

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
