//! Files of other mock servers as rules.
//!
//! [`read`] finds the kind of a file by its content and makes an [`Imported`] of it: rules as a file of ours has them,
//! and what they do not carry. A rule that our files cannot hold, such as one with an unsupported expression, is
//! left out and named.

pub(crate) mod body;

pub(crate) mod entry;

mod when;

mod kind;

pub(crate) mod recorded;

pub mod wiremock;

pub(crate) mod mapping;

pub(crate) mod mapping_folder;

mod har;

mod json_server;

mod mockoon;

mod openapi;

mod postman;

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_formats::{Place, Remark};
use plimsoll_wire::http::FieldClass;
use serde_json::Value;

use crate::config::{self, FileProblem, MockFile};
use crate::folder::Folder;
use crate::store::states::States;
use crate::template::Dialect;
use crate::template::handlebars::without_unknown_names;

pub use self::kind::{ForeignKind, is_foreign};

use self::entry::{Entry, Table};
use self::mapping_folder::MappingFolder;
use self::when::When;

/// An imported file of another mock server.
#[derive(Debug)]
pub struct Imported {
    /// Its kind.
    pub kind: ForeignKind,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The parts that the rules do not carry.
    pub left_out: Vec<FileRemark>,
    /// Number of rules.
    pub rules: usize,
    /// The folder that files in the rules are relative to.
    directory: PathBuf,
    /// The folder that responds where no rule does.
    folder: Option<PathBuf>,
    /// The folder of its mappings, for WireMock.
    mappings: Option<MappingFolder>,
    draft: Draft,
}

/// Something about a place in a file that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRemark {
    /// The file.
    pub file: PathBuf,
    /// Position and message.
    pub remark: Remark,
}

impl fmt::Display for FileRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Remark { place, message, .. } = &self.remark;
        write!(f, "{}{place}: {message}", self.file.display())
    }
}

/// The tables of a file of rules.
#[derive(Debug, Default)]
struct Draft {
    strategy: Option<&'static str>,
    /// Whether a rule names a file.
    names_files: bool,
    rules: Vec<Table>,
    /// The mappings that the rules were made of, for WireMock.
    mappings: Vec<Value>,
    /// Other tables under their headers.
    more: Vec<(&'static str, Table)>,
}

/// Reads a file or a folder of another mock server.
///
/// Fails if it cannot be read, or is of no known kind.
pub fn read(path: &Path) -> Result<Imported, Vec<FileRemark>> {
    let kind = kind::kind_of(path).map_err(|remark| vec![about(path, remark)])?;
    let mut importer = Importer::new(kind, path);
    match kind {
        ForeignKind::WireMock => importer.wiremock(path)?,
        ForeignKind::Har => importer.har(path)?,
        ForeignKind::Mockoon => importer.mockoon(path)?,
        ForeignKind::OpenApi => importer.openapi(path)?,
        ForeignKind::JsonServer => importer.json_server(path)?,
        ForeignKind::Postman => importer.postman(path)?,
    }
    Ok(importer.imported)
}

impl Imported {
    /// The rules as they stand in a file.
    ///
    /// - `respond_dir`: what the files that they name are relative to, as the file says it; absent if it is the folder
    ///   of the file.
    pub fn text(&self, respond_dir: Option<&Path>) -> String {
        let mut text = String::new();
        if let Some(strategy) = self.draft.strategy {
            let mut table = Table::new();
            table.push("strategy", strategy);
            text.push_str(table.lines("").trim_start());
            text.push('\n');
        }
        if let Some(directory) = respond_dir.filter(|_| self.draft.names_files) {
            let mut prefix = Table::new();
            prefix.push("respond_dir", directory.to_string_lossy().into_owned());
            text.push_str(&prefix.lines("[prefix]"));
            text.push('\n');
        }
        if self.draft.rules.is_empty() && self.draft.more.is_empty() {
            text.push_str("rules = []\n");
        }
        let rules = self.draft.rules.iter();
        let rules = rules.map(|rule| rule.lines("[[rules]]"));
        let more = self.draft.more.iter();
        let tables: Vec<String> = more
            .map(|(header, table)| table.lines(header))
            .chain(rules)
            .collect();
        text.push_str(&tables.join("\n"));
        text
    }

    /// The folder that files in the rules are relative to, if they name any.
    pub fn directory(&self) -> Option<&Path> {
        Some(self.directory.as_path()).filter(|_| self.draft.names_files)
    }

    /// The rules, ready to answer.
    pub(crate) fn compile(
        &self,
        path: &Path,
        states: &States,
    ) -> Result<MockFile, Vec<FileProblem>> {
        let text = self.text(None);
        let mut file = config::compile_text(path, &text, &self.directory, states)?;
        let mappings = self.draft.mappings.iter().cloned();
        if let Some(set) = file.plan.sets.first_mut().and_then(Arc::get_mut) {
            set.mark_mappings(mappings);
        }
        file.plan.folder = self.folder.as_deref().and_then(|it| Folder::new(it).ok());
        file.plan.mappings = self.mappings.clone().map(Arc::new);
        file.plan.files.clone_from(&self.files);
        Ok(file)
    }
}

/// Gathers the rules of foreign files.
struct Importer {
    imported: Imported,
    names: HashSet<String>,
}

impl Importer {
    fn new(kind: ForeignKind, path: &Path) -> Self {
        Self {
            imported: Imported {
                kind,
                files: Vec::new(),
                left_out: Vec::new(),
                rules: 0,
                directory: directory_of(path),
                folder: None,
                mappings: None,
                draft: Draft::default(),
            },
            names: HashSet::new(),
        }
    }

    /// Notes what of a file is not carried over.
    fn note(&mut self, file: &Path, remark: Remark) {
        self.imported.left_out.push(about(file, remark));
    }

    /// Adds a rule; whether it is one.
    fn add(&mut self, file: &Path, place: &Place, mut rule: Table) -> bool {
        if let Some(Entry::Text(name)) = rule.value_mut("id")
            && !self.names.insert(name.clone())
        {
            rule.remove("id");
        }
        self.leave_unknown_names_out(file, place, &mut rule);
        let text = rule.lines("[[rules]]");
        let compiled = config::compile_rules(&text, &self.imported.directory, &States::default());
        match compiled {
            Ok(_) => {
                self.imported.draft.names_files |= text.contains("file_path = ");
                self.imported.draft.rules.push(rule);
                self.imported.rules += 1;
                true
            }
            Err(problems) => {
                for problem in problems {
                    let message = format!("{}, so the rule is left out", reason(&problem));
                    self.note(file, Remark::new(place.clone(), message));
                }
                false
            }
        }
    }

    /// Handlebars writes nothing for a name alone that is not known: neither do the rules, which refuse such names elsewhere.
    fn leave_unknown_names_out(&mut self, file: &Path, place: &Place, rule: &mut Table) {
        let mut unknown = Vec::new();
        rule.each_with_templates(&mut |dialect, table| {
            let Some(dialect) = Dialect::named(dialect) else {
                return;
            };
            table.each_text(&mut |text| {
                if text.contains("{{") {
                    let (without, names) = without_unknown_names(text, dialect);
                    *text = without;
                    unknown.extend(names);
                }
            });
        });
        unknown.sort();
        unknown.dedup();
        for name in unknown {
            let message = format!("`{name}` is not known here, so nothing is written in its place");
            self.note(file, Remark::new(place.clone(), message));
        }
    }

    /// The text of a file that is read.
    fn text_of(&mut self, path: &Path) -> Result<String, Vec<FileRemark>> {
        self.imported.files.push(path.to_owned());
        fs::read_to_string(path).map_err(|error| vec![unreadable(path, &error)])
    }

    /// Mappings of a folder or a file.
    fn wiremock(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let (mappings, bodies) = wiremock_folders(path);
        if let Some(bodies) = &bodies {
            self.imported.directory.clone_from(bodies);
            self.imported.folder = Some(bodies.clone());
        }
        let mut folder = mappings
            .is_dir()
            .then(|| MappingFolder::new(&mappings, bodies.as_deref()));
        let files = if mappings.is_dir() {
            // It changes with every file that comes or goes.
            self.imported.files.push(mappings.clone());
            json_files(&mappings).map_err(|error| vec![unreadable(&mappings, &error)])?
        } else {
            vec![mappings]
        };
        let mut has_priorities = false;
        for file in files {
            self.imported.files.push(file.clone());
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) => {
                    self.imported.left_out.push(unreadable(&file, &error));
                    continue;
                }
            };
            let parsed = match plimsoll_formats::wiremock::parse_mappings(&text) {
                Ok(parsed) => parsed,
                Err(remark) => {
                    self.note(&file, remark);
                    continue;
                }
            };
            let root = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}'));
            let is_alone = root.is_ok_and(|root| root.get("mappings").is_none());
            let is_single = parsed.mappings.len() + parsed.left_out.len() <= 1;
            for remark in parsed.left_out {
                self.note(&file, remark);
            }
            for (number, mapping) in parsed.mappings {
                let place = if is_single {
                    Place::Whole
                } else {
                    Place::Key(format!("mappings[{number}]"))
                };
                let mut notes = Vec::new();
                let rule = wiremock::rule(&mapping, &self.imported.directory, &mut notes);
                for remark in notes {
                    self.note(&file, within(&place, remark));
                }
                match rule {
                    Ok(rule) => {
                        has_priorities |= mapping.priority != 5;
                        if self.add(&file, &place, rule) {
                            let number = self.imported.rules;
                            let source = mapping.source;
                            let named =
                                mapping::with_id(source, |it| mapping::lasting_id(it, number));
                            if let Some(folder) = &mut folder {
                                folder.note(&named, &file, is_alone);
                            }
                            self.imported.draft.mappings.push(named);
                        }
                    }
                    Err(remark) => self.note(&file, within(&place, remark)),
                }
            }
        }
        self.imported.mappings = folder;
        // The newest answers first.
        self.imported.draft.rules.reverse();
        self.imported.draft.mappings.reverse();
        self.imported.draft.strategy = has_priorities.then_some("priority");
        Ok(())
    }
}

/// A remark on a key, with the place of the whole that it is in.
fn within(place: &Place, remark: Remark) -> Remark {
    match (place, remark.place) {
        (Place::Key(outer), Place::Key(inner)) => Remark {
            place: Place::Key(format!("{outer}.{inner}")),
            message: remark.message,
            hint: remark.hint,
        },
        (place, Place::Whole) => Remark {
            place: place.clone(),
            message: remark.message,
            hint: remark.hint,
        },
        (_, inner) => Remark {
            place: inner,
            message: remark.message,
            hint: remark.hint,
        },
    }
}

fn about(file: &Path, remark: Remark) -> FileRemark {
    FileRemark {
        file: file.to_owned(),
        remark,
    }
}

fn unreadable(file: &Path, error: &io::Error) -> FileRemark {
    about(file, Remark::whole(format!("cannot be read: {error}")))
}

/// What keeps a callback from being sent, if anything does. Its rule answers all the same.
fn problem_of_callback(callback: &Entry, directory: &Path) -> Option<String> {
    let mut rule = Table::new();
    rule.push(
        "when",
        Entry::Table(When::at_path(&["url_path"], "/").table()),
    );
    let mut respond = Table::new();
    respond.push("status", Entry::Whole(204));
    rule.push("respond", Entry::Table(respond));
    rule.push("callbacks", Entry::List(vec![callback.clone()]));
    let text = rule.lines("[[rules]]");
    let problems = config::compile_rules(&text, directory, &States::default()).err()?;
    let reason = problems.first().map(reason).unwrap_or_default();
    let reason = reason.strip_prefix("callbacks[1].").unwrap_or(&reason);
    Some(format!("{reason}, so nothing is sent"))
}

/// The error in a rule, without its place in a generated text.
fn reason(problem: &FileProblem) -> String {
    match (&problem.problem, &problem.unreadable) {
        (Some(problem), _) => {
            let text = problem.to_string();
            text.strip_prefix("rules[1].").unwrap_or(&text).to_owned()
        }
        (None, reason) => reason.clone().unwrap_or_default(),
    }
}

/// The folder of a file, or the folder itself.
fn directory_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Folder of mappings, and of their bodies if there is one.
fn wiremock_folders(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let mappings = path.join("mappings");
    let mappings = if mappings.is_dir() {
        mappings
    } else {
        path.to_owned()
    };
    let above = mappings.ancestors().skip(usize::from(!path.is_dir()));
    let bodies = above.take(3).map(|folder| {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        folder.join("__files")
    });
    (mappings.clone(), bodies.into_iter().find(|it| it.is_dir()))
}

/// Deeper folders are not looked into.
const DEEPEST: usize = 16;

/// The files of JSON below a folder, in the order of their names.
fn json_files(folder: &Path) -> Result<Vec<PathBuf>, io::Error> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if path
                .extension()
                .is_some_and(|it| it.eq_ignore_ascii_case("json"))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Why a file of a folder is not read.
#[derive(Debug, thiserror::Error)]
enum InsideError {
    #[error("there is no file {}", .0.display())]
    Missing(PathBuf),
    #[error("{} lies outside of {}", .path.display(), .root.display())]
    Outside { path: PathBuf, root: PathBuf },
    #[error("{} is longer than 16 MiB", .0.display())]
    TooLong(PathBuf),
    #[error("cannot read {}: {cause}", .path.display())]
    Read { path: PathBuf, cause: io::Error },
    /// The folder itself.
    #[error(transparent)]
    Folder(#[from] io::Error),
}

/// The content of a file below a folder; fails if it is not there or lies outside.
fn inside(folder: &Path, name: &str) -> Result<Vec<u8>, InsideError> {
    let path = folder.join(name.trim_start_matches('/'));
    let found = path.canonicalize();
    let found = found.map_err(|_| InsideError::Missing(path.clone()))?;
    let root = folder.canonicalize()?;
    if !found.starts_with(&root) {
        return Err(InsideError::Outside { path, root });
    }
    let length = found.metadata().map(|it| it.len());
    if length.is_ok_and(|length| length > LONGEST_BODY) {
        return Err(InsideError::TooLong(path));
    }
    fs::read(&found).map_err(|cause| InsideError::Read { path, cause })
}

/// Longer content is not put into rules: they are held in memory and written as text.
const LONGEST_BODY: u64 = 16 << 20;

/// Whether a field is about the connection or the framing, which are the server's.
pub(crate) fn is_about_connection(name: &str) -> bool {
    let class = FieldClass::from_name(name.as_bytes());
    class.is_connection_specific() || class.is_framing() || name.eq_ignore_ascii_case("date")
}

#[cfg(test)]
mod tests;
