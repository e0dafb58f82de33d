//! Which kind of file it is, by its name or by what it holds.

use std::fmt;
use std::str::FromStr;

use crate::request::{curl, http_file, url_list};
use crate::{ReadFile, Remark, RequestFile, access_log, har, openapi};

pub use crate::access_log::appearance;

/// A kind of file that describes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One URL a line, with a method before it or without.
    Urls,
    /// Requests as they are written in the `.http` files of editors.
    Http,
    /// Command lines of curl.
    Curl,
    /// A HAR file (HTTP Archive 1.2), as browsers write it.
    Har,
    /// An OpenAPI document (3.0 to 3.2, Swagger 2.0), in JSON or YAML.
    OpenApi,
    /// An access log: common, combined, JSON lines, or that of a load balancer of AWS.
    AccessLog,
}

impl Format {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 6] = [
        Self::Urls,
        Self::Http,
        Self::Curl,
        Self::Har,
        Self::OpenApi,
        Self::AccessLog,
    ];

    /// Its name in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Urls => "urls",
            Self::Http => "http",
            Self::Curl => "curl",
            Self::Har => "har",
            Self::OpenApi => "openapi",
            Self::AccessLog => "access-log",
        }
    }

    /// The format of a file: by the extension of its name if that is a known one, else by what the
    /// file holds.
    ///
    /// A file whose name ends in `.log` is a log whatever it holds: a list of URLs has another name.
    pub fn detect(file_name: &str, text: &str) -> Self {
        let extension = file_name.rsplit_once('.').map(|(_, extension)| extension);
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("http" | "rest") => Self::Http,
            Some("har") => Self::Har,
            Some("curl") => Self::Curl,
            Some("urls") => Self::Urls,
            Some("log") => Self::AccessLog,
            Some("yaml" | "yml") => Self::OpenApi,
            _ => Self::of_content(text),
        }
    }

    fn of_content(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if access_log::looks_like_log(text) {
            return Self::AccessLog;
        }
        if text.starts_with('{') {
            // The one has `log` on top, the other `openapi`, which a recording of one may contain too.
            let recorded = text.find("\"log\"").unwrap_or(usize::MAX);
            let described = ["\"openapi\"", "\"swagger\""].map(|key| text.find(key));
            let described = described.into_iter().flatten().min();
            return match described {
                Some(position) if position < recorded => Self::OpenApi,
                _ => Self::Har,
            };
        }
        let mut lines = text.lines().map(str::trim);
        let telling = |line: &str| !line.is_empty() && !is_comment(line);
        let first = lines.clone().find(|line| telling(line)).unwrap_or_default();
        if matches!(first.split_whitespace().next(), Some("curl" | "$")) {
            return Self::Curl;
        }
        if first.starts_with("openapi:") || first.starts_with("swagger:") {
            return Self::OpenApi;
        }
        let looks_like_http = first.starts_with('@')
            || lines.any(|line| line.starts_with("###") || is_header_line(line));
        if looks_like_http {
            Self::Http
        } else {
            Self::Urls
        }
    }
}

/// `Name: value`, which no URL looks like: behind its scheme comes a slash, behind its host a digit.
fn is_header_line(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| {
        !name.contains("//") && crate::request::is_token(name) && !name.starts_with('#')
    })
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#') && !line.starts_with("###")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format `{0}`; known are {names}", names = names())]
pub struct UnknownFormat(String);

fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

/// Reads a file of requests.
///
/// - `read`: reads the files that it names.
///
/// Fails with everything that is wrong with it, or with a remark that there is no request in it.
pub fn parse(format: Format, text: &str, read: ReadFile<'_>) -> Result<RequestFile, Vec<Remark>> {
    let text = text.trim_start_matches('\u{feff}');
    let file = match format {
        Format::Urls => url_list::parse(text),
        Format::Http => http_file::parse(text, read),
        Format::Curl => curl::parse(text, read),
        Format::Har => har::parse(text),
        Format::OpenApi => openapi::parse(text, read),
        Format::AccessLog => access_log::parse(text),
    }?;
    if file.requests.is_empty() {
        // What it holds instead may be why.
        let mut remarks = vec![Remark::whole(format!(
            "holds no request (read as {format})"
        ))];
        remarks.extend(file.left_out);
        return Err(remarks);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reports_its_format() {
        for (name, text, expected) in [
            ("a.http", "http://x/", Format::Http),
            ("a.REST", "", Format::Http),
            ("a.har", "", Format::Har),
            ("a.urls", "curl x", Format::Urls),
            (
                "a.txt",
                "# my sites\nhttp://127.0.0.1:80/\nPOST http://b/",
                Format::Urls,
            ),
            ("-", "http://x/?a=b: c", Format::Urls),
            ("a.txt", "curl 'http://x/'", Format::Curl),
            ("-", "$ curl http://x/", Format::Curl),
            ("a.txt", "GET http://x/\nAccept: a/b\n", Format::Http),
            ("a.txt", "@host = http://x\n", Format::Http),
            (
                "a.txt",
                "GET http://x/\n\n### two\nGET http://y/",
                Format::Http,
            ),
            ("a.yml", "", Format::OpenApi),
            ("a", "# x\nopenapi: 3.0.0\npaths:\n", Format::OpenApi),
            ("a.json", "{\"openapi\": \"3.1.0\"}", Format::OpenApi),
            ("a.json", "\u{feff} {\"log\": {}}", Format::Har),
            (
                "access.log",
                "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326\n",
                Format::AccessLog,
            ),
        ] {
            assert_eq!(Format::detect(name, text), expected, "{name}: {text}");
        }
        assert!(
            "yaml"
                .parse::<Format>()
                .unwrap_err()
                .to_string()
                .contains("urls, http")
        );
    }

    #[test]
    fn an_empty_file_is_reported() {
        for format in [Format::Urls, Format::Http, Format::Curl] {
            let remarks = parse(format, "\n", &mut |_| Err("".into())).unwrap_err();
            assert!(remarks[0].message.contains("holds no request"));
        }
    }
}
