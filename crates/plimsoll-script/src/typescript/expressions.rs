//! Expressions.

use super::statements::FunctionKind;
use super::tokens::{self, Kind, TemplatePart};
use super::{Edit, Parsed, Stripper};

/// The expression between the braces of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Expressions.
    Value,
    /// Types.
    Type,
}

/// Precedence of `<`, `instanceof` and `as`.
const RELATIONAL: u8 = 8;

/// Above that of every operator: an operand.
const OPERAND: u8 = u8::MAX;

/// Precedence of the operators that take two operands; a higher one binds tighter.
fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "??" => 1,
        "||" => 2,
        "&&" => 3,
        "|" => 4,
        "^" => 5,
        "&" => 6,
        "==" | "!=" | "===" | "!==" => 7,
        "<" | ">" | "<=" | ">=" | "instanceof" | "in" => RELATIONAL,
        "<<" | ">>" | ">>>" => 9,
        "+" | "-" => 10,
        "*" | "/" | "%" => 11,
        "**" => 12,
        _ => return None,
    })
}

fn is_assignment(operator: &str) -> bool {
    matches!(
        operator,
        "=" | "+="
            | "-="
            | "*="
            | "/="
            | "%="
            | "**="
            | "<<="
            | ">>="
            | ">>>="
            | "&="
            | "|="
            | "^="
            | "&&="
            | "||="
            | "??="
    )
}

impl Stripper<'_> {
    /// Expressions with commas between them.
    pub(super) fn expression(&mut self) -> Parsed {
        self.assignment()?;
        while self.eat(",")? {
            self.assignment()?;
        }
        Ok(())
    }

    /// An expression without commas.
    pub(super) fn assignment(&mut self) -> Parsed {
        self.nested(Self::any_assignment)
    }

    fn any_assignment(&mut self) -> Parsed {
        if self.is_word("yield") {
            return self.yielded();
        }
        if self.arrow_function()? {
            return Ok(());
        }
        self.binary(0)?;
        if self.eat("?")? {
            let has_no_in = std::mem::take(&mut self.has_no_in);
            let is_in_branch = std::mem::replace(&mut self.is_in_branch, true);
            self.assignment()?;
            self.has_no_in = has_no_in;
            self.is_in_branch = is_in_branch;
            self.expect(":")?;
            return self.assignment();
        }
        self.join_greater();
        if self.token.kind == Kind::Punctuation && is_assignment(self.word()) {
            self.advance()?;
            return self.assignment();
        }
        Ok(())
    }

    fn yielded(&mut self) -> Parsed {
        self.advance()?;
        if self.token.is_first_of_line {
            return Ok(());
        }
        if self.eat("*")? {
            return self.assignment();
        }
        let ends = matches!(self.word(), ")" | "]" | "}" | "," | ";" | ":" | "in" | "of");
        if ends || self.token.kind == Kind::End {
            return Ok(());
        }
        self.assignment()
    }

    /// Within brackets, what was special about the expression around them is over.
    fn bracketed<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let has_no_in = std::mem::take(&mut self.has_no_in);
        let is_in_branch = std::mem::take(&mut self.is_in_branch);
        let result = rule(self)?;
        self.has_no_in = has_no_in;
        self.is_in_branch = is_in_branch;
        Ok(result)
    }

    /// An arrow function, if there is one here.
    fn arrow_function(&mut self) -> Parsed<bool> {
        let next_is_arrow = |it: &Self| it.peek_is("=>") && !it.peek().is_first_of_line;
        if self.token.kind == Kind::Name && next_is_arrow(self) {
            self.advance()?;
            self.advance()?;
            return self.arrow_body().map(|()| true);
        }
        let mut starts = self.is("(") || self.is("<");
        if self.is_word("async") {
            let next = self.peek();
            let word = self.slice(next.start, next.end);
            starts = !next.is_first_of_line
                && (matches!(word, "(" | "<") || (next.kind == Kind::Name && word != "function"));
        }
        let place = (self.token.start, self.is_in_branch);
        if !starts || self.not_arrows.contains(&place) {
            return Ok(false);
        }
        let mark = self.mark();
        let mut has_arrow = false;
        match self.whole_arrow_function(&mut has_arrow) {
            Ok(()) => Ok(true),
            Err(rejection) if rejection.is_final => Err(rejection),
            // After `=>` it is one, and what is wrong is in its body; unless the `:` before was that of a conditional.
            Err(rejection) if has_arrow && !mark.is_in_branch => Err(rejection),
            Err(_) => {
                self.go_back(&mark);
                self.not_arrows.insert(place);
                Ok(false)
            }
        }
    }

    fn whole_arrow_function(&mut self, has_arrow: &mut bool) -> Parsed {
        let is_in_branch = self.is_in_branch;
        self.eat_word("async")?;
        if self.token.kind == Kind::Name {
            self.binding()?;
            self.expect("=>")?;
            *has_arrow = true;
            return self.arrow_body();
        }
        let type_start = self.token.start;
        if self.is("<") {
            self.type_parameters()?;
            self.blank_from(type_start);
            // A line must not end between `async` or `return` and the parameters.
            if self.is("(") && self.has_newline(type_start, self.token.start) {
                let bracket = self.token;
                self.edits.push(Edit::Blank(bracket.start, bracket.end));
                self.edits.push(Edit::Put(type_start, b'('));
            }
        }
        self.parameters(false)?;
        let bracket = self.previous - 1;
        let has_type = self.is(":");
        if has_type {
            let start = self.token.start;
            self.advance()?;
            self.result_type()?;
            self.blank_from(start);
            // Nor between the parameters and the arrow.
            if self.has_newline(bracket, self.previous) {
                self.edits.push(Edit::Blank(bracket, bracket + 1));
                let last = self.last_before(self.previous);
                self.edits.push(Edit::Put(last, b')'));
            }
        }
        if self.token.is_first_of_line {
            return Err(self.unexpected("`=>` in the same line"));
        }
        self.expect("=>")?;
        *has_arrow = true;
        self.arrow_body()?;
        if has_type && is_in_branch && !self.is(":") {
            return Err(self.unexpected("`:`"));
        }
        Ok(())
    }

    fn arrow_body(&mut self) -> Parsed {
        if self.is("{") {
            return self.nested(Self::block);
        }
        self.assignment()
    }

    /// `>` with what follows it, as one operator.
    fn join_greater(&mut self) {
        if !self.is(">") {
            return;
        }
        let after = self.text.get(self.token.start..).unwrap_or_default();
        let operators = [">>>=", ">>>", ">>=", ">>", ">="];
        if let Some(found) = operators.iter().find(|it| after.starts_with(**it)) {
            self.token.end = self.token.start + found.len();
        }
    }

    /// Operands with operators that bind tighter than `least`.
    fn binary(&mut self, least: u8) -> Parsed {
        self.unary()?;
        let mut loosest = OPERAND;
        loop {
            self.join_greater();
            let is_cast = self.is_word("as") || self.is_word("satisfies");
            if is_cast && !self.token.is_first_of_line {
                if RELATIONAL <= least {
                    return Ok(());
                }
                self.cast()?;
                continue;
            }
            let is_operator = self.token.kind == Kind::Punctuation
                || self.is_word("instanceof")
                || (self.is_word("in") && !self.has_no_in);
            let found = precedence(self.word()).filter(|_| is_operator);
            // `**` takes what is to its right first.
            let Some(level) = found.filter(|it| *it > least || (*it == 12 && least == 12)) else {
                return Ok(());
            };
            if level > loosest {
                return Self::refuse(
                    self.token.start,
                    "without its type, this expression would mean something else: put brackets around `… as …`",
                );
            }
            loosest = level;
            self.advance()?;
            self.nested(|it| it.binary(level))?;
        }
    }

    /// `as` or `satisfies` with its type.
    fn cast(&mut self) -> Parsed {
        let start = self.token.start;
        self.advance()?;
        if !self.eat_word("const")? {
            self.type_()?;
        }
        self.blank_from(start);
        let goes_on = self.is("(") || self.is("[") || self.token.kind == Kind::Template;
        if goes_on && self.token.is_first_of_line {
            // The type ended the statement here; the value alone would be called.
            self.edits.push(Edit::Put(start, b';'));
        }
        Ok(())
    }

    fn unary(&mut self) -> Parsed {
        let is_operator = match self.token.kind {
            Kind::Punctuation => matches!(self.word(), "+" | "-" | "!" | "~" | "++" | "--"),
            Kind::Name => match self.word() {
                "typeof" | "void" | "delete" => true,
                "await" => !matches!(self.peek().kind, Kind::End) && !self.is_name_alone(),
                _ => false,
            },
            _ => false,
        };
        if is_operator {
            self.advance()?;
            return self.nested(Self::unary);
        }
        if self.is("<") {
            return self.assertion();
        }
        self.left_hand_side()?;
        if (self.is("++") || self.is("--")) && !self.token.is_first_of_line {
            self.advance()?;
        }
        Ok(())
    }

    /// The word is a name and no operator: nothing follows that could be an operand.
    fn is_name_alone(&self) -> bool {
        let next = self.peek();
        next.kind == Kind::Punctuation
            && matches!(
                self.slice(next.start, next.end),
                ")" | "]" | "}" | "," | ";" | ":" | "." | "=" | "=>" | "?"
            )
    }

    /// `<Type>value`.
    fn assertion(&mut self) -> Parsed {
        let start = self.token.start;
        self.advance()?;
        if !self.eat_word("const")? {
            self.type_()?;
        }
        self.expect(">")?;
        self.blank_from(start);
        if self.has_newline(start, self.token.start) {
            return Self::refuse(
                start,
                "write `value as Type` where the type takes several lines",
            );
        }
        self.nested(Self::unary)
    }

    /// An operand with calls, members and type arguments.
    pub(super) fn left_hand_side(&mut self) -> Parsed {
        if self.is_word("new") {
            self.nested(Self::construction)?;
        } else {
            self.primary()?;
        }
        self.tail(true)
    }

    fn construction(&mut self) -> Parsed {
        self.advance()?;
        if self.eat(".")? {
            // `new.target`
            return self.advance();
        }
        if self.is_word("new") {
            self.nested(Self::construction)?;
        } else {
            self.primary()?;
        }
        self.tail(false)?;
        if self.is("(") {
            self.arguments()?;
        }
        Ok(())
    }

    fn tail(&mut self, has_calls: bool) -> Parsed {
        loop {
            if self.eat(".")? {
                self.member_name()?;
            } else if self.is("?.") && has_calls {
                self.advance()?;
                if self.is("<") {
                    let start = self.token.start;
                    self.type_arguments()?;
                    self.blank_from(start);
                }
                if self.token.kind == Kind::Name || self.token.kind == Kind::Private {
                    self.advance()?;
                } else if !self.is("(") && !self.is("[") && self.token.kind != Kind::Template {
                    return Err(self.unexpected("a name"));
                }
            } else if self.is("[") {
                self.advance()?;
                self.bracketed(Self::expression)?;
                self.expect("]")?;
            } else if self.is("(") && has_calls {
                self.arguments()?;
            } else if self.token.kind == Kind::Template {
                self.template(Level::Value)?;
            } else if self.is("!") && !self.token.is_first_of_line {
                let start = self.token.start;
                self.advance()?;
                self.blank_from(start);
            } else if self.is("<") || self.is("<<") {
                if !self.call_type_arguments()? {
                    return Ok(());
                }
            } else {
                return Ok(());
            }
        }
    }

    fn member_name(&mut self) -> Parsed {
        if matches!(self.token.kind, Kind::Name | Kind::Private) {
            return self.advance();
        }
        Err(self.unexpected("the name of a property"))
    }

    fn arguments(&mut self) -> Parsed {
        self.bracketed(|it| {
            it.expect("(")?;
            while !it.is(")") {
                it.eat("...")?;
                it.assignment()?;
                if !it.is(")") {
                    it.expect(",")?;
                }
            }
            Ok(())
        })?;
        self.advance()
    }

    /// Type arguments of a call, a `new`, a tagged template or a function that is not called; `false` if `<` is a comparison.
    ///
    /// Decided by the next token, by the rule of TypeScript's `canFollowTypeArgumentsInExpression`.
    fn call_type_arguments(&mut self) -> Parsed<bool> {
        let start = self.token.start;
        if self.not_arguments.contains(&start) {
            return Ok(false);
        }
        let mark = self.mark();
        let is_list = match self.type_arguments() {
            Ok(()) => self.can_follow_type_arguments(),
            Err(rejection) if rejection.is_final => return Err(rejection),
            Err(_) => false,
        };
        if is_list {
            self.blank_from(start);
        } else {
            self.go_back(&mark);
            self.not_arguments.insert(start);
        }
        Ok(is_list)
    }

    fn can_follow_type_arguments(&self) -> bool {
        let after = self.text.get(self.previous..).unwrap_or_default();
        if after.starts_with(['>', '=']) {
            return false;
        }
        match self.token.kind {
            Kind::Template | Kind::End => true,
            _ if self.token.is_first_of_line => !self.is("<") && !self.is("+") && !self.is("-"),
            Kind::Name => matches!(self.word(), "in" | "instanceof" | "as" | "satisfies"),
            Kind::Punctuation => !matches!(
                self.word(),
                "<" | ">" | "+" | "-" | "[" | "{" | "~" | "!" | "++" | "--" | "@"
            ),
            _ => false,
        }
    }

    /// A template, with what is between its braces.
    pub(super) fn template(&mut self, level: Level) -> Parsed {
        let mut at = self.token.start + 1;
        loop {
            match tokens::template_part(self.text, at)? {
                TemplatePart::Last(end) => return self.advance_from(end),
                TemplatePart::Substitution(start) => {
                    self.advance_from(start)?;
                    match level {
                        Level::Value => self.bracketed(Self::expression)?,
                        Level::Type => self.type_()?,
                    }
                    if !self.is("}") {
                        return Err(self.unexpected("`}`"));
                    }
                    at = self.token.end;
                }
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        match self.token.kind {
            Kind::Number | Kind::Text | Kind::Private => self.advance(),
            Kind::Template => self.template(Level::Value),
            Kind::Name => self.named(),
            Kind::End => Err(self.unexpected("an expression")),
            Kind::Punctuation => match self.word() {
                "(" => {
                    self.advance()?;
                    self.bracketed(Self::expression)?;
                    self.expect(")")
                }
                "[" => self.array(),
                "{" => self.object(),
                "/" | "/=" => {
                    let end = tokens::regular_expression(self.text, self.token.start)?;
                    self.advance_from(end)
                }
                "@" => self.refuse_decorator(),
                _ => Err(self.unexpected("an expression")),
            },
        }
    }

    fn named(&mut self) -> Parsed {
        match self.word() {
            "function" => self.function(FunctionKind::Expression, self.token.start),
            "async" if self.is_async_function() => {
                self.function(FunctionKind::Expression, self.token.start)
            }
            "class" => self.class(),
            _ => {
                self.references.push((self.token.start, self.token.end));
                self.advance()
            }
        }
    }

    fn array(&mut self) -> Parsed {
        self.bracketed(|it| {
            it.advance()?;
            while !it.is("]") {
                if it.eat(",")? {
                    continue;
                }
                it.eat("...")?;
                it.assignment()?;
                if !it.is("]") {
                    it.expect(",")?;
                }
            }
            Ok(())
        })?;
        self.advance()
    }

    fn object(&mut self) -> Parsed {
        self.bracketed(|it| {
            it.advance()?;
            while !it.is("}") {
                it.property()?;
                if !it.is("}") {
                    it.expect(",")?;
                }
            }
            Ok(())
        })?;
        self.advance()
    }

    fn property(&mut self) -> Parsed {
        if self.eat("...")? {
            return self.assignment();
        }
        while matches!(self.word(), "get" | "set" | "async") && self.is_modifier_of_property() {
            self.advance()?;
        }
        self.eat("*")?;
        if self.token.kind == Kind::Name
            && (self.peek_is(",") || self.peek_is("}") || self.peek_is("="))
        {
            self.references.push((self.token.start, self.token.end));
            self.advance()?;
            if self.eat("=")? {
                self.assignment()?;
            }
            return Ok(());
        }
        self.property_name()?;
        if self.is("(") || self.is("<") {
            self.signature(false)?;
            return self.nested(Self::block);
        }
        self.expect(":")?;
        self.assignment()
    }

    /// The next token is the name of a method or accessor.
    pub(super) fn is_modifier_of_property(&self) -> bool {
        let next = self.peek();
        match next.kind {
            Kind::Name | Kind::Text | Kind::Number | Kind::Private => true,
            Kind::Punctuation => matches!(self.slice(next.start, next.end), "[" | "*"),
            Kind::End | Kind::Template => false,
        }
    }

    pub(super) fn property_name(&mut self) -> Parsed {
        match self.token.kind {
            Kind::Name | Kind::Text | Kind::Number | Kind::Private => self.advance(),
            _ if self.is("[") => {
                self.advance()?;
                self.bracketed(Self::assignment)?;
                self.expect("]")
            }
            _ => Err(self.unexpected("the name of a property")),
        }
    }
}
