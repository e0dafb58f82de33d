//! The small actions.

mod delay;

mod echo;

mod mount;

mod redirect;

mod respond;

pub use crate::actions::delay::Delay;
pub use crate::actions::echo::{Echo, EchoHandler};
pub use crate::actions::mount::{Mount, SendBody};
pub use crate::actions::redirect::{Redirect, RedirectError};
pub use crate::actions::respond::Respond;
