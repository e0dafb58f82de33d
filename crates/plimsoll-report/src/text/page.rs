//! A page of text: sections of aligned columns, wrapped sentences.

use super::WIDTH;
use super::style::{Emphasis, Style};

/// Grows downwards; a section is a heading and lines indented by two.
pub(super) struct Page {
    text: String,
    style: Style,
}

impl Page {
    pub(super) fn new(style: Style) -> Self {
        Self {
            text: String::new(),
            style,
        }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// An empty line, then the title and a faint remark behind it.
    pub(super) fn heading(&mut self, title: &str, remark: &str) {
        self.text.push('\n');
        let columns = WIDTH.saturating_sub(width(title) + 2);
        let title = self.style.apply(Emphasis::Strong, title);
        if remark.is_empty() {
            self.line(&title);
        } else {
            let remark = shortened(remark, columns);
            let remark = self.style.apply(Emphasis::Faint, &remark);
            self.line(&format!("{title}  {remark}"));
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Rows of a label and a text, the texts aligned and wrapped.
    pub(super) fn pairs(&mut self, rows: &[(&str, String)]) {
        let label_width = rows.iter().map(|(label, _)| width(label)).max();
        let label_width = label_width.unwrap_or(0).max(LABEL);
        for (label, text) in rows {
            let mut label = *label;
            for part in wrapped(text, WIDTH - label_width - 4) {
                self.line(&format!("  {}  {part}", padded_right(label, label_width)));
                label = "";
            }
        }
    }

    /// Columns, each as wide as its widest cell: the first aligned left, the others right. Where they are too wide
    /// together, the cells of the first are shortened.
    pub(super) fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
                if column == 0 {
                    widest.max(LABEL)
                } else {
                    widest
                }
            })
            .collect();
        let excess = widths.iter().map(|width| width + 2).sum::<usize>();
        let excess = excess.saturating_sub(WIDTH);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(excess).max(NARROWEST);
        }
        for row in rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line.push_str("  ");
                if column == 0 {
                    line.push_str(&padded_right(&shortened(cell, *width), *width));
                } else {
                    line.push_str(&padded_left(cell, *width));
                }
            }
            self.line(&line);
        }
    }

    /// Rows of a label, a number and a remark; numbers are aligned right.
    pub(super) fn remarks(&mut self, rows: &[(&str, String, &str)]) {
        let widest = rows.iter().map(|(_, number, _)| width(number)).max();
        for (label, number, remark) in rows {
            let number = padded_left(number, widest.unwrap_or(0));
            let remark = match *remark {
                "" => String::new(),
                remark => self.style.apply(Emphasis::Faint, remark),
            };
            self.line(&format!(
                "  {}  {number}  {remark}",
                padded_right(label, LABEL)
            ));
        }
    }

    /// A sentence over the whole width.
    pub(super) fn wrapped(&mut self, emphasis: Emphasis, text: &str) {
        for part in wrapped(text, WIDTH) {
            let line = self.style.apply(emphasis, &part);
            self.line(&line);
        }
    }

    /// A sentence behind a mark, wrapped below itself.
    pub(super) fn marked(&mut self, mark: &str, emphasis: Emphasis, text: &str) {
        let mut mark = mark.to_owned();
        for part in wrapped(text, WIDTH - width(&mark) - 1) {
            let line = self.style.apply(emphasis, &format!("{mark} {part}"));
            self.line(&line);
            mark = " ".repeat(width(&mark));
        }
    }

    /// Columns of the labels before cells and rows.
    pub(super) const LABEL: usize = 11;

    /// A label and short figures behind it, on further lines where they do not fit; escape
    /// sequences in them have no width.
    pub(super) fn cells(&mut self, label: &str, cells: &[String]) {
        let mut used = Self::LABEL.max(width(label) + 1);
        let mut line = padded_right(label, used);
        let mut is_first = true;
        for cell in cells {
            let columns = visible_width(cell);
            if !is_first && used + 3 + columns > WIDTH {
                self.line(&line);
                line = " ".repeat(Self::LABEL);
                used = Self::LABEL;
                is_first = true;
            }
            if !is_first {
                line.push_str("   ");
                used += 3;
            }
            line.push_str(cell);
            used += columns;
            is_first = false;
        }
        self.line(&line);
    }

    /// A label and a sentence behind it, wrapped below itself.
    pub(super) fn row(&mut self, label: &str, emphasis: Emphasis, text: &str) {
        let mut label = label;
        let indent = text.len() - text.trim_start().len();
        for part in wrapped(text.trim_start(), WIDTH - Self::LABEL - indent) {
            let part = self.style.apply(emphasis, &part);
            let lead = padded_right(label, Self::LABEL + indent);
            self.line(&format!("{lead}{part}"));
            label = "";
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// The first column of every section is at least so wide, so that sections align with each other.
const LABEL: usize = 15;

/// A shorter name in the first column of a table is not recognised.
const NARROWEST: usize = 8;

/// Characters; every one that the summary uses takes one column.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Characters that are not part of an escape sequence for emphasis.
fn visible_width(text: &str) -> usize {
    let mut parts = text.split('\x1b');
    let first = parts.next().map_or(0, width);
    let rest = parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| width(rest)));
    first + rest.sum::<usize>()
}

pub(super) fn padded_left(text: &str, to: usize) -> String {
    format!("{}{text}", " ".repeat(to.saturating_sub(width(text))))
}

pub(super) fn padded_right(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

/// At most `columns` characters, the last one an ellipsis if something was left out.
///
/// Some texts come from the other end of the wire: what could steer a terminal is replaced.
pub(super) fn shortened(text: &str, columns: usize) -> String {
    let harmless = text.chars().map(|c| if c.is_control() { '·' } else { c });
    if width(text) <= columns {
        return harmless.collect();
    }
    harmless
        .take(columns.saturating_sub(1))
        .chain(std::iter::once('…'))
        .collect()
}

/// Lines of at most `columns` characters, broken at spaces; a longer word is shortened.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let word = shortened(word, columns);
        if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_spaces_and_long_words_are_shortened() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 6), ["incom…"]);
        assert_eq!(wrapped("", 6), [""]);
        assert_eq!(shortened("µs µs", 5), "µs µs");
        assert_eq!(shortened("a\x1b[31m\nb", 9), "a·[31m·b");
    }
}
