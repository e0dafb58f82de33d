//! Areas on top of one another: the parts of a sum over time.

use std::fmt::Write as _;
use std::ops::Range;

use super::{
    Axis, COLOURS, IN_MEMORY, LEFT, Line, RIGHT, TOP, WIDTH, bottom, figure, grid, opening, shade,
};

/// Half the width of an area with one position, which would have none.
const ALONE: f64 = 1.5;

/// Lines with the same positions, each drawn on the sum of those before it.
#[derive(Debug)]
pub struct Stack {
    /// The title, for the heading and for readers who cannot see the plot.
    pub title: String,
    /// Scale of the first of a point's two values.
    pub x: Axis,
    /// The name of the x axis; empty if it needs none.
    pub across: &'static str,
    /// Scale of the sums.
    pub y: Axis,
    /// From the bottom to the top, each with the number of its colour; a missing value adds nothing.
    pub lines: Vec<(usize, Line)>,
    /// Stretches of x to be shaded: the warm-up.
    pub shaded: Vec<(f64, f64)>,
}

impl Stack {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        let mut points = self.lines.iter().flat_map(|(_, line)| &line.points);
        points.all(|(_, y)| y.is_none())
    }

    /// A `figure` element with its legend.
    pub fn html(&self) -> String {
        let labels = self.lines.iter();
        let labels = labels.map(|(colour, line)| (*colour, line.label.as_str()));
        figure(&self.title, labels, &self.svg())
    }

    /// The drawing alone.
    pub fn svg(&self) -> String {
        let positions: Vec<f64> = self
            .lines
            .first()
            .map(|(_, line)| line.points.iter().map(|(x, _)| *x).collect())
            .unwrap_or_default();
        let mut edges = vec![vec![0.0; positions.len()]];
        for (_, line) in &self.lines {
            let below = edges.last().expect("there is the ground at least");
            let values = line.points.iter().map(|(_, y)| y.unwrap_or(0.0).max(0.0));
            let above = below.iter().zip(values).map(|(below, value)| below + value);
            edges.push(above.collect());
        }
        let x = self.x.map(positions.iter().copied(), (LEFT, WIDTH - RIGHT));
        let bottom = bottom(self.across);
        let y = self.y.map(edges.iter().flatten().copied(), (bottom, TOP));
        let mut svg = opening(&self.title);
        shade(&mut svg, &self.shaded, &x, bottom);
        let stretches = self.stretches(positions.len());
        for ((colour, _), pair) in self.lines.iter().zip(edges.windows(2)) {
            let mut path = String::new();
            for stretch in &stretches {
                let part = |edge: &[f64]| -> Vec<(f64, f64)> {
                    let points = positions.iter().zip(edge);
                    let points = points.skip(stretch.start).take(stretch.len());
                    let points =
                        points.map(|(position, value)| (x.place(*position), y.place(*value)));
                    widened(points.collect())
                };
                outline(&mut path, &part(&pair[0]), &part(&pair[1]));
            }
            let colour = colour % COLOURS;
            write!(svg, "<path class=\"area f{colour}\" d=\"{path}\"/>").expect(IN_MEMORY);
        }
        grid(&mut svg, &x, self.across, &y);
        svg.push_str("</svg>");
        svg
    }

    /// The positions side by side at which there is any value.
    fn stretches(&self, positions: usize) -> Vec<Range<usize>> {
        let is_known = |position: usize| {
            let mut values = self
                .lines
                .iter()
                .filter_map(|(_, line)| line.points.get(position));
            values.any(|(_, value)| value.is_some())
        };
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for position in (0..positions).filter(|position| is_known(*position)) {
            match stretches.last_mut() {
                Some(last) if last.end == position => last.end += 1,
                _ => stretches.push(position..position + 1),
            }
        }
        stretches
    }
}

/// One point as two, so that something is to be seen of it.
fn widened(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    match points.as_slice() {
        [(across, down)] => vec![(across - ALONE, *down), (across + ALONE, *down)],
        _ => points,
    }
}

/// The outline of an area: along the upper edge and back along the lower.
fn outline(path: &mut String, lower: &[(f64, f64)], upper: &[(f64, f64)]) {
    for (number, (across, down)) in upper.iter().chain(lower.iter().rev()).enumerate() {
        let command = if number == 0 { 'M' } else { 'L' };
        write!(path, "{command}{across:.1} {down:.1}").expect(IN_MEMORY);
    }
    path.push('Z');
}
