//! Modules that scripts load while they run, by `require()`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_script::{ModuleError, Program, Sources};

use crate::source::LIMITS;
use crate::source::ScriptSources;
use crate::source::error::RequireError;

/// Those of a run: each is compiled once, for all virtual users.
#[derive(Debug)]
pub(crate) struct RequiredModules {
    sources: Arc<ScriptSources>,
    /// By their names.
    programs: Mutex<HashMap<String, Program>>,
}

impl RequiredModules {
    pub(crate) fn new(sources: Arc<ScriptSources>) -> Self {
        Self {
            sources,
            programs: Mutex::default(),
        }
    }

    /// The name of the module that another one requires by `specifier`.
    pub(crate) fn resolve(&self, from: &str, specifier: &str) -> Result<String, ModuleError> {
        self.sources.resolve(from, specifier)
    }

    /// The module with all that it imports.
    pub(crate) fn program(&self, name: &str) -> Result<Program, RequireError> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(name) {
            return Ok(program.clone());
        }
        // A script runs on a small stack, which compiling could overflow.
        let sources = Arc::clone(&self.sources);
        let compiled = std::thread::scope(|scope| {
            let compile = || Program::compile(Rc::new(sources), name, LIMITS);
            scope.spawn(compile).join()
        });
        let compiled = compiled.map_err(|_| RequireError::CompilerEnded(name.to_owned()))?;
        let program = compiled?;
        programs.insert(name.to_owned(), program.clone());
        Ok(program)
    }
}
