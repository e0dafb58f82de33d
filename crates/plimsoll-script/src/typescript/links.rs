//! The declarations of a module that take names from another one.

use std::ops::Range;

use super::tokens::{self, Kind, Token};
use super::{Parsed, Stripper, TypeScriptError, located};

/// An `import … from` or `export … from` of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLink {
    /// The bytes of the statement, with its semicolon.
    pub range: Range<usize>,
    /// The other module as it is written.
    pub specifier: String,
    /// The names.
    pub names: LinkedNames,
}

/// What a declaration does with the names of another module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkedNames {
    /// `import default, * as namespace, { name as local } from`; the pairs are the name there, as it is written, and the name here.
    Import {
        /// The name here of the default export.
        default: Option<String>,
        /// The name here of the whole module.
        namespace: Option<String>,
        /// Single names.
        named: Vec<(String, String)>,
    },
    /// `export { name as other } from`; the pairs are the name there and the exported one, both as they are written.
    Export(Vec<(String, String)>),
    /// `export * from`, with the name of `export * as name from`.
    ExportAll(Option<String>),
}

/// The declarations of a module that take names from others, in order.
///
/// Fails if the text cannot be parsed.
pub fn module_links(text: &str) -> Result<Vec<ModuleLink>, TypeScriptError> {
    let mut parser = Stripper::new(text);
    let links = parser.module().and_then(|()| {
        let links = parser.links.iter();
        links.map(|(start, end)| link(text, *start..*end)).collect()
    });
    links.map_err(|rejection| located(text, rejection))
}

/// Reads one statement, which the parser has found to be valid.
fn link(text: &str, range: Range<usize>) -> Parsed<ModuleLink> {
    let mut reader = LinkReader {
        text,
        token: tokens::next(text, range.start)?,
    };
    let is_export = reader.word() == "export";
    reader.advance()?;
    let names = if is_export {
        reader.exported()?
    } else {
        reader.imported()?
    };
    // `from`
    reader.advance()?;
    let quoted = reader.word();
    let specifier = quoted.get(1..quoted.len().saturating_sub(1));
    Ok(ModuleLink {
        range,
        specifier: specifier.unwrap_or_default().to_owned(),
        names,
    })
}

struct LinkReader<'a> {
    text: &'a str,
    token: Token,
}

impl LinkReader<'_> {
    fn word(&self) -> &str {
        self.text
            .get(self.token.start..self.token.end)
            .unwrap_or_default()
    }

    fn advance(&mut self) -> Parsed {
        self.token = tokens::next(self.text, self.token.end)?;
        Ok(())
    }

    /// The current token, which is a name or a text.
    fn name(&mut self) -> Parsed<String> {
        let name = self.word().to_owned();
        self.advance()?;
        Ok(name)
    }

    /// What stands between `import` and `from`.
    fn imported(&mut self) -> Parsed<LinkedNames> {
        let (mut default, mut namespace, mut named) = (None, None, Vec::new());
        if self.token.kind == Kind::Name {
            default = Some(self.name()?);
            if self.word() == "," {
                self.advance()?;
            }
        }
        if self.word() == "*" {
            self.advance()?;
            self.advance()?;
            namespace = Some(self.name()?);
        } else if self.word() == "{" {
            named = self.pairs()?;
        }
        Ok(LinkedNames::Import {
            default,
            namespace,
            named,
        })
    }

    /// What stands between `export` and `from`.
    fn exported(&mut self) -> Parsed<LinkedNames> {
        if self.word() != "*" {
            return self.pairs().map(LinkedNames::Export);
        }
        self.advance()?;
        if self.word() != "as" {
            return Ok(LinkedNames::ExportAll(None));
        }
        self.advance()?;
        Ok(LinkedNames::ExportAll(Some(self.name()?)))
    }

    /// `{ a, b as c }`
    fn pairs(&mut self) -> Parsed<Vec<(String, String)>> {
        self.advance()?;
        let mut pairs = Vec::new();
        while self.word() != "}" && self.token.kind != Kind::End {
            let name = self.name()?;
            let mut other = name.clone();
            if self.word() == "as" {
                self.advance()?;
                other = self.name()?;
            }
            pairs.push((name, other));
            if self.word() == "," {
                self.advance()?;
            }
        }
        self.advance()?;
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        let all = all.iter();
        all.map(|(one, other)| ((*one).to_owned(), (*other).to_owned()))
            .collect()
    }

    fn import(default: &str, namespace: &str, named: &[(&str, &str)]) -> LinkedNames {
        let given = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        LinkedNames::Import {
            default: given(default),
            namespace: given(namespace),
            named: pairs(named),
        }
    }

    #[test]
    fn every_form_of_a_declaration_is_found() {
        for (text, names) in [
            ("import a from './x.js';", import("a", "", &[])),
            ("import * as a from './x.js'", import("", "a", &[])),
            ("import a,*as b from'./x.js';", import("a", "b", &[])),
            (
                "import a, { b, c as d, default as e, 'f g' as h, } from \"./x.js\";",
                import(
                    "a",
                    "",
                    &[("b", "b"), ("c", "d"), ("default", "e"), ("'f g'", "h")],
                ),
            ),
            (
                "import {as as as} from './x.js'",
                import("", "", &[("as", "as")]),
            ),
            (
                "export { a, b as default } from './x.js';",
                LinkedNames::Export(pairs(&[("a", "a"), ("b", "default")])),
            ),
            ("export * from './x.js'", LinkedNames::ExportAll(None)),
            (
                "export * as all from './x.js'",
                LinkedNames::ExportAll(Some("all".to_owned())),
            ),
        ] {
            let whole = format!("const before = /import a from '.'/;\n{text}\nlet after;");
            let links = module_links(&whole).unwrap();
            assert_eq!(links.len(), 1, "{text}");
            assert_eq!(links[0].names, names);
            assert_eq!(links[0].specifier, "./x.js");
            assert_eq!(whole.get(links[0].range.clone()), Some(text));
        }
    }

    #[test]
    fn what_only_looks_like_a_declaration_is_none() {
        let text = "import './x.js'; // import a from './x.js'\nconst a = `import b from './x.js'`; import('./x.js'); export { a };";
        assert_eq!(module_links(text), Ok(Vec::new()));
    }
}
