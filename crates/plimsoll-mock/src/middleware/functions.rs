//! An engine with limits, and functions in place of those of Rhai that pass them by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rhai::module_resolvers::FileModuleResolver;
use rhai::{
    Dynamic, Engine, EvalAltResult, FLOAT, INT, ImmutableString, ModuleResolver, Position, Shared,
};

use super::run;

/// Calls within each other, bytes of a string, elements of an array and of a map: the limits of apimock.
const CALLS: usize = 64;
const STRING: usize = 1_000_000;
const ARRAY: usize = 100_000;
const MAP: usize = 10_000;

/// Nested expressions, at the top and in functions: Rhai's own limits, which are lower in programs that are not optimised.
const EXPRESSIONS: (usize, usize) = (64, 32);

/// Variables at once. With [`STRING`] it bounds the memory of a script.
const VARIABLES: usize = 256;

/// Modules that a script imports for one request; each of them is read and compiled.
const MODULES: usize = 32;

/// Operations between two looks at the clock; few of them take longer than some microseconds.
const LOOK: u64 = 256;

/// An engine for scripts of a folder.
///
/// - `operations`: that a script may take; 0 for any number.
pub(super) fn engine(folder: &Path, operations: u64) -> Engine {
    let mut engine = Engine::new();
    engine
        .set_max_operations(operations)
        .set_max_call_levels(CALLS)
        .set_max_string_size(STRING)
        .set_max_array_size(ARRAY)
        .set_max_map_size(MAP)
        .set_max_expr_depths(EXPRESSIONS.0, EXPRESSIONS.1)
        .set_max_variables(VARIABLES)
        .set_max_modules(MODULES)
        .set_module_resolver(Modules::new(folder))
        .on_progress(|operations| {
            let is_over = operations % LOOK == 0 && run::time_left().is_zero();
            is_over.then(|| Dynamic::from("the time is over"))
        })
        .on_print(run::print)
        .on_debug(|text, _, position| run::print(&format!("{position:?} {text}")));
    engine
        .register_fn("sleep", |seconds: INT| {
            sleep(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
        })
        .register_fn("sleep", |seconds: FLOAT| {
            // Negative times, and those that are no numbers, are none.
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            sleep(if seconds > 0.0 { time } else { Duration::ZERO })
        })
        .register_fn("replace", replace_text)
        .register_fn("replace", replace_character);
    engine
}

/// Waits, but not beyond the time limit of the script.
#[expect(
    clippy::disallowed_methods,
    reason = "scripts have a thread for as long as they run, and this is the function that blocks it"
)]
fn sleep(time: Duration) -> Result<(), Box<EvalAltResult>> {
    let left = run::time_left();
    std::thread::sleep(time.min(left));
    if time < left {
        return Ok(());
    }
    let reason = Dynamic::from("the time is over");
    Err(EvalAltResult::ErrorTerminated(reason, Position::NONE).into())
}

/// Rhai checks the length of a text only once it is made, which may take a terabyte.
fn replace_text(
    text: &mut ImmutableString,
    old: &str,
    new: &str,
) -> Result<(), Box<EvalAltResult>> {
    if text.is_empty() {
        return Ok(());
    }
    let count = text.matches(old).count();
    let removed = count.saturating_mul(old.len());
    let length = (text.len() - removed).saturating_add(count.saturating_mul(new.len()));
    if length > STRING {
        let what = "Length of string".to_owned();
        return Err(EvalAltResult::ErrorDataTooLarge(what, Position::NONE).into());
    }
    *text = text.replace(old, new).into();
    Ok(())
}

fn replace_character(
    text: &mut ImmutableString,
    old: char,
    new: &str,
) -> Result<(), Box<EvalAltResult>> {
    replace_text(text, old.encode_utf8(&mut [0; 4]), new)
}

/// Modules of the folder of a script, and of none other. They are read each time, so that changes hold.
struct Modules {
    folder: PathBuf,
    files: FileModuleResolver,
}

impl Modules {
    fn new(folder: &Path) -> Self {
        let mut files = FileModuleResolver::new_with_path(folder);
        files.enable_cache(false);
        Self {
            folder: folder.to_owned(),
            files,
        }
    }
}

impl ModuleResolver for Modules {
    fn resolve(
        &self,
        engine: &Engine,
        source: Option<&str>,
        path: &str,
        position: Position,
    ) -> Result<Shared<rhai::Module>, Box<EvalAltResult>> {
        let file = self.files.get_file_path(path, None).canonicalize();
        if !file.is_ok_and(|file| file.starts_with(&self.folder)) {
            let path = path.to_owned();
            return Err(EvalAltResult::ErrorModuleNotFound(path, position).into());
        }
        self.files.resolve(engine, source, path, position)
    }
}
