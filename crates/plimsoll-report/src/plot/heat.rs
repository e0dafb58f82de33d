//! A heat map: how many values fell where, over time; the more, the darker.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{
    Axis, BOTTOM, HEIGHT, IN_MEMORY, LEFT, RIGHT, TIME, TOP, WIDTH, figure, grid, opening, shade,
};

/// Counted values in cells.
#[derive(Debug)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) cells: Vec<Cell>,
    /// Stretches of x to be shaded: the warm-up.
    pub(crate) shaded: Vec<(f64, f64)>,
}

/// One cell: from where to where it goes on either axis, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) count: u64,
}

/// Steps from the lightest to the darkest.
const LEVELS: u8 = 8;

impl HeatMap {
    /// Whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.count == 0)
    }

    /// A `figure` element.
    pub(crate) fn html(&self) -> String {
        figure(&self.title, std::iter::empty(), &self.svg())
    }

    /// The drawing alone; the cells of one level are one path.
    pub(crate) fn svg(&self) -> String {
        let ends = |side: fn(&Cell) -> (f64, f64)| {
            self.cells
                .iter()
                .flat_map(move |cell| <[f64; 2]>::from(side(cell)))
        };
        let x = self.x.map(ends(|cell| cell.x), (LEFT, WIDTH - RIGHT));
        let y = self.y.map(ends(|cell| cell.y), (HEIGHT - BOTTOM, TOP));
        let most = self.cells.iter().map(|cell| cell.count).max().unwrap_or(0);
        let mut levels: BTreeMap<u8, String> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| cell.count > 0) {
            let (left, right) = (x.place(cell.x.0), x.place(cell.x.1));
            let (bottom, top) = (y.place(cell.y.0), y.place(cell.y.1));
            let path = levels.entry(level(cell.count, most)).or_default();
            write!(
                path,
                "M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z"
            )
            .expect(IN_MEMORY);
        }
        let mut svg = opening(&self.title);
        shade(&mut svg, &self.shaded, &x, HEIGHT - BOTTOM);
        grid(&mut svg, &x, TIME, &y);
        for (level, path) in levels {
            write!(svg, "<path class=\"heat h{level}\" d=\"{path}\"/>").expect(IN_MEMORY);
        }
        svg.push_str("</svg>");
        svg
    }
}

/// From 1 to [`LEVELS`], by powers: what is rare is still seen beside what is common.
fn level(count: u64, most: u64) -> u8 {
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    (1..LEVELS)
        .find(|level| share <= f64::from(*level) / f64::from(LEVELS))
        .unwrap_or(LEVELS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_the_darker_and_one_value_is_seen() {
        assert_eq!(level(1, 1_000_000), 1);
        assert_eq!(level(1_000_000, 1_000_000), LEVELS);
        assert_eq!(level(1, 1), LEVELS);
        let levels: Vec<u8> = (0..7)
            .map(|power| level(10_u64.pow(power), 1_000_000))
            .collect();
        assert!(levels.is_sorted_by(|a, b| a < b), "{levels:?}");
    }
}
