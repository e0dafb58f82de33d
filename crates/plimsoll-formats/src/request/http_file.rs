//! `.http` files, as editors keep requests in them.
//!
//! Requests are separated by lines that begin with `###`. Each is a request line, header fields, an
//! empty line and a body. `@name = value` gives a value to a variable, `# @name x` a name to the
//! request, `# @weight n` says how often it is picked. Scripts are left out, but for handlers that keep a value of the
//! response.

mod handler;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use self::handler::Handler;
use crate::request::url_list::split_method;
use crate::request::{is_about_connection, is_token};
use crate::template::is_variable;
use crate::{FileRequest, Place, ReadFile, Remark, RequestFile, Template};

/// Reads a file.
pub(crate) fn parse(text: &str, read: ReadFile<'_>) -> Result<RequestFile, Vec<Remark>> {
    let mut reader = Reader {
        read,
        file: RequestFile::default(),
        problems: Vec::new(),
    };
    for block in blocks(text) {
        reader.block(&block);
    }
    if reader.problems.is_empty() {
        Ok(reader.file)
    } else {
        Err(reader.problems)
    }
}

/// The lines between two separators.
#[derive(Debug, Default)]
struct Block<'a> {
    name: Option<&'a str>,
    /// With their numbers.
    lines: Vec<(usize, &'a str)>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![Block::default()];
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("###") {
            let name = name.trim_start_matches('#').trim();
            blocks.push(Block {
                name: (!name.is_empty()).then_some(name),
                lines: Vec::new(),
            });
        } else if let Some(block) = blocks.last_mut() {
            block.lines.push((index + 1, line));
        }
    }
    blocks
}

struct Reader<'a> {
    read: ReadFile<'a>,
    file: RequestFile,
    problems: Vec<Remark>,
}

impl Reader<'_> {
    fn problem(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Remark::line(line, message));
    }

    fn left_out(&mut self, line: usize, message: impl Into<String>) {
        self.file.left_out.push(Remark::line(line, message));
    }

    /// JavaScript is for scripts of k6; the first remark about some says so.
    fn script_left_out(&mut self, line: usize, message: impl Into<String>) {
        const WAY: &str = "values are read in the form `client.global.set(\"name\", response.body.key)`; for others write a script of k6: `plimsoll load --record FILE script.js` begins one";
        let remark = Remark::line(line, message);
        let mut hints = self
            .file
            .left_out
            .iter()
            .filter_map(|it| it.hint.as_deref());
        let is_said = hints.any(|hint| hint == WAY);
        let remark = if is_said { remark } else { remark.hint(WAY) };
        self.file.left_out.push(remark);
    }

    fn template(&mut self, line: usize, text: &str) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => Some(template),
            Err(error) => {
                self.problem(line, error.to_string());
                None
            }
        }
    }

    fn block(&mut self, block: &Block<'_>) {
        let mut lines = block.lines.iter().copied().peekable();
        let mut name = block.name.map(str::to_owned);
        let mut weight = 1;
        // What stands before the request line.
        let (number, line) = loop {
            let Some((number, line)) = lines.next() else {
                return;
            };
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            if let Some(comment) = comment(line) {
                self.directive(number, comment, &mut name, &mut weight);
            } else if let Some(text) = line.strip_prefix("/*") {
                if !text.contains("*/") {
                    while lines.next().is_some_and(|(_, line)| !line.contains("*/")) {}
                }
            } else if opens_script(line) {
                self.script_left_out(number, "a script in `{{ … }}`");
                skip_script(lines.by_ref());
            } else if line.starts_with("< {%") {
                self.script_left_out(number, "a script that runs before the request");
                while !line_ends_script(line)
                    && lines.next_if(|(_, line)| !line_ends_script(line)).is_some()
                {
                }
                if !line_ends_script(line) {
                    lines.next();
                }
            } else if let Some(definition) = line.strip_prefix('@') {
                self.variable(number, definition);
            } else {
                break (number, line);
            }
        };
        let (method, url) = split_method(line);
        if let Some((_, flag)) = OTHER_CALLS
            .iter()
            .find(|(name, _)| method.as_deref() == Some(*name))
        {
            let message = format!("`{}`, which is no request of HTTP", shortened(line));
            let remark = Remark::line(number, message);
            self.file.left_out.push(remark.hint(*flag));
            return;
        }
        let (mut url, version) = split_version(url);
        if version.is_some_and(|version| !version.starts_with("HTTP/1")) {
            self.left_out(number, "the protocol version; flags decide it");
        }
        // A long URL may go on in further lines.
        let mut continued = String::new();
        let mut is_open = url.ends_with(['?', '&']);
        while let Some((_, line)) = lines.next_if(|(_, line)| {
            let goes_on = is_open || line.trim_start().starts_with(['?', '&', '/']);
            line.starts_with([' ', '\t']) && !line.trim().is_empty() && goes_on
        }) {
            if continued.is_empty() {
                url.clone_into(&mut continued);
            }
            continued.push_str(line.trim());
            is_open = continued.ends_with(['?', '&']);
        }
        if !continued.is_empty() {
            url = &continued;
        }
        let Some(url) = self.template(number, url) else {
            return;
        };
        let mut request = FileRequest::new(Place::Line(number), url);
        request.method = method;
        let mut has_body = false;
        while let Some((number, line)) = lines.next_if(|(_, line)| !is_about_response(line.trim()))
        {
            let trimmed = line.trim();
            if trimmed.is_empty() {
                has_body = true;
                break;
            }
            if let Some(text) = comment(trimmed) {
                self.directive(number, text, &mut name, &mut weight);
            } else if opens_script(trimmed) {
                self.script_left_out(number, "a script in `{{ … }}`");
                skip_script(lines.by_ref());
            } else {
                self.header(number, trimmed, &mut request);
            }
        }
        if has_body || lines.peek().is_some() {
            let lines: Vec<_> = lines.collect();
            self.body(&lines, &mut request);
        }
        request.name = name;
        request.weight = weight;
        self.file.requests.push(request);
    }

    /// `@name x`, `@weight 3`; any other comment is one.
    fn directive(&mut self, line: usize, text: &str, name: &mut Option<String>, weight: &mut u32) {
        let Some(directive) = text.strip_prefix('@') else {
            return;
        };
        let (key, value) = directive
            .split_once(char::is_whitespace)
            .unwrap_or((directive, ""));
        let value = value.trim().trim_start_matches('=').trim();
        match key {
            "name" if !value.is_empty() => *name = Some(value.to_owned()),
            "name" => self.problem(line, "`@name` without a name"),
            "weight" => match value.parse() {
                Ok(number) if number > 0 => *weight = number,
                _ => self.problem(line, "`@weight` takes a whole number above zero"),
            },
            key => self.left_out(line, format!("`@{key}`, which is for editors")),
        }
    }

    fn variable(&mut self, line: usize, definition: &str) {
        let Some((name, value)) = definition.split_once('=') else {
            self.problem(line, "a variable is written `@name = value`");
            return;
        };
        let name = name.trim();
        if !is_variable(name) {
            self.problem(line, format!("`{name}` is not the name of a variable"));
        } else if let Some(value) = self.template(line, value.trim()) {
            self.file.variables.push((name.to_owned(), value));
        }
    }

    fn header(&mut self, line: usize, text: &str, request: &mut FileRequest) {
        let Some((name, value)) = text.split_once(':') else {
            self.problem(
                line,
                format!(
                    "`{text}` is not of the form `Name: value`; a body stands behind an empty line"
                ),
            );
            return;
        };
        let name = name.trim();
        if !is_token(name) {
            self.problem(line, format!("`{name}` is not the name of a header field"));
        } else if is_about_connection(name) {
            self.left_out(
                line,
                format!("header `{name}`, which is set from the connection and the body"),
            );
        } else if name.eq_ignore_ascii_case("authorization")
            && let Some(login) = login(value.trim())
        {
            self.login(line, name, login, request);
        } else if name.eq_ignore_ascii_case("x-request-type")
            && value.trim().eq_ignore_ascii_case("graphql")
        {
            let hint = "write the query into a JSON body: {\"query\": \"…\"}";
            let message = "`X-REQUEST-TYPE: GraphQL`, by which editors make JSON of the body";
            self.problems.push(Remark::line(line, message).hint(hint));
        } else if let Some(value) = self.template(line, value.trim()) {
            request.headers.push((name.to_owned(), value));
        }
    }

    /// A user and a password, which editors encode.
    fn login(
        &mut self,
        line: usize,
        name: &str,
        (scheme, user, password): (&str, &str, &str),
        request: &mut FileRequest,
    ) {
        if !scheme.eq_ignore_ascii_case("basic") {
            let message = format!(
                "`{scheme}` with a user and a password, which editors answer a challenge with"
            );
            let hint = "give the login by --digest USER:PASSWORD";
            self.problems.push(Remark::line(line, message).hint(hint));
        } else if user.contains("{{") || password.contains("{{") {
            let message = "a login is encoded as a whole, so a variable cannot be filled in; write the value, or give it by --basic-auth";
            self.problem(line, message);
        } else {
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            let value = Template::literal(format!("Basic {encoded}"));
            request.headers.push((name.to_owned(), value));
        }
    }

    fn body(&mut self, lines: &[(usize, &str)], request: &mut FileRequest) {
        let kind = BodyKind::from_request(request);
        let mut body = Template::default();
        let mut pending = String::new();
        let mut is_empty = true;
        let mut rest = lines.iter();
        // Line breaks that only count when something follows them.
        let mut breaks = 0;
        let mut first_line = None;
        while let Some((number, line)) = rest.next() {
            if opens_script(line) {
                self.script_left_out(*number, "a script in `{{ … }}`");
                skip_script(rest.by_ref().copied());
                continue;
            }
            if let Some(script) = line.strip_prefix("> {%") {
                let mut script = script.to_owned();
                if !line_ends_script(line) {
                    for (_, line) in rest.by_ref() {
                        script.push('\n');
                        script.push_str(line);
                        if line_ends_script(line) {
                            break;
                        }
                    }
                }
                let script = script.trim_end();
                self.handler(
                    *number,
                    script.strip_suffix("%}").unwrap_or(script),
                    request,
                );
                continue;
            }
            if is_about_response(line) {
                self.left_out(*number, "what is to be done with the response");
                continue;
            }
            if line.trim().is_empty() {
                if !is_empty {
                    breaks += 1;
                }
                continue;
            }
            if kind.has_remarks() && comment(line.trim_start()).is_some() {
                continue;
            }
            // Some write variables between two requests without a separator.
            if let (true, Some(definition)) = (is_empty, line.strip_prefix('@'))
                && definition.contains('=')
            {
                self.variable(*number, definition);
                continue;
            }
            if is_request_line(line) {
                let request = shortened(line);
                let message = format!(
                    "the request `{request}`: without `###` before it, it is part of a body"
                );
                self.left_out(*number, message);
            }
            if !is_empty {
                for _ in 0..=breaks {
                    pending.push_str(kind.line_break());
                }
            }
            breaks = 0;
            is_empty = false;
            first_line.get_or_insert(*number);
            match included(line) {
                None => pending.push_str(kind.line(line)),
                Some((is_template, path)) => {
                    let text = std::mem::take(&mut pending);
                    if let Some(text) = self.template(*number, &text) {
                        body.push(text);
                    }
                    body.push(self.include(*number, path, is_template));
                }
            }
        }
        if is_empty {
            return;
        }
        let line = first_line.unwrap_or_default();
        if let Some(text) = self.template(line, &pending) {
            body.push(text);
        }
        request.body = Some(body);
    }

    fn handler(&mut self, line: usize, script: &str, request: &mut FileRequest) {
        let Handler {
            sets,
            computed,
            has_more,
        } = Handler::parse(script);
        request.sets.extend(sets);
        for name in computed {
            let message = format!("`{name}`, which a script computes from the response");
            self.script_left_out(line, message);
        }
        if has_more {
            self.script_left_out(line, "a script that handles the response");
        }
    }

    fn include(&mut self, line: usize, path: &str, is_template: bool) -> Template {
        match (self.read)(path) {
            Err(error) => {
                self.problem(line, error.to_string());
                Template::default()
            }
            Ok(content) if is_template => {
                let text = String::from_utf8_lossy(&content).into_owned();
                self.template(line, &text).unwrap_or_default()
            }
            Ok(content) => Template::literal(content),
        }
    }
}

/// Calls that editors send besides requests of HTTP, with what does so here.
const OTHER_CALLS: [(&str, &str); 4] = [
    (
        "GRPC",
        "`plimsoll load --grpc SERVICE/METHOD -d JSON URL` makes calls of gRPC",
    ),
    (
        "WEBSOCKET",
        "`plimsoll load -d TEXT ws://…` sends messages over WebSockets",
    ),
    ("GRAPHQL", "write `POST URL` with the query in a JSON body"),
    ("RSOCKET", "there is nothing that makes calls of RSocket"),
];

/// Whether a line of a body looks like the request line of the next request.
fn is_request_line(line: &str) -> bool {
    let Some((method, url)) = line.split_once(' ') else {
        return false;
    };
    crate::request::url_list::METHODS.contains(&method)
        && ["http://", "https://", "{{", "/"]
            .iter()
            .any(|start| url.starts_with(start))
}

/// Scheme, user and password of `Basic user password`, `Basic user:password` or `Digest user password`, as editors take them. What is
/// encoded already has neither a blank nor a colon.
fn login(value: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = value.split_once(char::is_whitespace)?;
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    let rest = rest.trim();
    if let Some((user, password)) = rest.split_once(char::is_whitespace) {
        let is_digest = scheme.eq_ignore_ascii_case("digest") && !user.contains('=');
        return (is_basic || is_digest).then_some((scheme, user, password.trim()));
    }
    let (user, password) = rest.split_once(':').filter(|_| is_basic)?;
    Some((scheme, user, password))
}

fn shortened(line: &str) -> String {
    line.chars().take(60).collect()
}

/// The separator of a body's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    /// As they are, without remarks.
    Text,
    /// As they are: a text may have lines that look like remarks.
    Plain,
    /// Parts of a form are separated by CR LF (RFC 2046, section 5.1).
    Multipart,
    /// Fields of a form may stand on lines of their own.
    UrlEncoded,
}

impl BodyKind {
    fn from_request(request: &FileRequest) -> Self {
        let content_type = request
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let content_type = content_type.map(|(_, value)| value.to_string().to_ascii_lowercase());
        match content_type.as_deref() {
            Some(text) if text.starts_with("multipart/") => Self::Multipart,
            Some(text) if text.starts_with("application/x-www-form-urlencoded") => Self::UrlEncoded,
            Some(text) if text.starts_with("text/") => Self::Plain,
            _ => Self::Text,
        }
    }

    const fn line_break(self) -> &'static str {
        match self {
            Self::Text | Self::Plain => "\n",
            Self::Multipart => "\r\n",
            Self::UrlEncoded => "",
        }
    }

    /// Whether lines that begin as remarks do are not sent.
    const fn has_remarks(self) -> bool {
        matches!(self, Self::Text | Self::UrlEncoded)
    }

    fn line(self, line: &str) -> &str {
        match self {
            Self::UrlEncoded => line.trim(),
            Self::Text | Self::Plain | Self::Multipart => line,
        }
    }
}

/// The text behind `#` or `//`.
fn comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix('#').or_else(|| line.strip_prefix("//"));
    text.map(str::trim)
}

/// A handler of the response, or a file that it is written to or compared with.
fn is_about_response(line: &str) -> bool {
    ["> ", "<> ", ">>"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `< path` or `<@ path`, and whether the file is a template itself.
fn included(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix('<')?;
    let (is_template, rest) = match rest.strip_prefix('@') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let path = rest.strip_prefix([' ', '\t'])?.trim();
    (!path.is_empty()).then_some((is_template, path))
}

/// Takes `HTTP/1.1` off the end of a request line.
fn split_version(url: &str) -> (&str, Option<&str>) {
    match url.rsplit_once(char::is_whitespace) {
        Some((url, version)) if version.starts_with("HTTP/") => (url.trim_end(), Some(version)),
        _ => (url, None),
    }
}

/// `{{` on a line of its own, as httpYac opens its scripts: with `@event`, `+`, `+pre` or `+post` behind it.
fn opens_script(line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix("{{") else {
        return false;
    };
    let is_event = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match rest.strip_prefix(['@', '+']) {
        Some(event) => is_event(event),
        None => rest.is_empty(),
    }
}

/// Takes the lines of a script up to `}}` on a line of its own.
fn skip_script<'a>(lines: impl Iterator<Item = (usize, &'a str)>) {
    for (_, line) in lines {
        if line.trim() == "}}" {
            return;
        }
    }
}

fn line_ends_script(line: &str) -> bool {
    line.trim_end().ends_with("%}")
}

#[cfg(test)]
mod tests;
