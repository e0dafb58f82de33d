//! Stacks of fibers, kept for the next one, and the memory of their engines.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use corosensei::stack::DefaultStack;

use crate::error::{ErrorKind, ScriptError};
use crate::limits::Limits;
use crate::memory::SharedMemory;

/// Idle stacks that are kept; more are unmapped. A worker resumes about so many fibers between two that start.
const KEPT: usize = 64;

/// A pool of stacks with guard pages, for the fibers of one thread, with the memory that its VMs share.
///
/// The memory of a stack is taken by the pages that its fiber touches, not by its size. Two mappings belong to each, so
/// `vm.max_map_count` bounds how many fibers can wait at once.
#[derive(Clone)]
pub struct Stacks {
    bytes: usize,
    idle: Rc<RefCell<Vec<DefaultStack>>>,
    memory: SharedMemory,
}

impl Stacks {
    /// Stacks for VMs of these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            bytes: limits.stack + Limits::HEADROOM,
            idle: Rc::default(),
            memory: SharedMemory::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the engines of the thread allocate from.
    pub(crate) fn memory(&self) -> SharedMemory {
        self.memory.clone()
    }

    /// Fails if the system maps no more memory.
    pub(crate) fn take_stack(&self) -> Result<DefaultStack, ScriptError> {
        if let Some(stack) = self.idle.borrow_mut().pop() {
            return Ok(stack);
        }
        DefaultStack::new(self.bytes)
            .map_err(|error| ScriptError::new(ErrorKind::Stack(error.to_string())))
    }

    pub(crate) fn give_back(&self, stack: DefaultStack) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < KEPT {
            idle.push(stack);
        }
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stacks")
            .field("bytes", &self.bytes)
            .field("idle", &self.idle.borrow().len())
            .finish_non_exhaustive()
    }
}
