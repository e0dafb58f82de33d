//! The summary after a run: some fifteen lines that end with the verdict, and the details above
//! them where they are wanted.

pub(super) mod agents;

mod brief;

mod conditions;

mod details;

mod servers;

use plimsoll_model::RunSummary;

pub use self::brief::cautions;
use super::page::Page;
use super::style::Style;

/// With fewer durations the high percentiles are those of single responses, which every format says.
pub(crate) const FEW_SAMPLES: u64 = 100;

/// Level of detail of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The principal figures, what went wrong first, the verdict.
    #[default]
    Brief,
    /// Before them every section: phases, histogram, statuses, generator, conditions.
    Full,
}

/// The summary of a run; the verdict is the last line.
pub fn summary(run: &RunSummary, detail: Detail, style: Style) -> String {
    let mut page = Page::new(style);
    if detail == Detail::Full {
        details::details(&mut page, run);
        page.line("");
    }
    agents::agents(&mut page, &run.agents, run.window);
    if !run.agents.is_empty() {
        page.line("");
    }
    brief::brief(&mut page, run, detail);
    page.finish().trim_start_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
