//! JavaScript within bounds of time, memory and files.
//!
//! A [`Runtime`] holds modules and calls the functions that they export. What they may ask of the program that runs
//! them is its [`Host`]'s to say; modules come from [`Sources`]: a [`Folder`], or what was read from one before, kept as
//! [`Modules`]. There is no network, no file, no process and no timer in here.
//!
//! A runtime stays on its thread. Every call has a limit of its own on time, read from a clock that is handed in;
//! promises are awaited within it.

#![forbid(unsafe_code)]

mod limits;

mod error;

mod host;

mod modules;

mod runtime;

pub use crate::error::{ErrorKind, Place, ScriptError};
pub use crate::host::{Host, Level};
pub use crate::limits::Limits;
pub use crate::modules::{Folder, Modules, Sources};
pub use crate::runtime::{Handler, Runtime};
