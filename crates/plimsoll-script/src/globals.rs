//! Parts of the standard library that a lean VM gets once a program names them.
//!
//! A fifth of an empty VM is typed arrays, dates, maps and the like, which most scripts of a load test do not use.

use std::cell::Cell;

use rquickjs::context::{Intrinsic, intrinsic};
use rquickjs::{Ctx, qjs};

use crate::error::OWN;

/// A part of the standard library.
struct Part {
    globals: &'static [&'static str],
    add: unsafe fn(std::ptr::NonNull<qjs::JSContext>),
}

const BUFFERS: usize = 0;

const PARTS: [Part; 6] = [
    Part {
        globals: &[
            "ArrayBuffer",
            "Atomics",
            "BigInt64Array",
            "BigUint64Array",
            "DataView",
            "Float16Array",
            "Float32Array",
            "Float64Array",
            "Int16Array",
            "Int32Array",
            "Int8Array",
            "SharedArrayBuffer",
            "Uint16Array",
            "Uint32Array",
            "Uint8Array",
            "Uint8ClampedArray",
        ],
        add: intrinsic::TypedArrays::add_intrinsic,
    },
    Part {
        globals: &["Date"],
        add: intrinsic::Date::add_intrinsic,
    },
    Part {
        globals: &["Map", "Set", "WeakMap", "WeakSet"],
        add: intrinsic::MapSet::add_intrinsic,
    },
    Part {
        globals: &["Proxy"],
        add: intrinsic::Proxy::add_intrinsic,
    },
    Part {
        globals: &["FinalizationRegistry", "WeakRef"],
        add: intrinsic::WeakRef::add_intrinsic,
    },
    Part {
        globals: &["DOMException"],
        add: add_dom_exception,
    },
];

/// # Safety
///
/// The context is alive and does not have it yet.
unsafe fn add_dom_exception(ctx: std::ptr::NonNull<qjs::JSContext>) {
    // SAFETY: as above. A negative result means that memory is short, which the first use reports.
    unsafe { qjs::JS_AddIntrinsicDOMException(ctx.as_ptr()) };
}

/// Words by which a script can get at globals that it does not name.
const REACHING: [&str; 4] = ["Function", "eval", "global", "globalThis"];

/// A property that leads to the constructor of functions, unless it begins a method of a class.
const CONSTRUCTOR: &str = "constructor";

/// A set of parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Globals(u8);

impl Globals {
    /// All parts.
    pub(crate) const ALL: Self = Self((1 << PARTS.len()) - 1);

    /// Typed arrays, which native functions make of bytes.
    pub(crate) const BUFFERS: Self = Self(1 << BUFFERS);

    /// The parts that the text of a module may use. Comments and strings count too, so there may be more than it uses.
    pub(crate) fn of_module(name: &str, text: &str) -> Self {
        let is_own = name.starts_with(OWN);
        // Identifiers may be written with escapes.
        if !is_own && text.contains("\\u") {
            return Self::ALL;
        }
        let is_separator = |it: char| !(it.is_alphanumeric() || it == '_' || it == '$');
        let mut found = Self::default();
        if !is_own
            && text
                .match_indices(CONSTRUCTOR)
                .any(|at| !is_method(text, at.0))
        {
            return Self::ALL;
        }
        for word in text.split(is_separator) {
            if !is_own && REACHING.contains(&word) {
                return Self::ALL;
            }
            let mut parts = PARTS.iter();
            if let Some(part) = parts.position(|part| part.globals.contains(&word)) {
                found.0 |= 1 << part;
            }
        }
        found
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Whether the word at `at` is the beginning of a method, or a call of a variable of that name.
fn is_method(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    let after = after.trim_start_matches(CONSTRUCTOR).trim_start();
    let before = before.trim_end();
    after.starts_with('(') && !before.ends_with(['.', '"', '\'', '`', '['])
}

/// The parts that a context has.
#[derive(Debug)]
pub(crate) struct AddedGlobals(Cell<Globals>);

impl AddedGlobals {
    pub(crate) fn new(globals: Globals) -> Self {
        Self(Cell::new(globals))
    }

    /// Adds those that are missing.
    pub(crate) fn add(&self, ctx: &Ctx<'_>, wanted: Globals) {
        let missing = wanted.0 & !self.0.get().0;
        self.0.set(self.0.get().with(wanted));
        let parts = PARTS.iter().enumerate();
        for (_, part) in parts.filter(|(position, _)| missing & (1 << position) != 0) {
            // SAFETY: the context is alive, and has had each part at most once.
            unsafe { (part.add)(ctx.as_raw()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_gets_what_it_names() {
        let of = |text: &str| Globals::of_module("/script.js", text);
        assert_eq!(of("export default () => 1;"), Globals::default());
        assert_eq!(of("new Uint8Array(3)"), Globals::BUFFERS);
        assert_eq!(of("Date.now(); new Map()"), Globals(0b110));
        assert_eq!(of("class A { constructor (x) { this.x = x } }"), Globals(0));
        assert_eq!(of("Update(); MapSet; $Date; Date1"), Globals::default());
    }

    #[test]
    fn a_module_that_may_reach_globals_gets_all() {
        let of = |text: &str| Globals::of_module("/script.js", text);
        for text in [
            "globalThis['Da' + 'te']",
            "global.x",
            "(0, eval)(x)",
            "[].at.constructor('return Map')()",
            "const { constructor } = [];",
            "\\u0044ate.now()",
        ] {
            assert_eq!(of(text), Globals::ALL, "{text}");
        }
        let own = format!("{OWN}globals");
        assert_eq!(Globals::of_module(&own, "globalThis.x = 1"), Globals(0));
    }
}
