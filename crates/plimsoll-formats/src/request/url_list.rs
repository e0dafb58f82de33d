//! URL lists: one a line, with a method before it or without.

use crate::request::is_token;
use crate::{FileRequest, Place, Remark, RequestFile, Template};

/// Reads a list; empty lines and those that begin with `#` are passed over.
pub(crate) fn parse(text: &str) -> Result<RequestFile, Vec<Remark>> {
    let mut file = RequestFile::default();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let (method, url) = split_method(line);
        match Template::parse(url) {
            Ok(url) => {
                let mut request = FileRequest::new(Place::Line(number), url);
                request.method = method;
                file.requests.push(request);
            }
            Err(error) => problems.push(Remark::line(number, error.to_string())),
        }
    }
    if problems.is_empty() {
        Ok(file)
    } else {
        Err(problems)
    }
}

/// Methods that are known in small letters too.
pub(crate) const METHODS: [&str; 9] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT",
];

/// Takes the method off a line; a word in capitals before a blank is one, and a known one in small letters.
pub(crate) fn split_method(line: &str) -> (Option<String>, &str) {
    let Some((method, url)) = line.split_once(char::is_whitespace) else {
        return (None, line);
    };
    let capitals = method.to_ascii_uppercase();
    let is_method =
        is_token(method) && (capitals == method || METHODS.contains(&capitals.as_str()));
    if is_method {
        (Some(capitals), url.trim_start())
    } else {
        (None, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_comments_and_places() {
        let text = "# sites\nhttp://a/\n\n  DELETE \t http://b/x?{{id}} \nhttp://c/a b\n";
        let file = parse(text).unwrap();
        let lines: Vec<_> = file
            .requests
            .iter()
            .map(|request| {
                let place = &request.place;
                format!("{place} {:?} {}", request.method, request.url)
            })
            .collect();
        assert_eq!(
            lines,
            [
                ":2 None http://a/",
                ":4 Some(\"DELETE\") http://b/x?{{id}}",
                ":5 None http://c/a b",
            ]
        );
    }

    #[test]
    fn every_mistake_is_reported() {
        let problems = parse("http://a/{{\nhttp://b/\nhttp://c/{{$nothing}}").unwrap_err();
        let places: Vec<_> = problems.iter().map(|problem| &problem.place).collect();
        assert_eq!(places, [&Place::Line(1), &Place::Line(3)]);
    }
}
