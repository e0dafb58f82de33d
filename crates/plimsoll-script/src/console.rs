//! `console`, whose output goes to the embedder.

use rquickjs::{Ctx, Function};

use crate::vm::own;

/// The severity of a line that a script prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`
    Debug,
    /// `console.log` and `.info`
    Info,
    /// `console.warn`
    Warning,
    /// `console.error`
    Error,
}

impl Level {
    fn named(name: &str) -> Self {
        match name {
            "debug" => Self::Debug,
            "warn" => Self::Warning,
            "error" => Self::Error,
            _ => Self::Info,
        }
    }
}

/// Sets the global `console`, whose lines go to `print`.
pub(crate) fn install<'js>(
    ctx: &Ctx<'js>,
    print: impl Fn(Level, &str) + 'js,
) -> rquickjs::Result<()> {
    let install: Function<'_> =
        ctx.eval_with_options(include_str!("console.js"), own("console"))?;
    let print = move |level: String, text: String| print(Level::named(&level), &text);
    install.call::<_, ()>((Function::new(ctx.clone(), print)?,))
}
