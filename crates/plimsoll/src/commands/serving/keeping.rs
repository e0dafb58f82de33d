//! The certificate keeper as a part that a program may leave out: packed sites do not have it.

use std::io;
#[cfg(feature = "serve")]
use std::sync::Arc;

#[cfg(feature = "serve")]
use plimsoll_certificates::{Keeper, Surroundings};
use plimsoll_server::config::{Compiler, ServerPlan};
#[cfg(feature = "serve")]
use plimsoll_wire::Background;

/// Keeps certificates current until it is dropped.
pub(super) trait KeepCertificates {
    /// Keeps what `plan` asks for from now on, and nothing else; to be called too when certificates have changed.
    ///
    /// - `at_once`: what has failed is tried again now.
    fn keep(&mut self, plan: &ServerPlan, at_once: bool) -> io::Result<()>;
}

/// Makes one that answers where the listeners of the compiler's plans do.
pub(super) type MakeKeeper = fn(&Compiler) -> Box<dyn KeepCertificates>;

#[cfg(feature = "serve")]
impl KeepCertificates for Keeper {
    fn keep(&mut self, plan: &ServerPlan, at_once: bool) -> io::Result<()> {
        Self::keep(
            self,
            &plan.acme,
            plan.on_demand.as_ref(),
            &plan.ocsp,
            at_once,
        )
    }
}

#[cfg(feature = "serve")]
pub(super) fn keeper(compiler: &Compiler) -> Box<dyn KeepCertificates> {
    Box::new(Keeper::new(Surroundings {
        challenges: compiler.challenges.clone(),
        counters: Arc::clone(&compiler.counters),
        notices: compiler.notices.clone(),
        background: compiler.states.state("", Background::default),
    }))
}
