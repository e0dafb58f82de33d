//! A command line or a file, read into requests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_client::{Endpoint, EndpointError};
use plimsoll_formats::{FileRequest, Format, Part, RequestFile, Template, appearance, parse};
use plimsoll_load::Feeder;

use super::chain::SetVariables;
use super::missing::MissingVariables;
use super::selector::Selector;
use super::{DescribedRequest, MOST_WRONG, fill, not_utf8, report};
use crate::flags::Problems;
use crate::problem::Problem;

/// The sources of requests, and the problems with them.
pub(super) struct Reader<'a> {
    pub(super) flag: &'static str,
    /// The URL that a path without a host is relative to.
    pub(super) base: Option<Endpoint>,
    /// Whether every URL is what a server received: a path, even with two slashes at its beginning.
    pub(super) are_targets: bool,
    /// Variables that responses of the file give values to.
    pub(super) set: SetVariables,
    pub(super) feeders: &'a [Feeder],
    pub(super) variables: HashMap<String, Template>,
    /// Those that requests read so far would need.
    pub(super) without_value: MissingVariables,
    pub(super) problems: &'a mut Problems,
}

impl Reader<'_> {
    /// The one request of a command line; its URL has places if there is something for them.
    pub(super) fn command_line(
        &mut self,
        url: &str,
        has_places: bool,
    ) -> Option<Vec<DescribedRequest>> {
        let template = if has_places {
            self.problems.value("URL", Template::parse(url))?
        } else {
            Template::literal(url)
        };
        let url = self.url("URL", &template);
        std::mem::take(&mut self.without_value).report(self.feeders, self.problems);
        let (endpoint, target, is_websocket) = url?;
        Some(vec![DescribedRequest {
            place: "request".to_owned(),
            endpoint,
            target,
            file: None,
            weight: 1,
            is_websocket,
            set: SetVariables::default(),
            kept: Vec::new(),
        }])
    }

    /// The requests of a file, and what the file looks like if it was taken for a list of URLs by its content alone.
    pub(super) fn file(
        &mut self,
        path: &Path,
        format: Option<Format>,
    ) -> Option<(RequestFile, Format, Option<String>)> {
        let bytes = self.problems.file_or_stdin(self.flag, path)?;
        let given = format;
        let of_content = |text: &str| Format::detect(&path.to_string_lossy(), text);
        let (text, format) = match String::from_utf8(bytes) {
            Ok(text) => {
                let format = given.unwrap_or_else(|| of_content(&text));
                (text, format)
            }
            Err(error) => {
                // Some servers write what clients send into the log as it is.
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let format = given.unwrap_or_else(|| of_content(&text));
                if format != Format::AccessLog {
                    self.problems.push(not_utf8(self.flag, path));
                    return None;
                }
                (text, format)
            }
        };
        let is_doubtful = given.is_none() && format == Format::Urls;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut read = |name: &str| {
            let path: PathBuf = folder.join(name);
            Ok(Problems::read(&path)?)
        };
        match parse(format, &text, &mut read) {
            Ok(file) => Some((file, format, is_doubtful.then(|| appearance(&text)))),
            Err(remarks) => {
                report(&remarks, self.flag, path, self.problems);
                None
            }
        }
    }

    /// Takes the URL that a file gives for its paths, unless it has no host itself.
    pub(super) fn offer(&mut self, base: &str) {
        if !base.starts_with('/') {
            self.base = self.problems.value(self.flag, Endpoint::parse(base));
        }
    }

    /// Takes the values of an environment for variables that have none.
    pub(super) fn fall_back(&mut self, values: Vec<(String, Template)>) {
        // Of several the last one counts.
        for (name, value) in values.into_iter().rev() {
            if !self.set.contains(&name) {
                self.variables.entry(name).or_insert(value);
            }
        }
    }

    /// Takes the values that a file gives; those of the command line stay.
    pub(super) fn learn(&mut self, given: Vec<(String, Template)>) {
        let flags: Vec<String> = self.variables.keys().cloned().collect();
        for (name, value) in given {
            if !flags.contains(&name) {
                self.variables.insert(name, value);
            }
        }
    }

    /// The requests that are sent, and for each of the file its position among them.
    ///
    /// After several that are wrong the rest is not read.
    ///
    /// - `appearance`: what the file looks like, if it may be something else than requests.
    pub(super) fn choose(
        &mut self,
        path: &Path,
        requests: Vec<FileRequest>,
        only: &[Selector],
        appearance: Option<String>,
    ) -> (Vec<DescribedRequest>, Vec<Option<u32>>) {
        let mut chosen: Vec<DescribedRequest> = Vec::new();
        let mut positions = Vec::with_capacity(requests.len());
        let before = self.problems.len();
        let all = requests.len();
        for request in requests {
            let is_sent = request.weight > 0;
            let request = is_sent.then(|| self.request(path, request)).flatten();
            let request = request.filter(|request| Selector::all_match(only, request));
            positions.push(
                request
                    .as_ref()
                    .and_then(|_| u32::try_from(chosen.len()).ok()),
            );
            chosen.extend(request);
            let read = positions.len();
            if self.problems.len() - before >= MOST_WRONG && read < all {
                let message = format!("{}: {} more were not read", path.display(), all - read);
                let problem = Problem::with(self.flag, message);
                self.problems.push(match appearance {
                    Some(appearance) => {
                        problem.hint(format!("it was read as a list of URLs, but {appearance}"))
                    }
                    None => problem,
                });
                break;
            }
        }
        std::mem::take(&mut self.without_value).report(self.feeders, self.problems);
        (chosen, positions)
    }

    fn request(&mut self, path: &Path, mut request: FileRequest) -> Option<DescribedRequest> {
        let place = format!("{}: {}{}", self.flag, path.display(), request.place);
        // All that it needs is looked at, so that all that is missing is said at once.
        let url = self.fill(&place, &request.url);
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            headers.push(self.fill(&place, value).map(|value| (name.clone(), value)));
        }
        let body = request.body.as_ref().map(|body| self.fill(&place, body));
        let (endpoint, target, is_websocket) = self.url(&place, &url?)?;
        if is_websocket && (request.body.is_some() || request.method.is_some()) {
            let message = "a WebSocket has no method and no body; give its message by -d";
            self.problems.add(&place, message);
        }
        request.headers = headers.into_iter().collect::<Option<_>>()?;
        request.body = match body {
            Some(body) => Some(body?),
            None => None,
        };
        Some(DescribedRequest {
            place,
            endpoint,
            target,
            weight: request.weight,
            is_websocket,
            set: Arc::clone(&self.set),
            kept: Vec::new(),
            file: Some(request),
        })
    }

    fn fill(&mut self, place: &str, template: &Template) -> Option<Template> {
        fill(template, &self.variables, self.feeders, &self.set)
            .map_err(|missing| self.without_value.add(place, missing))
            .ok()
    }

    /// Where a request goes, its path where that is not always the same, and whether it is that of a
    /// WebSocket.
    fn url(&mut self, place: &str, url: &Template) -> Option<(Endpoint, Option<Template>, bool)> {
        let url = self.fill(place, url)?;
        let mut with_base = Template::default();
        let is_path = matches!(url.parts(), [Part::Text(text), ..] if text.starts_with(b"/")
            && (self.are_targets || !text.starts_with(b"//")));
        if is_path {
            let Some(base) = &self.base else {
                self.problems.push(
                    Problem::with(place, format!("`{url}` has no host"))
                        .hint("give the URL that it stands behind on the command line"),
                );
                return None;
            };
            with_base.push_text(base.to_string().trim_end_matches('/').as_bytes());
        } else if self.base.is_some() && self.flag == "--urls" && is_bare_word(&url) {
            let problem = Problem::with(place, format!("`{url}` would be a host"));
            let hint = format!("a path of the URL on the command line begins with a slash: /{url}");
            self.problems.push(problem.hint(hint));
            return None;
        }
        with_base.push(url);
        if let Some(text) = with_base.as_text() {
            let text = String::from_utf8_lossy(text);
            let (text, is_websocket) = as_http(&text);
            let endpoint = self.problems.value(place, Endpoint::parse(&text))?;
            return Some((endpoint, None, is_websocket));
        }
        match split_site(&with_base) {
            None => {
                self.problems.push(
                    Problem::with(place, format!("the host of `{with_base}` has a place for a value"))
                        .hint("a host is the same for every exchange: write a request for each, or give it by --var"),
                );
                None
            }
            Some((site, target)) => {
                let (site, is_websocket) = as_http(&site);
                let site: Result<_, EndpointError> = Endpoint::parse(&site);
                let site = self.problems.value(place, site)?;
                Some((site, Some(target), is_websocket))
            }
        }
    }
}

/// Whether a line has neither a scheme nor a host that is written as one: people mean a path by it.
fn is_bare_word(url: &Template) -> bool {
    let Some(Part::Text(text)) = url.parts().first() else {
        return false;
    };
    let text = String::from_utf8_lossy(text);
    let host = text.split(['/', '?']).next().unwrap_or_default();
    !host.contains(['.', ':', '[']) && host != "localhost"
}

/// The URL with the scheme that its connections have, and whether it is that of a WebSocket
/// (RFC 6455, section 3).
fn as_http(url: &str) -> (Cow<'_, str>, bool) {
    match url.trim().split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => {
            (format!("http://{rest}").into(), true)
        }
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => {
            (format!("https://{rest}").into(), true)
        }
        _ => (url.into(), false),
    }
}

/// Splits a URL behind its host, which must stand before the first place for a value.
fn split_site(url: &Template) -> Option<(String, Template)> {
    let (first, rest) = url.parts().split_first()?;
    let Part::Text(first) = first else {
        return None;
    };
    let first = String::from_utf8_lossy(first);
    let authority = first.find("://").map_or(0, |position| position + 3);
    let end = first
        .bytes()
        .enumerate()
        .skip(authority)
        .find(|(_, byte)| matches!(byte, b'/' | b'?' | b'#'))
        .map(|(position, _)| position)?;
    let (site, path) = first.split_at(end);
    let mut target = Template::literal(if path.starts_with('/') { "" } else { "/" });
    // A fragment is not sent.
    let whole = std::iter::once(Part::Text(path.as_bytes().to_vec())).chain(rest.iter().cloned());
    for part in whole {
        match part {
            Part::Text(text) => {
                let before = text.split(|byte| *byte == b'#').next().unwrap_or_default();
                target.push_text(before);
                if before.len() < text.len() {
                    break;
                }
            }
            place => target.push(Template::from(place)),
        }
    }
    Some((site.to_owned(), target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_behind_its_host() {
        let split = |text: &str| {
            let template = Template::parse(text).unwrap();
            split_site(&template).map(|(site, target)| (site, target.to_string()))
        };
        let whole = |site: &str, target: &str| Some((site.to_owned(), target.to_owned()));
        assert_eq!(
            split("http://h:1/a/{{b}}?c#d{{e}}"),
            whole("http://h:1", "/a/{{b}}?c")
        );
        assert_eq!(split("h/{{b}}"), whole("h", "/{{b}}"));
        assert_eq!(split("http://h?{{b}}"), whole("http://h", "/?{{b}}"));
        assert_eq!(split("http://{{h}}/"), None);
        assert_eq!(split("http://h{{port}}/"), None);
        assert_eq!(split("{{url}}"), None);
    }
}
