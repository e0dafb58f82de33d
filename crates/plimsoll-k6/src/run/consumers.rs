//! Consumers of single samples, beside their aggregates.

use std::time::{Duration, SystemTime};

use plimsoll_load::scenario::Points;
use plimsoll_script::Level;

use crate::line_source::LineSource;
use crate::output::samples::SampleWriter;
use crate::output::series::SeriesWriter;
use crate::summary::Breakdown;
use crate::user::Log;

/// Everything that needs single samples.
pub(super) struct Consumers<'a> {
    pub(super) writers: Vec<SampleWriter<'a>>,
    pub(super) series: Option<SeriesWriter<'a>>,
    /// For a summary by groups and scenarios.
    pub(super) breakdown: Option<Breakdown>,
    /// Samples that were left out because there were too many.
    pub(super) dropped: u64,
}

impl Consumers<'_> {
    /// True if samples are not needed.
    pub(super) fn is_empty(&self) -> bool {
        self.writers.is_empty() && self.series.is_none() && self.breakdown.is_none()
    }

    /// - `start`: of the run.
    pub(super) fn hand_over_points(&mut self, points: &Points, start: SystemTime) {
        self.dropped += points.dropped;
        for writer in &mut self.writers {
            writer.write(points, start);
        }
        if let Some(series) = &mut self.series {
            series.add(points);
        }
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.add(points);
        }
    }

    /// - `at`: since the start of the run.
    pub(super) fn tick(&mut self, at: Duration) {
        for writer in &mut self.writers {
            writer.flush();
        }
        if let Some(series) = &mut self.series {
            series.tick(at);
        }
    }

    /// Completes the outputs; returns the breakdown, and whether an output failed.
    pub(super) fn finish(self, log: &Log) -> (Option<Breakdown>, bool) {
        let warn = |text: String| log(Level::Warning, &text, LineSource::Run);
        if self.dropped > 0 {
            let dropped = self.dropped;
            warn(format!(
                "{dropped} samples were left out of outputs: they came too fast"
            ));
        }
        let left_out = self.series.map_or(0, SeriesWriter::finish);
        if left_out > 0 {
            warn(format!(
                "{left_out} samples are in no series: their tags have too many values"
            ));
        }
        let mut has_failed = false;
        for writer in self.writers {
            if let Err(error) = writer.finish() {
                log(Level::Error, &error.to_string(), LineSource::Run);
                has_failed = true;
            }
        }
        (self.breakdown, has_failed)
    }
}
