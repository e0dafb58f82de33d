//! Figures over a series of results, and the steps that changed them.
//!
//! [`changes`] is the estimator, pure and seeded; [`trend`] applies it to every figure that the
//! results have, and [`to_text`], [`to_json`] and [`to_html`] encode the result. A [`TrendPoint`] is one result, from a folder
//! or from a line of a file.

mod changes;

mod figure;

mod html;

mod json;

mod levels;

mod point;

mod text;

pub use self::changes::{Change, ChangeOptions, changes};
pub use self::figure::Figure;
pub use self::html::to_html;
pub use self::json::{SCHEMA, to_json};
pub use self::levels::{LEVEL_COVERAGE, TrendLevel};
pub use self::point::{LINE_SCHEMA, PointError, TrendPoint};
pub use self::text::to_text;

/// Every figure over a series of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The results, oldest first.
    pub points: Vec<TrendPoint>,
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
    /// The stretches between them.
    pub levels: Vec<TrendLevel>,
}

/// The fewest results in which a step stands out from chance: orders of fewer are too few.
pub const LEAST_RESULTS: usize = 10;

/// Why results have no trend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrendError {
    /// There are none.
    #[error("there is no result")]
    Nothing,
    /// They are not of the same load.
    #[error(
        "the results are not of the same load: {one} is of `{first}`, {other} is of `{second}`"
    )]
    Different {
        /// Name of the first result.
        one: String,
        /// Name of a result that differs.
        other: String,
        /// The load of the first.
        first: String,
        /// The other load.
        second: String,
    },
}

/// The trend of `points`, which are sorted by their start.
///
/// Fails if there is none, or if they are of different requests or loads.
pub fn trend(mut points: Vec<TrendPoint>, options: ChangeOptions) -> Result<Trend, TrendError> {
    let Some(first) = points.first() else {
        return Err(TrendError::Nothing);
    };
    if let Some(other) = points.iter().find(|other| other.load != first.load) {
        return Err(TrendError::Different {
            one: first.name.clone(),
            other: other.name.clone(),
            first: first.load.clone(),
            second: other.load.clone(),
        });
    }
    // Times in UTC with the same number of digits sort as text.
    points.sort_by(|one, other| one.started.cmp(&other.started));
    let series = Figure::ALL
        .into_iter()
        .map(|figure| {
            let values: Vec<Option<f64>> = points.iter().map(|point| point.value(figure)).collect();
            let changes = changes_of(&values, &options);
            Series {
                figure,
                levels: levels::levels(&values, &changes),
                changes,
                values,
            }
        })
        .filter(|series| series.values.iter().any(Option::is_some));
    Ok(Trend {
        series: series.collect(),
        points,
        options,
    })
}

impl Trend {
    /// Whether the machine is another one from the result at `position` on.
    pub fn changes_machine(&self, position: usize) -> bool {
        let machine = |position: usize| self.points.get(position).map(|point| &point.machine);
        position > 0 && machine(position - 1) != machine(position)
    }

    /// What a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let results = self.points.len();
        if results < LEAST_RESULTS {
            warnings.push(format!(
                "a step stands out from chance from {LEAST_RESULTS} results on; there are {results}"
            ));
        }
        let mut machines: Vec<&str> = self.points.iter().map(|it| it.machine.as_str()).collect();
        machines.sort_unstable();
        machines.dedup();
        if machines.len() > 1 {
            warnings.push(format!(
                "the results are of {} machines ({}): a step may be that of the machine",
                machines.len(),
                machines.join("; ")
            ));
        }
        warnings
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
