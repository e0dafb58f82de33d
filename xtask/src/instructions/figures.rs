//! bench/instructions/figures.toml: the recorded counts, by profile and case.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{Failure, Outcome};

/// Instructions per request, by profile and case.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Figures(BTreeMap<String, BTreeMap<String, u64>>);

const HEADING: &str = "# Instructions in user space per request, by profile. Written by `cargo xtask instructions --write`.\n";

impl Figures {
    /// None if there is no file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let parsed = toml::from_str(&text);
        Ok(Self(
            parsed.map_err(|error| format!("{}: {error}", path.display()))?,
        ))
    }

    pub(super) fn get(&self, profile: &str, case: &str) -> Option<u64> {
        self.0.get(profile)?.get(case).copied()
    }

    pub(super) fn set(&mut self, profile: &str, case: &str, count: u64) {
        let cases = self.0.entry(profile.to_owned()).or_default();
        cases.insert(case.to_owned(), count);
    }

    pub(super) fn write(&self, path: &Path) -> Outcome {
        fs::write(path, self.text()).map_err(|error| error.to_string().into())
    }

    fn text(&self) -> String {
        let mut text = HEADING.to_owned();
        for (profile, cases) in &self.0 {
            writeln!(text, "\n[{profile}]").ok();
            for (case, count) in cases {
                writeln!(text, "{case} = {count}").ok();
            }
        }
        text
    }
}

/// A line of the table.
pub(super) fn line(name: &str, count: u64, known: Option<u64>) -> String {
    let mut line = format!("{name:<24}{count:>12}");
    if let Some(known) = known {
        write!(line, "  {:+.1} %", super::growth(known, count)).ok();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_were_written() {
        let mut figures = Figures::default();
        figures.set("release", "load", 7_100);
        figures.set("dist", "load", 6_000);
        figures.set("dist", "gateway", 33_000);
        let text = figures.text();
        assert_eq!(
            text.strip_prefix(HEADING),
            Some("\n[dist]\ngateway = 33000\nload = 6000\n\n[release]\nload = 7100\n")
        );
        assert_eq!(Figures(toml::from_str(&text).unwrap()), figures);
    }

    #[test]
    fn a_line_has_the_change() {
        assert_eq!(
            line("load", 7_100, None),
            "load                            7100"
        );
        assert_eq!(
            line("load", 7_100, Some(7_000)),
            "load                            7100  +1.4 %"
        );
    }
}
