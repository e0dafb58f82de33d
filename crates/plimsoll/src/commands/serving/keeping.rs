//! What orders certificates, as something that a program may do without: that of packed sites holds none of it.

use std::io;
use std::sync::Arc;

use plimsoll_certificates::{Keeper, Surroundings};
use plimsoll_server::AcmePlan;
use plimsoll_server::config::Compiler;

/// Keeps certificates current until it is dropped.
pub(super) trait KeepCertificates {
    /// Keeps what `plans` ask for from now on, and nothing else.
    ///
    /// - `at_once`: what has failed is tried again now.
    fn keep(&mut self, plans: &[AcmePlan], at_once: bool) -> io::Result<()>;
}

/// Makes one that answers where the listeners of the compiler's plans do.
pub(super) type MakeKeeper = fn(&Compiler) -> Box<dyn KeepCertificates>;

impl KeepCertificates for Keeper {
    fn keep(&mut self, plans: &[AcmePlan], at_once: bool) -> io::Result<()> {
        Self::keep(self, plans, at_once)
    }
}

pub(super) fn keeper(compiler: &Compiler) -> Box<dyn KeepCertificates> {
    Box::new(Keeper::new(Surroundings {
        challenges: compiler.challenges.clone(),
        counters: Arc::clone(&compiler.counters),
        notices: compiler.notices.clone(),
    }))
}
