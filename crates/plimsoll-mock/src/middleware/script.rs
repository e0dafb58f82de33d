//! A script of Rhai, compiled once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rhai::{AST, Dynamic, Engine, EvalAltResult, Map, Scope};
use serde_json::Value;

use super::{MiddlewareAnswer, MiddlewareError, MiddlewareInput, functions, run};
use crate::folder::Folder;
use crate::script::MOST_TIME;
use crate::script::notice_limiter::NoticeLimiter;

/// A script that may answer before the rules.
#[derive(Debug)]
pub struct RhaiMiddleware {
    engine: Engine,
    program: AST,
    folder: Folder,
    shown: String,
}

impl RhaiMiddleware {
    /// Reads and compiles a script. Nothing of it runs.
    ///
    /// - `operations`: that it may take for one request; 0 for any number.
    pub fn load(file: &Path, operations: u64) -> Result<Self, MiddlewareError> {
        let unreadable = |message: String| MiddlewareError {
            place: None,
            message,
        };
        let file = file
            .canonicalize()
            .map_err(|error| unreadable(error.to_string()))?;
        let folder = Folder::new(file.parent().unwrap_or(Path::new("/")))
            .map_err(|error| unreadable(error.to_string()))?;
        let engine = functions::engine(folder.root(), operations);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let shown = name.into_owned();
        let program = engine.compile_file(file).map_err(|mut error| {
            let place = error.take_position();
            match *error {
                EvalAltResult::ErrorSystem(_, cause) => unreadable(cause.to_string()),
                error => MiddlewareError {
                    place: place.line().zip(place.position().or(Some(1))),
                    message: error.to_string(),
                },
            }
        })?;
        Ok(Self {
            engine,
            program,
            folder,
            shown,
        })
    }

    /// The same, never with these files of its folder.
    #[must_use]
    pub(crate) fn hiding(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.folder = self.folder.hiding(files);
        self
    }

    /// Its name.
    pub fn shown(&self) -> String {
        self.shown.clone()
    }

    /// The folder of the files that it answers with.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Its answer to a request, or nothing. Blocks.
    pub(crate) fn call(
        &self,
        input: &MiddlewareInput,
        notices: &Arc<NoticeLimiter>,
    ) -> Result<Option<MiddlewareAnswer>, Box<EvalAltResult>> {
        let mut scope = Scope::new();
        scope.push("url_path", input.path.clone());
        if let Some(body) = &input.body {
            scope.push_dynamic("body", dynamic(body));
        }
        let returned = run::within_limits(MOST_TIME, &self.shown, notices, || {
            self.engine
                .eval_ast_with_scope::<Dynamic>(&mut scope, &self.program)
        });
        returned.map(answer)
    }
}

/// Strings are files, and maps have one of three keys with a string. Everything else is no answer.
fn answer(returned: Dynamic) -> Option<MiddlewareAnswer> {
    if returned.is_string() {
        return returned.into_string().ok().map(MiddlewareAnswer::File);
    }
    let map = returned.try_cast::<Map>()?;
    let text = |key: &str| map.get(key)?.clone().into_string().ok();
    text("file_path")
        .map(MiddlewareAnswer::File)
        .or_else(|| text("json").map(MiddlewareAnswer::Json))
        .or_else(|| text("text").map(MiddlewareAnswer::Text))
}

/// JSON as a value of Rhai: whole numbers of 64 bits are its integers, other numbers its floats.
fn dynamic(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(elements) => Dynamic::from_array(elements.iter().map(dynamic).collect()),
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(name, value)| (name.as_str().into(), dynamic(value)));
            Dynamic::from_map(entries.collect())
        }
    }
}
