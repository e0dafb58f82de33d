//! What is served: a file with the changes that clients of the admin port have made to it.
//!
//! Every change is a change of the configuration, compiled and handed over as a reload is. Changes are made one after the other,
//! between reloads.

use std::fs;
use std::io;
use std::path::Path;

use plimsoll_model::counted;
use plimsoll_server::config::{
    Changes, ChangesPlan, ConfigContent, ConfigProblem, Misfit, RefusedChange, ServerPlan,
};
use plimsoll_server::{
    AuditLine, AuditLog, AuditOutcome, AuditSource, ChangeReply, ChangeRequest, WantedChange,
};
use plimsoll_wire::files::replace_private;

use super::configuration::Configuration;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// A configuration that is served, or will be.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    /// The text of the file, in the format of `plimsoll up`.
    file: String,
    /// What is different from it.
    pub(super) changes: Changes,
    /// What was compiled: the text of the file, or another one with the changes.
    pub(super) text: String,
    pub(super) plan: ServerPlan,
    /// The text of the file of changes, as it was read or written last; absent without one.
    kept: Option<String>,
    /// There is a change that is not in the file of changes.
    must_store: bool,
}

/// What a request comes to.
pub(super) enum Handled {
    /// Nothing is to be done, or can be.
    Replied(ChangeReply),
    /// The file is to be loaded again.
    Reload,
    /// This is to be served.
    New(Box<Loaded>),
}

impl Configuration {
    /// The file with the changes that are kept, or without a file of them with `changes`. Those that do not fit are reported.
    pub(super) fn load(&self, changes: &Changes) -> Result<Loaded, Failed> {
        let (file, plan) = self.load_file()?;
        let mut loaded = Loaded {
            text: file.clone(),
            file,
            changes: Changes::default(),
            plan,
            kept: None,
            must_store: false,
        };
        let changes = match &loaded.plan.changes {
            Some(ChangesPlan::Memory) => changes.clone(),
            Some(ChangesPlan::File(path)) => {
                loaded.kept = read(path)?;
                match &loaded.kept {
                    None => Changes::default(),
                    Some(text) => Changes::parse(text).map_err(|error| {
                        let message = format!("{} has no changes: {error}", path.display());
                        Problem::with("admin.changes", message)
                            .hint("give another file, or take it away")
                            .usage()
                    })?,
                }
            }
            None if changes.is_empty() => Changes::default(),
            None => {
                let count = counted(changes.len() as u64, "change");
                let message =
                    format!("dropped {count} made at run time: `changes` of [admin] is gone");
                terminal::print_warnings(&[Problem::new(message)]);
                Changes::default()
            }
        };
        self.with_changes(loaded, &changes)
    }

    fn with_changes(&self, loaded: Loaded, changes: &Changes) -> Result<Loaded, Failed> {
        let file = ConfigContent::parse(&loaded.file);
        let (content, kept, refused) = changes.made_on(&file);
        report(&refused);
        if kept.is_empty() {
            return Ok(loaded);
        }
        let text = content.to_toml();
        if let Ok(plan) = self.compiler.compile(&text) {
            return Ok(Loaded {
                changes: kept,
                text,
                plan,
                ..loaded
            });
        }
        // The file itself has no errors, so one of the changes leads to them.
        let (kept, refused) = kept.valid_on(&file, |content| {
            let problems = self.compiler.compile(&content.to_toml()).err()?;
            problems.first().map(ToString::to_string)
        });
        report(&refused);
        let (content, kept, _) = kept.made_on(&file);
        let text = content.to_toml();
        let plan = self.compile(&text)?;
        Ok(Loaded {
            changes: kept,
            text,
            plan,
            ..loaded
        })
    }

    /// What a request comes to while `loaded` is served.
    pub(super) fn handle(&self, loaded: &Loaded, request: &ChangeRequest) -> Handled {
        let served = loaded.content();
        let version = self.version(&served);
        let would_be = |new: &ConfigContent| {
            Handled::Replied(ChangeReply::Changed {
                changes: served.differences(new),
                version: version.clone(),
            })
        };
        match &request.wanted {
            WantedChange::List => Handled::Replied(ChangeReply::Listed {
                changes: loaded.changes.shown(),
                kept: loaded.plan.changes.clone().unwrap_or(ChangesPlan::Memory),
            }),
            WantedChange::Compare {
                content,
                with_secrets,
            } => {
                let (new, _, _) = loaded.changes.made_on(content);
                if *with_secrets {
                    return would_be(&new);
                }
                Handled::Replied(ChangeReply::Changed {
                    changes: served.masked().differences(&new.masked()),
                    version,
                })
            }
            _ if !request.permits(&version) => Handled::Replied(ChangeReply::Outdated(version)),
            WantedChange::Reload if !request.is_dry_run => Handled::Reload,
            WantedChange::Reload => match self.load(&loaded.changes) {
                Ok(new) => would_be(&new.content()),
                Err(failed) => Handled::Replied(failure(&failed)),
            },
            WantedChange::Edit(edit) => {
                let file = ConfigContent::parse(&loaded.file);
                let (changes, content) = match loaded.changes.edited(edit, &file, &served) {
                    Ok(edited) => edited,
                    Err(error) => return Handled::Replied(ChangeReply::Rejected(error)),
                };
                let text = if changes.is_empty() {
                    loaded.file.clone()
                } else {
                    content.to_toml()
                };
                match self.compiler.compile(&text) {
                    Err(problems) => Handled::Replied(ChangeReply::Invalid(problems)),
                    Ok(_) if request.is_dry_run => would_be(&content),
                    Ok(plan) => Handled::New(Box::new(Loaded {
                        changes,
                        text,
                        plan,
                        must_store: true,
                        ..loaded.clone()
                    })),
                }
            }
        }
    }

    fn version(&self, content: &ConfigContent) -> String {
        let queue = self.compiler.change_queue.as_ref();
        queue.map_or_else(String::new, |queue| queue.version(content))
    }

    /// What a change or a reload has come to, which is audited too.
    ///
    /// - `before`: what was served before.
    pub(super) fn reply(
        &self,
        request: ChangeRequest,
        before: &ConfigContent,
        applied: Result<&Loaded, &Failed>,
        audit: &AuditLog,
    ) {
        let reply = match applied {
            Ok(new) => {
                let content = new.content();
                ChangeReply::Changed {
                    changes: before.differences(&content),
                    version: self.version(&content),
                }
            }
            Err(failed) => failure(failed),
        };
        audited_reply(request, reply, audit);
    }
}

/// Replies, and writes a line if anything was to be changed.
pub(super) fn audited_reply(request: ChangeRequest, reply: ChangeReply, audit: &AuditLog) {
    if request.is_change() {
        audit.record(&AuditLine {
            source: AuditSource::Client(&request.client),
            changes: reply.changes(),
            outcome: AuditOutcome::Responded(reply.status()),
        });
    }
    request.reply(reply);
}

/// Writes the line of a reload into the audit log.
///
/// - `contents`: what was served before and is served now; absent if the reload has failed.
pub(super) fn audit_reload(
    audit: &AuditLog,
    source: AuditSource<'_>,
    contents: Option<(&ConfigContent, &ConfigContent)>,
) {
    let changes = contents.map(|(before, now)| before.differences(now));
    audit.record(&AuditLine {
        source,
        outcome: changes
            .as_ref()
            .map_or(AuditOutcome::Failed, |_| AuditOutcome::Done),
        changes: &changes.unwrap_or_default(),
    });
}

impl Loaded {
    /// The text of the file, without changes.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The same configuration, compiled again.
    pub(super) fn with_plan(&self, plan: ServerPlan) -> Self {
        Self {
            plan,
            ..self.clone()
        }
    }

    /// What is served.
    pub(super) fn content(&self) -> ConfigContent {
        ConfigContent::parse(&self.text)
    }

    /// Whether there is a file that the changes have to be written to.
    pub(super) fn must_store(&self) -> bool {
        self.must_store && matches!(self.plan.changes, Some(ChangesPlan::File(_)))
    }

    /// Writes the changes into their file, if there is one and they are not in it.
    pub(super) fn store(&mut self) -> Result<(), Failed> {
        if let (true, Some(ChangesPlan::File(path))) = (self.must_store, &self.plan.changes) {
            if read(path)? != self.kept {
                let message = format!("{} was changed by another program", path.display());
                let hint = "reload the configuration, which reads it again";
                return Err(Problem::new(message).hint(hint).could_not_run());
            }
            let text = self.changes.to_text();
            replace_private(path, text.as_bytes())
                .map_err(|error| cannot("write", path, &error))?;
            self.kept = Some(text);
        }
        self.must_store = false;
        Ok(())
    }

    /// Puts the file of changes back as it was with this configuration, after another one could not be served.
    pub(super) fn restore(&self) {
        let Some(ChangesPlan::File(path)) = &self.plan.changes else {
            return;
        };
        let restored = match &self.kept {
            Some(text) => replace_private(path, text.as_bytes()),
            None => fs::remove_file(path),
        };
        if let Err(error) = restored {
            terminal::print_failure(&cannot("put back", path, &error));
        }
    }

    /// Reports changes that the process which takes over does not have.
    pub(super) fn report_lost(&self) {
        if self.plan.changes == Some(ChangesPlan::Memory) && !self.changes.is_empty() {
            let count = counted(self.changes.len() as u64, "change");
            let message = format!("{count} at run time ended with this process");
            let hint = "`changes = \"FILE\"` in [admin] keeps them";
            terminal::print_warnings(&[Problem::new(message).hint(hint)]);
        }
    }

    /// Whether the file of changes is another one by now: the process before this one has gone on writing it.
    pub(super) fn is_outdated(&self) -> bool {
        match &self.plan.changes {
            Some(ChangesPlan::File(path)) => read(path).is_ok_and(|text| text != self.kept),
            _ => false,
        }
    }
}

/// The text of a file of changes, if there is one.
fn read(path: &Path) -> Result<Option<String>, Failed> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failed {
    let message = format!("cannot {verb} {}: {error}", path.display());
    Problem::with("admin.changes", message).could_not_run()
}

/// Why nothing has changed.
fn failure(failed: &Failed) -> ChangeReply {
    let messages = failed.problems.iter().map(|problem| match &problem.about {
        Some(about) => format!("{about}: {}", problem.message),
        None => problem.message.clone(),
    });
    if failed.exit != Exit::Usage {
        return ChangeReply::Failed(messages.collect());
    }
    let problems = messages
        .zip(&failed.problems)
        .map(|(message, problem)| ConfigProblem {
            line: 1,
            column: 1,
            key: String::new(),
            message,
            hint: problem.hint.clone(),
        });
    ChangeReply::Invalid(problems.collect())
}

/// Reports changes that do not fit the file.
fn report(refused: &[RefusedChange]) {
    let refused = refused.iter().filter(|it| it.misfit != Misfit::Present);
    let problems = refused.map(|RefusedChange { change, misfit }| {
        Problem::new(format!(
            "a change at run time does not hold any more: {change}: {misfit}"
        ))
        .hint("make it again, or write it into the file")
    });
    let problems: Vec<_> = problems.collect();
    if !problems.is_empty() {
        terminal::print_warnings(&problems);
    }
}
