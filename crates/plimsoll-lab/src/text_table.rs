//! A table of text that fits the terminal: what it can spare is left out first.

use std::fmt::{self, Write as _};

use plimsoll_report::text::Emphasis;

use crate::wording::TextFormat;

/// Rows below headings, each column as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct TextTable<'a> {
    /// A heading for each column.
    pub(crate) headings: Vec<String>,
    /// As many cells as there are headings, in each row.
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether the first column holds names: those are aligned left, and shortened where nothing else helps.
    pub(crate) has_names: bool,
    /// Columns that may be left out, the first one first.
    pub(crate) dispensable: &'a [usize],
    /// Cells that stand out, by row and column.
    pub(crate) emphasised: &'a [(usize, usize, Emphasis)],
}

/// Where cells stand.
#[derive(Debug)]
struct Layout {
    /// Columns that are not left out.
    shown: Vec<usize>,
    /// Characters of each column.
    widths: Vec<usize>,
    /// Spaces between columns.
    gap: usize,
}

/// Characters of a name that are kept in any case.
const LEAST_OF_NAME: usize = 8;

impl TextTable<'_> {
    /// Writes the table, at most as wide as `format` permits as far as [`dispensable`](Self::dispensable) columns and names
    /// permit.
    pub(crate) fn write(&self, out: &mut String, format: TextFormat) -> fmt::Result {
        let all: Vec<usize> = (0..self.headings.len()).collect();
        let mut widths: Vec<usize> = all.iter().map(|&column| self.width(column)).collect();
        let (shown, gap) = self.layout(&widths, all, format.columns());
        if self.has_names
            && let Some((name, others)) = shown.split_first()
        {
            let others: usize = others.iter().map(|&column| widths[column] + gap).sum();
            let room = format.columns().saturating_sub(others).max(LEAST_OF_NAME);
            widths[*name] = widths[*name].min(room);
        }
        let layout = Layout { shown, widths, gap };
        self.write_row(out, &self.headings, &layout, &|_, text| text)?;
        for (number, row) in self.rows.iter().enumerate() {
            let style = |column: usize, text: String| {
                let mut emphasised = self.emphasised.iter();
                match emphasised.find(|(row, at, _)| (*row, *at) == (number, column)) {
                    Some((.., emphasis)) => format.style.apply(*emphasis, &text),
                    None => text,
                }
            };
            self.write_row(out, row, &layout, &style)?;
        }
        Ok(())
    }

    /// The columns to show, and the spaces between them.
    fn layout(
        &self,
        widths: &[usize],
        mut shown: Vec<usize>,
        columns: usize,
    ) -> (Vec<usize>, usize) {
        let fits = |shown: &[usize], gap: usize| {
            let wide: usize = shown.iter().map(|&column| widths[column]).sum();
            wide + gap * shown.len().saturating_sub(1) <= columns
        };
        for spared in self.dispensable.iter().map(Some).chain([None]) {
            if let Some(gap) = [2, 1].into_iter().find(|gap| fits(&shown, *gap)) {
                return (shown, gap);
            }
            shown.retain(|column| Some(column) != spared);
        }
        (shown, 1)
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let cells = cells.chain([&self.headings[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn write_row(
        &self,
        out: &mut String,
        row: &[String],
        layout: &Layout,
        style: &dyn Fn(usize, String) -> String,
    ) -> fmt::Result {
        let mut line = String::new();
        for (place, &column) in layout.shown.iter().enumerate() {
            let (cell, width) = (&row[column], layout.widths[column]);
            if place > 0 {
                line.push_str(&" ".repeat(layout.gap));
            }
            let padded = if column == 0 && self.has_names {
                format!("{:<width$}", shortened(cell, width))
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&style(column, padded));
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// The beginning of a text that is too long.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(columns: usize) -> String {
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let table = TextTable {
            headings: words(&["", "CPU µs/req", "[trials]", "requests per second", "p99"]),
            rows: vec![
                words(&[
                    "A a server with a long name",
                    "4.61",
                    "[4.5–4.7]",
                    "131,022",
                    "480 µs",
                ]),
                words(&["B", "5.02", "[5.0–5.1]", "120,000", "1.5 ms"]),
            ],
            has_names: true,
            dispensable: &[2],
            emphasised: &[],
        };
        let mut text = String::new();
        let format = TextFormat {
            columns,
            ..TextFormat::default()
        };
        table.write(&mut text, format).unwrap();
        text
    }

    #[test]
    fn what_can_be_spared_is_left_out_before_a_name_is_cut() {
        let headings = |columns| written(columns).lines().next().unwrap().to_owned();
        assert!(headings(120).contains("[trials]"));
        assert!(written(120).contains("A a server with a long name "));
        assert!(!headings(70).contains("[trials]"));
        assert!(written(70).contains("A a server with a long name "));
        for columns in [60, 70, 80, 120] {
            for line in written(columns).lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
                assert!(!line.ends_with(' '));
            }
            assert!(written(columns).contains("1.5 ms"));
        }
        let shortened = written(60).contains("A a server with a lon…");
        assert!(shortened, "{}", written(60));
    }
}
