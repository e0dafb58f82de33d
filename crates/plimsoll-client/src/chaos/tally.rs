//! Counts that the hostile clients of an attack share.

use std::cell::RefCell;

use plimsoll_model::HostileFigures;

/// Kinds of answers that are counted apart; the rest is counted as one.
const MOST_KINDS: usize = 50;

/// The figures, shared by the clients of one thread.
#[derive(Debug, Default)]
pub(super) struct Tally(RefCell<HostileFigures>);

impl Tally {
    pub(super) fn figures(&self) -> HostileFigures {
        self.0.borrow().clone()
    }

    pub(super) fn sent(&self, units: u64) {
        self.0.borrow_mut().sent += units;
    }

    pub(super) fn bytes_sent(&self, bytes: usize) {
        self.0.borrow_mut().bytes_sent += bytes as u64;
    }

    pub(super) fn bytes_received(&self, bytes: usize) {
        self.0.borrow_mut().bytes_received += bytes as u64;
    }

    pub(super) fn connected(&self) {
        self.0.borrow_mut().connections += 1;
    }

    pub(super) fn refused(&self) {
        self.0.borrow_mut().refused += 1;
    }

    pub(super) fn ended(&self) {
        self.0.borrow_mut().ended += 1;
    }

    pub(super) fn status(&self, status: u16) {
        *self.0.borrow_mut().statuses.entry(status).or_default() += 1;
    }

    pub(super) fn goaway(&self, kind: String) {
        let goaways = &mut self.0.borrow_mut().goaways;
        let is_known = goaways.len() < MOST_KINDS || goaways.contains_key(&kind);
        let kind = if is_known { kind } else { "other".to_owned() };
        *goaways.entry(kind).or_default() += 1;
    }

    pub(super) fn reset(&self, code: &str) {
        let resets = &mut self.0.borrow_mut().resets;
        if let Some(count) = resets.get_mut(code) {
            *count += 1;
            return;
        }
        let code = if resets.len() < MOST_KINDS {
            code
        } else {
            "other"
        };
        *resets.entry(code.to_owned()).or_default() += 1;
    }
}
