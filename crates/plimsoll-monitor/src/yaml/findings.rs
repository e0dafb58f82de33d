//! What was found wrong or doubtful in a file of YAML, and how it is reported: once for each cause.
//!
//! A variable that is not set empties many values, and an anchor repeats one value many times. The cause is reported, with the
//! first place that suffers from it and the number of others.

use std::collections::HashMap;

use plimsoll_model::document::ConfigProblem;

use crate::yaml::{UnsetVariable, Warning};

/// A problem, and where its value was written.
#[derive(Debug, Clone)]
struct Found {
    problem: ConfigProblem,
    written: (usize, usize),
}

/// Errors and doubts so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: Vec<Found>,
    /// With the line of each.
    warnings: Vec<(Warning, usize)>,
}

impl Findings {
    /// - `written`: the line and column of the value, which is elsewhere if it came by an anchor.
    pub(crate) fn add_problem(&mut self, problem: ConfigProblem, written: (usize, usize)) {
        self.problems.push(Found { problem, written });
    }

    pub(crate) fn add_warning(&mut self, warning: Warning, line: usize) {
        self.warnings.push((warning, line));
    }

    /// The problems by their places, and the warnings, each cause once.
    ///
    /// - `unset`: variables of the text that are not set.
    pub(crate) fn into_report(self, unset: &[UnsetVariable]) -> (Vec<ConfigProblem>, Vec<Warning>) {
        let mut of_line: HashMap<usize, Vec<&str>> = HashMap::new();
        for variable in unset {
            let names = of_line.entry(variable.line).or_default();
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
        }
        let mut found = self.problems;
        found.sort_by_key(|it| (it.problem.line, it.problem.column));
        let mut causes: HashMap<String, usize> = HashMap::new();
        let mut problems: Vec<(ConfigProblem, usize)> = Vec::new();
        for Found {
            mut problem,
            written,
        } in found
        {
            let names = of_line
                .get(&written.0)
                .or_else(|| of_line.get(&problem.line));
            let is_by_anchor = written != (problem.line, problem.column);
            let cause = match names {
                Some(names) => {
                    problem.message = format!("{}, since {}", problem.message, not_set(names));
                    problem.hint = Some("set it in the environment, or write the value".to_owned());
                    Some(names.join(" "))
                }
                None if is_by_anchor => {
                    let (line, column) = written;
                    Some(format!("{line}:{column} {}", problem.message))
                }
                None => None,
            };
            let Some(cause) = cause else {
                problems.push((problem, 0));
                continue;
            };
            if let Some(index) = causes.get(&cause) {
                problems[*index].1 += 1;
            } else {
                causes.insert(cause, problems.len());
                problems.push((problem, 0));
            }
        }
        let problems = problems.into_iter().map(|(mut problem, others)| {
            if others > 0 {
                problem.message =
                    format!("{} ({others} more for the same reason)", problem.message);
            }
            problem
        });
        let problems: Vec<_> = problems.collect();
        let mut warnings: Vec<Warning> = Vec::new();
        let mut mentioned: Vec<&str> = Vec::new();
        for (mut warning, line) in self.warnings {
            if let Some(names) = of_line.get(&line) {
                warning.message = format!("{}, since {}", warning.message, not_set(names));
                mentioned.extend(names);
            }
            warnings.push(warning);
        }
        for variable in unset {
            let is_said = causes.keys().any(|cause| {
                let mut names = cause.split(' ');
                names.any(|name| name == variable.name)
            });
            if !is_said && !mentioned.contains(&variable.name.as_str()) {
                mentioned.push(&variable.name);
                warnings.push(Warning {
                    place: format!("line {}", variable.line),
                    message: format!("{}, and stands for nothing", not_set(&[&variable.name])),
                });
            }
        }
        (problems, warnings)
    }
}

fn not_set(names: &[&str]) -> String {
    match names {
        [name] => format!("the variable `{name}` is not set"),
        names => format!("the variables `{}` are not set", names.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: usize, key: &str, message: &str) -> ConfigProblem {
        ConfigProblem {
            line,
            column: 5,
            key: key.to_owned(),
            message: message.to_owned(),
            hint: None,
        }
    }

    fn unset(name: &str, line: usize) -> UnsetVariable {
        UnsetVariable {
            name: name.to_owned(),
            line,
        }
    }

    #[test]
    fn each_cause_is_reported_once_with_the_number_of_places() {
        let mut findings = Findings::default();
        for line in [7, 3, 12] {
            let problem = problem(line, &format!("endpoints[{line}].url"), "`` has no scheme");
            findings.add_problem(problem, (line, 5));
        }
        // By an anchor that was written in line 1.
        for line in 20..170 {
            findings.add_problem(problem(line, "client", "is wrong"), (1, 5));
        }
        findings.add_problem(problem(200, "a", "is wrong"), (200, 5));
        findings.add_problem(problem(201, "a", "is wrong"), (201, 5));
        let unset = [
            unset("HOST", 3),
            unset("HOST", 7),
            unset("OTHER", 12),
            unset("FINE", 13),
            unset("FINE", 14),
        ];
        let (problems, warnings) = findings.into_report(&unset);
        let found: Vec<_> = problems.iter().map(|it| (it.line, &*it.message)).collect();
        assert_eq!(
            found,
            [
                (
                    3,
                    "`` has no scheme, since the variable `HOST` is not set (1 more for the same reason)"
                ),
                (
                    12,
                    "`` has no scheme, since the variable `OTHER` is not set"
                ),
                (20, "is wrong (149 more for the same reason)"),
                (200, "is wrong"),
                (201, "is wrong"),
            ]
        );
        let found: Vec<_> = warnings.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(
            found,
            ["the variable `FINE` is not set, and stands for nothing"]
        );
    }
}
