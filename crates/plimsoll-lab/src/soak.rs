//! Soaks: targets under load for hours, and what of them grows.
//!
//! A scenario starts its processes, keeps its loads running and samples memory, descriptors, threads and the target's own
//! metrics. Every series is then judged ([`judge`]): bounded, drifting, or not decided. Beside it stands the verdict of the
//! rule of thirds ([`judge_by_thirds`]).

mod series;

mod verdict;

mod thirds;

mod plan;

mod exposition;

mod samples;

mod load;

mod scenario;

mod run;

mod store;

mod outcome;

mod text;

mod json;

mod html;

pub use crate::soak::html::to_html;
pub use crate::soak::json::{SCHEMA, to_json};
pub use crate::soak::outcome::{JudgedSeries, LoadTally, ScenarioResult, Soak};
pub use crate::soak::plan::{
    Metrics, Patterns, ScenarioPlan, SoakLoad, SoakPlan, Subject, compile, words_of,
};
pub use crate::soak::run::{Event, RunOptions, SoakError, run};
pub use crate::soak::series::{Kind, Series};
pub use crate::soak::store::{Folder, FolderError};
pub use crate::soak::text::to_text;
pub use crate::soak::thirds::judge_by_thirds;
pub use crate::soak::verdict::{Assessment, JudgeOptions, Shape, Verdict, judge};
