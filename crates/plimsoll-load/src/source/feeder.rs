//! Rows of values, and in which order they are used.

use std::sync::Arc;

use plimsoll_formats::Table;

/// Rows of values for templates.
#[derive(Debug, Clone)]
pub struct Feeder {
    /// Its name in messages: the name of its file.
    pub name: String,
    /// The rows.
    pub table: Arc<Table>,
    /// In which order they are used.
    pub order: FeederOrder,
}

/// In which order the rows of a feeder are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeederOrder {
    /// From the first to the last, each once; the run ends after the last one. Where every request needs a row, the
    /// plan must not start more exchanges than there are rows.
    Sequential,
    /// From the first to the last, again and again.
    Cyclic,
    /// Any, at random.
    Random,
    /// One for each virtual user, from its first exchange to its last.
    PerUser,
}
