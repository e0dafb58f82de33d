//! `mock = { … }` in a `[[route]]`.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_server::config::{
    ActionKind, Mounted, OutsideSandbox, PathUse, Table, Value, as_text,
};
use plimsoll_server::{Action, MakeAction, Request, WorkerContext};
use plimsoll_wire::tls::Trust;

use crate::admin::journal::{ENTRIES, Journal};
use crate::admin::{AdminOfMock, PAGE, WIREMOCK};
use crate::config::openapi;
use crate::config::plan::MockPlan;
use crate::folder::Folder;
use crate::openapi::DocumentSettings;
use crate::proxy::Upstream;
use crate::proxy::record::redact::Redaction;
use crate::proxy::record::{self, Record, Recorder};
use crate::store::states::States;
use crate::worker::action::Mock;
use crate::worker::shared::SharedMock;

/// The action of mocks, for those who compile configurations.
pub const KIND: ActionKind = ActionKind {
    key: "mock",
    compile,
};

fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let mut table = value.table()?;
    if table.has("record") {
        return recording(table, mounted);
    }
    let cors = table.boolean("cors");
    let entries = table.count("journal", 0..=1_000_000).unwrap_or(ENTRIES);
    let directory = table.take_value("dir");
    let file = table.take_value("file");
    let settings = DocumentSettings {
        validates: table.boolean("validate"),
        callbacks: openapi::callback_hosts(&mut table),
    };
    if settings != DocumentSettings::default() && file.is_none() {
        table.wrong("`validate` and `callbacks` are of a `file` only", None);
    }
    let shared = match (directory, file) {
        (Some(value), None) => mounted.paths.read(&value).and_then(|path| {
            let folder = Folder::new(&path)
                .map_err(|error| format!("cannot serve {}: {error}", path.display()));
            let mut plan = MockPlan::of_folder(value.check(folder)?);
            plan.sharing.is_on = cors.unwrap_or(true);
            Some(SharedMock::fixed(plan))
        }),
        (None, Some(_)) if cors.is_some() => {
            table.wrong("`cors` is of a `dir` only", None);
            None
        }
        (None, Some(value)) => mounted.paths.read(&value).and_then(|path| {
            let identity = format!("{} {}", mounted.identity, path.display());
            let states = mounted.states.state(&identity, States::default);
            match SharedMock::of_file_with(&path, mounted.notices, states, settings) {
                Ok(shared) => {
                    let outside = shared
                        .named_paths()
                        .into_iter()
                        .find_map(|it| mounted.paths.note(&it.path, it.usage).err());
                    match outside {
                        None => Some(shared),
                        Some(outside) => {
                            value.wrong_with(outside, Some(OutsideSandbox::HINT.to_owned()))
                        }
                    }
                }
                Err(problems) => {
                    for problem in problems {
                        value.wrong::<()>(problem);
                    }
                    None
                }
            }
        }),
        (Some(_), Some(_)) => {
            table.wrong("both `dir` and `file` are given", None);
            None
        }
        (None, None) => {
            table.missing("dir", "a folder to serve, or `file` with rules");
            None
        }
    };
    table.finish();
    let shared = shared?;
    let prefix = mounted.prefix.to_owned();
    if let Some(apis) = mounted.apis {
        // It could not be read otherwise.
        if entries > 0 {
            let identity = format!("{} {prefix} {entries}", mounted.identity);
            let journal = || Journal::new(entries, &prefix);
            shared.keep_journal(mounted.states.state(&identity, journal));
        }
        let admin = AdminOfMock::new(Arc::clone(&shared));
        let of_wiremock = admin.clone();
        let answer = move |request: &Request<'_>, rest: &str| admin.answer(request, rest);
        apis.add("/mock", PAGE, Arc::new(answer));
        let answer =
            move |request: &Request<'_>, rest: &str| of_wiremock.answer_wiremock(request, rest);
        apis.add(WIREMOCK, &[], Arc::new(answer));
    }
    Some(Arc::new(move |_: &WorkerContext| {
        shared.follow_files();
        Rc::new(Mock::new(Arc::clone(&shared), &prefix)) as Rc<dyn Action>
    }))
}

/// `{ record = URL, dir = FOLDER, redact, ca, insecure }`: passes requests on, and keeps what is answered.
fn recording(mut table: Table<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let insecure = table.boolean("insecure").unwrap_or(false);
    let trust = match table.take_value("ca") {
        Some(_) if insecure => {
            table.wrong("both `ca` and `insecure` are given", None);
            return None;
        }
        Some(file) => Trust::Only(mounted.paths.read(&file)?),
        None if insecure => Trust::Anyone,
        None => Trust::PublicRoots,
    };
    let upstream = table.take_value("record").and_then(|value| {
        let upstream = Upstream::new(as_text(&value)?, record::options(trust));
        value.check(upstream)
    });
    let redact = table
        .take_value("redact")
        .and_then(|value| value.texts_with(|name| name.is_empty().then(|| "is empty".to_owned())));
    let folder = table.take_value("dir");
    if folder.is_none() {
        table.missing("dir", "the folder that is recorded into");
    }
    table.finish();
    let value = folder?;
    let folder = mounted.paths.path(&value, PathUse::WriteFolder)?;
    let redaction = Redaction::new(&redact.unwrap_or_default());
    let recorder = value.check(Recorder::new(
        upstream?,
        &folder,
        redaction,
        mounted.notices,
    ))?;
    let prefix = mounted.prefix.to_owned();
    Some(Arc::new(move |_: &WorkerContext| {
        recorder.follow_time();
        Rc::new(Record::new(Arc::clone(&recorder), &prefix)) as Rc<dyn Action>
    }))
}
