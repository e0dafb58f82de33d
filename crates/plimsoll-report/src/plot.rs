//! Plots as SVG: axes, lines, dots, a legend; no script, and colours that the page defines.

mod heat;

mod scale;

mod stack;

use std::fmt::Write as _;

use plimsoll_model::escaped_html;

pub(crate) use self::heat::{Cell, HeatMap};
pub use self::scale::Axis;
use self::scale::Mapped;
pub use self::stack::Stack;

/// The style sheet of plots, to stand behind that of [`plimsoll_model::look`].
pub const STYLE: &str = include_str!("plot/plot.css");

/// The drawing's own units; it is scaled to the width that there is.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 224.0;
// Wide enough for `150,000` and half of `99.9999%` in the larger type of narrow screens.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 10.0;
// Ticks, and below them what the axis counts.
const BOTTOM: f64 = 40.0;
// Ticks alone.
const BOTTOM_UNNAMED: f64 = 24.0;

/// Lines over a common pair of axes.
#[derive(Debug)]
pub struct Plot {
    /// The title, for the heading and for readers who cannot see the plot.
    pub title: String,
    /// Scale of the first of a point's two values.
    pub x: Axis,
    /// The name of the x axis; empty if it needs none.
    pub across: &'static str,
    /// Scale of the second value.
    pub y: Axis,
    /// The lines, the first one on top: of percentiles, the smaller ones come first and lie above the maximum.
    pub lines: Vec<Line>,
    /// Stretches of x to be shaded: the warm-up, an interval.
    pub shaded: Vec<(f64, f64)>,
    /// Intervals of what the first line shows.
    pub bands: Vec<Band>,
}

/// A stretch of x with an interval of y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// From, to.
    pub x: (f64, f64),
    /// From, to.
    pub y: (f64, f64),
}

/// One line; where a value is missing it is interrupted.
#[derive(Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub label: String,
    /// Its points in the order in which they are joined.
    pub points: Vec<(f64, Option<f64>)>,
    /// Whether its points are dots that nothing joins.
    pub is_dots: bool,
}

impl Plot {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// A `figure` element with its legend.
    pub fn html(&self) -> String {
        let labels = self
            .lines
            .iter()
            .map(|line| line.label.as_str())
            .enumerate();
        figure(&self.title, labels, &self.svg())
    }

    /// The drawing alone.
    pub fn svg(&self) -> String {
        let x = self.x.map(
            self.lines.iter().flat_map(|line| {
                let known = line.points.iter().filter(|(_, y)| y.is_some());
                known.map(|(x, _)| *x)
            }),
            (LEFT, WIDTH - RIGHT),
        );
        let bottom = bottom(self.across);
        let ends = self.bands.iter().flat_map(|band| [band.y.0, band.y.1]);
        let y = self.y.map(self.values().chain(ends), (bottom, TOP));
        let mut svg = opening(&self.title);
        shade(&mut svg, &self.shaded, &x, bottom);
        grid(&mut svg, &x, self.across, &y);
        for band in &self.bands {
            draw_band(&mut svg, band, &x, &y);
        }
        for (number, line) in self.lines.iter().enumerate().rev() {
            if line.is_dots {
                dots(&mut svg, line, number % COLOURS, &x, &y);
                continue;
            }
            let path = path(line, &x, &y);
            if !path.is_empty() {
                let colour = number % COLOURS;
                write!(svg, "<path class=\"line s{colour}\" d=\"{path}\"/>").expect(IN_MEMORY);
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        points.filter_map(|(_, y)| *y)
    }
}

/// The x axis of a run.
pub(crate) const TIME: &str = "time since the start";

/// As many as the page defines.
pub(crate) const COLOURS: usize = 7;

const IN_MEMORY: &str = "writing to memory does not fail";

/// A `figure` element around a drawing; labels have the number of their colour, and the legend is left out where one label says nothing.
fn figure<'a>(
    title: &str,
    labels: impl ExactSizeIterator<Item = (usize, &'a str)>,
    svg: &str,
) -> String {
    let mut html = String::from("<figure class=\"plot\">");
    write!(html, "<figcaption>{}", escaped_html(title)).expect(IN_MEMORY);
    if labels.len() > 1 {
        html.push_str("<span class=\"legend\">");
        for (colour, label) in labels {
            let colour = colour % COLOURS;
            write!(
                html,
                "<span class=\"k{colour}\">{}</span> ",
                escaped_html(label)
            )
            .expect(IN_MEMORY);
        }
        html.push_str("</span>");
    }
    html.push_str("</figcaption>");
    html.push_str(svg);
    html.push_str("</figure>\n");
    html
}

fn opening(title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped_html(title)
    )
}

/// The place of the x axis.
fn bottom(across: &str) -> f64 {
    let room = if across.is_empty() {
        BOTTOM_UNNAMED
    } else {
        BOTTOM
    };
    HEIGHT - room
}

fn shade(svg: &mut String, stretches: &[(f64, f64)], x: &Mapped, bottom: f64) {
    for (from, to) in stretches {
        let (from, to) = (x.place(*from).max(LEFT), x.place(*to).min(WIDTH - RIGHT));
        if to > from {
            write!(
                svg,
                "<rect class=\"shade\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" \
                 height=\"{:.1}\"/>",
                to - from,
                bottom - TOP
            )
            .expect(IN_MEMORY);
        }
    }
}

fn draw_band(svg: &mut String, band: &Band, x: &Mapped, y: &Mapped) {
    let (left, right) = (x.place(band.x.0), x.place(band.x.1));
    let (bottom, top) = (y.place(band.y.0), y.place(band.y.1));
    write!(
        svg,
        "<rect class=\"band f0\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        (right - left).max(1.0),
        (bottom - top).max(1.0)
    )
    .expect(IN_MEMORY);
}

fn grid(svg: &mut String, x: &Mapped, across: &str, y: &Mapped) {
    let (bottom, right) = (bottom(across), WIDTH - RIGHT);
    for (value, label) in y.ticks() {
        let at = y.place(*value);
        write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            at + 3.5,
            escaped_html(label)
        )
        .expect(IN_MEMORY);
    }
    for (value, label) in x.ticks() {
        let at = x.place(*value);
        write!(
            svg,
            "<line class=\"tick\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
             <text class=\"x\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 4.0,
            bottom + 17.0,
            escaped_html(label)
        )
        .expect(IN_MEMORY);
    }
    if !across.is_empty() {
        write!(
            svg,
            "<text class=\"x\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            f64::midpoint(LEFT, right),
            bottom + 33.0,
            escaped_html(across)
        )
        .expect(IN_MEMORY);
    }
    write!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>"
    )
    .expect(IN_MEMORY);
}

fn path(line: &Line, x: &Mapped, y: &Mapped) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (position, value) in &line.points {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let (across, down) = (x.place(*position), y.place(*value));
        let command = if is_drawing { 'L' } else { 'M' };
        write!(path, "{command}{across:.1} {down:.1}").expect(IN_MEMORY);
        if !is_drawing {
            // A value between two missing ones is a dot.
            path.push_str("h.01");
        }
        is_drawing = true;
    }
    path
}

fn dots(svg: &mut String, line: &Line, colour: usize, x: &Mapped, y: &Mapped) {
    for (position, value) in &line.points {
        let Some(value) = value else { continue };
        let (across, down) = (x.place(*position), y.place(*value));
        write!(
            svg,
            "<circle class=\"dot k{colour}\" cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"2.6\"/>"
        )
        .expect(IN_MEMORY);
    }
}

#[cfg(test)]
mod tests;
