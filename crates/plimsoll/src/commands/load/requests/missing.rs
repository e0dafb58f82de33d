//! Variables of requests that have no value, each reported once.

use plimsoll_formats::MissingVariable;
use plimsoll_load::Feeder;

use crate::flags::Problems;
use crate::problem::Problem;

/// The variables without values so far.
#[derive(Debug, Default)]
pub(super) struct MissingVariables(Vec<Missed>);

#[derive(Debug)]
struct Missed {
    variable: MissingVariable,
    first: String,
    /// The place that needed it last; a request may need it in several of its parts.
    last: String,
    /// Places behind the first one.
    more: usize,
}

impl MissingVariables {
    /// Notes those of one place: a request, or a flag.
    pub(super) fn add(&mut self, place: &str, missing: Vec<MissingVariable>) {
        for variable in missing {
            match self.0.iter_mut().find(|it| it.variable == variable) {
                Some(known) if known.last == place => {}
                Some(known) => {
                    place.clone_into(&mut known.last);
                    known.more += 1;
                }
                None => self.0.push(Missed {
                    variable,
                    first: place.to_owned(),
                    last: place.to_owned(),
                    more: 0,
                }),
            }
        }
    }

    /// Reports each with its first place.
    pub(super) fn report(self, feeders: &[Feeder], problems: &mut Problems) {
        for missed in self.0 {
            let (variable, more) = (&missed.variable, missed.more);
            let message = match more {
                0 => variable.to_string(),
                1 => format!("{variable}, here and in another place"),
                _ => format!("{variable}, here and in {more} other places"),
            };
            let problem = Problem::with(&missed.first, message);
            problems.push(problem.hint(hint(variable, feeders)));
        }
    }
}

fn hint(missing: &MissingVariable, feeders: &[Feeder]) -> String {
    match missing {
        MissingVariable::TooLong(_) => {
            "values that contain several others multiply: give one of them by `--var NAME=VALUE`"
                .to_owned()
        }
        MissingVariable::Circular(name) => format!("give it by `--var {name}=VALUE`"),
        MissingVariable::Unknown(name) if feeders.is_empty() => {
            format!("give it by `--var {name}=VALUE`, or rows with such a column by --feeder")
        }
        MissingVariable::Unknown(name) => {
            let columns: Vec<&str> = feeders
                .iter()
                .flat_map(|feeder| feeder.table.columns())
                .map(String::as_str)
                .collect();
            format!(
                "give it by `--var {name}=VALUE`; the feeders have {}",
                columns.join(", ")
            )
        }
    }
}
