//! JavaScript within bounds of memory, computing time and files, whose calls can wait.
//!
//! - A [`Program`] is a graph of modules, found by [`Sources`] and compiled once to bytecode. It can be sent to other
//!   threads.
//! - A [`Vm`] is one QuickJS runtime with one global scope. It loads programs and stays on its thread. The embedder
//!   installs native functions as [`js::Function`]s; values and array buffers cross as they are, not as JSON.
//! - A [`Fiber`] runs one piece of work in a VM on a separate stack. A native function that has to wait suspends the
//!   fiber with [`Waiter::wait`]; [`Fiber::resume`] returns what it waits for as [`Step::Call`], and the next resume
//!   hands in the reply. Calls of [`Waiter::start`] run beside the script and settle promises. Timers and promises are
//!   driven by [`Waiter::run_event_loop`].
//!
//! This crate opens no socket and no clock: a driver performs the calls, tests drive fibers in virtual time. The budget
//! of a fiber counts the time that it computes, not the time that it waits.

// The engine's stack limit, its memory, its bytecode reader and the pointer to a coroutine's yielder have no safe interface.
#![expect(
    unsafe_code,
    reason = "a few calls, each with its reason beside it, in fiber.rs, globals.rs, lazy_object.rs, memory.rs, timed_memory.rs, program.rs and vm.rs"
)]

mod limits;

mod error;

mod modules;

mod globals;

mod program;

mod vm;

mod lazy_object;

mod memory;

mod timed_memory;

mod stack;

mod fiber;

mod event_loop;

mod timers;

mod console;

mod typescript;

pub use rquickjs as js;

pub use crate::console::Level;
pub use crate::error::{ErrorKind, ScriptError, SourceLocation, Stop};
pub use crate::event_loop::{CallId, Delivery};
pub use crate::fiber::{Fiber, Host, Resume, Step, Waiter};
pub use crate::lazy_object::{LazyProperties, PropertyLayout, lazy_object};
pub use crate::limits::Limits;
pub use crate::modules::{Folder, ModuleError, Sources, name_of_file, text_of_file};
pub use crate::program::{Program, is_function_body};
pub use crate::stack::Stacks;
pub use crate::typescript::{LinkedNames, ModuleLink, TypeScriptError, module_links, strip_types};
pub use crate::vm::{Exports, ProgramLoader, Vm, read_buffer};

#[cfg(test)]
mod tests;
