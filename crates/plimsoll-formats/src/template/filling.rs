//! Values in the places of variables.

use super::{Part, Template};

/// The maximum depth of variables in variables; circles must end.
const DEEPEST: u32 = 16;

/// The most that values may add to a text, in bytes and places: values that stand for several others multiply.
const LONGEST: usize = 16 << 20;

/// A variable that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingVariable {
    /// Nothing gives it one.
    #[error("`{{{{{0}}}}}` has no value")]
    Unknown(String),
    /// Its value contains itself.
    #[error("the value of `{{{{{0}}}}}` contains itself")]
    Circular(String),
    /// Values before it have already added 16 MiB.
    #[error("the values of variables up to `{{{{{0}}}}}` take more than 16 MiB")]
    TooLong(String),
}

impl Template {
    /// The same with the values of its variables in their places; otherwise all variables that have none, each once.
    ///
    /// - `value`: what a name stands for; `None` leaves it a variable.
    /// - `stays`: whether such a variable gets its value later.
    pub fn fill(
        &self,
        value: &dyn Fn(&str) -> Option<Self>,
        stays: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Vec<MissingVariable>> {
        let mut filling = Filling {
            value,
            stays,
            filled: Self::default(),
            added: 0,
            unknown: Vec::new(),
        };
        match filling.add(self, DEEPEST) {
            Err(wrong) => Err(vec![wrong]),
            Ok(()) if filling.unknown.is_empty() => Ok(filling.filled),
            Ok(()) => {
                let unknown = filling.unknown.into_iter();
                Err(unknown.map(MissingVariable::Unknown).collect())
            }
        }
    }
}

struct Filling<'a> {
    value: &'a dyn Fn(&str) -> Option<Template>,
    stays: &'a dyn Fn(&str) -> bool,
    filled: Template,
    /// Bytes and places that are of values.
    added: usize,
    unknown: Vec<String>,
}

impl Filling<'_> {
    /// Fails at once where more would be added without end.
    fn add(&mut self, template: &Template, depth: u32) -> Result<(), MissingVariable> {
        for part in &template.parts {
            if depth < DEEPEST {
                self.added += match part {
                    Part::Text(text) => text.len(),
                    _ => 1,
                };
            }
            match part {
                Part::Text(text) => self.filled.push_text(text),
                Part::Generator(_) | Part::Response(_) => self.filled.parts.push(part.clone()),
                Part::Variable(name) => match (self.value)(name) {
                    Some(_) if depth == 0 => return Err(MissingVariable::Circular(name.clone())),
                    Some(_) if self.added > LONGEST => {
                        return Err(MissingVariable::TooLong(name.clone()));
                    }
                    Some(value) => self.add(&value, depth - 1)?,
                    None if (self.stays)(name) => self.filled.parts.push(part.clone()),
                    None if self.unknown.contains(name) => {}
                    None => self.unknown.push(name.clone()),
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    fn value(name: &str) -> Option<Template> {
        match name {
            "host" => Some(parsed("http://{{name}}:80")),
            "name" => Some(Template::literal("example.org")),
            "loop" => Some(parsed("{{loop}}")),
            "both" => Some(parsed("{{one}}{{name}}{{two}}")),
            // Each is forty of the next: together more than any memory.
            "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" | "l" | "m" | "n" => {
                let next = char::from(name.as_bytes()[0] + 1);
                Some(parsed(&format!("{{{{{next}}}}}").repeat(40)))
            }
            "o" => Some(Template::literal("end")),
            _ => None,
        }
    }

    fn fill(text: &str) -> Result<Template, Vec<MissingVariable>> {
        parsed(text).fill(&value, &|name| name == "user")
    }

    #[test]
    fn variables_may_be_made_of_one_another() {
        let filled = fill("{{host}}/{{user}}/x").unwrap();
        assert_eq!(filled.to_string(), "http://example.org:80/{{user}}/x");
        assert_eq!(filled.as_text(), None);
    }

    #[test]
    fn all_that_have_no_value_are_named_once() {
        let unknown = |names: &[&str]| {
            let names = names.iter();
            let unknown = names.map(|name| MissingVariable::Unknown((*name).to_owned()));
            Err(unknown.collect())
        };
        assert_eq!(fill("{{other}}"), unknown(&["other"]));
        assert_eq!(
            fill("{{both}} {{two}} {{three}} {{user}}"),
            unknown(&["one", "two", "three"])
        );
    }

    #[test]
    fn values_without_end_are_refused() {
        let circular = vec![MissingVariable::Circular("loop".into())];
        assert_eq!(fill("{{loop}}{{loop}}"), Err(circular));
        let refused = fill("{{a}}").unwrap_err();
        assert!(
            matches!(refused.as_slice(), [MissingVariable::TooLong(_)]),
            "{refused:?}"
        );
    }

    #[test]
    fn a_long_text_of_its_own_has_room_for_values() {
        let mut long = Template::literal(vec![b'x'; LONGEST + 1]);
        long.push(parsed("{{name}}{{host}}"));
        let filled = long.fill(&value, &|_| false).unwrap();
        let text = filled.as_text().unwrap();
        assert!(text.ends_with(b"xexample.orghttp://example.org:80"));
    }
}
