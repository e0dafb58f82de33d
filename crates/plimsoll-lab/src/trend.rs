//! Figures over a series of results, and the steps that changed them.
//!
//! [`changes`] is the estimator, pure and seeded; [`trend`] applies it to every figure that the
//! results have, and [`to_text`], [`to_json`] and [`to_html`] encode what came of it.

mod changes;

mod figure;

mod html;

mod json;

mod text;

use plimsoll_report::{MergeError, RunRecord, same_load};

pub use self::changes::{Change, ChangeOptions, changes};
pub use self::figure::Figure;
pub use self::html::to_html;
pub use self::json::{SCHEMA, to_json};
pub use self::text::to_text;

/// Every figure over a series of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The results' names, oldest first.
    pub names: Vec<String>,
    /// When each started, in UTC (RFC 3339).
    pub started: Vec<String>,
    /// Each figure that any of them has.
    pub series: Vec<Series>,
    /// Settings of the search for steps.
    pub options: ChangeOptions,
}

/// One figure over all results.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which one.
    pub figure: Figure,
    /// Its value in each result; `None` where there is none.
    pub values: Vec<Option<f64>>,
    /// Change points, as positions among the results.
    pub changes: Vec<Change>,
}

/// The fewest results in which a step stands out from chance: orders of fewer are too few.
pub const LEAST_RESULTS: usize = 10;

/// Why results have no trend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrendError {
    /// They are too few.
    #[error("{found} results are too few: a step stands out from chance from {LEAST_RESULTS} on")]
    Few {
        /// Number of results.
        found: usize,
    },
    /// They are not of the same load.
    #[error("the results are not of the same load")]
    Different(#[source] MergeError),
}

/// The trend of `records`, which are sorted by their start.
///
/// Fails if they are fewer than [`LEAST_RESULTS`], or of different URLs, methods or loads.
pub fn trend(records: &[RunRecord], options: ChangeOptions) -> Result<Trend, TrendError> {
    if let Some((first, rest)) = records.split_first() {
        for other in rest {
            same_load(first, other).map_err(TrendError::Different)?;
        }
    }
    if records.len() < LEAST_RESULTS {
        return Err(TrendError::Few {
            found: records.len(),
        });
    }
    let mut records: Vec<&RunRecord> = records.iter().collect();
    // Times in UTC with the same number of digits sort as text.
    records.sort_by(|one, other| {
        let started = |run: &RunRecord| run.summary.conditions.started.clone();
        started(one).cmp(&started(other))
    });
    let series = Figure::ALL
        .into_iter()
        .map(|figure| {
            let values: Vec<Option<f64>> = records
                .iter()
                .map(|record| figure.value(&record.summary))
                .collect();
            Series {
                figure,
                changes: changes_of(&values, &options),
                values,
            }
        })
        .filter(|series| series.values.iter().any(Option::is_some));
    Ok(Trend {
        names: records.iter().map(|record| record.name.clone()).collect(),
        started: records
            .iter()
            .map(|record| record.summary.conditions.started.clone())
            .collect(),
        series: series.collect(),
        options,
    })
}

/// Of the values that there are, with positions among all.
fn changes_of(values: &[Option<f64>], options: &ChangeOptions) -> Vec<Change> {
    let (positions, known): (Vec<usize>, Vec<f64>) = values
        .iter()
        .enumerate()
        .filter_map(|(position, value)| Some((position, (*value)?)))
        .unzip();
    changes(&known, options)
        .into_iter()
        .map(|change| Change {
            at: positions[change.at],
            ..change
        })
        .collect()
}
