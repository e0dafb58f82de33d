//! What each function costs per request, in two profiles of runs that counted their requests.

use std::collections::BTreeMap;

use plimsoll_model::three_figures;

use crate::text_table::TextTable;
use crate::wording::TextFormat;

/// A run with a profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfiledRun<'a> {
    /// Its name in the table.
    pub name: &'a str,
    /// The stacks, as in `profile.folded`.
    pub folded: &'a str,
    /// Processor time of the target per request, in microseconds.
    pub cpu_us_per_request: f64,
}

/// What functions cost, in two runs.
#[derive(Debug, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Empty over the names of functions, then the names of the runs, and the change.
    pub head: Vec<String>,
    /// All functions together, then each of those that changed most.
    pub rows: Vec<Vec<String>>,
}

impl FunctionCosts {
    /// What the figures are.
    pub const TITLE: &str = "CPU µs per request, by function";

    /// As a table for a terminal; ends with a line break.
    pub fn to_text(self, format: TextFormat) -> String {
        let table = TextTable {
            headings: self.head,
            rows: self.rows,
            has_names: true,
            dispensable: &[],
            emphasised: &[],
        };
        let mut text = format!("{}\n", Self::TITLE);
        table.write(&mut text, format).expect(IN_MEMORY);
        text
    }
}

/// The functions whose own processor time per request differs most, `before` and `after`.
///
/// The time of a request is divided among functions by their samples.
///
/// - `most`: functions that are listed at most.
pub fn difference(before: ProfiledRun<'_>, after: ProfiledRun<'_>, most: usize) -> FunctionCosts {
    let (old, new) = (own(before), own(after));
    let mut functions: Vec<(&str, f64, f64)> = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)))
        .map(|name| {
            let cost = |costs: &BTreeMap<&str, f64>| costs.get(name).copied().unwrap_or(0.0);
            (*name, cost(&old), cost(&new))
        })
        .collect();
    functions.sort_by(|one, other| {
        let change = |(_, before, after): &(&str, f64, f64)| (after - before).abs();
        change(other).total_cmp(&change(one))
    });
    let row = |name: &str, before: f64, after: f64| {
        vec![
            name.to_owned(),
            three_figures(before),
            three_figures(after),
            format!(
                "{}{}",
                if after < before { "-" } else { "+" },
                three_figures((after - before).abs())
            ),
        ]
    };
    let all = row("all", before.cpu_us_per_request, after.cpu_us_per_request);
    let functions = functions.into_iter().take(most);
    FunctionCosts {
        head: ["", before.name, after.name, "change"]
            .map(str::to_owned)
            .to_vec(),
        rows: std::iter::once(all)
            .chain(functions.map(|(name, before, after)| row(name, before, after)))
            .collect(),
    }
}

/// Own processor time per request of each function, in microseconds.
fn own(run: ProfiledRun<'_>) -> BTreeMap<&str, f64> {
    let mut samples: BTreeMap<&str, f64> = BTreeMap::new();
    for line in run.folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        // The first part is the thread.
        let function = stack.rsplit_once(';').map(|(_, function)| function);
        if let (Some(function), Ok(count)) = (function, count.parse::<f64>()) {
            *samples.entry(function).or_default() += count;
        }
    }
    let all: f64 = samples.values().sum();
    for cost in samples.values_mut() {
        *cost *= run.cpu_us_per_request / all.max(1.0);
    }
    samples
}

const IN_MEMORY: &str = "a string takes all that is written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_listed_by_the_change_of_their_cost() {
        let run = |name, folded, cpu_us_per_request| ProfiledRun {
            name,
            folded,
            cpu_us_per_request,
        };
        let before = run(
            "before",
            "t;main;parse 50\nt;main;send 50\nnot a line\n",
            10.0,
        );
        let after = run(
            "after",
            "t;main;parse 60\nt;main;send 20\nt;main;parse;copy 20\n",
            20.0,
        );
        let text = difference(before, after, 2).to_text(TextFormat::default());
        let expected = "CPU µs per request, by function\n       before  after  change\nall      10.0   20.0   +10.0\n\
                        parse    5.00   12.0   +7.00\ncopy     0.00   4.00   +4.00\n";
        assert_eq!(text, expected);
        let nothing = difference(run("a", "", 1.0), run("b", "", 2.0), 9);
        let nothing = nothing.to_text(TextFormat::default());
        assert!(nothing.ends_with("all  1.00  2.00   +1.00\n"), "{nothing}");
    }
}
