//! What an agent makes of an order: parts of plain loads and of scripts, by the flags of `plimsoll load`.

use plimsoll_fleet::{
    LoadPart, OrderFile, PartError, PartMaker, PreparedPart, RunOrder, Share, Work,
};
use plimsoll_load::{Interrupt, check_reachable};

use super::super::{facts, prepare};
use super::arguments;
use super::folder::folder_with;
use crate::commands::loadtest::part as loadtest;
use crate::problem::Failed;
use crate::temporary_folder::TemporaryFolder;

/// Makes parts of all kinds of runs.
#[derive(Debug)]
pub(crate) struct Maker;

impl PartMaker for Maker {
    fn prepare(
        &self,
        order: &RunOrder,
        files: Vec<OrderFile>,
        share: Share,
    ) -> Result<Box<dyn PreparedPart>, PartError> {
        let folder = folder_with(&files)?;
        match order.work {
            Work::Loadtest => loadtest::prepare(order, share),
            Work::Load => load(order, folder, share),
            #[cfg(feature = "k6")]
            Work::Script => super::script_part::prepare(order, folder, share),
            #[cfg(not(feature = "k6"))]
            Work::Script => Err("this program was built without scripts".into()),
        }
    }
}

fn load(
    order: &RunOrder,
    folder: TemporaryFolder,
    share: Share,
) -> Result<Box<dyn PreparedPart>, PartError> {
    let args = arguments::of_order(&order.command, folder.path())?;
    let prepared = prepare(&args, &Interrupt::default()).map_err(|failed| text(&failed))?;
    let plan = prepared.compiled.plan;
    check_reachable(&plan)?;
    Ok(Box::new(LoadPart {
        facts: facts(&plan, None, &[]),
        plan,
        share,
        tick_seconds: order.tick_seconds,
        folder: Some(Box::new(folder)),
    }))
}

/// All problems in one line.
pub(crate) fn text(failed: &Failed) -> String {
    let problems = failed.problems.iter().map(|problem| match &problem.about {
        Some(about) => format!("{about} {}", problem.message),
        None => problem.message.clone(),
    });
    problems.collect::<Vec<_>>().join("; ")
}
