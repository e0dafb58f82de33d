//! Statements, declarations, imports and exports.

use std::collections::HashSet;

use super::expressions::Level;
use super::tokens::Kind;
use super::{Import, Imported, Parsed, Stripper};

/// Modifiers before a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionKind {
    /// A statement: without a body it is one of several signatures.
    Declaration,
    Expression,
}

/// A name in the braces of an import or an export.
enum Specifier {
    Value(Imported),
    /// Where its local name stands.
    Type((usize, usize)),
}

impl Stripper<'_> {
    /// The whole text.
    pub(super) fn module(&mut self) -> Parsed {
        self.advance()?;
        while self.token.kind != Kind::End {
            self.statement()?;
        }
        Ok(())
    }

    pub(super) fn block(&mut self) -> Parsed {
        self.block_of(Self::statement)
    }

    /// - `statement`: reads one of the block.
    pub(super) fn block_of(&mut self, mut statement: impl FnMut(&mut Self) -> Parsed) -> Parsed {
        // What holds for an expression does not for the functions in it.
        let (has_no_in, is_in_branch) = (self.has_no_in, self.is_in_branch);
        self.has_no_in = false;
        self.is_in_branch = false;
        self.expect("{")?;
        self.scopes.push(HashSet::new());
        while !self.is("}") {
            statement(self)?;
        }
        self.scopes.pop();
        self.has_no_in = has_no_in;
        self.is_in_branch = is_in_branch;
        self.advance()
    }

    pub(super) fn statement(&mut self) -> Parsed {
        self.nested(Self::any_statement)
    }

    fn any_statement(&mut self) -> Parsed {
        if self.is("{") {
            return self.block();
        }
        if self.eat(";")? {
            return Ok(());
        }
        if self.token.kind != Kind::Name {
            return self.expression_statement();
        }
        if self.peek_is(":") {
            self.advance()?;
            self.advance()?;
            return self.statement();
        }
        match self.word() {
            "const" if self.peek_word_is("enum") => self.enumeration(self.token.start, false),
            "var" | "const" => self.variables(true),
            "let" if self.is_declaration_next() => self.variables(true),
            "function" => self.function(FunctionKind::Declaration, self.token.start),
            "async" if self.is_async_function() => {
                self.function(FunctionKind::Declaration, self.token.start)
            }
            "class" => self.class_declaration(),
            "if" => {
                self.advance()?;
                self.condition()?;
                self.statement()?;
                if self.eat_word("else")? {
                    self.statement()?;
                }
                Ok(())
            }
            "for" => self.for_loop(),
            "while" | "with" => {
                self.advance()?;
                self.condition()?;
                self.statement()
            }
            "do" => {
                self.advance()?;
                self.statement()?;
                self.expect_word("while")?;
                self.condition()?;
                self.eat(";").map(drop)
            }
            "return" | "throw" => {
                self.advance()?;
                if !self.is_at_end() {
                    self.expression()?;
                }
                self.end_of_statement()
            }
            "break" | "continue" => {
                self.advance()?;
                if self.token.kind == Kind::Name && !self.token.is_first_of_line {
                    self.advance()?;
                }
                self.end_of_statement()
            }
            "debugger" => {
                self.advance()?;
                self.end_of_statement()
            }
            "switch" => self.switch(),
            "try" => self.try_statement(),
            "import" if !self.peek_is("(") && !self.peek_is(".") => self.import(),
            "export" => self.export(),
            _ => {
                if self.type_declaration(self.token.start)? {
                    return Ok(());
                }
                self.expression_statement()
            }
        }
    }

    fn expression_statement(&mut self) -> Parsed {
        self.expression()?;
        self.end_of_statement()
    }

    fn is_at_end(&self) -> bool {
        self.token.is_first_of_line || self.is(";") || self.is("}") || self.token.kind == Kind::End
    }

    /// A semicolon, or what stands for one.
    pub(super) fn end_of_statement(&mut self) -> Parsed {
        if self.eat(";")? || self.is_at_end() {
            return Ok(());
        }
        Err(self.unexpected("the end of the statement"))
    }

    fn condition(&mut self) -> Parsed {
        self.expect("(")?;
        self.expression()?;
        self.expect(")")
    }

    pub(super) fn peek_word_is(&self, name: &str) -> bool {
        let next = self.peek();
        next.kind == Kind::Name && self.slice(next.start, next.end) == name
    }

    /// `let` is also a name.
    fn is_declaration_next(&self) -> bool {
        let next = self.peek();
        match next.kind {
            Kind::Name => !matches!(
                self.slice(next.start, next.end),
                "in" | "of" | "instanceof" | "as" | "satisfies"
            ),
            _ => matches!(self.slice(next.start, next.end), "{" | "["),
        }
    }

    pub(super) fn is_async_function(&self) -> bool {
        self.is_word("async") && self.peek_word_is("function") && !self.peek().is_first_of_line
    }

    /// - `ends`: it is a statement, and not the head of a loop.
    pub(super) fn variables(&mut self, ends: bool) -> Parsed {
        self.advance()?;
        self.bound.clear();
        loop {
            self.binding()?;
            let start = self.token.start;
            if self.is("!") && !self.token.is_first_of_line {
                self.advance()?;
            }
            if self.eat(":")? {
                self.type_()?;
            }
            self.blank_from(start);
            if self.eat("=")? {
                self.initializer()?;
            }
            if !self.eat(",")? {
                break;
            }
        }
        if ends {
            self.end_of_statement()
        } else {
            Ok(())
        }
    }

    /// A value of a variable, whose own variables and parameters are not bound where it is.
    fn initializer(&mut self) -> Parsed {
        let bound = std::mem::take(&mut self.bound);
        self.assignment()?;
        self.bound = bound;
        Ok(())
    }

    /// A name or pattern that is declared.
    pub(super) fn binding(&mut self) -> Parsed {
        self.nested(Self::any_binding)
    }

    fn any_binding(&mut self) -> Parsed {
        if self.token.kind == Kind::Name {
            self.values.insert(self.word());
            self.bound.push(self.word());
            return self.advance();
        }
        if self.eat("[")? {
            while !self.is("]") {
                if self.eat(",")? {
                    continue;
                }
                self.eat("...")?;
                self.binding_with_default()?;
                if !self.is("]") {
                    self.expect(",")?;
                }
            }
            return self.advance();
        }
        if self.eat("{")? {
            while !self.is("}") {
                if self.eat("...")? {
                    self.binding()?;
                } else if self.token.kind == Kind::Name && !self.peek_is(":") {
                    self.binding_with_default()?;
                } else {
                    self.property_name()?;
                    self.expect(":")?;
                    self.binding_with_default()?;
                }
                if !self.is("}") {
                    self.expect(",")?;
                }
            }
            return self.advance();
        }
        Err(self.unexpected("a name"))
    }

    fn binding_with_default(&mut self) -> Parsed {
        self.binding()?;
        if self.eat("=")? {
            let has_no_in = std::mem::take(&mut self.has_no_in);
            self.initializer()?;
            self.has_no_in = has_no_in;
        }
        Ok(())
    }

    /// `function` or `async function`; a declaration without a body is blanked from `start`.
    pub(super) fn function(&mut self, kind: FunctionKind, start: usize) -> Parsed {
        self.eat_word("async")?;
        self.expect_word("function")?;
        self.eat("*")?;
        let mut name = None;
        if self.token.kind == Kind::Name {
            name = Some(self.word());
            self.advance()?;
        }
        self.signature(false)?;
        if self.is("{") {
            self.values.extend(name);
            if kind == FunctionKind::Declaration {
                self.declare(name);
            }
            return self.block();
        }
        if kind == FunctionKind::Expression {
            return Err(self.unexpected("`{`"));
        }
        self.end_of_statement()?;
        self.blank_whole(start);
        Ok(())
    }

    /// Type parameters, parameters and the type of the result.
    ///
    /// - `is_constructor`: its parameters may be properties, which it adds to `properties`.
    pub(super) fn signature(&mut self, is_constructor: bool) -> Parsed {
        self.type_parameters_if_any()?;
        self.parameters(is_constructor)?;
        let start = self.token.start;
        if self.eat(":")? {
            self.result_type()?;
            self.blank_from(start);
        }
        Ok(())
    }

    pub(super) fn type_parameters_if_any(&mut self) -> Parsed {
        if self.is("<") {
            let start = self.token.start;
            self.type_parameters()?;
            self.blank_from(start);
        }
        Ok(())
    }

    pub(super) fn parameters(&mut self, is_constructor: bool) -> Parsed {
        let (has_no_in, is_in_branch) = (self.has_no_in, self.is_in_branch);
        self.has_no_in = false;
        self.is_in_branch = false;
        self.expect("(")?;
        while !self.is(")") {
            self.parameter(is_constructor)?;
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        self.has_no_in = has_no_in;
        self.is_in_branch = is_in_branch;
        self.advance()
    }

    fn parameter(&mut self, is_constructor: bool) -> Parsed {
        if self.is("@") {
            return self.refuse_decorator();
        }
        let start = self.token.start;
        if self.is_word("this") {
            self.advance()?;
            if self.eat(":")? {
                self.type_()?;
            }
            // Without the comma after it too; the list goes on as if there were one.
            self.blank_from(start);
            if self.is(",") {
                let comma = self.token;
                self.edits.push(super::Edit::Blank(comma.start, comma.end));
            }
            return Ok(());
        }
        if is_constructor {
            self.property_modifiers()?;
        }
        self.eat("...")?;
        self.binding()?;
        let start = self.token.start;
        self.eat("?")?;
        if self.eat(":")? {
            self.type_()?;
        }
        self.blank_from(start);
        if self.eat("=")? {
            self.assignment()?;
        }
        Ok(())
    }

    fn for_loop(&mut self) -> Parsed {
        self.advance()?;
        self.eat_word("await")?;
        self.expect("(")?;
        self.has_no_in = true;
        let is_declaration = match self.word() {
            "var" | "const" => true,
            "let" => self.is_declaration_next(),
            _ => false,
        };
        if is_declaration {
            self.variables(false)?;
        } else if !self.is(";") {
            self.expression()?;
        }
        self.has_no_in = false;
        if self.eat_word("of")? {
            self.assignment()?;
        } else if self.eat_word("in")? {
            self.expression()?;
        } else {
            self.expect(";")?;
            if !self.is(";") {
                self.expression()?;
            }
            self.expect(";")?;
            if !self.is(")") {
                self.expression()?;
            }
        }
        self.expect(")")?;
        self.statement()
    }

    fn switch(&mut self) -> Parsed {
        self.advance()?;
        self.condition()?;
        self.expect("{")?;
        while !self.is("}") {
            if self.eat_word("case")? {
                self.expression()?;
                self.expect(":")?;
            } else if self.is_word("default") && self.peek_is(":") {
                self.advance()?;
                self.advance()?;
            } else {
                self.statement()?;
            }
        }
        self.advance()
    }

    fn try_statement(&mut self) -> Parsed {
        self.advance()?;
        self.block()?;
        if self.eat_word("catch")? {
            if self.eat("(")? {
                self.binding()?;
                let start = self.token.start;
                if self.eat(":")? {
                    self.type_()?;
                    self.blank_from(start);
                }
                self.expect(")")?;
            }
            self.block()?;
        }
        if self.eat_word("finally")? {
            self.block()?;
        }
        Ok(())
    }

    pub(super) fn refuse_decorator<T>(&self) -> Parsed<T> {
        Self::refuse(
            self.token.start,
            "decorators are not supported: call the function with the class or method instead",
        )
    }

    /// A declaration that is a type only, and that is blanked from `start`; `false` if there is none.
    pub(super) fn type_declaration(&mut self, start: usize) -> Parsed<bool> {
        if self.token.kind != Kind::Name {
            return Ok(false);
        }
        let next = self.peek();
        let next_word = self.slice(next.start, next.end);
        let is_named = next.kind == Kind::Name
            && !next.is_first_of_line
            && !matches!(next_word, "in" | "of" | "instanceof");
        match self.word() {
            "type" if is_named => {
                self.advance()?;
                self.types.insert(self.word());
                self.advance()?;
                if self.is("<") {
                    self.type_parameters()?;
                }
                self.expect("=")?;
                self.type_()?;
                self.end_of_statement()?;
            }
            "interface" if is_named => {
                self.advance()?;
                self.types.insert(self.word());
                self.advance()?;
                if self.is("<") {
                    self.type_parameters()?;
                }
                if self.eat_word("extends")? {
                    self.types_list()?;
                }
                self.object_type()?;
            }
            "abstract" if is_named && next_word == "class" => {
                self.advance()?;
                self.blank_from(start);
                self.class_declaration()?;
                return Ok(true);
            }
            "declare" if is_named => {
                let values = self.values.clone();
                self.advance()?;
                self.ambient()?;
                self.values = values;
            }
            "enum" if is_named => {
                self.enumeration(start, start < self.token.start)?;
                return Ok(true);
            }
            "namespace" | "module"
                if !next.is_first_of_line
                    && matches!(next.kind, Kind::Name | Kind::Text)
                    && next_word != "in" =>
            {
                self.namespace(start, start < self.token.start)?;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.blank_whole(start);
        Ok(true)
    }

    /// The declaration after `declare`.
    fn ambient(&mut self) -> Parsed {
        let is_scope = matches!(self.word(), "namespace" | "module" | "global");
        if is_scope {
            while !self.is("{") && !self.is_at_end() || self.is_word("global") {
                self.advance()?;
            }
            if self.is("{") {
                return self.balanced();
            }
            return self.end_of_statement();
        }
        if self.is_word("enum") || (self.is_word("const") && self.peek_word_is("enum")) {
            while !self.is("{") && self.token.kind != Kind::End {
                self.advance()?;
            }
            return self.balanced();
        }
        self.statement()
    }

    /// Everything between brackets, whatever it is.
    fn balanced(&mut self) -> Parsed {
        let mut depth = 0_u32;
        loop {
            if self.is("{") {
                depth += 1;
            } else if self.is("}") {
                depth = depth.saturating_sub(1);
            } else if self.token.kind == Kind::End {
                return Err(self.unexpected("`}`"));
            } else if self.token.kind == Kind::Template {
                self.template(Level::Type)?;
                continue;
            }
            self.advance()?;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn import(&mut self) -> Parsed {
        let start = self.token.start;
        self.advance()?;
        if self.token.kind == Kind::Text {
            return self.source();
        }
        let mut import = Import {
            statement: (start, start),
            names: Vec::new(),
            had_types: false,
        };
        let mut is_type = self.is_word("type") && {
            let next = self.peek();
            let word = self.slice(next.start, next.end);
            matches!(word, "{" | "*") || (next.kind == Kind::Name && word != "from")
        };
        if self.is_word("type") && self.peek_word_is("from") {
            // `import type from from "x"` imports the type `from`; `import type from "x"` a default export.
            let mark = self.mark();
            self.advance()?;
            is_type = self.peek_word_is("from");
            self.go_back(&mark);
        }
        if is_type {
            self.advance()?;
        }
        if self.token.kind == Kind::Name {
            let local = (self.token.start, self.token.end);
            self.advance()?;
            if self.is("=") {
                if is_type {
                    self.advance()?;
                    self.assignment()?;
                    self.end_of_statement()?;
                    self.blank_whole(start);
                    return Ok(());
                }
                return self.import_alias(start, local);
            }
            let has_more = self.eat(",")?;
            import.names.push(Imported {
                local,
                specifier: (local.0, if has_more { self.previous } else { local.1 }),
            });
        }
        if self.is("*") {
            self.import_namespace(&mut import)?;
        } else if self.is("{") {
            let mut types = Vec::new();
            self.specifiers(|specifier| match specifier {
                Specifier::Value(name) => import.names.push(name),
                Specifier::Type(local) => types.push(local),
            })?;
            import.had_types = !types.is_empty();
            self.know_types(types);
        }
        self.expect_word("from")?;
        self.source()?;
        self.links.push((start, self.previous));
        if is_type {
            self.know_types(import.names.iter().map(|name| name.local));
            self.blank_whole(start);
        } else {
            import.statement.1 = self.previous;
            self.imports.push(import);
        }
        Ok(())
    }

    /// Names of types, which no export makes values.
    fn know_types(&mut self, names: impl IntoIterator<Item = (usize, usize)>) {
        let names = names.into_iter().map(|it| self.slice(it.0, it.1));
        let names: Vec<_> = names.collect();
        self.types.extend(names);
    }

    /// `* as name`, after a default import or alone.
    fn import_namespace(&mut self, import: &mut Import) -> Parsed {
        let star = self.token.start;
        self.advance()?;
        self.expect_word("as")?;
        let local = (self.token.start, self.token.end);
        self.advance()?;
        // A default import keeps its place, and loses the comma if the namespace goes.
        let start = import.names.first().map_or(star, |name| name.local.1);
        for name in &mut import.names {
            name.specifier.1 = star;
        }
        import.names.push(Imported {
            local,
            specifier: (start, local.1),
        });
        Ok(())
    }

    /// `{ a, type b, c as d }`: types are blanked, and all go to `found`.
    fn specifiers(&mut self, mut found: impl FnMut(Specifier)) -> Parsed {
        self.expect("{")?;
        while !self.is("}") {
            let start = self.token.start;
            let mut words = Vec::new();
            while !self.is(",") && !self.is("}") {
                if !matches!(self.token.kind, Kind::Name | Kind::Text) {
                    return Err(self.unexpected("a name"));
                }
                words.push((self.token.start, self.token.end));
                self.advance()?;
            }
            self.eat(",")?;
            let text: Vec<_> = words.iter().map(|it| self.slice(it.0, it.1)).collect();
            // `type as as x` imports `as` as x; `type as x` imports the value `type`.
            let is_value = matches!(text.as_slice(), ["type", "as", _]);
            let is_type = matches!(text.as_slice(), ["type", _, ..]) && !is_value;
            if is_type {
                self.blank_from(start);
            }
            if let Some(local) = words.last() {
                found(if is_type {
                    Specifier::Type(*local)
                } else {
                    Specifier::Value(Imported {
                        local: *local,
                        specifier: (start, self.previous),
                    })
                });
            }
        }
        self.advance()
    }

    /// `"module" with { type: "json" }` and the end of the statement.
    fn source(&mut self) -> Parsed {
        if self.token.kind != Kind::Text {
            return Err(self.unexpected("the module in quotes"));
        }
        self.advance()?;
        let has_attributes = self.is_word("with") || self.is_word("assert");
        if has_attributes && !self.token.is_first_of_line {
            self.advance()?;
            self.assignment()?;
        }
        self.end_of_statement()
    }

    fn export(&mut self) -> Parsed {
        let start = self.token.start;
        self.advance()?;
        if self.is("=") {
            return Self::refuse(
                start,
                "`export =` is more than types: write `export default`",
            );
        }
        if self.is("@") {
            return self.refuse_decorator();
        }
        if let Some(namespace) = self.namespaces.last().copied() {
            return self.namespace_export(namespace, start);
        }
        if self.is("*") {
            self.advance()?;
            if self.eat_word("as")? {
                self.advance()?;
            }
            self.expect_word("from")?;
            self.source()?;
            self.links.push((start, self.previous));
            return Ok(());
        }
        if self.is("{") {
            return self.export_names(start);
        }
        match self.word() {
            "default" => self.export_default(start),
            "type" if self.peek_is("{") || self.peek_is("*") => {
                self.advance()?;
                if self.is("*") {
                    while !self.is_word("from") && self.token.kind != Kind::End {
                        self.advance()?;
                    }
                } else {
                    self.specifiers(|_| ())?;
                }
                if self.eat_word("from")? {
                    self.source()?;
                } else {
                    self.end_of_statement()?;
                }
                self.blank_whole(start);
                Ok(())
            }
            "as" => {
                while !self.is(";") && self.token.kind == Kind::Name {
                    self.advance()?;
                }
                self.end_of_statement()?;
                self.blank_whole(start);
                Ok(())
            }
            "import" => {
                let import = self.imports.len();
                self.import()?;
                // What is exported is used.
                let added = self.imports.get(import..).unwrap_or_default();
                let names = added.iter().flat_map(|it| &it.names);
                self.references.extend(names.map(|name| name.local));
                Ok(())
            }
            "function" | "async" => self.function(FunctionKind::Declaration, start),
            "abstract" => {
                let modifier = self.token.start;
                self.advance()?;
                self.blank_from(modifier);
                self.class_declaration()
            }
            "const" if self.peek_word_is("enum") => self.enumeration(start, true),
            "var" | "let" | "const" => self.variables(true),
            "class" => self.class_declaration(),
            _ => {
                if self.type_declaration(start)? {
                    return Ok(());
                }
                Err(self.unexpected("a declaration"))
            }
        }
    }

    /// - `start`: of the statement.
    fn export_names(&mut self, start: usize) -> Parsed {
        let mut names = Vec::new();
        self.specifiers(|specifier| {
            if let Specifier::Value(name) = specifier {
                names.push(name);
            }
        })?;
        if self.eat_word("from")? {
            self.source()?;
            self.links.push((start, self.previous));
            return Ok(());
        }
        // The local name is the first one of `a as b`.
        for name in &mut names {
            let (from, to) = name.specifier;
            let first = super::tokens::next(self.text, from)?;
            if first.end <= to {
                name.local = (first.start, first.end);
            }
        }
        debug_assert!(names.iter().all(|name| name.local.0 > start));
        self.exports.extend(names);
        self.end_of_statement()
    }

    fn export_default(&mut self, start: usize) -> Parsed {
        self.advance()?;
        if self.is_word("function") || self.is_async_function() {
            return self.function(FunctionKind::Declaration, start);
        }
        if self.is_word("class") {
            return self.class_declaration();
        }
        if self.is_word("abstract") && self.peek_word_is("class") {
            let modifier = self.token.start;
            self.advance()?;
            self.blank_from(modifier);
            return self.class_declaration();
        }
        if self.is_word("interface") && self.type_declaration(start)? {
            return Ok(());
        }
        self.assignment()?;
        self.end_of_statement()
    }
}
