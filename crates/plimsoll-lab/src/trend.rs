//! Figures over a series of results, and the steps that changed them.
//!
//! [`changes`] is the estimator, pure and seeded; [`trend`] applies it to every figure that the
//! results have, and [`to_text`], [`to_json`] and [`to_html`] encode what came of it.

mod changes;

mod figure;

mod html;

mod json;

mod text;

use plimsoll_report::RunRecord;

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
    /// How steps were looked for.
    pub options: ChangeOptions,
}

/// One figure over all results.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which one.
    pub figure: Figure,
    /// Its value in each result; `None` where there is none.
    pub values: Vec<Option<f64>>,
    /// Where it changed, as positions among the results.
    pub changes: Vec<Change>,
}

/// The trend of `records`, which are sorted by their start.
pub fn trend(records: &[RunRecord], options: ChangeOptions) -> Trend {
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
    Trend {
        names: records.iter().map(|record| record.name.clone()).collect(),
        started: records
            .iter()
            .map(|record| record.summary.conditions.started.clone())
            .collect(),
        series: series.collect(),
        options,
    }
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
