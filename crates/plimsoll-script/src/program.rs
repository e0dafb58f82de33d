//! A graph of modules, compiled once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Exception, Module, Runtime, qjs};

use crate::error::{ErrorKind, ScriptError};
use crate::globals::Globals;
use crate::limits::Limits;
use crate::modules::{MOST, Sources, as_script};

/// A module with all that it imports, as bytecode. Cheap to clone; may be sent to other threads.
#[derive(Clone)]
pub struct Program {
    entry: Arc<str>,
    graph: Arc<Graph>,
}

#[derive(Default)]
struct Graph {
    bytecode: BTreeMap<Arc<str>, Vec<u8>>,
    /// Names of imported modules, by the importing module and the specifier.
    resolved: BTreeMap<(String, String), String>,
    globals: Globals,
}

impl Program {
    /// Compiles a module and everything that it imports statically. Nothing is run.
    ///
    /// - `entry`: its name among `sources`.
    ///
    /// Fails if a module cannot be found or is not valid JavaScript.
    pub fn compile(
        sources: Rc<dyn Sources>,
        entry: &str,
        limits: Limits,
    ) -> Result<Self, ScriptError> {
        let failed =
            |error: rquickjs::Error| ScriptError::new(ErrorKind::Engine(error.to_string()));
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let compiler = Compiler {
            sources,
            graph: Rc::default(),
        };
        let graph = Rc::clone(&compiler.graph);
        runtime.set_loader(compiler.clone(), compiler.clone());
        let context = Context::full(&runtime).map_err(failed)?;
        context.with(|ctx| {
            compile_all(&ctx, entry)
                .map_err(|error| ScriptError::caught(&ctx, error, limits.memory))
        })?;
        Ok(Self {
            entry: Arc::from(entry),
            graph: Arc::new(graph.take()),
        })
    }

    /// The name of its first module.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The names of its modules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.graph.bytecode.keys().map(|name| &**name)
    }

    /// Bytes of bytecode.
    pub fn bytes(&self) -> usize {
        self.graph.bytecode.values().map(Vec::len).sum()
    }

    /// The name of the module that another one imports by `specifier`.
    pub fn resolve(&self, from: &str, specifier: &str) -> Option<&str> {
        let key = (from.to_owned(), specifier.to_owned());
        self.graph.resolved.get(&key).map(String::as_str)
    }

    /// The parts of the standard library that its modules may use.
    pub(crate) fn globals(&self) -> Globals {
        self.graph.globals
    }

    pub(crate) fn declare<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
    ) -> Option<rquickjs::Result<Module<'js, Declared>>> {
        let bytecode = self.graph.bytecode.get(name)?;
        // SAFETY: only `Compiler` makes bytecode, by the engine of this process.
        Some(unsafe { Module::load(ctx.clone(), bytecode) })
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("entry", &self.entry)
            .field("modules", &self.graph.bytecode.len())
            .field("bytes", &self.bytes())
            .finish()
    }
}

/// True if a text can be the body of a function in a module: it has no `import`, `export` or `await` of a module's own.
pub fn is_function_body(text: &str, limits: Limits) -> bool {
    let Ok(runtime) = Runtime::new() else {
        return false;
    };
    runtime.set_memory_limit(limits.memory);
    runtime.set_max_stack_size(limits.stack);
    let Ok(context) = Context::full(&runtime) else {
        return false;
    };
    context.with(|ctx| {
        let source = format!("(function () {{{text}\n}})");
        let is_valid = Module::declare(ctx.clone(), IMPORTER, source).is_ok();
        ctx.catch();
        is_valid
    })
}

/// Has the engine load the module `entry` and all that it imports, which compiles them.
fn compile_all(ctx: &Ctx<'_>, entry: &str) -> rquickjs::Result<()> {
    let source = format!("import {};", serde_json::Value::from(entry));
    let importer = Module::declare(ctx.clone(), IMPORTER, source)?;
    let bytes = importer.write(WriteOptions::default())?;
    // SAFETY: the bytes were written by this engine a moment ago. Reading them gives the module as the value that
    // `JS_ResolveModule` takes, and that `Module` does not hand out; the context owns it.
    let resolved = unsafe {
        let flags = i32::try_from(qjs::JS_READ_OBJ_BYTECODE).unwrap_or_default();
        let length = bytes.len().try_into().unwrap_or_default();
        let value = qjs::JS_ReadObject(ctx.as_raw().as_ptr(), bytes.as_ptr(), length, flags);
        qjs::JS_ResolveModule(ctx.as_raw().as_ptr(), value)
    };
    if resolved < 0 {
        return Err(rquickjs::Error::Exception);
    }
    Ok(())
}

/// The module that imports the first one.
const IMPORTER: &str = "plimsoll:importer";

/// Sources as the engine asks for them, each module compiled and kept.
#[derive(Clone)]
struct Compiler {
    sources: Rc<dyn Sources>,
    graph: Rc<RefCell<Graph>>,
}

impl Compiler {
    fn compile<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Module<'js, Declared>> {
        if self.graph.borrow().bytecode.len() >= MOST {
            let message = format!("more than {MOST} modules are imported");
            return Err(Exception::throw_message(ctx, &message));
        }
        let text = self.sources.text(name);
        let text = text.and_then(|text| as_script(name, &text));
        let text = text.map_err(|error| Exception::throw_message(ctx, &error.to_string()))?;
        let globals = Globals::of_module(name, &text);
        let module = Module::declare(ctx.clone(), name, text)?;
        let options = WriteOptions {
            strip_source: true,
            ..WriteOptions::default()
        };
        let bytecode = module.write(options)?;
        let mut graph = self.graph.borrow_mut();
        graph.bytecode.insert(Arc::from(name), bytecode);
        graph.globals = graph.globals.with(globals);
        Ok(module)
    }
}

impl Resolver for Compiler {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        if base == IMPORTER {
            return Ok(name.to_owned());
        }
        let found = self.sources.resolve(base, name);
        let found =
            found.map_err(|error| Exception::throw_message(ctx, &format!("{base}: {error}")))?;
        let mut graph = self.graph.borrow_mut();
        let key = (base.to_owned(), name.to_owned());
        graph.resolved.insert(key, found.clone());
        Ok(found)
    }
}

impl Loader for Compiler {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        self.compile(ctx, name)
    }
}
