//! Steps that requests pass in their order.

use super::super::nginx::Directive;
use super::actions::{Action, Passed};
use super::matcher::Matcher;

/// The steps of a site, `handle` or `route`, in the order in which requests pass them.
#[derive(Debug, Default)]
pub(in crate::import) struct Block(pub(in crate::import) Vec<Step>);

/// What one directive does.
#[derive(Debug)]
pub(in crate::import) enum Step {
    /// Requests pass it.
    Layer(Layer),
    /// It responds, by the first of these that is for a request.
    Actions {
        matcher: Matcher,
        actions: Vec<Action>,
    },
    /// It has steps of its own.
    Within {
        matcher: Matcher,
        directive: Directive,
        block: Block,
        kind: Within,
    },
}

/// What follows steps within a block that do not respond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) enum Within {
    /// `handle`: what follows all blocks of that kind.
    Handle,
    /// `handle_path`, with what it takes off: nothing.
    HandlePath(String),
    /// `route`: all that follows.
    Route,
}

/// Something that every request of a matcher passes.
#[derive(Debug)]
pub(in crate::import) struct Layer {
    pub(in crate::import) matcher: Matcher,
    pub(in crate::import) passed: Passed,
    pub(in crate::import) directive: Directive,
    /// It keeps clients out.
    pub(in crate::import) is_guard: bool,
}
