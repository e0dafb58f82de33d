//! Composite literals of Go, as its tests write tables of cases: structs, slices and maps of texts, numbers and names.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::{Map, Value};

/// What a name stands for.
pub(super) type Names<'n> = &'n dyn Fn(&str) -> Option<&'static str>;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Text(String),
    Name(String),
    Number(i64),
    Sign(char),
}

/// The values of all literals of a type, those of slices of it one by one: structs and maps as objects.
pub(super) fn values(source: &str, type_name: &str, names: Names<'_>) -> Vec<Value> {
    let tokens = tokens(source);
    let mut all = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [Token::Name(name), Token::Sign('{')] = pair else {
            continue;
        };
        if name.rsplit('.').next() != Some(type_name) {
            continue;
        }
        let rest = tokens.get(at + 1..).unwrap_or_default();
        let mut reader = Reader { rest, names };
        match reader.composite() {
            Some(Value::Array(items)) => all.extend(items),
            Some(one) => all.push(one),
            None => {}
        }
    }
    all
}

/// All texts of a source.
pub(super) fn texts(source: &str) -> Vec<String> {
    let all = tokens(source).into_iter();
    let texts = all.filter_map(|it| match it {
        Token::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn tokens(source: &str) -> Vec<Token> {
    static TOKEN: OnceLock<Regex> = OnceLock::new();
    let token = TOKEN.get_or_init(|| {
        Regex::new(
            r#"(?s)//[^\n]*|/\*.*?\*/|\s+|("(?:\\.|[^"\\])*")|`([^`]*)`|([A-Za-z_][A-Za-z0-9_.]*)|([0-9]+)|(.)"#,
        )
        .expect("the expression is right")
    });
    let found = token.captures_iter(source).filter_map(|it| {
        let group = |at| it.get(at).map(|it| it.as_str());
        if let Some(text) = group(1) {
            // Texts of these tests have no escapes but those of JSON.
            return Some(Token::Text(serde_json::from_str(text).ok()?));
        }
        if let Some(text) = group(2) {
            return Some(Token::Text(text.to_owned()));
        }
        if let Some(name) = group(3) {
            return Some(Token::Name(name.to_owned()));
        }
        if let Some(number) = group(4) {
            return Some(Token::Number(number.parse().ok()?));
        }
        group(5)?.chars().next().map(Token::Sign)
    });
    found.collect()
}

struct Reader<'t> {
    rest: &'t [Token],
    names: Names<'t>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn takes(&mut self, sign: char) -> bool {
        let is_it = self.rest.first() == Some(&Token::Sign(sign));
        if is_it {
            self.next();
        }
        is_it
    }

    /// `{ … }`: an object if it has keys.
    fn composite(&mut self) -> Option<Value> {
        if !self.takes('{') {
            return None;
        }
        let (mut fields, mut items) = (Map::new(), Vec::new());
        while !self.takes('}') {
            let value = self.value()?;
            if self.takes(':') {
                let key = value.as_str()?.to_owned();
                let value = self.value()?;
                fields.insert(key, value);
            } else {
                items.push(value);
            }
            self.takes(',');
        }
        Some(if items.is_empty() {
            Value::Object(fields)
        } else {
            Value::Array(items)
        })
    }

    fn value(&mut self) -> Option<Value> {
        if self.rest.first() == Some(&Token::Sign('{')) {
            return self.composite();
        }
        match self.next()? {
            Token::Sign('&' | '*') => self.value(),
            Token::Sign('[') => self.takes(']').then(|| self.value())?,
            Token::Sign(_) => None,
            Token::Text(text) => Some(Value::from(text.as_str())),
            Token::Number(number) => Some(Value::from(*number)),
            Token::Name(name) if name == "map" => {
                // `[string]T`
                while self.rest.first() != Some(&Token::Sign('{')) {
                    self.next()?;
                }
                self.composite()
            }
            Token::Name(name) => match self.rest.first() {
                Some(Token::Sign('{')) => self.composite(),
                Some(Token::Sign('(')) => self.call(),
                _ => {
                    let own = name.rsplit('.').next().unwrap_or(name);
                    Some(Value::from((self.names)(own).unwrap_or(own)))
                }
            },
        }
    }

    /// A call, whose value is not known.
    fn call(&mut self) -> Option<Value> {
        let mut depth = 0;
        loop {
            match self.next()? {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') if depth == 1 => return Some(Value::Null),
                Token::Sign(')') => depth -= 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_of_go_are_read() {
        let source = r#"
            cases := []http.ExpectedResponse{{
                // A remark, with "text".
                Request: http.Request{Path: "/a", Headers: map[string]string{"X-A": "1"}},
                Backend: suite.BackendOne,
                Codes:   []int{301, 302},
            }, {
                Request: Request{Path: `/b`}, Percent: ptr.To(int32(20)), Other: &Other{},
            }}
            one := http.ExpectedResponse{Backend: unknown}
        "#;
        let names = |name: &str| (name == "BackendOne").then_some("one");
        assert_eq!(
            values(source, "ExpectedResponse", &names),
            [
                json!({"Request": {"Path": "/a", "Headers": {"X-A": "1"}}, "Backend": "one", "Codes": [301, 302]}),
                json!({"Request": {"Path": "/b"}, "Percent": null, "Other": {}}),
                json!({"Backend": "unknown"}),
            ]
        );
    }
}
