//! Classes.

use super::tokens::Kind;
use super::{Edit, Parsed, Stripper};

/// Modifiers of members that are types only.
const TYPE_MODIFIERS: [&str; 6] = [
    "public",
    "private",
    "protected",
    "readonly",
    "override",
    "abstract",
];

impl Stripper<'_> {
    /// A class as declaration or expression.
    pub(super) fn class(&mut self) -> Parsed {
        self.nested(Self::any_class)
    }

    fn any_class(&mut self) -> Parsed {
        self.expect_word("class")?;
        let is_name =
            self.token.kind == Kind::Name && !matches!(self.word(), "extends" | "implements");
        if is_name {
            self.values.insert(self.word());
            self.advance()?;
        }
        self.type_parameters_if_any()?;
        if self.eat_word("extends")? {
            self.left_hand_side()?;
            if self.is("<") {
                let start = self.token.start;
                self.type_arguments()?;
                self.blank_from(start);
            }
        }
        if self.is_word("implements") {
            let start = self.token.start;
            self.advance()?;
            self.types_list()?;
            self.blank_from(start);
        }
        let (has_no_in, is_in_branch) = (self.has_no_in, self.is_in_branch);
        self.has_no_in = false;
        self.is_in_branch = false;
        self.expect("{")?;
        while !self.is("}") {
            if !self.eat(";")? {
                self.member()?;
            }
        }
        self.has_no_in = has_no_in;
        self.is_in_branch = is_in_branch;
        self.advance()
    }

    fn member(&mut self) -> Parsed {
        if self.is("@") {
            return self.refuse_decorator();
        }
        let start = self.token.start;
        let mut is_type = false;
        let mut first_blank = None;
        let mut is_kept = false;
        loop {
            let word = self.word();
            if self.token.kind != Kind::Name {
                break;
            }
            if word == "static" && self.peek_is("{") {
                self.advance()?;
                return self.block();
            }
            let is_kept_modifier = matches!(word, "static" | "get" | "set" | "async" | "accessor");
            let is_type_modifier = TYPE_MODIFIERS.contains(&word) || word == "declare";
            if !(is_kept_modifier || is_type_modifier) || !self.is_modifier_of_property() {
                break;
            }
            // On a line of its own, such a word is a field; `static`, `get` and `set` go on.
            let goes_on = matches!(word, "static" | "get" | "set");
            if self.peek().is_first_of_line && !goes_on {
                break;
            }
            is_type |= matches!(word, "declare" | "abstract");
            let modifier = self.token.start;
            self.advance()?;
            if is_type_modifier {
                self.blank_from(modifier);
                first_blank = first_blank.or(Some(modifier));
            }
            is_kept |= is_kept_modifier;
        }
        if let Some(blank) = first_blank
            && !is_kept
            && matches!(self.word(), "[" | "*" | "in" | "instanceof")
        {
            // The modifier kept the field before it, if that has no semicolon, apart from this member.
            self.edits.push(Edit::Put(blank, b';'));
        }
        if self.is_index_signature() {
            self.object_type_member()?;
            self.end_of_statement()?;
            self.blank_whole(start);
            return Ok(());
        }
        self.eat("*")?;
        let is_constructor = matches!(self.word(), "constructor" | "\"constructor\"");
        self.property_name()?;
        let marker = self.token.start;
        if self.is("?") || (self.is("!") && !self.token.is_first_of_line) {
            self.advance()?;
            self.blank_from(marker);
        }
        if self.is("(") || self.is("<") {
            let outer = std::mem::take(&mut self.properties);
            self.signature(is_constructor && !is_type)?;
            let properties = std::mem::replace(&mut self.properties, outer);
            if self.is("{") && !is_type {
                return self.nested(|it| it.constructor_body(&properties));
            }
            self.end_of_statement()?;
            self.blank_whole(start);
            return Ok(());
        }
        self.field((start, marker), is_type)
    }

    /// The rest of a field: its type and value.
    ///
    /// - `start`: of the member, and of what is after its name.
    fn field(&mut self, (start, marker): (usize, usize), is_type: bool) -> Parsed {
        if self.eat(":")? {
            self.type_()?;
        }
        self.blank_from(marker);
        let had_type = self.previous > marker;
        if self.eat("=")? {
            self.assignment()?;
        } else if had_type && !self.is(";") && !is_type {
            // `get: number` before a method would make an accessor of it.
            self.edits.push(Edit::Put(marker, b';'));
        }
        self.end_of_statement()?;
        if is_type {
            self.blank_whole(start);
        }
        Ok(())
    }

    /// `[key: string]: Type`.
    fn is_index_signature(&self) -> bool {
        if !self.is("[") {
            return false;
        }
        let name = self.peek();
        let after = super::tokens::next(self.text, name.end).unwrap_or_default();
        name.kind == Kind::Name && self.slice(after.start, after.end) == ":"
    }
}
