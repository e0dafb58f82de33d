//! Requests that need values of the responses to earlier ones.

use std::fmt;
use std::sync::Arc;

use plimsoll_client::check::{ConditionError, Extraction};
use plimsoll_formats::{Part, Place, ResponsePart, ResponseValue, Template};
use plimsoll_load::KeptValue;

use super::DescribedRequest;
use crate::flags::Problems;
use crate::problem::Problem;

/// Variables that the responses of a file give values to, unless the command line does.
pub(super) type SetVariables = Arc<[String]>;

/// Finds the values that requests need of earlier ones, and has those keep them.
///
/// Returns the values, as they are written in templates.
pub(super) fn link(requests: &mut [DescribedRequest], problems: &mut Problems) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for position in 0..requests.len() {
        let needed: Vec<Needed> = requests[position].needs().collect();
        for needed in needed {
            let written = needed.to_string();
            if values.contains(&written) {
                continue;
            }
            let (earlier, later) = requests.split_at_mut(position);
            let mut is_given = false;
            for request in earlier.iter_mut() {
                for part in needed.given_by(request) {
                    is_given = true;
                    match extraction(&part) {
                        Ok(extraction) => request.kept.push(KeptValue {
                            position: values.len(),
                            extraction,
                        }),
                        Err(error) => problems.add(&request.place, format!("`{written}`: {error}")),
                    }
                }
            }
            if !is_given {
                let message = format!("`{{{{{written}}}}}` has no value");
                let problem = Problem::with(&later[0].place, message);
                problems.push(problem.hint(needed.hint(earlier, later)));
            }
            values.push(written);
        }
    }
    values
}

/// A value of an earlier response.
#[derive(Debug)]
enum Needed {
    /// Of the request that it names.
    Response(ResponseValue),
    /// A variable that handlers of responses set.
    Variable(String),
}

impl Needed {
    /// The parts of the response to `request` that give it its value.
    fn given_by(&self, request: &DescribedRequest) -> Vec<ResponsePart> {
        let Some(file) = &request.file else {
            return Vec::new();
        };
        match self {
            Self::Response(value) => {
                let is_named = file.name.as_deref() == Some(value.request.as_str());
                is_named.then(|| value.part.clone()).into_iter().collect()
            }
            Self::Variable(name) => {
                let sets = file.sets.iter().filter(|(set, _)| set == name);
                sets.map(|(_, part)| part.clone()).collect()
            }
        }
    }

    fn hint(&self, earlier: &[DescribedRequest], later: &[DescribedRequest]) -> String {
        let comes_later = later
            .iter()
            .find(|request| !self.given_by(request).is_empty());
        if let Some(request) = comes_later {
            let at = match request.file.as_ref().map(|file| &file.place) {
                Some(Place::Line(line)) => format!(" in line {line}"),
                _ => String::new(),
            };
            return format!("the request{at} gives it: it has to come before");
        }
        match self {
            Self::Variable(name) => format!("give it by `--var {name}=VALUE`"),
            Self::Response(value) => {
                let mut names: Vec<_> = earlier
                    .iter()
                    .chain(later)
                    .filter_map(|request| request.file.as_ref()?.name.as_deref())
                    .collect();
                names.dedup();
                match names.as_slice() {
                    [] => format!(
                        "no request has the name `{}`: write `# @name {}` before it",
                        value.request, value.request
                    ),
                    names => format!(
                        "no request has the name `{}`; there are {}",
                        value.request,
                        names.join(", ")
                    ),
                }
            }
        }
    }
}

/// As it is written in a template.
impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(value) => value.fmt(f),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

impl DescribedRequest {
    /// What its texts need of earlier responses; variables that are left are columns of feeders or set by handlers.
    fn needs(&self) -> impl Iterator<Item = Needed> + '_ {
        let file = self.file.as_ref();
        let headers = file.into_iter().flat_map(|file| &file.headers);
        let body = file.and_then(|file| file.body.as_ref());
        let texts = self
            .target
            .iter()
            .chain(headers.map(|(_, value)| value))
            .chain(body);
        let set = &self.set;
        texts
            .flat_map(Template::parts)
            .filter_map(move |part| match part {
                Part::Response(value) => Some(Needed::Response(value.clone())),
                Part::Variable(name) if set.contains(name) => Some(Needed::Variable(name.clone())),
                _ => None,
            })
    }
}

fn extraction(part: &ResponsePart) -> Result<Extraction, ConditionError> {
    match part {
        ResponsePart::Body => Ok(Extraction::Body),
        ResponsePart::Field(name) => Ok(Extraction::Field(name.clone())),
        ResponsePart::Json(path) => Extraction::json(path),
    }
}
