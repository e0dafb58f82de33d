//! Files of rules, compiled into plans.
//!
//! They are those of apimock, whose keys, operators and defaults mean here what they mean there; what is meant
//! better is listed in docs/mock.md. Every problem of all files is found, each with its file, line and key.

pub mod plan;

pub(crate) mod files;

pub(crate) mod ready;

pub mod edit;

pub(crate) mod kind;

mod added;

mod callback;

mod collection;

mod events;

mod graphql;

mod grpc;

mod javascript;

mod openapi;

mod part;

mod proxy;

mod respond;

mod root;

mod set;

mod source;

mod template;

mod websocket;

mod when;

mod xpath;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::document::ConfigProblem;
use plimsoll_server::{Notice, Severity};

use crate::config::plan::MockPlan;
use crate::import;
use crate::middleware::MiddlewareError;
use crate::rules::{Rule, RuleSet};
use crate::store::states::States;

use self::set::Gathered;

pub(crate) use self::added::Insertion;
pub use self::root::{Listener, TlsListener};

/// A problem in one of several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub file: PathBuf,
    /// Position and message; absent if the file could not be read at all.
    pub problem: Option<ConfigProblem>,
    /// Why it could not be read.
    pub unreadable: Option<String>,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(problem) = &self.problem {
            write!(f, ":{}:{}: {problem}", problem.line, problem.column)?;
        }
        match &self.unreadable {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

impl FileProblem {
    /// The problem as it is shown to people, with its place and what to do.
    pub fn notice(&self) -> Notice {
        let file = self.file.display();
        let Some(problem) = &self.problem else {
            let reason = self.unreadable.as_deref().unwrap_or_default();
            return Notice {
                hint: Some("`plimsoll mock --init` writes a file to start from".to_owned()),
                ..Notice::new(Severity::Error, format!("cannot read {file}: {reason}"))
            };
        };
        let place = format!("{file}:{}:{}", problem.line, problem.column);
        Notice {
            hint: problem.hint.clone(),
            ..Notice::new(Severity::Error, problem.to_string()).about(place)
        }
    }

    fn unreadable(file: &Path, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            problem: None,
            unreadable: Some(reason.to_string()),
        }
    }

    /// An error in a file of another mock server.
    fn foreign(remark: &import::FileRemark) -> Self {
        let place = remark.remark.place.to_string();
        let message = &remark.remark.message;
        let reason = match place.trim_start_matches([',', ' ', ':']) {
            "" => message.clone(),
            place => format!("{place}: {message}"),
        };
        Self::unreadable(&remark.file, reason)
    }

    fn in_middleware(file: &Path, error: MiddlewareError) -> Self {
        let Some((line, column)) = error.place else {
            return Self::unreadable(file, error.message);
        };
        Self {
            file: file.to_owned(),
            problem: Some(ConfigProblem {
                line,
                column,
                key: String::new(),
                message: error.message,
                hint: None,
            }),
            unreadable: None,
        }
    }

    fn all(file: &Path, problems: Vec<ConfigProblem>) -> impl Iterator<Item = Self> {
        problems.into_iter().map(move |problem| Self {
            file: file.to_owned(),
            problem: Some(problem),
            unreadable: None,
        })
    }
}

/// A file and where it wants to be served.
#[derive(Debug)]
pub struct MockFile {
    /// The compiled plan.
    pub plan: MockPlan,
    /// Addresses that the file asks for.
    pub listener: Listener,
}

/// Compiles a file with the sets of rules that it names; of a set alone, only its rules.
pub fn load(file: &Path) -> Result<MockPlan, Vec<FileProblem>> {
    open(file).map(|file| file.plan)
}

/// The same, as if one of the files had another text already.
pub fn load_as_if(file: &Path, changed: &Path, text: &str) -> Result<MockPlan, Vec<FileProblem>> {
    let states = States::default();
    let compiled = if is_same(file, changed) {
        compile_file(file, text, None, &states)
    } else {
        let own = read(file).map_err(|problem| vec![problem])?;
        compile_file(file, &own, Some((changed, text)), &states)
    };
    compiled.map(|file| file.plan)
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// The same, and where the file wants to be served.
pub fn open(file: &Path) -> Result<MockFile, Vec<FileProblem>> {
    open_with(file, &States::default())
}

/// The same with the states of what was loaded before.
pub(crate) fn open_with(file: &Path, states: &States) -> Result<MockFile, Vec<FileProblem>> {
    if import::is_foreign(file) {
        let imported = import::read(file).map_err(|remarks| {
            let problem = |remark: &import::FileRemark| FileProblem::foreign(remark);
            remarks.iter().map(problem).collect::<Vec<_>>()
        })?;
        return imported.compile(file, states);
    }
    let text = read(file).map_err(|problem| vec![problem])?;
    compile_file(file, &text, None, states)
}

/// - `changed`: a set of rules with the text that stands for it.
fn compile_file(
    file: &Path,
    text: &str,
    changed: Option<(&Path, &str)>,
    states: &States,
) -> Result<MockFile, Vec<FileProblem>> {
    if !root::is_set(text) {
        return root::compile(file, text, changed, states);
    }
    compile_text(file, text, &directory_of(file), states)
}

/// A set of rules that stands alone.
///
/// - `directory`: what files in it are relative to.
pub(crate) fn compile_text(
    file: &Path,
    text: &str,
    directory: &Path,
    states: &States,
) -> Result<MockFile, Vec<FileProblem>> {
    let mut gathered = Gathered {
        states: states.clone(),
        ..Gathered::default()
    };
    let (set, problems) = set::compile(file, text, directory, None, &mut gathered);
    match set {
        Some(set) if problems.is_empty() => Ok(MockFile {
            plan: MockPlan {
                files: gathered.files_with(file),
                others: gathered.others.iter().cloned().collect(),
                openapi: gathered.openapi,
                states: states.clone(),
                collections: gathered.collections,
                ..MockPlan::of_sets(vec![set])
            },
            listener: Listener::default(),
        }),
        _ => Err(problems),
    }
}

/// Compiles the text of a set of rules.
///
/// - `directory`: what files in it are relative to.
pub fn parse(text: &str, directory: &Path) -> Result<RuleSet, Vec<FileProblem>> {
    let mut gathered = Gathered::default();
    let file = Path::new("rules.toml");
    let (set, problems) = set::compile(file, text, directory, None, &mut gathered);
    set.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Compiles rules that become part of others.
///
/// - `directory`: what files in them are relative to.
pub(crate) fn compile_rules(
    text: &str,
    directory: &Path,
    states: &States,
) -> Result<Vec<Rule>, Vec<FileProblem>> {
    let mut gathered = Gathered {
        states: states.clone(),
        ..Gathered::default()
    };
    let file = Path::new("rules.toml");
    let (set, problems) = set::compile(file, text, directory, None, &mut gathered);
    let set = set.filter(|_| problems.is_empty()).ok_or(problems)?;
    Ok(set.into_rules())
}

fn read(file: &Path) -> Result<String, FileProblem> {
    let bytes = fs::read(file).map_err(|error| FileProblem::unreadable(file, error))?;
    String::from_utf8(bytes).map_err(|_| FileProblem::unreadable(file, "is not UTF-8"))
}

/// The folder that paths in a file are relative to.
fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests;
