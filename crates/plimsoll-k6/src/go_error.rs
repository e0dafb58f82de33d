//! Exceptions of native functions.

use plimsoll_script::js::object::Property;
use plimsoll_script::js::{self, Ctx, Exception};

/// Throws an error of a native function: scripts see the name that k6 gives to all of them.
pub(crate) fn throw_error(ctx: &Ctx<'_>, message: &str) -> js::Error {
    let made = Exception::from_message(ctx.clone(), message).and_then(|error| {
        let name = Property::from("GoError").writable().configurable();
        error.as_object().prop("name", name)?;
        Ok(error)
    });
    made.map_or_else(|error| error, Exception::throw)
}
