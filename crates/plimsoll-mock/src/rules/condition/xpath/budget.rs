//! Limits on the cost of evaluating expressions.
//!
//! Every node that an expression visits is a step, and every byte of text that it reads counts. An evaluation that
//! needs more visits no further nodes, so it ends soon, and its result is thrown away. What it visits it may also hold,
//! so the same limits keep its memory below 4 MiB.

use std::cell::Cell;

/// Of one evaluation.
const STEPS: u64 = 100_000;
const BYTES: u64 = 1 << 20;

/// Of one evaluation that compares node sets with each other, whose cost is the product of their lengths.
const STEPS_OF_PRODUCT: u64 = 10_000;
const BYTES_OF_PRODUCT: u64 = 64 << 10;

/// Of all evaluations for one request, near misses included.
const STEPS_OF_REQUEST: u64 = 10 * STEPS;
const BYTES_OF_REQUEST: u64 = 10 * BYTES;

/// The rest of the budget of one evaluation.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl Budget {
    /// Counts a step; whether it may be made.
    pub(super) fn step(&self) -> bool {
        self.spend(&self.steps, 1)
    }

    /// Counts text that is read; whether it may be.
    pub(super) fn read(&self, bytes: usize) -> bool {
        self.step() && self.spend(&self.bytes, bytes as u64)
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    fn spend(&self, left: &Cell<u64>, count: u64) -> bool {
        if self.is_exceeded.get() || left.get() < count {
            self.is_exceeded.set(true);
            return false;
        }
        left.set(left.get() - count);
        true
    }
}

/// The rest of the budget of one request's evaluations.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

impl Default for RequestBudget {
    fn default() -> Self {
        Self {
            steps: Cell::new(STEPS_OF_REQUEST),
            bytes: Cell::new(BYTES_OF_REQUEST),
        }
    }
}

impl RequestBudget {
    /// Makes an evaluation within what one of them, and all of them, may take.
    ///
    /// - `is_product`: whether it compares node sets with each other.
    pub(super) fn evaluate<T>(&self, is_product: bool, evaluate: impl FnOnce(&Budget) -> T) -> T {
        let (steps, bytes) = if is_product {
            (STEPS_OF_PRODUCT, BYTES_OF_PRODUCT)
        } else {
            (STEPS, BYTES)
        };
        let (steps, bytes) = (steps.min(self.steps.get()), bytes.min(self.bytes.get()));
        let budget = Budget {
            steps: Cell::new(steps),
            bytes: Cell::new(bytes),
            is_exceeded: Cell::new(false),
        };
        let result = evaluate(&budget);
        self.steps
            .set(self.steps.get() - (steps - budget.steps.get()));
        self.bytes
            .set(self.bytes.get() - (bytes - budget.bytes.get()));
        result
    }
}
