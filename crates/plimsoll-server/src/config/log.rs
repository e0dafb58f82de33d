//! `[log]` and `[[log]]`.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Context;
use crate::config::document::{Table, Value, as_text};
use crate::config::map::template;
use crate::config::paths::PathUse;
use crate::counters::Counters;
use crate::observe::access_log::{AccessLog, LogFormat};
use crate::place::{Maps, Moment};

/// The access log that a file asks for.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// The access log.
    pub log: AccessLog,
    /// Destination of the log.
    pub target: LogTarget,
}

/// Destination of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// At the end of this file.
    File(PathBuf),
    /// To the standard output.
    Stdout,
}

/// Lines that may wait, unless the table says otherwise.
const QUEUE_BYTES: u64 = 4 << 20;

/// Room for a few lines, and no more memory than makes sense.
const LEAST_QUEUE: u64 = 64 << 10;
const MOST_QUEUE: u64 = 1 << 30;

impl LogTarget {
    /// Opens `path` for appending; makes it if it is not there.
    pub fn open_file(path: &Path) -> io::Result<Box<dyn io::Write + Send>> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Box::new(file))
    }
}

impl LogPlan {
    /// The first log of what no route sends elsewhere, if there is one: that of connections, too.
    pub(super) fn main(logs: &[Self]) -> Option<&AccessLog> {
        let main = logs.iter().find(|plan| plan.log.is_default());
        main.map(|plan| &plan.log)
    }

    /// The names of logs that are neither default ones nor chosen by a route.
    pub(super) fn unused<'l>(
        logs: &'l [Self],
        chosen: impl Iterator<Item = &'l String>,
    ) -> impl Iterator<Item = &'l str> {
        let chosen: Vec<_> = chosen.map(String::as_str).collect();
        let others = logs.iter().filter(|plan| !plan.log.is_default());
        let names = others.filter_map(|plan| plan.log.name());
        names.filter(move |name| !chosen.contains(name))
    }
}

/// `[log]`, or each `[[log]]`: names and files differ.
pub(super) fn compile_all(
    value: Option<Value<'_>>,
    context: &Context<'_>,
    counters: &Arc<Counters>,
) -> Vec<LogPlan> {
    let tables = value.map(Value::elements).unwrap_or_default();
    let mut logs: Vec<LogPlan> = Vec::new();
    for table in tables.into_iter().filter_map(Value::table) {
        logs.extend(compile(table, &logs, context, counters));
    }
    logs
}

fn compile(
    mut table: Table<'_>,
    others: &[LogPlan],
    context: &Context<'_>,
    counters: &Arc<Counters>,
) -> Option<LogPlan> {
    let name = table.take_value("name").and_then(|value| {
        let name = as_text(&value)?.to_owned();
        if others.iter().any(|it| it.log.name() == Some(name.as_str())) {
            return value.wrong(format!("another log is called `{name}`"));
        }
        Some(name)
    });
    let is_default = table.boolean("default");
    if name.is_none() && is_default == Some(false) {
        let hint = "give it a `name`, by which routes choose it";
        table.wrong("the log has no requests", Some(hint.to_owned()));
    }
    let is_written = |target: &LogTarget| others.iter().any(|it| it.target == *target);
    let target = match table.take_value("file") {
        None => {
            table.missing(
                "file",
                "such as file = \"access.log\", or \"-\" for the standard output",
            );
            None
        }
        Some(value) => as_text(&value).and_then(|text| match text {
            "" => value.wrong("must name a file"),
            "-" if is_written(&LogTarget::Stdout) => {
                value.wrong("another log is written to the standard output")
            }
            "-" => Some(LogTarget::Stdout),
            _ => {
                let path = context.paths.path(&value, PathUse::WriteFile)?;
                // The file itself need not be there.
                let is_there = path
                    .parent()
                    .is_none_or(|directory| directory.as_os_str().is_empty() || directory.is_dir());
                if !is_there || path.is_dir() {
                    return value.wrong(format!("no file can be at {}", path.display()));
                }
                let target = LogTarget::File(path);
                if is_written(&target) {
                    let hint = "routes may share a log: log = \"NAME\"";
                    return value
                        .wrong_with("another log is written to this file", Some(hint.to_owned()));
                }
                Some(target)
            }
        }),
    };
    let format = match table.take_value("format") {
        None => Some(LogFormat::default()),
        Some(value) => format(value, &context.maps),
    };
    let when = table.take_value("when");
    let when = when.map(|value| template(&value, &context.maps, Moment::End));
    let queue = table.bytes("queue").unwrap_or(QUEUE_BYTES);
    if !(LEAST_QUEUE..=MOST_QUEUE).contains(&queue) {
        table.wrong("`queue` must be from 64KiB to 1GiB", None);
    }
    table.finish();
    let queue = usize::try_from(queue).unwrap_or(usize::MAX);
    let format = match when {
        Some(condition) => format?.when(condition?),
        None => format?,
    };
    let log = AccessLog::new(format, queue, Arc::clone(counters));
    Some(LogPlan {
        log: match &name {
            Some(name) => log.named(name, is_default.unwrap_or(false)),
            None => log,
        },
        target: target?,
    })
}

/// The name of a format, a text with places, or the members of a JSON object.
fn format(value: Value<'_>, maps: &Maps) -> Option<LogFormat> {
    if value.is_table() {
        let mut members = Vec::new();
        let mut is_whole = true;
        for (name, value) in value.table()?.rest_of_fields() {
            match template(&value, maps, Moment::End) {
                Some(template) => members.push((name, template)),
                None => is_whole = false,
            }
        }
        return is_whole.then(|| LogFormat::object(members));
    }
    match as_text(&value)? {
        "json" => Some(LogFormat::json()),
        "combined" => Some(LogFormat::combined()),
        text if text.contains('{') => {
            if text.contains(char::is_control) {
                return value.wrong("contains a control character: a line is one line");
            }
            template(&value, maps, Moment::End).map(|it| LogFormat::text(&it))
        }
        text => value.wrong_with(
            format!("`{text}` is not a format; there are json and combined"),
            Some(
                "or write a text with places, such as format = \"{client} {request.line} {status}\""
                    .to_owned(),
            ),
        ),
    }
}
