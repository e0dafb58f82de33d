//! CommonJS: which modules are of that kind, and what the engine compiles for them and for their importers.
//!
//! A CommonJS module becomes an ES module that runs its text as a function, with `module` and `exports`, and exports what it has made. Names
//! that another module imports from it are known only once it has run, so such an import takes everything and picks the names from it.
//! Everything that is added stays in the lines that are there, so that lines in errors are right.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use plimsoll_script::{LinkedNames, ModuleLink, is_function_body, module_links};
use regex::Regex;

use crate::source::LIMITS;

/// The export that has `module.exports`; no script writes such a name.
pub(crate) const EXPORTS: &str = "plimsoll commonjs";

/// The export that is a function, which returns the enumerable properties of `module.exports`.
const NAMES: &str = "plimsoll names";

/// Words without which a text is no ES module.
static MODULE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(?:import|export|await)\b";
    Regex::new(pattern).expect("the pattern is valid")
});

static IMPORTED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"\bfrom\s*(?:"([^"\n]+)"|'([^'\n]+)')"#;
    Regex::new(pattern).expect("the pattern is valid")
});

/// Whether a text is CommonJS: it neither imports nor exports by declarations.
pub(crate) fn is_commonjs(name: &str, text: &str) -> bool {
    let is_json = Path::new(name).extension().is_some_and(|it| it == "json");
    !is_json && (!MODULE_WORDS.is_match(text) || is_function_body(text, LIMITS))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A CommonJS module as an ES module.
pub(crate) fn as_module(name: &str, text: &str) -> String {
    let name = quoted(name);
    format!(
        "const plimsoll$made = globalThis[Symbol.for(\"plimsoll.native\")].commonjs({name}, function (module, exports) {{{text}\n}}); \
         const [plimsoll$exports, plimsoll$default, plimsoll$names] = plimsoll$made; \
         export {{ plimsoll$exports as {0}, plimsoll$names as {1}, plimsoll$default as default }};\n",
        quoted(EXPORTS),
        quoted(NAMES),
    )
}

/// The modules that a text may import names from, as it writes them.
pub(crate) fn imported(text: &str) -> impl Iterator<Item = &str> {
    IMPORTED.captures_iter(text).filter_map(|found| {
        let specifier = found.iter().skip(1).flatten().next()?;
        Some(specifier.as_str())
    })
}

/// `export *` from a CommonJS module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`export * from {from}`: it is a CommonJS module, whose names are known only once it has run; export each by its name"
)]
pub(crate) struct NamesUnknown {
    /// The specifier, in quotes.
    from: String,
}

/// The text of an ES module that imports names from CommonJS modules.
///
/// - `is_commonjs`: whether a specifier stands for one.
///
/// Fails for `export *` from such a module, whose names are not known.
pub(crate) fn importing(
    text: &str,
    is_commonjs: impl Fn(&str) -> bool,
) -> Result<String, NamesUnknown> {
    // What cannot be parsed is reported by the engine.
    let Ok(links) = module_links(text) else {
        return Ok(text.to_owned());
    };
    let links = links.iter().filter(|link| is_commonjs(&link.specifier));
    let mut constants = String::new();
    let mut made = String::with_capacity(text.len() + 64);
    let mut end = 0;
    for (index, link) in links.enumerate() {
        made.push_str(text.get(end..link.range.start).unwrap_or_default());
        let statement = text.get(link.range.clone()).unwrap_or_default();
        made.push_str(&rewritten(link, index, &mut constants)?);
        made.extend(statement.chars().filter(|it| *it == '\n'));
        end = link.range.end;
    }
    made.push_str(text.get(end..).unwrap_or_default());
    Ok(format!("{constants}{made}"))
}

/// One declaration that takes names from a CommonJS module.
///
/// - `constants`: those that the names become, for the beginning of the module.
fn rewritten(
    link: &ModuleLink,
    index: usize,
    constants: &mut String,
) -> Result<String, NamesUnknown> {
    let from = quoted(&link.specifier);
    let (exports, names) = (quoted(EXPORTS), quoted(NAMES));
    let all = format!("plimsoll${index}");
    let mut taken = Vec::new();
    let mut after = String::new();
    // Writing to a text does not fail.
    match &link.names {
        LinkedNames::Import {
            default,
            namespace,
            named,
        } => {
            taken.extend(default.iter().map(|local| format!("default as {local}")));
            if let Some(local) = namespace {
                taken.push(format!("{names} as {all}"));
                write!(constants, "const {local} = {all}(); ").ok();
            }
            let (defaults, others): (Vec<_>, Vec<_>) =
                named.iter().partition(|(name, _)| is_default(name));
            taken.extend(
                defaults
                    .iter()
                    .map(|(_, local)| format!("default as {local}")),
            );
            if !others.is_empty() {
                taken.push(format!("{exports} as {all}"));
                let pairs = others
                    .iter()
                    .map(|(name, local)| format!("{name}: {local}"));
                let pairs = pairs.collect::<Vec<_>>().join(", ");
                write!(constants, "const {{ {pairs} }} = Object({all}); ").ok();
            }
        }
        LinkedNames::Export(pairs) => {
            taken.push(format!("{exports} as {all}, default as {all}$default"));
            let mut exported = Vec::new();
            for (number, (name, other)) in pairs.iter().enumerate() {
                let value = if is_default(name) {
                    format!("{all}$default")
                } else {
                    let local = format!("{all}${number}");
                    write!(after, "const {{ {name}: {local} }} = Object({all}); ").ok();
                    local
                };
                exported.push(format!("{value} as {other}"));
            }
            write!(after, "export {{ {} }};", exported.join(", ")).ok();
        }
        LinkedNames::ExportAll(Some(name)) => {
            taken.push(format!("{names} as {all}"));
            write!(
                after,
                "const {all}$all = {all}(); export {{ {all}$all as {name} }};"
            )
            .ok();
        }
        LinkedNames::ExportAll(None) => {
            return Err(NamesUnknown { from });
        }
    }
    let taken = taken.join(", ");
    Ok(format!("import {{ {taken} }} from {from}; {after}"))
}

fn is_default(name: &str) -> bool {
    matches!(name, "default" | "\"default\"" | "'default'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declarations_make_an_es_module() {
        for (text, expected) in [
            ("module.exports = 1;", true),
            ("var a = 1;", true),
            ("// export nothing\nexports.a = 'import b from c';", true),
            ("var t = {};(()=>{t.import = 1})();module.exports=t", true),
            ("const a = require('./a.js'); export default a;", false),
            ("var a=1;export{a as b};", false),
            ("import'./a.js'", false),
            ("await 1", false),
        ] {
            assert_eq!(is_commonjs("/a.js", text), expected, "{text}");
        }
        assert!(!is_commonjs("/a.json", "{}"));
    }

    #[test]
    fn lines_stay_what_they_are() {
        let text = "const http = require('k6/http');\nmodule.exports = {};";
        let made = as_module("/a.js", text);
        for (line, expected) in made.lines().zip(text.lines()).skip(1) {
            assert!(line.starts_with(expected), "{line}");
        }
        let text = "import a, {\n  b,\n  c as d,\n} from './c.js';\nimport e from './e.js';\ne();";
        let made = importing(text, |specifier| specifier == "./c.js").unwrap();
        assert_eq!(made.lines().count(), text.lines().count(), "{made}");
        assert!(made.ends_with("\nimport e from './e.js';\ne();"), "{made}");
        assert!(
            made.starts_with(
                "const { b: b, c: d } = Object(plimsoll$0); import { default as a, \"plimsoll commonjs\" as plimsoll$0 } from \"./c.js\";"
            ),
            "{made}"
        );
    }

    #[test]
    fn unknown_names_cannot_be_exported() {
        let error = importing("export * from './c.js'", |_| true).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("`export * from \"./c.js\"`"), "{error}");
        let text = "const a = <invalid";
        assert_eq!(importing(text, |_| true).as_deref(), Ok(text));
    }
}
