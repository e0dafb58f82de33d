//! Command lines of curl, as people keep them and browsers copy them.
//!
//! Each command, and each URL of one, becomes a request that is what curl would send. What concerns
//! the connection rather than the request is reported, with the flag of plimsoll that does the same.

mod options;

mod words;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use self::options::{CurlOption, Effect};
use self::words::PLACE;
use crate::request::{is_about_connection, is_token};
use crate::{FileRequest, MultipartForm, Place, ReadFile, Remark, RequestFile, Template};

/// Characters that curl keeps in `--data-urlencode`: the unreserved ones (RFC 3986, 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The codings of curl's `--compressed`, in a build that has all of them.
const ENCODINGS: &str = "deflate, gzip, br, zstd";

/// Reads the commands of a file.
pub(crate) fn parse(text: &str, read: ReadFile<'_>) -> Result<RequestFile, Vec<Remark>> {
    let commands =
        words::split(text).map_err(|(line, error)| vec![Remark::line(line, error.to_string())])?;
    let mut reader = Reader {
        read,
        file: RequestFile::default(),
        problems: Vec::new(),
    };
    for line in commands.redirected {
        reader.left_out(line, "where the output goes", None);
    }
    for command in commands.commands {
        reader.command(&command);
    }
    if reader.problems.is_empty() {
        Ok(reader.file)
    } else {
        Err(reader.problems)
    }
}

struct Reader<'a> {
    read: ReadFile<'a>,
    file: RequestFile,
    problems: Vec<Remark>,
}

/// The options of a command so far for its next requests.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option that was given or not"
)]
#[derive(Debug, Default)]
struct Draft {
    urls: Vec<(usize, String)>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    /// Fields that curl would add and that were taken away, in lower case.
    removed: Vec<String>,
    data: Option<Vec<u8>>,
    is_json: bool,
    form: MultipartForm,
    query: Vec<String>,
    upload: Option<Vec<u8>>,
    is_head: bool,
    is_get: bool,
    has_no_glob: bool,
}

impl Reader<'_> {
    fn problem(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Remark::line(line, message));
    }

    fn left_out(&mut self, line: usize, what: &str, instead: Option<&str>) {
        let mut remark = Remark::line(line, what);
        remark.hint = instead.map(str::to_owned);
        self.file.left_out.push(remark);
    }

    fn command(&mut self, words: &[(usize, String)]) {
        // As copied with the prompt.
        let words = match words {
            [(_, prompt), rest @ ..] if prompt == "$" || prompt == "%" => rest,
            words => words,
        };
        let Some(((line, program), words)) = words.split_first() else {
            return;
        };
        if program.rsplit('/').next() != Some("curl") {
            self.problem(*line, format!("`{program}` is not a command of curl"));
            return;
        }
        let mut draft = Draft::default();
        let mut words = words.iter();
        let mut are_urls = false;
        while let Some((line, word)) = words.next() {
            let line = *line;
            if are_urls || word == "-" || !word.starts_with('-') {
                draft.urls.push((line, word.clone()));
            } else if word == "--" {
                are_urls = true;
            } else if let Some(name) = word.strip_prefix("--") {
                if let Some(option) = self.long(line, name) {
                    let value = if option.takes_value {
                        words.next().map(|(_, value)| value.as_str())
                    } else {
                        Some("")
                    };
                    self.apply(line, word, option, value, &mut draft);
                }
            } else {
                let letters = word.strip_prefix('-').unwrap_or_default();
                let mut rest = letters.chars();
                while let Some(letter) = rest.next() {
                    let shown = format!("-{letter}");
                    let Some(option) = options::short(letter) else {
                        self.problem(line, format!("curl's option `{shown}` is not known here"));
                        break;
                    };
                    let value = match (option.takes_value, rest.as_str()) {
                        (false, _) => Some(""),
                        (true, "") => words.next().map(|(_, value)| value.as_str()),
                        (true, value) => {
                            rest = "".chars();
                            Some(value)
                        }
                    };
                    self.apply(line, &shown, option, value, &mut draft);
                }
            }
        }
        self.finish(*line, draft);
    }

    fn long(&mut self, line: usize, name: &str) -> Option<&'static CurlOption> {
        if let Some(option) = options::long(name) {
            return Some(option);
        }
        // `--no-compressed` takes back what is not given anyway.
        if let Some(option) = name.strip_prefix("no-").and_then(options::long)
            && !option.takes_value
        {
            const NOTHING: &CurlOption = &CurlOption {
                short: None,
                long: "no-",
                takes_value: false,
                effect: Effect::Silent,
            };
            return Some(NOTHING);
        }
        let mut remark = Remark::line(line, format!("curl's option `--{name}` is not known here"));
        if name.contains('=') {
            remark = remark.hint("curl takes the value of an option as the next word");
        } else if let Some(close) = options::suggestion(name) {
            remark = remark.hint(format!("did you mean `--{close}`?"));
        }
        self.problems.push(remark);
        None
    }

    fn apply(
        &mut self,
        line: usize,
        shown: &str,
        option: &CurlOption,
        value: Option<&str>,
        draft: &mut Draft,
    ) {
        let Some(value) = value else {
            self.problem(line, format!("`{shown}` has no value behind it"));
            return;
        };
        match option.effect {
            Effect::Silent => {}
            Effect::LeftOut(instead) => {
                let what = match (option.takes_value, option.short) {
                    (true, Some('U')) | (false, _) => format!("`{shown}`"),
                    (true, _) => format!("`{shown} {value}`"),
                };
                self.left_out(line, &what, Some(instead));
            }
            Effect::Method => draft.method = Some(value.to_owned()),
            Effect::Head => draft.is_head = true,
            Effect::Get => draft.is_get = true,
            Effect::NoGlob => draft.has_no_glob = true,
            Effect::Url => draft.urls.push((line, value.to_owned())),
            Effect::Next => {
                let done = std::mem::take(draft);
                self.finish(line, done);
            }
            Effect::Header => self.header(line, value, draft),
            Effect::UserAgent if value.is_empty() => draft.removed.push("user-agent".to_owned()),
            Effect::UserAgent => draft.header("user-agent", value),
            Effect::Referer => draft.header("referer", value.trim_end_matches(";auto")),
            Effect::Cookie if value.contains('=') => draft.header("cookie", value),
            Effect::Cookie => {
                let what = format!("`{shown} {value}`, a file of cookies");
                self.left_out(line, &what, Some("write the cookies as `name=value`"));
            }
            Effect::Compressed => draft.header("accept-encoding", ENCODINGS),
            Effect::User if value.contains(PLACE.0) => {
                let message = format!(
                    "`{shown}` is encoded as a whole, so a variable cannot be filled in; write the value, \
                     or give it by --basic-auth"
                );
                self.problem(line, message);
            }
            Effect::User => {
                if value.contains(':') {
                    let value = format!("Basic {}", STANDARD.encode(value));
                    draft.header("authorization", &value);
                } else {
                    let message = format!("`{shown}` has no password, for which curl would ask");
                    self.problem(line, message);
                }
            }
            Effect::Bearer => draft.header("authorization", &format!("Bearer {value}")),
            Effect::Data => match value.strip_prefix('@') {
                None => draft.data(value.as_bytes(), true),
                Some(path) => {
                    if let Some(mut content) = self.file(line, path) {
                        content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                        draft.data(&content, true);
                    }
                }
            },
            Effect::DataRaw => draft.data(value.as_bytes(), true),
            Effect::DataBinary => self.data(line, value, true, draft),
            Effect::Json => {
                draft.is_json = true;
                self.data(line, value, false, draft);
            }
            Effect::DataUrlencode => {
                if let Some(encoded) = self.urlencode(line, value) {
                    draft.data(encoded.as_bytes(), true);
                }
            }
            Effect::UrlQuery => match value.strip_prefix('+') {
                Some(value) => draft.query.push(value.to_owned()),
                None => draft.query.extend(self.urlencode(line, value)),
            },
            Effect::Upload => draft.upload = self.file(line, value),
            Effect::Form => {
                if let Err(error) = draft.form.add(value, self.read) {
                    self.problem(line, error.to_string());
                }
            }
            Effect::FormString => {
                let added = match value.split_once('=') {
                    Some((name, value)) => draft.form.add_text(name, value),
                    None => Err(crate::FormError::Malformed(value.to_owned())),
                };
                if let Err(error) = added {
                    self.problem(line, error.to_string());
                }
            }
        }
    }

    fn file(&mut self, line: usize, path: &str) -> Option<Vec<u8>> {
        match (self.read)(path) {
            Ok(content) => Some(content),
            Err(error) => {
                self.problem(line, error.to_string());
                None
            }
        }
    }

    fn data(&mut self, line: usize, value: &str, is_joined: bool, draft: &mut Draft) {
        match value.strip_prefix('@') {
            None => draft.data(value.as_bytes(), is_joined),
            Some(path) => {
                if let Some(content) = self.file(line, path) {
                    draft.data(&content, is_joined);
                }
            }
        }
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    fn urlencode(&mut self, line: usize, value: &str) -> Option<String> {
        if value.contains(PLACE.0) {
            let message = "a variable in data to be encoded cannot be filled in; write its value";
            self.problem(line, message);
            return None;
        }
        let Some(position) = value.find(['=', '@']) else {
            return Some(utf8_percent_encode(value, ENCODED).to_string());
        };
        let (name, content) = value.split_at(position);
        let content = if let Some(path) = content.strip_prefix('@') {
            let content = self.file(line, path)?;
            percent_encoding::percent_encode(&content, ENCODED).to_string()
        } else {
            let content = content.get(1..).unwrap_or_default();
            utf8_percent_encode(content, ENCODED).to_string()
        };
        Some(if name.is_empty() {
            content
        } else {
            format!("{name}={content}")
        })
    }

    fn header(&mut self, line: usize, text: &str, draft: &mut Draft) {
        if let Some(path) = text.strip_prefix('@') {
            if let Some(content) = self.file(line, path) {
                for text in String::from_utf8_lossy(&content).lines() {
                    if !text.trim().is_empty() {
                        self.header(line, text.trim_end(), draft);
                    }
                }
            }
            return;
        }
        let (name, value) = match (text.split_once(':'), text.strip_suffix(';')) {
            (Some((name, value)), _) if value.trim().is_empty() => (name, None),
            (Some((name, value)), _) => (name, Some(value.trim())),
            (None, Some(name)) => (name, Some("")),
            (None, None) => {
                self.problem(line, format!("`{text}` is not of the form `Name: value`"));
                return;
            }
        };
        let name = name.trim();
        // Browsers that speak HTTP/2 copy these.
        if name.is_empty() || name.starts_with(':') {
            let what = format!("header `{text}`, a pseudo header field of HTTP/2");
            self.left_out(line, &what, None);
            return;
        }
        if !is_token(name) {
            self.problem(line, format!("`{name}` is not the name of a header field"));
            return;
        }
        match value {
            None => draft.removed.push(name.to_ascii_lowercase()),
            Some(_) if is_about_connection(name) => {
                let what =
                    format!("header `{name}`, which is set from the connection and the body");
                self.left_out(line, &what, None);
            }
            Some(value) => draft.headers.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Makes the requests of a draft, one for each URL.
    fn finish(&mut self, line: usize, mut draft: Draft) {
        if draft.urls.is_empty() {
            self.problem(line, "the command has no URL");
            return;
        }
        let has_form = !draft.form.is_empty();
        if [draft.data.is_some(), has_form, draft.upload.is_some()]
            .iter()
            .filter(|given| **given)
            .count()
            > 1
        {
            self.problem(
                line,
                "the command has several bodies: one of `-d`, `-F` and `-T` is meant",
            );
            return;
        }
        let mut method = "GET";
        let mut body = None;
        if draft.is_get {
            let data = draft.data.take();
            draft
                .query
                .extend(data.map(|data| String::from_utf8_lossy(&data).into_owned()));
        } else if let Some(data) = draft.data.take() {
            method = "POST";
            let content_type = if draft.is_json {
                "application/json"
            } else {
                "application/x-www-form-urlencoded"
            };
            draft.default_header("content-type", content_type);
            body = Some(data);
        } else if has_form {
            method = "POST";
            let (content_type, content) = draft.form.encode();
            draft.default_header("content-type", &content_type);
            body = Some(content);
        } else if let Some(content) = draft.upload.take() {
            method = "PUT";
            body = Some(content);
        }
        if draft.is_json {
            draft.default_header("accept", "application/json");
        }
        if draft.is_head {
            method = "HEAD";
        }
        let method = draft.method.clone().unwrap_or_else(|| method.to_owned());
        if method.contains(PLACE.0) {
            self.problem(line, "a variable cannot be the method; write its value");
            return;
        }
        for (line, url) in &draft.urls {
            if !draft.has_no_glob && is_globbed(url) {
                let remark =
                    Remark::line(*line, format!("curl would make several URLs of `{url}`"))
                        .hint("write each of them, or `-g` if the braces or brackets are meant");
                self.problems.push(remark);
                continue;
            }
            let url = with_query(url, &draft.query);
            let mut request = FileRequest::new(Place::Line(*line), with_places(url.as_bytes()));
            request.method = Some(method.clone());
            for (name, value) in &draft.headers {
                let value = with_places(value.as_bytes());
                request.headers.push((name.clone(), value));
            }
            if !draft.removed.iter().any(|name| name == "accept") {
                request.default_header("accept", "*/*");
            }
            request.body = body.as_deref().map(with_places);
            self.file.requests.push(request);
        }
    }
}

/// Text with places where words have variables of the shell.
fn with_places(text: &[u8]) -> Template {
    let (mut begin, mut end) = ([0; 4], [0; 4]);
    let begin = PLACE.0.encode_utf8(&mut begin).as_bytes();
    let end = PLACE.1.encode_utf8(&mut end).as_bytes();
    let find =
        |text: &[u8], mark: &[u8]| text.windows(mark.len()).position(|window| window == mark);
    let mut template = Template::default();
    let mut rest = text;
    while let Some(at) = find(rest, begin)
        && let Some(length) = find(&rest[at..], end)
    {
        template.push_text(&rest[..at]);
        let name = String::from_utf8_lossy(&rest[at + begin.len()..at + length]);
        match Template::parse(&format!("{{{{{name}}}}}")) {
            Ok(place) => template.push(place),
            // Names of variables are those of places.
            Err(_) => template.push_text(name.as_bytes()),
        }
        rest = &rest[at + length + end.len()..];
    }
    template.push_text(rest);
    template
}

impl Draft {
    fn header(&mut self, name: &str, value: &str) {
        // `-H` comes before the options that set a field of the same name.
        self.default_header(name, value);
    }

    fn default_header(&mut self, name: &str, value: &str) {
        let is_given = self
            .headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !is_given && !self.removed.iter().any(|removed| removed == name) {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// - `is_joined`: whether an ampersand stands between it and the data before it.
    fn data(&mut self, content: &[u8], is_joined: bool) {
        let data = self.data.get_or_insert_default();
        if is_joined && !data.is_empty() {
            data.push(b'&');
        }
        data.extend_from_slice(content);
    }
}

/// The URL with `query` behind what it asks already; a fragment stays out of it.
fn with_query(url: &str, query: &[String]) -> String {
    if query.is_empty() {
        return url.to_owned();
    }
    let url = url.split('#').next().unwrap_or(url);
    let separator = match url.split_once('?') {
        None => "?",
        Some((_, found)) if found.is_empty() || found.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{url}{separator}{}", query.join("&"))
}

/// True if curl would take `{a,b}` or `[1-3]` for several URLs; brackets around an IPv6 address are
/// none.
fn is_globbed(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = match rest.strip_prefix('[') {
        Some(after) => after.split_once(']').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    rest.contains(['{', '['])
}

#[cfg(test)]
mod tests;
