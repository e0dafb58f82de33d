//! A request as rules see it: its parts are parsed on first use.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use percent_encoding::percent_decode;
use plimsoll_formats::{BodyPart, MultipartError, parse_multipart};
use plimsoll_server::{Request, Scheme};
use plimsoll_wire::http::below;
use roxmltree::Document;
use serde_json::Value;

use crate::rules::condition::equal_xml::Sums;
use crate::rules::condition::graphql::{self, Operation};
use crate::rules::condition::xpath::{self, RequestBudget, XmlError};
use crate::rules::path::decoded;

/// One request.
#[derive(Debug)]
pub struct RequestView<'a> {
    /// A token, in the case it was sent in.
    pub method: &'a str,
    /// Of the URL, as it was sent.
    pub target_path: &'a str,
    /// Decoded and normalised.
    pub path: Cow<'a, str>,
    /// Without the question mark, as it was sent.
    pub query: Option<&'a str>,
    /// `host` or `host:port`.
    pub authority: &'a str,
    /// Whether it came over TLS.
    pub is_tls: bool,
    /// The sender.
    pub peer: SocketAddr,
    /// The whole content.
    pub body: &'a [u8],
    /// The path as it was sent, below the prefix.
    own_path: &'a str,
    fields: Fields<'a>,
    parsed: Parsed<'a>,
}

/// The parts of a request that are parsed when they are first needed.
#[derive(Debug, Default)]
struct Parsed<'a> {
    json: OnceCell<Option<Value>>,
    xml: OnceCell<Result<Document<'a>, XmlError>>,
    xml_sums: Sums,
    xml_budget: OnceCell<Rc<RequestBudget>>,
    operation: OnceCell<Option<Operation>>,
    parameters: OnceCell<Pairs>,
    form: OnceCell<Pairs>,
    cookies: OnceCell<Pairs>,
    parts: OnceCell<Result<Vec<RequestPart<'a>>, MultipartError>>,
}

/// One part of multipart content.
#[derive(Debug)]
pub struct RequestPart<'a> {
    /// Its name in the form.
    pub name: Option<String>,
    /// The name of the file that it was made of.
    pub file_name: Option<String>,
    /// The request with the header and content of this part in place of the whole, without path and query.
    pub request: RequestView<'a>,
}

/// Names with their values, in the order they came.
pub type Pairs = Vec<(String, String)>;

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Borrowed(&'a Request<'a>),
    Kept(&'a [(String, Vec<u8>)], &'a [String]),
    Part(BodyPart<'a>),
}

impl<'a> RequestView<'a> {
    /// A request without content, or whose content is not needed.
    pub fn from_request(request: &'a Request<'a>) -> Self {
        Self {
            method: request.method,
            target_path: request.path,
            path: decoded(request.path),
            query: request.query,
            authority: request.authority,
            is_tls: request.scheme == Scheme::Https,
            peer: request.peer,
            body: &[],
            own_path: request.path,
            fields: Fields::Borrowed(request),
            parsed: Parsed::default(),
        }
    }

    /// Takes away what the path begins with, as whole segments.
    ///
    /// - `prefix`: without a slash at its end.
    pub fn strip(&mut self, prefix: &str) {
        if prefix.is_empty() {
            return;
        }
        if let Some(rest) = below(self.own_path, prefix) {
            self.own_path = if rest.is_empty() { "/" } else { rest };
            self.path = decoded(self.own_path);
        }
    }

    /// The path as it was sent, below the prefix.
    pub fn own_path(&self) -> &'a str {
        self.own_path
    }

    /// Path and query as they were sent, below the prefix.
    pub fn own_url(&self) -> Cow<'a, str> {
        match self.query {
            None => Cow::Borrowed(self.own_path),
            Some(query) => Cow::Owned(format!("{}?{query}", self.own_path)),
        }
    }

    /// A copy that outlives it, below the prefix, without content.
    pub(crate) fn keep(&self) -> KeptRequest {
        let fields = self.headers().into_iter();
        KeptRequest {
            method: self.method.to_owned(),
            target_path: self.own_path.to_owned(),
            query: self.query.map(str::to_owned),
            authority: self.authority.to_owned(),
            is_tls: self.is_tls,
            peer: self.peer,
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            layer_names: self.layer_names(),
            body: Bytes::new(),
        }
    }

    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.fields {
            Fields::Borrowed(request) => request.header(name),
            Fields::Kept(fields, _) => fields
                .iter()
                .find(|(field, _)| field.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.as_slice()),
            Fields::Part(part) => part.field(name),
        }
    }

    /// The values of all fields of that name, whatever its case, in the order they came.
    pub fn header_values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'n, 'a> {
        let fields = self.each_field();
        fields.filter_map(move |(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The same as text, if it is UTF-8.
    pub fn header_text(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.header(name)?).ok()
    }

    /// Every field with its value, in the order they came.
    pub fn headers(&self) -> Vec<(&'a str, &'a [u8])> {
        self.each_field().collect()
    }

    /// The names of the fields that layers of the server have set, which are not the client's.
    pub(crate) fn layer_names(&self) -> Vec<String> {
        match self.fields {
            Fields::Borrowed(request) => request.layer_fields().map(|it| it.0.to_owned()).collect(),
            Fields::Kept(_, names) => names.to_vec(),
            Fields::Part(_) => Vec::new(),
        }
    }

    fn each_field(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let (borrowed, kept, part) = match self.fields {
            Fields::Borrowed(request) => (Some(request.headers()), None, None),
            Fields::Kept(fields, _) => (None, Some(fields), None),
            Fields::Part(part) => (None, None, Some(part.fields())),
        };
        let kept = kept.into_iter().flatten();
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_slice()));
        let borrowed = borrowed.into_iter().flatten();
        borrowed.chain(kept).chain(part.into_iter().flatten())
    }

    /// The content, if it is JSON.
    pub fn json(&self) -> Option<&Value> {
        let json = self.parsed.json.get_or_init(|| {
            if self.body.is_empty() {
                None
            } else {
                serde_json::from_slice(self.body).ok()
            }
        });
        json.as_ref()
    }

    /// The content as XML, or why it is not XML within bounds.
    pub(crate) fn xml(&self) -> Result<&Document<'a>, &XmlError> {
        let xml = self.parsed.xml.get_or_init(|| xpath::document(self.body));
        xml.as_ref()
    }

    /// Digests of the XML content, for conditions.
    pub(crate) fn xml_sums(&self) -> &Sums {
        &self.parsed.xml_sums
    }

    /// The remaining budget of XML conditions for this request.
    pub(crate) fn xml_budget(&self) -> &Rc<RequestBudget> {
        self.parsed.xml_budget.get_or_init(Rc::default)
    }

    /// The operation of GraphQL that it asks for, if it does.
    pub(crate) fn operation(&self) -> Option<&Operation> {
        let operation = self
            .parsed
            .operation
            .get_or_init(|| graphql::operation(self));
        operation.as_ref()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// The host of its URL, without the port.
    pub fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host,
            _ => self.authority,
        }
    }

    /// The port of its URL, that of the scheme if none is given.
    pub fn port(&self) -> u16 {
        let given = self.authority.rsplit_once(':');
        let given = given.and_then(|(_, port)| port.parse().ok());
        given.unwrap_or(if self.is_tls { 443 } else { 80 })
    }

    /// The parameters of the query, decoded.
    pub fn parameters(&self) -> &Pairs {
        self.parsed
            .parameters
            .get_or_init(|| pairs(self.query.unwrap_or_default().as_bytes()))
    }

    /// The fields of a form (`application/x-www-form-urlencoded`), decoded; none of anything else.
    pub fn form(&self) -> &Pairs {
        self.parsed.form.get_or_init(|| {
            let kind = self.header_text("content-type").unwrap_or_default();
            let kind = kind.split(';').next().unwrap_or_default().trim();
            if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
                pairs(self.body)
            } else {
                Pairs::new()
            }
        })
    }

    /// The parts of multipart content, or why it has none within bounds.
    pub fn parts(&self) -> Result<&[RequestPart<'a>], MultipartError> {
        let parts = self.parsed.parts.get_or_init(|| {
            let kind = self.header("content-type").unwrap_or_default();
            let parts = parse_multipart(&String::from_utf8_lossy(kind), self.body)?;
            Ok(parts.into_iter().map(|part| self.part(part)).collect())
        });
        parts.as_deref().map_err(|error| *error)
    }

    fn part(&self, part: BodyPart<'a>) -> RequestPart<'a> {
        RequestPart {
            name: part.name(),
            file_name: part.file_name(),
            request: RequestView {
                method: self.method,
                target_path: "",
                path: Cow::Borrowed(""),
                query: None,
                authority: self.authority,
                is_tls: self.is_tls,
                peer: self.peer,
                body: part.content(),
                own_path: "",
                fields: Fields::Part(part),
                // All parts together may cost no more than one request.
                parsed: Parsed {
                    xml_budget: OnceCell::from(Rc::clone(self.xml_budget())),
                    ..Parsed::default()
                },
            },
        }
    }

    /// The cookies (RFC 6265, section 4.2).
    pub fn cookies(&self) -> &Pairs {
        self.parsed.cookies.get_or_init(|| {
            let fields = self.headers().into_iter();
            let cookies = fields.filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
            let pair = |text: &str| {
                let (name, value) = text.trim().split_once('=')?;
                Some((name.to_owned(), value.trim_matches('"').to_owned()))
            };
            cookies
                .filter_map(|(_, value)| std::str::from_utf8(value).ok())
                .flat_map(|text| text.split(';').filter_map(pair))
                .collect()
        })
    }
}

/// A request that outlives the bytes that it was read from.
#[derive(Debug, Clone)]
pub struct KeptRequest {
    /// A token, in the case it was sent in.
    pub method: String,
    /// Of the URL, as it was sent.
    pub target_path: String,
    /// Without the question mark.
    pub query: Option<String>,
    /// `host` or `host:port`.
    pub authority: String,
    /// Whether it came over TLS.
    pub is_tls: bool,
    /// The sender.
    pub peer: SocketAddr,
    /// Names and values of its header, in the order they came.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Names of those that layers of the server have set.
    pub(crate) layer_names: Vec<String>,
    /// The whole content.
    pub body: Bytes,
}

impl KeptRequest {
    /// A copy of a request, without its content.
    pub fn from_request(request: &Request<'_>) -> Self {
        let fields = request.headers();
        Self {
            method: request.method.to_owned(),
            target_path: request.path.to_owned(),
            query: request.query.map(str::to_owned),
            authority: request.authority.to_owned(),
            is_tls: request.scheme == Scheme::Https,
            peer: request.peer,
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            layer_names: request.layer_fields().map(|it| it.0.to_owned()).collect(),
            body: Bytes::new(),
        }
    }

    /// A described request, to find out what would answer it.
    ///
    /// - `target`: path and query.
    pub fn made(method: &str, target: &str) -> Self {
        let (path, query) = match target.split_once('?') {
            None => (target, None),
            Some((path, query)) => (path, Some(query.to_owned())),
        };
        Self {
            method: method.to_owned(),
            target_path: path.to_owned(),
            query,
            authority: "localhost".to_owned(),
            is_tls: false,
            peer: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            fields: Vec::new(),
            layer_names: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Path and query, as they were sent.
    pub(crate) fn target(&self) -> Cow<'_, str> {
        match &self.query {
            None => Cow::Borrowed(&self.target_path),
            Some(query) => Cow::Owned(format!("{}?{query}", self.target_path)),
        }
    }

    /// As rules see it.
    pub fn view(&self) -> RequestView<'_> {
        RequestView {
            method: &self.method,
            target_path: &self.target_path,
            path: decoded(&self.target_path),
            query: self.query.as_deref(),
            authority: &self.authority,
            is_tls: self.is_tls,
            peer: self.peer,
            body: &self.body,
            own_path: &self.target_path,
            fields: Fields::Kept(&self.fields, &self.layer_names),
            parsed: Parsed::default(),
        }
    }

    /// The same below a prefix of the path, which has no slash at its end.
    pub(crate) fn below(&self, prefix: &str) -> RequestView<'_> {
        let mut request = self.view();
        request.strip(prefix);
        request
    }
}

/// The values of one name.
pub fn values<'p>(pairs: &'p Pairs, name: &str) -> impl Iterator<Item = &'p str> {
    pairs
        .iter()
        .filter(move |(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

/// Pairs as forms and queries write them (WHATWG URL, section 5.1).
pub(crate) fn pairs(text: &[u8]) -> Pairs {
    let part = |bytes: &[u8]| {
        let blanks: Vec<u8> = bytes
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        percent_decode(&blanks).decode_utf8_lossy().into_owned()
    };
    text.split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let name = halves.next().unwrap_or_default();
            (part(name), part(halves.next().unwrap_or_default()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_forms_and_cookies_are_taken_apart() {
        let mut kept = KeptRequest::made("POST", "/a%20b?x=1&y=a%2Bb+c&x=2&z&&=v");
        kept.fields = vec![
            (
                "Content-Type".to_owned(),
                b"application/x-www-form-urlencoded; charset=utf-8".to_vec(),
            ),
            ("cookie".to_owned(), b"a=b; c=\"d\"".to_vec()),
            ("Cookie".to_owned(), b"e=f=g".to_vec()),
        ];
        kept.body = Bytes::from_static(b"p=q&r=%ff");
        let request = kept.view();
        assert_eq!(request.path, "/a b");
        assert_eq!(
            values(request.parameters(), "x").collect::<Vec<_>>(),
            ["1", "2"]
        );
        assert_eq!(values(request.parameters(), "y").next(), Some("a+b c"));
        assert_eq!(values(request.parameters(), "z").next(), Some(""));
        assert_eq!(values(request.form(), "r").next(), Some("\u{fffd}"));
        assert_eq!(values(request.cookies(), "c").next(), Some("d"));
        assert_eq!(values(request.cookies(), "e").next(), Some("f=g"));
        assert_eq!(request.json(), None);
    }
}
