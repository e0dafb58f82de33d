//! The result of a soak.

use plimsoll_model::Conditions;
use serde::{Deserialize, Serialize};

use super::series::{Kind, Series};
use super::verdict::{Assessment, Verdict};

/// All scenarios of a soak.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The name of the plan.
    pub name: String,
    /// Seconds that each scenario was to last.
    pub duration_secs: f64,
    /// Seconds between two samples.
    pub sample_secs: f64,
    /// By how much loads were multiplied.
    pub scale: f64,
    /// In the order of the plan.
    pub scenarios: Vec<ScenarioResult>,
    /// Scenarios that an earlier run of the same plan had finished.
    pub kept: usize,
    /// The machine, and what went on there.
    pub conditions: Conditions,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// Seconds that it lasted.
    pub lasted_secs: f64,
    /// Why it ended early, or what else keeps it from a verdict.
    pub failure: Option<String>,
    /// Each series with its verdict.
    pub series: Vec<JudgedSeries>,
    /// Each load.
    pub loads: Vec<LoadTally>,
    /// The samples, for plots; their file is `samples.csv`.
    #[serde(skip)]
    pub samples: Vec<Series>,
    /// Cores in use at each sample.
    #[serde(skip)]
    pub cores: Vec<(f64, Option<f64>)>,
}

/// A series with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedSeries {
    /// Its column in the samples.
    pub name: String,
    /// How it was judged.
    pub kind: Kind,
    /// The assessment.
    #[serde(flatten)]
    pub assessment: Assessment,
    /// The verdict of the rule of thirds.
    pub by_thirds: Verdict,
}

/// The counts of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTally {
    /// Its name.
    pub name: String,
    /// How often its command was started.
    pub runs: u64,
    /// Runs that ended with a code above 1.
    pub failed_runs: u64,
    /// Complete responses, as far as the tool reports them.
    pub ok: u64,
    /// Requests without a complete response.
    pub failed: u64,
    /// Why it was given up, if it was.
    pub given_up: Option<String>,
}

impl LoadTally {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            runs: 0,
            failed_runs: 0,
            ok: 0,
            failed: 0,
            given_up: None,
        }
    }
}

impl ScenarioResult {
    /// The worst verdict of its series; a scenario that failed or has no series is not decided.
    pub fn verdict(&self) -> Verdict {
        let worst = self.series.iter().map(|it| it.assessment.verdict).max();
        match worst.unwrap_or(Verdict::Inconclusive) {
            Verdict::Bounded if self.failure.is_some() => Verdict::Inconclusive,
            worst => worst,
        }
    }

    /// The series that decides: of the worst verdict, the one that grew most beyond what is allowed.
    pub fn deciding(&self) -> Option<&JudgedSeries> {
        let excess = |it: &JudgedSeries| {
            let allowed = it.assessment.allowed.max(f64::MIN_POSITIVE);
            it.assessment.growth / allowed
        };
        self.series.iter().max_by(|a, b| {
            let by_verdict = a.assessment.verdict.cmp(&b.assessment.verdict);
            by_verdict.then(excess(a).total_cmp(&excess(b)))
        })
    }
}

impl Soak {
    /// The worst verdict of all scenarios.
    pub fn verdict(&self) -> Verdict {
        let worst = self.scenarios.iter().map(ScenarioResult::verdict).max();
        worst.unwrap_or(Verdict::Inconclusive)
    }
}
