//! Wording that the texts of all experiments share: their format, wrapped sentences, the machine.

use std::fmt::{self, Write};

use plimsoll_model::Conditions;
use plimsoll_report::text::{Style, WIDTH};

/// How wide the text of an experiment may be, and whether it may have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFormat {
    /// Columns of the terminal; at least [`LEAST_COLUMNS`](Self::LEAST_COLUMNS) are used.
    pub columns: usize,
    /// Colours of verdicts.
    pub style: Style,
}

impl TextFormat {
    /// No figure is left out on a narrower terminal.
    pub const LEAST_COLUMNS: usize = 60;

    /// Longer sentences are hard to read.
    const MOST_OF_SENTENCE: usize = 100;

    /// The columns that a table may use.
    pub(crate) fn columns(self) -> usize {
        self.columns.max(Self::LEAST_COLUMNS)
    }

    /// The columns that a sentence may use.
    fn of_sentence(self) -> usize {
        self.columns().min(Self::MOST_OF_SENTENCE)
    }
}

/// That of a file: 80 columns, no colours.
impl Default for TextFormat {
    fn default() -> Self {
        Self {
            columns: WIDTH,
            style: Style::Plain,
        }
    }
}

/// Which machine it was.
pub(crate) fn write_machine(
    out: &mut String,
    format: TextFormat,
    conditions: &Conditions,
) -> fmt::Result {
    let unknown = || "unknown".to_owned();
    let cores = |cores: &[usize]| {
        if cores.is_empty() {
            "any core".to_owned()
        } else {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            format!("core {}", cores.join(","))
        }
    };
    let machine = format!(
        "{}, {} cores, {}",
        conditions.cpu_model.clone().unwrap_or_else(unknown),
        conditions.cores,
        conditions.kernel.clone().unwrap_or_else(unknown),
    );
    write_wrapped(out, format, &machine)?;
    let pinning = format!(
        "generator on {}, server on {}, load before {}",
        cores(&conditions.pinning.generator),
        cores(&conditions.pinning.target),
        conditions
            .load_before
            .map_or_else(unknown, |load| format!("{:.2}", load.one)),
    );
    write_wrapped(out, format, &pinning)
}

/// A sentence in lines of at most the columns of `format`; those after the first are indented like it, or
/// by two.
pub(crate) fn write_wrapped(out: &mut String, format: TextFormat, text: &str) -> fmt::Result {
    let columns = format.of_sentence();
    let first = text.trim_start();
    let indented = text.chars().count() - first.chars().count();
    let indent = " ".repeat(indented.max(2));
    let mut column = indented;
    write!(out, "{}", " ".repeat(indented))?;
    let mut is_first = true;
    for word in first.split(' ') {
        let length = word.chars().count();
        if !is_first && column + 1 + length > columns {
            write!(out, "\n{indent}{word}")?;
            column = indent.len() + length;
        } else if is_first {
            write!(out, "{word}")?;
            column += length;
        } else {
            write!(out, " {word}")?;
            column += 1 + length;
        }
        is_first = false;
    }
    writeln!(out)
}

/// A label and a text beside it, wrapped below itself.
pub(crate) fn write_labelled(
    out: &mut String,
    format: TextFormat,
    label: &str,
    text: &str,
) -> fmt::Result {
    let mut wrapped = String::new();
    write_wrapped(&mut wrapped, format, &format!("{:12}{text}", ""))?;
    // The label takes the place of the first spaces.
    writeln!(out, "{label:<12}{}", wrapped.trim())
}

/// A sentence up to its first figure, by which it is of the same kind as one that goes on otherwise.
pub(crate) fn without_details(sentence: &str) -> &str {
    let end = sentence.find(|c: char| c.is_ascii_digit());
    sentence.split_at(end.unwrap_or(sentence.len())).0
}

/// A sentence without its figures, by which it is the same as one with others.
pub(crate) fn without_figures(sentence: &str) -> String {
    sentence.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_below_themselves() {
        let wrapped = |text: &str| {
            let mut out = String::new();
            write_wrapped(&mut out, TextFormat::default(), text).unwrap();
            out
        };
        let word = "abcdefghi ".repeat(9);
        assert_eq!(
            wrapped(word.trim()),
            format!("{}\n  abcdefghi\n", "abcdefghi ".repeat(8).trim())
        );
        assert_eq!(
            wrapped(&format!("    {}", word.trim())),
            format!(
                "    {}\n    abcdefghi abcdefghi\n",
                "abcdefghi ".repeat(7).trim()
            )
        );
        assert_eq!(wrapped("one"), "one\n");
    }
}
