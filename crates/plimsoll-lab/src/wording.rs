//! Wording that the texts of all experiments share: wrapped sentences, the machine.

use std::fmt::{self, Write};

use plimsoll_model::Conditions;

/// Widest line.
pub(crate) const WIDTH: usize = 90;

/// Which machine it was, in two lines.
pub(crate) fn write_machine(out: &mut String, conditions: &Conditions) -> fmt::Result {
    let unknown = || "unknown".to_owned();
    let cores = |cores: &[usize]| {
        if cores.is_empty() {
            "any core".to_owned()
        } else {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            format!("core {}", cores.join(","))
        }
    };
    writeln!(
        out,
        "{}, {} cores, {}",
        conditions.cpu_model.clone().unwrap_or_else(unknown),
        conditions.cores,
        conditions.kernel.clone().unwrap_or_else(unknown),
    )?;
    writeln!(
        out,
        "generator on {}, server on {}, load before {}",
        cores(&conditions.pinning.generator),
        cores(&conditions.pinning.target),
        conditions
            .load_before
            .map_or_else(unknown, |load| format!("{:.2}", load.one)),
    )
}

/// A sentence in lines of at most [`WIDTH`] columns; those after the first are indented like it, or
/// by two.
pub(crate) fn write_wrapped(out: &mut String, text: &str) -> fmt::Result {
    let first = text.trim_start();
    let indented = text.chars().count() - first.chars().count();
    let indent = " ".repeat(indented.max(2));
    let mut column = indented;
    write!(out, "{}", " ".repeat(indented))?;
    let mut is_first = true;
    for word in first.split(' ') {
        let length = word.chars().count();
        if !is_first && column + 1 + length > WIDTH {
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
            write_wrapped(&mut out, text).unwrap();
            out
        };
        let word = "abcdefghi ".repeat(10);
        assert_eq!(
            wrapped(word.trim()),
            format!("{}\n  abcdefghi\n", "abcdefghi ".repeat(9).trim())
        );
        assert_eq!(
            wrapped(&format!("    {}", word.trim())),
            format!(
                "    {}\n    abcdefghi abcdefghi\n",
                "abcdefghi ".repeat(8).trim()
            )
        );
        assert_eq!(wrapped("one"), "one\n");
    }
}
