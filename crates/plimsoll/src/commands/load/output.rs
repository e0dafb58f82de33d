//! What `plimsoll load` shows while it runs and leaves behind when it is done.

use super::Args;
use crate::problem::Failed;
use plimsoll_load::RunPlan;
use plimsoll_model::{RunSummary, Tick};

pub(super) struct LiveLine;
impl LiveLine {
    pub(super) fn new(_args: &Args, _plan: &RunPlan) -> Self {
        Self
    }
    pub(super) fn show(&mut self, tick: &Tick) {
        eprintln!("{tick:?}");
    }
    pub(super) fn clear(&mut self) {}
}
pub(super) struct ResultFolder;
impl ResultFolder {
    pub(super) fn prepare(_path: &std::path::Path) -> Result<Self, Failed> {
        Ok(Self)
    }
    pub(super) fn write(self, _summary: &RunSummary) -> Result<(), Failed> {
        Ok(())
    }
}
pub(super) fn print(_args: &Args, s: &RunSummary) -> Result<(), Failed> {
    println!(
        "rps {:.0} counts {:?} statuses {:?} failures {:?}",
        s.requests_per_second(),
        s.counts,
        s.statuses,
        s.failures
    );
    println!(
        "latency {:?} p99 {:?}",
        s.latency,
        s.latency.honest().quantile(0.99)
    );
    println!(
        "server {:?} {:?}",
        s.target.as_ref().map(|t| t.cost),
        s.target.as_ref().and_then(|t| t.cost.cpu_us_per_request())
    );
    println!(
        "generator {:?} {:?}",
        s.generator,
        s.generator.cost.cpu_us_per_request()
    );
    Ok(())
}
pub(super) fn masked_command(args: impl Iterator<Item = String>) -> Vec<String> {
    args.collect()
}
