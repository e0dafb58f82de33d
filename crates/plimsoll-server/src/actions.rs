//! The small actions.

mod delay;

mod echo;

mod fill;

mod mount;

mod redirect;

mod respond;

mod target;

pub use crate::actions::delay::Delay;
pub use crate::actions::echo::{Echo, EchoHandler};
pub(crate) use crate::actions::fill::{Fill, FillContent, Filled};
pub use crate::actions::mount::{Mount, SendBody};
pub use crate::actions::redirect::{Redirect, RedirectError};
pub use crate::actions::respond::Respond;
pub(crate) use crate::actions::target::Target;
