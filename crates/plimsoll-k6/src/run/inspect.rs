//! A script's options and needs, without a run (`k6 inspect`), and its archive (`k6 archive`).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tokio::task::LocalSet;

use super::exit_code::ExitCode;
use super::invocation::{Invocation, Outcome};
use super::plan::RunNeeds;
use super::preparation::Preparation;
use crate::options::{as_inspected, implied_iterations, laid_over};
use crate::script::Script;
use crate::source::archive::{Archive, anonymous};

/// What a script would run.
#[derive(Debug)]
pub struct InspectedScript {
    /// Options as the script and the command line write them: every key that k6 has, null where nothing is set.
    pub options: Value,
    /// The same with the scenarios that shortcuts stand for, and defaults.
    pub derived: Value,
    /// What the run needs at most.
    pub plan: RunNeeds,
    /// The script with everything that it has read.
    pub archive: Archive,
}

/// Runs the initialisation of a script, and nothing else.
///
/// Fails with the outcome that a run would have.
pub fn inspect(invocation: &Invocation<'_>) -> Result<InspectedScript, Box<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Box::new(Outcome::failed(ExitCode::Other, error.to_string())))?;
    let local = LocalSet::new();
    let preparation = Preparation::new(invocation, &runtime, &local)?;
    let shared = &preparation.calls.shared;
    let mut written = laid_over(&preparation.written, &invocation.overrides);
    written.extend(of_command(invocation));
    let options = as_inspected(&written);
    let mut derived = shared.options.json.as_object().cloned().unwrap_or_default();
    // k6 keeps shortcuts beside the scenario that they stand for.
    for key in [
        "vus",
        "duration",
        "iterations",
        "stages",
        "handleSummaryTimeout",
        "cloud",
        "features",
    ] {
        derived.insert(
            key.to_owned(),
            written.get(key).cloned().unwrap_or_default(),
        );
    }
    if let Some(iterations) = implied_iterations(&shared.options) {
        derived.insert("iterations".to_owned(), json!(iterations));
    }
    let archive = archive(invocation, &options, shared.files.contents());
    Ok(InspectedScript {
        derived: as_inspected(&derived),
        plan: RunNeeds::new(&shared.options),
        archive,
        options,
    })
}

/// Options of the command line that have fields of their own.
fn of_command(invocation: &Invocation<'_>) -> Map<String, Value> {
    let overrides = &invocation.overrides;
    let text = |duration: std::time::Duration| json!(format!("{}s", duration.as_secs_f64()));
    let stages = overrides.stages.iter();
    let stages: Vec<_> = stages
        .map(|(duration, target)| json!({ "duration": text(*duration), "target": target }))
        .collect();
    let tags = overrides.tags.iter();
    let tags: Map<_, _> = tags
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let pairs = [
        ("vus", overrides.vus.map(|it| json!(it))),
        ("duration", overrides.duration.map(text)),
        ("iterations", overrides.iterations.map(|it| json!(it))),
        ("stages", (!stages.is_empty()).then(|| json!(stages))),
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
        (
            "userAgent",
            overrides.user_agent.as_ref().map(|it| json!(it)),
        ),
        (
            "summaryTrendStats",
            overrides.trend_stats.as_ref().map(|it| json!(it)),
        ),
        (
            "summaryTimeUnit",
            overrides.time_unit.as_ref().map(|it| json!(it)),
        ),
    ];
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn archive(
    invocation: &Invocation<'_>,
    options: &Value,
    read: BTreeMap<std::path::PathBuf, std::sync::Arc<Vec<u8>>>,
) -> Archive {
    let script = &invocation.script;
    let mut archive = Archive {
        main: place(script, &script.name),
        directory: place(script, &script.directory.to_string_lossy()),
        options: options.as_object().cloned().unwrap_or_default(),
        environment: invocation.environment.clone(),
        text: script.text.as_bytes().to_vec(),
        ..Archive::default()
    };
    for (name, text) in &script.sources.read() {
        let content = text.as_bytes().to_vec();
        match name.strip_prefix("https:/") {
            Some(path) => archive.remote.insert(path.to_owned(), content),
            None => archive.files.insert(path_of(script, name), content),
        };
    }
    for (path, content) in read {
        let path = path_of(script, &path.to_string_lossy());
        archive.files.insert(path, content.to_vec());
    }
    archive
}

/// The URL of a module or folder in an archive.
fn place(script: &Script, name: &str) -> String {
    if name.starts_with("https://") {
        return name.to_owned();
    }
    format!("file://{}", path_of(script, name))
}

/// The path of a file in an archive.
fn path_of(script: &Script, path: &str) -> String {
    let shown = script.root.shown(Path::new(path));
    let normal = crate::source::archive::relative(&shown.to_string_lossy());
    let normal = normal.unwrap_or(shown);
    let rooted = Path::new("/").join(normal);
    anonymous(&rooted.to_string_lossy())
}
