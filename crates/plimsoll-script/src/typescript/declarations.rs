//! Declarations that are more than types: enums, namespaces, import aliases and parameter properties.
//!
//! Each becomes the JavaScript that TypeScript's own compiler writes for it, in the lines where it is written.

use super::statements::FunctionKind;
use super::tokens::Kind;
use super::{Edit, Import, Imported, Parsed, Stripper};

/// Modifiers that make a parameter of a constructor a property.
const PROPERTY_MODIFIERS: [&str; 5] = ["public", "private", "protected", "readonly", "override"];

impl<'a> Stripper<'a> {
    /// Notes a declaration that an enum or a namespace of that name extends.
    pub(super) fn declare(&mut self, name: Option<&'a str>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(name);
        }
    }

    pub(super) fn class_declaration(&mut self) -> Parsed {
        let name = self.peek();
        if name.kind == Kind::Name {
            self.declare(Some(self.slice(name.start, name.end)));
        }
        self.class()
    }

    /// `enum Name { … }` or `const enum Name { … }`.
    ///
    /// - `start`: of the statement, with `export` before it.
    pub(super) fn enumeration(&mut self, start: usize, is_exported: bool) -> Parsed {
        self.eat_word("const")?;
        self.expect_word("enum")?;
        let name = self.declared_name()?;
        self.expect("{")?;
        self.blank_from(start);
        let open = self.opened(name, is_exported);
        self.insert(start, open);
        let mut before = None;
        while !self.is("}") {
            before = Some(self.enum_member(name, before)?);
        }
        self.closed(name, is_exported)
    }

    /// A member with the comma behind it. Returns its key, quoted, and its number if it is known.
    ///
    /// - `before`: the same of the member before it.
    fn enum_member(&mut self, name: &str, before: Option<Member>) -> Parsed<Member> {
        let start = self.token.start;
        let is_computed = self.eat("[")?;
        let word = self.word();
        let (key, plain) = match self.token.kind {
            Kind::Name if !is_computed => (format!("\"{word}\""), word),
            Kind::Text => (word.to_owned(), word.trim_matches(['"', '\''])),
            _ => return Err(self.unexpected("the name of a member")),
        };
        self.advance()?;
        if is_computed {
            self.expect("]")?;
        }
        let mut number = match &before {
            None => Some(0),
            Some(before) => before.number.and_then(|it| it.checked_add(1)),
        };
        if self.eat("=")? {
            self.blank_from(start);
            let value = self.token;
            self.insert(value.start, format!("if(typeof({name}[{key}]=("));
            let references = self.references.len();
            self.assignment()?;
            self.qualify_members(name, references);
            let end = self.previous;
            self.insert(end, format!("))!==\"string\"){name}[{name}[{key}]]={key};"));
            number = self.slice(value.start, end).parse().ok();
        } else {
            self.blank_from(start);
            let value = match (number, before) {
                (Some(number), _) => number.to_string(),
                (None, Some(before)) => format!("{name}[{}]+1", before.key),
                (None, None) => "0".to_owned(),
            };
            self.insert(start, format!("{name}[{name}[{key}]={value}]={key};"));
        }
        if !self.is("}") {
            let comma = self.token.start;
            self.expect(",")?;
            self.blank_from(comma);
        }
        self.member_names(name).insert(plain);
        Ok(Member { key, number })
    }

    fn member_names(&mut self, name: &str) -> &mut std::collections::HashSet<&'a str> {
        // The names of enums are slices of the text, which `declared_name` has put there.
        let known = self.members.keys().copied().find(|it| *it == name);
        self.members.entry(known.unwrap_or_default()).or_default()
    }

    /// Members are read by their names alone within their enum.
    ///
    /// - `first`: of the references of the value.
    fn qualify_members(&mut self, name: &str, first: usize) {
        let Some(members) = self.members.get(name) else {
            return;
        };
        let references = self.references.split_off(first);
        let (own, others): (Vec<_>, Vec<_>) = references
            .into_iter()
            .partition(|(start, end)| members.contains(self.slice(*start, *end)));
        self.references.extend(others);
        for (start, _) in own {
            self.insert(start, format!("{name}."));
        }
    }

    /// `namespace A.B { … }`; one that has only types is blanked.
    ///
    /// - `start`: of the statement, with `export` before it.
    pub(super) fn namespace(&mut self, start: usize, is_exported: bool) -> Parsed {
        self.advance()?;
        if self.token.kind == Kind::Text {
            return Self::refuse(
                start,
                "a module in quotes has types only: write `declare module`",
            );
        }
        let mark = (self.edits.len(), self.insertions.len());
        let outermost = self.word();
        let was_value = self.values.contains(outermost);
        let was_declared = self.scopes.last().is_some_and(|it| it.contains(outermost));
        let mut names = vec![self.declared_name()?];
        while self.eat(".")? {
            names.push(self.word());
            if self.token.kind != Kind::Name {
                return Err(self.unexpected("a name"));
            }
            self.advance()?;
        }
        if !self.is("{") {
            return Err(self.unexpected("`{`"));
        }
        let brace = self.token.end;
        let mut opening = self.opened(outermost, is_exported);
        for name in names.iter().skip(1) {
            opening.push_str("let ");
            opening.push_str(name);
            opening.push_str(";(function(");
            opening.push_str(name);
            opening.push_str("){");
        }
        self.insert(start, opening);
        self.edits.push(Edit::Blank(start, brace));
        let depth = self.namespaces.len();
        self.namespaces.extend(&names);
        let mut has_values = false;
        self.block_of(|it| {
            let statement = it.token.start;
            let is_empty = it.is(";");
            it.statement()?;
            has_values |= !is_empty && !it.is_blanked(statement);
            Ok(())
        })?;
        self.namespaces.truncate(depth);
        let end = self.previous;
        if !has_values {
            self.edits.truncate(mark.0);
            self.insertions.truncate(mark.1);
            if !was_value {
                self.values.remove(outermost);
            }
            if let (false, Some(scope)) = (was_declared, self.scopes.last_mut()) {
                scope.remove(outermost);
            }
            self.types.insert(outermost);
            self.blank_whole(start);
            return Ok(());
        }
        self.edits.push(Edit::Blank(end - 1, end));
        for pair in names.windows(2).rev() {
            if let [outer, inner] = pair {
                self.insert(
                    end,
                    format!("}})({inner}={outer}.{inner}||({outer}.{inner}={{}}));"),
                );
            }
        }
        let closing = self.closing(outermost, is_exported);
        self.insert(end, closing);
        Ok(())
    }

    /// `export` within a namespace: what is declared becomes a property of it.
    ///
    /// - `start`: of `export`; the token is that behind it.
    pub(super) fn namespace_export(&mut self, namespace: &'a str, start: usize) -> Parsed {
        match self.word() {
            "function" | "async" => {
                self.edits.push(Edit::Blank(start, self.token.start));
                let at = self.token.start;
                let mut name = self.peek();
                if self.is_word("async") || self.slice(name.start, name.end) == "*" {
                    name = super::tokens::next(self.text, name.end)?;
                    if self.slice(name.start, name.end) == "*" {
                        name = super::tokens::next(self.text, name.end)?;
                    }
                }
                let name = self.slice(name.start, name.end);
                self.function(FunctionKind::Declaration, start)?;
                if !self.is_blanked(start) {
                    // Functions are there before the first statement.
                    self.insert(at, format!(";{namespace}.{name}={name};"));
                }
                Ok(())
            }
            "const" if self.peek_word_is("enum") => self.enumeration(start, true),
            "const" | "let" | "var" => {
                let is_constant = self.is_word("const");
                self.edits.push(Edit::Blank(start, self.token.start));
                self.variables(true)?;
                let end = self.previous;
                for name in std::mem::take(&mut self.bound) {
                    let text = if is_constant {
                        format!(";{namespace}.{name}={name};")
                    } else {
                        format!(
                            ";Object.defineProperty({namespace},\"{name}\",{{enumerable:true,configurable:true,get(){{return {name}}},set(_){{{name}=_}}}});"
                        )
                    };
                    self.insert(end, text);
                }
                Ok(())
            }
            "class" | "abstract" => {
                if self.is_word("abstract") {
                    self.advance()?;
                }
                self.edits.push(Edit::Blank(start, self.token.start));
                let name = self.peek();
                let name = self.slice(name.start, name.end);
                self.class_declaration()?;
                self.insert(self.previous, format!(";{namespace}.{name}={name};"));
                Ok(())
            }
            "import" => {
                self.edits.push(Edit::Blank(start, self.token.start));
                let name = self.peek();
                let imports = self.imports.len();
                self.import()?;
                // Not of types.
                if self.imports.len() > imports {
                    self.references.push((name.start, name.end));
                    let name = self.slice(name.start, name.end);
                    self.insert(self.previous, format!(";{namespace}.{name}={name};"));
                }
                Ok(())
            }
            _ if self.type_declaration(start)? => Ok(()),
            _ => Self::refuse(
                start,
                "a namespace exports declarations only: write `export` before the declaration",
            ),
        }
    }

    /// `import Name = A.B`, from the `=` on: a constant, unless only types use it.
    ///
    /// - `start`: of `import`.
    pub(super) fn import_alias(&mut self, start: usize, local: (usize, usize)) -> Parsed {
        self.advance()?;
        if self.is_word("require") && self.peek_is("(") {
            return Self::refuse(
                start,
                "`import … = require()` is not supported: write `import name from \"module\"`",
            );
        }
        self.assignment()?;
        self.end_of_statement()?;
        for (at, character) in (start..).zip(*b"const ") {
            self.edits.push(Edit::Put(at, character));
        }
        self.imports.push(Import {
            statement: (start, self.previous),
            names: vec![Imported {
                local,
                specifier: local,
            }],
            had_types: false,
        });
        Ok(())
    }

    /// Blanks the modifiers of a parameter that is a property, and notes it.
    pub(super) fn property_modifiers(&mut self) -> Parsed {
        let start = self.token.start;
        let mut is_property = false;
        while PROPERTY_MODIFIERS.contains(&self.word()) && self.peek().kind == Kind::Name {
            self.advance()?;
            is_property = true;
        }
        if is_property {
            self.edits.push(Edit::Blank(start, self.token.start));
            self.properties.push(self.word());
        }
        Ok(())
    }

    /// A body that begins with the assignments of parameters that are properties; in a derived class, after `super()`.
    pub(super) fn constructor_body(&mut self, properties: &[&str]) -> Parsed {
        let mut place = self.token.end;
        let mut has_super = false;
        self.block_of(|it| {
            let is_super = !has_super && it.is_word("super") && it.peek_is("(");
            it.statement()?;
            if is_super {
                place = it.previous;
                has_super = true;
            }
            Ok(())
        })?;
        if !properties.is_empty() {
            let assignments = properties.iter().map(|name| format!("this.{name}={name};"));
            self.insert(place, format!(";{}", assignments.collect::<String>()));
        }
        Ok(())
    }

    /// The name of an enum or namespace.
    fn declared_name(&mut self) -> Parsed<&'a str> {
        if self.token.kind != Kind::Name {
            return Err(self.unexpected("a name"));
        }
        let name = self.word();
        self.values.insert(name);
        self.members.entry(name).or_default();
        self.advance()?;
        Ok(name)
    }

    /// The declaration, if there is none yet, and the start of its function.
    fn opened(&mut self, name: &'a str, is_exported: bool) -> String {
        let is_extended = self.scopes.last().is_some_and(|it| it.contains(name));
        self.declare(Some(name));
        let declaration = match (is_extended, is_exported && self.namespaces.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("export let {name}"),
            (false, false) => format!("let {name}"),
        };
        format!("{declaration};(function({name}){{")
    }

    /// Takes the closing bracket, and calls its function.
    fn closed(&mut self, name: &str, is_exported: bool) -> Parsed {
        let bracket = self.token.start;
        self.expect("}")?;
        self.blank_from(bracket);
        let closing = self.closing(name, is_exported);
        self.insert(self.previous, closing);
        Ok(())
    }

    fn closing(&self, name: &str, is_exported: bool) -> String {
        match self.namespaces.last() {
            Some(namespace) if is_exported => {
                format!("}})({name}={namespace}.{name}||({namespace}.{name}={{}}));")
            }
            _ => format!("}})({name}||({name}={{}}));"),
        }
    }
}

/// A member of an enum.
struct Member {
    /// As a literal of a text.
    key: String,
    number: Option<i64>,
}
