//! `require()`.

use plimsoll_script::Stop;
use plimsoll_script::js::{self, Ctx};

use super::{Adder, Natives, require_init};
use crate::go_error::throw_error;
use crate::source::OWN;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("resolveRequired", |it, ctx, arguments| {
        require_init(&it.user, ctx, "require()")?;
        let specifier = arguments.text(0)?;
        let found = it
            .user
            .shared
            .required
            .resolve(&caller(it, ctx), &specifier);
        found.map_err(|error| throw_error(ctx, &error.to_string()))
    })?;
    adder.add("importRequired", |it, ctx, arguments| {
        let name = arguments.text(0)?;
        let program = it.user.shared.required.program(&name);
        let program = program.map_err(|error| throw_error(ctx, &error.to_string()))?;
        it.loader
            .import_at_once(ctx, &program)
            .map_err(|stop| match stop {
                Stop::Failed(error) | Stop::Rejected(error) => error,
                Stop::Kind(kind) => throw_error(ctx, &format!("{name}: {kind}")),
            })
    })
}

/// Frames of the stack that are looked at; scripts do not nest deeper while they are loaded.
const MOST_FRAMES: isize = 256;

/// The modules of the functions on the stack, the innermost first.
fn modules_on_stack<'a>(ctx: &'a Ctx<'_>) -> impl Iterator<Item = String> + 'a {
    // Functions of the engine have no module.
    let names = (0..MOST_FRAMES).filter_map(|level| ctx.script_or_module_name(level));
    names.filter_map(|name| name.to_string().ok())
}

/// The module whose code calls.
fn caller(it: &Natives, ctx: &Ctx<'_>) -> String {
    let mut names = modules_on_stack(ctx);
    let found = names.find(|name| !name.starts_with(OWN));
    found.unwrap_or_else(|| it.user.shared.script.clone())
}

/// The module that is being loaded: the one that no other one has on the stack, up to the one that requires it. It need not be the one whose
/// code calls, which may be that of a helper.
pub(super) fn loading(it: &Natives, ctx: &Ctx<'_>) -> String {
    let mut found: Option<String> = None;
    let mut is_required = false;
    for name in modules_on_stack(ctx) {
        if name.starts_with(OWN) {
            is_required |= name == REQUIRE;
            continue;
        }
        // A module of CommonJS is a function that its own module calls.
        if is_required && found.as_ref().is_some_and(|found| *found != name) {
            break;
        }
        is_required = false;
        found = Some(name);
    }
    found.unwrap_or_else(|| it.user.shared.script.clone())
}

/// The library that requires modules.
const REQUIRE: &str = "plimsoll:require";
