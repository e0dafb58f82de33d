//! Series of values over time.

use serde::{Deserialize, Serialize};

/// One figure of a target over the time of a soak.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its column: `anonymous_bytes`, or a metric with its labels.
    pub name: String,
    /// How it is judged.
    pub kind: Kind,
    /// Seconds since the start, and the value; `None` where it could not be read.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How a series is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bytes held: they may rise to a level and vary about it.
    Memory,
    /// Things held, such as descriptors, threads or the value of a gauge: likewise.
    Gauge,
    /// A sum that only grows: it may grow, but not ever faster.
    Counter,
    /// A sum that must not grow at all, such as the number of panics.
    Zero,
}

impl Kind {
    /// The name used in plans, text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Zero => "zero",
        }
    }

    /// The least growth over a whole soak that is one, whatever the level: what an allocator or a pool does by the way.
    pub const fn floor(self) -> f64 {
        match self {
            Self::Memory => 1024.0 * 1024.0,
            Self::Gauge => 4.0,
            // Per second.
            Self::Counter => 1.0,
            Self::Zero => 0.0,
        }
    }
}

impl Series {
    /// The points that could be read.
    pub fn known(&self) -> Vec<(f64, f64)> {
        self.points
            .iter()
            .filter_map(|(at, value)| Some((*at, (*value)?)))
            .collect()
    }
}
