//! The page of a run that goes on: tiles, plots and tables, which the server sends anew as the run proceeds.
//!
//! The plots are those of the report. A page alone ([`Dashboard::page`]) needs nothing else; [`Dashboard::live_page`] has a
//! script that replaces its content by the events of the server.

use std::time::Duration;

use plimsoll_model::escaped_html;

use crate::export::html::{MOST_POINTS, seconds, thinned};
use crate::files::ExtraTable;
use crate::page::{Card, cards, html_page};
use crate::plot::{Axis, Line, Plot, TIME};

/// The script of live pages: it listens to `events` beside the page.
pub const SCRIPT: &str = include_str!("dashboard/live.js");

/// The name under which live pages load [`SCRIPT`].
pub const SCRIPT_NAME: &str = "dashboard.js";

/// Figures of a run at one moment.
#[derive(Debug)]
pub struct Dashboard {
    /// The script or the URL.
    pub title: String,
    /// How the run goes on, in a few words.
    pub state: String,
    /// The share of the run that has passed, from 0 to 1; absent if it is not known.
    pub progress: Option<f64>,
    /// The principal figures.
    pub tiles: Vec<Card>,
    /// Figures over time.
    pub plots: Vec<Plot>,
    /// More figures; those without rows are left out.
    pub tables: Vec<ExtraTable>,
}

impl Dashboard {
    /// What is replaced while the run goes on.
    pub fn content(&self) -> String {
        let mut html = format!(
            "<header><h1>{}</h1><p class=\"shape\">{}</p>",
            escaped_html(&self.title),
            escaped_html(&self.state)
        );
        if let Some(progress) = self.progress {
            let percent = (progress.clamp(0.0, 1.0) * 100.0).round();
            html.extend([
                "<progress max=\"100\" value=\"",
                &percent.to_string(),
                "\">",
                &percent.to_string(),
                " %</progress>",
            ]);
        }
        html.push_str("</header>\n");
        html.push_str(&cards(&self.tiles));
        html.push_str("<section class=\"plots\">\n");
        for plot in self.plots.iter().filter(|plot| !plot.is_empty()) {
            html.push_str(&plot.html());
        }
        html.push_str("</section>\n");
        for table in self.tables.iter().filter(|table| !table.rows.is_empty()) {
            html.push_str(&table.html());
        }
        html
    }

    /// A page that needs nothing else.
    pub fn page(&self) -> String {
        html_page(&self.title, &self.content())
    }

    /// A page that follows the run.
    pub fn live_page(&self) -> String {
        let body = format!(
            "<div id=\"live\">{}</div>\n<p id=\"lost\" class=\"mark\" hidden>The connection to the run is lost; the figures are the \
             last ones.</p>\n<script src=\"{SCRIPT_NAME}\"></script>\n",
            self.content()
        );
        html_page(&self.title, &body)
    }
}

/// How the points of a plot are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// The title of the plot.
    pub title: &'static str,
    /// Writes values.
    pub write: fn(f64) -> String,
    /// Whether the axis is logarithmic, for values of different magnitude.
    pub is_logarithmic: bool,
    /// The lines, the first one on top.
    pub lines: &'static [&'static str],
}

/// Figures over time, of a bounded number of moments: those of a longer run are put together at their largest value.
#[derive(Debug)]
pub struct Timeline {
    charts: &'static [Chart],
    /// Seconds since the start.
    moments: Vec<f64>,
    /// For each line of each chart as many values as there are moments.
    values: Vec<Vec<Option<f64>>>,
}

impl Timeline {
    /// Nothing has happened yet.
    pub fn new(charts: &'static [Chart]) -> Self {
        let lines = charts.iter().map(|chart| chart.lines.len()).sum();
        Self {
            charts,
            moments: Vec::new(),
            values: vec![Vec::new(); lines],
        }
    }

    /// Adds a moment.
    ///
    /// - `at`: since the start of the run.
    /// - `values`: one for each line of each chart, in their order; missing ones interrupt the line.
    pub fn add(&mut self, at: Duration, values: &[Option<f64>]) {
        if self.moments.len() >= MOST_POINTS * 2 {
            self.put_together();
        }
        self.moments.push(at.as_secs_f64());
        for (line, value) in self.values.iter_mut().zip(values) {
            line.push(value.filter(|value| value.is_finite()));
        }
    }

    /// Half as many moments.
    fn put_together(&mut self) {
        let halved = |line: &[Option<f64>]| {
            let pairs = line.chunks(2);
            let largest = pairs.map(|pair| pair.iter().copied().flatten().reduce(f64::max));
            largest.collect::<Vec<_>>()
        };
        self.moments = self.moments.chunks(2).map(|pair| pair[0]).collect();
        for line in &mut self.values {
            *line = halved(line);
        }
    }

    /// The charts as far as they are known.
    pub fn plots(&self) -> Vec<Plot> {
        let mut values = self.values.iter();
        let plots = self.charts.iter().map(|chart| {
            let lines = chart.lines.iter().zip(values.by_ref());
            let lines = lines.map(|(label, values)| {
                let points = self.moments.iter().copied();
                let points: Vec<_> = points.zip(values.iter().copied()).collect();
                Line {
                    label: (*label).to_owned(),
                    points: thinned(&points),
                    is_dots: false,
                }
            });
            Plot {
                title: chart.title.to_owned(),
                x: Axis::Time(seconds),
                across: TIME,
                y: if chart.is_logarithmic {
                    Axis::Logarithmic(chart.write)
                } else {
                    Axis::Linear(chart.write)
                },
                lines: lines.collect(),
                shaded: Vec::new(),
                bands: Vec::new(),
            }
        });
        plots.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::short_number;

    const CHARTS: &[Chart] = &[
        Chart {
            title: "Rate",
            write: short_number,
            is_logarithmic: false,
            lines: &["a", "b"],
        },
        Chart {
            title: "Nothing",
            write: short_number,
            is_logarithmic: false,
            lines: &["c"],
        },
    ];

    fn dashboard(timeline: &Timeline) -> Dashboard {
        Dashboard {
            title: "<script>".to_owned(),
            state: "running".to_owned(),
            progress: Some(0.254),
            tiles: vec![Card::new("errors", "3").bad_if(true)],
            plots: timeline.plots(),
            tables: vec![ExtraTable {
                title: "Empty".to_owned(),
                head: Vec::new(),
                rows: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_page_has_tiles_and_plots_with_points_and_needs_nothing_else() {
        let mut timeline = Timeline::new(CHARTS);
        for second in 0..10_u32 {
            let values = [Some(f64::from(second)), None, None];
            timeline.add(Duration::from_secs(u64::from(second)), &values);
        }
        let page = dashboard(&timeline).page();
        for expected in [
            "<h1>&lt;script&gt;</h1>",
            "<progress max=\"100\" value=\"25\">",
            "<div class=\"card bad\"><span>errors</span><strong>3</strong>",
            "<figcaption>Rate",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        for unexpected in ["Nothing", "Empty", "<script", "http://", "https://"] {
            assert!(!page.contains(unexpected), "{unexpected}\n{page}");
        }
        let live = dashboard(&timeline).live_page();
        assert_eq!(live.matches("<script src=\"dashboard.js\">").count(), 1);
    }

    #[test]
    fn long_runs_keep_their_peaks_in_bounded_memory() {
        let mut timeline = Timeline::new(CHARTS);
        for second in 0..50_000_u32 {
            let peak = if second == 30_001 { 1e6 } else { 1.0 };
            timeline.add(
                Duration::from_secs(second.into()),
                &[Some(peak), None, None],
            );
        }
        assert!(timeline.moments.len() <= MOST_POINTS * 2);
        assert!(
            timeline
                .values
                .iter()
                .all(|line| line.len() == timeline.moments.len())
        );
        let plots = timeline.plots();
        assert!(
            plots[0].lines[0]
                .points
                .iter()
                .any(|(_, value)| *value == Some(1e6))
        );
        assert!(plots[0].lines[0].points.len() <= MOST_POINTS);
    }
}
