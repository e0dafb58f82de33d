//! The comparisons as tables: on the terminal, and in docs/conformance.md.

use std::fs;
use std::path::Path;

use super::judge::{Row, Verdict};
use super::setup::Setup;
use crate::Outcome;

/// Prints the comparisons of one set-up.
///
/// - `all`: those that hold too.
pub(super) fn print(rows: &[Row], all: bool) {
    let shown = rows
        .iter()
        .filter(|row| all || row.verdict >= Verdict::Marked);
    for row in shown {
        let difference = row
            .difference
            .map_or(String::new(), |difference| format!("{difference:+.1} %"));
        println!(
            "  {:<24} {:>16} {:>14} {difference:>10}  {:<7} {}",
            row.figure, row.expected, row.printed, row.verdict, row.mark
        );
    }
    println!("  {}", Line::from_rows(rows).shown());
}

/// What all set-ups came to.
#[derive(Default)]
pub(super) struct Table {
    lines: Vec<(Setup, Result<Line, String>)>,
    left_out: usize,
}

/// What one set-up came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Line {
    equal: usize,
    within: usize,
    marked: usize,
    wrong: usize,
}

impl Line {
    fn from_rows(rows: &[Row]) -> Self {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        Self {
            equal: count(Verdict::Equal),
            within: count(Verdict::Within),
            marked: count(Verdict::Marked),
            wrong: count(Verdict::Wrong),
        }
    }

    fn shown(self) -> String {
        let Self {
            equal,
            within,
            marked,
            wrong,
        } = self;
        format!("{equal} equal, {within} within 2 %, {marked} marked, {wrong} wrong")
    }

    fn add(self, other: Self) -> Self {
        Self {
            equal: self.equal + other.equal,
            within: self.within + other.within,
            marked: self.marked + other.marked,
            wrong: self.wrong + other.wrong,
        }
    }
}

impl Table {
    pub(super) fn add(&mut self, setup: &Setup, rows: &[Row]) {
        self.lines.push((*setup, Ok(Line::from_rows(rows))));
    }

    pub(super) fn leave_out(&mut self, setup: &Setup, why: &str) {
        self.left_out += 1;
        self.lines.push((*setup, Err(format!("not run: {why}"))));
    }

    /// A set-up that gave no figures to compare.
    pub(super) fn fail(&mut self, setup: &Setup) {
        let line = Line {
            wrong: 1,
            ..Line::default()
        };
        self.lines.push((*setup, Ok(line)));
    }

    fn sum(&self) -> Line {
        let lines = self.lines.iter().filter_map(|(_, line)| line.as_ref().ok());
        lines.fold(Line::default(), |sum, line| sum.add(*line))
    }

    pub(super) fn total(&self) -> String {
        format!(
            "{} set-ups, {} not run: {}",
            self.lines.len(),
            self.left_out,
            self.sum().shown()
        )
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.sum().wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} figures are wrong and not marked").into()),
        }
    }

    /// Replaces the table between two marks of the page, whose other text stays.
    pub(super) fn write(&self, root: &Path) -> Outcome {
        const BEGIN: &str = "<!-- gauntlet: begin -->\n";
        const END: &str = "<!-- gauntlet: end -->";
        let path = root.join("docs/conformance.md");
        let page = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let missing = "docs/conformance.md lacks the marks of the gauntlet's table";
        let (before, rest) = page.split_once(BEGIN).ok_or(missing)?;
        let (_, after) = rest.split_once(END).ok_or(missing)?;
        let text = format!("{before}{BEGIN}{}{END}{after}", self.markdown());
        fs::write(&path, text).map_err(|error| error.to_string().into())
    }

    fn markdown(&self) -> String {
        let mut text =
            "| set-up | what is hostile | equal | within 2 % | marked | wrong |\n|---|---|---|---|---|---|\n".to_owned();
        for (setup, line) in &self.lines {
            let figures = match line {
                Ok(line) => format!(
                    "{} | {} | {} | {}",
                    line.equal, line.within, line.marked, line.wrong
                ),
                Err(why) => format!("{why} | | |"),
            };
            text.extend([
                "| ",
                setup.name,
                " | ",
                setup.about,
                " | ",
                &figures,
                " |\n",
            ]);
        }
        let Line {
            equal,
            within,
            marked,
            wrong,
        } = self.sum();
        text + &format!("| all | | {equal} | {within} | {marked} | {wrong} |\n")
    }
}
