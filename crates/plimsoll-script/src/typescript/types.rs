//! Types. The callers blank what these rules take.

use super::expressions::Level;
use super::tokens::Kind;
use super::{Parsed, Stripper};

/// Types without parameters.
const PREDEFINED: [&str; 12] = [
    "any",
    "bigint",
    "boolean",
    "never",
    "null",
    "number",
    "object",
    "string",
    "symbol",
    "undefined",
    "unknown",
    "void",
];

impl Stripper<'_> {
    /// Any type.
    pub(super) fn type_(&mut self) -> Parsed {
        let has_none = std::mem::take(&mut self.has_no_conditional_types);
        let result = self.nested(Self::any_type);
        self.has_no_conditional_types = has_none;
        result
    }

    fn any_type(&mut self) -> Parsed {
        if self.is_function_type() {
            return self.function_type();
        }
        self.union()?;
        let is_conditional = self.is_word("extends") && !self.token.is_first_of_line;
        if !is_conditional || self.has_no_conditional_types {
            return Ok(());
        }
        self.advance()?;
        self.type_without_conditional()?;
        self.expect("?")?;
        self.type_()?;
        self.expect(":")?;
        self.type_()
    }

    fn type_without_conditional(&mut self) -> Parsed {
        let has_none = std::mem::replace(&mut self.has_no_conditional_types, true);
        let result = self.nested(Self::any_type);
        self.has_no_conditional_types = has_none;
        result
    }

    /// The type of a result: also `x is T` and `asserts x is T`.
    pub(super) fn result_type(&mut self) -> Parsed {
        if self.is_word("asserts") {
            let next = self.peek();
            let is_name = next.kind == Kind::Name && !next.is_first_of_line;
            if is_name && self.slice(next.start, next.end) != "is" {
                self.advance()?;
                if !self.predicate_follows() {
                    return self.advance();
                }
            }
        }
        if self.predicate_follows() {
            self.advance()?;
            self.advance()?;
        }
        self.type_()
    }

    fn predicate_follows(&self) -> bool {
        let next = self.peek();
        self.token.kind == Kind::Name
            && next.kind == Kind::Name
            && !next.is_first_of_line
            && self.slice(next.start, next.end) == "is"
    }

    /// Types with commas between them.
    pub(super) fn types_list(&mut self) -> Parsed {
        self.type_()?;
        while self.eat(",")? {
            self.type_()?;
        }
        Ok(())
    }

    /// `<A, B>` of a use.
    pub(super) fn type_arguments(&mut self) -> Parsed {
        self.open_angle()?;
        self.types_list()?;
        self.expect(">")
    }

    /// `<`, also as the first half of `<<`.
    fn open_angle(&mut self) -> Parsed {
        if self.is("<<") {
            return self.advance_from(self.token.start + 1);
        }
        self.expect("<")
    }

    /// `<const A extends B = C>` of a declaration.
    pub(super) fn type_parameters(&mut self) -> Parsed {
        self.open_angle()?;
        while !self.is(">") {
            while matches!(self.word(), "const" | "in" | "out")
                && self.peek().kind == Kind::Name
                && !self.next_is_extends()
            {
                self.advance()?;
            }
            if self.token.kind != Kind::Name {
                return Err(self.unexpected("the name of a type parameter"));
            }
            self.advance()?;
            if self.eat_word("extends")? {
                self.type_()?;
            }
            if self.eat("=")? {
                self.type_()?;
            }
            if !self.is(">") {
                self.expect(",")?;
            }
        }
        self.advance()
    }

    fn next_is_extends(&self) -> bool {
        let next = self.peek();
        self.slice(next.start, next.end) == "extends"
    }

    fn is_function_type(&self) -> bool {
        match self.word() {
            "<" | "<<" => self.token.kind == Kind::Punctuation,
            "new" => true,
            "abstract" => {
                let next = self.peek();
                self.slice(next.start, next.end) == "new"
            }
            "(" => self.is_parameter_list(),
            _ => false,
        }
    }

    /// Brackets with parameters, not around a type: decided by what is at their start.
    fn is_parameter_list(&self) -> bool {
        use super::tokens::next;
        let first = self.peek();
        let word = self.slice(first.start, first.end);
        let text = self.text;
        if matches!(word, ")" | "...") {
            return true;
        }
        let Ok(second) = (match word {
            "{" | "[" => after_brackets(text, first.start),
            "void" | "null" | "true" | "false" | "typeof" | "new" | "import" => return false,
            _ if first.kind == Kind::Name => next(text, first.end),
            _ => return false,
        }) else {
            return false;
        };
        match self.slice(second.start, second.end) {
            ":" | "," | "?" | "=" => true,
            ")" => next(text, second.end).is_ok_and(|it| self.slice(it.start, it.end) == "=>"),
            _ => false,
        }
    }

    fn function_type(&mut self) -> Parsed {
        self.eat_word("abstract")?;
        self.eat_word("new")?;
        if self.is("<") || self.is("<<") {
            self.type_parameters()?;
        }
        self.parameters(false)?;
        self.expect("=>")?;
        self.result_type()
    }

    fn union(&mut self) -> Parsed {
        if !self.eat("|")? {
            self.eat("&")?;
        }
        loop {
            if self.is_function_type() {
                self.function_type()?;
            } else {
                self.operator_type()?;
            }
            if !self.eat("|")? && !self.eat("&")? {
                return Ok(());
            }
            // A second one may lead a list within.
            self.eat("|")?;
        }
    }

    fn operator_type(&mut self) -> Parsed {
        if self.is_word("infer") && self.peek().kind == Kind::Name {
            return self.inferred();
        }
        let is_operator = matches!(self.word(), "keyof" | "unique" | "readonly")
            && self.token.kind == Kind::Name
            && {
                let next = self.peek();
                let word = self.slice(next.start, next.end);
                matches!(
                    next.kind,
                    Kind::Name | Kind::Text | Kind::Template | Kind::Number
                ) || matches!(word, "(" | "[" | "{")
            };
        if is_operator {
            self.advance()?;
            return self.nested(Self::operator_type);
        }
        self.primary_type()?;
        while self.is("[") && !self.token.is_first_of_line {
            self.advance()?;
            if !self.is("]") {
                self.type_()?;
            }
            self.expect("]")?;
        }
        Ok(())
    }

    /// `infer U`, with a constraint unless its `extends` is that of a conditional type.
    fn inferred(&mut self) -> Parsed {
        self.advance()?;
        self.advance()?;
        if !self.is_word("extends") {
            return Ok(());
        }
        let mark = self.mark();
        self.advance()?;
        let constraint = self.type_without_conditional();
        match constraint {
            Ok(()) if self.has_no_conditional_types || !self.is("?") => Ok(()),
            Err(rejection) if rejection.is_final => Err(rejection),
            _ => {
                self.go_back(&mark);
                Ok(())
            }
        }
    }

    fn primary_type(&mut self) -> Parsed {
        match self.token.kind {
            Kind::Text | Kind::Number => self.advance(),
            Kind::Template => self.template(Level::Type),
            Kind::Name => self.named_type(),
            Kind::Punctuation if self.is("-") => {
                self.advance()?;
                self.advance()
            }
            Kind::Punctuation if self.is("(") => {
                self.advance()?;
                self.type_()?;
                self.expect(")")
            }
            Kind::Punctuation if self.is("[") => self.tuple(),
            Kind::Punctuation if self.is("{") => self.object_type(),
            _ => Err(self.unexpected("a type")),
        }
    }

    fn named_type(&mut self) -> Parsed {
        if self.is_word("typeof") {
            self.advance()?;
        }
        if self.eat_word("import")? {
            self.expect("(")?;
            self.type_()?;
            if self.eat(",")? {
                self.assignment()?;
            }
            self.expect(")")?;
        } else if self.token.kind == Kind::Name {
            let takes_none = PREDEFINED.contains(&self.word()) && !self.peek_is(".");
            self.advance()?;
            if takes_none {
                // `1 as number < 2` compares.
                return Ok(());
            }
        } else {
            return Err(self.unexpected("a name"));
        }
        while self.eat(".")? {
            if !matches!(self.token.kind, Kind::Name | Kind::Private) {
                return Err(self.unexpected("a name"));
            }
            self.advance()?;
        }
        if (self.is("<") || self.is("<<")) && !self.token.is_first_of_line {
            self.type_arguments()?;
        }
        Ok(())
    }

    fn tuple(&mut self) -> Parsed {
        self.advance()?;
        while !self.is("]") {
            self.eat("...")?;
            let next = self.peek();
            let after = super::tokens::next(self.text, next.end).unwrap_or_default();
            let is_optional = self.slice(next.start, next.end) == "?"
                && self.slice(after.start, after.end) == ":";
            if self.token.kind == Kind::Name && (self.peek_is(":") || is_optional) {
                self.advance()?;
                self.eat("?")?;
                self.expect(":")?;
            }
            self.type_()?;
            self.eat("?")?;
            if !self.is("]") {
                self.expect(",")?;
            }
        }
        self.advance()
    }

    /// Members in braces: an object, an interface or a mapped type.
    pub(super) fn object_type(&mut self) -> Parsed {
        self.expect("{")?;
        while !self.is("}") {
            self.object_type_member()?;
            let is_separated = self.eat(",")? || self.eat(";")?;
            if !is_separated && !self.is("}") && !self.token.is_first_of_line {
                return Err(self.unexpected("`;`"));
            }
        }
        self.advance()
    }

    pub(super) fn object_type_member(&mut self) -> Parsed {
        if self.is("+") || self.is("-") {
            self.advance()?;
        }
        let is_modifier = matches!(self.word(), "readonly" | "get" | "set");
        if is_modifier && self.is_modifier_of_property() {
            self.advance()?;
        }
        if self.is_word("new") && (self.peek_is("(") || self.peek_is("<")) {
            self.advance()?;
        }
        if self.is("[") {
            self.bracketed_name()?;
        } else if !self.is("(") && !self.is("<") {
            self.property_name()?;
        }
        if self.is("+") || self.is("-") {
            self.advance()?;
        }
        self.eat("?")?;
        if self.is("(") || self.is("<") {
            return self.signature(false);
        }
        if self.eat(":")? {
            self.type_()?;
        }
        Ok(())
    }

    /// `[key: string]`, `[K in Keys as Name]` or `[Symbol.iterator]`.
    fn bracketed_name(&mut self) -> Parsed {
        self.advance()?;
        if self.token.kind == Kind::Name && self.peek_is(":") {
            self.advance()?;
            self.advance()?;
            self.type_()?;
            return self.expect("]");
        }
        let next = self.peek();
        if self.token.kind == Kind::Name && self.slice(next.start, next.end) == "in" {
            self.advance()?;
            self.advance()?;
            self.type_()?;
            if self.eat_word("as")? {
                self.type_()?;
            }
            return self.expect("]");
        }
        self.assignment()?;
        self.expect("]")
    }
}

/// The token after a pair of brackets.
fn after_brackets(text: &str, start: usize) -> Parsed<super::tokens::Token> {
    let mut depth = 0_u32;
    let mut at = start;
    loop {
        let token = super::tokens::next(text, at)?;
        if token.kind == Kind::End {
            return Ok(token);
        }
        match text.get(token.start..token.end) {
            Some("{" | "[") => depth += 1,
            Some("}" | "]") => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = token.end;
        if depth == 0 {
            return super::tokens::next(text, at);
        }
    }
}
