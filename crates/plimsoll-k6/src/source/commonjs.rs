//! Modules with `require()` and `module.exports` as ES modules.
//!
//! Everything that is added goes before the first line, so that lines in errors stay what they are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use regex::Regex;

/// The export that has `module.exports`; no script writes such a name.
pub(crate) const EXPORTS: &str = "plimsoll commonjs";

static REQUIRED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"\brequire\s*\(\s*(?:"([^"\n]+)"|'([^'\n]+)'|`([^`$\n]+)`)\s*\)"#;
    Regex::new(pattern).expect("the pattern is valid")
});

static IS_MODULE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?m)^\s*(?:import(?:\s+\w|\s*[{*"'])|export(?:\s+\w|\s*[{*]))"#;
    Regex::new(pattern).expect("the pattern is valid")
});

static IS_COMMONJS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(?:module\.exports|exports\s*[.\[]|require\s*\()";
    Regex::new(pattern).expect("the pattern is valid")
});

/// The text of a module in which `require()` works, and `module.exports` if it is no ES module.
///
/// - `resolve`: the module of a specifier; its error becomes an exception of `require`.
pub(crate) fn as_module(
    name: &str,
    text: &str,
    resolve: impl Fn(&str) -> Result<String, String>,
) -> Arc<str> {
    let is_json = Path::new(name).extension().is_some_and(|it| it == "json");
    if is_json || !IS_COMMONJS.is_match(text) {
        return Arc::from(text);
    }
    let is_module = IS_MODULE.is_match(text);
    let required = REQUIRED.captures_iter(text).filter_map(|found| {
        let specifier = found.iter().skip(1).flatten().next()?;
        let specifier = specifier.as_str();
        Some((specifier.to_owned(), resolve(specifier)))
    });
    let required: BTreeMap<_, _> = required.collect();
    if is_module && required.is_empty() {
        return Arc::from(text);
    }
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (mut imports, mut cases) = (String::new(), String::new());
    for (index, (specifier, found)) in required.iter().enumerate() {
        let key = quoted(specifier);
        // Writing to a text does not fail.
        match found {
            Ok(_) => {
                write!(imports, "import * as plimsoll{index} from {key}; ").ok();
                let is_json = Path::new(specifier)
                    .extension()
                    .is_some_and(|it| it == "json");
                let value = if is_json {
                    format!("plimsoll{index}.default")
                } else {
                    format!("plimsoll{index}[{0}] ?? plimsoll{index}", quoted(EXPORTS))
                };
                write!(cases, "case {key}: return {value}; ").ok();
            }
            Err(message) => {
                write!(cases, "case {key}: throw new Error({}); ", quoted(message)).ok();
            }
        }
    }
    let require = format!(
        "const require = (name) => {{ switch (name) {{ {cases}default: throw new Error(`require(${{name}}): only texts can be required`); }} }}; "
    );
    let made = if is_module {
        format!("{imports}{require}{text}")
    } else {
        // `await` and `return` of the text are those of a function, as in CommonJS.
        let name = quoted(EXPORTS);
        format!(
            "{imports}{require}const module = {{ exports: {{}} }}; (function (exports, module, require) {{{text}\n}})(module.exports, module, require); const made = module.exports; export {{ made as {name} }}; export default made?.default ?? made;\n"
        )
    };
    Arc::from(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Arc<str> {
        as_module("/a.js", text, |specifier| match specifier {
            "lodash" => Err("there is no lodash".to_owned()),
            other => Ok(other.to_owned()),
        })
    }

    #[test]
    fn modules_without_commonjs_stay_as_they_are() {
        for text in [
            "import http from 'k6/http';\nexport default () => {}",
            "export const options = {};",
            "import x from './x.js'; module.exports = 1;",
            "const a = 1;",
        ] {
            assert_eq!(&*made(text), text);
        }
    }

    #[test]
    fn lines_stay_what_they_are() {
        let text = "const http = require('k6/http');\nconst x = require(\"lodash\");\nmodule.exports = {};";
        let made = made(text);
        assert!(
            made.starts_with("import * as plimsoll0 from \"k6/http\"; "),
            "{made}"
        );
        assert!(
            made.contains("case \"lodash\": throw new Error(\"there is no lodash\")"),
            "{made}"
        );
        for (line, expected) in made.lines().zip(text.lines()).skip(1) {
            assert!(line.starts_with(expected), "{line}");
        }
    }
}
