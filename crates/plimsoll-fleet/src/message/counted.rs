//! What a tick has: the counts of a plain load, or the aggregates of a script.

use serde::{Deserialize, Serialize};

use super::{Figures, ScriptFigures};

/// What an agent has counted since its last tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Of a plain load.
    Load(Box<Figures>),
    /// Of a script.
    Script(Box<ScriptFigures>),
}
